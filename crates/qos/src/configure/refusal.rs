//! [`Refusal`]: why nothing was chosen, and what is nearest.
//!
//! A smallest set of demands that no candidate meets together, and, for each of them, the nearest
//! value with which everything else could stay as it is, with the graph that would then be chosen.
//! Where no single change is enough, the changes that the candidate with the fewest broken demands
//! would need.
//!
//! Invariants: without any one member of the set, the others of the set can be met; each nearest
//! request, asked with the same catalogue, is granted.

use super::demand::Demand;
use super::explanation::Asked;
use super::judge::{Judge, Judged};
use super::nearest::Nearest;
use super::rejected::Violation;
use super::wording;
use crate::attribute::AttributeKey;
use dacapo_lift::Illegal;
use std::error::Error;
use std::fmt;

/// Why nothing was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// The nearest requests that would be granted; none where the reason is another one.
    pub nearest: Vec<Nearest>,
    /// The transport that is pinned, where one is.
    pub pinned: Option<&'static str>,
    /// What would be chosen if nothing were pinned.
    pub unpinned: Option<String>,
}

/// What stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// These demands, which no candidate meets together; each is needed for that.
    Conflict {
        /// The demands.
        asked: Vec<Asked>,
        /// All of it in words.
        text: String,
    },
    /// The pinned graph breaks demands.
    Pinned {
        /// The graph, from the application downwards.
        graph: String,
        /// What it breaks.
        violations: Vec<Violation>,
    },
    /// The pinned graph is not legal.
    Illegal(Illegal),
    /// No transport has the pinned number.
    UnknownTransport(u16),
    /// There is no transport whose packets have enough room over the path.
    NoTransport,
    /// There are more candidates than can be compared ([`super::CANDIDATES_MAX`]).
    TooMany,
}

impl Refusal {
    pub(super) const fn new(reason: Reason) -> Self {
        Self { reason, nearest: Vec::new(), pinned: None, unpinned: None }
    }

    /// The demands in the way: those that contradict each other, or that a pinned graph breaks.
    pub fn demands(&self) -> impl Iterator<Item = Demand> {
        let (asked, broken) = match &self.reason {
            Reason::Conflict { asked, .. } => (asked.as_slice(), [].as_slice()),
            Reason::Pinned { violations, .. } => ([].as_slice(), violations.as_slice()),
            _ => ([].as_slice(), [].as_slice()),
        };
        let asked = asked.iter().map(|asked| asked.demand);
        asked.chain(broken.iter().map(|violation| violation.demand))
    }
}

/// The words for demands that no candidate meets together, over a transport or any.
pub(super) fn conflict_text(
    judge: &Judge<'_>,
    judged: &[Judged<'_>],
    asked: &[Asked],
    over: Option<&str>,
) -> String {
    let over = over.unwrap_or("this path");
    match asked {
        [one] => {
            let why = alone(judge, judged, one.demand, over);
            format!("{}: {why}", one.text)
        }
        [first, rest @ ..] => {
            let rest: Vec<String> = rest.iter().map(|asked| asked.text.clone()).collect();
            let (first, rest) = (&first.text, wording::and(&rest));
            format!("no protocol here meets {first} together with {rest} over {over}")
        }
        [] => "no protocol here meets what is asked".to_owned(),
    }
}

/// Why a demand cannot be met even by itself.
fn alone(judge: &Judge<'_>, judged: &[Judged<'_>], demand: Demand, over: &str) -> String {
    let Demand::Attribute(key) = demand else {
        return match demand {
            Demand::UnitSize => "no module here joins packets".to_owned(),
            _ => format!("no protocol here is as fast over {over}"),
        };
    };
    let max = judge.asked_of(key).and_then(|asked| asked.max);
    match key {
        AttributeKey::Order
        | AttributeKey::Integrity
        | AttributeKey::Confidentiality
        | AttributeKey::Authenticity
        | AttributeKey::Newest => "no module here gives it".to_owned(),
        AttributeKey::Deadline if judged.iter().all(|it| judge.lets_late_pass(&it.end.facts)) => {
            "no module here keeps back what is late".to_owned()
        }
        AttributeKey::FrameRate => "its units come at another rate".to_owned(),
        AttributeKey::Throughput if max.is_some_and(|max| judge.bound_bps() > max) => {
            "nothing holds the flow to that rate".to_owned()
        }
        _ => format!("no protocol here reaches it over {over}"),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Conflict { text, .. } => f.write_str(text)?,
            Reason::Pinned { graph, violations } => {
                let broken = |v: &Violation| format!("{} (it gives {})", v.asked, v.given);
                let broken: Vec<String> = violations.iter().map(broken).collect();
                write!(f, "the pinned graph \"{graph}\" does not meet {}", wording::and(&broken))?;
            }
            Reason::Illegal(illegal) => write!(f, "the pinned graph cannot run: {illegal}")?,
            Reason::UnknownTransport(id) => write!(f, "no transport has the number {id}")?,
            Reason::NoTransport => f.write_str("no transport here has room over this path")?,
            Reason::TooMany => write!(
                f,
                "more than {} protocols are worth comparing; leave modules out of the catalogue, \
                 or pin the graph",
                super::CANDIDATES_MAX
            )?,
        }
        for (index, nearest) in self.nearest.iter().enumerate() {
            let lead = if index == 0 { "; nearest: " } else { ", or " };
            write!(f, "{lead}{nearest}")?;
        }
        match &self.unpinned {
            Some(graph) => write!(f, "; without the pin: {graph}"),
            None => Ok(()),
        }
    }
}

impl Error for Refusal {}
