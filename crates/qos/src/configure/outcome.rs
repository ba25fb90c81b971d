//! [`Outcome`]: what a graph makes of a flow; and [`End`], a candidate with its outcome.
//!
//! The service at the top of a graph, put together with the units: how many packets and trains a
//! unit becomes, and what that costs.
//!
//! ```text
//!   unit  [head|.................................]          len_mean + unit_head
//!            v joined by a module (units of any size)          v not joined, but divisible
//!   packets [......][......][..]   n of them, 1 of n trains    [head|....][head|....]  units are
//!   cut
//! ```
//!
//! Invariant: a better service at a lower cost, over the same transport, never makes a worse
//! outcome.

use super::frontier::Stack;
use super::request::{Request, Use};
use dacapo_lift::{Figures, Properties, Property, TransportSpec, Units};
use std::cmp::Ordering;

/// The longest train, in bytes.
const TRAIN_LEN_MAX: u64 = 65_536;
const MS: u64 = 1_000_000;
/// What a byte on the network is worth in processor time, in ps: a core for 8 Gbit/s.
const WIRE_PS: u64 = 1_000;
/// The playout delay where none is asked for and the path allows it.
const PLAYOUT_NS: u64 = 100 * MS;

/// What a graph makes of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What is kept.
    pub properties: Properties,
    /// The share of units that is lost, in ppb.
    pub loss_ppb: u64,
    /// The one-way delay that 99 of 100 units do not exceed, in ns, before a playout.
    pub delay_ns: u64,
    /// That delay less the shortest one, in ns, before a playout.
    pub jitter_ns: u64,
    /// The payload that gets through, in bit/s.
    pub rate_bps: u64,
    /// Processor time of both ends, in ppb of a core, for all receivers that are asked for.
    pub cpu_ppb: u64,
    /// The delay at which units are shown, in ns; none where they are handed over as they come.
    pub playout_ns: Option<u64>,
    /// The longest unit that is carried whole, in bytes; longer ones are cut where that is allowed.
    pub unit_len_max: u32,
    /// Packets of a unit of mean length.
    pub packets_per_unit: u64,
    /// Trains of a unit of mean length.
    pub trains_per_unit: u64,
    /// Bytes that go over the network for each byte of a packet, in thousandths: copies, parities.
    pub wire_milli: u64,
}

/// What does not depend on what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub properties: Properties,
    pub figures: Figures,
    /// How old what is handed over may be at most, in ns.
    pub age_ns_max: u64,
    /// Whether every unit can be carried.
    pub fits: bool,
    pub unit_len_max: u32,
    pub packets: u64,
    pub trains: u64,
    pub wire_milli: u64,
    /// What a unit costs, in ps: processor time, and the network's bytes at their price.
    pub work_ps: u128,
    /// The processor time of a second for one receiver, in ppb of a core.
    pub cpu_ppb: u64,
}

/// Packets and trains of a unit of mean length, and the longest unit.
struct Split {
    packets: u64,
    trains: u64,
    unit_len_max: u32,
    fits: bool,
}

fn split(stack: &Stack, datagram_len: u32, request: &Request) -> Split {
    let Units { len_mean, len_max, divisible, .. } = request.setting.units;
    let (len_mean, len_max) = (len_mean.max(1), len_max.max(len_mean));
    let (room, head) = (stack.service.payload_len_max.max(1), request.unit_head);
    let left = room.saturating_sub(head);
    let joined = stack.service.properties.contains(Property::AnyUnitSize);
    let fits = joined || len_max <= left;
    if !fits && divisible && left > 0 {
        let pieces = u64::from(len_mean.div_ceil(left));
        return Split { packets: pieces, trains: pieces, unit_len_max: left, fits: true };
    }
    let packets = u64::from(len_mean).saturating_add(head.into()).div_ceil(room.into());
    let trains = packets.saturating_mul(datagram_len.into()).div_ceil(TRAIN_LEN_MAX);
    let unit_len_max = if fits { len_max } else { left };
    Split { packets, trains: trains.clamp(1, packets), unit_len_max, fits }
}

/// How old what a graph hands over may be at most, in ns.
fn age_ns_max(stack: &Stack) -> u64 {
    if !stack.service.properties.contains(Property::Timely) {
        return u64::MAX;
    }
    let timely = stack.steps().filter(|step| step.spec.provides.contains(&Property::Timely));
    timely.map(|step| step.spec.profile.age_ns_max(&step.params)).max().unwrap_or(0)
}

impl Facts {
    fn of(stack: &Stack, transport: &TransportSpec, request: &Request) -> Self {
        let units = &request.setting.units;
        let datagram_len = transport.datagram_len_over(request.setting.path.datagram_len);
        let Split { packets, trains, unit_len_max, fits } = split(stack, datagram_len, request);
        let of = |count: u64, each: u64| u128::from(count).saturating_mul(each.into());
        let work_ps = of(trains, stack.cost.train_ps)
            .saturating_add(of(packets, stack.cost.packet_ps))
            .saturating_add(of(units.len_mean.max(1).into(), stack.cost.byte_ps));
        let wire = of(units.len_mean.max(1).into(), stack.cost.wire_milli.saturating_mul(WIRE_PS));
        let cpu_ppb = ppb_of_core(work_ps, units.per_ks);
        Self {
            properties: stack.service.properties,
            figures: in_time(stack.service.figures, request),
            age_ns_max: age_ns_max(stack),
            fits,
            unit_len_max,
            packets,
            trains,
            wire_milli: stack.cost.wire_milli,
            work_ps: work_ps.saturating_add(wire / 1_000),
            cpu_ppb,
        }
    }

    /// The outcome of a request.
    pub fn outcome(&self, request: &Request, receivers: u64, bound_ns: u64) -> Outcome {
        Outcome {
            properties: self.properties,
            loss_ppb: self.figures.loss_ppb,
            delay_ns: self.figures.delay_ns,
            jitter_ns: self.figures.jitter_ns,
            rate_bps: self.figures.rate_bps,
            cpu_ppb: self.cpu_ppb.saturating_mul(receivers),
            playout_ns: self.playout_ns(request, bound_ns),
            unit_len_max: self.unit_len_max,
            packets_per_unit: self.packets,
            trains_per_unit: self.trains,
            wire_milli: self.wire_milli,
        }
    }

    /// The delay at which units are shown, where what is asked allows at most `bound_ns`: what is
    /// waited for at last, when that is allowed, is there by then too.
    fn playout_ns(&self, request: &Request, bound_ns: u64) -> Option<u64> {
        let Use::Played { playout_ns } = request.used else { return None };
        let step = 10 * MS;
        let last = request.setting.path.delay_ns.saturating_add(self.figures.jitter_ns);
        let wanted = self.figures.delay_ns.max(last).div_ceil(step).saturating_mul(step);
        Some(playout_ns.unwrap_or(wanted.max(PLAYOUT_NS).min(bound_ns)))
    }
}

/// Figures, of which a flow with a deadline can use less of the rate.
fn in_time(figures: Figures, request: &Request) -> Figures {
    Figures { rate_bps: request.setting.used_bps(figures.rate_bps), ..figures }
}

/// `work_ps` per unit at this many units in 1,000 seconds, in ppb of a core, rounded up.
pub(super) fn ppb_of_core(work_ps: u128, per_ks: u64) -> u64 {
    let ppb = work_ps.saturating_mul(per_ks.max(1).into()).div_ceil(1_000_000);
    u64::try_from(ppb).unwrap_or(u64::MAX)
}

/// A transport, the modules on it, and what comes of them.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub transport: &'static TransportSpec,
    pub stack: Stack,
    pub facts: Facts,
}

impl End {
    pub fn new(transport: &'static TransportSpec, stack: Stack, request: &Request) -> Self {
        let facts = Facts::of(&stack, transport, request);
        Self { transport, stack, facts }
    }

    /// The cheaper one first, and of those that cost the same the one that comes first among
    /// equals: a total order of candidates.
    pub fn order(&self, other: &Self) -> Ordering {
        let cost = |end: &Self| (end.facts.work_ps, end.stack.cost);
        let rest = |end: &Self| (end.stack.count, end.transport.id);
        cost(self)
            .cmp(&cost(other))
            .then_with(|| rest(self).cmp(&rest(other)))
            .then_with(|| self.stack.among_equals(&other.stack))
    }

    /// As people write it: "segment ! sequence ! udp".
    pub fn text(&self) -> String {
        let names = self.stack.steps().map(|step| step.spec.name);
        names.chain([self.transport.name]).collect::<Vec<_>>().join(" ! ")
    }
}
