//! [`Near`], the end that measures: round trips, and rounds of messages that are not answered.
//!
//! ```text
//!   echo       round_trip, round_trip, …
//!   one_way    begin | send, send, …, which is timed | settle: what has arrived of them
//! ```
//!
//! Invariants: what is repaired arrives whole, or the measurement fails; what is not counts in its
//! own round only.

use super::far::Far;
use dacapo::patience::Tolerance;
use dacapo_sys::signal::Signal;
use std::time::{Duration, Instant};

/// The longest that anything is waited for.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// What may be lost and has not arrived after so long without another arrival is lost.
const QUIET: Duration = Duration::from_millis(20);
/// How long the near end turns before it looks again what has arrived.
const TURN: Duration = Duration::from_millis(1);
/// Signals are looked at once for so many messages: a look is a call of the system.
const LOOK_EVERY: u32 = 64;

/// Why a point was not measured.
#[derive(Debug)]
pub enum Trouble {
    /// Something did not come, which another attempt may mend.
    Lost(String),
    /// It will not come the next time either.
    Broken(String),
    /// A signal came.
    Interrupted(Signal),
}

/// How a near end talks to its far ends.
pub trait Talk {
    /// Sends a message and waits until it has come back whole.
    fn round_trip(&mut self, len: usize) -> Result<(), Trouble>;

    /// Sends a message that is not answered; returns when it was accepted.
    fn send(&mut self, len: usize) -> Result<(), Trouble>;

    /// Does what there is to do, or waits for it at most this long.
    fn turn(&mut self, most: Duration) -> Result<(), Trouble>;
}

/// Looks whether a signal has come.
pub type Look<'a> = dyn FnMut() -> Option<Signal> + 'a;

/// A near end and the far ends that it talks to.
pub struct Near {
    talk: Box<dyn Talk>,
    fars: Vec<Far>,
    is_repaired: bool,
    /// Messages that are not answered, of all rounds.
    sent: u64,
}

impl Near {
    /// A near end; `is_repaired`: what is lost is sent again.
    pub fn new(talk: impl Talk + 'static, fars: Vec<Far>, is_repaired: bool) -> Self {
        Self { talk: Box::new(talk), fars, is_repaired, sent: 0 }
    }

    /// The mean time of a round trip.
    pub fn echo(
        &mut self,
        len: usize,
        count: u32,
        look: &mut Look<'_>,
    ) -> Result<Duration, Trouble> {
        let began = Instant::now();
        for number in 0..count {
            check(number, look)?;
            self.talk.round_trip(len).map_err(|trouble| self.explain(trouble))?;
        }
        Ok(began.elapsed() / count.max(1))
    }

    /// The mean time from one message to the next, and how many have arrived at the far end that
    /// got fewest; those that have not will not.
    pub fn one_way(
        &mut self,
        len: usize,
        count: u32,
        look: &mut Look<'_>,
    ) -> Result<(Duration, u64), Trouble> {
        // Of what is repaired nothing is late: all of the round before has arrived.
        let first = if self.is_repaired { 0 } else { self.sent };
        self.fars.iter().for_each(|far| far.begin(first));
        let began = Instant::now();
        for number in 0..count {
            check(number, look)?;
            self.talk.send(len).map_err(|trouble| self.explain(trouble))?;
            self.sent += 1;
        }
        let took = began.elapsed();
        let arrived = self.settle(count.into(), look)?;
        Ok((took / count.max(1), arrived))
    }

    fn settle(&mut self, count: u64, look: &mut Look<'_>) -> Result<u64, Trouble> {
        let most = if self.is_repaired { PATIENCE } else { QUIET };
        let (mut patience, mut last) = (Tolerance::new(Instant::now(), most), 0);
        loop {
            let arrived = || self.fars.iter().map(Far::arrived);
            let (fewest, sum) = (arrived().min().unwrap_or(count), arrived().sum::<u64>());
            if fewest >= count {
                return Ok(count);
            }
            if let Some(fault) = self.fault() {
                return Err(Trouble::Broken(fault));
            }
            if std::mem::replace(&mut last, sum) != sum {
                patience = Tolerance::new(Instant::now(), most);
            } else if !patience.lasts(Instant::now()) {
                return if self.is_repaired {
                    Err(Trouble::Broken(format!("{fewest} of {count} messages have arrived")))
                } else {
                    Ok(fewest)
                };
            }
            check(0, look)?;
            self.talk.turn(TURN)?;
        }
    }

    /// What a far end says is more than that nothing came from it, and lasts.
    fn explain(&self, trouble: Trouble) -> Trouble {
        match (trouble, self.fault()) {
            (Trouble::Lost(text) | Trouble::Broken(text), Some(fault)) => {
                Trouble::Broken(format!("{text}; {fault}"))
            }
            (trouble, _) => trouble,
        }
    }

    fn fault(&self) -> Option<String> {
        self.fars.iter().find_map(Far::fault).map(|fault| format!("the far end: {fault}"))
    }
}

fn check(number: u32, look: &mut Look<'_>) -> Result<(), Trouble> {
    let due = number.is_multiple_of(LOOK_EVERY);
    due.then(look).flatten().map_or(Ok(()), |signal| Err(Trouble::Interrupted(signal)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safenet::over::far::Tally;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Loses one message in three.
    struct Leaky {
        to: Sender<u64>,
        sent: u64,
    }

    impl Talk for Leaky {
        fn round_trip(&mut self, _: usize) -> Result<(), Trouble> {
            Ok(())
        }

        fn send(&mut self, _: usize) -> Result<(), Trouble> {
            self.sent += 1;
            if !self.sent.is_multiple_of(3) {
                self.to.send(self.sent - 1).unwrap();
            }
            Ok(())
        }

        fn turn(&mut self, most: Duration) -> Result<(), Trouble> {
            std::thread::sleep(most);
            Ok(())
        }
    }

    fn leaky(is_repaired: bool) -> Near {
        let (to, from): (_, Receiver<u64>) = channel();
        let work = move |tally: &Tally| {
            from.recv_timeout(TURN).into_iter().for_each(|number| tally.count(number));
            Ok(())
        };
        Near::new(Leaky { to, sent: 0 }, vec![Far::start(work).unwrap()], is_repaired)
    }

    #[test]
    fn what_is_lost_is_a_share_of_its_own_round() {
        let mut near = leaky(false);
        for _ in 0..2 {
            let (_, arrived) = near.one_way(1, 30, &mut || None).unwrap();
            assert!(arrived <= 20, "{arrived}");
        }
    }

    #[test]
    fn a_signal_ends_a_round() {
        let mut near = leaky(true);
        let looked = near.one_way(1, 30, &mut || Some(Signal::Interrupt));
        assert!(matches!(looked, Err(Trouble::Interrupted(Signal::Interrupt))));
        let looked = near.echo(1, 30, &mut || Some(Signal::Interrupt));
        assert!(matches!(looked, Err(Trouble::Interrupted(_))));
    }
}
