//! `Managed`: the queue of a link with active queue management, which decides when items leave.
//!
//! ```text
//!   push --> classic [         ] --+
//!            low     [         ] --+--> take: one that leaves | dropped, counted
//! ```
//!
//! CoDel has the classic one only. Invariant: `take` drops or gives out, so a loop over it ends.

use crate::aqm::Aqm;
use crate::carry::Carry;
use crate::codel::CoDel;
use crate::config::QueueLimit;
use crate::dualpi2::DualPi2;
use crate::fifo::{Entry, Fifo};
use crate::stats::LinkStats;
use dacapo_base::{Time, earlier};

/// What waits, and the law by which it leaves.
#[derive(Clone, Debug)]
pub(crate) struct Managed<T> {
    law: Law,
    classic: Fifo<T>,
    low: Fifo<T>,
}

#[derive(Clone, Debug)]
enum Law {
    CoDel(CoDel),
    DualPi2(DualPi2),
}

impl<T> Managed<T> {
    /// An empty queue at `now`.
    pub(crate) fn new(aqm: Aqm, now: Time) -> Self {
        let law = match aqm {
            Aqm::CoDel { target, interval } => Law::CoDel(CoDel::new(target, interval)),
            Aqm::DualPi2 { target } => Law::DualPi2(DualPi2::new(target, now)),
        };
        Self { law, classic: Fifo::default(), low: Fifo::default() }
    }

    /// Adds one that comes `now`.
    pub(crate) fn push(&mut self, now: Time, entry: Entry<T>) {
        let oldest = self.oldest();
        let fifo = match &mut self.law {
            Law::CoDel(_) => &mut self.classic,
            Law::DualPi2(dual) => {
                dual.arrive(now, oldest);
                if entry.ecn.is_l4s() { &mut self.low } else { &mut self.classic }
            }
        };
        fifo.push(entry);
    }

    /// When what has waited longest was sent; nothing when nothing waits.
    pub(crate) fn oldest(&self) -> Option<Time> {
        earlier(self.classic.oldest(), self.low.oldest())
    }

    /// Whether one of `len` bytes has room.
    pub(crate) fn has_capacity(&self, len: usize, limit: QueueLimit) -> bool {
        let packets = self.classic.len() + self.low.len();
        limit.has_capacity(packets, self.classic.bytes() + self.low.bytes(), len)
    }

    /// How many items wait.
    pub(crate) fn live(&self) -> usize {
        self.classic.live() + self.low.live()
    }

    /// Everything that waits, in the order in which it came.
    pub(crate) fn into_entries(mut self) -> Vec<Entry<T>> {
        let mut entries = Vec::with_capacity(self.classic.len() + self.low.len());
        for fifo in [&mut self.classic, &mut self.low] {
            entries.extend(std::iter::from_fn(|| fifo.pop()));
        }
        entries.sort_by_key(|entry| (entry.ticket.index, entry.ticket.copy));
        entries
    }
}

impl<T: Carry> Managed<T> {
    /// The next one that the transmitter takes at `now`, while what came at `oldest` has waited
    /// longest; nothing when all that waited was dropped.
    pub(crate) fn take(
        &mut self,
        now: Time,
        oldest: Time,
        stats: &mut LinkStats,
    ) -> Option<Entry<T>> {
        match &mut self.law {
            Law::CoDel(codel) => codel.take(now, &mut self.classic, stats),
            Law::DualPi2(dual) => dual.take(now, oldest, &mut self.classic, &mut self.low, stats),
        }
    }
}

#[cfg(test)]
#[path = "managed_tests.rs"]
mod tests;
