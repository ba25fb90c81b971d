//! [`SPEC`]: what a choice of protocols has to know of TCP.

use crate::repaired::{RECORD_LEN, Repaired};
use dacapo_base::IP;
use dacapo_lift::{Cost, FlowPort, PortProtocol, Property, TransportSpec};

/// The static facts.
pub static SPEC: TransportSpec = TransportSpec {
    name: "tcp",
    id: 3,
    summary: "datagrams as records of a byte stream: none lost, all in order, late where some are",
    scheme: IP,
    properties: &[
        Property::Boundaries,
        Property::Order,
        Property::NoDuplicates,
        Property::NoLoss,
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
    port: Some(FlowPort { protocol: PortProtocol::Tcp, above: 0 }),
    profile: &Repaired {
        segment_len: 1_448,
        segment_on_wire: 1_514,
        timeout_min: 200_000_000,
        window: None,
        cost: Cost { train_ps: 8_000_000, packet_ps: 300_000, byte_ps: 400, wire_milli: 1_000 },
    },
};

/// A stream to each of several receivers, from one sender: what one of them takes too slowly waits
/// for it alone.
pub static GROUP_SPEC: TransportSpec = TransportSpec {
    name: "tcp-multicast",
    id: 10,
    summary: "a byte stream to each of several receivers, from one sender",
    scheme: IP,
    properties: SPEC.properties,
    datagram_len: SPEC.datagram_len,
    any_path: SPEC.any_path,
    lanes: SPEC.lanes,
    streams: SPEC.streams,
    same_host: SPEC.same_host,
    groups: true,
    spread: None,
    over: Some(&SPEC),
    port: None,
    profile: SPEC.profile,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::internet;

    const MS: u64 = 1_000_000;

    #[test]
    fn without_losses_it_is_the_path_less_headers() {
        let mut setting = internet();
        setting.path.loss_ppb = 0;
        let figures = SPEC.profile.figures(&setting);
        assert_eq!((figures.delay_ns, figures.jitter_ns), (40 * MS, 10 * MS));
        assert_eq!(figures.rate_bps, 50_000_000 * 1_448 / 1_514);
        setting.bound_bps = 1_000_000;
        assert_eq!(SPEC.profile.figures(&setting).rate_bps, 1_000_000);
    }

    #[test]
    fn the_rate_falls_with_the_root_of_the_loss() {
        // 70 ms and half a percent: 1.22 * 1448 * 8 / (0.07 * 0.0707) = 2.855 Mbit/s.
        let rate = SPEC.profile.figures(&internet()).rate_bps;
        assert!(rate.abs_diff(2_855_000) < 1_000, "{rate}");
        let mut worse = internet();
        worse.path.loss_ppb *= 4;
        let half = SPEC.profile.figures(&worse).rate_bps;
        assert!(half.abs_diff(rate / 2) < 100, "{half}");
        let mut rare = internet();
        rare.path.loss_ppb = 1;
        assert_eq!(SPEC.profile.figures(&rare).rate_bps, 50_000_000 * 1_448 / 1_514);
    }

    #[test]
    fn losses_delay_the_hundredth_packet_from_one_percent_held_up() {
        // 20 units per second: one segment per round trip.
        let mut setting = internet();
        setting.units.per_ks = 20_000;
        assert_eq!(SPEC.profile.figures(&setting).delay_ns, 40 * MS);
        setting.path.loss_ppb = 10_000_000;
        // Nothing follows soon enough: the timeout, at least 200 ms.
        assert_eq!(SPEC.profile.figures(&setting).delay_ns, 240 * MS);
        setting.units.per_ks = 5_000;
        setting.path.delay_ns = 130 * MS;
        // 270 ms there and back, four times 10 ms.
        assert_eq!(SPEC.profile.figures(&setting).delay_ns, (140 + 310) * MS);
    }

    #[test]
    fn what_follows_closely_shows_the_loss_within_a_round_trip() {
        let mut setting = internet();
        setting.units.per_ks = 1_000_000;
        setting.units.len_mean = 100;
        // 70 segments per round trip of 70 ms.
        let figures = SPEC.profile.figures(&setting);
        assert_eq!(figures.delay_ns, (40 + 70 + 10) * MS);
        assert_eq!(figures.jitter_ns, (10 + 70 + 10) * MS);
        assert_eq!((figures.loss_ppb, figures.loss_runs_ppb), (0, 0));
    }

    #[test]
    fn a_large_record_takes_its_time() {
        let mut setting = internet();
        setting.path.loss_ppb = 0;
        setting.units.len_mean = 10_000;
        let rate = 50_000_000 * 1_448 / 1_514;
        let rest = (10_000 - 1_448) * 8 * 1_000_000_000 / rate;
        assert_eq!(SPEC.profile.figures(&setting).delay_ns, 40 * MS + rest);
    }
}
