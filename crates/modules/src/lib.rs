//! C-modules: one protocol mechanism each, a folder per protocol function.
//!
//! ```text
//!   compression/   lz4, zstd  units in fewer bytes
//!   segmentation/  segment    units <-> packets of the path's size
//!   timeliness/    use-by     what is too old is not handed over
//!   rate/          rate-burst bytes leave in bursts, with pauses between them
//!   flow_control/  window     no more bytes leave than the application has room for
//!                  credit     no more units
//!   ordering/      sequence   order, duplicates and loss of packets
//!   duplicates/    dedup      each packet once, as they come
//!   retransmission/ arq-nak   what is missing is asked for, while it can come in time
//!                   arq-sr    what is not acknowledged is sent again until it is
//!                   arq-gbn   the same, where the receiver keeps nothing
//!                   latest    the same of the newest unit, and of no other
//!                   nak-group receivers of a group ask, and parities help all of them
//!   redundancy/    repeat     every packet again, against losses
//!   parity/        fec-rs     a few packets more for every block, from which lost ones follow
//!                   fec-rlc    the same of those that were sent last, over and over
//!                   fec-xor    the same of rows and columns, one packet of each
//!   interleaving/  interleave  another order, in which runs of losses take no neighbours
//!   integrity/     checksum   CRC-32C over what the modules above made
//!                  xxh3       a hash of 64 bits over it
//!                  sum16      the sum of the Internet protocols over it
//! ```
//!
//! Each function's folder has the modules and, in `profile.rs`, what they do to what is predicted.
//!
//! Invariant: every module here passes `dacapo_lift::conformance::suite`, and stands in
//! `docs/modules.md`.

pub mod compression;
pub mod duplicates;
pub mod flow_control;
pub mod integrity;
pub mod interleaving;
pub mod ordering;
pub mod parity;
pub mod rate;
pub mod redundancy;
pub mod retransmission;
pub mod segmentation;
pub mod timeliness;

mod arithmetic;
mod beginning;
mod blocks;
mod control;
mod copying;
mod emitting;
mod numbering;
mod outliers;
mod price;
mod runs;
#[cfg(test)]
mod testing;
mod window;

use dacapo_lift::Entry;

/// Every module of this crate, for a catalogue.
#[must_use]
pub fn entries() -> Vec<Entry> {
    vec![
        segmentation::segment::ENTRY,
        ordering::sequence::ENTRY,
        duplicates::dedup::ENTRY,
        redundancy::repeat::ENTRY,
        parity::rs::ENTRY,
        retransmission::nak::ENTRY,
        retransmission::selective::ENTRY,
        retransmission::latest::ENTRY,
        retransmission::go_back::ENTRY,
        retransmission::group::ENTRY,
        integrity::checksum::ENTRY,
        integrity::xxh3::ENTRY,
        integrity::sum16::ENTRY,
        timeliness::use_by::ENTRY,
        parity::rlc::ENTRY,
        parity::xor::ENTRY,
        compression::lz4::ENTRY,
        compression::zstd::ENTRY,
        interleaving::interleave::ENTRY,
        rate::burst::ENTRY,
        flow_control::window::ENTRY,
        flow_control::credit::ENTRY,
    ]
}
