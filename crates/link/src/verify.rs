//! [`verify`]: the emulator against what its configuration promises.
//!
//! It runs items through links and compares every observed figure with the closed form of
//! `model.rs`, within a stated tolerance.
//!
//! ```text
//!   run          what is on                     figures
//!   apart        all, items far apart           loss, bursts, duplicates, corruption, delay,
//!                (no windows, no MTU)           jitter; and the record (`Fate`) against arrivals
//!   hold-back    reorder only                   reorder rate, mean hold-back
//!   saturated    rate and queue, in one burst   rate, length of the queue
//!   trace        the trace, in one burst        what it carries in its first pass
//!   standing     CoDel, a fifth too much sent   how often it drops
//!   crowd        the bound on items in flight   the bound
//!   rules        windows and MTU at their edges verdicts
//! ```
//!
//! DualPI2 is in the first run only, in which nothing waits: what it does to a queue depends on who
//! sends, and has no closed form.
//!
//! Tolerance: five standard errors, plus five events per number of items for rare ones (the second
//! term of Bernstein's inequality); a right emulator exceeds it about once in two million figures.
//! Rules, bounds and probabilities of 0 and 1 are exact. Everything is seen from outside: the
//! arrivals count, and the emulator's own record has to agree with them, item by item.

use crate::aqm::Aqm;
use crate::carry::{Carry, Corruption};
use crate::config::{ConfigError, LinkConfig, QueueLimit};
use crate::engine::Link;
use crate::fate::{Delivery, DropReason, Fate, Passage};
use crate::model::{self, Moments};
use crate::report::{Report, SIGMAS, Sample, share_tolerance};
use crate::trace::{Trace, TraceSource};
use dacapo_base::{Random, Time};
use std::time::Duration;

/// The rounding of times to nanoseconds, in seconds.
const ROUNDING_S: f64 = 2e-9;
/// The length of a test item, bytes.
const ITEM_LEN: usize = 1_000;
/// Room for whatever is sent.
const WIDE: QueueLimit =
    QueueLimit { packets: LinkConfig::QUEUE_PACKETS_MAX, bytes: LinkConfig::QUEUE_BYTES_MAX };
/// The shortest interval of CoDel that is looked at: of shorter ones whole nanoseconds are no
/// hundredths any more.
const STANDING_INTERVAL_MIN: Duration = Duration::from_millis(1);
/// How many drops CoDel may be off in twenty intervals.
const STANDING_TOLERANCE: f64 = 3.0;
/// With fewer bursts the mean length says nothing.
const BURST_COUNT_MIN: usize = 30;

/// Runs `count` items (at least one) through links with `config` and compares what they do with
/// what `config` promises.
///
/// # Errors
/// When the configuration is not valid.
pub fn verify(config: &LinkConfig, seed: u64, count: usize) -> Result<Report, ConfigError> {
    verify_against(config, config, seed, count)
}

/// As [`verify`], but compares what `running` does with what `promised` promises: with two
/// different configurations it shows what the verification can tell apart.
///
/// # Errors
/// When one of the configurations is not valid.
pub fn verify_against(
    running: &LinkConfig,
    promised: &LinkConfig,
    seed: u64,
    count: usize,
) -> Result<Report, ConfigError> {
    promised.validate()?;
    let mut random = Random::from_number(seed);
    let spacing_ns = spacing(running).as_nanos().max(1);
    // The clock ends after 584 years.
    let fitting = usize::try_from(u128::from(u64::MAX / 4) / spacing_ns).unwrap_or(usize::MAX);
    let count = count.clamp(1, fitting.max(1));
    let mut report = Report { seed, count, figures: Vec::new() };
    verify_apart(&mut report, running, promised, random.fork())?;
    verify_hold_back(&mut report, running, promised, random.fork())?;
    verify_saturated(&mut report, running, promised, random.fork())?;
    verify_crowd(&mut report, running, promised, random.fork())?;
    verify_rules(&mut report, running, promised, random.fork())?;
    verify_trace(&mut report, running, promised, random.fork())?;
    verify_standing(&mut report, running, promised, random.fork())?;
    Ok(report)
}

/// An item that knows whether it was altered.
#[derive(Clone, Debug)]
struct Probe {
    len: usize,
    altered: bool,
}

impl Probe {
    const fn of(len: usize) -> Self {
        Self { len, altered: false }
    }
}

impl Carry for Probe {
    fn len(&self) -> usize {
        self.len
    }

    fn corrupt(&mut self, _random: &mut Random, _kind: Corruption) {
        self.altered = true;
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

/// So far apart that no item meets another one.
fn spacing(config: &LinkConfig) -> Duration {
    let way = config.delay + config.jitter_shape.reach(config.jitter) + config.reorder_by;
    way + Duration::from_secs_f64(3.0 * transmission_s(config)) + Duration::from_millis(1)
}

fn transmission_s(config: &LinkConfig) -> f64 {
    config.rate_bits_per_s.map_or(0.0, |rate| ITEM_LEN as f64 * 8.0 / rate as f64)
}

/// What the run with items far apart showed.
#[derive(Default)]
struct Apart {
    /// Whether each item was lost (not: corrupted).
    lost: Vec<bool>,
    copies: usize,
    eaten: usize,
    altered: usize,
    /// The delays of arrived items (not of copies), seconds, and whether they were held back.
    delays_s: Vec<(f64, bool)>,
    /// Items whose arrivals were not what the record said.
    disagreements: usize,
}

impl Apart {
    fn run(config: &LinkConfig, random: Random, count: usize) -> Result<Self, ConfigError> {
        let mut config = LinkConfig { partitions: Vec::new(), mtu: None, ..config.clone() };
        // How long one waits for an opportunity is the trace's alone; and a copy waits for its
        // original, for which a slow link may drop it.
        if config.trace.take().is_some() || config.duplicate > 0.0 {
            config.aqm = None;
        }
        let spacing = spacing(&config);
        let mut link = Link::new(config, random)?;
        let mut seen = Self::default();
        let mut now = Time::ZERO;
        for _ in 0..count {
            let fate = link.handle_send(now, Probe::of(ITEM_LEN));
            let mut agreed = link.closes();
            now += spacing;
            let arrivals: Vec<_> = std::iter::from_fn(|| link.poll_deliver(now)).collect();
            agreed &= link.in_flight() == 0 && link.closes() && agrees(&fate, &arrivals);
            seen.disagreements += usize::from(!agreed);
            seen.add(&fate, &arrivals);
        }
        Ok(seen)
    }

    fn add(&mut self, fate: &Fate, arrivals: &[Delivery<Probe>]) {
        let lost = [DropReason::LossRandom, DropReason::LossBurst].map(Passage::Dropped);
        self.lost.push(lost.contains(&fate.item));
        self.copies += usize::from(fate.copy.is_some());
        self.eaten += usize::from(fate.item == Passage::Dropped(DropReason::Corrupted));
        let held = fate.item.as_accepted().is_some_and(|(held_back, _)| !held_back.is_zero());
        for arrival in arrivals.iter().filter(|arrival| !arrival.copy) {
            self.altered += usize::from(arrival.item.altered);
            self.delays_s.push((arrival.delivered.since(arrival.sent).as_secs_f64(), held));
        }
    }

    fn survivors(&self) -> usize {
        self.lost.iter().filter(|&&lost| !lost).count()
    }

    /// The lengths of the runs of consecutive losses.
    fn bursts(&self) -> Vec<f64> {
        let runs = self.lost.split(|&lost| !lost);
        runs.filter(|run| !run.is_empty()).map(|run| run.len() as f64).collect()
    }
}

/// Whether exactly that arrived which the record says.
fn agrees(fate: &Fate, arrivals: &[Delivery<Probe>]) -> bool {
    let said = [(Some(fate.item), false), (fate.copy, true)];
    let arrived = said.iter().filter_map(|(passage, copy)| {
        let passage = (*passage)?;
        passage.as_accepted().map(|(_, corrupted)| (passage, corrupted, *copy))
    });
    arrived.clone().count() == arrivals.len()
        && arrived.clone().all(|(passage, corrupted, copy)| {
            arrivals.iter().any(|arrival| {
                // When one comes that waits is not said.
                let is_then = match passage {
                    Passage::Arrives { due, .. } => arrival.delivered == due,
                    _ => true,
                };
                arrival.copy == copy
                    && is_then
                    && arrival.corrupted == corrupted
                    && arrival.item.altered == corrupted
            })
        })
}

fn verify_apart(
    report: &mut Report,
    running: &LinkConfig,
    promised: &LinkConfig,
    random: Random,
) -> Result<(), ConfigError> {
    let seen = Apart::run(running, random, report.count)?;
    let survivors = seen.survivors();
    add_loss(report, promised, &seen);
    let chance = Moments::of_chance;
    report.add_share("duplicated", chance(promised.duplicate), seen.copies, survivors);
    report.add_share("corrupted, detected", chance(promised.corrupt), seen.eaten, survivors);
    let undetected = chance(promised.corrupt_undetected);
    report.add_share("corrupted, undetected", undetected, seen.altered, survivors);
    add_delay(report, promised, &seen.delays_s);
    report.add_exact("record disagrees", 0.0, seen.disagreements as f64);
    Ok(())
}

fn add_loss(report: &mut Report, promised: &LinkConfig, seen: &Apart) {
    let apart = spacing(promised);
    let expected = model::loss(&promised.loss, apart);
    let stretch = model::loss_stretch(&promised.loss, apart);
    let tolerance = share_tolerance(expected.variance, report.count, stretch);
    let observed = 1.0 - seen.survivors() as f64 / report.count as f64;
    report.add("lost", "", (expected.mean, observed), tolerance);
    let bursts = seen.bursts();
    let Some(expected_len) = model::burst_len(&promised.loss, apart) else { return };
    if bursts.len() >= BURST_COUNT_MIN {
        let Sample { mean, variance, .. } = Sample::of(&bursts);
        // The runs of a general chain vary a little more than geometric ones: trust the larger.
        let variance = variance.max(expected_len * (expected_len - 1.0));
        let count = bursts.len() as f64;
        let tolerance = SIGMAS * ((variance / count).sqrt() + expected_len / count);
        report.add("mean burst", "items", (expected_len, mean), tolerance);
    }
}

fn add_delay(report: &mut Report, promised: &LinkConfig, delays_s: &[(f64, bool)]) {
    if delays_s.is_empty() {
        return;
    }
    let (jittered, hold) = (model::delay(promised), model::hold(promised));
    let transmission_s = transmission_s(promised);
    let all: Vec<f64> = delays_s.iter().map(|&(delay_s, _)| delay_s).collect();
    let expected = jittered.mean + hold.mean + transmission_s;
    let error = ((jittered.variance + hold.variance) / all.len() as f64).sqrt();
    let tolerance = SIGMAS * error + ROUNDING_S;
    report.add("mean delay", "s", (expected, Sample::of(&all).mean), tolerance);
    let reach = promised.jitter_shape.reach(promised.jitter).as_secs_f64();
    let centre = promised.delay.as_secs_f64() + transmission_s;
    let held = if promised.reorder > 0.0 { promised.reorder_by.as_secs_f64() } else { 0.0 };
    let least = (centre - reach).max(transmission_s) - ROUNDING_S;
    let range = least..=centre + reach + held + ROUNDING_S;
    let outside = all.iter().filter(|delay_s| !range.contains(delay_s)).count();
    report.add_exact("delays out of range", 0.0, outside as f64);
    let free: Vec<f64> =
        delays_s.iter().filter(|(_, held)| !held).map(|&(delay_s, _)| delay_s - centre).collect();
    add_jitter(report, promised, jittered.variance.sqrt(), &free);
}

/// `offsets_s`: the delays of items that were not held back, less the centre.
fn add_jitter(report: &mut Report, promised: &LinkConfig, spread: f64, offsets_s: &[f64]) {
    let count = offsets_s.len();
    if count < 2 {
        return;
    }
    let sample = Sample::of(offsets_s);
    let tolerance = SIGMAS * sample.deviation_error().max(spread / (2.0 * count as f64).sqrt());
    let observed = sample.variance.sqrt();
    report.add("jitter, deviation", "s", (spread, observed), tolerance + ROUNDING_S);
    if let Some(share) = model::share_near_centre(promised) {
        let half = promised.jitter.as_secs_f64() / 2.0;
        let near = offsets_s.iter().filter(|offset_s| offset_s.abs() <= half).count();
        report.add_share("jitter, near its centre", Moments::of_chance(share), near, count);
    }
}

fn verify_hold_back(
    report: &mut Report,
    running: &LinkConfig,
    promised: &LinkConfig,
    random: Random,
) -> Result<(), ConfigError> {
    if running.reorder <= 0.0 && promised.reorder <= 0.0 {
        return Ok(());
    }
    let LinkConfig { reorder, reorder_by, .. } = *running;
    let only = LinkConfig { reorder, reorder_by, ..LinkConfig::default() };
    let delays_s = Apart::run(&only, random, report.count)?.delays_s.into_iter();
    let held: Vec<f64> = delays_s.map(|(delay_s, _)| delay_s).filter(|&s| s > 0.0).collect();
    let chance = Moments::of_chance(promised.reorder);
    report.add_share("reordered", chance, held.len(), report.count);
    if !held.is_empty() {
        let expected = model::hold_of_held(promised);
        let tolerance = SIGMAS * (expected.variance / held.len() as f64).sqrt() + ROUNDING_S;
        report.add("mean hold-back", "s", (expected.mean, Sample::of(&held).mean), tolerance);
    }
    Ok(())
}

fn verify_saturated(
    report: &mut Report,
    running: &LinkConfig,
    promised: &LinkConfig,
    mut random: Random,
) -> Result<(), ConfigError> {
    if running.rate_bits_per_s.is_none() && promised.rate_bits_per_s.is_none() {
        return Ok(());
    }
    let shaped = LinkConfig {
        rate_bits_per_s: running.rate_bits_per_s,
        queue: running.queue,
        in_flight_max: LinkConfig::IN_FLIGHT_MAX,
        ..LinkConfig::default()
    };
    let count = report.count.min(10_000);
    let (sent, last) = burst(LinkConfig { queue: WIDE, ..shaped.clone() }, random.fork(), count)?;
    let observed = (sent * ITEM_LEN * 8) as f64 / last.as_secs_f64();
    let configured = promised.rate_bits_per_s.map_or(f64::INFINITY, |rate| rate as f64);
    let rounding = observed * ROUNDING_S / last.as_secs_f64();
    report.add("rate", "bit/s", (configured, observed), rounding + 1e-9 * observed);
    let fitting = 1 + promised.queue.packets.min(promised.queue.bytes / ITEM_LEN);
    if fitting < report.count {
        // One more than fits, and room to see a queue that is too long.
        let (sent, _) = burst(shaped, random, report.count)?;
        report.add_exact("queue and transmitter", fitting as f64, sent as f64);
    }
    Ok(())
}

/// Sends `count` items at once; how many arrive, and when the last one does.
fn burst(config: LinkConfig, random: Random, count: usize) -> Result<(usize, Time), ConfigError> {
    let mut link = Link::new(config, random)?;
    for _ in 0..count {
        let _ = link.handle_send(Time::ZERO, Probe::of(ITEM_LEN));
    }
    let arrivals = std::iter::from_fn(|| link.poll_deliver(Time::NEVER));
    Ok(arrivals.fold((0, Time::ZERO), |(n, last), next| (n + 1, last.max(next.delivered))))
}

fn verify_trace(
    report: &mut Report,
    running: &LinkConfig,
    promised: &LinkConfig,
    random: Random,
) -> Result<(), ConfigError> {
    let Some(promise) = promised.trace.as_ref().map(TraceSource::trace) else { return Ok(()) };
    // Up to the time of this opportunity; others may be at the same one.
    let at_ms = promise.at_ms();
    let number = at_ms.len().min(report.count);
    let Some(&until_ms) = number.checked_sub(1).and_then(|last| at_ms.get(last)) else {
        return Ok(());
    };
    // Those at 0 are gone when the first item is there, and come again when the trace ends.
    let count = |from, to| at_ms.iter().filter(|ms| (from..=to).contains(*ms)).count();
    let is_whole = at_ms.last() == Some(&until_ms);
    let used = count(1, until_ms) + if is_whole { count(0, 0) } else { 0 };
    let fitting = used * Trace::OPPORTUNITY_LEN / ITEM_LEN;
    let only = LinkConfig {
        rate_bits_per_s: running.rate_bits_per_s,
        trace: running.trace.clone(),
        queue: WIDE,
        in_flight_max: LinkConfig::IN_FLIGHT_MAX,
        ..LinkConfig::default()
    };
    let mut link = Link::new(only, random)?;
    for _ in 0..=fitting {
        let _ = link.handle_send(Time::ZERO, Probe::of(ITEM_LEN));
    }
    let until = Time::from_millis(until_ms.into());
    let arrived = std::iter::from_fn(|| link.poll_deliver(until)).count();
    report.add_exact("trace, items in its time", fitting as f64, arrived as f64);
    Ok(())
}

/// A queue that stands because a fifth more is sent than leaves, whatever is dropped: CoDel drops
/// by its law. Other laws of the one that runs are seen in the same time.
fn verify_standing(
    report: &mut Report,
    running: &LinkConfig,
    promised: &LinkConfig,
    random: Random,
) -> Result<(), ConfigError> {
    let Some(Aqm::CoDel { target, interval }) = promised.aqm else { return Ok(()) };
    // A longer wait than this takes more items than a test has.
    if interval < STANDING_INTERVAL_MIN || target > interval * 10 {
        return Ok(());
    }
    let service = interval / 100;
    let rate = (ITEM_LEN as f64 * 8.0 / service.as_secs_f64()).ceil() as u64;
    let only = LinkConfig {
        rate_bits_per_s: Some(rate),
        aqm: running.aqm,
        queue: WIDE,
        in_flight_max: LinkConfig::IN_FLIGHT_MAX,
        ..LinkConfig::default()
    };
    let end = Time::ZERO + model::codel_first_drop(target, interval, service) + interval * 20;
    let mut link = Link::new(only, random)?;
    let mut now = Time::ZERO;
    while now < end {
        let _ = link.handle_send(now, Probe::of(ITEM_LEN));
        while link.poll_deliver(now).is_some() {}
        now += service * 5 / 6;
    }
    let expected = model::codel_drops(20.0);
    let dropped = link.stats().dropped_aqm as f64;
    // When it begins is known to a few items, in which it drops a few times at the end.
    report.add("CoDel, drops of a standing queue", "", (expected, dropped), STANDING_TOLERANCE);
    Ok(())
}

fn verify_crowd(
    report: &mut Report,
    running: &LinkConfig,
    promised: &LinkConfig,
    random: Random,
) -> Result<(), ConfigError> {
    if promised.in_flight_max >= report.count {
        return Ok(());
    }
    let in_flight_max = running.in_flight_max;
    let only = LinkConfig { in_flight_max, ..LinkConfig::default() };
    let (arrived, _) = burst(only, random, report.count)?;
    report.add_exact("in flight, most", promised.in_flight_max as f64, arrived as f64);
    Ok(())
}

fn verify_rules(
    report: &mut Report,
    running: &LinkConfig,
    promised: &LinkConfig,
    random: Random,
) -> Result<(), ConfigError> {
    let rules = |config: &LinkConfig| LinkConfig {
        partitions: config.partitions.clone(),
        mtu: config.mtu,
        in_flight_max: LinkConfig::IN_FLIGHT_MAX,
        ..LinkConfig::default()
    };
    let (running, promised) = (rules(running), rules(promised));
    let (times, lens) = edges(&[&running, &promised]);
    if times.is_empty() {
        return Ok(());
    }
    let mut link = Link::new(running, random)?;
    let mut wrong = 0_usize;
    for &now in &times {
        for &len in &lens {
            let fate = link.handle_send(now, Probe::of(len));
            while link.poll_deliver(now).is_some() {}
            wrong += usize::from(fate.item != ruled(&promised, now, len));
        }
    }
    report.add_exact("wrong verdicts of rules", 0.0, wrong as f64);
    Ok(())
}

/// The moments and lengths where a rule begins or ends, and their neighbours.
fn edges(configs: &[&LinkConfig]) -> (Vec<Time>, Vec<usize>) {
    let (mut edges, mut lens) = (Vec::new(), vec![ITEM_LEN]);
    for config in configs {
        edges.extend(config.partitions.iter().flat_map(|window| [window.from, window.to]));
        edges.extend(config.mtu.map(|mtu| mtu.from));
        lens.extend(config.mtu.iter().flat_map(|mtu| [mtu.len_max, mtu.len_max.saturating_add(1)]));
    }
    let tick = Duration::from_nanos(1);
    let mut times: Vec<_> = edges.iter().flat_map(|&at| [at - tick, at, at + tick]).collect();
    times.sort_unstable();
    times.dedup();
    (times, lens)
}

/// What the rules alone say.
fn ruled(config: &LinkConfig, now: Time, len: usize) -> Passage {
    let cut = config.partitions.iter().any(|window| (window.from..window.to).contains(&now));
    let small = config.mtu.is_none_or(|mtu| now < mtu.from || len <= mtu.len_max);
    match (cut, small) {
        (true, _) => Passage::Dropped(DropReason::Partition),
        (false, false) => Passage::Dropped(DropReason::Mtu),
        (false, true) => Passage::Arrives { due: now, held_back: Duration::ZERO, corrupted: false },
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
