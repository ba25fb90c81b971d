//! [`UNLISTED`]: what transports say of themselves that no catalogue has, because they do not leave
//! a process; of them the two of the queues in this one.

use dacapo_base::IP;
use dacapo_lift::{Cost, Figures, Property, Setting, TransportProfile, TransportSpec};
use dacapo_packet::TRAIN_BYTES_MAX;

/// What such a transport says of itself, but for its name and what differs.
pub(crate) const UNLISTED: TransportSpec = TransportSpec {
    name: "",
    id: 0,
    summary: "within a process",
    scheme: IP,
    properties: &[
        Property::Boundaries,
        Property::Order,
        Property::NoDuplicates,
        Property::Integrity,
        Property::NoLoss,
    ],
    datagram_len: TRAIN_BYTES_MAX as u32,
    any_path: true,
    lanes: false,
    streams: true,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: None,
    profile: &Within,
};

/// Where a full queue blocks.
pub(super) static BLOCKS: TransportSpec =
    TransportSpec { name: "inproc", lanes: true, streams: false, ..UNLISTED };

/// Where a full queue drops.
pub(super) static DROPS: TransportSpec = TransportSpec {
    properties: &[
        Property::Boundaries,
        Property::Order,
        Property::NoDuplicates,
        Property::Integrity,
    ],
    ..BLOCKS
};

#[derive(Debug)]
struct Within;

/// Nothing is chosen by it.
impl TransportProfile for Within {
    fn figures(&self, setting: &Setting) -> Figures {
        Figures {
            loss_ppb: 0,
            loss_runs_ppb: 0,
            delay_ns: 0,
            jitter_ns: 0,
            rate_bps: if setting.bound_bps == 0 { u64::MAX } else { setting.bound_bps },
        }
    }

    fn cost(&self) -> Cost {
        Cost::ZERO
    }
}
