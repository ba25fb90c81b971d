//! [`SPEC`]: what a choice of protocols has to know of shared memory.

use dacapo_base::IP;
use dacapo_lift::{Cost, Figures, Property, Setting, TransportProfile, TransportSpec};

/// How long a wake-up takes that 99 of 100 do not exceed, in ns.
const WAKE_NS: u64 = 100_000;

/// What goes from application to application, in bit/s: 98 Gbit/s in units of 60 KiB, 24 in
/// units of 1,400 bytes.
const RATE_BPS: u64 = 50_000_000_000;

/// The static facts.
pub static SPEC: TransportSpec = TransportSpec {
    name: "shm",
    id: 9,
    summary: "datagrams as records in memory that two processes of one host and user share",
    scheme: IP,
    properties: &[
        Property::Boundaries,
        Property::Order,
        Property::NoDuplicates,
        Property::NoLoss,
        Property::Integrity,
        Property::CongestionControl,
    ],
    // The longest segment that the pool lays out; a record may be longer.
    datagram_len: 65_000,
    any_path: true,
    lanes: false,
    streams: true,
    same_host: true,
    groups: false,
    spread: None,
    over: None,
    port: None,
    profile: &Memory,
};

#[derive(Debug)]
struct Memory;

impl TransportProfile for Memory {
    /// The path plays no part: nothing is lost, and what is late is late by a wake-up.
    fn figures(&self, setting: &Setting) -> Figures {
        let bound = if setting.bound_bps == 0 { u64::MAX } else { setting.bound_bps };
        Figures {
            loss_ppb: 0,
            loss_runs_ppb: 0,
            delay_ns: WAKE_NS,
            jitter_ns: WAKE_NS,
            rate_bps: RATE_BPS.min(setting.path.rate_bps).min(bound),
        }
    }

    /// Default, both ends together, kernel included, on AMD EPYC in November 2026 with nothing else
    /// running (`dacapo bench net`, release build): 0.147 s per GB in units of 60 KiB, 0.206 of
    /// 16 KiB and 0.585 of 1,400 bytes, of which several are read at once; a small message now and
    /// then costs 2.1 us less than over UDP.
    fn cost(&self) -> Cost {
        Cost { train_ps: 2_000_000, packet_ps: 150_000, byte_ps: 120, wire_milli: 0 }
    }
}
