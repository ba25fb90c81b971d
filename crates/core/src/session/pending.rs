//! [`Pending`]: the commands of a session that wait for their answers.
//!
//! Invariant: at most [`PENDING_MAX`] requests wait; each is answered or expires, once.

use dacapo_base::Time;
use std::time::Duration;

/// The most requests that wait at a time.
const PENDING_MAX: usize = 256;

/// A command that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// JOIN: the OFFER.
    Offer,
    /// OFFER: the ANSWER, which the peer's application gives.
    Answer,
    /// ANSWER: the ACCEPT.
    Accept,
    /// ACTIVATE.
    Activated(u32),
    /// DEACTIVATE.
    Deactivated(u32),
    /// CONTROL, with its number.
    Control(u32),
    /// CLOSE.
    Closed,
}

impl Awaited {
    /// The command that waits.
    pub fn name(self) -> &'static str {
        match self {
            Self::Offer => "JOIN",
            Self::Answer => "OFFER",
            Self::Accept => "ANSWER",
            Self::Activated(_) => "ACTIVATE",
            Self::Deactivated(_) => "DEACTIVATE",
            Self::Control(_) => "CONTROL",
            Self::Closed => "CLOSE",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// When each has waited long enough.
    waiting: Vec<(Time, Awaited)>,
    requests: u32,
}

impl Pending {
    /// The number of the next request.
    pub fn next_request(&mut self) -> u32 {
        self.requests += 1;
        self.requests
    }

    pub fn is_full(&self) -> bool {
        self.waiting.len() >= PENDING_MAX
    }

    pub fn add(&mut self, deadline: Time, awaited: Awaited) {
        self.waiting.push((deadline, awaited));
    }

    /// The answer to a command has come; false when none was waited for.
    pub fn take(&mut self, awaited: Awaited) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(_, waiting)| *waiting != awaited);
        let is_taken = self.waiting.len() != before;
        if self.waiting.is_empty() {
            // Most sessions wait for nothing most of the time.
            self.waiting = Vec::new();
        }
        is_taken
    }

    /// Those that have waited long enough.
    pub fn expire(&mut self, now: Time) -> Vec<Awaited> {
        let over = self.waiting.extract_if(.., |(deadline, _)| *deadline <= now);
        over.map(|(_, awaited)| awaited).collect()
    }

    /// Nothing is waited for any more; what was.
    pub fn clear(&mut self) -> impl Iterator<Item = Awaited> + use<> {
        std::mem::take(&mut self.waiting).into_iter().map(|(_, awaited)| awaited)
    }

    pub fn due(&self) -> Option<Time> {
        self.waiting.iter().map(|(at, _)| *at).min()
    }

    /// This time does not count.
    pub fn shift(&mut self, by: Duration) {
        self.waiting.iter_mut().for_each(|(deadline, _)| *deadline += by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn each_is_answered_or_expires_once() {
        let mut pending = Pending::default();
        pending.add(at(10), Awaited::Offer);
        pending.add(at(5), Awaited::Control(pending.requests + 1));
        assert_eq!(pending.due(), Some(at(5)));
        assert!(pending.take(Awaited::Offer) && !pending.take(Awaited::Offer));
        assert_eq!(pending.expire(at(4)), []);
        pending.shift(Duration::from_secs(2));
        assert_eq!(pending.expire(at(6)), [], "two seconds do not count");
        assert_eq!(pending.expire(at(7)), [Awaited::Control(1)]);
        assert_eq!((pending.expire(at(99)), pending.due()), (vec![], None));
    }

    #[test]
    fn requests_are_numbered_and_bounded() {
        let mut pending = Pending::default();
        for number in 1..=PENDING_MAX as u32 {
            assert!(!pending.is_full());
            assert_eq!(pending.next_request(), number);
            pending.add(at(1), Awaited::Control(number));
        }
        assert!(pending.is_full());
        assert_eq!(pending.clear().count(), PENDING_MAX);
        assert!(!pending.is_full());
    }
}
