//! [`Schedule`]: whose turn it is to send.
//!
//! ```text
//!   priority 7   what answers      in turn
//!                with a deadline   the earliest first
//!                the others        in turn, by bytes and shares
//!   priority 6   …
//!   …
//!   share 0      the same again, when nobody above has anything
//! ```
//!
//! Invariants: nobody is asked while one of a queue above gives something, but that of every
//! [`Behind::PARTS`] bytes one goes to the queues behind, by turns, so that nobody with a share
//! waits for good; among equals see [`Answers`], [`Deadlines`] and [`Ring`]; while
//! [`Schedule::poll`] gives nothing, everybody was asked. What a flow owes or has left is forgotten
//! when its session rests.
//!
//! Sources: deficit round robin, Shreedhar and Varghese, SIGCOMM 1995; earliest deadline first, Liu
//! and Layland, JACM 1973.

mod answers;
mod asker;
mod behind;
mod deadlines;
mod rank;
mod ring;
#[cfg(test)]
mod tests;

use answers::Answers;
pub(crate) use asker::{Asked, Asker, Polled, Turn};
use behind::{Behind, bits};
use dacapo_base::Time;
use deadlines::Deadlines;
pub(crate) use rank::{Rank, priority};
use ring::Ring;

/// Priorities, twice: of those with a share, and of those without.
const LEVELS: usize = 2 * (rank::PRIORITY_MAX as usize + 1);

/// Two of each level, as bits.
const QUEUES: u32 = 2 * LEVELS as u32;

/// Those of flows with a share.
const SHARING: u32 = (1 << (QUEUES / 2)) - 1;

/// Those of one level.
#[derive(Debug, Default)]
struct Level {
    answers: Answers,
    deadlines: Deadlines,
    ring: Ring,
}

impl Level {
    fn begin(&mut self) {
        self.answers.begin();
        self.deadlines.begin();
        self.ring.begin();
    }

    fn settle(&mut self) {
        self.answers.settle();
        self.deadlines.settle();
        self.ring.settle();
    }

    /// One that takes part; in which of the two queues.
    fn push(&mut self, turn: &Turn) -> usize {
        let Turn { rank, asked } = *turn;
        match rank.deadline {
            _ if rank.answers => self.answers.push(asked),
            Some(deadline) => self.deadlines.push(asked, deadline),
            None => {
                self.ring.push(asked, rank.share);
                return 1;
            }
        }
        0
    }

    /// The next packet of the first queue.
    fn poll_first<A: Asker>(&mut self, now: Time, asker: &mut A) -> Option<(A::Packet, usize)> {
        self.answers.poll(asker).or_else(|| self.deadlines.poll(now, asker))
    }
}

/// The order in which flows are asked for packets.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    levels: [Level; LEVELS],
    /// The queues in which there is anybody, a bit each, the first lowest: of each level those that
    /// answer or have a deadline, and the others.
    used: u32,
    behind: Behind,
}

impl Schedule {
    /// These are asked from now on; they come in the order of [`Asked`].
    pub fn set(&mut self, turns: impl Iterator<Item = Turn>) {
        let before = std::mem::take(&mut self.used);
        for level in levels(before) {
            self.levels.get_mut(level).into_iter().for_each(Level::begin);
        }
        for turn in turns {
            self.push(&turn);
        }
        for level in levels(before | self.used) {
            self.levels.get_mut(level).into_iter().for_each(Level::settle);
        }
    }

    fn push(&mut self, turn: &Turn) {
        let at = turn.rank.level();
        let Some(level) = self.levels.get_mut(at) else { return };
        self.used |= 1 << (2 * at + level.push(turn));
    }

    /// The next packet, of whom it is the turn of those that have any.
    pub fn poll<A: Asker>(&mut self, now: Time, asker: &mut A) -> Option<A::Packet> {
        let is_due = self.behind.is_due();
        if is_due && let Some(packet) = self.poll_behind(now, asker) {
            return Some(packet);
        }
        for queue in bits(self.used) {
            let Some((packet, len)) = self.poll_queue(queue, now, asker) else { continue };
            if is_due {
                self.behind.forget();
            }
            if self.sharing_behind(queue) != 0 {
                self.behind.note_ahead(queue, len);
            }
            return Some(packet);
        }
        None
    }

    /// The next packet of those behind the queue that goes first.
    fn poll_behind<A: Asker>(&mut self, now: Time, asker: &mut A) -> Option<A::Packet> {
        let behind = self.sharing_behind(self.behind.first());
        for queue in self.behind.in_turn(behind) {
            if let Some((packet, len)) = self.poll_queue(queue, now, asker) {
                self.behind.note_sent(queue, len);
                return Some(packet);
            }
        }
        None
    }

    /// The queues behind this one whose flows have a share.
    fn sharing_behind(&self, queue: u32) -> u32 {
        self.used & SHARING & !(u32::MAX >> (u32::BITS - 1 - queue))
    }

    fn poll_queue<A: Asker>(
        &mut self,
        queue: u32,
        now: Time,
        asker: &mut A,
    ) -> Option<(A::Packet, usize)> {
        let level = self.levels.get_mut((queue / 2) as usize)?;
        if queue.is_multiple_of(2) { level.poll_first(now, asker) } else { level.ring.poll(asker) }
    }
}

/// The levels that have these queues.
fn levels(queues: u32) -> impl Iterator<Item = usize> {
    bits((queues | queues >> 1) & 0x5555_5555).map(|queue| (queue / 2) as usize)
}
