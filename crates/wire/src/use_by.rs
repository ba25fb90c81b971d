//! The header of module `use-by`: when a unit was handed over.
//!
//! ```text
//!  +-----------------------------------------------+
//!  |   sender's clock in microseconds (low 32 bits) |
//!  +-----------------------------------------------+
//! ```
//!
//! Every packet has it. 32 bits are 71 minutes: the receiver takes the time that is nearest to what
//! the sender's clock shows now, as far as it knows that.

use crate::Malformed;
use crate::bytes::Reader;
use crate::nearest::nearest;

/// Length in bytes.
pub const LEN: usize = 4;

const NANOS_PER_MICRO: u64 = 1_000;

/// The legal form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The low 32 bits of the sender's clock, in microseconds.
    pub sent_us: u32,
}

impl Header {
    /// The header of a packet that was handed over when the sender's clock showed so many
    /// nanoseconds.
    #[must_use]
    pub fn at(sent_ns: u64) -> Self {
        Self { sent_us: (sent_ns / NANOS_PER_MICRO) as u32 }
    }

    /// Reads the header at the front of a packet.
    ///
    /// # Errors
    /// [`Malformed`] when the packet is too short.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        Ok(Self { sent_us: Reader(packet).u32()? })
    }

    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        self.sent_us.to_be_bytes()
    }

    /// What the sender's clock showed, in nanoseconds, rounded down to a microsecond, where it
    /// shows `peer_now_ns` now; `None` when that would lie before 0 or beyond 64 bits.
    #[must_use]
    pub fn sent_ns(&self, peer_now_ns: u64) -> Option<u64> {
        let sent = nearest(self.sent_us, u32::BITS, peer_now_ns / NANOS_PER_MICRO)?;
        sent.checked_mul(NANOS_PER_MICRO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse() {
        let header = Header { sent_us: 77 };
        assert_eq!(Header::parse(&header.emit()), Ok(header));
        assert_eq!(Header::parse(&[0; 3]), Err(Malformed));
    }

    #[test]
    fn a_time_is_found_within_half_a_turn_of_now() {
        let turn = NANOS_PER_MICRO << 32;
        for sent in [0, 1, 999, 1_000, turn - 1, turn, 5 * turn + 17_000] {
            for later in [0, 1, 150_000_000, turn / 2 - 1_000] {
                let found = Header::at(sent).sent_ns(sent + later);
                assert_eq!(found, Some(sent / 1_000 * 1_000), "{sent} {later}");
            }
        }
        assert_eq!(Header::at(turn - 1_000).sent_ns(0), None, "before the clock began");
    }
}
