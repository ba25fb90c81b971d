//! [`SPEC`]: what a choice of protocols has to know of UDP.
//!
//! ```text
//!   | Ethernet 14 | IPv4 20 | UDP 8 | datagram |      what a datagram takes of the path's rate
//! ```

use dacapo_base::IP;
use dacapo_lift::{
    Cost, Figures, FlowPort, PPB, PortProtocol, Property, Setting, TransportProfile, TransportSpec,
};
use dacapo_packet::TRAIN_BYTES_MAX;

/// The bytes that the network adds to each datagram: Ethernet, IPv4 and UDP.
const HEADS_LEN: u64 = 14 + 20 + 8;

/// The static facts. Datagrams may be as long as a train; what a flow plans with is what the path
/// takes, which is less.
pub static SPEC: TransportSpec = TransportSpec {
    name: "udp",
    id: 1,
    summary: "datagrams as the network delivers them: some lost, some late, out of order",
    scheme: IP,
    properties: &[Property::Boundaries, Property::WayBack],
    datagram_len: TRAIN_BYTES_MAX as u32,
    any_path: false,
    lanes: true,
    streams: false,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: Some(FlowPort { protocol: PortProtocol::Udp, above: 0 }),
    profile: &AsTheNetwork,
};

/// The same to a group of receivers: one datagram for all of them. To each it is what the network
/// is on the way there; what their modules say comes to the sender alone.
pub static GROUP_SPEC: TransportSpec = TransportSpec {
    name: "udp-multicast",
    id: 6,
    summary: "datagrams to a group: each goes out once, for all who take part",
    scheme: IP,
    properties: &[Property::Boundaries, Property::Answers],
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

#[derive(Debug)]
struct AsTheNetwork;

impl TransportProfile for AsTheNetwork {
    /// - Loss is that of the path, and a run of losses begins at so many times fewer packets as a
    ///   run is long: `loss / burst`.
    /// - 99 of 100 come within the path's shortest delay and its jitter, because nothing is waited
    ///   for.
    /// - Of the path's rate, headers take their share of each datagram; a flow that is held to a
    ///   bound gets no more than that.
    fn figures(&self, setting: &Setting) -> Figures {
        let path = setting.path;
        let len = u64::from(SPEC.datagram_len_over(path.datagram_len));
        let rate = u128::from(path.rate_bps) * u128::from(len) / u128::from(len + HEADS_LEN);
        let bound = if setting.bound_bps == 0 { u64::MAX } else { setting.bound_bps };
        let loss = path.loss_ppb.min(PPB);
        Figures {
            loss_ppb: loss,
            loss_runs_ppb: loss * 1_000 / path.burst_milli.max(1_000),
            delay_ns: path.delay_ns.saturating_add(path.jitter_ns),
            jitter_ns: path.jitter_ns,
            rate_bps: u64::try_from(rate).unwrap_or(u64::MAX).min(bound),
        }
    }

    /// Default, both ends together, kernel and segmentation offload included: measured between two
    /// network namespaces over veth on AMD EPYC, in November 2026.
    fn cost(&self) -> Cost {
        Cost { train_ps: 4_200_000, packet_ps: 150_000, byte_ps: 170, wire_milli: 1_000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::internet;

    #[test]
    fn figures_are_those_of_the_path_less_headers() {
        let figures = SPEC.profile.figures(&internet());
        assert_eq!(figures.loss_ppb, 5_000_000);
        assert_eq!(figures.loss_runs_ppb, 1_666_666);
        assert_eq!((figures.delay_ns, figures.jitter_ns), (40_000_000, 10_000_000));
        assert_eq!(figures.rate_bps, 50_000_000 * 1_452 / 1_494);
    }

    #[test]
    fn a_bound_holds_the_rate_down_and_none_does_not() {
        let mut setting = internet();
        setting.bound_bps = 1_000_000;
        assert_eq!(SPEC.profile.figures(&setting).rate_bps, 1_000_000);
        setting.bound_bps = u64::MAX;
        assert_eq!(SPEC.profile.figures(&setting).rate_bps, 50_000_000 * 1_452 / 1_494);
    }

    #[test]
    fn a_flow_plans_with_what_the_path_takes() {
        assert_eq!(SPEC.datagram_len_over(1_452), 1_452);
        assert_eq!(SPEC.serve(&internet(), 5).map(|service| service.payload_len_max), Some(1_447));
        assert!(SPEC.datagram_len as usize >= TRAIN_BYTES_MAX);
    }
}
