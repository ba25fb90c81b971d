//! The Configuration Manager: from attributes to a graph.
//!
//! [`choose`] finds, among the modules and transports of a catalogue, the cheapest legal graph that
//! meets every hard bound of a [`Request`], and says why ([`Explanation`]); where there is none, it
//! says which demands contradict each other and what is nearest ([`Refusal`]).
//!
//! ```text
//!   Catalogue ─> order ─> frontier (per transport) ─> End, End, End …     nothing asked so far
//!                                                        │
//!   Request ──────────────> judge: what does each break? ┴─> best ─> Choice { graph, explanation }
//!                              relax this, relax that ─────> forced by, conflict, nearest
//! ```
//!
//! Three levels are visible in the answer: the protocol *function* (ordering), the *mechanism* that
//! serves it (numbers and a window) and the *module* that does (sequence).
//!
//! It reads no clock, draws no random number and keeps nothing between calls.
//!
//! Invariants (each has a test in `tests/configure`)
//! - The choice is exactly that of a search through all candidates, graph and parameters included,
//!   as far as profiles are monotone; a refusal comes exactly when that search finds none.
//! - Of equals the one with fewer modules is taken, then by the number of the transport and the
//!   numbers and parameters of the modules, from the network upwards: the same on every machine.
//! - Without the demands that an explanation names, the part that they force is not chosen.
//! - The nearest requests of a refusal are granted when they are asked.
//! - Arithmetic is whole numbers, saturating; time and memory are bounded by [`CANDIDATES_MAX`].
//!
//! Source: design records D9 and D10; the approach of Da CaPo (Plagemann, Plattner, Vogt, Walter
//! 1993), with Pareto pruning in place of its heuristic.

mod demand;
mod display;
mod explanation;
mod field;
mod forced;
mod frontier;
mod judge;
mod nearest;
mod order;
mod outcome;
mod refusal;
mod rejected;
mod request;
mod wording;

pub use demand::{Demand, DemandSet};
pub use explanation::{Asked, Assumed, CostShare, Explanation, Forced, Met, Part, Standing};
pub use frontier::CANDIDATES_MAX;
pub use nearest::{Change, Nearest};
pub use outcome::Outcome;
pub use refusal::{Reason, Refusal};
pub use rejected::{Edit, REJECTED_MAX, Rejected, Violation, Why};
pub use request::{Pins, Request, Use};

use dacapo_lift::{Catalogue, Graph, TransportSpec};
use field::Field;
use forced::{ForcedBy, forced};
use judge::{Judge, Judged};

/// What was chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The modules with their parameters.
    pub graph: Graph,
    /// The transport.
    pub transport: &'static TransportSpec,
    /// What comes of it.
    pub outcome: Outcome,
    /// Why.
    pub explanation: Explanation,
}

/// Chooses the cheapest graph that meets a request.
///
/// # Errors
/// When no candidate meets all hard bounds, when what is pinned cannot run, or when there are more
/// candidates than can be compared.
pub fn choose(
    catalogue: &Catalogue,
    request: &Request,
    pins: &Pins,
) -> Result<Choice, Box<Refusal>> {
    let field =
        Field::of(catalogue, request, pins).map_err(|reason| Box::new(Refusal::new(reason)))?;
    let judge = Judge::new(request);
    let judged = judge.all(&field.ends);
    match judge.best(&judged, judge.asked) {
        Some(best) => Ok(chosen(catalogue, &field, &judge, &judged, *best, pins)),
        None => Err(Box::new(refusal(catalogue, &judge, &judged, pins))),
    }
}

fn chosen(
    catalogue: &Catalogue,
    field: &Field,
    judge: &Judge<'_>,
    judged: &[Judged<'_>],
    best: Judged<'_>,
    pins: &Pins,
) -> Choice {
    let end = best.end;
    let outcome = end.facts.outcome(judge.request, judge.receivers, judge.playout_bound_ns());
    let mut forced = forced(judge, &judge.useful(judged.to_vec()), end);
    let transport = forced.len().saturating_sub(1);
    for (place, forced) in forced.iter_mut().enumerate() {
        let pinned =
            if place < transport { pins.graph.is_some() } else { pins.transport.is_some() };
        if pinned {
            *forced = ForcedBy::Pinned;
        }
    }
    let mut rejected = rejected::rejected(catalogue, field, judge, judged, end);
    if let Some(free) = unpinned(catalogue, judge.request, pins, end) {
        rejected.truncate(REJECTED_MAX.saturating_sub(1));
        rejected.insert(0, free);
    }
    Choice {
        graph: end.stack.graph(),
        transport: end.transport,
        explanation: explanation::explanation(judge, end, &outcome, &forced, rejected),
        outcome,
    }
}

/// What would be chosen in place of `pinned` if nothing were pinned, where that is something else.
fn unpinned(
    catalogue: &Catalogue,
    request: &Request,
    pins: &Pins,
    pinned: &outcome::End,
) -> Option<Rejected> {
    let free = best_unpinned(catalogue, request, pins)?;
    let same = free.transport == pinned.transport && free.stack.graph() == pinned.stack.graph();
    let cost_ppm = Some(rejected::more_ppm(free.facts.work_ps, pinned.facts.work_ps));
    let text = free.text();
    let rejected = Rejected { edit: Edit::Unpinned, graph: text, cost_ppm, why: Why::Nothing };
    (!same).then_some(rejected)
}

fn best_unpinned(catalogue: &Catalogue, request: &Request, pins: &Pins) -> Option<outcome::End> {
    if pins.is_empty() {
        return None;
    }
    let field = Field::of(catalogue, request, &Pins::NONE).ok()?;
    let judge = Judge::new(request);
    let judged = judge.all(&field.ends);
    judge.best(&judged, judge.asked).map(|best| best.end.clone())
}

fn refusal(
    catalogue: &Catalogue,
    judge: &Judge<'_>,
    judged: &[Judged<'_>],
    pins: &Pins,
) -> Refusal {
    let pinned = pins.transport.and_then(|id| Some(catalogue.transport(id)?.name));
    let unpinned = best_unpinned(catalogue, judge.request, pins).map(|end| end.text());
    let fewest = || judged.iter().min_by_key(|judged| judge.in_the_way(judged, judge.asked).len());
    if let Some(best) = fewest().filter(|_| pins.graph.is_some()) {
        let violations = rejected::violations(judge, best);
        let reason = Reason::Pinned { graph: best.end.text(), violations };
        return Refusal { reason, nearest: Vec::new(), pinned, unpinned };
    }
    let conflict = nearest::conflict(judge, judged);
    let nearest = nearest::nearest(catalogue, pins, judge, judged, conflict);
    let asked = conflict.iter().map(|demand| Asked::new(judge.request, demand));
    // The demands that are told first are those that are least often given up.
    let mut asked: Vec<Asked> = asked.collect();
    asked.reverse();
    let text = refusal::conflict_text(judge, judged, &asked, pinned);
    Refusal { reason: Reason::Conflict { asked, text }, nearest, pinned, unpinned }
}
