//! [`Deadlines`]: at most one time for each of many things, the earliest first; for who drives an
//! engine and has to do with its associations at times of its own.

use dacapo_base::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Things with the times at which they are due.
#[derive(Debug)]
pub struct Deadlines<K> {
    order: BTreeSet<(Time, K)>,
    times: BTreeMap<K, Time>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self { order: BTreeSet::new(), times: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> Deadlines<K> {
    /// The thing is due then, and at no other time.
    pub fn set(&mut self, key: K, at: Time) {
        let before = self.times.insert(key, at);
        if before != Some(at) {
            before.map(|before| self.order.remove(&(before, key)));
            self.order.insert((at, key));
        }
    }

    /// The same, unless it is due already.
    pub fn set_once(&mut self, key: K, at: Time) {
        if !self.times.contains_key(&key) {
            self.set(key, at);
        }
    }

    /// The thing is not due any more; whether it was.
    pub fn remove(&mut self, key: K) -> bool {
        let at = self.times.remove(&key);
        at.is_some_and(|at| self.order.remove(&(at, key)))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Whether the thing is here.
    #[must_use]
    pub fn contains(&self, key: K) -> bool {
        self.times.contains_key(&key)
    }

    /// When the first is due; `NEVER` without any.
    #[must_use]
    pub fn first(&self) -> Time {
        self.order.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Takes the first out.
    pub fn pop(&mut self) -> Option<K> {
        let (_, key) = self.order.pop_first()?;
        self.times.remove(&key);
        Some(key)
    }

    /// Takes the first out if it is due.
    pub fn pop_due(&mut self, now: Time) -> Option<K> {
        if self.first() <= now { self.pop() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_due_once_and_the_earliest_first() {
        let at = Time::from_millis;
        let mut deadlines = Deadlines::default();
        deadlines.set('a', at(5));
        deadlines.set('b', at(3));
        deadlines.set('a', at(1));
        deadlines.set_once('b', at(0));
        assert_eq!((deadlines.len(), deadlines.first()), (2, at(1)));
        assert_eq!(deadlines.pop_due(at(0)), None);
        assert_eq!(deadlines.pop_due(at(2)), Some('a'));
        assert!(deadlines.remove('b') && !deadlines.remove('b'));
        assert_eq!((deadlines.pop(), deadlines.first()), (None, Time::NEVER));
    }

    #[test]
    fn those_whose_time_has_come_are_taken_in_order_and_once() {
        let at = Time::from_millis;
        let mut deadlines = Deadlines::default();
        for (key, time) in [(1, 30), (2, 10), (3, 20), (4, 40), (2, 25), (3, 20)] {
            deadlines.set(key, at(time));
        }
        assert!(deadlines.remove(4) && !deadlines.contains(4));
        assert_eq!(deadlines.first(), at(20));
        let taken: Vec<u32> = std::iter::from_fn(|| deadlines.pop_due(at(29))).collect();
        assert_eq!((taken, deadlines.first()), (vec![3, 2], at(30)));
        assert_eq!(deadlines.pop_due(at(30)), Some(1));
        assert!(deadlines.is_empty() && deadlines.order.is_empty());
    }
}
