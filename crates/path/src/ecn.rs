//! [`Marking`]: whether packets may say on this path that their sender hears marks of congestion.
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

use dacapo_base::Ecn;

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
pub(crate) struct Marking {
    /// With which codepoint packets leave, by what the controller does with marks.
    wanted: Ecn,
    state: State,
    /// Of those that said so: how many have left, and come, and came with a mark.
    sent: u64,
    came: u64,
    marked: u64,
}

impl Marking {
    /// Of a path that nothing is known of, whose packets are to leave with this codepoint.
    pub fn new(wanted: Ecn) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// With which codepoint packets may leave.
    #[inline]
    pub fn codepoint(&self) -> Ecn {
        if self.state == State::NotSet { Ecn::NotEct } else { self.wanted }
    }

    /// With which codepoint what must come may leave: only one that is known to be carried.
    pub fn proven(&self) -> Ecn {
        if self.state == State::Set { self.wanted } else { Ecn::NotEct }
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
        let mut it = Marking::new(Ecn::Ect1);
        counts.iter().for_each(|(sent, came, marked)| it.handle_counted(*sent, *came, *marked));
        it.codepoint() == Ecn::Ect1
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
    fn both_codepoints_are_tested_alike_and_nothing_else_is_set() {
        for wanted in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
            let mut it = Marking::new(wanted);
            assert_eq!((it.codepoint(), it.proven()), (wanted, Ecn::NotEct));
            let mut good = it;
            good.handle_counted(10, 10, 3);
            assert_eq!((good.codepoint(), good.proven()), (wanted, wanted));
            it.handle_counted(10, 0, 0);
            assert_eq!((it.codepoint(), it.proven()), (Ecn::NotEct, Ecn::NotEct));
        }
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
