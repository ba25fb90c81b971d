//! [`Counted`]: what is counted, bytes or units.

use dacapo_lift::Unread;
use dacapo_packet::Packet;
use dacapo_wire::flow_control::{Header, Kind};

/// What a limit is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// Bytes of packets, as they are handed down to the module.
    Bytes,
    /// Units; a packet of one begun counts as the unit does.
    Units,
}

impl Counted {
    /// How much further the place of a segment of a packet is than that of the one before it.
    pub fn step(self, packet: &Packet) -> u64 {
        match self {
            Self::Bytes => packet.segment_len(0) as u64,
            Self::Units => 0,
        }
    }

    /// How much a packet uses up that is handed down.
    pub fn used(self, packet: &Packet) -> u64 {
        match self {
            Self::Bytes => packet.payload_len() as u64,
            Self::Units => u64::from(packet.is_unit_last()),
        }
    }

    /// How much a segment that came, with so many bytes, is of.
    pub fn came(self, len: usize) -> u64 {
        match self {
            Self::Bytes => len as u64,
            Self::Units => 1,
        }
    }

    /// Whether a packet that came is of the same kind as the one before it, which had so many
    /// bytes, and is where what follows that is.
    pub fn follows(self, last: &Header, next: &Header, len: usize) -> bool {
        let step = next.place.wrapping_sub(last.place);
        let is_next = match (self, last.kind) {
            (Self::Bytes, Kind::Counted) => step as usize == len,
            (Self::Units, Kind::Counted) => step <= 1,
            _ => step == 0,
        };
        last.kind == next.kind && is_next
    }

    /// How much waits for the application.
    pub fn unread(self, unread: Unread) -> u64 {
        match self {
            Self::Bytes => unread.bytes,
            Self::Units => unread.units,
        }
    }

    /// How many packets, of at most so many bytes, may be handed down for what is left.
    pub fn packets(self, left: u64, len_max: u64) -> u64 {
        match self {
            Self::Bytes if left > 0 => (left / len_max.max(1)).max(1),
            _ => left,
        }
    }
}
