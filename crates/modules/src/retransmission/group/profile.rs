//! What `nak-group` does to what is predicted: fewer losses, some of them later, for as many
//! packets more as the receiver lacks that lost most.

use super::{DEADLINE, RECEIVERS, SOURCES, SPAN, SPEC};
use crate::arithmetic::{MILLISECOND, ONE_IN_HUNDRED, apart_ns, both, part};
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Service, Setting};

/// Default, reckoned from `fec-rs`, which numbers and keeps as much; not measured.
const COST: Cost = Cost { train_ps: 141_000, packet_ps: 120_000, byte_ps: 4, wire_milli: 0 };

/// How many packets for 1,000 may be sent to repair at most.
const REPAIRS_MAX: u64 = 500;

#[derive(Debug)]
pub(super) struct Repaired;

impl Profile for Repaired {
    /// Never: what groups lose, and that not all of them lose the same, nobody says of a path. Only
    /// by name.
    fn suits(&self, _: &Setting) -> bool {
        false
    }

    /// - A packet stays lost when it is lost and what is sent for it in every round is; as several
    ///   are sent, one of which suffices for one that is missing, that is reckoned as twice as
    ///   likely as the loss of one.
    /// - 99 of 100 come with the packet itself while fewer than 1 % are lost; else the delay grows
    ///   by a round and the rest of a block. Who waits for all waits until the deadline.
    /// - Repairs take their part of the rate.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let figures = below.figures;
        let round = Round::of(params, setting);
        let loss = figures.loss_ppb.min(PPB);
        let deadline = SPEC.value_of(params.values(), DEADLINE);
        let in_time = deadline.min(setting.spare_ns(&figures));
        let rounds = in_time.saturating_sub(round.seen_ns) / round.ns.max(1);
        let fails = setting.path.loss_ppb.min(PPB).saturating_mul(2).min(PPB);
        let left = (0..rounds.min(8)).fold(PPB, |left, _| both(left, fails));
        let loss_left = both(loss, left);
        let is_felt = loss >= ONE_IN_HUNDRED;
        let later = if is_felt { round.seen_ns.saturating_add(round.ns).min(deadline) } else { 0 };
        Figures {
            loss_ppb: loss_left,
            loss_runs_ppb: both(figures.loss_runs_ppb, left).min(loss_left),
            delay_ns: figures.delay_ns.saturating_add(later),
            jitter_ns: figures.jitter_ns.saturating_add(if loss > 0 { deadline } else { 0 }),
            rate_bps: part(figures.rate_bps, 1_000, self.packets_milli(params, setting)),
        }
    }

    fn cost(&self, _: &Params) -> Cost {
        COST
    }

    /// Itself, half a packet more, and how a block has ended.
    fn copies(&self, _: &Params) -> u64 {
        3
    }

    /// For each block as many parities as that receiver lacks that lost most: the mean, and as many
    /// more as the largest of so many draws lies above it; and how each block has ended that is not
    /// full.
    fn packets_milli(&self, params: &Params, setting: &Setting) -> u64 {
        let of_block = Round::of(params, setting).sources as f64;
        let receivers = SPEC.value_of(params.values(), RECEIVERS) as f64;
        let loss = setting.path.loss_ppb.min(PPB) as f64 / PPB as f64;
        let bursts = setting.path.burst_milli.max(1_000) as f64 / 1_000.0;
        let mean = of_block * loss;
        let lacks = mean + (2.0 * mean * bursts * receivers.ln()).sqrt();
        let repairs = (lacks / of_block * 1_000.0).ceil() as u64;
        let is_full = of_block >= SPEC.value_of(params.values(), SOURCES) as f64;
        let ended = if is_full { 0 } else { (1_000.0 / of_block).ceil() as u64 };
        1_000 + repairs.min(REPAIRS_MAX) + ended
    }
}

/// A round of asking on a path.
struct Round {
    /// How many packets a block has.
    sources: u64,
    /// How long it takes until a loss is noticed.
    seen_ns: u64,
    /// How long one asks, and is answered.
    ns: u64,
}

impl Round {
    fn of(params: &Params, setting: &Setting) -> Self {
        let value = |number| SPEC.value_of(params.values(), number);
        let (most, span) = (value(SOURCES), value(SPAN).min(value(DEADLINE) / 4));
        let apart = apart_ns(setting).max(1);
        let sources = most.min((span / apart).saturating_add(1)).max(1);
        let seen_ns =
            apart.saturating_mul(sources).min(span).saturating_add(setting.path.jitter_ns);
        // There and back, and as long again on average before one asks.
        let trip = setting.path.delay_ns.saturating_mul(2);
        Self { sources, seen_ns, ns: trip.saturating_mul(2).saturating_add(MILLISECOND) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{internet, service};

    fn within(ms: u64) -> Params {
        let mut params = Params::new();
        params.set(DEADLINE, ms * MILLISECOND);
        params
    }

    #[test]
    fn each_round_leaves_twice_the_share_that_is_lost() {
        let setting = internet(20_000, 60_000);
        let loss = |ms| Repaired.figures(&within(ms), &setting, &service()).loss_ppb;
        let below = service().figures.loss_ppb;
        assert_eq!(loss(5), below, "there is no time to ask");
        let fails = setting.path.loss_ppb * 2;
        assert_eq!(loss(250), both(below, fails));
        assert_eq!(loss(300), both(below, both(fails, fails)));
    }

    #[test]
    fn more_receivers_lack_more() {
        let setting = internet(20_000, 60_000);
        let of = |receivers| {
            let mut params = within(400);
            params.set(RECEIVERS, receivers);
            Repaired.packets_milli(&params, &setting) - 1_000
        };
        assert!(of(1) < of(16) && of(16) < of(1_000) && of(10_000) <= REPAIRS_MAX + 100);
    }
}
