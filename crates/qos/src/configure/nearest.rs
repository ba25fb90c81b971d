//! [`Nearest`]: the request next to one that cannot be met; and which demands are in conflict.
//!
//! For one demand of a conflict the best value among the candidates that meet all others, rounded
//! to three digits on the side that is easier to meet, and what would be chosen then.

use super::demand::{Demand, DemandSet};
use super::field::Field;
use super::judge::{Judge, Judged, is_preferred, level_kept};
use super::outcome::{Facts, Outcome};
use super::request::{Pins, Request, Use};
use super::wording::{self, Side, rounded};
use crate::attribute::{AttributeKey, Bounds, Requirement, level};
use crate::units::{format_duration, format_size};
use dacapo_lift::{Catalogue, Graph, TransportSpec};
use std::cmp::Reverse;
use std::fmt;

/// What a request would have to be, and what would then be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// What has to change; one thing, unless that is not enough.
    pub changes: Vec<Change>,
    /// What would be chosen.
    pub graph: Graph,
    /// Over which transport.
    pub transport: &'static TransportSpec,
    /// What would come of it.
    pub outcome: Outcome,
    /// The graph in words: "sequence ! udp".
    pub text: String,
}

impl Nearest {
    /// The request with the changes made.
    #[must_use]
    pub fn request(&self, request: &Request) -> Request {
        self.changes.iter().fold(request.clone(), |request, change| change.made(request))
    }
}

/// A demand as it could be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This requirement in place of the attribute's.
    Requirement(AttributeKey, Requirement),
    /// Nothing is asked of the attribute.
    Dropped(AttributeKey),
    /// Units of at most so many bytes.
    UnitLen(u32),
    /// Shown at this delay, in ns.
    Playout(u64),
}

impl Change {
    fn made(self, mut request: Request) -> Request {
        match self {
            Self::Requirement(key, requirement) => {
                request.attributes.remove(key);
                // What is empty asks for nothing.
                let _ = request.attributes.insert(key, requirement);
                follow(&mut request, key);
            }
            Self::Dropped(key) => {
                request.attributes.remove(key);
                follow(&mut request, key);
            }
            Self::UnitLen(len) => {
                let units = &mut request.setting.units;
                units.len_max = len;
                units.len_mean = units.len_mean.min(len);
            }
            Self::Playout(ns) => request.used = Use::Played { playout_ns: Some(ns) },
        }
        request
    }
}

/// What modules are to see to is what is asked.
fn follow(request: &mut Request, key: AttributeKey) {
    if key == AttributeKey::Deadline && request.used == Use::Handed {
        let asked = request.attributes.get(key).and_then(|asked| asked.max);
        request.setting.deadline_ns = asked.unwrap_or(u64::MAX);
    }
    if key == AttributeKey::Newest {
        request.setting.is_newest = request.attributes.newest();
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requirement(key, asked) => f.write_str(&wording::requirement(*key, asked)),
            Self::Dropped(key) => write!(f, "nothing asked of {key}"),
            Self::UnitLen(len) => write!(f, "units of up to {}", format_size((*len).into())),
            Self::Playout(ns) => write!(f, "a playout of {}", format_duration(*ns)),
        }
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<String> = self.changes.iter().map(ToString::to_string).collect();
        write!(f, "{} ({})", wording::and(&changes), self.text)
    }
}

/// A smallest set of demands that no candidate meets together: one demand or two where that is
/// enough, else what is left when all others have been left out, one after the other.
pub(super) fn conflict(judge: &Judge<'_>, judged: &[Judged<'_>]) -> DemandSet {
    let impossible = |set: &DemandSet| !judged.iter().any(|judged| judge.is_feasible(judged, *set));
    let singles = || judge.asked.iter().map(DemandSet::one);
    if let Some(one) = singles().find(impossible) {
        return one;
    }
    let pairs = singles().flat_map(|a| singles().map(move |b| a.with(b)));
    if let Some(pair) = pairs.into_iter().find(impossible) {
        return pair;
    }
    singles().fold(judge.asked, |left, demand| {
        let less = left.without(demand);
        if impossible(&less) { less } else { left }
    })
}

/// The nearest requests for the demands of a conflict.
pub(super) fn nearest(
    catalogue: &Catalogue,
    pins: &Pins,
    judge: &Judge<'_>,
    judged: &[Judged<'_>],
    conflict: DemandSet,
) -> Vec<Nearest> {
    let one = |demand: Demand| {
        let rest = judge.asked.without(DemandSet::one(demand));
        let others = judged.iter().filter(|judged| judge.is_feasible(judged, rest));
        let best = others.min_by_key(|judged| distance(judge, demand, &judged.end.facts))?;
        let changed = changes(judge, DemandSet::one(demand), &best.end.facts)?;
        let granted = |changes| granted(catalogue, pins, judge, judged, changes);
        // Of what has a deadline less of the rate can be used, whatever the deadline is.
        granted(changed).or_else(|| match demand {
            Demand::Attribute(key) => granted(vec![Change::Dropped(key)]),
            Demand::UnitSize | Demand::Playout => None,
        })
    };
    let found: Vec<Nearest> = conflict.iter().filter_map(one).collect();
    if !found.is_empty() {
        return found;
    }
    let count = |judged: &&Judged<'_>| judge.in_the_way(judged, judge.asked).len();
    let closest = judged.iter().min_by_key(count);
    let several = |judged_end: &Judged<'_>| {
        let set = judge.in_the_way(judged_end, judge.asked);
        let changes = changes(judge, set, &judged_end.end.facts)?;
        granted(catalogue, pins, judge, judged, changes)
    };
    closest.and_then(several).into_iter().collect()
}

/// The request with these changes, if then something is chosen.
fn granted(
    catalogue: &Catalogue,
    pins: &Pins,
    judge: &Judge<'_>,
    judged: &[Judged<'_>],
    changes: Vec<Change>,
) -> Option<Nearest> {
    let start = judge.request.clone();
    let request = changes.iter().fold(start, |request, change| change.made(request));
    let next = Judge::new(&request);
    if request.setting == judge.request.setting {
        let judged: Vec<Judged<'_>> = judged.iter().map(|old| next.judged(old.end)).collect();
        return taken(&next, &judged, changes);
    }
    let field = Field::of(catalogue, &request, pins).ok()?;
    taken(&next, &next.all(&field.ends), changes)
}

fn taken(judge: &Judge<'_>, judged: &[Judged<'_>], changes: Vec<Change>) -> Option<Nearest> {
    let end = judge.best(judged, judge.asked)?.end;
    Some(Nearest {
        changes,
        graph: end.stack.graph(),
        transport: end.transport,
        outcome: end.facts.outcome(judge.request, judge.receivers, judge.playout_bound_ns()),
        text: end.text(),
    })
}

/// How far a candidate is from meeting a demand; less is nearer.
fn distance(judge: &Judge<'_>, demand: Demand, facts: &Facts) -> (u64, Reverse<u64>) {
    let nearer = |value: u64| (value, Reverse(0));
    let further = |value: u64| (0, Reverse(value));
    let Demand::Attribute(key) = demand else {
        let is_size = demand == Demand::UnitSize;
        let len = u64::from(facts.unit_len_max);
        return if is_size { further(len) } else { nearer(facts.figures.delay_ns) };
    };
    match key {
        AttributeKey::Throughput => further(facts.figures.rate_bps),
        AttributeKey::Deadline if judge.lets_late_pass(facts) => nearer(u64::MAX),
        AttributeKey::Delay | AttributeKey::Deadline => nearer(facts.figures.delay_ns),
        AttributeKey::Jitter => nearer(facts.figures.jitter_ns),
        AttributeKey::Loss => nearer(facts.figures.loss_ppb),
        AttributeKey::Cpu | AttributeKey::Receivers => nearer(facts.cpu_ppb),
        AttributeKey::Duplicates
        | AttributeKey::Priority
        | AttributeKey::Share
        | AttributeKey::FrameRate => nearer(0),
        AttributeKey::Order
        | AttributeKey::Integrity
        | AttributeKey::Confidentiality
        | AttributeKey::Authenticity
        | AttributeKey::Newest => further(level_kept(key, facts)),
    }
}

/// The changes with which a candidate breaks none of these demands; the playout comes last, since
/// it depends on the others.
fn changes(judge: &Judge<'_>, set: DemandSet, facts: &Facts) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    let mut bound = judge.playout_bound_ns();
    let timed = [AttributeKey::Delay, AttributeKey::Deadline];
    for demand in set.iter() {
        changes.push(match demand {
            Demand::Attribute(key) => attribute(judge, key, facts),
            Demand::UnitSize if facts.unit_len_max > 0 => Change::UnitLen(facts.unit_len_max),
            Demand::UnitSize => return None,
            Demand::Playout => Change::Playout(playout(judge, bound, facts)),
        });
        if timed.map(Demand::Attribute).contains(&demand) {
            let made = changes.iter().fold(judge.request.clone(), |all, change| change.made(all));
            bound = Judge::new(&made).playout_bound_ns();
        }
    }
    Some(changes)
}

/// A playout delay within what is asked that the candidate keeps.
fn playout(judge: &Judge<'_>, bound: u64, facts: &Facts) -> u64 {
    let now = judge.request.playout_ns().unwrap_or(0);
    rounded(facts.figures.delay_ns, Side::Up).max(now).min(bound)
}

/// The requirement of an attribute, changed no more than is needed.
fn attribute(judge: &Judge<'_>, key: AttributeKey, facts: &Facts) -> Change {
    let asked = judge.asked_of(key).copied().unwrap_or_default();
    let (min, max) = match key.bounds() {
        Bounds::Min => (least(key, &asked, facts), None),
        Bounds::Max => (None, most(judge, key, facts)),
        Bounds::Both => both(judge, key, &asked, facts),
    };
    let requirement = Requirement { min, max, weight: asked.weight };
    if key == AttributeKey::Deadline && judge.lets_late_pass(facts) {
        // Whatever the bound, nothing there sees to it.
        return Change::Dropped(key);
    }
    if requirement.check(key).is_ok() {
        Change::Requirement(key, requirement)
    } else {
        Change::Dropped(key)
    }
}

/// The strongest level that can be had.
fn least(key: AttributeKey, asked: &Requirement, facts: &Facts) -> Option<u64> {
    match key {
        AttributeKey::Duplicates | AttributeKey::Priority | AttributeKey::Share => asked.min,
        _ => Some(level_kept(key, facts).max(preferred(key, asked))),
    }
}

/// The upper bound that the candidate keeps.
fn most(judge: &Judge<'_>, key: AttributeKey, facts: &Facts) -> Option<u64> {
    let figures = &facts.figures;
    let value = match key {
        AttributeKey::Delay | AttributeKey::Deadline => figures.delay_ns,
        AttributeKey::Jitter => figures.jitter_ns,
        // Without a repair there is always some loss.
        AttributeKey::Loss => figures.loss_ppb.max(1_000),
        _ => facts.cpu_ppb.saturating_mul(judge.receivers),
    };
    let value = rounded(value, Side::Up).min(key.range().1);
    match key {
        AttributeKey::Delay | AttributeKey::Deadline => Some(value).max(judge.request.playout_ns()),
        _ => Some(value),
    }
}

/// The bounds as they are, as far as the candidate keeps them.
fn both(
    judge: &Judge<'_>,
    key: AttributeKey,
    asked: &Requirement,
    facts: &Facts,
) -> (Option<u64>, Option<u64>) {
    let (lowest, highest) = match key {
        AttributeKey::Throughput => {
            let bound = judge.request.setting.bound_bps;
            (rounded(facts.figures.rate_bps, Side::Down), (bound > 0).then_some(bound))
        }
        AttributeKey::Receivers => {
            let cpu = judge.asked_of(AttributeKey::Cpu).and_then(|asked| asked.max);
            let count = cpu.and_then(|max| max.checked_div(facts.cpu_ppb));
            (count.unwrap_or(u64::MAX).max(1), Some(0))
        }
        _ => (judge.units_per_s_millionths(), Some(judge.units_per_s_millionths())),
    };
    let min = asked.min.map(|min| min.min(lowest));
    (min, asked.max.and_then(|max| Some(max.max(highest?))))
}

/// The level that is asked for where it can be had, for an attribute that has one.
fn preferred(key: AttributeKey, asked: &Requirement) -> u64 {
    match key {
        _ if is_preferred(key, asked) => 0,
        AttributeKey::Confidentiality => level::CONFIDENTIALITY_PREFERRED,
        AttributeKey::Authenticity => level::AUTHENTICITY_PREFERRED,
        _ => 0,
    }
}
