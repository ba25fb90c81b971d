//! How long messages take, measured as the SAFENET document does, over a network in memory.
//!
//! ```text
//!   Level::User       send_message, get_message    MessageService   MessageService
//!   Level::Transport  write, read                        Engine --- Engine        net.rs carries
//! ```
//!
//! Latency, half of an echo's round trip; and throughput, from the first SEND_MESSAGE to the last.
//! Both at two of that document's three levels; below the third, its network, there is none here: a
//! packet is handed over by a call, so what is measured is the processor's work at all ends.
//!
//! Method: Dempsey, Fenton, Michel, Waterman, Weaver, "A Performance Evaluation of the SAFENET
//! Lightweight System", sections 2 and 3.

mod net;
mod transport;
mod user;

use dacapo_base::Time;
use std::fmt;
use std::time::Duration;

/// Where is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The users of the message service.
    User,
    /// The users of XTP.
    Transport,
}

/// Who is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cast {
    /// One host.
    Unicast,
    /// So many hosts of a group, without repair. Whoever answers answers to the group.
    Multicast {
        /// How many; with 0 nothing is measured.
        receivers: usize,
    },
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where.
    pub level: Level,
    /// To whom; at [`Level::Transport`] to one host.
    pub cast: Cast,
    /// Length of each message in bytes; at [`Level::Transport`] at least 1.
    pub len: usize,
    /// How many messages, or round trips.
    pub count: u32,
}

/// Nothing was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureError {
    /// Streams of XTP have no empty messages, and groups are not measured at that level; there
    /// have to be receivers.
    NotThere(Run),
    /// The messages did not come to an end.
    Hangs(Run),
}

/// The most that a message may take before it hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Half of the mean round trip of `count` echoes, by the caller's clock.
///
/// # Errors
/// [`MeasureError`].
pub fn latency(run: Run, clock: &mut dyn FnMut() -> Time) -> Result<Duration, MeasureError> {
    check(run)?;
    let took = match run.level {
        Level::User => user::echo(run, clock),
        Level::Transport => transport::echo(run, clock),
    };
    Ok(took.ok_or(MeasureError::Hangs(run))? / run.count.max(1) / 2)
}

/// The time between the first and the last of `count` messages sent one after the other, divided by
/// their number, by the caller's clock.
///
/// # Errors
/// [`MeasureError`].
pub fn interval(run: Run, clock: &mut dyn FnMut() -> Time) -> Result<Duration, MeasureError> {
    check(run)?;
    let took = match run.level {
        Level::User => user::stream(run, clock),
        Level::Transport => transport::stream(run, clock),
    };
    Ok(took.ok_or(MeasureError::Hangs(run))? / run.count.max(1))
}

fn check(run: Run) -> Result<(), MeasureError> {
    let is_there = match (run.level, run.cast) {
        (Level::User, Cast::Multicast { receivers }) => receivers > 0,
        (Level::User, Cast::Unicast) => true,
        (Level::Transport, cast) => cast == Cast::Unicast && run.len > 0,
    };
    if is_there { Ok(()) } else { Err(MeasureError::NotThere(run)) }
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotThere(run) => write!(
                f,
                "{run:?} cannot be measured: at the level of XTP a message has at least one byte \
                 and goes to one host; a group has at least one receiver"
            ),
            Self::Hangs(run) => write!(f, "{run:?} did not come to an end"),
        }
    }
}

impl std::error::Error for MeasureError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that goes on by a microsecond whenever it is read: what is measured counts turns.
    fn measured(
        what: fn(Run, &mut dyn FnMut() -> Time) -> Result<Duration, MeasureError>,
        run: Run,
    ) -> Result<Duration, MeasureError> {
        let mut now = Time::from_millis(1);
        what(run, &mut || {
            now += Duration::from_micros(1);
            now
        })
    }

    const UNICAST: Run = Run { level: Level::User, cast: Cast::Unicast, len: 100, count: 50 };

    #[test]
    fn every_level_and_cast_is_measured() {
        for (level, cast) in [
            (Level::User, Cast::Unicast),
            (Level::User, Cast::Multicast { receivers: 1 }),
            (Level::User, Cast::Multicast { receivers: 2 }),
            (Level::Transport, Cast::Unicast),
        ] {
            for len in [1, 1_000, 100_000] {
                let run = Run { level, cast, len, count: 20 };
                let times = [measured(latency, run), measured(interval, run)];
                assert!(times.iter().all(|time| time.is_ok_and(|time| !time.is_zero())), "{run:?}");
            }
        }
    }

    #[test]
    fn longer_messages_take_more_turns() {
        let times = [100, 1_000_000].map(|len| measured(latency, Run { len, ..UNICAST }).unwrap());
        assert!(times[1] > times[0] * 5, "{times:?}");
    }

    #[test]
    fn empty_messages_are_of_the_user_only() {
        assert!(measured(latency, Run { len: 0, ..UNICAST }).is_ok());
        let run = Run { level: Level::Transport, len: 0, ..UNICAST };
        assert_eq!(measured(latency, run), Err(MeasureError::NotThere(run)));
        let run = Run { cast: Cast::Multicast { receivers: 0 }, ..UNICAST };
        let error = measured(interval, run).unwrap_err();
        assert!(error.to_string().contains("at least one receiver"));
    }

    #[test]
    fn a_clock_that_jumps_shows_that_it_hangs() {
        let mut now = Time::from_millis(1);
        let mut clock = || {
            now += Duration::from_secs(100);
            now
        };
        assert_eq!(latency(UNICAST, &mut clock), Err(MeasureError::Hangs(UNICAST)));
    }
}
