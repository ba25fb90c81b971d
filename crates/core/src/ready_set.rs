//! [`ReadySet`]: which of many have to be looked at now, and which when.
//!
//! Each of them is *awake* from when something touches it until nothing more can come of it without
//! a further touch or the passing of time; then it *idles*, with its deadline in an ordered set. A
//! turn looks at those that are awake, however many rest. Sessions, peers and control connections
//! are kept so.
//!
//! ```text
//!              wake, wake_due
//!   resting -------------------> awake
//!      ^   deadline in `due`,      | looked at in every turn
//!      |   or none                 |
//!      '------ rest(deadline) -----'
//! ```
//!
//! Invariants: of one that is not awake nothing has been touched since it was put to rest; `due`
//! holds the deadline of each that idles and has one, and nothing else.

use dacapo_base::Time;
use std::collections::BTreeSet;

/// Whether one is awake, or idles and until when: kept with it, and given to each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Idle {
    is_awake: bool,
    until: Option<Time>,
}

impl Idle {
    pub fn is_awake(self) -> bool {
        self.is_awake
    }
}

/// Who is awake, and when the others are due.
#[derive(Debug)]
pub(crate) struct ReadySet<K> {
    awake: BTreeSet<K>,
    due: BTreeSet<(Time, K)>,
    /// For tests: nobody's time is kept.
    forgets: bool,
}

impl<K: Copy + Ord> Default for ReadySet<K> {
    fn default() -> Self {
        Self { awake: BTreeSet::new(), due: BTreeSet::new(), forgets: false }
    }
}

impl<K: Copy + Ord> ReadySet<K> {
    /// Somebody new, who is awake, or somebody who was touched: true when that is news.
    #[inline]
    pub fn wake(&mut self, key: K, idle: &mut Idle) -> bool {
        if std::mem::replace(&mut idle.is_awake, true) {
            return false;
        }
        self.awake.insert(key);
        idle.until.take().map(|at| self.due.remove(&(at, key)));
        true
    }

    /// Lets one rest that is awake, until it is touched or until a time; true when it was awake.
    pub fn rest(&mut self, key: K, idle: &mut Idle, until: Option<Time>) -> bool {
        if !std::mem::take(&mut idle.is_awake) {
            return false;
        }
        let until = until.filter(|_| !self.forgets);
        self.awake.remove(&key);
        idle.until = until;
        self.due.extend(until.map(|at| (at, key)));
        true
    }

    /// For tests: from now on who rests is not woken by time.
    pub fn forget_due(&mut self) {
        self.forgets = true;
    }

    /// Forgets one that is gone.
    pub fn remove(&mut self, key: K, idle: Idle) {
        self.awake.remove(&key);
        idle.until.map(|at| self.due.remove(&(at, key)));
    }

    /// Whether anybody is awake.
    pub fn is_any_awake(&self) -> bool {
        !self.awake.is_empty()
    }

    /// Those that are awake, in order.
    pub fn awake(&self) -> impl Iterator<Item = K> {
        self.awake.iter().copied()
    }

    /// The same, those behind `key` first.
    pub fn awake_after(&self, key: Option<K>) -> impl Iterator<Item = K> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let behind = self.awake.range((key.map_or(Unbounded, Excluded), Unbounded));
        let before = key.map(|key| self.awake.range((Unbounded, Included(key))));
        behind.chain(before.into_iter().flatten()).copied()
    }

    /// The first of those whose time has come, to be woken.
    pub fn first_due(&self, now: Time) -> Option<K> {
        self.due.first().filter(|(at, _)| *at <= now).map(|(_, key)| *key)
    }

    /// When the first that idles is due.
    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    const COUNT: usize = 20;

    /// Checks a ready against what each of its members says of itself.
    fn check(ready: &ReadySet<usize>, idles: &[Idle]) {
        let awake = |(_, idle): &(usize, &Idle)| idle.is_awake;
        let all = || idles.iter().enumerate();
        assert!(ready.awake().eq(all().filter(awake).map(|(key, _)| key)));
        let due: BTreeSet<_> = all().filter_map(|(key, idle)| Some((idle.until?, key))).collect();
        assert_eq!(ready.due, due);
        assert_eq!(ready.next_due(), due.first().map(|(at, _)| *at));
        assert!(all().all(|(_, idle)| !(idle.is_awake && idle.until.is_some())));
    }

    #[test]
    fn who_is_awake_and_who_is_due_is_what_each_says_whatever_happens() {
        for seed in 0..50 {
            let mut random = Random::from_number(seed);
            let (mut ready, mut idles) = (ReadySet::default(), vec![Idle::default(); COUNT]);
            for _ in 0..400 {
                let key = random.below(COUNT as u64) as usize;
                let until = random.chance(0.7).then(|| Time::from_millis(random.below(1_000)));
                match random.below(3) {
                    0 => {
                        let was_awake = idles[key].is_awake;
                        assert_eq!(ready.wake(key, &mut idles[key]), !was_awake, "seed {seed}");
                    }
                    1 => {
                        let was_awake = idles[key].is_awake;
                        let rested = ready.rest(key, &mut idles[key], until);
                        assert_eq!(rested, was_awake, "seed {seed}");
                    }
                    _ => {
                        ready.remove(key, idles[key]);
                        idles[key] = Idle::default();
                    }
                }
                check(&ready, &idles);
            }
        }
    }

    #[test]
    fn those_behind_one_come_first_and_each_comes_once() {
        let (mut ready, mut idles) = (ReadySet::default(), [Idle::default(); 4]);
        (0..4).for_each(|key| _ = ready.wake(key, &mut idles[key]));
        assert!(ready.awake_after(Some(1)).eq([2, 3, 0, 1]));
        assert!(ready.awake_after(Some(3)).eq([0, 1, 2, 3]));
        assert!(ready.awake_after(None).eq([0, 1, 2, 3]));
    }

    #[test]
    fn the_first_that_is_due_is_told_and_nobody_before_its_time() {
        let (mut ready, mut idles) = (ReadySet::default(), [Idle::default(); 2]);
        (0..2).for_each(|key| _ = ready.wake(key, &mut idles[key]));
        ready.rest(0, &mut idles[0], Some(Time::from_millis(20)));
        ready.rest(1, &mut idles[1], Some(Time::from_millis(10)));
        assert_eq!(ready.first_due(Time::from_millis(9)), None);
        assert_eq!(ready.first_due(Time::from_millis(30)), Some(1));
    }
}
