//! [`Rejected`]: the candidates next to the chosen one, and what speaks against each.
//!
//! The chosen graph with one module less, with another module of the same function or the same one
//! at another operating point, all else unchanged, as far as that is not dearer; and the best graph
//! over each other transport.

use super::demand::Demand;
use super::field::{Field, end_of};
use super::frontier::{Stack, raised};
use super::judge::{Judge, Judged};
use super::outcome::End;
use super::wording;
use dacapo_lift::{Catalogue, Graph, ModuleSpec, Node};
use serde::Serialize;
use std::cmp::Ordering;

/// The most rejected candidates that are told.
pub const REJECTED_MAX: usize = 8;

/// A candidate that was not chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// How it differs from what was chosen.
    pub edit: Edit,
    /// The whole, from the application downwards: "sequence ! udp".
    pub graph: String,
    /// What it costs more than what was chosen, bytes on the network included, in ppm of that;
    /// below zero when it is cheaper; none where it cannot run.
    pub cost_ppm: Option<i64>,
    /// What speaks against it.
    pub why: Why,
}

/// How a candidate differs from the chosen one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// A module less.
    Without {
        /// The module.
        module: &'static str,
    },
    /// Another module of the same function.
    Instead {
        /// The module that was chosen.
        of: &'static str,
        /// The other one, with its parameters.
        module: String,
    },
    /// The same module with other parameters.
    Tuned {
        /// The module, with the other parameters.
        module: String,
    },
    /// The best over another transport.
    Over {
        /// That transport.
        transport: &'static str,
    },
    /// What would be chosen if nothing were pinned.
    Unpinned,
}

/// What speaks against a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It breaks demands.
    Breaks(Vec<Violation>),
    /// It cannot run.
    Illegal(String),
    /// It costs more.
    Dearer,
    /// It costs no more, but what counts by weight is worse.
    Weighs,
    /// It costs the same and is as good; of equals one is taken by number.
    Equal,
    /// Nothing: somebody has fixed another one.
    Nothing,
}

/// A demand that a candidate breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The demand.
    pub demand: Demand,
    /// What is asked: "delay at most 20 ms".
    pub asked: String,
    /// What there would be instead: "281 ms".
    pub given: String,
}

/// What a candidate breaks, attribute by attribute.
pub(super) fn violations(judge: &Judge<'_>, judged: &Judged<'_>) -> Vec<Violation> {
    let violation = |demand| Violation {
        demand,
        asked: wording::asked(judge.request, demand),
        given: given(judge, judged, demand),
    };
    judge.in_the_way(judged, judge.asked).iter().map(violation).collect()
}

fn given(judge: &Judge<'_>, judged: &Judged<'_>, demand: Demand) -> String {
    let broken = judged.broken.contains(demand);
    match demand {
        // Not broken by itself: what is asked elsewhere stands in its way.
        Demand::Playout if !broken => {
            wording::asked(judge.request, judge.clash.iter().next().unwrap_or(Demand::Playout))
        }
        Demand::Attribute(crate::AttributeKey::Receivers) => {
            let cpu = Demand::Attribute(crate::AttributeKey::Cpu);
            format!("{} of cpu", wording::given(judge, cpu, &judged.end.facts))
        }
        _ => wording::given(judge, demand, &judged.end.facts),
    }
}

/// What is next to `chosen`, the most interesting first.
pub(super) fn rejected(
    catalogue: &Catalogue,
    field: &Field,
    judge: &Judge<'_>,
    judged: &[Judged<'_>],
    chosen: &End,
) -> Vec<Rejected> {
    let mut list: Vec<Rejected> = edits(catalogue, field, judge, chosen);
    list.sort_by(interesting);
    list.dedup_by(|a, b| a.edit == b.edit);
    let over = over_others(judge, judged, chosen);
    list.truncate(REJECTED_MAX.saturating_sub(over.len()));
    list.extend(over);
    list.sort_by_key(rank);
    list.truncate(REJECTED_MAX);
    list
}

fn rank(rejected: &Rejected) -> u8 {
    match (&rejected.why, &rejected.edit) {
        (_, Edit::Over { .. } | Edit::Unpinned) => 1,
        (Why::Breaks(_), _) => 0,
        (Why::Illegal(_), _) => 3,
        _ => 2,
    }
}

/// By rank, then by how little is in the way, then the cheapest.
fn interesting(a: &Rejected, b: &Rejected) -> Ordering {
    let broken = |rejected: &Rejected| match &rejected.why {
        Why::Breaks(violations) => violations.len(),
        _ => 0,
    };
    let key = |rejected: &Rejected| (rank(rejected), broken(rejected), rejected.cost_ppm);
    key(a).cmp(&key(b))
}

/// The best over each other transport.
fn over_others(judge: &Judge<'_>, judged: &[Judged<'_>], chosen: &End) -> Vec<Rejected> {
    let mut ids: Vec<u16> = judged.iter().map(|judged| judged.end.transport.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| *id != chosen.transport.id);
    let over = |id: u16| {
        let there: Vec<Judged<'_>> =
            judged.iter().filter(|judged| judged.end.transport.id == id).copied().collect();
        let fewest =
            || there.iter().min_by_key(|judged| judge.in_the_way(judged, judge.asked).len());
        let best = judge.best(&there, judge.asked).or_else(fewest)?;
        let edit = Edit::Over { transport: best.end.transport.name };
        Some(against(judge, best, chosen, edit))
    };
    ids.into_iter().filter_map(over).collect()
}

/// What speaks against a candidate.
pub(super) fn against(
    judge: &Judge<'_>,
    judged: &Judged<'_>,
    chosen: &End,
    edit: Edit,
) -> Rejected {
    let (cost, base) = (judged.end.facts.work_ps, chosen.facts.work_ps);
    let why = match violations(judge, judged) {
        list if !list.is_empty() => Why::Breaks(list),
        _ if cost > base => Why::Dearer,
        _ if !judge.weighted().is_empty() => Why::Weighs,
        // Only who has fixed something takes what is dearer.
        _ if cost < base => Why::Nothing,
        _ => Why::Equal,
    };
    let cost_ppm = Some(more_ppm(cost, base));
    Rejected { edit, graph: judged.end.text(), cost_ppm, why }
}

/// What `cost` is above `base`, in ppm of that.
pub(super) fn more_ppm(cost: u128, base: u128) -> i64 {
    let ppm = |part: u128| i64::try_from(super::judge::ppm(part, base.max(1))).unwrap_or(i64::MAX);
    match cost.checked_sub(base) {
        Some(more) => ppm(more),
        None => ppm(base.saturating_sub(cost)).saturating_neg(),
    }
}

/// The graphs that differ from the chosen one in a module and do not cost more.
fn edits(catalogue: &Catalogue, field: &Field, judge: &Judge<'_>, chosen: &End) -> Vec<Rejected> {
    let graph = chosen.stack.graph();
    let mut list = Vec::new();
    for (at, step) in chosen.stack.steps().enumerate() {
        let mut rest = graph.clone();
        let node = rest.nodes.remove(at);
        let without = Edit::Without { module: step.spec.name };
        list.extend(edited(catalogue, judge, chosen, &rest, without));
        for spec in field.order.serving(step.spec.function) {
            let at = if spec == step.spec { at } else { place(catalogue, field, &rest, spec) };
            for params in points(catalogue, judge, chosen, &rest, at, spec) {
                if spec.id == node.module && params == node.params {
                    continue;
                }
                let mut other = rest.clone();
                let named = named(spec, &params);
                other.nodes.insert(at, Node { module: spec.id, params });
                let edit = if spec == step.spec {
                    Edit::Tuned { module: named }
                } else {
                    Edit::Instead { of: step.spec.name, module: named }
                };
                list.extend(edited(catalogue, judge, chosen, &other, edit));
            }
        }
    }
    list
}

fn named(spec: &ModuleSpec, params: &dacapo_lift::Params) -> String {
    let params = wording::params(spec, params);
    if params.is_empty() {
        return spec.name.to_owned();
    }
    format!("{} ({})", spec.name, params.join(", "))
}

/// Where a module belongs in a graph, from the application downwards.
fn place(catalogue: &Catalogue, field: &Field, rest: &Graph, spec: &ModuleSpec) -> usize {
    let place = field.order.place(spec);
    let above = |node: &&Node| {
        let spec = catalogue.by_id(node.module).map(|entry| entry.spec);
        spec.is_some_and(|spec| field.order.place(spec) > place)
    };
    rest.nodes.iter().take_while(above).count()
}

/// The operating points of a module at this place of a graph.
fn points(
    catalogue: &Catalogue,
    judge: &Judge<'_>,
    chosen: &End,
    rest: &Graph,
    at: usize,
    spec: &'static ModuleSpec,
) -> Vec<dacapo_lift::Params> {
    let request = judge.request;
    let below = rest.nodes.iter().skip(at).rev().try_fold(
        Stack::bare(chosen.transport, request),
        |stack, node| {
            let spec = catalogue.by_id(node.module)?.spec;
            Some(stack.and_then(|stack| stack.with(spec, node.params.clone(), &request.setting)))
        },
    );
    let Some(Some(below)) = below else { return Vec::new() };
    let stacks = raised(spec, &below, &request.setting);
    stacks.filter_map(|stack| Some(stack.top?.params.clone())).collect()
}

/// A candidate next to the chosen one, unless it costs more.
fn edited(
    catalogue: &Catalogue,
    judge: &Judge<'_>,
    chosen: &End,
    graph: &Graph,
    edit: Edit,
) -> Option<Rejected> {
    match end_of(catalogue, graph, chosen.transport, judge.request) {
        Ok(end) if end.facts.work_ps <= chosen.facts.work_ps => {
            Some(against(judge, &judge.judged(&end), chosen, edit))
        }
        Ok(_) => None,
        Err(illegal) => {
            let name = |node: &Node| Some(catalogue.by_id(node.module)?.spec.name);
            let names = graph.nodes.iter().filter_map(name).chain([chosen.transport.name]);
            let graph = names.collect::<Vec<_>>().join(" ! ");
            Some(Rejected { edit, graph, cost_ppm: None, why: Why::Illegal(illegal.to_string()) })
        }
    }
}
