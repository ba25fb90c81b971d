//! [`Rota`]: which of many have to be looked at now, and which when.
//!
//! What it is: each of them is *awake* from when something touches it until nothing more can come
//! of it without a further touch or the passing of time; then it *rests*, with its deadline in an
//! ordered set. A turn looks at those that are awake, however many rest. Sessions, peers and
//! control connections are kept so.
//!
//! ```text
//!              wake, wake_due
//!   resting -------------------> awake
//!      ^   deadline in `due`,      | looked at in every turn
//!      |   or none                 |
//!      '------ rest(deadline) -----'
//! ```
//!
//! What it is not: the judgement whether one may rest, which is that of who keeps it. And no timing
//! wheel (Varghese and Lauck, 1987): deadlines are exact to the nanosecond, few that rest have one
//! or change it, and an ordered set says the first of them without rounding.
//!
//! Invariants: of one that is not awake nothing has been touched since it was put to rest; `due`
//! holds the deadline of each that rests and has one, and nothing else.

use dacapo_base::Time;
use std::collections::BTreeSet;

/// Whether one is awake, or rests and until when: kept with it, and given to each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    is_awake: bool,
    until: Option<Time>,
}

impl Rest {
    pub fn is_awake(self) -> bool {
        self.is_awake
    }
}

/// Who is awake, and when the others are due.
#[derive(Debug)]
pub(crate) struct Rota<K> {
    awake: BTreeSet<K>,
    due: BTreeSet<(Time, K)>,
}

impl<K: Copy + Ord> Default for Rota<K> {
    fn default() -> Self {
        Self { awake: BTreeSet::new(), due: BTreeSet::new() }
    }
}

impl<K: Copy + Ord> Rota<K> {
    /// Somebody new, who is awake, or somebody who was touched: true when that is news.
    pub fn wake(&mut self, key: K, rest: &mut Rest) -> bool {
        if std::mem::replace(&mut rest.is_awake, true) {
            return false;
        }
        self.awake.insert(key);
        rest.until.take().map(|at| self.due.remove(&(at, key)));
        true
    }

    /// Lets one rest that is awake, until it is touched or until a time; true when it was awake.
    pub fn rest(&mut self, key: K, rest: &mut Rest, until: Option<Time>) -> bool {
        if !std::mem::take(&mut rest.is_awake) {
            return false;
        }
        self.awake.remove(&key);
        rest.until = until;
        self.due.extend(until.map(|at| (at, key)));
        true
    }

    /// Forgets one that is gone.
    pub fn remove(&mut self, key: K, rest: Rest) {
        self.awake.remove(&key);
        rest.until.map(|at| self.due.remove(&(at, key)));
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

    /// When the first that rests is due.
    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    const COUNT: usize = 20;

    /// Checks a rota against what each of its members says of itself.
    fn check(rota: &Rota<usize>, rests: &[Rest]) {
        let awake = |(_, rest): &(usize, &Rest)| rest.is_awake;
        let all = || rests.iter().enumerate();
        assert!(rota.awake().eq(all().filter(awake).map(|(key, _)| key)));
        let due: BTreeSet<_> = all().filter_map(|(key, rest)| Some((rest.until?, key))).collect();
        assert_eq!(rota.due, due);
        assert_eq!(rota.next_due(), due.first().map(|(at, _)| *at));
        assert!(all().all(|(_, rest)| !(rest.is_awake && rest.until.is_some())));
    }

    #[test]
    fn who_is_awake_and_who_is_due_is_what_each_says_whatever_happens() {
        for seed in 0..50 {
            let mut random = Random::from_number(seed);
            let (mut rota, mut rests) = (Rota::default(), vec![Rest::default(); COUNT]);
            for _ in 0..400 {
                let key = random.below(COUNT as u64) as usize;
                let until = random.chance(0.7).then(|| Time::from_millis(random.below(1_000)));
                match random.below(3) {
                    0 => {
                        let was_awake = rests[key].is_awake;
                        assert_eq!(rota.wake(key, &mut rests[key]), !was_awake, "seed {seed}");
                    }
                    1 => {
                        let was_awake = rests[key].is_awake;
                        let rested = rota.rest(key, &mut rests[key], until);
                        assert_eq!(rested, was_awake, "seed {seed}");
                    }
                    _ => {
                        rota.remove(key, rests[key]);
                        rests[key] = Rest::default();
                    }
                }
                check(&rota, &rests);
            }
        }
    }

    #[test]
    fn those_behind_one_come_first_and_each_comes_once() {
        let (mut rota, mut rests) = (Rota::default(), [Rest::default(); 4]);
        (0..4).for_each(|key| _ = rota.wake(key, &mut rests[key]));
        assert!(rota.awake_after(Some(1)).eq([2, 3, 0, 1]));
        assert!(rota.awake_after(Some(3)).eq([0, 1, 2, 3]));
        assert!(rota.awake_after(None).eq([0, 1, 2, 3]));
    }

    #[test]
    fn the_first_that_is_due_is_told_and_nobody_before_its_time() {
        let (mut rota, mut rests) = (Rota::default(), [Rest::default(); 2]);
        (0..2).for_each(|key| _ = rota.wake(key, &mut rests[key]));
        rota.rest(0, &mut rests[0], Some(Time::from_millis(20)));
        rota.rest(1, &mut rests[1], Some(Time::from_millis(10)));
        assert_eq!(rota.first_due(Time::from_millis(9)), None);
        assert_eq!(rota.first_due(Time::from_millis(30)), Some(1));
    }
}
