//! [`Labels`]: the labels that this core gave out, and what they name.
//!
//! What it is: the first look-up of every datagram of a flow. What it is not: authentication; a
//! label is random, but it goes in clear.
//!
//! Invariants: a label is random in its upper 28 bits; its lower 4 name the reactor; one that was
//! taken back is not given out again for two minutes; at most [`LABELS_MAX`] exist, and at most
//! [`LABELS_PER_PEER_MAX`] for one peer.

use crate::peer::PeerId;
use dacapo_base::{Random, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The most labels at a time, those in quarantine included.
pub const LABELS_MAX: usize = 262_144;

/// The most labels for flows with one peer, those in quarantine included.
pub(crate) const LABELS_PER_PEER_MAX: usize = 32_768;

const QUARANTINE: Duration = Duration::from_secs(120);
const REACTOR_MASK: u32 = 0xF;

/// What a label names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The session.
    pub session: u64,
    /// The flow's place in the session.
    pub flow: usize,
    /// The epoch.
    pub epoch: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// What it names; nothing in quarantine.
    target: Option<Target>,
    owner: PeerId,
}

/// The labels of a reactor.
#[derive(Debug, Default)]
pub struct Labels {
    entries: BTreeMap<u32, Entry>,
    quarantine: VecDeque<(Time, u32)>,
    /// How many there are for flows with each peer.
    owned: BTreeMap<PeerId, usize>,
}

impl Labels {
    /// Gives out a label for a flow with this peer; `None` when there are too many.
    pub fn allot(
        &mut self,
        now: Time,
        random: &mut Random,
        target: Target,
        owner: PeerId,
    ) -> Option<u32> {
        self.release_old(now);
        let owned = self.owned.get(&owner).copied().unwrap_or(0);
        if self.entries.len() >= LABELS_MAX || owned >= LABELS_PER_PEER_MAX {
            return None;
        }
        loop {
            // At most one in 1,024 numbers is taken, so this ends.
            let label = random.next_u32() & !REACTOR_MASK;
            if let std::collections::btree_map::Entry::Vacant(entry) = self.entries.entry(label) {
                entry.insert(Entry { target: Some(target), owner });
                self.owned.insert(owner, owned + 1);
                return Some(label);
            }
        }
    }

    /// What a label names; `None` for one that is unknown or was taken back.
    #[must_use]
    pub fn target(&self, label: u32) -> Option<Target> {
        self.entries.get(&label)?.target
    }

    /// True for a label that was taken back less than two minutes ago.
    #[must_use]
    pub fn is_quarantined(&self, label: u32) -> bool {
        self.entries.get(&label).is_some_and(|entry| entry.target.is_none())
    }

    /// Takes a label back.
    pub fn retire(&mut self, now: Time, label: u32) {
        if let Some(entry) = self.entries.get_mut(&label)
            && entry.target.take().is_some()
        {
            self.quarantine.push_back((now + QUARANTINE, label));
        }
    }

    fn release_old(&mut self, now: Time) {
        while let Some((_, label)) = self.quarantine.pop_front_if(|(at, _)| *at <= now) {
            let Some(entry) = self.entries.remove(&label) else { continue };
            if let Some(owned) = self.owned.get_mut(&entry.owner) {
                *owned = owned.saturating_sub(1);
                if *owned == 0 {
                    self.owned.remove(&entry.owner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: PeerId = PeerId(7);
    const TARGET: Target = Target { session: 1, flow: 2, epoch: 3 };

    #[test]
    fn a_label_taken_back_is_not_given_out_for_two_minutes() {
        let mut labels = Labels::default();
        let mut random = Random::from_number(1);
        let label = labels.allot(Time::ZERO, &mut random, TARGET, OWNER).unwrap();
        assert_eq!(labels.target(label), Some(TARGET));
        labels.retire(Time::ZERO, label);
        assert_eq!(labels.target(label), None);
        // The same draw again meets the quarantine and takes the next number.
        let again = |labels: &mut Labels, at| {
            labels.allot(at, &mut Random::from_number(1), TARGET, OWNER).unwrap()
        };
        assert_ne!(again(&mut labels, Time::from_millis(119_999)), label);
        let mut labels = Labels::default();
        labels.allot(Time::ZERO, &mut Random::from_number(1), TARGET, OWNER).unwrap();
        labels.retire(Time::ZERO, label);
        assert_eq!(again(&mut labels, Time::from_millis(120_000)), label);
    }

    #[test]
    fn a_label_taken_back_twice_is_in_quarantine_once() {
        let mut labels = Labels::default();
        let allot = |labels: &mut Labels, at| {
            labels.allot(at, &mut Random::from_number(1), TARGET, OWNER).unwrap()
        };
        let label = allot(&mut labels, Time::ZERO);
        labels.retire(Time::ZERO, label);
        labels.retire(Time::from_millis(60_000), label);
        assert_eq!(allot(&mut labels, Time::from_millis(120_000)), label);
        labels.release_old(Time::from_millis(180_000));
        assert_eq!(labels.target(label), Some(TARGET), "the second time takes nothing away");
    }

    #[test]
    fn labels_are_bounded() {
        let mut labels = Labels::default();
        let mut random = Random::from_number(1);
        let owners = LABELS_MAX / LABELS_PER_PEER_MAX;
        for owner in (0..owners).map(|number| PeerId(number as u64)) {
            let mut one = || labels.allot(Time::ZERO, &mut random, TARGET, owner);
            assert!((0..LABELS_PER_PEER_MAX).all(|_| one().is_some()), "{owner:?}");
            assert_eq!(one(), None, "{owner:?} has enough");
        }
        assert_eq!(labels.allot(Time::ZERO, &mut random, TARGET, PeerId(99)), None, "all are out");
    }

    #[test]
    fn a_peer_gets_labels_again_when_those_it_had_are_out_of_quarantine() {
        let mut labels = Labels::default();
        let mut random = Random::from_number(1);
        let mut given = Vec::new();
        while let Some(label) = labels.allot(Time::ZERO, &mut random, TARGET, OWNER) {
            given.push(label);
        }
        given.iter().for_each(|label| labels.retire(Time::ZERO, *label));
        let at = |ms| Time::from_millis(ms);
        assert_eq!(labels.allot(at(119_999), &mut random, TARGET, OWNER), None);
        assert!(labels.allot(at(120_000), &mut random, TARGET, OWNER).is_some());
    }
}
