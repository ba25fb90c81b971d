//! [`Alarms`]: which association has something to do next, and when.
//!
//! Invariant: one time per association; one without costs nothing, however often the time is told.

use dacapo_base::Time;
use std::collections::{BTreeSet, HashMap};

/// The times, the earliest first.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    queue: BTreeSet<(Time, usize)>,
    by_number: HashMap<usize, Time>,
}

impl Alarms {
    /// An association has something to do at this time, and not when was said before.
    pub(super) fn set(&mut self, number: usize, at: Option<Time>) {
        let before = match at {
            Some(at) => self.by_number.insert(number, at),
            None => self.by_number.remove(&number),
        };
        if let Some(before) = before {
            self.queue.remove(&(before, number));
        }
        self.queue.extend(at.map(|at| (at, number)));
    }

    /// When the next has something to do.
    pub(super) fn next(&self) -> Option<Time> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes the next that has something to do by now.
    pub(super) fn pop(&mut self, now: Time) -> Option<usize> {
        let (_, number) = *self.queue.first().filter(|(at, _)| *at <= now)?;
        self.set(number, None);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_whose_time_has_come_are_taken_in_order_and_once() {
        let at = Time::from_millis;
        let mut alarms = Alarms::default();
        for (number, time) in [(1, 30), (2, 10), (3, 20), (4, 40), (2, 25)] {
            alarms.set(number, Some(at(time)));
        }
        alarms.set(4, None);
        assert_eq!(alarms.next(), Some(at(20)));
        let taken: Vec<usize> = std::iter::from_fn(|| alarms.pop(at(29))).collect();
        assert_eq!((taken, alarms.next()), (vec![3, 2], Some(at(30))));
        assert_eq!(alarms.pop(at(30)), Some(1));
        assert_eq!((alarms.next(), alarms.by_number.len()), (None, 0));
    }
}
