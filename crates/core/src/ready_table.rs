//! [`ReadyTable`]: many of a kind by their keys, and which of them have to be looked at.
//!
//! ```text
//!   with(key, |item| ..) ---> awake ---> a turn looks at it ---> file(due) ---> rests until then
//!   adjust(key, |item| ..)    changes nothing that it would have to be looked at for
//! ```
//!
//! Whoever gets at one to change it leaves it awake; before the owner of the table waits, it asks
//! each that is awake when it is due and files it so. So nobody can forget to wake one, and asking
//! costs nothing while data comes packet by packet.
//!
//! Invariant: one that is not awake has been filed since it was changed last.

use crate::ready_set::{Idle, ReadySet};
use dacapo_base::Time;
use std::collections::BTreeMap;

/// When one is due that nothing happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// It is to be looked at in each turn, and again at that time if there is one.
    Now(Option<Time>),
    /// At this time.
    At(Time),
    /// Not before something comes.
    Input,
}

impl Due {
    /// What rests until a time, if there is one.
    pub fn resting(until: Option<Time>) -> Self {
        until.map_or(Self::Input, Self::At)
    }
}

struct Slot<T> {
    item: T,
    idle: Idle,
    is_touched: bool,
}

/// Many of a kind, and who of them is awake.
pub(crate) struct ReadyTable<K, T> {
    all: BTreeMap<K, Slot<T>>,
    ready: ReadySet<K>,
    is_changed: bool,
    /// Kept for [`ReadyTable::file`], which is called in each turn.
    awake: Vec<K>,
}

impl<K: Copy + Ord, T> Default for ReadyTable<K, T> {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            ready: ReadySet::default(),
            is_changed: false,
            awake: Vec::new(),
        }
    }
}

impl<K: Copy + Ord, T> ReadyTable<K, T> {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn get(&self, key: K) -> Option<&T> {
        self.all.get(&key).map(|slot| &slot.item)
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.all.iter().map(|(key, slot)| (*key, &slot.item))
    }

    /// Somebody new, who is awake.
    pub fn insert(&mut self, key: K, item: T) {
        let mut slot = Slot { item, idle: Idle::default(), is_touched: true };
        self.ready.wake(key, &mut slot.idle);
        self.is_changed = true;
        self.all.insert(key, slot);
    }

    pub fn remove(&mut self, key: K) -> Option<T> {
        let slot = self.all.remove(&key)?;
        self.ready.remove(key, slot.idle);
        self.is_changed = true;
        Some(slot.item)
    }

    /// Runs `body` over one, who is awake from now on.
    pub fn with<R>(&mut self, key: K, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        let slot = self.all.get_mut(&key)?;
        slot.is_touched = true;
        self.is_changed |= self.ready.wake(key, &mut slot.idle);
        Some(body(&mut slot.item))
    }

    /// Runs `body` over one for whom it changes nothing that is waited for.
    #[inline]
    pub fn adjust<R>(&mut self, key: K, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.all.get_mut(&key).map(|slot| body(&mut slot.item))
    }

    /// The same for one who is awake, and was touched by it when `body` says so.
    #[inline]
    pub fn ask<R>(&mut self, key: K, body: impl FnOnce(&mut T, &mut bool) -> R) -> Option<R> {
        let slot = self.all.get_mut(&key)?;
        Some(body(&mut slot.item, &mut slot.is_touched))
    }

    pub fn wake(&mut self, key: K) {
        self.with(key, |_| ());
    }

    /// For tests: from now on who rests is not woken by time.
    pub fn forget_due(&mut self) {
        self.ready.forget_due();
    }

    /// Wakes all, for tests.
    pub fn wake_all(&mut self) {
        let all: Vec<K> = self.all.keys().copied().collect();
        all.into_iter().for_each(|key| self.wake(key));
    }

    /// Those that are awake, in order.
    pub fn awake(&self) -> impl Iterator<Item = K> {
        self.ready.awake()
    }

    pub fn is_any_awake(&self) -> bool {
        self.ready.is_any_awake()
    }

    pub fn is_awake(&self, key: K) -> bool {
        self.all.get(&key).is_some_and(|slot| slot.idle.is_awake())
    }

    /// The first whose time comes by then; it rests still.
    pub fn first_due(&self, by: Time) -> Option<K> {
        self.ready.first_due(by)
    }

    /// Wakes those whose time has come; whether there was any.
    pub fn wake_due(&mut self, now: Time) -> bool {
        let mut is_any = false;
        while let Some(key) = self.ready.first_due(now) {
            self.wake(key);
            is_any = true;
        }
        is_any
    }

    /// Files those that are awake by when they are due; when the first of all is. `keep` leaves
    /// those awake that were touched since this was asked last.
    pub fn file(&mut self, keep: bool, mut due: impl FnMut(K, &T) -> Due) -> Option<Time> {
        let mut next = None;
        if !self.ready.is_any_awake() {
            return self.ready.next_due();
        }
        self.awake.clear();
        self.awake.extend(self.ready.awake());
        for &key in &self.awake {
            let Some(slot) = self.all.get_mut(&key) else { continue };
            let (rests, until) = match due(key, &slot.item) {
                Due::Now(until) => (false, until),
                Due::At(until) => (true, Some(until)),
                Due::Input => (true, None),
            };
            let stays = keep && std::mem::take(&mut slot.is_touched);
            if rests && !stays {
                self.is_changed |= self.ready.rest(key, &mut slot.idle, until);
            } else {
                next = dacapo_base::earlier(next, until);
            }
        }
        dacapo_base::earlier(next, self.ready.next_due())
    }

    /// Runs `body`, which looks at one: whether that was touched before stays.
    pub fn take_touched(&mut self, key: K) -> bool {
        self.all.get_mut(&key).is_some_and(|slot| std::mem::take(&mut slot.is_touched))
    }

    pub fn set_touched(&mut self, key: K, is_touched: bool) {
        if let Some(slot) = self.all.get_mut(&key) {
            slot.is_touched = is_touched;
        }
    }

    /// Whether another than before is awake since this was taken.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    pub fn set_changed(&mut self) {
        self.is_changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ReadyTable<u8, u32> {
        let mut table = ReadyTable::default();
        (0..3).for_each(|key| table.insert(key, 0));
        table
    }

    #[test]
    fn who_is_changed_is_awake_until_it_is_filed() {
        let mut table = table();
        let at = Time::from_millis(5);
        let due = |key: u8, _: &u32| if key == 0 { Due::At(at) } else { Due::Input };
        assert_eq!(table.file(false, due), Some(at));
        assert_eq!(table.awake().count(), 0);
        table.with(2, |it| *it = 7);
        table.adjust(1, |it| *it = 8);
        assert!(table.awake().eq([2]), "the other was only adjusted");
        assert_eq!((table.get(2), table.get(1)), (Some(&7), Some(&8)));
    }

    #[test]
    fn who_says_now_is_looked_at_again_and_its_time_counts() {
        let mut table = table();
        let at = Time::from_millis(9);
        assert_eq!(table.file(false, |_, _| Due::Now(Some(at))), Some(at));
        assert_eq!(table.awake().count(), 3);
        assert_eq!(table.file(false, |_, _| Due::Input), None);
        assert_eq!(table.awake().count(), 0);
    }

    #[test]
    fn who_was_touched_stays_awake_once_for_who_does_not_sleep() {
        let mut table = table();
        assert_eq!(table.file(true, |_, _| Due::Input), None);
        assert_eq!(table.awake().count(), 3, "they are new");
        table.file(true, |_, _| Due::Input);
        assert_eq!(table.awake().count(), 0);
        table.with(1, |_| ());
        table.file(true, |_, _| Due::Input);
        assert!(table.awake().eq([1]));
    }

    #[test]
    fn whose_time_has_come_is_woken_and_nobody_before() {
        let mut table = table();
        let at = |key: u8| Time::from_millis(u64::from(key) * 10);
        table.file(false, |key, _| Due::At(at(key)));
        assert!(table.wake_due(at(1)));
        assert!(table.awake().eq([0, 1]));
        assert!(!table.wake_due(at(1)));
        assert_eq!(table.first_due(at(2)), Some(2));
        assert!(!table.is_awake(2));
        table.remove(2);
        assert_eq!(table.first_due(at(9)), None);
    }

    #[test]
    fn it_says_once_that_another_is_awake() {
        let mut table = table();
        assert!(table.take_changed() && !table.take_changed());
        table.with(0, |_| ());
        assert!(!table.is_changed(), "it was awake");
        table.file(false, |_, _| Due::Input);
        assert!(table.take_changed());
        table.wake(0);
        assert!(table.take_changed());
        table.remove(0);
        assert!(table.take_changed());
    }
}
