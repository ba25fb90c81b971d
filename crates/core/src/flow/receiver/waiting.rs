//! [`Waiting`]: units that have come up and for which the sink has no room, where a module of the
//! graph sends again what is lost, or sends nothing that has no room.
//!
//! ```text
//!   graph --> 7 8 9 --> sink, when it has room
//!   packets --x         passed over before the graph where enough wait, as if lost
//! ```
//!
//! Invariant: in the order in which they came up.

use crate::flow::epoch::Arrived;
use dacapo_lift::Unread;
use dacapo_packet::Pool;
use std::collections::VecDeque;

/// How many units, and bytes of them, wait before packets are passed over.
pub(super) const UNITS_MAX: usize = 1_024;
const BYTES_MAX: usize = 4 << 20;

#[derive(Default)]
pub(super) struct Waiting {
    units: VecDeque<Arrived>,
    bytes: usize,
    /// All of them are to be passed on, whatever room there is.
    is_over: bool,
}

impl Waiting {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// What waits.
    #[inline]
    pub fn unread(&self) -> Unread {
        Unread { units: self.units.len() as u64, bytes: self.bytes as u64 }
    }

    /// As many wait as should.
    #[inline]
    pub fn is_enough(&self) -> bool {
        self.units.len() >= UNITS_MAX || self.bytes >= BYTES_MAX
    }

    /// Whether what comes up must wait: for what waits already, or for room, if its epoch does.
    #[inline]
    pub fn must_wait(&self, for_room: bool, has_room: impl FnOnce() -> bool) -> bool {
        !self.is_over && (!self.units.is_empty() || (for_room && !has_room()))
    }

    pub fn push(&mut self, arrived: Arrived) {
        self.bytes += arrived.chain.unit_len();
        self.units.push_back(arrived);
    }

    /// The next that is to be passed on, where there is room.
    pub fn pop(&mut self, has_room: impl FnOnce() -> bool) -> Option<Arrived> {
        if self.units.is_empty() || !has_room() {
            return None;
        }
        let arrived = self.units.pop_front()?;
        self.bytes -= arrived.chain.unit_len();
        Some(arrived)
    }

    /// From now on nothing waits for room.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Gives every view back.
    pub fn flush(&mut self, pool: &mut Pool) {
        for mut arrived in self.units.drain(..) {
            arrived.chain.free(pool);
        }
        self.bytes = 0;
    }
}
