//! [`Ranked`]: which context is next, by priority.
//!
//! ```text
//!   sort 0, 1, 2 … 65535, then those without SORT;  equals in the order in which they came
//!   every 16th turn: whoever has waited longest in the last class
//! ```
//!
//! Smaller is more urgent: no published description says which way it goes, so it is one constant
//! function here. The sixteenth is decided here too: the last class is never starved.

use std::collections::BTreeSet;

/// The share of the last class: one turn of so many.
const SHARE: u32 = 16;
/// The rank of contexts without SORT: after all others.
const UNSORTED: u32 = 1 << 16;

/// Contexts that wait for their turn.
#[derive(Debug, Default)]
pub struct Ranked {
    order: BTreeSet<(u32, u64, u32)>,
    /// Rank and ticket of those that wait, by slot.
    places: Vec<Option<(u32, u64)>>,
    tickets: u64,
    turns: u32,
}

impl Ranked {
    /// Puts a context behind its equals, unless it is there.
    pub fn insert(&mut self, slot: u32, sort: Option<u16>) {
        let rank = rank(sort);
        let place = slot as usize;
        if self.places.len() <= place {
            self.places.resize(place.saturating_add(1), None);
        }
        if self.places.get(place).is_some_and(|at| at.is_some_and(|(known, _)| known == rank)) {
            return;
        }
        self.remove(slot);
        self.tickets = self.tickets.wrapping_add(1);
        if let Some(at) = self.places.get_mut(place) {
            *at = Some((rank, self.tickets));
        }
        self.order.insert((rank, self.tickets, slot));
    }

    /// Takes a context out.
    pub fn remove(&mut self, slot: u32) {
        if let Some((rank, ticket)) = self.places.get_mut(slot as usize).and_then(Option::take) {
            self.order.remove(&(rank, ticket, slot));
        }
    }

    /// The context whose turn it is; it is behind its equals from now on.
    pub fn turn(&mut self) -> Option<u32> {
        self.turns = self.turns.wrapping_add(1);
        let (rank, ticket, slot) = self.next()?;
        if self.order.len() > 1 {
            self.order.remove(&(rank, ticket, slot));
            self.tickets = self.tickets.wrapping_add(1);
            self.order.insert((rank, self.tickets, slot));
            if let Some(at) = self.places.get_mut(slot as usize) {
                *at = Some((rank, self.tickets));
            }
        }
        Some(slot)
    }

    /// The context whose turn it is, which is taken out.
    pub fn pop(&mut self) -> Option<u32> {
        self.turns = self.turns.wrapping_add(1);
        let (.., slot) = self.next()?;
        self.remove(slot);
        Some(slot)
    }

    fn next(&self) -> Option<(u32, u64, u32)> {
        let last = self.order.last().filter(|_| self.turns.is_multiple_of(SHARE));
        let first_of_last = last.map(|(rank, ..)| *rank);
        match first_of_last {
            Some(rank) => self.order.range((rank, 0, 0)..).next().copied(),
            None => self.order.first().copied(),
        }
    }
}

/// Smaller is more urgent.
const fn rank(sort: Option<u16>) -> u32 {
    match sort {
        Some(sort) => sort as u32,
        None => UNSORTED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Take = fn(&mut Ranked) -> Option<u32>;

    /// The two ways to take a context. One that has had its turn has nothing more to say here.
    const TAKES: [Take; 2] =
        [Ranked::pop, |ranked| ranked.turn().inspect(|&slot| ranked.remove(slot))];

    #[test]
    fn the_urgent_come_first_and_equals_in_order() {
        for take in TAKES {
            let mut ranked = Ranked::default();
            for (slot, sort) in [(0, None), (1, Some(9)), (2, Some(1)), (3, Some(9)), (4, None)] {
                ranked.insert(slot, sort);
            }
            ranked.insert(1, Some(9));
            let order: Vec<u32> = std::iter::from_fn(|| take(&mut ranked)).collect();
            assert_eq!(order, [2, 1, 3, 0, 4]);
        }
    }

    #[test]
    fn the_last_class_gets_its_share() {
        for take in [Ranked::pop, Ranked::turn] {
            let mut ranked = Ranked::default();
            let mut count = [0; 2];
            for _ in 0..1_600 {
                ranked.insert(0, Some(1));
                ranked.insert(1, None);
                count[take(&mut ranked).unwrap() as usize] += 1;
            }
            assert_eq!(count, [1_500, 100]);
        }
    }

    /// The 16th turn is the last class's, whose two take it one after the other.
    #[test]
    fn equals_take_turns_one_after_the_other() {
        let mut ranked = Ranked::default();
        (0..3).for_each(|slot| ranked.insert(slot, Some(5)));
        (3..5).for_each(|slot| ranked.insert(slot, None));
        let mut turns: Vec<u32> = (0..64).map(|_| ranked.turn().unwrap()).collect();
        let last: Vec<u32> = (0..4).rev().map(|round| turns.remove(round * 16 + 15)).collect();
        assert_eq!(last, [4, 3, 4, 3], "of the last round first");
        assert!(turns.iter().copied().eq((0..3).cycle().take(60)), "{turns:?}");
    }

    #[test]
    fn one_alone_has_every_turn_and_one_that_comes_back_is_behind_its_equals() {
        let mut ranked = Ranked::default();
        assert_eq!(ranked.turn(), None);
        ranked.insert(7, Some(5));
        assert_eq!([ranked.turn(), ranked.turn()], [Some(7); 2]);
        ranked.insert(8, Some(5));
        ranked.remove(7);
        ranked.insert(7, Some(5));
        let turns: Vec<u32> = (0..4).filter_map(|_| ranked.turn()).collect();
        assert_eq!(turns, [8, 7, 8, 7]);
    }
}
