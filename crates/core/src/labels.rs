//! [`Labels`]: the labels that this core gave out, and what they name.
//!
//! The first look-up of every datagram of a flow.
//!
//! Invariants: a label is random in its upper 28 bits; its lower 4 name the reactor; one that was
//! taken back is not given out again for two minutes at least; at most [`LABELS_MAX`] exist, and at
//! most [`LABELS_PER_PEER_MAX`] for one peer.

use crate::ids::PeerId;
use dacapo_base::{Random, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// The most labels at a time, those in quarantine included.
pub const LABELS_MAX: usize = 262_144;

/// The most labels for flows with one peer, those in quarantine included.
pub(crate) const LABELS_PER_PEER_MAX: usize = 32_768;

const QUARANTINE: Duration = Duration::from_secs(120);

/// Labels that were taken back within this time rest together, until the last may go, ...
const QUARANTINE_STEP: Duration = Duration::from_secs(8);

/// ... but not more than so many: those that still come in take three times the memory.
const OPEN_MAX: usize = 16_384;

const REACTOR_MASK: u32 = 0xF;

/// What a label names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The session; or the fan-out.
    pub session: u64,
    /// The flow's place in the session.
    pub flow: usize,
    /// The epoch.
    pub epoch: u64,
}

impl Target {
    /// The place of a flow that is sent once for several: the session is the fan-out.
    pub(crate) const FAN_OUT: usize = usize::MAX;
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    target: Target,
    owner: PeerId,
}

/// Labels that were taken back at about the same time: four bytes each, for there may be many more
/// of them than of those in use.
#[derive(Debug)]
struct Resting {
    since: Time,
    /// When the last of them has rested long enough.
    until: Time,
    labels: Quarantined,
    /// How many of them were for flows with each peer.
    owned: BTreeMap<PeerId, usize>,
}

#[derive(Debug)]
enum Quarantined {
    Open(BTreeSet<u32>),
    /// In order.
    Sealed(Box<[u32]>),
}

impl Quarantined {
    fn contains(&self, label: u32) -> bool {
        match self {
            Self::Open(labels) => labels.contains(&label),
            Self::Sealed(labels) => labels.binary_search(&label).is_ok(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Open(labels) => labels.len(),
            Self::Sealed(labels) => labels.len(),
        }
    }
}

/// The labels of a reactor.
#[derive(Debug, Default)]
pub struct Labels {
    entries: BTreeMap<u32, Entry>,
    /// The oldest first; the last one is open.
    quarantine: VecDeque<Resting>,
    quarantined: usize,
    /// How many there are for flows with each peer, those in quarantine included.
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
        let all = self.entries.len() + self.quarantined;
        if all >= LABELS_MAX || owned >= LABELS_PER_PEER_MAX {
            return None;
        }
        loop {
            // At most one in 1,024 numbers is taken, so this ends.
            let label = random.next_u32() & !REACTOR_MASK;
            if !self.entries.contains_key(&label) && !self.is_quarantined(label) {
                self.entries.insert(label, Entry { target, owner });
                self.owned.insert(owner, owned + 1);
                return Some(label);
            }
        }
    }

    /// What a label names; `None` for one that is unknown or was taken back.
    #[must_use]
    pub fn target(&self, label: u32) -> Option<Target> {
        Some(self.entries.get(&label)?.target)
    }

    /// True for a label that was taken back less than two minutes ago, or a little more.
    #[must_use]
    pub fn is_quarantined(&self, label: u32) -> bool {
        self.quarantine.iter().any(|resting| resting.labels.contains(label))
    }

    /// Takes a label back.
    pub fn retire(&mut self, now: Time, label: u32) {
        let Some(entry) = self.entries.remove(&label) else { return };
        self.open_quarantine(now);
        let Some(resting) = self.quarantine.back_mut() else { return };
        if let Quarantined::Open(labels) = &mut resting.labels {
            labels.insert(label);
        }
        resting.until = now + QUARANTINE;
        *resting.owned.entry(entry.owner).or_default() += 1;
        self.quarantined += 1;
    }

    /// Sees to it that the last of the quarantine began a short time ago and is no large one.
    fn open_quarantine(&mut self, now: Time) {
        if let Some(last) = self.quarantine.back_mut() {
            if now.since(last.since) < QUARANTINE_STEP && last.labels.len() < OPEN_MAX {
                return;
            }
            if let Quarantined::Open(labels) = &last.labels {
                last.labels = Quarantined::Sealed(labels.iter().copied().collect());
            }
        }
        let (since, until, owned) = (now, now + QUARANTINE, BTreeMap::new());
        let labels = Quarantined::Open(BTreeSet::new());
        self.quarantine.push_back(Resting { since, until, labels, owned });
    }

    fn release_old(&mut self, now: Time) {
        while let Some(resting) = self.quarantine.pop_front_if(|resting| resting.until <= now) {
            self.quarantined -= resting.labels.len();
            for (owner, count) in resting.owned {
                let Some(owned) = self.owned.get_mut(&owner) else { continue };
                *owned = owned.saturating_sub(count);
                if *owned == 0 {
                    self.owned.remove(&owner);
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
    fn each_label_rests_two_minutes_at_least_and_all_are_free_again() {
        let mut labels = Labels::default();
        let mut random = Random::from_number(5);
        let mut given = VecDeque::new();
        for second in 0..400 {
            let now = Time::from_millis(second * 1_000);
            for _ in 0..7 {
                let label = labels.allot(now, &mut random, TARGET, OWNER).unwrap();
                labels.retire(now, label);
                given.push_back((now, label));
            }
            while given.pop_front_if(|(at, _)| now.since(*at) >= QUARANTINE).is_some() {}
            assert!(given.iter().all(|(_, label)| labels.is_quarantined(*label)), "{now:?}");
        }
        assert!(labels.quarantined <= 7 * 130, "{} rest", labels.quarantined);
        labels.release_old(Time::from_millis(520_000));
        assert_eq!((labels.quarantined, labels.owned.len()), (0, 0));
        assert!(labels.entries.is_empty() && labels.quarantine.is_empty());
    }

    #[test]
    fn many_that_are_taken_back_at_once_rest_in_four_bytes_each() {
        let mut labels = Labels::default();
        let mut random = Random::from_number(9);
        let owners = [PeerId(1), PeerId(2)];
        let allot = |owner| labels.allot(Time::ZERO, &mut random, TARGET, owner).unwrap();
        let given: Vec<u32> =
            owners.into_iter().flat_map(|owner| [owner; 30_000]).map(allot).collect();
        given.iter().for_each(|label| labels.retire(Time::ZERO, *label));
        assert!(given.iter().all(|label| labels.is_quarantined(*label)));
        let is_open = |it: &&Resting| matches!(it.labels, Quarantined::Open(_));
        let open: usize = labels.quarantine.iter().filter(is_open).map(|it| it.labels.len()).sum();
        assert!(open <= OPEN_MAX, "{open} of {} came in last", labels.quarantined);
        labels.release_old(Time::from_millis(120_000));
        assert_eq!((labels.quarantined, labels.owned.len()), (0, 0));
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
