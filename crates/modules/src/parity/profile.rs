//! What `fec-rs` does to what is predicted: fewer losses, up to a block later, for some packets
//! more.
//!
//! ```text
//!   block    s s s s s s s s p p       what is lost of it can be computed while it is no more
//!   losses       x x                   than there are parities
//! ```
//!
//! Losses are taken to come in runs whose lengths have no memory (Gilbert 1960): a chain of two
//! states, which is gone through packet by packet. Its probabilities are binary fractions, added
//! and multiplied in an order that is fixed, which gives the same bits on every machine.

use super::rs::{PARITIES, SOURCES, SPAN, SPEC};
use crate::arithmetic::{MILLISECOND, ONE_IN_HUNDRED, packets_in, packets_per_unit, ratio};
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

/// The most sources of a block that is proposed: more make longer chains, not better codes.
const SOURCES_MOST: u64 = 60;

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
    /// on this path, and never more than sources.
    fn points(&self, setting: &Setting, _: &Service) -> Vec<Params> {
        let mut points = proposed(setting, SHORT, &[SOME]);
        points.extend(proposed(setting, LONG, &[FEW, HARDLY_ANY]));
        points.dedup();
        points
    }

    /// - A source stays lost when more packets of its block are lost than there are parities.
    /// - What stays lost comes in runs as long as those of the path, at the most.
    /// - 99 of 100 come with the packet itself while fewer than 1 % are lost; else the delay grows
    ///   by what those wait for that are computed ([`Block::delay_ns`]). The jitter grows by the
    ///   time of a whole block and its parities wherever anything is lost.
    /// - Parities take their part of the rate.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let block = Block::of(params, setting);
        let figures = below.figures;
        let loss = figures.loss_ppb.min(PPB);
        let left = left(loss, setting.path.burst_milli, block.sources, block.parities);
        let delay = if loss >= ONE_IN_HUNDRED { block.delay_ns(&setting.path) } else { 0 };
        let jitter = if loss > 0 { block.fill_ns } else { 0 };
        let packets = block.sources.saturating_add(block.parities);
        Figures {
            loss_ppb: left,
            loss_runs_ppb: ratio(left, 1_000, setting.path.burst_milli.max(1_000)),
            delay_ns: figures.delay_ns.saturating_add(delay),
            jitter_ns: figures.jitter_ns.saturating_add(jitter),
            rate_bps: scaled(figures.rate_bps, block.sources, packets),
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
    /// may be slower. From the path alone: where more is lost, less may be computed.
    fn delay_ns(&self, path: &Path) -> u64 {
        let loss = path.loss_ppb.min(PPB);
        let computed = loss - left(loss, path.burst_milli, self.sources, self.parities);
        let Some(slower) = computed.checked_sub(ONE_IN_HUNDRED) else { return 0 };
        let rest = ratio(self.open_ns, slower, computed);
        let others_milli = ratio(self.sources.saturating_mul(1_000), loss, PPB);
        let needed = path.burst_milli.saturating_add(others_milli).div_ceil(1_000);
        let needed = needed.min(self.parities.div_ceil(2));
        rest.saturating_add(self.apart_ns.saturating_mul(needed))
    }
}

/// `value · a / b`, rounded down.
fn scaled(value: u64, a: u64, b: u64) -> u64 {
    let product = u128::from(value) * u128::from(a) / u128::from(b.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Blocks that take `span` at most, with the fewest parities after which no more of what the path
/// loses stays lost than each target says, of which each is smaller than the one before it.
fn proposed(setting: &Setting, span: u64, targets: &[u64]) -> Vec<Params> {
    let room = setting.path.datagram_len;
    let sources = packets_in(&setting.units, room, span).min(SOURCES_MOST);
    let most = sources.min(PARITIES_MOST);
    let mut chain = Chain::new(setting.path.loss_ppb, setting.path.burst_milli, most);
    chain.pass(sources);
    let mut parities = 0;
    let mut point = |target: &u64| {
        while parities < most && (parities == 0 || chain.left_ppb(parities) > *target) {
            parities += 1;
            chain.pass(sources + parities);
        }
        let mut params = Params::new();
        params.set(SOURCES, sources);
        params.set(PARITIES, parities);
        params.set(SPAN, span);
        params
    };
    targets.iter().map(&mut point).collect()
}

/// The share of packets, in ppb and rounded up, that stays lost of blocks of so many sources and
/// parities: those of blocks that lose more packets than they have parities.
fn left(loss_ppb: u64, burst_milli: u64, sources: u64, parities: u64) -> u64 {
    let mut chain = Chain::new(loss_ppb, burst_milli, parities);
    chain.pass(sources.saturating_add(parities));
    chain.left_ppb(parities)
}

/// The bounds of the parameters.
const PARITIES_MAX: usize = 128;
const PACKETS_MAX: u64 = 255;

/// How many of the packets so far are lost.
struct Chain {
    loss_ppb: u64,
    loss: f64,
    /// The chances that a run of losses begins with the next packet, and that it ends.
    begins: f64,
    ends: f64,
    packets: u64,
    /// Of more than so many losses it is not known how likely they are.
    most: usize,
    /// The chances that so many are lost, and the last one is not, or is.
    good: [f64; PARITIES_MAX + 1],
    bad: [f64; PARITIES_MAX + 1],
}

impl Chain {
    /// Before the first packet. Losses that do not depend on each other make runs, too: none is
    /// shorter on average.
    fn new(loss_ppb: u64, burst_milli: u64, most: u64) -> Self {
        let loss_ppb = loss_ppb.min(PPB);
        let loss = loss_ppb as f64 / PPB as f64;
        let ends = (1_000.0 / burst_milli.max(1_000) as f64).min(1.0 - loss);
        let begins = if loss_ppb < PPB { loss * ends / (1.0 - loss) } else { 1.0 };
        let most = usize::try_from(most).unwrap_or(PARITIES_MAX).clamp(1, PARITIES_MAX);
        let none = [0.0; PARITIES_MAX + 1];
        Self { loss_ppb, loss, begins, ends, packets: 0, most, good: none, bad: none }
    }

    /// Goes on until there are so many packets.
    fn pass(&mut self, packets: u64) {
        if self.packets == 0 && packets > 0 {
            (self.good[0], self.bad[1], self.packets) = (1.0 - self.loss, self.loss, 1);
        }
        while self.packets < packets.min(PACKETS_MAX) {
            self.step();
        }
    }

    fn step(&mut self) {
        let (begins, ends) = (self.begins, self.ends);
        // No more are lost than there are packets.
        let end = (self.packets as usize + 1).min(self.most);
        for lost in (1..=end).rev() {
            let (good, bad) = (self.good[lost], self.bad[lost]);
            self.bad[lost] = self.good[lost - 1] * begins + self.bad[lost - 1] * (1.0 - ends);
            self.good[lost] = good * (1.0 - begins) + bad * ends;
        }
        // Of none that are lost the last is not.
        self.good[0] *= 1.0 - begins;
        self.packets += 1;
    }

    /// What stays lost of these packets, in ppb and rounded up, when a block of which no more than
    /// that are lost is made good.
    fn left_ppb(&self, parities: u64) -> u64 {
        if self.loss_ppb == 0 || self.loss_ppb == PPB || parities == 0 {
            return self.loss_ppb;
        }
        let count = usize::try_from(parities).unwrap_or(PARITIES_MAX).min(self.most) + 1;
        let chances = self.good.iter().zip(&self.bad).take(count).map(|(good, bad)| good + bad);
        let made_good: f64 = chances.enumerate().map(|(lost, chance)| lost as f64 * chance).sum();
        let left = (self.loss - made_good / self.packets.max(1) as f64) * PPB as f64;
        // What is so near a whole number is a difference that was rounded; and only nothing gives
        // nothing.
        ((left - 0.001).ceil() as u64).clamp(1, self.loss_ppb)
    }
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
    fn single_losses_are_those_of_a_binomial() {
        // 4 sources and 1 parity at 10 %: a packet stays lost when another of 4 is lost, too.
        let others = 1.0 - 0.9_f64.powi(4);
        let expected = (0.1 * others * 1e9).ceil() as u64;
        assert!(left(PPB / 10, 1_000, 4, 1).abs_diff(expected) <= 1);
        assert_eq!(left(PPB / 10, 1_000, 4, 0), PPB / 10);
        assert_eq!((left(0, 3_000, 4, 1), left(PPB, 3_000, 4, 1)), (0, PPB));
    }

    #[test]
    fn runs_take_more_than_single_losses_do() {
        let of_runs = |burst| left(5_000_000, burst, 20, 3);
        assert!(of_runs(1_000) < of_runs(2_000) && of_runs(2_000) < of_runs(5_000));
        let of_parities = |parities| left(5_000_000, 3_000, 20, parities);
        assert!((1..20).all(|parities| of_parities(parities) > of_parities(parities + 1)));
    }

    #[test]
    fn as_much_stays_lost_as_when_a_chain_is_drawn() {
        let mut random = dacapo_base::Random::from_number(5);
        let (sources, parities, blocks) = (12, 3, 200_000);
        let (loss, burst) = (0.03, 2.5);
        let (ends, mut is_lost, mut stay) = (1.0 / burst, false, 0_u64);
        let begins = loss * ends / (1.0 - loss);
        for _ in 0..blocks {
            let mut lost = 0;
            for _ in 0..sources + parities {
                is_lost ^= random.chance(if is_lost { ends } else { begins });
                lost += u64::from(is_lost);
            }
            stay += if lost > parities { lost } else { 0 };
        }
        let drawn = stay as f64 / (blocks * (sources + parities)) as f64;
        let predicted = left(30_000_000, 2_500, sources, parities) as f64 / 1e9;
        assert!((drawn / predicted - 1.0).abs() < 0.05, "{drawn} drawn, {predicted} predicted");
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
