//! [`Receivers`]: how much receivers have granted, one of them or each of several.
//!
//! ```text
//!   slow = 1   used |--------------> least        all wait for who is slow
//!   slow = 2   used |-------------------> most    who is slow loses what it has no room for
//!   slow = 3   as 1, and after some time as 2: who holds the others up is waited for no longer
//! ```
//!
//! In a group nobody says who listens: who grants is heard of from then on, and who answers none of
//! [`GONE_ASKS`] questions listens no longer.
//!
//! Invariants: what one has granted only grows; at most [`RECEIVERS_MAX`] are waited for.

use std::collections::BTreeMap;

/// Who does not answer so many questions in a row, which take 3.75 s, is gone.
pub(super) const GONE_ASKS: u32 = 4;

/// Who has held the others up through so many questions in a row, which take 1.75 s, may be waited
/// for no longer.
pub(super) const CUT_ASKS: u32 = 3;

/// So many receivers are waited for; further ones lose what they have no room for.
pub(super) const RECEIVERS_MAX: usize = 4_096;

/// What becomes of a receiver of a group who is slower than others: by its parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slow {
    /// All wait for it.
    Waits,
    /// It loses what it has no room for.
    Loses,
    /// All wait for it for a while.
    IsCut,
}

impl Slow {
    /// Of a value of the parameter.
    pub fn of(value: u64) -> Self {
        match value {
            2 => Self::Loses,
            3 => Self::IsCut,
            _ => Self::Waits,
        }
    }
}

/// One of several receivers.
#[derive(Debug)]
struct Granted {
    limit: u64,
    /// How often it was asked since it said anything, and since it granted more.
    unheard: u32,
    holds: u32,
}

#[derive(Debug)]
pub(super) struct Receivers {
    slow: Slow,
    /// Where there is one receiver, or none of several has said anything.
    only: u64,
    /// Of several, by what they are told apart by.
    several: BTreeMap<u32, Granted>,
    /// Whose is what comes; none where there is one.
    from: Option<u32>,
    /// How far there is room, for all that counts.
    all: u64,
}

impl Receivers {
    /// Everybody begins with so much room.
    pub fn new(slow: Slow, room: u64) -> Self {
        Self { slow, only: room, several: BTreeMap::new(), from: None, all: room }
    }

    /// How far there is room.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// What comes from now on is of this receiver, of several.
    pub fn turn_to(&mut self, receiver: u32) {
        self.from = Some(receiver);
    }

    /// Whether there are several receivers, as far as is known.
    pub fn is_of_several(&self) -> bool {
        self.from.is_some()
    }

    /// What the receiver whose turn it is has granted; none where it has said nothing yet.
    pub fn granted(&self) -> Option<u64> {
        match self.from {
            None => Some(self.only),
            Some(from) => self.several.get(&from).map(|it| it.limit),
        }
    }

    /// It grants so much, which is no less than it had.
    pub fn grant(&mut self, limit: u64) {
        match self.from {
            None => self.only = limit,
            Some(from) if self.several.contains_key(&from) || self.has_place() => {
                let it =
                    self.several.entry(from).or_insert(Granted { limit, unheard: 0, holds: 0 });
                let holds = if limit > it.limit { 0 } else { it.holds };
                *it = Granted { limit, unheard: 0, holds };
            }
            Some(_) => {}
        }
        self.reckon();
    }

    fn has_place(&self) -> bool {
        self.several.len() < RECEIVERS_MAX
    }

    /// All who have granted no more than was `used` are asked; with `room` for who listens, where
    /// nobody has answered.
    pub fn ask(&mut self, used: u64, asked: u32, room: u64) {
        for it in self.several.values_mut().filter(|it| it.limit <= used) {
            (it.unheard, it.holds) = (it.unheard.saturating_add(1), it.holds.saturating_add(1));
        }
        self.several.retain(|_, it| it.unheard <= GONE_ASKS);
        if self.is_of_several() && self.several.is_empty() && asked >= GONE_ASKS {
            self.only = used.saturating_add(room);
        }
        self.reckon();
    }

    fn reckon(&mut self) {
        let most = self.several.values().map(|it| it.limit).max();
        let is_waited_for = |it: &&Granted| self.slow == Slow::Waits || it.holds < CUT_ASKS;
        let least = self.several.values().filter(is_waited_for).map(|it| it.limit).min();
        let all = if self.slow == Slow::Loses { most } else { least.or(most) };
        self.all = all.unwrap_or(self.only);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receivers(slow: Slow) -> Receivers {
        let mut it = Receivers::new(slow, 8);
        for (receiver, limit) in [(1, 20), (2, 12)] {
            it.turn_to(receiver);
            it.grant(limit);
        }
        it
    }

    #[test]
    fn all_wait_for_who_is_slow_or_it_loses() {
        assert_eq!((receivers(Slow::Waits).all(), receivers(Slow::Loses).all()), (12, 20));
        let mut it = receivers(Slow::Waits);
        assert_eq!(it.granted(), Some(12));
        it.grant(30);
        assert_eq!(it.all(), 20);
        let mut one = Receivers::new(Slow::Waits, 8);
        one.grant(11);
        assert!(!one.is_of_several());
        assert_eq!((one.all(), one.granted()), (11, Some(11)));
    }

    #[test]
    fn who_holds_others_up_for_long_is_waited_for_no_longer_until_it_has_room() {
        let mut it = receivers(Slow::IsCut);
        for asked in 1..=CUT_ASKS {
            assert_eq!(it.all(), 12);
            it.ask(12, asked, 8);
            // It answers, and has no more room.
            it.grant(12);
        }
        it.ask(12, 4, 8);
        assert_eq!(it.all(), 20);
        it.turn_to(2);
        it.grant(19);
        assert_eq!(it.all(), 19, "again");
    }

    #[test]
    fn who_does_not_answer_is_gone_and_where_nobody_does_nobody_is_waited_for() {
        let mut it = receivers(Slow::Waits);
        (1..=GONE_ASKS).for_each(|asked| it.ask(12, asked, 8));
        assert_eq!(it.all(), 12);
        it.ask(12, GONE_ASKS + 1, 8);
        assert_eq!(it.all(), 20, "the other has not been asked");
        (1..=GONE_ASKS + 1).for_each(|asked| it.ask(20, asked, 8));
        assert_eq!(it.all(), 28);
    }

    #[test]
    fn receivers_without_number_are_not_waited_for() {
        let mut it = Receivers::new(Slow::Waits, 8);
        for receiver in 0..2 * RECEIVERS_MAX as u32 {
            it.turn_to(receiver);
            it.grant(9 + u64::from(receiver));
        }
        assert_eq!((it.several.len(), it.all()), (RECEIVERS_MAX, 9));
        assert_eq!(it.granted(), None);
    }
}
