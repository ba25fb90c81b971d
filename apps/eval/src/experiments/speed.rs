//! `speed`: the arithmetic of modules beside the calls that it could be made of.

use super::own::{self, By, Of, Own};
use crate::peers::words;

/// The experiments: what stands beside a call, and what has a bound in time.
pub static SPEED: [Own; 2] = [
    Own {
        id: "speed",
        what: "the arithmetic of modules at 1,400 B a packet, beside ISA-L, libraries, plain loops",
        of: Of::Each {
            rows: || crate::speed::names(true),
            command: |rig, row| {
                let isal = rig.programs.join("peer-isal").to_string_lossy().into_owned();
                own::command(rig, words(["speed", "--row", row, "--isal", &isal, "--json"]))
            },
        },
        patience_s: 120,
        seconds: 1.0,
        rounds: [7, 7],
        by: By::Clock,
        figures: &[
            ("ns", "ns", false, "rows[].ns"),
            ("call_ns", "beside, ns", false, "rows[].call_ns"),
            ("times", "× as fast", true, "rows[].times"),
        ],
        goals: &[
            ("fec-rs-encode", "times", "4 parities of 10, × ISA-L", true, 0.8),
            ("fec-rs-decode", "times", "4 lost of 10, × ISA-L", true, 0.6),
            ("fec-xor", "times", "a sum of 10, × a plain loop", true, 0.77),
            ("crc32c", "times", "checksum, × the library call", true, 0.95),
            ("crc32c-train", "times", "checksum in trains, × the library call", true, 0.95),
            ("xxh3", "times", "× the library call", true, 0.95),
            ("xxh3-train", "times", "in trains, × the library call", true, 0.95),
            ("lz4", "times", "× the library call", true, 0.95),
            ("zstd", "times", "× the library call", true, 0.95),
        ],
    },
    Own {
        id: "speed-arq",
        what: "what arq-sr costs a packet of 1,400 B, both ends",
        of: Of::Each {
            rows: || crate::speed::names(false),
            command: |rig, row| own::command(rig, words(["speed", "--row", row, "--json"])),
        },
        patience_s: 120,
        seconds: 1.0,
        rounds: [7, 7],
        by: By::Clock,
        figures: &[("ns", "ns", false, "rows[].ns")],
        goals: &[
            ("arq-sr-train", "ns", "a packet in trains", false, 25.0),
            ("arq-sr-alone", "ns", "a packet alone", false, 60.0),
            ("arq-sr-lossy", "ns", "a packet alone, 5 % lost", false, 150.0),
        ],
    },
];
