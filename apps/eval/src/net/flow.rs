//! One flow of a run: who sends numbers the units, who receives counts them.
//!
//! ```text
//!   unit   number (8 bytes) | when it was handed over, ns, or 0 (8) | filling
//! ```
//!
//! Invariants: a rate is of bytes between two looks at the clock, the first of which is at the
//! first unit; nothing waits longer than [`SLICE`] without looking whether it is to stop.

use super::ask::Ask;
use dacapo::{Deadline, FlowReceiver, Received, Session};
use dacapo::{Error, Time};
use dacapo_sys::clock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The longest wait at once.
const SLICE: Duration = Duration::from_millis(200);

/// Units below this length are timed one in so many, so that the clock is not what is measured.
const SHORT_LEN: u32 = 4_096;
const TIMED_EVERY: u64 = 16;

/// How long after its last unit a run is given up that does not end.
const OVERTIME: Duration = Duration::from_secs(20);

/// Bytes so far, over all flows of an end; and whether all are to stop.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Bytes handed over.
    pub sent: AtomicU64,
    /// Bytes received.
    pub got: AtomicU64,
    /// Stop, whatever is missing.
    pub is_over: AtomicBool,
}

impl Pulse {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// What an end has sent of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// Units handed over.
    pub units: u64,
}

/// What an end has received of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Got {
    /// Units.
    pub units: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes after the first unit, until `last`.
    pub timed_bytes: u64,
    /// Units after the first, until `last`.
    pub timed_units: u64,
    /// When the first unit came.
    pub first: Option<Time>,
    /// When the clock was last looked at.
    pub last: Option<Time>,
    /// By how much the time on the way varies, as RFC 3550 smooths it, in ns.
    pub jitter_ns: f64,
    /// Units that came after one that was sent later.
    pub reordered: u64,
    /// Units that were no units of this run.
    pub foreign: u64,
    first_len: u64,
    highest: u64,
    /// How long the last timed unit was on its way, by two clocks whose difference does not matter.
    transit: Option<i128>,
}

fn is_timed(ask: &Ask, number: u64) -> bool {
    let is_fast = ask.unit_len < SHORT_LEN && ask.rate_bps.is_none();
    !is_fast || number.is_multiple_of(TIMED_EVERY)
}

/// Sends until the time or the bytes are over, and ends the flow.
///
/// # Errors
/// Why the flow takes no more.
pub fn send(session: &Session, name: &str, ask: &Ask, pulse: &Pulse) -> Result<Sent, Error> {
    let mut flow = session.sender(name)?;
    let mut unit = vec![0x5A; ask.unit_len as usize];
    let (mut sent, end, units_max) =
        (Sent::default(), clock::now() + ask.duration, ask.units_max());
    'units: while sent.units < units_max && !pulse.is_over() {
        let mut stamp = 0;
        if is_timed(ask, sent.units) {
            let now = clock::now();
            if now >= end {
                break;
            }
            stamp = now.as_nanos();
        }
        write_head(&mut unit, sent.units, stamp);
        while !flow.send_by(&unit, Deadline::after(SLICE))? {
            if pulse.is_over() || clock::now() >= end {
                break 'units;
            }
        }
        sent.units += 1;
        pulse.sent.fetch_add(u64::from(ask.unit_len), Ordering::Relaxed);
    }
    flow.finish()?;
    Ok(sent)
}

/// Receives until the flow has ended.
///
/// # Errors
/// Why the flow ended, when not in order.
pub fn receive(session: &Session, name: &str, ask: &Ask, pulse: &Pulse) -> Result<Got, Error> {
    let (mut got, mut flow) = (Got::default(), session.receiver(name)?);
    let by = clock::now() + ask.duration + OVERTIME;
    loop {
        // It is looked at where it lies, as who wants no copy does.
        let received = flow.recv_with_by(Deadline::after(SLICE), |unit| {
            got.count(unit.pieces().next().unwrap_or_default(), unit.len() as u64, ask);
            pulse.got.fetch_add(unit.len() as u64, Ordering::Relaxed);
        })?;
        match received {
            Received::Unit(()) => {}
            Received::Nothing if !pulse.is_over() && clock::now() < by => {}
            Received::End | Received::Nothing => return Ok(got),
        }
    }
}

/// The next unit; nothing when it is time, or over.
pub fn wait(flow: &mut FlowReceiver, by: Time, pulse: &Pulse) -> Result<Received, Error> {
    loop {
        let received = flow.recv_by(Deadline::after(SLICE))?;
        if received != Received::Nothing || pulse.is_over() || clock::now() >= by {
            return Ok(received);
        }
    }
}

impl Got {
    /// Counts a unit of `len` bytes that begins so.
    fn count(&mut self, head: &[u8], len: u64, ask: &Ask) {
        let Some((number, stamp)) = read_head(head) else {
            self.foreign += 1;
            return;
        };
        self.units += 1;
        self.bytes += len;
        match number < self.highest {
            true => self.reordered += 1,
            false => self.highest = number,
        }
        if self.first.is_none() {
            self.first_len = len;
        }
        if self.first.is_none() || stamp != 0 || is_timed(ask, self.units) {
            let now = clock::now();
            self.first.get_or_insert(now);
            self.last = Some(now);
            self.timed_units = self.units - 1;
            self.timed_bytes = self.bytes - self.first_len;
            if stamp != 0 {
                self.time(now, stamp);
            }
        }
    }

    fn time(&mut self, now: Time, stamp: u64) {
        let taken = i128::from(now.as_nanos()) - i128::from(stamp);
        if let Some(before) = self.transit.replace(taken) {
            let change = (taken - before).unsigned_abs() as f64;
            self.jitter_ns += (change - self.jitter_ns) / 16.0;
        }
    }
}

/// Puts the head of a unit into it.
pub fn write_head(unit: &mut [u8], number: u64, stamp: u64) {
    let mut head = [0; 16];
    head[..8].copy_from_slice(&number.to_be_bytes());
    head[8..].copy_from_slice(&stamp.to_be_bytes());
    if let Some(at) = unit.first_chunk_mut::<16>() {
        *at = head;
    }
}

/// The number of a unit, and when it was handed over.
pub fn read_head(unit: &[u8]) -> Option<(u64, u64)> {
    let (number, rest) = unit.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), u64::from_be_bytes(*rest.first_chunk::<8>()?)))
}

#[cfg(test)]
mod tests {
    use super::super::ask::{Ask, Run};
    use super::*;
    use crate::cli::{NetDirection, NetWait};

    fn ask(unit_len: u32) -> Ask {
        Ask {
            id: 1,
            run: Run::Bulk,
            transport: crate::net::ask::tests::named("udp"),
            graph: String::new(),
            direction: NetDirection::Up,
            flows: 1,
            unit_len,
            rate_bps: None,
            duration: Duration::from_secs(1),
            bytes: None,
            wait: NetWait::Block,
            join: None,
        }
    }

    fn unit(number: u64, len: usize) -> Vec<u8> {
        let mut unit = vec![0; len];
        write_head(&mut unit, number, 0);
        unit
    }

    #[test]
    fn the_first_unit_starts_the_clock_and_is_not_in_the_rate() {
        let (ask, mut got) = (ask(8_192), Got::default());
        (0..5).for_each(|number| got.count(&unit(number, 8_192), 8_192, &ask));
        assert_eq!((got.units, got.bytes), (5, 5 * 8_192));
        assert_eq!((got.timed_units, got.timed_bytes), (4, 4 * 8_192));
        assert!(got.first <= got.last && got.first.is_some());
    }

    #[test]
    fn of_short_units_one_in_sixteen_is_timed_and_the_rate_is_up_to_that_one() {
        let (ask, mut got) = (ask(64), Got::default());
        (0..40).for_each(|number| got.count(&unit(number, 64), 64, &ask));
        assert_eq!((got.units, got.timed_units, got.timed_bytes), (40, 31, 31 * 64));
    }

    #[test]
    fn units_out_of_order_and_foreign_ones_are_counted_apart() {
        let (ask, mut got) = (ask(64), Got::default());
        [0, 2, 1, 3].iter().for_each(|number| got.count(&unit(*number, 64), 64, &ask));
        got.count(b"junk", 4, &ask);
        assert_eq!((got.units, got.reordered, got.foreign), (4, 1, 1));
    }

    #[test]
    fn jitter_is_0_when_every_unit_takes_as_long() {
        let mut got = Got::default();
        for ms in 0..100 {
            got.time(Time::from_millis(ms + 5), ms * 1_000_000);
        }
        assert_eq!(got.jitter_ns, 0.0);
        got.time(Time::from_millis(1_000), 0);
        assert!(got.jitter_ns > 0.0);
    }
}
