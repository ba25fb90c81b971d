//! [`ForcedBy`]: why a part of the chosen graph is there.
//!
//! Demands are relaxed, a single one first, then two and more together, until the best candidate
//! does without the part. What forces it are the single demands of which each does that, or, where
//! none does, the smallest set that does it together: each of its members is enough to need the
//! part.
//!
//! Without weights only the sets that some candidate breaks need to be tried: let S be a smallest
//! set and c the best candidate once it is relaxed. Then c breaks only members of S, and it is also
//! the best one when only those are relaxed, so S is what c breaks. With weights, which change what
//! is best, every set of the demands that play a part is tried, as far as [`VISITS_MAX`] goes.

use super::demand::{Demand, DemandSet};
use super::judge::{Judge, Judged};
use super::outcome::End;

/// Why a part of a graph is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForcedBy {
    /// Somebody has fixed it.
    Pinned,
    /// No demand: the whole is cheapest with it.
    Nothing,
    /// Each of these demands: without any one of them it would not be there.
    Each(Vec<Demand>),
    /// These demands, of which each is enough: only without all of them it would not be there.
    Together(Vec<Demand>),
    /// None of the sets of demands that were tried; there are too many to try all.
    Untold,
}

/// About how many candidates are looked at for all sets of demands together.
const VISITS_MAX: usize = 1 << 20;
/// Every set of one demand or two, and more.
const SETS_MIN: usize = 256;

/// Why the modules of `chosen`, from the application downwards, and its transport are there.
pub(super) fn forced(judge: &Judge<'_>, useful: &[Judged<'_>], chosen: &End) -> Vec<ForcedBy> {
    let parts: Vec<Part> = parts(chosen);
    let mut found = vec![ForcedBy::Nothing; parts.len()];
    // Bit n: part n is in every candidate that matters.
    let mut settled = useful.iter().fold(u64::MAX, |all, judged| all & held(&parts, judged.end));
    let all = held(&parts, chosen);
    let mut size = 1;
    let (sets, complete) = relaxations(judge, useful);
    for set in sets {
        if set.len() > size {
            size = set.len();
            settled |= told(&found);
        }
        if settled & all == all {
            return found;
        }
        let Some(best) = judge.best(useful, judge.asked.without(set)) else { continue };
        let gone = all & !held(&parts, best.end) & !settled;
        for (place, forced) in found.iter_mut().enumerate() {
            if gone >> place & 1 == 1 {
                add(forced, set);
            }
        }
    }
    settled |= told(&found);
    for (place, forced) in found.iter_mut().enumerate() {
        if !complete && settled >> place & 1 == 0 {
            *forced = ForcedBy::Untold;
        }
    }
    found
}

/// A module or the transport, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Module(u16),
    Transport(u16),
}

fn parts(end: &End) -> Vec<Part> {
    let modules = end.stack.steps().map(|step| Part::Module(step.spec.id));
    modules.chain([Part::Transport(end.transport.id)]).collect()
}

/// Which of the parts a candidate has, as bits.
fn held(parts: &[Part], end: &End) -> u64 {
    let has = |part: &Part| match *part {
        Part::Module(id) => end.stack.steps().any(|step| step.spec.id == id),
        Part::Transport(id) => end.transport.id == id,
    };
    parts.iter().rev().fold(0, |bits, part| bits << 1 | u64::from(has(part)))
}

fn told(found: &[ForcedBy]) -> u64 {
    let told = |forced: &ForcedBy| u64::from(*forced != ForcedBy::Nothing);
    found.iter().rev().fold(0, |bits, forced| bits << 1 | told(forced))
}

/// Of sets with one member all are told, of larger ones the first.
fn add(forced: &mut ForcedBy, set: DemandSet) {
    match forced {
        ForcedBy::Each(demands) if set.len() == 1 => demands.extend(set.iter()),
        ForcedBy::Nothing if set.len() == 1 => *forced = ForcedBy::Each(set.iter().collect()),
        ForcedBy::Nothing => *forced = ForcedBy::Together(set.iter().collect()),
        _ => {}
    }
}

/// The sets of demands to relax, smaller ones first, and whether they are all that matter.
fn relaxations(judge: &Judge<'_>, useful: &[Judged<'_>]) -> (Vec<DemandSet>, bool) {
    let mut sets: Vec<DemandSet> =
        useful.iter().flat_map(|judged| judge.least_in_the_way(judged)).collect();
    let weighted = judge.weighted();
    if !weighted.is_empty() {
        let mut sets = sets.into_iter().fold(weighted, DemandSet::with).subsets();
        let all = sets.len();
        let most = VISITS_MAX.checked_div(useful.len()).unwrap_or(0);
        sets.truncate(most.max(SETS_MIN));
        let complete = sets.len() == all;
        return (sets, complete);
    }
    sets.retain(|set| !set.is_empty());
    sets.sort_unstable_by_key(|set| set.smaller_first());
    sets.dedup();
    (sets, true)
}
