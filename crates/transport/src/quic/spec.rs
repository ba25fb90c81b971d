//! [`SPEC`] and [`SPEC_DATAGRAM`]: what a choice of protocols has to know of QUIC's two modes.
//!
//! ```text
//!   | Ethernet 14 | IPv4 20 | UDP 8 | 1 | id 8 | number 1 to 4 | frame | data | seal 16 |
//! ```
//!
//! Source: RFC 9000, section 12; RFC 9002, section 6 (losses, probe time-out), 7 (congestion
//! control as TCP's); RFC 9221, section 5.

use super::DATAGRAM_LEN_MAX;
use crate::mode::Mode;
use crate::repaired::{RECORD_LEN, Repaired, rate_with_losses, scale};
use dacapo_base::IP;
use dacapo_lift::{
    Cost, Figures, FlowPort, PPB, PortProtocol, Property, Setting, TransportProfile, TransportSpec,
};

/// The bytes that the network adds to each datagram: Ethernet, IPv4, UDP, and what QUIC puts around
/// a frame.
const HEADS_LEN: u64 = 14 + 20 + 8 + 1 + 8 + 2 + 3 + 16;

/// What is known of a mode.
pub(super) fn spec(mode: Mode) -> &'static TransportSpec {
    mode.pick(&SPEC, &SPEC_DATAGRAM)
}

/// The static facts of the stream mode.
pub static SPEC: TransportSpec = TransportSpec {
    name: "quic",
    id: 7,
    summary: "datagrams as records of an encrypted stream: none lost, all in order, none read",
    scheme: IP,
    properties: &[
        Property::Boundaries,
        Property::Order,
        Property::NoDuplicates,
        Property::Integrity,
        Property::NoLoss,
        Property::Confidentiality,
        Property::GroupAuthenticity,
        Property::SourceAuthenticity,
        Property::CongestionControl,
    ],
    datagram_len: RECORD_LEN,
    any_path: true,
    lanes: false,
    streams: true,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: Some(FlowPort { protocol: PortProtocol::Udp, above: 10_000 }),
    profile: &Repaired {
        // Packets grow to 1,452 bytes when the path takes them.
        segment_len: 1_452 - 35,
        segment_on_wire: 1_452 + 42,
        // The other end may delay an acknowledgement by as much.
        timeout_min: 25_000_000,
        window: None,
        cost: COST,
    },
};

/// The static facts of the datagram mode.
pub static SPEC_DATAGRAM: TransportSpec = TransportSpec {
    name: "quic-datagram",
    id: 8,
    summary: "encrypted datagrams under congestion control: some lost, some out of order",
    scheme: IP,
    properties: &[
        Property::Boundaries,
        Property::NoDuplicates,
        Property::Integrity,
        Property::Confidentiality,
        Property::GroupAuthenticity,
        Property::SourceAuthenticity,
        Property::CongestionControl,
    ],
    datagram_len: DATAGRAM_LEN_MAX as u32,
    any_path: true,
    lanes: false,
    streams: true,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: Some(FlowPort { protocol: PortProtocol::Udp, above: 10_001 }),
    profile: &Unrepaired,
};

/// Default, both ends together, kernel and cryptography (AES-GCM) included, over loopback on AMD
/// EPYC in November 2026 with nothing else running (`dacapo bench net`, release build): 1.85 s per
/// GB in records of 60 KiB, 1.94 of 16 KiB; a small message now and then costs 14.7 us more than
/// over UDP. As datagrams 1.1 times as much, in interleaved rounds beside other programs.
const COST: Cost =
    Cost { train_ps: 19_000_000, packet_ps: 1_000_000, byte_ps: 1_600, wire_milli: 1_000 };

#[derive(Debug)]
struct Unrepaired;

impl TransportProfile for Unrepaired {
    /// - Loss and delay are those of the path: nothing is repaired, and nothing is waited for.
    /// - The rate is the path's less headers, and with losses at most what a window of classic
    ///   congestion control allows.
    fn figures(&self, setting: &Setting) -> Figures {
        let path = setting.path;
        let len = DATAGRAM_LEN_MAX as u64;
        let bound = if setting.bound_bps == 0 { u64::MAX } else { setting.bound_bps };
        let loss = path.loss_ppb.min(PPB);
        Figures {
            loss_ppb: loss,
            loss_runs_ppb: loss * 1_000 / path.burst_milli.max(1_000),
            delay_ns: path.delay_ns.saturating_add(path.jitter_ns),
            jitter_ns: path.jitter_ns,
            rate_bps: scale(path.rate_bps, len, len + HEADS_LEN)
                .min(rate_with_losses(&path, len))
                .min(bound),
        }
    }

    fn cost(&self) -> Cost {
        COST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::internet;

    const MS: u64 = 1_000_000;

    #[test]
    fn datagrams_are_lost_as_on_the_path_and_yield_as_a_stream_does() {
        let figures = SPEC_DATAGRAM.profile.figures(&internet());
        assert_eq!((figures.loss_ppb, figures.loss_runs_ppb), (5_000_000, 1_666_666));
        assert_eq!((figures.delay_ns, figures.jitter_ns), (40 * MS, 10 * MS));
        // 70 ms and half a percent: 1.22 * 1150 * 8 / (0.07 * 0.0707).
        assert!(figures.rate_bps.abs_diff(2_267_000) < 2_000, "{}", figures.rate_bps);
        let mut clean = internet();
        clean.path.loss_ppb = 0;
        let figures = SPEC_DATAGRAM.profile.figures(&clean);
        assert_eq!(figures.rate_bps, 50_000_000 * 1_150 / (1_150 + HEADS_LEN));
    }

    #[test]
    fn a_stream_loses_nothing_and_repairs_sooner_than_tcp() {
        let mut setting = internet();
        setting.units.per_ks = 1_000;
        setting.path.loss_ppb = 10_000_000;
        let figures = SPEC.profile.figures(&setting);
        assert_eq!((figures.loss_ppb, figures.delay_ns), (0, (40 + 70 + 40) * MS));
    }

    #[test]
    fn every_path_takes_a_datagram_of_the_longest_length() {
        assert_eq!(SPEC_DATAGRAM.datagram_len_over(1_200), 1_150);
        // Header with the longest identifier and number, frame, seal.
        assert_eq!(1_200 - (1 + 20 + 4) - 9 - 16, DATAGRAM_LEN_MAX);
    }
}
