//! What `rate-burst` does to what is predicted: no more than its rate, and units wait for bursts.
//!
//! ```text
//!   burst     |p p p|       |p p p|          whole packets of a unit in each interval
//!   unit      |<--- its last packet: one interval for each further burst
//! ```

use super::burst::SPEC;
use super::credit::interval_ns;
use crate::arithmetic::{part, unit_apart_ns, unit_bytes};
use dacapo_lift::{Cost, Figures, Params, Profile, Service, Setting};

/// Default, while nothing waits, measured beside `dedup` (14 ns for a packet alone, 132 for 45 in a
/// train): 5 and 16 with a limit, 9 and 6 without; medians of five. Of a train that waits, each
/// burst that it is cut into is a call more.
const COST: Cost = Cost { train_ps: 8_000, packet_ps: 200, byte_ps: 0, wire_milli: 0 };

#[derive(Debug)]
pub(super) struct Bursts;

impl Profile for Bursts {
    /// It betters nothing, and each flow has a bound with a pacer below its graph: only by name.
    fn suits(&self, _: &Setting) -> bool {
        false
    }

    /// - Whole packets leave, so of a burst only what these fill counts; one that is longer takes
    ///   more than one, rounded up. The rate is that part of `rate`, or what is below.
    /// - A unit is there with its last packet: each burst that it takes beyond the first is an
    ///   interval later.
    /// - And it waits for an interval itself where more units come in as many intervals as it takes
    ///   than leave in these, or nobody knows how many come.
    /// - Jitter grows by the same: a unit may find a burst of which nothing is used.
    ///
    /// Packets are those of full datagrams of the path: with those of the room below, more room
    /// would leave more of a burst unused, and a better service below make a worse one above.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let (rate, burst) = (params.value(&SPEC, "rate"), params.value(&SPEC, "burst"));
        let Some(interval) = interval_ns(rate, burst) else { return below.figures };
        let unit = unit_bytes(&setting.units);
        let packet = unit.min(u64::from(setting.path.datagram_len)).max(1);
        let used = used(packet, burst);
        let bursts = unit.div_ceil(used).max(1);
        let span = interval.saturating_mul(bursts);
        let units = (span / unit_apart_ns(&setting.units).max(1)).saturating_add(1);
        let fit = units.saturating_mul(unit) <= used.saturating_mul(bursts);
        let waits = u64::from(!(fit && setting.units.is_paced));
        let later = interval.saturating_mul((bursts - 1).saturating_add(waits));
        let Figures { delay_ns, jitter_ns, rate_bps, .. } = below.figures;
        Figures {
            delay_ns: delay_ns.saturating_add(later),
            jitter_ns: jitter_ns.saturating_add(later),
            rate_bps: rate_bps.min(part(rate.saturating_mul(8), used, burst)),
            ..below.figures
        }
    }

    fn cost(&self, _: &Params) -> Cost {
        COST
    }
}

/// How many bytes of packets of this length leave in an interval, on average; at least 1.
fn used(packet: u64, burst: u64) -> u64 {
    let packets = burst / packet.max(1);
    let used = if packets > 0 { packets * packet } else { packet / packet.div_ceil(burst.max(1)) };
    used.clamp(1, burst.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{internet, service};
    use dacapo_lift::Units;

    fn of(rate: u64, burst: u64) -> Params {
        let mut params = Params::new();
        params.set(0, rate);
        params.set(1, burst);
        params
    }

    #[test]
    fn without_a_limit_and_of_itself_it_changes_nothing_and_is_not_proposed() {
        let (setting, below) = (internet(20_000, 60_000), service());
        assert_eq!(Bursts.figures(&Params::new(), &setting, &below), below.figures);
        assert!(!Bursts.suits(&setting));
        assert_eq!(Bursts.points(&setting, &below), [Params::new()]);
    }

    #[test]
    fn the_rate_is_what_whole_packets_fill_of_it_and_no_more_than_below() {
        let (setting, below) = (internet(20_000, 60_000), service());
        let rate = |rate, burst| Bursts.figures(&of(rate, burst), &setting, &below).rate_bps;
        // Six packets of 1,452 of 10,000 bytes.
        assert_eq!(rate(1_500_000, 10_000), 1_500_000 * 8 / 10_000 * 8_712);
        assert_eq!(rate(1_500_000_000, 10_000), below.figures.rate_bps);
        assert_eq!(
            (used(1_452, 1_500), used(4_000, 1_500), used(9_000, 1_500)),
            (1_452, 1_333, 1_500)
        );
    }

    #[test]
    fn a_unit_waits_for_its_last_burst_and_where_units_do_not_fit_for_its_first() {
        let below = service();
        let later = |setting: &Setting, rate, burst| {
            let figures = Bursts.figures(&of(rate, burst), setting, &below);
            let [delay, jitter] = [
                figures.delay_ns - below.figures.delay_ns,
                figures.jitter_ns - below.figures.jitter_ns,
            ];
            assert_eq!(delay, jitter);
            delay
        };
        // One of 500 bytes each 20 ms: with its burst, which four of them are.
        let sound = internet(500, 500);
        assert_eq!(later(&sound, 100_000, 2_100), 0);
        assert_eq!(later(&sound, 100_000, 1_500), 0);
        // Four in an interval of 75 ms, of which two leave in it.
        assert_eq!(later(&sound, 20_000, 1_500), 75_000_000);
        // 20,004 bytes are three bursts of six packets: two intervals, and one where in three
        // more than one comes.
        let pictures = internet(20_000, 20_000);
        assert_eq!(later(&pictures, 2_000_000, 10_000), 10_000_000);
        assert_eq!(later(&pictures, 1_250_000, 10_000), 24_000_000);
        // Six come in an interval of 80 ms, of which four leave.
        assert_eq!(later(&pictures, 1_250_000, 100_000), 80_000_000);
        // Nobody knows how many come.
        let units = Units { is_paced: false, ..sound.units };
        assert_eq!(later(&Setting { units, ..sound }, 100_000, 2_000), 20_000_000);
    }
}
