//! [`Schedule`]: whose turn it is to send.
//!
//! ```text
//!   priority 7   a b c     asked first, behind the one that sent last: b c a
//!   priority 0   d e       asked when nobody above has anything
//! ```
//!
//! Invariants: nobody is asked while one of a higher priority gives something; among equals each is
//! asked once before the one that sent last is asked again.

use crate::ids::{FanOutId, SessionId};
use dacapo_wire::attribute::key;
use dacapo_wire::session::FlowOffer;
use std::cmp::Reverse;

/// The greatest value of the attribute `priority`.
const PRIORITY_MAX: u8 = 7;

/// What is asked for with the attribute `priority`; nothing asked is 0.
pub(crate) fn priority(offer: &FlowOffer) -> u8 {
    let asked = offer.attributes.iter().filter(|attribute| attribute.key == key::PRIORITY);
    let asked = asked.filter_map(|attribute| attribute.min).max().unwrap_or(0);
    u8::try_from(asked.clamp(0, i64::from(PRIORITY_MAX))).unwrap_or(0)
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// A flow of a session, by its place.
    Flow(SessionId, usize),
    /// What is sent once for several.
    FanOut(FanOutId),
}

/// One in the order in which flows are asked for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub priority: u8,
    pub asked: Asked,
}

#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// The highest priority first, and equals by session and place.
    order: Vec<Turn>,
    /// Who of each priority has sent last.
    last: [Option<Asked>; PRIORITY_MAX as usize + 1],
}

impl Schedule {
    /// These are asked from now on, given in their order.
    pub fn set(&mut self, turns: impl Iterator<Item = Turn>) {
        self.order.clear();
        self.order.extend(turns);
        self.order.sort_by_key(|turn| Reverse(turn.priority));
    }

    /// Takes the order out, for who asks those in it; it is to be given back.
    pub fn take(&mut self) -> Vec<Turn> {
        std::mem::take(&mut self.order)
    }

    pub fn give_back(&mut self, order: Vec<Turn>) {
        self.order = order;
    }

    /// Those of one priority, in turn.
    pub fn in_turn<'a>(&self, equals: &'a [Turn]) -> impl Iterator<Item = &'a Turn> + use<'a> {
        let priority = equals.first().map_or(0, |turn| turn.priority);
        let last = self.last.get(usize::from(priority)).copied().flatten();
        let first = equals.partition_point(|turn| Some(turn.asked) <= last);
        let (before, behind) = equals.split_at(first);
        behind.iter().chain(before)
    }

    /// A flow has sent.
    pub fn note_sent(&mut self, turn: &Turn) {
        if let Some(last) = self.last.get_mut(usize::from(turn.priority)) {
            *last = Some(turn.asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(priority: u8, session: u64, index: usize) -> Turn {
        Turn { priority, asked: Asked::Flow(SessionId(session), index) }
    }

    /// The sessions in the order in which they are asked.
    fn asked(schedule: &mut Schedule) -> Vec<(u64, usize)> {
        let order = schedule.take();
        let equals = order.chunk_by(|one, next| one.priority == next.priority);
        let asked = equals.flat_map(|equals| schedule.in_turn(equals));
        let place = |turn: &Turn| match turn.asked {
            Asked::Flow(session, index) => (session.0, index),
            Asked::FanOut(_) => (u64::MAX, 0),
        };
        let asked = asked.map(place).collect();
        schedule.give_back(order);
        asked
    }

    #[test]
    fn a_higher_priority_is_asked_first_and_equals_as_they_come() {
        let mut schedule = Schedule::default();
        assert!(asked(&mut schedule).is_empty());
        let turns = [turn(0, 1, 0), turn(7, 1, 1), turn(0, 2, 0), turn(7, 3, 0), turn(3, 4, 0)];
        schedule.set(turns.into_iter());
        assert_eq!(asked(&mut schedule), [(1, 1), (3, 0), (4, 0), (1, 0), (2, 0)]);
        schedule.set([turn(0, 2, 0)].into_iter());
        assert_eq!(asked(&mut schedule), [(2, 0)], "the others are asked no more");
    }

    #[test]
    fn who_has_sent_last_is_asked_after_all_its_equals() {
        let mut schedule = Schedule::default();
        let turns = [turn(2, 1, 0), turn(2, 1, 1), turn(2, 5, 0), turn(1, 3, 0)];
        schedule.set(turns.into_iter());
        schedule.note_sent(&turn(2, 1, 0));
        assert_eq!(asked(&mut schedule), [(1, 1), (5, 0), (1, 0), (3, 0)]);
        schedule.note_sent(&turn(2, 5, 0));
        assert_eq!(asked(&mut schedule), [(1, 0), (1, 1), (5, 0), (3, 0)]);
        schedule.note_sent(&turn(1, 3, 0));
        assert_eq!(asked(&mut schedule)[..2], [(1, 0), (1, 1)], "priorities do not mix");
        schedule.note_sent(&turn(2, 2, 9));
        assert_eq!(asked(&mut schedule)[..2], [(5, 0), (1, 0)], "it need not be there any more");
        schedule.note_sent(&turn(200, 1, 0));
        assert_eq!(asked(&mut schedule).len(), 4, "no such priority");
    }

    #[test]
    fn everybody_gets_its_turn_whoever_has_something() {
        let mut schedule = Schedule::default();
        let mut sent = [0; 3];
        for _ in 0..9 {
            schedule.set((0..3).map(|session| turn(4, session, 0)));
            let first = asked(&mut schedule)[0].0;
            sent[first as usize] += 1;
            schedule.note_sent(&turn(4, first, 0));
        }
        assert_eq!(sent, [3, 3, 3]);
    }
}
