//! [`Key`]: which context a packet is for.
//!
//! ```text
//!    63      62 …                                        0
//!  +-----+------------------------------------------------+
//!  | RTN |  value, 63 bits                                |
//!  +-----+------------------------------------------------+
//!    1: the receiver's own key      0: the sender's
//! ```

use std::fmt;

/// A key as it stands in a header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u64);

impl Key {
    const RTN: u64 = 1 << 63;

    /// The 64 bits of a header.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The sender's own key: the receiver finds the context by the source address and it. Only the
    /// low 63 bits of `value` count.
    #[must_use]
    pub const fn own(value: u64) -> Self {
        Self(value & !Self::RTN)
    }

    /// The receiver's key, returned to it. Only the low 63 bits of `value` count.
    #[must_use]
    pub const fn returned(value: u64) -> Self {
        Self(value | Self::RTN)
    }

    /// The 64 bits of a header.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The key without the flag.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0 & !Self::RTN
    }

    /// Whether it is the receiver's own.
    #[must_use]
    pub const fn is_returned(self) -> bool {
        self.0 & Self::RTN != 0
    }

    /// What an answer to a packet with this key carries, so that its sender finds the context.
    #[must_use]
    pub const fn answer(self) -> Self {
        Self(self.0 ^ Self::RTN)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.is_returned() { "returned" } else { "own" };
        write!(f, "{side}:{:x}", self.value())
    }
}
