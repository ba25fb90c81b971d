//! A cell, run once: whole cores over a link that is as the path is assumed, in virtual time.
//!
//! The link reorders within the path's jitter, loses as it says, and alters some packets where
//! integrity is asked. What was asked and does not hold is said in words.

use super::cell::{Asked, Chosen};
use dacapo::spec::Leads;
use dacapo_lift::{PPB, Path};
use dacapo_link::{LinkConfig, Loss};
use dacapo_netlab::scenario::{Scenario, run as run_scenario};
use dacapo_netlab::traffic::Pattern;
use dacapo_qos::{AttributeKey, Attributes};
use std::time::Duration;

/// How many units a run has: enough that a bound on loss allows this many of them.
const LOST_MIN: u64 = 400;

/// And no more nor fewer than these.
const UNITS: std::ops::RangeInclusive<u64> = 2_000..=100_000;

/// Times on the wire are cut to microseconds.
const GRAIN: Duration = Duration::from_micros(1);

/// What was seen of a run.
pub struct Seen {
    /// Units that were sent.
    pub sent: u64,
    /// Units that never came.
    pub lost: u64,
    /// What 99 of 100 units did not exceed, from when they were made to when they were passed on.
    pub delay_p99: Duration,
    /// What was asked and does not hold.
    pub broken: Vec<String>,
}

/// Runs a cell's flow with what was chosen.
///
/// # Errors
/// It could not run.
pub fn run(asked: &Asked, chosen: &Chosen, seed: u64) -> Result<Seen, String> {
    let Asked { attributes, path, every } = asked;
    let most = |key| attributes.get(key).and_then(|it| it.max);
    let loss_max = most(AttributeKey::Loss);
    let count = loss_max.map_or(*UNITS.start(), |bound| LOST_MIN * PPB / bound.max(1));
    let count = count.clamp(*UNITS.start(), *UNITS.end());
    let len = chosen.offer.unit_len_max as usize;
    let mut scenario = Scenario::new(seed, link(path, is_checked(attributes)));
    scenario.pattern = Pattern { count, every: *every, len_min: len, len_max: len, seed };
    scenario.offer = Some(chosen.offer.clone());
    scenario.time_max = *every * count as u32 + Duration::from_secs(60);
    scenario.controller = dacapo::Catalogue::default().usual_controller(Leads::Elsewhere).cloned();
    scenario.steps_per_visit = 0;
    let outcome = run_scenario(&scenario);
    if !outcome.closes() {
        return Err(format!("the flow did not end, seed {seed}: {:?}", outcome.error));
    }
    let record = outcome.record;
    let lost = count - record.numbers.len() as u64;
    let mut waits = record.waits;
    waits.sort_unstable();
    let delay_p99 = waits.get(waits.len() * 99 / 100).copied().unwrap_or_default();
    let mut broken = Vec::new();
    if let Some(bound) = loss_max.filter(|bound| lost * PPB > bound * count) {
        broken.push(format!("{lost} of {count} lost, {bound} ppb may be, seed {seed}"));
    }
    if let Some(bound) = most(AttributeKey::Delay).filter(|it| delay_p99.as_nanos() > (*it).into())
    {
        broken.push(format!("99 of 100 take {delay_p99:?}, {bound} ns may be, seed {seed}"));
    }
    let latest = waits.last().copied().unwrap_or_default();
    let is_older = |bound: &u64| latest > Duration::from_nanos(*bound) + GRAIN;
    if let Some(bound) = most(AttributeKey::Deadline).filter(is_older) {
        broken
            .push(format!("one was handed over after {latest:?}, {bound} ns may be, seed {seed}"));
    }
    if attributes.get(AttributeKey::Order).is_some() && !record.numbers.is_sorted() {
        broken.push(format!("units came out of order, seed {seed}"));
    }
    if attributes.newest() && record.numbers.last().copied() != Some(count - 1) {
        broken.push(format!("the newest unit did not come, seed {seed}"));
    }
    if is_checked(attributes) && record.altered > 0 {
        broken.push(format!("{} units were altered, seed {seed}", record.altered));
    }
    Ok(Seen { sent: count, lost, delay_p99, broken })
}

fn is_checked(asked: &Attributes) -> bool {
    asked.get(AttributeKey::Integrity).is_some()
}

/// A link that is as the path is assumed; where it alters packets, one in a thousand.
fn link(path: &Path, alters: bool) -> LinkConfig {
    let jitter = Duration::from_nanos(path.jitter_ns / 2);
    let loss = path.loss_ppb as f64 / PPB as f64;
    let loss = match path.burst_milli {
        0..=1_000 => Loss::Random { p: loss },
        burst => Loss::burst(loss, burst as f64 / 1e3).unwrap_or(Loss::Random { p: loss }),
    };
    LinkConfig {
        delay: Duration::from_nanos(path.delay_ns) + jitter,
        jitter,
        keep_order: false,
        loss,
        corrupt_undetected: if alters { 0.001 } else { 0.0 },
        rate_bits_per_s: Some(path.rate_bps),
        ..LinkConfig::default()
    }
}
