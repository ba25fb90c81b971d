//! What `interleave` does to what is predicted: as much is lost, in shorter runs, and everything
//! comes later.
//!
//! ```text
//!   wire     4 1 6 3 0 5 2 7       neighbours leave some places apart: both are lost when a run
//!   lost       x x x               outlasts these
//! ```
//!
//! Losses are taken to come in runs whose lengths have no memory (Gilbert 1960), as in `repeat`.

use super::blocks::DEPTH_MAX;
use super::interleave::{DEPTH, HOLD, SPEC};
use super::order::{apart, places};
use crate::arithmetic::{
    MILLISECOND, apart_ns, either, goes_on, packets_per_unit, part, running, unit_apart_ns,
    whole_milliseconds,
};
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Service, Setting};

/// Default, measured by `dacapo bench cost` on a loaded AMD EPYC, the median of five runs: 78 ns
/// for a packet alone, and 325 each for 45 in a train, which all above it at the receiver get one
/// by one. No sum for a train and for each packet is both; this is the nearest.
const COST: Cost = Cost { train_ps: 0, packet_ps: 103_000, byte_ps: 0, wire_milli: 0 };

/// How many mean runs of losses go by between neighbours, in the points that are proposed: one run
/// in three is longer, one in seven, one in fifty.
const RUNS_PASSED: [u64; 3] = [1, 2, 4];

/// Neighbours leave at least so much of a block apart: three of eight.
const APART: (u64, u64) = (3, 8);

#[derive(Debug)]
pub(super) struct Spread;

impl Profile for Spread {
    /// Never: nothing that can be asked for gets better by it. What computes or asks for lost
    /// packets spreads its own over time where that helps (columns of `fec-xor`, windows of
    /// `fec-rlc`, `gap` of `repeat`), and only those wait for it that are lost; here all do.
    fn suits(&self, _: &Setting) -> bool {
        false
    }

    /// Blocks in which one, two or four mean runs of losses go by between neighbours, as far as
    /// they are filled and leave while what comes is of use.
    fn points(&self, setting: &Setting, _: &Service) -> Vec<Params> {
        let mut points: Vec<Params> =
            RUNS_PASSED.into_iter().map(|runs| point(setting, runs)).collect();
        points.dedup();
        points
    }

    /// - As much is lost.
    /// - Of what is lost as much begins a run as is not lost with the packet before it: a run of
    ///   the path would have to outlast all that leaves between the two, or both be lost by
    ///   chance. No less than below.
    /// - A packet waits until its block is full and it is its turn; as 1 of 64 is more than one in
    ///   100, the delay is that of the one that waits longest. The jitter grows by the difference
    ///   to the one that waits least.
    ///
    /// Blocks are computed from the path alone and for datagrams that are full, the fewest that
    /// there can be: from the room below, more room would make smaller blocks.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let block = Block::of(params, setting);
        let figures = below.figures;
        let begins = part(figures.loss_ppb, block.begins_ppb(setting), PPB);
        let waits = || block.waits_ns();
        let (least, most) = (waits().min().unwrap_or(0), waits().max().unwrap_or(0));
        Figures {
            loss_runs_ppb: figures.loss_runs_ppb.max(begins),
            delay_ns: figures.delay_ns.saturating_add(most),
            jitter_ns: figures.jitter_ns.saturating_add(most - least),
            ..figures
        }
    }

    fn cost(&self, _: &Params) -> Cost {
        COST
    }
}

/// The block between whose neighbours so many mean runs go by.
fn point(setting: &Setting, runs: u64) -> Params {
    let bounds = |number: u16| {
        let param = &SPEC.params[usize::from(number)];
        (param.min, param.max)
    };
    let lost = setting.path.burst_milli.max(1_000).saturating_mul(runs).div_ceil(1_000);
    let depth = part(lost, APART.1, APART.0).clamp(bounds(DEPTH).0, bounds(DEPTH).1);
    let in_time = setting.spare_after_path_ns() / 2 / MILLISECOND * MILLISECOND;
    let filled = whole_milliseconds(apart_ns(setting).saturating_mul(depth));
    let mut params = Params::new();
    params.set(DEPTH, depth);
    params.set(HOLD, filled.min(in_time).clamp(bounds(HOLD).0, bounds(HOLD).1));
    params
}

/// A block as it will be on a path.
struct Block {
    /// When each packet leaves, counted in packets.
    places: Vec<u8>,
    /// The time from one packet to the next, when they come and when they leave.
    between_ns: u64,
    leave_ns: u64,
    /// The time from its first packet to its end.
    open_ns: u64,
}

impl Block {
    fn of(params: &Params, setting: &Setting) -> Self {
        let [depth, hold] = ["depth", "hold"].map(|name| params.value(&SPEC, name));
        let count = |packets: u64| packets.min(depth).clamp(1, DEPTH_MAX.into());
        let made = |count: u64, between_ns, leave_ns, open_ns| Self {
            places: places(count as u8),
            between_ns,
            leave_ns,
            open_ns,
        };
        // Where units are further apart than that, nothing but the rest of one comes meanwhile.
        if unit_apart_ns(&setting.units) > hold {
            let unit = packets_per_unit(&setting.units, setting.path.datagram_len);
            return made(count(unit), 0, hold.div_ceil(count(unit)), hold);
        }
        let between = apart_ns(setting);
        let within = hold.div_ceil(between);
        if depth <= within {
            return made(depth, between, between, between.saturating_mul(depth - 1));
        }
        made(count(within), between, hold.div_ceil(count(within)), hold)
    }

    /// How long each packet waits.
    fn waits_ns(&self) -> impl Iterator<Item = u64> {
        self.places.iter().zip(0..).map(|(place, number)| {
            let rest = self.open_ns.saturating_sub(self.between_ns.saturating_mul(number));
            rest.saturating_add(self.leave_ns.saturating_mul(u64::from(*place)))
        })
    }

    /// The chance that the packet before a lost one is not lost, by the same run or by itself, in
    /// ppb. What this path loses counts, not what is lost below: of more losses, as many begin a
    /// run at least.
    fn begins_ppb(&self, setting: &Setting) -> u64 {
        let (loss, goes_on) = (setting.path.loss_ppb, goes_on(&setting.path));
        let lost_too = |packets| either(loss, running(goes_on, packets));
        let ends = apart(&self.places).map(|packets| PPB - lost_too(packets));
        ends.sum::<u64>() / self.places.len().max(1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{internet, service};

    fn params(depth: u64, hold: u64) -> Params {
        let mut params = Params::new();
        params.set(DEPTH, depth);
        params.set(HOLD, hold * MILLISECOND);
        params
    }

    #[test]
    fn it_is_never_proposed_and_its_points_let_runs_go_by_while_there_is_time() {
        // 50 packets a second, runs of three.
        let mut sound = internet(500, 500);
        assert!(!Spread.suits(&sound));
        let points = |setting: &Setting| Spread.points(setting, &service());
        assert_eq!(points(&sound), [params(8, 160), params(16, 320), params(32, 500)]);
        sound.useful_ns = 245_000_000;
        let some = [params(8, 101), params(16, 101), params(32, 101)];
        assert_eq!(points(&sound), some);
    }

    #[test]
    fn a_block_that_fills_leaves_as_it_came() {
        // 700 packets a second: at places 4 1 6 3 0 5 2 7.
        let pictures = internet(20_000, 60_000);
        let block = Block::of(&params(8, 500), &pictures);
        let between = apart_ns(&pictures);
        let waits: Vec<u64> = block.waits_ns().map(|wait| wait / between).collect();
        assert_eq!(waits, [11, 7, 11, 7, 3, 7, 3, 7]);
        let above = Spread.figures(&params(8, 500), &pictures, &service());
        assert_eq!(above.delay_ns, 40 * MILLISECOND + 11 * between);
        assert_eq!(above.jitter_ns, 10 * MILLISECOND + 8 * between);
        assert_eq!(above.loss_ppb, service().figures.loss_ppb);
        assert_eq!(above.rate_bps, service().figures.rate_bps);
    }

    #[test]
    fn a_block_that_does_not_fill_leaves_within_as_long_as_it_was_filled() {
        // 50 packets a second: three in 50 ms, at places 2 0 1.
        let sound = internet(500, 500);
        let block = Block::of(&params(8, 50), &sound);
        let of = |ms: [u64; 3]| ms.map(|it| it * MILLISECOND);
        let third = (50 * MILLISECOND).div_ceil(3);
        let [a, b, c] = of([50, 30, 10]);
        let expected: Vec<u64> = block
            .places
            .iter()
            .zip([a, b, c])
            .map(|(at, ms)| ms + third * u64::from(*at))
            .collect();
        assert_eq!((block.places.len(), block.waits_ns().collect::<Vec<_>>()), (3, expected));
        // One alone waits for nobody.
        let block = Block::of(&params(8, 10), &sound);
        assert_eq!(block.waits_ns().collect::<Vec<_>>(), of([10, 0, 0])[..1]);
    }

    #[test]
    fn runs_become_as_many_as_are_not_lost_with_their_neighbours() {
        let pictures = internet(20_000, 60_000);
        let runs = |depth| Spread.figures(&params(depth, 500), &pictures, &service()).loss_runs_ppb;
        let (below, lost) = (service().figures.loss_runs_ppb, service().figures.loss_ppb);
        assert!(below < runs(2) && runs(2) < runs(8) && runs(8) < runs(64) && runs(64) < lost);
        // Of runs of three hardly any takes two of 24.
        assert!(runs(64) > lost / 1_000 * 994, "{}", runs(64));
        let mut single = pictures;
        single.path.burst_milli = 1_000;
        let above = Spread.figures(&params(8, 500), &single, &service());
        assert_eq!(above.loss_runs_ppb, lost - lost / 200, "but for those that meet by chance");
    }
}
