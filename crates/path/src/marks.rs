//! [`Marks`]: whether packets may say on this path that their sender hears marks of congestion.
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
//! Source: RFC 9000, section 13.4.2 and appendix A.4, by what probes count (see
//! [`crate::counting`]) instead of what each acknowledgement does.

/// So many packets decide.
const TESTED: u64 = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Testing,
    Set,
    NotSet,
}

/// See the module. Nothing may say so by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// The controller yields to marks.
    is_heard: bool,
    /// What can be marked has left since it was asked what was.
    is_to_be_asked: bool,
    state: State,
    /// Of those that said so: how many have left, and come, and came with a mark.
    sent: u64,
    came: u64,
    marked: u64,
}

impl Marks {
    /// Of a path that nothing is known of, whose controller yields to marks or not.
    pub fn new(is_heard: bool) -> Self {
        Self { is_heard, ..Self::default() }
    }

    /// Whether packets may say so.
    #[inline]
    pub fn may_be_set(&self) -> bool {
        self.is_heard && self.state != State::NotSet
    }

    /// What can be marked has left; whether it is the first since it was asked what was.
    pub fn handle_left(&mut self) -> bool {
        !std::mem::replace(&mut self.is_to_be_asked, true)
    }

    /// It is asked what was marked.
    pub fn handle_asked(&mut self) {
        self.is_to_be_asked = false;
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
        let mut it = Marks::new(true);
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
    fn it_is_asked_once_after_what_can_be_marked() {
        assert!(!Marks::default().may_be_set(), "nobody would yield");
        let mut it = Marks::new(true);
        assert_eq!([it.handle_left(), it.handle_left()], [true, false]);
        it.handle_asked();
        assert!(it.handle_left());
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
