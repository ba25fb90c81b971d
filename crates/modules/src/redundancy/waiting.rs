//! [`Waiting`]: packets that were sent and are to be sent again.
//!
//! Read-only views in the order in which they were sent last, which is the order in which they are
//! due.
//!
//! ```text
//!   due first                                     due last
//!   [ sent at 3 ms, 1 left ][ 5 ms, 1 left ][ 5 ms, 2 left ]     due: sent + gap
//! ```
//!
//! Invariants: at most [`TRAINS_MAX`] views and [`BYTES_MAX`] bytes wait; times never fall from
//! the front to the back.

use dacapo_base::Time;
use dacapo_packet::Packet;
use std::collections::VecDeque;

/// How many trains may wait: less than one call may emit, so that all can leave at once.
pub(crate) const TRAINS_MAX: usize = 1_024;

/// How many payload bytes may wait.
pub(crate) const BYTES_MAX: usize = 4 << 20;

/// A packet that is to be sent again.
#[derive(Debug)]
pub(crate) struct Copy {
    /// The bytes.
    pub view: Packet,
    /// When it was sent last.
    pub sent: Time,
    /// How many times it is still to be sent.
    pub left: u64,
    /// How many packets had been sent when it was sent first, its own included.
    pub number: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Waiting {
    copies: VecDeque<Copy>,
    bytes: usize,
}

impl Waiting {
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// Whether a packet of `len` payload bytes may wait too.
    pub fn has_capacity(&self, len: usize) -> bool {
        self.copies.len() < TRAINS_MAX && self.bytes.saturating_add(len) <= BYTES_MAX
    }

    /// Adds one that was sent now, at the end. Ask [`Waiting::has_capacity`] first.
    pub fn push(&mut self, copy: Copy) {
        self.bytes += copy.view.payload_len();
        self.copies.push_back(copy);
    }

    /// When the first of them was sent last.
    pub fn oldest(&self) -> Option<Time> {
        self.copies.front().map(|copy| copy.sent)
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<Copy> {
        let copy = self.copies.pop_front()?;
        self.bytes -= copy.view.payload_len();
        Some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_packet::Pool;

    #[test]
    fn trains_and_bytes_are_bounded() {
        let mut pool = Pool::new(1 << 20);
        let mut waiting = Waiting::default();
        assert!(waiting.has_capacity(BYTES_MAX) && !waiting.has_capacity(BYTES_MAX + 1));
        for at in 0..TRAINS_MAX {
            assert!(waiting.has_capacity(7), "{at}");
            let view = pool.packet_from(0, b"seven b", 0).unwrap();
            waiting.push(Copy { view, sent: Time::ZERO, left: 1, number: 1 });
        }
        assert!(!waiting.has_capacity(0));
        pool.free(waiting.pop().unwrap().view);
        assert!(waiting.has_capacity(BYTES_MAX - 7 * (TRAINS_MAX - 1)));
        assert!(!waiting.has_capacity(BYTES_MAX - 7 * (TRAINS_MAX - 1) + 1));
    }
}
