//! [`Hearing`]: whether what is lost is the path's own, by whether a queue can be felt.
//!
//! ```text
//!   asking for more:  round trips get longer     a queue, so it is ours
//!   cruising:         half as much or less       what is lost now is the path's
//!                     they stay long, or never   others keep it full: nothing is known
//!                     got longer
//! ```

use super::losses::Count;
use std::time::Duration;

/// From so many packets and rounds of a cruise on it is known what the path loses by itself.
const LISTENED: u64 = 1_024;
const LISTENED_ROUNDS: u64 = 3;

/// Where asking for more lost too much, it is looked for so many rounds more whether a queue is
/// felt.
const JUDGED_AFTER: u64 = 1;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// By how much asking for more made round trips longer; nothing where that was no queue.
    felt: Duration,
    /// They were as long while it cruised.
    is_deaf: bool,
    /// What came and was lost while it cruised.
    listened: Count,
    /// So much was in flight when asking for more lost too much, and how many rounds are left.
    suspect: Option<(u64, u64)>,
}

impl Hearing {
    /// While it does not know yet what the path loses by itself it does not make up for that.
    pub fn is_listening(rounds: u64, count: Count) -> bool {
        rounds < LISTENED_ROUNDS || count.all() < LISTENED
    }

    /// A round of a cruise is over, in which round trips were so much longer.
    pub fn listen(&mut self, count: Count, longer: Duration) {
        self.listened.add(count);
        self.is_deaf |= longer > self.felt / 2;
    }

    /// A round of anything else is over, in which they were so much longer, by a queue.
    pub fn feel(&mut self, longer: Duration) {
        self.felt = self.felt.max(longer);
    }

    /// Asking for more lost too much, with so much in flight.
    pub fn suspect(&mut self, flight: u64) {
        self.suspect = Some((flight, JUDGED_AFTER)).filter(|_| self.felt.is_zero());
    }

    /// A round is over: so much in flight was too much, if no queue was felt meanwhile.
    pub fn judge(&mut self) -> Option<u64> {
        let (flight, rounds) = self.suspect.filter(|_| self.felt.is_zero())?;
        self.suspect = rounds.checked_sub(1).map(|left| (flight, left));
        Some(flight).filter(|_| rounds == 0)
    }

    /// It asks for more from now on: what was heard, where that is the path's own.
    pub fn take(&mut self) -> Option<Count> {
        let heard = std::mem::take(self);
        Some(heard.listened).filter(|_| !heard.felt.is_zero() && !heard.is_deaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Count = Count { came: 95, lost: 5 };

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn what_is_lost_without_a_queue_that_could_be_felt_is_the_paths_own() {
        let mut it = Hearing::default();
        it.feel(ms(10));
        it.listen(COUNT, ms(4));
        assert_eq!((it.take(), it.take()), (Some(COUNT), None), "once");
        it.listen(COUNT, ms(0));
        assert_eq!(it.take(), None, "none was felt");
        it.feel(ms(10));
        it.listen(COUNT, ms(0));
        it.listen(COUNT, ms(6));
        assert_eq!(it.take(), None, "it was there all the time");
    }

    #[test]
    fn where_no_queue_is_felt_what_was_in_flight_was_too_much() {
        let mut it = Hearing::default();
        it.suspect(9_000);
        assert_eq!([it.judge(), it.judge(), it.judge()], [None, Some(9_000), None]);
        it.suspect(9_000);
        it.feel(ms(3));
        assert_eq!([it.judge(), it.judge()], [None, None]);
    }
}
