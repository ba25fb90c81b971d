//! What `fec-rs` does to what is predicted: fewer losses, up to a block later, for some packets
//! more.
//!
//! ```text
//!   block    s s s s s s s s p p       what is lost of it can be computed while it is no more
//!   losses       x x                   than there are parities
//! ```
//!
//! How many of a block are lost is what `chain.rs` computes.

use super::chain::{Chain, left};
use super::proposing::BLOCK_MOST;
use super::rs::{LEFT, PARITIES, SOURCES, SPAN, SPEC};
use crate::arithmetic::{
    MILLISECOND, ONE_IN_HUNDRED, packets_in, packets_per_unit, part, ratio, room_for,
};
use dacapo_lift::{Cost, Figures, PPB, Params, Path, Profile, Service, Setting};

/// What each train, packet and byte costs where nothing is lost, parities not counted: default,
/// measured by `dacapo bench cost` on Intel Xeon (AVX-512, GFNI).
const COST: Cost = Cost { train_ps: 141_000, packet_ps: 120_000, byte_ps: 4, wire_milli: 0 };

/// What making a parity adds for every byte of its block, and sending and taking it for the block.
const PARITY_BYTE_PS: u64 = 6;
const PARITY_PS: u64 = 260_000;

/// How long the blocks that are proposed may take: one for who waits no longer than one answer
/// takes in a city, one for who waits as long as a conversation bears.
const SHORT: u64 = 20 * MILLISECOND;
const LONG: u64 = 80 * MILLISECOND;

/// The most parities of one: who needs more is better served by longer blocks, or by asking.
const PARITIES_MOST: u64 = 30;

/// What may stay lost, in ppb, with the points that are proposed.
const SOME: u64 = 1_000_000;
const FEW: u64 = 100_000;
const HARDLY_ANY: u64 = 1_000;

#[derive(Debug)]
pub(super) struct Blocks;

impl Profile for Blocks {
    /// A short block of which one packet in 1,000 stays lost, a long one of which one in 10,000
    /// does, and a long one of which one in a million does; each with as few parities as that takes
    /// on this path, and never more than sources, nor than what the flow may send leaves room for:
    /// the second takes half of that, for who also sends again what is lost.
    fn points(&self, setting: &Setting, _: &Service) -> Vec<Params> {
        // Its sources take a span, and so do its parities.
        let in_time = setting.spare_after_path_ns() / 2 / MILLISECOND * MILLISECOND;
        let in_time = in_time.max(MILLISECOND);
        let mut points = proposed(setting, SHORT.min(in_time), &[(SOME, 1)]);
        points.extend(proposed(setting, LONG.min(in_time), &[(FEW, 2), (HARDLY_ANY, 1)]));
        points.dedup();
        points
    }

    /// - A source stays lost when more packets of its block are lost than there are parities, or
    ///   when the last of these come too late to be of use.
    /// - What stays lost comes in runs as long as those of the path, at the most.
    /// - 99 of 100 come with the packet itself while fewer than 1 % are lost; else the delay grows
    ///   by what those wait for that are computed ([`Block::delay_ns`]). The jitter grows by the
    ///   time of a whole block and its parities wherever anything is lost.
    /// - Parities take their part of the rate.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let block = Block::of(params, setting);
        let figures = below.figures;
        let loss = figures.loss_ppb.min(PPB);
        let burst_milli = setting.path.burst_milli;
        let left_of = |loss_ppb| left(loss_ppb, burst_milli, block.sources, block.parities);
        let is_in_time = block.fill_ns <= setting.spare_ns(&figures);
        let left = if is_in_time { left_of(loss) } else { loss };
        let path_loss = setting.path.loss_ppb.min(PPB);
        let delay = if loss >= ONE_IN_HUNDRED {
            // Nearly always nothing below loses or repairs, and it is the same.
            let left = if path_loss == loss && is_in_time { left } else { left_of(path_loss) };
            block.delay_ns(&setting.path, path_loss - left)
        } else {
            0
        };
        let jitter = if loss > 0 { block.fill_ns } else { 0 };
        let packets = block.sources.saturating_add(block.parities);
        Figures {
            loss_ppb: left,
            loss_runs_ppb: ratio(left, 1_000, burst_milli.max(1_000)),
            delay_ns: figures.delay_ns.saturating_add(delay),
            jitter_ns: figures.jitter_ns.saturating_add(jitter),
            rate_bps: part(figures.rate_bps, block.sources, packets),
        }
    }

    fn cost(&self, params: &Params) -> Cost {
        let (sources, parities) = (params.value(&SPEC, "sources"), params.value(&SPEC, "parities"));
        let packet_ps = ratio(parities, PARITY_PS, sources);
        let byte_ps = parities.saturating_mul(PARITY_BYTE_PS);
        COST.plus(&Cost { packet_ps, byte_ps, ..Cost::ZERO })
    }

    /// A block may end after its first source.
    fn copies(&self, params: &Params) -> u64 {
        params.value(&SPEC, "parities").saturating_add(1)
    }

    /// Blocks are as large as the flow fills them within their span.
    fn packets_milli(&self, params: &Params, setting: &Setting) -> u64 {
        let block = Block::of(params, setting);
        ratio(block.parities, 1_000, block.sources).saturating_add(1_000)
    }
}

/// A block as it will be on a path.
struct Block {
    sources: u64,
    parities: u64,
    /// The time from its first source to its end.
    open_ns: u64,
    /// The time from one parity to the next: that between sources, or less where there are more
    /// parities than sources.
    apart_ns: u64,
    /// The time from its first source to its last parity.
    fill_ns: u64,
}

impl Block {
    /// Computed from the path alone and for datagrams that are full, the fewest that there can be:
    /// from the room below, more room would make smaller blocks, and a better service below a worse
    /// one above.
    fn of(params: &Params, setting: &Setting) -> Self {
        let [most, parities, span] =
            ["sources", "parities", "span"].map(|name| params.value(&SPEC, name));
        let room = setting.path.datagram_len;
        let per_ks = setting.units.per_ks.saturating_mul(packets_per_unit(&setting.units, room));
        // 1,000 s are 10^12 ns. The first source of a block comes at its beginning.
        let between = ratio(1, 1_000_000_000_000, per_ks).max(1);
        let within = (span / between).saturating_add(1);
        let sources = most.min(within);
        let open_ns = if most <= within { between.saturating_mul(sources - 1) } else { span };
        let apart_ns = between.saturating_mul(sources).min(span) / parities.max(sources);
        let fill_ns = open_ns.saturating_add(apart_ns.saturating_mul(parities));
        Self { sources, parities, open_ns, apart_ns, fill_ns }
    }

    /// How long those wait that are among the slowest of 100 and are computed. A lost source waits
    /// for the rest of its block, which is any part of it with the same chance, and then for as
    /// many parities as its run has losses and others there are in the block; blocks that lose more
    /// than half of what can be made good are few. Of those that are computed, one in 100 of all
    /// may be slower. `computed` is the share of what this path loses, in ppb: where more is lost
    /// below, less may be computed.
    fn delay_ns(&self, path: &Path, computed: u64) -> u64 {
        let Some(slower) = computed.checked_sub(ONE_IN_HUNDRED) else { return 0 };
        let rest = ratio(self.open_ns, slower, computed);
        let others_milli = ratio(self.sources.saturating_mul(1_000), path.loss_ppb, PPB);
        let needed = path.burst_milli.saturating_add(others_milli).div_ceil(1_000);
        let needed = needed.min(self.parities.div_ceil(2));
        rest.saturating_add(self.apart_ns.saturating_mul(needed))
    }
}

/// Blocks that take `span` at most, with the fewest parities after which no more of what the path
/// loses stays lost than each target says, of which each is smaller than the one before it; each
/// takes a part of the room that there is.
fn proposed(setting: &Setting, span: u64, targets: &[(u64, u64)]) -> Vec<Params> {
    let room = setting.path.datagram_len;
    let sources = packets_in(&setting.units, room, span).min(BLOCK_MOST);
    let most = sources.min(PARITIES_MOST);
    let mut chain = Chain::new(setting.path.loss_ppb, setting.path.burst_milli, most);
    chain.pass(sources);
    let room = room_for(sources, setting);
    let mut parities = 0;
    let mut point = |(target, of_room): &(u64, u64)| {
        let most = most.min(room / of_room).max(1);
        while parities < most && (parities == 0 || chain.left_ppb(parities) > *target) {
            parities += 1;
            chain.pass(sources + parities);
        }
        let mut params = Params::new();
        params.set(SOURCES, sources);
        params.set(PARITIES, parities);
        params.set(SPAN, span);
        params.set(LEFT, target / 1_000);
        params
    };
    targets.iter().map(&mut point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{internet, service};

    fn params(sources: u64, parities: u64, span: u64) -> Params {
        let mut params = Params::new();
        params.set(SOURCES, sources);
        params.set(PARITIES, parities);
        params.set(SPAN, span);
        params
    }

    #[test]
    fn points_leave_what_they_say_with_no_parity_too_many() {
        let pictures = internet(20_000, 60_000);
        let points = Blocks.points(&pictures, &service());
        assert_eq!(points.len(), 3);
        let targets = [SOME, FEW, HARDLY_ANY];
        for (point, target) in points.iter().zip(targets) {
            let figures = Blocks.figures(point, &pictures, &service());
            assert!(figures.loss_ppb <= target, "{point:?}: {figures:?}");
            let parities = point.value(&SPEC, "parities");
            let fewer = params(point.value(&SPEC, "sources"), parities - 1, LONG);
            assert!(Blocks.figures(&fewer, &pictures, &service()).loss_ppb > target);
        }
    }

    #[test]
    fn blocks_are_as_large_as_they_fill_within_their_span() {
        // 50 packets a second: at 0, 20 and 40 ms.
        let sound = internet(500, 500);
        let block = Block::of(&params(10, 4, 50 * MILLISECOND), &sound);
        assert_eq!((block.sources, block.parities), (3, 4));
        assert_eq!((block.open_ns, block.apart_ns), (50 * MILLISECOND, 50 * MILLISECOND / 4));
        assert_eq!(block.fill_ns, 100 * MILLISECOND);
        assert_eq!(Blocks.packets_milli(&params(10, 3, 50 * MILLISECOND), &sound), 2_000);
        let figures = Blocks.figures(&params(2, 2, 50 * MILLISECOND), &sound, &service());
        assert_eq!(figures.rate_bps, service().figures.rate_bps / 2);
        assert_eq!(figures.jitter_ns, service().figures.jitter_ns + 60 * MILLISECOND);
        assert_eq!(figures.delay_ns, service().figures.delay_ns);
    }
}
