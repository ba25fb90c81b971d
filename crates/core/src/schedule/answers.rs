//! [`Answers`]: those that answer, one after the other.
//!
//! What answers has little to say and seldom: who sends waits for it, so it goes before what is
//! sent, and is asked without an account or an order by time.
//!
//! Invariants: while one has something it is asked after at most one packet of each other; in one
//! [`Answers::poll`] nobody is asked twice.

use super::asker::{Asked, Asker};

#[derive(Debug, Default)]
pub(super) struct Answers {
    /// In the order of [`Asked`].
    all: Vec<Asked>,
    /// Whose turn it is.
    turn: usize,
    /// Whose turn it was, while others are set.
    was: Option<Asked>,
}

impl Answers {
    /// Others are to be pushed.
    pub fn begin(&mut self) {
        self.was = self.all.get(self.turn).copied();
        self.all.clear();
    }

    /// One that takes part, in order.
    pub fn push(&mut self, asked: Asked) {
        self.all.push(asked);
    }

    /// All are pushed: it is still the turn of whom it was, or of who is behind.
    pub fn settle(&mut self) {
        let was = self.was.take();
        self.turn = was.map_or(0, |it| self.all.partition_point(|asked| *asked < it));
    }

    /// The next packet, of whom it is the turn of those that have any.
    pub fn poll<A: Asker>(&mut self, asker: &mut A) -> Option<(A::Packet, usize)> {
        let (from, count) = (self.turn.min(self.all.len()), self.all.len());
        for at in (from..count).chain(0..from) {
            let Some(asked) = self.all.get(at) else { continue };
            if let Some(given) = asker.poll(*asked).given() {
                self.turn = at + 1;
                return Some(given);
            }
        }
        None
    }
}
