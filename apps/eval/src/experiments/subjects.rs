//! What `speed` measures: modules, the part of them that computes, and what stands beside.

use crate::ends::{Lost, Part};
use crate::speed::call::{self, Call};
use std::time::Duration;

/// A module at its work.
pub struct Subject {
    /// Its row.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The module, and what its parameters are set to.
    pub module: &'static str,
    pub set: &'static [(u16, u64)],
    /// What is timed, of units of so many packets, and what gets lost.
    pub part: Part,
    pub packets: usize,
    pub lost: Lost,
    /// Whether units say something; else they are whatever lies there.
    pub is_of_text: bool,
    /// How much later parities leave.
    pub late: Duration,
    /// Whether the time is that of a packet, not of the unit.
    pub is_per_packet: bool,
    /// What stands beside.
    pub call: Call,
}

const BLOCK: Subject = Subject {
    name: "",
    what: "",
    module: "fec-rs",
    set: &[(0, 10), (1, 4)],
    part: Part::Down,
    packets: 10,
    lost: Lost::Nothing,
    is_of_text: false,
    // As long as a span of `fec-rs` and of `fec-xor`.
    late: Duration::from_millis(100),
    is_per_packet: false,
    call: Call::Nothing,
};

const PACKET: Subject =
    Subject { set: &[], part: Part::Both, packets: 1, late: Duration::ZERO, ..BLOCK };

const TRAIN: Subject = Subject { packets: call::TRAIN, is_per_packet: true, ..PACKET };

const ARQ: Subject = Subject { module: "arq-sr", is_per_packet: true, ..PACKET };

/// All of them.
pub static ALL: [Subject; 13] = [
    Subject {
        name: "fec-rs-encode",
        what: "fec-rs, 4 parities of 10 packets, beside ISA-L",
        call: Call::Isal("encode"),
        ..BLOCK
    },
    Subject {
        name: "fec-rs-decode",
        what: "fec-rs, 4 lost of 10 packets, beside ISA-L with its matrix for each block",
        part: Part::Up,
        lost: Lost::First(4),
        call: Call::Isal("decode"),
        ..BLOCK
    },
    Subject {
        name: "fec-rs-decode-tables",
        what: "the same, beside ISA-L with tables made before",
        part: Part::Up,
        lost: Lost::First(4),
        call: Call::Isal("tables"),
        ..BLOCK
    },
    Subject {
        name: "fec-xor",
        what: "fec-xor, the sum of 10 packets, beside a plain loop",
        module: "fec-xor",
        set: &[(0, 1), (1, 10)],
        call: Call::Once(call::xor),
        ..BLOCK
    },
    Subject {
        name: "crc32c",
        what: "checksum, both ends, beside crc-fast twice",
        module: "checksum",
        call: Call::AtEachEnd(call::crc32c),
        ..PACKET
    },
    Subject {
        name: "crc32c-train",
        what: "the same, a packet of a train of 45",
        module: "checksum",
        call: Call::AtEachEnd(call::crc32c_train),
        ..TRAIN
    },
    Subject {
        name: "xxh3",
        what: "xxh3, both ends, beside twox-hash twice",
        module: "xxh3",
        call: Call::AtEachEnd(call::xxh3),
        ..PACKET
    },
    Subject {
        name: "xxh3-train",
        what: "the same, a packet of a train of 45",
        module: "xxh3",
        call: Call::AtEachEnd(call::xxh3_train),
        ..TRAIN
    },
    Subject {
        name: "lz4",
        what: "lz4, both ends, readings as JSON, beside lz4_flex there and back",
        module: "lz4",
        is_of_text: true,
        call: Call::Once(call::lz4),
        ..PACKET
    },
    Subject {
        name: "zstd",
        what: "zstd, both ends, the same, beside zstd there and back",
        module: "zstd",
        is_of_text: true,
        call: Call::Once(call::zstd),
        ..PACKET
    },
    Subject {
        name: "arq-sr-train",
        what: "arq-sr, both ends, a packet of a train of 45",
        packets: call::TRAIN,
        ..ARQ
    },
    Subject { name: "arq-sr-alone", what: "arq-sr, both ends, a packet alone", ..ARQ },
    Subject { name: "arq-sr-lossy", what: "the same, 5 % lost", lost: Lost::Milli(50), ..ARQ },
];
