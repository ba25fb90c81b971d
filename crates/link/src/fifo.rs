//! `Fifo`: items that wait until an active queue management lets them go, and what is known of
//! each.
//!
//! ```text
//!   Entry { item, ecn, Ticket { what chance said, when sent } } -> [ Fifo ] -> taken | dropped
//! ```
//!
//! Invariants: `bytes` is the sum of the lengths, `live` counts the entries that have an item. One
//! without is a corrupted item that the far end throws away: it was counted when it was sent, and
//! only takes its place here.

use crate::carry::Carry;
use crate::dice::PassageThrow;
use crate::fate::DropReason;
use crate::stats::LinkStats;
use dacapo_base::Ecn;
use dacapo_base::Time;
use std::collections::VecDeque;

/// What goes with an item from its sending to its delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) throw: PassageThrow,
    /// Its place among all sent; a copy has that of its original.
    pub(crate) index: u64,
    pub(crate) sent: Time,
    pub(crate) copy: bool,
}

/// One that waits.
#[derive(Clone, Debug)]
pub(crate) struct Entry<T> {
    pub(crate) item: Option<T>,
    pub(crate) len: usize,
    pub(crate) ecn: Ecn,
    pub(crate) ticket: Ticket,
}

impl<T> Entry<T> {
    /// Ends as a drop of the queue management.
    pub(crate) fn discard(self, stats: &mut LinkStats) {
        if self.item.is_some() {
            stats.count_drop(DropReason::Aqm);
        }
    }
}

impl<T: Carry> Entry<T> {
    /// Sets CE; false when it is not ECN-capable.
    pub(crate) fn mark(&mut self, stats: &mut LinkStats) -> bool {
        if self.ecn == Ecn::NotEct {
            return false;
        }
        if self.ecn != Ecn::Ce
            && let Some(item) = &mut self.item
        {
            item.set_ecn(Ecn::Ce);
            stats.marked += 1;
        }
        self.ecn = Ecn::Ce;
        true
    }
}

/// Entries in the order in which they came.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    entries: VecDeque<Entry<T>>,
    bytes: usize,
    live: usize,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), bytes: 0, live: 0 }
    }
}

impl<T> Fifo<T> {
    pub(crate) fn push(&mut self, entry: Entry<T>) {
        self.bytes += entry.len;
        self.live += usize::from(entry.item.is_some());
        self.entries.push_back(entry);
    }

    pub(crate) fn pop(&mut self) -> Option<Entry<T>> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.len;
        self.live -= usize::from(entry.item.is_some());
        Some(entry)
    }

    /// When its head was sent.
    pub(crate) fn oldest(&self) -> Option<Time> {
        self.entries.front().map(|entry| entry.ticket.sent)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many have an item.
    pub(crate) fn live(&self) -> usize {
        self.live
    }
}
