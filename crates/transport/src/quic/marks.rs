//! What `quinn-proto` and sockets say to each other of a train: where it goes, and its mark.

use dacapo_base::Ecn;
use dacapo_io::Departure;
use quinn_proto::{EcnCodepoint, Transmit};

/// Where a train goes, as a socket wants it said.
pub(super) fn departure(transmit: &Transmit) -> Departure {
    let segment_len = transmit.segment_size.and_then(|len| u16::try_from(len).ok());
    let ecn = transmit.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
    Departure { to: transmit.destination, segment_len, ecn }
}

pub(super) fn from_socket(ecn: Ecn) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(ecn.bits())
}
