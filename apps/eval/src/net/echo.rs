//! A small unit there and back, again and again: how long it takes.
//!
//! ```text
//!   near   ping n ->          far: the same back          <- pong n    the clock stops
//! ```
//!
//! Invariants: one unit is on its way at a time; one that does not come back within [`LOST_AFTER`]
//! is lost, and is in no figure but that count; the first ones warm up and are in none.

use super::ask::{Ask, ECHO_LEN};
use super::flow::{Pulse, Sent, read_head, wait, write_head};
use dacapo::Error;
use dacapo::{FlowReceiver, Received, Session};
use dacapo_sys::clock;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A unit that is not back after so long is lost.
const LOST_AFTER: Duration = Duration::from_secs(1);

/// Units that come before those that are measured.
const WARM_UP: u64 = 50;

/// Units of a measurement at most.
const UNITS_MAX: u64 = 1_000_000;

/// How long units took.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    /// There and back, in ns, in ascending order.
    pub rtt_ns: Vec<u64>,
    /// Units that did not come back in time, those that warm up too.
    pub lost: u64,
}

impl Echoes {
    /// The time within which so many of 1,000 came back, in microseconds.
    pub fn permille_us(&self, permille: u64) -> f64 {
        let last = self.rtt_ns.len().saturating_sub(1) as u64;
        let at = usize::try_from(last * permille / 1_000).unwrap_or(usize::MAX);
        self.rtt_ns.get(at).map_or(0.0, |ns| *ns as f64 / 1e3)
    }
}

/// The near end.
///
/// # Errors
/// Why the flows ended.
pub fn ask(session: &Session, ask: &Ask, pulse: &Pulse) -> Result<Echoes, Error> {
    let mut unit = vec![0x5A; ECHO_LEN as usize];
    let (mut ping, mut pong) = (session.sender("ping")?, session.receiver("pong")?);
    let mut echoes = Echoes::default();
    let end = clock::now() + ask.duration;
    for number in 0..UNITS_MAX.saturating_add(WARM_UP) {
        let sent = clock::now();
        if sent >= end || pulse.is_over.load(Ordering::Relaxed) {
            break;
        }
        write_head(&mut unit, number, sent.as_nanos());
        ping.send(&unit)?;
        let back = await_echo(&mut pong, number, pulse)?;
        let taken = clock::now().since(sent);
        pulse.got.fetch_add(1, Ordering::Relaxed);
        match &back {
            None => echoes.lost += 1,
            Some(_) if number < WARM_UP => {}
            Some(_) => echoes.rtt_ns.push(taken.as_nanos() as u64),
        }
        if let Some(unit) = back {
            pong.give_back(unit);
        }
    }
    ping.finish()?;
    echoes.rtt_ns.sort_unstable();
    Ok(echoes)
}

/// Waits for a unit; older ones that were given up may still come.
fn await_echo(
    pong: &mut FlowReceiver,
    number: u64,
    pulse: &Pulse,
) -> Result<Option<Vec<u8>>, Error> {
    let by = clock::now() + LOST_AFTER;
    loop {
        match wait(pong, by, pulse)? {
            Received::Unit(unit) => {
                if read_head(&unit).is_some_and(|(back, _)| back == number) {
                    return Ok(Some(unit));
                }
            }
            Received::Nothing | Received::End => return Ok(None),
        }
    }
}

/// The far end: everything back, until nothing more comes.
///
/// # Errors
/// Why the flows ended.
pub fn answer(session: &Session, ask: &Ask, pulse: &Pulse) -> Result<Sent, Error> {
    let mut sent = Sent::default();
    let (mut ping, mut pong) = (session.receiver("ping")?, session.sender("pong")?);
    let by = clock::now() + ask.duration + Duration::from_secs(20);
    while let Received::Unit(unit) = wait(&mut ping, by, pulse)? {
        pong.send(&unit)?;
        ping.give_back(unit);
        sent.units += 1;
    }
    pong.finish()?;
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_those_that_came_back() {
        let echoes = Echoes { rtt_ns: (1..=1_001).map(|us| us * 1_000).collect(), lost: 3 };
        let shares = [0, 500, 990, 999, 1_000].map(|permille| echoes.permille_us(permille));
        assert_eq!(shares, [1.0, 501.0, 991.0, 1_000.0, 1_001.0]);
        assert_eq!(Echoes::default().permille_us(500), 0.0);
    }
}
