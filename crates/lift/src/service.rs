//! [`Service`]: what stands below a place of a graph gives to what stands above it.
//!
//! The vector that a choice of modules is computed with. A transport gives the first one, each
//! module makes another of it, and the last is what the application gets. Properties are *kept* by
//! a mechanism; figures are *predicted* from what is assumed of the path.
//!
//! ```text
//!   application      Service { order, integrity | loss 0.5 %, delay 70 ms … }   beside the bounds
//!      sequence   ^  Service { integrity        | loss 0.5 %, delay 40 ms … }
//!      checksum   ^  Service {                  | loss 0.5 %, delay 40 ms … }
//!      udp        ^  Path    { loss 0.5 %, delay 30 ms, jitter 10 ms, rate 50 Mbit/s }
//! ```
//!
//! A running flow is watched elsewhere.
//!
//! Invariants: `at_least` is a partial order; every transfer of a module keeps it
//! (`conformance::a_better_service_below_is_never_worse_above`).

use crate::Property;
use std::fmt;

/// What counts as certain: shares are written in billionths.
pub const PPB: u64 = 1_000_000_000;

/// A set of properties.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Properties(u16);

impl Properties {
    /// None.
    pub const NONE: Self = Self(0);

    /// These.
    #[must_use]
    pub const fn of(list: &[Property]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < list.len() {
            bits |= 1 << list[at] as u16;
            at += 1;
        }
        Self(bits)
    }

    /// Whether this one is among them.
    #[must_use]
    pub const fn contains(self, property: Property) -> bool {
        self.0 & (1 << property as u16) != 0
    }

    /// Whether all of `others` are among them.
    #[must_use]
    pub const fn contains_all(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// The first of these that is missing; a way back from one receiver is one from each.
    #[must_use]
    pub fn lacks(self, required: &[Property]) -> Option<Property> {
        let is_met = |property| {
            let is_of_one = property == Property::Answers && self.contains(Property::WayBack);
            self.contains(property) || is_of_one
        };
        required.iter().copied().find(|property| !is_met(*property))
    }

    /// These and `others`.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These without `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = Property> {
        Property::ALL.into_iter().filter(move |property| self.contains(*property))
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// What is predicted of packets (and of units, where the graph has joined them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The share that is lost, in ppb; less is better.
    pub loss_ppb: u64,
    /// The share at which a run of losses begins, in ppb: the more of them are lost one after the
    /// other, the fewer runs there are; less is better.
    pub loss_runs_ppb: u64,
    /// The one-way delay that 99 of 100 do not exceed, in ns; less is better.
    pub delay_ns: u64,
    /// That delay less the shortest one, in ns; less is better.
    pub jitter_ns: u64,
    /// The payload that gets through, in bit/s; more is better.
    pub rate_bps: u64,
}

impl Figures {
    /// Whether every figure is as good as that of `other`.
    #[must_use]
    pub fn at_least(&self, other: &Self) -> bool {
        self.loss_ppb <= other.loss_ppb
            && self.loss_runs_ppb <= other.loss_runs_ppb
            && self.delay_ns <= other.delay_ns
            && self.jitter_ns <= other.jitter_ns
            && self.rate_bps >= other.rate_bps
    }
}

/// What stands below gives to what stands above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// What is kept.
    pub properties: Properties,
    /// The payload that a packet has room for, in bytes; more is better.
    pub payload_len_max: u32,
    /// What is predicted.
    pub figures: Figures,
}

impl Service {
    /// Whether it is as good as `other` in everything.
    #[must_use]
    pub fn at_least(&self, other: &Self) -> bool {
        self.properties.contains_all(other.properties)
            && self.payload_len_max >= other.payload_len_max
            && self.figures.at_least(&other.figures)
    }
}

/// What is assumed of the network between two hosts, one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The longest datagram that gets through whole, in bytes.
    pub datagram_len: u32,
    /// What it carries, in bit/s.
    pub rate_bps: u64,
    /// The shortest one-way delay, in ns.
    pub delay_ns: u64,
    /// By how much 99 of 100 packets exceed that at most, in ns.
    pub jitter_ns: u64,
    /// The share of packets that is lost, in ppb.
    pub loss_ppb: u64,
    /// The mean length of a run of lost packets, in thousandths of a packet, at least 1,000.
    pub burst_milli: u64,
}

/// What the application hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// The mean length of a unit in bytes, at least 1.
    pub len_mean: u32,
    /// The longest unit in bytes, at least `len_mean`.
    pub len_max: u32,
    /// Units per 1,000 seconds, at least 1.
    pub per_ks: u64,
    /// The access module can cut units where it likes, as it can sound: then they are made to fit a
    /// packet where nothing else joins packets.
    pub divisible: bool,
    /// They come at this pace by themselves, as pictures, sound and what names its frame rate do;
    /// else how many there are is a guess, or the least that is asked for.
    pub is_paced: bool,
}

/// What a choice is made for: the path and the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The path.
    pub path: Path,
    /// The units.
    pub units: Units,
    /// The rate that the flow is held to, in bit/s, where it is not the network that decides.
    pub bound_bps: u64,
    /// How long after it was sent a unit is of use, in ns: a module that makes losses good counts
    /// as lost what comes later, and proposes no parameters with which all would, where their
    /// bounds allow that. `u64::MAX` where nobody asks for a bound.
    pub useful_ns: u64,
    /// How old a unit may be when it is handed over, in ns, where a module has to see to that;
    /// `u64::MAX` where nobody asks for it.
    pub deadline_ns: u64,
    /// The newest unit is to arrive, whatever becomes of those that it replaces.
    pub is_newest: bool,
}

/// How much of its rate a flow with a deadline can use, in per cent.
const USED_IN_TIME: u64 = 98;

impl Setting {
    /// This path and these units, and nothing asked of them: no bound, no deadline.
    #[must_use]
    pub const fn new(path: Path, units: Units) -> Self {
        let never = u64::MAX;
        Self { path, units, bound_bps: 0, useful_ns: never, deadline_ns: never, is_newest: false }
    }

    /// How much later than from below by itself something may come and be of use, in ns.
    #[must_use]
    pub fn spare_ns(&self, below: &Figures) -> u64 {
        self.useful_ns.saturating_sub(below.delay_ns)
    }

    /// The same after the path alone, which takes a whole unit, and after a millisecond by which
    /// times are rounded on the way up: what parameters are proposed by.
    #[must_use]
    pub fn spare_after_path_ns(&self) -> u64 {
        let by_itself = self.path.delay_ns.saturating_add(self.path.jitter_ns);
        let taken = by_itself.saturating_add(self.unit_ns()).saturating_add(1_000_000);
        self.useful_ns.saturating_sub(taken)
    }

    /// The rate that the flow is held to or the path has, whichever is less, in bit/s.
    #[must_use]
    pub fn rate_bps(&self) -> u64 {
        let bound = if self.bound_bps == 0 { u64::MAX } else { self.bound_bps };
        bound.min(self.path.rate_bps)
    }

    /// How much of a rate the flow can use: where it has a deadline and takes nearly all, a packet
    /// more waits for long, and all behind it.
    #[must_use]
    pub fn used_bps(&self, rate_bps: u64) -> u64 {
        if self.deadline_ns == u64::MAX {
            return rate_bps;
        }
        rate_bps / 100 * USED_IN_TIME + rate_bps % 100 * USED_IN_TIME / 100
    }

    /// How long a mean unit takes at the rate of the flow, in ns.
    fn unit_ns(&self) -> u64 {
        let rate = u128::from(self.rate_bps().max(1));
        let bits = u128::from(self.units.len_mean) * 8;
        u64::try_from(bits * 1_000_000_000 / rate).unwrap_or(u64::MAX)
    }
}

/// What carrying a unit costs: picoseconds of processor time, both ends together, and bytes on the
/// network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Per train: a call of the module or of the system.
    pub train_ps: u64,
    /// Per packet.
    pub packet_ps: u64,
    /// Per byte of payload.
    pub byte_ps: u64,
    /// Bytes that go over the network for each byte of payload, in thousandths.
    pub wire_milli: u64,
}

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self { train_ps: 0, packet_ps: 0, byte_ps: 0, wire_milli: 0 };

    /// Whether no part of it exceeds that of `other`.
    #[must_use]
    pub fn at_most(&self, other: &Self) -> bool {
        self.train_ps <= other.train_ps
            && self.packet_ps <= other.packet_ps
            && self.byte_ps <= other.byte_ps
            && self.wire_milli <= other.wire_milli
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            train_ps: self.train_ps.saturating_add(other.train_ps),
            packet_ps: self.packet_ps.saturating_add(other.packet_ps),
            byte_ps: self.byte_ps.saturating_add(other.byte_ps),
            wire_milli: self.wire_milli.saturating_add(other.wire_milli),
        }
    }

    /// It, `milli` times in thousandths, of which there are at least 1,000: what is dearer stays
    /// dearer.
    #[must_use]
    pub fn times_milli(&self, milli: u64) -> Self {
        if milli <= 1_000 {
            return *self;
        }
        let scaled = |part: u64| match part.checked_mul(milli) {
            Some(product) => product.div_ceil(1_000),
            None => part.saturating_mul(milli / 1_000),
        };
        Self {
            train_ps: scaled(self.train_ps),
            packet_ps: scaled(self.packet_ps),
            byte_ps: scaled(self.byte_ps),
            wire_milli: scaled(self.wire_milli),
        }
    }

    /// It, `count` times.
    #[must_use]
    pub fn times(&self, count: u64) -> Self {
        Self {
            train_ps: self.train_ps.saturating_mul(count),
            packet_ps: self.packet_ps.saturating_mul(count),
            byte_ps: self.byte_ps.saturating_mul(count),
            wire_milli: self.wire_milli.saturating_mul(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let set = Properties::of(&[Property::Order, Property::NoLoss]);
        assert!(set.contains(Property::Order) && !set.contains(Property::Integrity));
        assert!(set.contains_all(Properties::of(&[Property::NoLoss])));
        assert!(!Properties::NONE.contains_all(set) && set.contains_all(Properties::NONE));
        assert_eq!(set.iter().collect::<Vec<_>>(), [Property::Order, Property::NoLoss]);
        assert_eq!(set.without(Properties::of(&[Property::Order])).iter().count(), 1);
    }

    #[test]
    fn a_way_back_from_one_is_one_from_each_and_not_the_other_way_round() {
        let (one, each) = (Property::WayBack, Property::Answers);
        assert_eq!(Properties::of(&[one]).lacks(&[each, one]), None);
        assert_eq!(Properties::of(&[each]).lacks(&[each, one]), Some(one));
        assert_eq!(Properties::NONE.lacks(&[each, one]), Some(each), "the first");
    }
}
