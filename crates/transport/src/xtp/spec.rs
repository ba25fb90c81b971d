//! [`SPEC`] and [`SPEC_DATAGRAM`]: what a choice of protocols has to know of XTP's two modes.
//!
//! ```text
//!   | Ethernet 14 | IPv4 20 | UDP 8 | type, label 5 | header 32 | tag 8, datagrams only | data |
//! ```
//!
//! The Internet checksum promises no integrity, nothing is hidden, and nothing yields: without a
//! bound it is therefore taken to be no faster than what does.
//!
//! Source: docs/xtp.md; RFC 1071 (checksum).

use super::DATAGRAM_LEN_MAX;
use super::config::{BUFFER_LEN, BUFFER_LEN_MAX};
use crate::mode::Mode;
use crate::repaired::{RECORD_LEN, Repaired, Window, rate_with_losses, scale};
use dacapo_base::IP;
use dacapo_lift::{
    Cost, Figures, FlowPort, PPB, PortProtocol, Property, Setting, TransportProfile, TransportSpec,
};

/// What the network, the label and XTP add to the data of a packet.
const HEADS_LEN: u64 = 14 + 20 + 8 + 5 + 32;

/// The bytes of data in a packet that every path takes.
const SEGMENT_LEN: u64 = 1_200 - 5 - 32 - 8;

/// What is known of a mode.
pub(super) fn spec(mode: Mode) -> &'static TransportSpec {
    mode.pick(&SPEC, &SPEC_DATAGRAM)
}

/// The static facts of the stream mode.
pub static SPEC: TransportSpec = TransportSpec {
    name: "xtp",
    id: 11,
    summary: "datagrams as records of an XTP stream: none lost, all in order, at the flow's rate",
    scheme: IP,
    properties: &[Property::Boundaries, Property::Order, Property::NoDuplicates, Property::NoLoss],
    datagram_len: RECORD_LEN,
    any_path: true,
    lanes: false,
    streams: true,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: Some(FlowPort { protocol: PortProtocol::Udp, above: 10_002 }),
    profile: &Repaired {
        segment_len: SEGMENT_LEN,
        segment_on_wire: SEGMENT_LEN + HEADS_LEN,
        // WTIMER waits no less.
        timeout_min: 10_000_000,
        window: Some(Window { lossy: BUFFER_LEN as u64, clean: BUFFER_LEN_MAX as u64 }),
        cost: COST,
    },
};

/// The static facts of the datagram mode.
pub static SPEC_DATAGRAM: TransportSpec = TransportSpec {
    name: "xtp-datagram",
    id: 12,
    summary: "datagrams as messages of XTP that are sent once: some lost, the others in order",
    scheme: IP,
    properties: &[Property::Boundaries, Property::Order, Property::NoDuplicates],
    datagram_len: DATAGRAM_LEN_MAX as u32,
    any_path: true,
    lanes: false,
    streams: true,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: Some(FlowPort { protocol: PortProtocol::Udp, above: 10_003 }),
    profile: &Unrepaired,
};

/// Default, both ends together, kernel included, over loopback on AMD EPYC in November 2026
/// (`dacapo bench net`, release build): 0.73 s per GB in records of 60 KiB and 0.93 of 16 KiB; in
/// the same hour TCP took 0.36 and 0.94, QUIC 1.67 and 2.08. A small message now and then costs 11
/// us more than over UDP.
const COST: Cost =
    Cost { train_ps: 15_500_000, packet_ps: 1_000_000, byte_ps: 500, wire_milli: 1_000 };

#[derive(Debug)]
struct Unrepaired;

impl TransportProfile for Unrepaired {
    /// - Loss and delay are those of the path: nothing is repaired, and nothing is waited for. What
    ///   comes later than what was sent after it is lost, too ([`overtaken_ppb`]).
    /// - The rate is the path's less headers, and without a bound at most what yields.
    fn figures(&self, setting: &Setting) -> Figures {
        let path = setting.path;
        let len = DATAGRAM_LEN_MAX as u64;
        let bound = match setting.bound_bps {
            0 => rate_with_losses(&path, len),
            bound => bound,
        };
        let loss = path.loss_ppb.min(PPB);
        let overtaken = scale(PPB - loss, overtaken_ppb(setting), PPB);
        Figures {
            loss_ppb: loss + overtaken,
            loss_runs_ppb: loss * 1_000 / path.burst_milli.max(1_000) + overtaken,
            delay_ns: path.delay_ns.saturating_add(path.jitter_ns),
            jitter_ns: path.jitter_ns,
            rate_bps: scale(path.rate_bps, len, len + HEADS_LEN + 8).min(bound),
        }
    }

    fn cost(&self) -> Cost {
        COST
    }
}

/// The share of packets, in ppb, that others may overtake: those sent within the path's jitter,
/// but for one in that time. Of delays that are even within the jitter, 57 % were overtaken at a
/// tenth of it between packets and 40 % at a fifth; this says 90 and 80 %.
fn overtaken_ppb(setting: &Setting) -> u64 {
    let per_unit = u64::from(setting.units.len_mean).div_ceil(DATAGRAM_LEN_MAX as u64).max(1);
    let per_ks = u128::from(setting.units.per_ks) * u128::from(per_unit);
    let interval_ns = 1_000_000_000_000_u128.checked_div(per_ks);
    let interval_ns = interval_ns.and_then(|it| u64::try_from(it).ok()).unwrap_or(u64::MAX);
    match setting.path.jitter_ns {
        jitter_ns if jitter_ns <= interval_ns => 0,
        jitter_ns => PPB - scale(interval_ns, PPB, jitter_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::internet;
    use crate::tcp;
    use dacapo_lift::Path;

    const MS: u64 = 1_000_000;

    #[test]
    fn datagrams_are_lost_as_on_the_path() {
        let mut setting = internet();
        setting.bound_bps = 8_000_000;
        let figures = SPEC_DATAGRAM.profile.figures(&setting);
        assert_eq!((figures.loss_ppb, figures.loss_runs_ppb), (5_000_000, 1_666_666));
        assert_eq!((figures.delay_ns, figures.jitter_ns), (40 * MS, 10 * MS));
        assert_eq!(figures.rate_bps, 8_000_000, "a bound is kept in spite of losses");
    }

    #[test]
    fn what_others_overtake_is_lost_too() {
        let mut setting = internet();
        setting.path.loss_ppb = 0;
        let loss = |setting: &Setting| SPEC_DATAGRAM.profile.figures(setting).loss_ppb;
        // 10 ms of jitter, and a packet each 20 ms, 10 ms, 1 ms.
        assert_eq!(loss(&setting), 0);
        setting.units.per_ks = 100_000;
        assert_eq!(loss(&setting), 0);
        setting.units.per_ks = 1_000_000;
        assert_eq!(loss(&setting), 900_000_000);
        setting.path.jitter_ns = 0;
        assert_eq!(loss(&setting), 0, "they come as they were sent");
    }

    #[test]
    fn a_stream_carries_at_most_its_window_in_the_round_trips_of_a_repair() {
        let mut setting = internet();
        setting.path = Path { rate_bps: 1_000_000_000, jitter_ns: 0, ..setting.path };
        setting.bound_bps = 600_000_000;
        let rate = |loss_ppb: u64| {
            let path = Path { loss_ppb, ..setting.path };
            SPEC.profile.figures(&Setting { path, ..setting }).rate_bps
        };
        // 1 MiB in 60 ms; where nothing lacks the window grows until it holds up nobody.
        let window = BUFFER_LEN as u64 * 8 * 1_000 / 60;
        let bound = setting.bound_bps;
        assert_eq!([0, 1, 10_000_000].map(rate), [bound, window / 2, window / 3]);
        assert!(rate(700_000_000) == 0, "nothing comes through in time");
    }

    #[test]
    fn a_stream_keeps_its_rate_where_what_yields_does_not() {
        let mut setting = internet();
        setting.bound_bps = 8_000_000;
        let rate = |spec: &TransportSpec, setting: &Setting| spec.profile.figures(setting).rate_bps;
        assert!(rate(&tcp::SPEC, &setting) < 3_000_000);
        assert_eq!(rate(&SPEC, &setting), 8_000_000);
        setting.bound_bps = 0;
        assert!(rate(&SPEC, &setting) <= rate(&tcp::SPEC, &setting), "nobody bounds it");
    }

    #[test]
    fn a_stream_loses_nothing_and_repairs_within_a_round_trip() {
        let mut setting = internet();
        setting.units.per_ks = 1_000;
        setting.path.loss_ppb = 10_000_000;
        let figures = SPEC.profile.figures(&setting);
        assert_eq!((figures.loss_ppb, figures.delay_ns), (0, (40 + 70 + 40) * MS));
    }

    #[test]
    fn every_path_takes_a_datagram_of_the_longest_length() {
        assert_eq!(SPEC_DATAGRAM.datagram_len_over(1_200), 1_150);
        assert!(DATAGRAM_LEN_MAX as u64 <= SEGMENT_LEN);
    }
}
