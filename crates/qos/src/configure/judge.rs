//! [`Judge`]: what is asked, against what a candidate would give.
//!
//! For each candidate the demands that it breaks, and among those that break none the one with the
//! lowest *score*. A score is the cost in relation to the cheapest feasible candidate, and, for
//! each attribute with a weight, how far the value is from the best feasible one:
//!
//! ```text
//!   score = cost / cheapest  +  Σ weight · (value + quantum) / (best + quantum)      in ppm
//! ```
//!
//! with a quantum of 1 ppm for loss and 1 ms for delay, jitter and deadline, so that nothing is
//! made of tiny differences; throughput is `best / value`; cpu has no quantum. A property
//! that is weighted (order, integrity, confidentiality, authenticity) costs its whole weight where
//! it is missing. `confidentiality = preferred` and `authenticity = preferred` are weights of 100 %
//! where no weight is given: what keeps them may cost twice as much as the cheapest candidate.
//!
//! | demand                          | is broken when                                             |
//! |---------------------------------|------------------------------------------------------------|
//! | throughput                      | rate < min; bound of the flow > max                        |
//! | delay, deadline                 | delay > max; the playout delay that is given > max         |
//! | deadline                        | also: what is late is handed over, unless units are played |
//! | jitter                          | jitter > max, unless units are played, which evens it out  |
//! | loss                            | 0: losses are not repaired; else loss > max                |
//! | order, integrity                | the property is missing                                    |
//! | duplicates, priority, share     | never: the flow keeps them, whatever the graph             |
//! | frame_rate                      | the units come at another rate                             |
//! | cpu, receivers                  | cpu of one receiver, times the receivers, > max            |
//! | confidentiality, authenticity   | required (group, source) and the property is missing       |
//! | unit size                       | a unit does not fit a packet, and nothing joins or cuts    |
//! | playout                         | delay > the playout delay that is given                    |
//!
//! Invariants: breaking is monotone: whoever serves better and costs less breaks no more. Relaxing
//! a demand never makes a feasible candidate infeasible.

use super::demand::{Demand, DemandSet};
use super::outcome::{End, Facts};
use super::request::{Request, Use};
use crate::attribute::{AttributeKey, Requirement, level};
use dacapo_lift::Property;

const PPM: u128 = 1_000_000;
/// The weight of a preferred property, in percent.
const PREFERRED: u8 = 100;

/// A candidate and what it breaks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged<'e> {
    pub end: &'e End,
    /// Each of them is broken by itself.
    pub broken: DemandSet,
    /// The processor time is too much only because there are several receivers.
    pub crowded: bool,
}

/// A demand that counts beyond its bounds.
#[derive(Clone, Copy, Debug)]
struct Soft {
    demand: Demand,
    key: AttributeKey,
    percent: u8,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) struct Judge<'r> {
    pub request: &'r Request,
    /// All demands that there are.
    pub asked: DemandSet,
    /// The demands that the given playout delay itself exceeds.
    pub clash: DemandSet,
    soft: Vec<Soft>,
    pub receivers: u64,
}

const CPU: Demand = Demand::Attribute(AttributeKey::Cpu);
const RECEIVERS: Demand = Demand::Attribute(AttributeKey::Receivers);

impl<'r> Judge<'r> {
    pub fn new(request: &'r Request) -> Self {
        let attributes = &request.attributes;
        let keys = attributes.entries().map(|(key, _)| Demand::Attribute(key));
        let playout = request.playout_ns().map(|_| Demand::Playout);
        let asked = keys.chain([Demand::UnitSize]).chain(playout).collect();
        let clashes = |key: &AttributeKey| {
            let bound = attributes.get(*key).and_then(|requirement| requirement.max);
            bound.zip(request.playout_ns()).is_some_and(|(bound, playout)| playout > bound)
        };
        let timed = [AttributeKey::Delay, AttributeKey::Deadline].into_iter().filter(clashes);
        let soft = attributes.entries().filter_map(|(key, asked)| soft(key, &asked, request.used));
        let receivers = attributes.get(AttributeKey::Receivers).and_then(|asked| asked.min);
        Self {
            request,
            asked,
            clash: timed.map(Demand::Attribute).collect(),
            soft: soft.collect(),
            receivers: receivers.unwrap_or(1).max(1),
        }
    }

    /// What each candidate breaks, in the order of the candidates.
    pub fn all<'e>(&self, ends: &'e [End]) -> Vec<Judged<'e>> {
        ends.iter().map(|end| self.judged(end)).collect()
    }

    /// What a candidate breaks.
    pub fn judged<'e>(&self, end: &'e End) -> Judged<'e> {
        let cpu_max = self.asked_of(AttributeKey::Cpu).and_then(|asked| asked.max);
        let together = end.facts.cpu_ppb.saturating_mul(self.receivers);
        let crowded = cpu_max.is_some_and(|max| end.facts.cpu_ppb <= max && together > max);
        Judged { end, broken: self.broken(&end.facts), crowded }
    }

    pub fn asked_of(&self, key: AttributeKey) -> Option<&Requirement> {
        self.request.attributes.get(key)
    }

    fn broken(&self, facts: &Facts) -> DemandSet {
        let late =
            self.request.playout_ns().is_some_and(|playout| facts.figures.delay_ns > playout);
        let others = [(Demand::UnitSize, !facts.fits), (Demand::Playout, late)];
        let others = others.into_iter().filter(|(_, broken)| *broken).map(|(demand, _)| demand);
        let entries = self.request.attributes.entries();
        let keys = entries.filter(|(key, asked)| self.breaks(*key, asked, facts));
        others.chain(keys.map(|(key, _)| Demand::Attribute(key))).collect()
    }

    fn breaks(&self, key: AttributeKey, asked: &Requirement, facts: &Facts) -> bool {
        let below_min = |value: u64| asked.min.is_some_and(|min| value < min);
        let above_max = |value: u64| asked.max.is_some_and(|max| value > max);
        let lacks = |property: Property| !facts.properties.contains(property);
        let figures = &facts.figures;
        match key {
            AttributeKey::Throughput => below_min(figures.rate_bps) || above_max(self.bound_bps()),
            AttributeKey::Delay => above_max(figures.delay_ns),
            AttributeKey::Deadline => above_max(figures.delay_ns) || self.lets_late_pass(facts),
            AttributeKey::Jitter => {
                self.request.used == Use::Handed && above_max(figures.jitter_ns)
            }
            AttributeKey::Loss if asked.max == Some(0) => lacks(Property::NoLoss),
            AttributeKey::Loss => above_max(figures.loss_ppb),
            AttributeKey::FrameRate => {
                below_min(self.units_per_s_millionths()) || above_max(self.units_per_s_millionths())
            }
            AttributeKey::Cpu => above_max(facts.cpu_ppb),
            AttributeKey::Duplicates
            | AttributeKey::Priority
            | AttributeKey::Share
            | AttributeKey::Receivers => false,
            AttributeKey::Order
            | AttributeKey::Integrity
            | AttributeKey::Confidentiality
            | AttributeKey::Authenticity
            | AttributeKey::Newest => below_min(level_kept(key, facts)) && is_hard(key, asked),
        }
    }

    /// Whether units that come after their deadline would be handed over.
    pub fn lets_late_pass(&self, facts: &Facts) -> bool {
        let asked = self.asked_of(AttributeKey::Deadline).and_then(|asked| asked.max);
        let is_above = asked.is_some_and(|max| facts.age_ns_max > max);
        is_above && self.request.used == Use::Handed
    }

    /// The rate that the flow is held to.
    pub fn bound_bps(&self) -> u64 {
        let bound = self.request.setting.bound_bps;
        if bound == 0 { u64::MAX } else { bound }
    }

    /// Units per second, in millionths.
    pub fn units_per_s_millionths(&self) -> u64 {
        self.request.setting.units.per_ks.saturating_mul(1_000)
    }

    /// The latest moment at which units may be shown, as far as it is bounded.
    pub fn playout_bound_ns(&self) -> u64 {
        self.request.attributes.useful_ns().unwrap_or(u64::MAX)
    }

    /// Whether a candidate breaks none of these demands.
    pub fn is_feasible(&self, judged: &Judged<'_>, active: DemandSet) -> bool {
        !active.intersects(judged.broken)
            && !self.is_crowded(judged, active)
            && !self.clashes(active)
    }

    fn is_crowded(&self, judged: &Judged<'_>, active: DemandSet) -> bool {
        judged.crowded && active.contains(CPU) && active.contains(RECEIVERS)
    }

    /// Whether the given playout delay is later than one of these demands allows.
    fn clashes(&self, active: DemandSet) -> bool {
        active.contains(Demand::Playout) && active.intersects(self.clash)
    }

    /// The demands of `active` that have to go, or to change, so that the candidate is feasible; of
    /// two of which one is enough, the one that says less about the flow.
    pub fn in_the_way(&self, judged: &Judged<'_>, active: DemandSet) -> DemandSet {
        let of = |broken: bool, demand: Demand| {
            if broken { DemandSet::one(demand) } else { DemandSet::EMPTY }
        };
        DemandSet::EMPTY
            .with(judged.broken.intersection(active))
            .with(of(self.is_crowded(judged, active), RECEIVERS))
            .with(of(self.clashes(active), Demand::Playout))
    }

    /// The sets of demands of which each is the least that has to go for this candidate, where the
    /// request as a whole is feasible.
    pub fn least_in_the_way(&self, judged: &Judged<'_>) -> Vec<DemandSet> {
        if !self.is_crowded(judged, self.asked) {
            return vec![judged.broken];
        }
        [CPU, RECEIVERS].map(|demand| judged.broken.with(DemandSet::one(demand))).into()
    }

    /// The demands that count beyond their bounds.
    pub fn weighted(&self) -> DemandSet {
        self.soft.iter().map(|soft| soft.demand).collect()
    }

    /// The best of the feasible candidates, which come in their order ([`End::order`]).
    pub fn best<'j, 'e>(
        &self,
        judged: &'j [Judged<'e>],
        active: DemandSet,
    ) -> Option<&'j Judged<'e>> {
        let feasible = || judged.iter().filter(|judged| self.is_feasible(judged, active));
        let soft = || self.soft.iter().filter(|soft| active.contains(soft.demand));
        let cheapest = feasible().next()?.end.facts.work_ps.max(1);
        if soft().next().is_none() {
            return feasible().next();
        }
        let best = |soft: &Soft| feasible().map(|judged| value(soft.key, &judged.end.facts)).min();
        let scales: Vec<(&Soft, u64)> =
            soft().filter_map(|soft| best(soft).map(|value| (soft, value))).collect();
        // Of equals the first counts, which is the first in their order.
        feasible().min_by_key(|judged| {
            let facts = &judged.end.facts;
            let cost = ppm(facts.work_ps, cheapest);
            let parts = scales.iter().map(|(soft, best)| penalty(soft, *best, facts));
            parts.fold(cost, u128::saturating_add)
        })
    }

    /// Those of the candidates, which come in their order, that can be the best one for some set of
    /// active demands: no earlier one breaks as little and is as good in all that counts.
    pub fn useful<'e>(&self, judged: Vec<Judged<'e>>) -> Vec<Judged<'e>> {
        let mut kept: Vec<Judged<'e>> = Vec::new();
        for judged in judged {
            if !kept.iter().any(|better| self.replaces(better, &judged)) {
                kept.push(judged);
            }
        }
        kept
    }

    fn replaces(&self, earlier: &Judged<'_>, later: &Judged<'_>) -> bool {
        let as_good =
            |soft: &Soft| value(soft.key, &earlier.end.facts) <= value(soft.key, &later.end.facts);
        // What is cheaper on the whole can still take more processor time.
        let as_calm = !earlier.crowded || later.crowded || later.broken.contains(CPU);
        later.broken.contains_all(earlier.broken) && as_calm && self.soft.iter().all(as_good)
    }
}

/// What of a requirement counts beyond its bounds.
fn soft(key: AttributeKey, asked: &Requirement, used: Use) -> Option<Soft> {
    let counts = match key {
        AttributeKey::Jitter => used == Use::Handed,
        AttributeKey::Duplicates
        | AttributeKey::Priority
        | AttributeKey::Share
        | AttributeKey::FrameRate
        | AttributeKey::Receivers => false,
        _ => true,
    };
    let preferred = is_preferred(key, asked).then_some(PREFERRED);
    let percent = asked.weight.or(preferred).filter(|percent| *percent > 0 && counts)?;
    Some(Soft { demand: Demand::Attribute(key), key, percent })
}

/// Whether a level is asked for where it can be had, and no more.
pub(super) fn is_preferred(key: AttributeKey, asked: &Requirement) -> bool {
    match key {
        AttributeKey::Confidentiality => asked.min == Some(level::CONFIDENTIALITY_PREFERRED),
        AttributeKey::Authenticity => asked.min == Some(level::AUTHENTICITY_PREFERRED),
        _ => false,
    }
}

fn is_hard(key: AttributeKey, asked: &Requirement) -> bool {
    !is_preferred(key, asked)
}

/// The strongest level of an attribute with levels that the properties give.
pub(super) fn level_kept(key: AttributeKey, facts: &Facts) -> u64 {
    let has = |property: Property| facts.properties.contains(property);
    match key {
        AttributeKey::Order if has(Property::Order) => level::ORDERED,
        AttributeKey::Duplicates => level::DUPLICATES_NONE,
        AttributeKey::Integrity if has(Property::Integrity) => level::INTEGRITY_CHECKED,
        AttributeKey::Confidentiality if has(Property::Confidentiality) => {
            level::CONFIDENTIALITY_REQUIRED
        }
        AttributeKey::Authenticity if has(Property::SourceAuthenticity) => {
            level::AUTHENTICITY_SOURCE
        }
        AttributeKey::Authenticity if has(Property::GroupAuthenticity) => level::AUTHENTICITY_GROUP,
        AttributeKey::Newest if has(Property::Newest) || has(Property::NoLoss) => {
            level::NEWEST_ARRIVES
        }
        _ => 0,
    }
}

/// What is compared of a candidate; less is better.
fn value(key: AttributeKey, facts: &Facts) -> u64 {
    let figures = &facts.figures;
    match key {
        AttributeKey::Throughput => u64::MAX.saturating_sub(figures.rate_bps),
        AttributeKey::Delay | AttributeKey::Deadline => figures.delay_ns,
        AttributeKey::Jitter => figures.jitter_ns,
        AttributeKey::Loss => figures.loss_ppb,
        AttributeKey::Cpu => facts.cpu_ppb,
        _ => u64::from(level_kept(key, facts) == 0),
    }
}

/// What a candidate pays for a demand that counts, in ppm.
fn penalty(soft: &Soft, best: u64, facts: &Facts) -> u128 {
    let value = value(soft.key, facts);
    let over = |quantum: u64| {
        ppm(u128::from(value.saturating_add(quantum)), u128::from(best.saturating_add(quantum)))
    };
    let ratio = match soft.key {
        AttributeKey::Throughput => {
            ppm(u128::from(u64::MAX.saturating_sub(best)), facts.figures.rate_bps.max(1).into())
        }
        AttributeKey::Delay | AttributeKey::Deadline | AttributeKey::Jitter => over(1_000_000),
        AttributeKey::Loss => over(1_000),
        AttributeKey::Cpu => ppm(value.into(), best.max(1).into()),
        _ => u128::from(value).saturating_mul(PPM),
    };
    ratio.saturating_mul(soft.percent.into()) / 100
}

/// `part` of `whole`, in ppm, rounded down.
pub(super) fn ppm(part: u128, whole: u128) -> u128 {
    part.saturating_mul(PPM).checked_div(whole).unwrap_or(u128::MAX)
}
