//! Module `rate-burst`: bytes leave in bursts, and between these are pauses.
//!
//! ```text
//!   down     1 2 3 4 5 6 7 8
//!   wire     1 2 3 .  .  .  4 5 6 .  .  .  7 8        a burst in each interval of burst / rate
//!   up       everything as it comes
//! ```
//!
//! XTP 4.0, "rate control": RATE and BURST, in bytes/s and bytes. An interval takes burst / rate;
//! in each at most a burst leaves, and what of it was not used is gone. So a receiver that has room
//! for a burst, and empties it in an interval, never gets more than it can take, however long the
//! sender was silent. Here it is what is handed down that counts, as data bytes do there: headers,
//! parities and what is sent again below do not, and neither do marks of epochs.
//!
//! It stands above what numbers packets and makes losses good: what waits below those would be
//! taken for lost, and asked for.
//!
//! What waits is little: who feeds waits himself, where units can still be held back. When no unit
//! follows in an epoch it leaves at once, and the receiver waits for it.
//!
//! Invariants: nothing is dropped, and packets keep their order; no more waits than `burst`, than
//! `rate` gives in 20 ms (at least 2 KiB) and than 64 KiB, and one packet; at most 1,024 packets.

use super::credit::{Credit, UNLIMITED};
use super::profile::Bursts;
use super::waiting::Waiting;
use crate::control::parameter;
use crate::runs::down_or_drop;
use dacapo_base::Time;
use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params, Setup,
    Stratum, TimerId, Verdict,
};
use dacapo_packet::Packet;
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "rate-burst",
    id: 0x0012,
    function: "rate control",
    mechanism: "rate and burst (XTP 4.0)",
    summary: "bytes leave in bursts with pauses between them; what a pause did not use is gone",
    stratum: Stratum::Shape,
    head: 0,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: true,
    segments: false,
    acknowledges: false,
    orders: None,
    requires: &[],
    provides: &[],
    takes: &[],
    beneath: &[],
    notes: &["packets_waited"],
    profile: &Bursts,
    params: &[
        ParamSpec {
            name: "rate",
            unit: ParamUnit::Bytes,
            default: UNLIMITED,
            min: 1_000,
            max: UNLIMITED,
            summary: "how many bytes leave in a second at most; the largest value: no limit",
            control: Some(CONTROL_SET_RATE),
        },
        ParamSpec {
            name: "burst",
            unit: ParamUnit::Bytes,
            default: 65_000,
            min: 1_500,
            max: 16_000_000,
            summary: "how many of them leave together at most",
            control: Some(CONTROL_SET_BURST),
        },
    ],
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Out-of-band message: set `rate`; the new value in bytes/s follows as a u64. The running interval
/// ends when it would have at this rate, or at once.
pub const CONTROL_SET_RATE: u8 = 1;

/// Out-of-band message: set `burst`; the new value in bytes follows as a u64. A larger one holds
/// from the next interval on.
pub const CONTROL_SET_BURST: u8 = 2;

/// The code of the note that says how many packets had to wait.
pub const NOTE_WAITED: u16 = 1;

/// No more waits than `rate` gives in this time: as below the graph, what has entered it can no
/// longer be held back.
const WAITS: Duration = Duration::from_millis(20);
const WAITING_MIN: u64 = 2 << 10;
const WAITING_MAX: u64 = 64 << 10;

/// How many packets wait at most.
const PACKETS_MAX: usize = 1_024;

/// Nobody waits longer for the last of an epoch.
const PATIENCE_MAX: Duration = Duration::from_secs(10);

const BURST_TIMER: TimerId = 0;

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    let (rate, burst) = (params.value(&SPEC, "rate"), params.value(&SPEC, "burst"));
    Box::new(RateBurst {
        rate,
        burst,
        credit: Credit::new(rate, burst),
        waiting: Waiting::default(),
        packet_len_max: setup.layout.segment + setup.added_above(),
        unit_len_max: setup.unit_len_max_here() as u64,
        armed_for: None,
        waited: 0,
        is_drained: false,
    })
}

struct RateBurst {
    /// In bytes/s.
    rate: u64,
    /// In bytes.
    burst: u64,
    credit: Credit,
    waiting: Waiting,
    /// The longest packet that is handed down.
    packet_len_max: usize,
    unit_len_max: u64,
    armed_for: Option<Time>,
    /// How many packets had to wait.
    waited: i64,
    /// No unit follows in this epoch: nothing waits any more.
    is_drained: bool,
}

impl Module for RateBurst {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        if self.is_drained {
            return Verdict::Forward;
        }
        self.credit.fill(cx.now());
        self.release(cx);
        if self.waiting.is_empty() {
            let count = self.credit.covers(slot);
            if count >= slot.segment_count() {
                self.credit.take(cx.now(), slot);
                return Verdict::Forward;
            }
            if let Some(first) = cx.pool.split_first(slot, count) {
                self.send(cx, first);
            }
        }
        self.waited += slot.segment_count() as i64;
        cx.note(NOTE_WAITED, self.waited);
        self.waiting.push(slot.take());
        self.arm(cx);
        Verdict::Held
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        self.armed_for = None;
        self.credit.fill(cx.now());
        self.release(cx);
        self.arm(cx);
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        match parameter(&SPEC, message)? {
            (CONTROL_SET_RATE, rate) => self.rate = rate,
            (_, burst) => self.burst = burst,
        }
        self.credit.set(cx.now(), self.rate, self.burst);
        self.release(cx);
        self.arm(cx);
        Ok(Vec::new())
    }

    fn credit(&self) -> usize {
        if self.is_drained {
            return usize::MAX;
        }
        let most = usize::try_from(self.waiting_max()).unwrap_or(usize::MAX);
        let Some(room) = most.checked_sub(self.waiting.bytes()).filter(|room| *room > 0) else {
            return 0;
        };
        let packets = (room / self.packet_len_max.max(1)).max(1);
        packets.min(PACKETS_MAX.saturating_sub(self.waiting.packets()))
    }

    /// At the end what waits, and the rest of a unit before it, leave at once; at `rate`, which is
    /// no more than what is below lets out, they take so long.
    fn patience(&self) -> Duration {
        let last = self.waiting_max().saturating_add(self.unit_len_max);
        let nanos = u128::from(last) * 1_000_000_000 / u128::from(self.rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(PATIENCE_MAX)
    }

    /// Sends what waits, now, and lets pass what is still before it: who receives knows by the end
    /// of an epoch that all of it has left.
    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.is_drained = true;
        while let Some(packet) = self.waiting.pop() {
            down_or_drop(cx, packet);
        }
        self.arm(cx);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        while let Some(packet) = self.waiting.pop() {
            cx.discard(packet, DropReason::Shutdown);
        }
        self.credit = Credit::new(self.rate, self.burst);
        self.is_drained = false;
        self.arm(cx);
    }
}

impl RateBurst {
    /// With so many bytes that wait no more are taken.
    fn waiting_max(&self) -> u64 {
        let in_time = u128::from(self.rate) * WAITS.as_millis() / 1_000;
        let in_time = u64::try_from(in_time).unwrap_or(u64::MAX);
        in_time.clamp(WAITING_MIN, WAITING_MAX).min(self.burst)
    }

    /// Sends what waits as far as the credit goes: a train is cut there.
    fn release(&mut self, cx: &mut Cx<'_>) {
        while let Some(mut packet) = self.waiting.pop() {
            let count = self.credit.covers(&packet);
            if count >= packet.segment_count() {
                self.send(cx, packet);
                continue;
            }
            let first = cx.pool.split_first(&mut packet, count);
            self.waiting.put_back(packet);
            match first {
                Some(first) => self.send(cx, first),
                None => break,
            }
        }
    }

    /// Sends a packet or train. What waits is less than a call may emit.
    fn send(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        self.credit.take(cx.now(), &packet);
        down_or_drop(cx, packet);
    }

    fn arm(&mut self, cx: &mut Cx<'_>) {
        let due = self.waiting.front().and_then(|packet| self.credit.due(packet));
        if due == self.armed_for {
            return;
        }
        match due {
            Some(due) => cx.arm(BURST_TIMER, due),
            None => cx.disarm(BURST_TIMER),
        }
        self.armed_for = due;
    }
}
