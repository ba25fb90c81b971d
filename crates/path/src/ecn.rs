//! [`Ecn`]: whether packets may say on this path that their sender hears marks of congestion.
//!
//! ```text
//!   testing --- ten have come, and not all with a mark ---> set
//!           --- ten have left, and none has come --------> not set: somebody drops such packets
//!           --- ten have come, and all with a mark ------> not set: somebody writes over the bits
//! ```
//!
//! While it is tested it is set. A hop that clears the bits does no harm: no mark comes, and the
//! controller goes by losses.
//!
//! How often it is asked what was marked depends on what leaves, see [`Ecn::handle_left`].
//!
//! Source: RFC 9000, section 13.4.2 and appendix A.4, by what probes count (see
//! [`crate::counting`]) instead of what each acknowledgement does.

use std::time::Duration;

/// So many packets decide.
const TESTED: u64 = 10;

/// A question for so many packets is hardly noticed beside them.
const MANY: u64 = 16;

/// It is asked no more often.
const EVERY_MIN: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Testing,
    Set,
    NotSet,
}

/// See the module. Nothing may say so by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ecn {
    /// The controller yields to marks.
    is_heard: bool,
    /// How many that can be marked have left since it was asked what was.
    unasked: u64,
    state: State,
    /// Of those that said so: how many have left, and come, and came with a mark.
    sent: u64,
    came: u64,
    marked: u64,
}

impl Ecn {
    /// Of a path that nothing is known of, whose controller yields to marks or not.
    pub fn new(is_heard: bool) -> Self {
        Self { is_heard, ..Self::default() }
    }

    /// Whether packets may say so.
    #[inline]
    pub fn may_be_set(&self) -> bool {
        self.is_heard && self.state != State::NotSet
    }

    /// So many that can be marked have left: within what time it is to be asked what was, where
    /// that is not known yet. After the first it is a round trip, and after [`MANY`] a quarter of
    /// it, by which a window that doubles has not grown far.
    pub fn handle_left(&mut self, packets: u64, rtt: Duration) -> Option<Duration> {
        let before = self.unasked;
        self.unasked = before.saturating_add(packets);
        let wait = match before {
            MANY.. => return None,
            _ if self.unasked >= MANY => rtt / 4,
            0 => rtt,
            _ => return None,
        };
        Some(wait.max(EVERY_MIN))
    }

    /// It is asked what was marked.
    pub fn handle_asked(&mut self) {
        self.unasked = 0;
    }

    /// Of so many packets, each of which said so, so many have come, so many of them with a mark.
    pub fn handle_counted(&mut self, sent: u64, came: u64, marked: u64) {
        if self.state != State::Testing {
            return;
        }
        self.sent = self.sent.saturating_add(sent);
        self.came = self.came.saturating_add(came);
        self.marked = self.marked.saturating_add(marked);
        if self.came >= TESTED {
            self.state = if self.marked >= self.came { State::NotSet } else { State::Set };
        } else if self.came == 0 && self.sent >= TESTED {
            self.state = State::NotSet;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(counts: &[(u64, u64, u64)]) -> bool {
        let mut it = Ecn::new(true);
        counts.iter().for_each(|(sent, came, marked)| it.handle_counted(*sent, *came, *marked));
        it.may_be_set()
    }

    #[test]
    fn it_is_set_until_a_hop_shows_that_it_drops_or_overwrites() {
        assert!(after(&[]));
        assert!(after(&[(9, 0, 0)]), "too few");
        assert!(!after(&[(9, 0, 0), (1, 0, 0)]), "such packets are dropped");
        assert!(after(&[(9, 1, 0), (30, 0, 0)]), "one has come");
        assert!(!after(&[(5, 5, 5), (5, 5, 5)]), "all are marked");
        assert!(after(&[(5, 5, 5), (6, 5, 4)]), "one is not");
    }

    #[test]
    fn it_is_asked_after_what_can_be_marked_and_sooner_after_much() {
        assert!(!Ecn::default().may_be_set(), "nobody would yield");
        let (mut it, ms) = (Ecn::new(true), Duration::from_millis);
        assert_eq!(it.handle_left(1, ms(80)), Some(ms(80)));
        assert_eq!(it.handle_left(14, ms(80)), None);
        assert_eq!(it.handle_left(1, ms(80)), Some(ms(20)), "sixteen");
        assert_eq!(it.handle_left(1_000, ms(80)), None);
        it.handle_asked();
        assert_eq!(it.handle_left(45, ms(80)), Some(ms(20)), "a train");
        it.handle_asked();
        assert_eq!(it.handle_left(1, ms(1)), Some(EVERY_MIN));
    }

    #[test]
    fn what_was_decided_stays() {
        assert!(
            after(&[(10, 10, 0), (50, 50, 50), (50, 0, 0)]),
            "a queue stands, or a path is cut"
        );
        assert!(!after(&[(10, 0, 0), (50, 50, 0)]));
    }
}
