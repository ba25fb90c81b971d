//! What `quinn-proto` and sockets say to each other of a train: where it goes, and its mark.

use dacapo_io::Departure;
use dacapo_sys::udp::Ecn;
use quinn_proto::{EcnCodepoint, Transmit};

/// Where a train goes, as a socket wants it said.
pub(super) fn departure(transmit: &Transmit) -> Departure {
    let segment_len = transmit.segment_size.and_then(|len| u16::try_from(len).ok());
    Departure { to: transmit.destination, segment_len, ecn: transmit.ecn.map(to_socket) }
}

fn to_socket(ecn: EcnCodepoint) -> Ecn {
    match ecn {
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ce => Ecn::Ce,
    }
}

pub(super) fn from_socket(ecn: Ecn) -> EcnCodepoint {
    match ecn {
        Ecn::Ect0 => EcnCodepoint::Ect0,
        Ecn::Ect1 => EcnCodepoint::Ect1,
        Ecn::Ce => EcnCodepoint::Ce,
    }
}
