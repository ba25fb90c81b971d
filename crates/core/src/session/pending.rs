//! [`Pending`]: the commands of a session that wait for their answers.
//!
//! Invariant: at most [`PENDING_MAX`] requests wait; each is answered or expires, once.

use dacapo_base::Time;
use std::time::Duration;

/// The most requests that wait at a time.
const PENDING_MAX: usize = 256;

/// The most of them that are modules'. Each is of at most 4 KiB, and so is its answer: while
/// contact is lost all of them wait in the stream of the session, with those that answer the
/// peer's, and that takes 256 KiB.
const OF_MODULES_MAX: usize = 24;

/// Who asks by CONTROL, and gets the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    Application,
    /// The module at this place of the graph of an epoch of a flow.
    Module {
        flow: usize,
        epoch: u64,
        place: usize,
    },
}

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
    /// CONTROL, with its number, and for whom.
    Control(u32, Asker),
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
            Self::Control(..) => "CONTROL",
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

    /// Whether this one may ask no more.
    pub fn is_full(&self, asker: Asker) -> bool {
        let is_of_module =
            |awaited: &Awaited| matches!(awaited, Awaited::Control(_, Asker::Module { .. }));
        let of_modules = || self.waiting.iter().filter(|(_, it)| is_of_module(it)).count();
        self.waiting.len() >= PENDING_MAX
            || asker != Asker::Application && of_modules() >= OF_MODULES_MAX
    }

    /// A CONTROL waits for its answer from now on: its number.
    pub fn ask(&mut self, deadline: Time, asker: Asker) -> u32 {
        let request = self.next_request();
        self.add(deadline, Awaited::Control(request, asker));
        request
    }

    pub fn add(&mut self, deadline: Time, awaited: Awaited) {
        self.waiting.push((deadline, awaited));
    }

    /// The answer to a command has come; false when none was waited for.
    pub fn take(&mut self, awaited: Awaited) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(_, waiting)| *waiting != awaited);
        let is_taken = self.waiting.len() != before;
        self.give_back();
        is_taken
    }

    /// Most sessions wait for nothing most of the time.
    fn give_back(&mut self) {
        if self.waiting.is_empty() {
            self.waiting = Vec::new();
        }
    }

    /// The answer to a CONTROL has come: for whom; `None` when none was waited for.
    pub fn take_control(&mut self, request: u32) -> Option<Asker> {
        let asker = |(_, awaited): &(Time, Awaited)| match awaited {
            Awaited::Control(number, asker) if *number == request => Some(*asker),
            _ => None,
        };
        let mut waiting = self.waiting.iter().map(asker).enumerate();
        let (at, asker) = waiting.find_map(|(at, asker)| Some((at, asker?)))?;
        self.waiting.remove(at);
        self.give_back();
        Some(asker)
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
        let control = Awaited::Control(1, Asker::Application);
        pending.add(at(5), control);
        assert_eq!(pending.due(), Some(at(5)));
        assert!(pending.take(Awaited::Offer) && !pending.take(Awaited::Offer));
        assert!(pending.take(control));
        assert_eq!(pending.waiting.capacity(), 0, "who waits for nothing keeps no memory");
        pending.add(at(5), control);
        assert_eq!(pending.expire(at(4)), []);
        pending.shift(Duration::from_secs(2));
        assert_eq!(pending.expire(at(6)), [], "two seconds do not count");
        assert_eq!(pending.expire(at(7)), [control]);
        assert_eq!((pending.expire(at(99)), pending.due()), (vec![], None));
    }

    #[test]
    fn requests_are_numbered_and_bounded() {
        let mut pending = Pending::default();
        let module = Asker::Module { flow: 1, epoch: 2, place: 3 };
        for number in 1..=PENDING_MAX as u32 {
            assert!(!pending.is_full(Asker::Application));
            assert_eq!(pending.next_request(), number);
            let asker = if pending.is_full(module) { Asker::Application } else { module };
            pending.add(at(1), Awaited::Control(number, asker));
        }
        assert!(pending.is_full(Asker::Application));
        assert_eq!(pending.take_control(1), Some(module));
        assert_eq!(pending.take_control(OF_MODULES_MAX as u32 + 1), Some(Asker::Application));
        assert!(!pending.is_full(module), "a module may ask again");
        assert_eq!((pending.take_control(1), pending.take_control(999)), (None, None));
        assert_eq!(pending.clear().count(), PENDING_MAX - 2);
        assert!(!pending.is_full(module));
    }

    #[test]
    fn what_waits_is_named_by_the_command_that_was_sent() {
        let control = Awaited::Control(1, Asker::Application);
        let all = [Awaited::Offer, Awaited::Answer, Awaited::Accept, control, Awaited::Closed];
        assert_eq!(all.map(Awaited::name), ["JOIN", "OFFER", "ANSWER", "CONTROL", "CLOSE"]);
        assert_eq!(Awaited::Activated(1).name(), "ACTIVATE");
        assert_eq!(Awaited::Deactivated(1).name(), "DEACTIVATE");
    }

    #[test]
    fn who_asks_waits_under_the_number_of_the_request() {
        let mut pending = Pending::default();
        let module = Asker::Module { flow: 1, epoch: 2, place: 3 };
        assert_eq!(pending.ask(at(5), Asker::Application), 1);
        assert_eq!(pending.ask(at(4), module), 2);
        assert_eq!(pending.due(), Some(at(4)));
        assert_eq!((pending.take_control(2), pending.due()), (Some(module), Some(at(5))));
        assert_eq!(pending.take_control(1), Some(Asker::Application));
        assert_eq!(pending.waiting.capacity(), 0);
    }
}
