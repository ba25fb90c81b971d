//! [`Ring`]: equals that share by bytes: deficit round robin.
//!
//! ```text
//!           turn
//!   a    b   c    d        left > 0: asked in turn, a packet each, until that is used up
//!  900   0 -62k  1.5k      left <= 0: waits for the next round, which adds its share
//! ```
//!
//! A round is over when nobody with something left gives anything. A train of 64 KiB leaves a debt
//! that many rounds pay: those in debt are asked in the order in which they would come out of it,
//! and as many rounds are paid as the one that sends has needed.
//!
//! Invariants: between two of which each always has something, bytes differ from their shares by at
//! most a packet and a share of each; who has nothing keeps no claim, but owes what it owes while
//! it takes part; what nobody sends pays no debt; in one [`Ring::poll`] nobody is asked twice.

use super::asker::{Asked, Asker, Polled};

/// What a share adds in a round, in bytes: a datagram.
const QUANTUM: i64 = 1_500;

#[derive(Debug)]
struct Place {
    asked: Asked,
    /// What a round adds.
    quantum: i64,
    /// What it may still send, in bytes, or what it owes.
    left: i64,
    /// The poll in which it was asked last.
    asked_in: u64,
}

#[derive(Debug, Default)]
pub(super) struct Ring {
    /// In the order of [`Asked`].
    places: Vec<Place>,
    /// Those that others replace.
    replaced: Vec<Place>,
    /// Whose turn it is.
    turn: usize,
    /// Counts polls.
    polls: u64,
    /// Those in debt by the rounds that they need, and how far behind the turn they are.
    owing: Vec<(i64, usize)>,
}

impl Ring {
    /// Others are to be pushed.
    pub fn begin(&mut self) {
        std::mem::swap(&mut self.places, &mut self.replaced);
        self.places.clear();
    }

    /// One that takes part, in order; what it may send or owes stays as it was.
    pub fn push(&mut self, asked: Asked, share: u8) {
        let known = self.replaced.binary_search_by_key(&asked, |place| place.asked).ok();
        let left = known.and_then(|at| self.replaced.get(at)).map_or(0, |place| place.left);
        let quantum = QUANTUM * i64::from(share.max(1));
        self.places.push(Place { asked, quantum, left, asked_in: 0 });
    }

    /// All are pushed: it is still the turn of whom it was, or of who is behind.
    pub fn settle(&mut self) {
        let turn = self.replaced.get(self.turn).map(|place| place.asked);
        let turn = turn.map_or(0, |it| self.places.partition_point(|place| place.asked < it));
        self.replaced.clear();
        self.turn = if turn < self.places.len() { turn } else { 0 };
    }

    /// The next packet, of whom it is the turn of those that have any.
    pub fn poll<A: Asker>(&mut self, asker: &mut A) -> Option<(A::Packet, usize)> {
        if let [only] = self.places.as_slice() {
            return asker.poll(only.asked).given();
        }
        self.polls += 1;
        self.poll_round(asker).or_else(|| self.poll_next_round(asker))
    }

    /// Asks in turn who has something left of this round.
    fn poll_round<A: Asker>(&mut self, asker: &mut A) -> Option<(A::Packet, usize)> {
        (0..self.places.len()).find_map(|behind| {
            let at = self.place(behind);
            self.places.get(at).is_some_and(|place| place.left > 0).then(|| self.ask(asker, at))?
        })
    }

    /// Asks the others in the order in which they would come out of debt.
    fn poll_next_round<A: Asker>(&mut self, asker: &mut A) -> Option<(A::Packet, usize)> {
        let mut owing = std::mem::take(&mut self.owing);
        owing.clear();
        owing.extend((0..self.places.len()).filter_map(|behind| {
            let place = self.places.get(self.place(behind))?;
            let rounds = place.left.saturating_neg() / place.quantum + 1;
            (place.asked_in != self.polls).then_some((rounds, behind))
        }));
        owing.sort_unstable();
        let given = owing.iter().find_map(|&(rounds, behind)| {
            let given = self.ask(asker, self.place(behind))?;
            self.places.iter_mut().for_each(|place| place.pay(rounds));
            Some(given)
        });
        self.owing = owing;
        given
    }

    /// Asks one; when it sends, those behind it have the next turn.
    fn ask<A: Asker>(&mut self, asker: &mut A, at: usize) -> Option<(A::Packet, usize)> {
        let place = self.places.get_mut(at)?;
        place.asked_in = self.polls;
        match asker.poll(place.asked) {
            Polled::Given(packet, len) => {
                place.left = place.left.saturating_sub(i64::try_from(len).unwrap_or(i64::MAX));
                self.turn = if at + 1 < self.places.len() { at + 1 } else { 0 };
                return Some((packet, len));
            }
            Polled::Held => {}
            Polled::Nothing => place.left = place.left.min(0),
        }
        None
    }

    /// The place so far behind the turn, which is no further than all of them.
    fn place(&self, behind: usize) -> usize {
        let (at, count) = (self.turn + behind, self.places.len());
        if at < count { at } else { at - count }
    }
}

impl Place {
    /// Pays what it owes; what it may send then is no more than a round adds.
    fn pay(&mut self, rounds: i64) {
        if self.left <= 0 {
            self.left = (self.left + rounds * self.quantum).min(self.quantum);
        }
    }
}
