//! [`Behind`]: when those that are not first get a turn.
//!
//! ```text
//!   bytes of who is first   ================|==================|===
//!   one packet of others                    b                  c      by turns, queue by queue
//! ```
//!
//! Invariant: of the bytes of all at most one of [`Behind::PARTS`] goes this way, and one packet;
//! and not less, where they have as much.

/// So much is owed to those behind before they are asked, in bytes.
const OWED_MIN: i64 = 1_500;

#[derive(Debug, Default)]
pub(super) struct Behind {
    /// Bytes that went ahead of others, less those that they had for it.
    ahead: i64,
    /// Where those went from: who is behind that is owed.
    first: u32,
    /// The queue whose turn it is.
    next: u32,
}

impl Behind {
    /// Of so many bytes one goes to who is behind.
    pub const PARTS: i64 = 16;

    /// A packet of so many bytes of this queue went ahead of others that may have something.
    pub fn note_ahead(&mut self, queue: u32, len: usize) {
        self.first = queue;
        self.ahead = self.ahead.saturating_add(len as i64);
    }

    pub fn is_due(&self) -> bool {
        self.ahead >= (Self::PARTS - 1) * OWED_MIN
    }

    /// The queue that went ahead last.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// These queues from the one whose turn it is.
    pub fn in_turn(&self, queues: u32) -> impl Iterator<Item = u32> + use<> {
        let from = u32::MAX.checked_shl(self.next).unwrap_or(0);
        bits(queues & from).chain(bits(queues & !from))
    }

    /// One of this queue has sent so many bytes.
    pub fn note_sent(&mut self, queue: u32, len: usize) {
        self.next = queue + 1;
        self.ahead = self.ahead.saturating_sub((Self::PARTS - 1) * len as i64);
    }

    /// Nobody behind has anything that may leave: they are owed nothing.
    pub fn forget(&mut self) {
        self.ahead = 0;
    }
}

/// The numbers of the bits that are set, the lowest first.
pub(super) fn bits(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (bit < u32::BITS).then_some(bit)
    })
}
