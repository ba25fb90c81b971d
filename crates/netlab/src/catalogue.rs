//! The modules and transports of a world: all that exist.

use dacapo_lift::Catalogue;
use dacapo_transport::{quic, shm, tcp, udp, xtp};

/// Every module, over every transport that carries flows between hosts.
#[must_use]
pub fn catalogue() -> Catalogue {
    let one = [&udp::SPEC, &tcp::SPEC, &shm::SPEC];
    let groups = [&udp::GROUP_SPEC, &tcp::GROUP_SPEC];
    let quic = [&quic::SPEC, &quic::SPEC_DATAGRAM];
    let xtp = [&xtp::SPEC, &xtp::SPEC_DATAGRAM];
    let bonds = [&udp::bond::SPEC, &udp::bond::BACKUP_SPEC];
    let all = [&one[..], &groups, &quic, &xtp, &bonds].concat();
    Catalogue::new(dacapo_modules::entries()).with_transports(all)
}
