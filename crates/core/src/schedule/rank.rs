//! [`Rank`]: what a flow is to those that send beside it, by its attributes.

use dacapo_wire::attribute::key;
use dacapo_wire::session::FlowOffer;
use std::time::Duration;

/// The greatest value of the attribute `priority`.
pub(super) const PRIORITY_MAX: u8 = 7;

/// The greatest value of the attribute `share`.
const SHARE_MAX: u8 = 100;

/// What a flow is to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Which go first: 0 to 7, 7 before all others.
    pub priority: u8,
    /// What it gets beside its equals; 0: what all others leave.
    pub share: u8,
    /// How long after it was handed over a unit is of use.
    pub deadline: Option<Duration>,
    /// It receives, and what it gives answers.
    pub answers: bool,
}

impl Rank {
    /// What the attributes of a flow say; where they say nothing, priority 0 and one share.
    pub fn of(offer: &FlowOffer) -> Self {
        let share = least(offer, key::SHARE).unwrap_or(1).clamp(0, i64::from(SHARE_MAX));
        let useful = most(offer, key::DELAY).into_iter().chain(most(offer, key::DEADLINE)).min();
        Self {
            priority: priority(offer),
            share: u8::try_from(share).unwrap_or(1),
            deadline: useful.map(|ns| Duration::from_nanos(u64::try_from(ns).unwrap_or(0))),
            answers: false,
        }
    }

    /// What the answers of who receives such a flow are: they go before what is sent, and are never
    /// what others leave, for the sender waits for them.
    pub fn of_answers(self) -> Self {
        Self { share: self.share.max(1), answers: true, ..self }
    }

    /// Its place among all levels, the first 0: by priority, and those without a share last.
    pub fn level(self) -> usize {
        let below = PRIORITY_MAX - self.priority.min(PRIORITY_MAX);
        usize::from(below) + if self.share == 0 { usize::from(PRIORITY_MAX) + 1 } else { 0 }
    }
}

/// What is asked for with the attribute `priority`; nothing asked is 0.
pub(crate) fn priority(offer: &FlowOffer) -> u8 {
    let asked = least(offer, key::PRIORITY).unwrap_or(0);
    u8::try_from(asked.clamp(0, i64::from(PRIORITY_MAX))).unwrap_or(0)
}

/// The lower bound of an attribute, where several say one the greatest.
fn least(offer: &FlowOffer, key: u16) -> Option<i64> {
    let asked = offer.attributes.iter().filter(|attribute| attribute.key == key);
    asked.filter_map(|attribute| attribute.min).max()
}

/// The upper bound of an attribute, where several say one the smallest.
fn most(offer: &FlowOffer, key: u16) -> Option<i64> {
    let asked = offer.attributes.iter().filter(|attribute| attribute.key == key);
    asked.filter_map(|attribute| attribute.max).min()
}
