//! [`SPEC`] and [`BACKUP_SPEC`]: what a choice of protocols has to know of bonds.
//!
//! The paths beside the first are taken to be like the one that is described, and to lose
//! independently of it.

use crate::udp;
use dacapo_lift::{Cost, Figures, PPB, Property, Setting, Spread, TransportProfile, TransportSpec};

/// The longest datagram: every path of the Internet carries it (RFC 9000, section 14), so a path
/// that is shorter than another makes no difference to the graph.
const DATAGRAM_LEN: u32 = 1_200;

/// Every packet by every path.
pub static SPEC: TransportSpec = TransportSpec {
    name: "bond",
    id: 13,
    summary: "datagrams by every path to the peer at once: what one path loses another brings",
    scheme: udp::SPEC.scheme,
    properties: &[Property::Boundaries, Property::WayBack],
    datagram_len: DATAGRAM_LEN,
    any_path: udp::SPEC.any_path,
    lanes: udp::SPEC.lanes,
    streams: udp::SPEC.streams,
    same_host: udp::SPEC.same_host,
    groups: udp::SPEC.groups,
    spread: Some(Spread::Copies),
    over: Some(&udp::SPEC),
    port: None,
    profile: &Copies,
};

/// Every packet by the first path that is not silent.
pub static BACKUP_SPEC: TransportSpec = TransportSpec {
    name: "bond-backup",
    id: 14,
    summary: "datagrams by the first path to the peer that is not silent",
    spread: Some(Spread::Backup),
    profile: &OneAtATime,
    ..SPEC
};

#[derive(Debug)]
struct Copies;

impl TransportProfile for Copies {
    /// As over UDP, but for losses: a packet is lost where both paths lose it, p². Of runs of
    /// losses of mean length b on each, one of both lasts until either ends, b² / (2b - 1).
    fn figures(&self, setting: &Setting) -> Figures {
        let one = udp::SPEC.profile.figures(setting);
        let both = u128::from(one.loss_ppb) * u128::from(one.loss_ppb) / u128::from(PPB);
        let burst = u128::from(setting.path.burst_milli.max(1_000));
        let runs = both * 1_000 * (2 * burst - 1_000) / (burst * burst);
        Figures {
            loss_ppb: u64::try_from(both).unwrap_or(PPB),
            loss_runs_ppb: u64::try_from(runs).unwrap_or(PPB),
            ..one
        }
    }

    /// That of two: each datagram goes out and comes in twice.
    fn cost(&self) -> Cost {
        let one = udp::SPEC.profile.cost();
        Cost {
            train_ps: 2 * one.train_ps,
            packet_ps: 2 * one.packet_ps,
            byte_ps: 2 * one.byte_ps,
            wire_milli: 2 * one.wire_milli,
        }
    }
}

#[derive(Debug)]
struct OneAtATime;

impl TransportProfile for OneAtATime {
    fn figures(&self, setting: &Setting) -> Figures {
        udp::SPEC.profile.figures(setting)
    }

    fn cost(&self) -> Cost {
        udp::SPEC.profile.cost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::internet;

    #[test]
    fn a_packet_is_lost_where_both_paths_lose_it() {
        let mut setting = internet();
        setting.path.loss_ppb = 50_000_000;
        setting.path.burst_milli = 1_000;
        let figures = SPEC.profile.figures(&setting);
        assert_eq!((figures.loss_ppb, figures.loss_runs_ppb), (2_500_000, 2_500_000));
        setting.path.burst_milli = 2_000;
        let figures = SPEC.profile.figures(&setting);
        // Of runs of two each, one of both lasts 4 / 3 of a packet.
        assert_eq!((figures.loss_ppb, figures.loss_runs_ppb), (2_500_000, 1_875_000));
        let one = udp::SPEC.profile.figures(&setting);
        assert_eq!((figures.delay_ns, figures.rate_bps), (one.delay_ns, one.rate_bps));
        setting.path.loss_ppb = u64::MAX;
        assert_eq!(SPEC.profile.figures(&setting).loss_ppb, PPB, "no more than all is lost");
    }

    #[test]
    fn copies_cost_twice_and_a_path_in_reserve_nothing() {
        let one = udp::SPEC.profile.cost();
        assert_eq!(SPEC.profile.cost().wire_milli, 2 * one.wire_milli);
        assert_eq!(BACKUP_SPEC.profile.cost(), one);
        let setting = internet();
        let backup = BACKUP_SPEC.profile.figures(&setting);
        assert_eq!(backup, udp::SPEC.profile.figures(&setting));
    }
}
