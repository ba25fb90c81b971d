//! [`Queue`]: what lies between an application and the source or sink of a flow.
//!
//! Invariants: `bytes` and `spare_bytes` are the sums of what is there; once nothing more will be
//! put in that stays so; of the memory of units that are gone at most [`SPARE_MAX`] is kept.

use super::unit::RawUnit;
use super::{BYTES_MAX, UNREAD_MAX};
use crate::access::messages::{Outbox, Unit};
use dacapo_core::Ending;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most bytes of units that are gone whose memory is kept for units that come.
const SPARE_MAX: usize = BYTES_MAX;

/// Units that wait, who may put some in, and whether that is over.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub units: VecDeque<RawUnit>,
    bytes: usize,
    /// The memory of units that are gone, and how much it is.
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    /// Who may still put something in; a queue begins with one.
    pub senders: usize,
    /// Who will be able to, once it is taken in.
    pub waiting: usize,
    /// One of those who could has said that the flow is to end.
    pub is_ending: bool,
    /// There has been more than one.
    pub is_shared: bool,
    /// Nothing more will be put in.
    pub is_finished: bool,
    /// Nothing more will be taken out.
    pub is_closed: bool,
    /// Who feeds or reads it wakes the core.
    pub is_woken: bool,
    /// What waits longest makes room for what comes.
    pub keeps_newest: bool,
    /// How the flow ended, for who receives.
    pub ending: Option<Ending>,
    /// Messages, which go after the units; there are either of them.
    pub outbox: Option<Box<Outbox>>,
    /// A unit was put in, or has gone past it.
    pub has_carried_units: bool,
}

impl Queue {
    /// An empty one, which one sender feeds.
    pub fn of_a_sender() -> Self {
        Self { senders: 1, ..Self::default() }
    }

    pub fn has_capacity(&self, len: usize, units_max: usize) -> bool {
        let bytes = self.bytes.saturating_add(len);
        self.units.is_empty() || (self.units.len() < units_max && bytes <= BYTES_MAX)
    }

    pub fn push(&mut self, unit: RawUnit) {
        self.has_carried_units = true;
        self.bytes += unit.len();
        self.units.push_back(unit);
    }

    /// Makes room for a unit of `len` bytes, if that is what those that wait are to do; how many
    /// were dropped.
    pub fn replace_by(&mut self, len: usize, units_max: usize) -> u64 {
        let mut count = 0;
        while self.keeps_newest
            && !self.is_woken
            && !self.is_closed
            && !self.has_capacity(len, units_max)
            && let Some(unit) = self.pop()
        {
            self.take_back(unit);
            count += 1;
        }
        count
    }

    pub fn pop(&mut self) -> Option<RawUnit> {
        let unit = self.units.pop_front()?;
        self.bytes -= unit.len();
        Some(unit)
    }

    /// What goes next.
    pub fn next_unit(&self) -> Option<Unit<'_>> {
        let of_a_message = || self.outbox.as_ref()?.next_unit();
        let bytes = self.units.front().and_then(RawUnit::only_piece);
        bytes.map(|bytes| Unit { head: None, bytes }).or_else(of_a_message)
    }

    /// What was next has gone.
    pub fn advance(&mut self) {
        if let Some(sent) = self.pop() {
            self.take_back(sent);
        } else if let Some(outbox) = &mut self.outbox {
            outbox.advance();
        }
    }

    /// Units that wait, those of messages included.
    pub fn waiting(&self) -> u64 {
        self.units.len() as u64 + self.outbox.as_ref().map_or(0, |outbox| outbox.units())
    }

    /// Nothing more will be taken out: messages that wait come to nothing.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.fail_messages();
    }

    /// Messages that wait come to nothing.
    pub fn fail_messages(&mut self) {
        if let Some(outbox) = &mut self.outbox {
            outbox.fail();
        }
    }

    /// Memory for a unit; empty.
    pub fn spare(&mut self) -> Vec<u8> {
        let unit = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= unit.capacity();
        unit
    }

    /// Nothing more will be put in when nobody is left who could, unless others may still come and
    /// nobody has said that it is to end.
    pub fn check_finished(&mut self) {
        self.is_finished |= self.senders == 0 && (self.waiting == 0 || self.is_ending);
    }

    /// A unit is gone, whose memory is kept where it can be.
    pub fn take_back(&mut self, unit: RawUnit) {
        if let RawUnit::Bytes(bytes) = unit {
            self.give_back(bytes);
        }
    }

    /// Keeps the memory of a unit that is gone.
    pub fn give_back(&mut self, mut unit: Vec<u8>) {
        let bytes = self.spare_bytes.saturating_add(unit.capacity());
        if bytes <= SPARE_MAX && self.spare.len() < UNREAD_MAX {
            unit.clear();
            self.spare.push(unit);
            self.spare_bytes = bytes;
        }
    }
}

/// A queue, locked. A thread that panicked with it has left nothing half done.
pub(super) fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::UNITS_MAX;
    use super::*;

    #[test]
    fn memory_of_units_that_are_gone_is_used_again_and_bounded() {
        let mut queue = Queue::default();
        queue.give_back(vec![7; 1_000]);
        let unit = queue.spare();
        assert!(unit.is_empty() && unit.capacity() >= 1_000);
        assert_eq!((queue.spare().capacity(), queue.spare_bytes), (0, 0));
        for _ in 0..2 * UNITS_MAX {
            queue.give_back(vec![0; 10_000]);
        }
        assert!(queue.spare_bytes <= SPARE_MAX && queue.spare.len() > 50);
        let kept = queue.spare_bytes;
        queue.give_back(vec![0; SPARE_MAX]);
        assert_eq!(queue.spare_bytes, kept, "too much is not kept");
        (0..2 * UNREAD_MAX).for_each(|_| queue.give_back(Vec::new()));
        assert!(queue.spare.len() <= UNREAD_MAX);
    }
}
