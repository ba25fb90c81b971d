//! What `latest` does to what is predicted: fewer losses, some of them later, where there is time
//! before a unit is replaced.

use super::super::tries::{GRAIN, back};
use crate::arithmetic::{
    ONE_IN_HUNDRED, apart_ns, both, either, goes_on, packets_per_unit, part, ratio, running,
    unit_apart_ns,
};
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Service, Setting};

/// With more tries nothing is missing that matters.
const TRIES_MAX: u32 = 8;

/// Measured by `dacapo bench cost` on AMD EPYC, the median of five, where every train is a unit
/// that is answered.
const COST: Cost = Cost { train_ps: 154_000, packet_ps: 4_600, byte_ps: 2, wire_milli: 0 };

#[derive(Debug)]
pub(super) struct Newest;

impl Profile for Newest {
    /// Where the newest unit is asked for.
    fn suits(&self, setting: &Setting) -> bool {
        setting.is_newest
    }

    /// - A unit stays lost when it is lost and every try fails for which there is time before a
    ///   newer one replaces it.
    /// - Of those that come 99 of 100 come with the unit itself while fewer than 1 % come by a try;
    ///   else the delay grows by the tries after which fewer are to come.
    /// - What is sent again takes its part of the rate.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let figures = below.figures;
        let loss = figures.loss_ppb.min(PPB);
        let round = figures.delay_ns.saturating_add(back(setting)).saturating_add(GRAIN);
        let most = tries(setting);
        let left = |tries: u32| both(loss, fail(setting, tries));
        let loss_left = left(most);
        let is_to_come = |tries: &u32| left(*tries) - loss_left >= ONE_IN_HUNDRED;
        let needed = (0..most).find(|tries| !is_to_come(tries)).unwrap_or(most);
        let jitter = if loss > 0 { taken(most, round) } else { 0 };
        let packets = self.packets_milli(params, setting);
        Figures {
            loss_ppb: loss_left,
            loss_runs_ppb: figures.loss_runs_ppb.min(loss_left),
            delay_ns: figures.delay_ns.saturating_add(taken(needed, round)),
            jitter_ns: figures.jitter_ns.saturating_add(jitter),
            rate_bps: part(figures.rate_bps, 1_000, packets),
        }
    }

    fn cost(&self, _: &Params) -> Cost {
        COST
    }

    /// Itself, and at most one more for each.
    fn copies(&self, _: &Params) -> u64 {
        2
    }

    fn packets_milli(&self, _: &Params, setting: &Setting) -> u64 {
        let again = if tries(setting) > 0 { ratio(unit_loss(setting), 1_000, PPB) } else { 0 };
        // It is sent again whole, and its answer may be lost, too.
        (1_000 + 2 * again).min(2_000)
    }
}

/// The share of units of which the path loses a packet, at the most.
fn unit_loss(setting: &Setting) -> u64 {
    let packets = packets_per_unit(&setting.units, setting.path.datagram_len);
    setting.path.loss_ppb.saturating_mul(packets).min(PPB)
}

/// The chance that so many tries fail, one after the other: each where it or its answer is lost, or
/// where the run of losses goes on that took the one before it. By the path alone: what is better
/// below must not be worse for it.
fn fail(setting: &Setting, tries: u32) -> u64 {
    let fails = either(unit_loss(setting), setting.path.loss_ppb);
    let round = path_round(setting);
    let one = |tries: u32| {
        let packets = taken(tries, round) / apart_ns(setting);
        // Losses that come one by one say nothing of what is sent next.
        let goes_on = goes_on(&setting.path);
        either(fails, if goes_on > 0 { running(goes_on, packets) } else { 0 })
    };
    (1..=tries).map(one).fold(PPB, both)
}

fn path_round(setting: &Setting) -> u64 {
    back(setting).saturating_mul(2).saturating_add(GRAIN)
}

/// How often a unit can be sent again before a newer one replaces it, by the path alone: what is
/// sooner below must not be worse for it.
fn tries(setting: &Setting) -> u32 {
    let round = path_round(setting);
    let replaced = unit_apart_ns(&setting.units);
    (0..TRIES_MAX).take_while(|tries| taken(tries + 1, round) <= replaced).count() as u32
}

/// How long so many tries take, of which each waits twice as long as the one before it.
fn taken(tries: u32, round: u64) -> u64 {
    round.saturating_mul((1_u64 << tries) - 1)
}
