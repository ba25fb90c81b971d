//! [`Hearing`]: whether what is lost is the path's own, by asking for half for a while.
//!
//! ```text
//!   too much is lost, and no queue is felt:  asks for half
//!                       as much is lost      the path's own, which is made up for from now on
//!                       hardly any is        it was ours: less from now on
//!                       a queue is felt      others keep it full: nothing is known
//! ```
//!
//! A queue of a few packets is felt by nobody, and many that share one lose a tenth there; only
//! asking for less tells that from a radio that loses a tenth.

use super::losses::{Count, KNOWN_MIN};
use dacapo_base::Time;
use std::time::Duration;

/// It is asked for half so often at most: of a path whose round trips take microseconds more is
/// asked every few milliseconds.
const EVERY: Duration = Duration::from_secs(3);

/// It is asked for half so long at most, in doubt.
const MOST: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// Half is asked for because of a doubt.
    doubts: bool,
    /// When that was so last.
    doubted: Option<Time>,
    /// A queue was felt though half was asked for.
    is_deaf: bool,
    /// What came and was lost meanwhile, and what came in the last round.
    count: Count,
    came: u64,
}

impl Hearing {
    /// Too much is lost: whether to ask for half now, which was not done lately.
    pub fn doubt(&mut self, now: Time) -> bool {
        let is_new = self.doubted.is_none_or(|at| now.since(at) >= EVERY);
        if is_new {
            (self.doubted, self.doubts) = (Some(now), true);
        }
        is_new
    }

    /// A round is over in which half was asked for; round trips were so much longer than those that
    /// the path takes at least.
    pub fn listen(&mut self, count: Count, longer: Duration, rtt_min: Duration) {
        // A loss is known a round trip after what came beside it.
        if self.came > 0 {
            self.count.add(Count { came: self.came, lost: count.lost });
        }
        self.came = count.came;
        self.is_deaf |= longer > rtt_min / 16 + Duration::from_millis(1);
    }

    /// Whether half was asked for long enough, after this time.
    pub fn is_enough(&self, time: Duration) -> bool {
        !self.doubts || self.count.all() >= KNOWN_MIN || time >= MOST
    }

    /// Half is asked for no longer: what was heard, where it is the path's own.
    pub fn take(&mut self) -> Option<Count> {
        let (count, is_deaf) = (std::mem::take(&mut self.count), self.is_deaf);
        (self.doubts, self.is_deaf, self.came) = (false, false, 0);
        Some(count).filter(|count| !is_deaf && count.all() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Count = Count { came: 95, lost: 5 };
    const RTT: Duration = Duration::from_millis(32);

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn it_doubts_now_and_then_and_listens_until_it_knows_or_a_second() {
        let (mut it, now) = (Hearing::default(), Time::from_millis(7));
        assert!(it.is_enough(ms(0)), "no doubt");
        assert!(it.doubt(now));
        assert_eq!([it.is_enough(ms(999)), it.is_enough(ms(1_000))], [false, true]);
        it.listen(Count { came: 95, lost: 0 }, ms(1), RTT);
        it.listen(COUNT, ms(1), RTT);
        assert!(!it.is_enough(ms(300)));
        it.listen(COUNT, ms(1), RTT);
        assert!(it.is_enough(ms(300)));
        assert_eq!(it.take(), Some(Count { came: 190, lost: 10 }));
        assert!(!it.doubt(now + ms(2_999)) && it.is_enough(ms(0)), "it was heard");
        assert!(it.doubt(now + ms(3_000)));
    }

    #[test]
    fn where_a_queue_is_felt_nothing_is_known() {
        let mut it = Hearing::default();
        it.listen(COUNT, ms(4), RTT);
        it.listen(COUNT, ms(0), RTT);
        assert_eq!((it.take(), it.take()), (None, None));
        it.listen(Count { came: 95, lost: 0 }, ms(3), RTT);
        it.listen(COUNT, ms(3), RTT);
        assert_eq!(it.take(), Some(COUNT), "the next time is another");
    }
}
