//! [`Explanation`]: why a graph was chosen.
//!
//! For each module and the transport the demands that force it, for each attribute that was asked
//! its bound, what is expected and who answers for it, the candidates next to the chosen one, and
//! what all of it rests on. It is data (`serde`) and a text for people (`Display`, in
//! `display.rs`):
//!
//! ```text
//!   sequence ! checksum ! udp: 0.0576 % of a core (default costs)
//!   why
//!     sequence  order; hold = 10 ms
//!     checksum  integrity
//!     udp       nothing asks for more; it is the cheapest
//!   expected: 49.4 Mbit/s, delay 50 ms, shown at 100 ms, jitter 10 ms, loss 0.5 %
//!   asked
//!     delay at most 150 ms: 100 ms, 50 ms to spare (enforced)
//!   rejected
//!     without sequence (checksum ! udp): order is not kept
//!   assumed of the path: 50 Mbit/s, datagrams of 1.452 kB, delay 30 ms, jitter 10 ms, loss 0.5 %
//! ```
//!
//! `enforced` is kept by a mechanism, `admitted` is what this host agrees to, `predicted` rests on
//! what is assumed of the path, `monitored` is promised by nobody.

use super::demand::Demand;
use super::forced::ForcedBy;
use super::judge::{Judge, level_kept};
use super::outcome::{End, Outcome, ppb_of_core};
use super::rejected::Rejected;
use super::request::{Request, Use};
use super::wording::{self, Side, rounded};
use crate::attribute::{AttributeKey, Kind, Requirement};
use crate::units::{format_duration, format_rate};
use dacapo_lift::Property;
use serde::Serialize;

/// Why a graph was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The graph, from the application downwards: "sequence ! udp".
    pub graph: String,
    /// Its modules, from the application downwards, and the transport.
    pub parts: Vec<Part>,
    /// What comes of it.
    pub expected: Expected,
    /// What was asked, bound by bound.
    pub attributes: Vec<Met>,
    /// What is next to it, the most interesting first.
    pub rejected: Vec<Rejected>,
    /// What is assumed of the path.
    pub assumed: Assumed,
    /// What it costs.
    pub cost: CostShare,
}

/// A module of the graph, or its transport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Its function; "transport" for that.
    pub function: &'static str,
    /// How it serves it.
    pub mechanism: &'static str,
    /// What is to be known of it here: its parameters, where they are set ("hold = 30 ms"), and of
    /// a transport what it does not do for others ("does not yield to others on the way").
    pub params: Vec<String>,
    /// Its share of the cost, in ppb of a core, for one receiver.
    pub cpu_ppb: u64,
    /// Why it is there.
    pub forced_by: Forced,
}

/// Why a part is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Forced {
    /// Somebody has fixed it.
    Pinned,
    /// No demand: the whole is cheapest with it.
    Nothing,
    /// Each of these: without any one of them it would not be there.
    Each(Vec<Asked>),
    /// Each of these is enough: only without all of them it would not be there.
    Together(Vec<Asked>),
    /// None of the many sets of demands that were tried.
    Untold,
}

/// A demand and what is asked by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// The demand.
    pub demand: Demand,
    /// In words: "delay at most 20 ms".
    pub text: String,
}

impl Asked {
    pub(super) fn new(request: &Request, demand: Demand) -> Self {
        Self { demand, text: wording::asked(request, demand) }
    }
}

/// [`Outcome`] for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// What is kept, in words.
    pub keeps: Vec<String>,
    /// The payload that gets through, in bit/s.
    pub rate_bps: u64,
    /// The one-way delay that 99 of 100 units do not exceed, in ns.
    pub delay_ns: u64,
    /// The delay at which units are shown, in ns, where they are.
    pub playout_ns: Option<u64>,
    /// The delay less the shortest one, in ns.
    pub jitter_ns: u64,
    /// The share of units that is lost, in ppb.
    pub loss_ppb: u64,
    /// The share that comes, as everything does, but after it is of use, in ppb.
    pub late_ppb: u64,
    /// The longest unit that is carried whole, in bytes.
    pub unit_len_max: u32,
    /// Packets of a unit of mean length.
    pub packets_per_unit: u64,
}

/// Who answers for a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A mechanism keeps it, whatever the path does.
    Enforced,
    /// This host has agreed to it.
    Admitted,
    /// It is expected of the path that is assumed.
    Predicted,
    /// It is watched, and promised by nobody.
    Monitored,
}

/// An attribute that was asked, one side of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Met {
    /// The attribute.
    pub demand: Demand,
    /// What is asked: "delay at most 150 ms".
    pub asked: String,
    /// What is given: "100 ms".
    pub given: String,
    /// The distance from the bound, in base units, where it is one of a figure.
    pub margin: Option<u64>,
    /// The distance in words.
    pub spare: Option<String>,
    /// Who answers for it.
    pub standing: Standing,
}

/// What is assumed of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Assumed {
    /// The longest datagram, in bytes.
    pub datagram_len: u32,
    /// What it carries, in bit/s.
    pub rate_bps: u64,
    /// The shortest one-way delay, in ns.
    pub delay_ns: u64,
    /// By how much 99 of 100 packets exceed that at most, in ns.
    pub jitter_ns: u64,
    /// The share of packets that is lost, in ppb.
    pub loss_ppb: u64,
    /// The mean length of a run of lost packets, in thousandths of a packet.
    pub burst_milli: u64,
}

/// What the graph costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CostShare {
    /// Processor time of both ends for all receivers, in ppb of a core.
    pub cpu_ppb: u64,
    /// For how many receivers.
    pub receivers: u64,
    /// Where the costs come from: "default" until they are measured on this host.
    pub source: &'static str,
}

/// Puts the explanation of a choice together.
pub(super) fn explanation(
    judge: &Judge<'_>,
    chosen: &End,
    outcome: &Outcome,
    forced: &[ForcedBy],
    rejected: Vec<Rejected>,
) -> Explanation {
    let path = judge.request.setting.path;
    // Where nothing is lost in the end, what a profile counts as lost comes too late.
    let (loss_ppb, late_ppb) = match outcome.properties.contains(Property::NoLoss) {
        true => (0, outcome.loss_ppb),
        false => (outcome.loss_ppb, 0),
    };
    Explanation {
        graph: chosen.text(),
        parts: parts(judge, chosen, forced),
        expected: Expected {
            keeps: outcome.properties.iter().map(|property| property.to_string()).collect(),
            rate_bps: outcome.rate_bps,
            delay_ns: outcome.delay_ns,
            playout_ns: outcome.playout_ns,
            jitter_ns: outcome.jitter_ns,
            loss_ppb,
            late_ppb,
            unit_len_max: outcome.unit_len_max,
            packets_per_unit: outcome.packets_per_unit,
        },
        attributes: attributes(judge, chosen, outcome),
        rejected,
        assumed: Assumed {
            datagram_len: path.datagram_len,
            rate_bps: path.rate_bps,
            delay_ns: path.delay_ns,
            jitter_ns: path.jitter_ns,
            loss_ppb: path.loss_ppb,
            burst_milli: path.burst_milli,
        },
        cost: CostShare { cpu_ppb: outcome.cpu_ppb, receivers: judge.receivers, source: "default" },
    }
}

fn parts(judge: &Judge<'_>, chosen: &End, forced: &[ForcedBy]) -> Vec<Part> {
    let mut forced = forced.iter().map(|forced| worded(judge.request, forced));
    let mut forced = || forced.next().unwrap_or(Forced::Nothing);
    let facts = &chosen.facts;
    // Whoever stands below one that makes more packets has more to do.
    let mut packets_milli = 1_000_u64;
    let mut share = |cost: dacapo_lift::Cost, made_milli: u64| {
        let cost = cost.times_milli(packets_milli);
        packets_milli = packets_milli.saturating_mul(made_milli).div_ceil(1_000);
        let of = |count: u64, each: u64| u128::from(count).saturating_mul(each.into());
        let work = of(facts.trains, cost.train_ps)
            .saturating_add(of(facts.packets, cost.packet_ps))
            .saturating_add(of(judge.request.setting.units.len_mean.into(), cost.byte_ps));
        ppb_of_core(work, judge.request.setting.units.per_ks)
    };
    let mut parts = Vec::new();
    for step in chosen.stack.steps() {
        let (spec, profile) = (step.spec, step.spec.profile);
        let made = profile.packets_milli(&step.params, &judge.request.setting);
        parts.push(Part {
            name: spec.name,
            function: spec.function,
            mechanism: spec.mechanism,
            params: wording::params(spec, &step.params),
            cpu_ppb: share(profile.cost(&step.params), made),
            forced_by: forced(),
        });
    }
    let transport = chosen.transport;
    parts.push(Part {
        name: transport.name,
        function: "transport",
        mechanism: transport.summary,
        params: wording::transport_params(transport),
        cpu_ppb: share(transport.profile.cost(), 1_000),
        forced_by: forced(),
    });
    parts
}

fn worded(request: &Request, forced: &ForcedBy) -> Forced {
    let words = |demands: &[Demand]| -> Vec<Asked> {
        demands.iter().map(|demand| Asked::new(request, *demand)).collect()
    };
    match forced {
        ForcedBy::Pinned => Forced::Pinned,
        ForcedBy::Nothing => Forced::Nothing,
        ForcedBy::Untold => Forced::Untold,
        ForcedBy::Each(demands) => Forced::Each(words(demands)),
        ForcedBy::Together(demands) => Forced::Together(words(demands)),
    }
}

/// Each bound that was asked; an attribute without one once.
fn attributes(judge: &Judge<'_>, chosen: &End, outcome: &Outcome) -> Vec<Met> {
    let sided = |(key, asked): (AttributeKey, Requirement)| {
        let takes = wording::sides(key);
        let min = asked
            .min
            .filter(|_| takes.0)
            .map(|min| Requirement { min: Some(min), ..Requirement::default() });
        let max = asked
            .max
            .filter(|_| takes.1)
            .map(|max| Requirement { max: Some(max), ..Requirement::default() });
        let weight = Requirement { min: None, max: None, ..asked };
        let weight = (min.is_none() && max.is_none()).then_some(weight);
        min.into_iter().chain(max).chain(weight).map(move |asked| (key, asked))
    };
    let sides = judge.request.attributes.entries().flat_map(sided);
    sides.map(|(key, asked)| met(judge, chosen, outcome, key, &asked)).collect()
}

fn met(
    judge: &Judge<'_>,
    chosen: &End,
    outcome: &Outcome,
    key: AttributeKey,
    asked: &Requirement,
) -> Met {
    let demand = Demand::Attribute(key);
    let value = figure(judge, outcome, key, asked);
    let below = asked.max.zip(value).map(|(max, value)| max.saturating_sub(value));
    let above = asked.min.zip(value).map(|(min, value)| value.saturating_sub(min));
    let margin = below.or(above).filter(|_| !matches!(key.kind(), Kind::Level(_)));
    let spare = margin.filter(|margin| *margin > 0);
    let given = match outcome.playout_ns {
        Some(ns) if matches!(key, AttributeKey::Delay | AttributeKey::Deadline) => {
            format_duration(ns)
        }
        _ if key == AttributeKey::Throughput && asked.max.is_some() => {
            format_rate(judge.request.setting.bound_bps)
        }
        _ => wording::given(judge, demand, &chosen.facts),
    };
    Met {
        demand,
        asked: wording::requirement(key, asked),
        given,
        margin,
        spare: spare.map(|margin| format!("{} to spare", key.format(rounded(margin, Side::Down)))),
        standing: standing(judge, chosen, key, asked),
    }
}

/// The figure that a bound is compared with.
fn figure(
    judge: &Judge<'_>,
    outcome: &Outcome,
    key: AttributeKey,
    asked: &Requirement,
) -> Option<u64> {
    let handed = judge.request.used == Use::Handed;
    match key {
        AttributeKey::Throughput if asked.max.is_some() => Some(judge.bound_bps()),
        AttributeKey::Throughput => Some(outcome.rate_bps),
        AttributeKey::Delay | AttributeKey::Deadline => {
            Some(outcome.playout_ns.unwrap_or(outcome.delay_ns))
        }
        AttributeKey::Jitter if handed => Some(outcome.jitter_ns),
        AttributeKey::Loss if asked.max != Some(0) => Some(outcome.loss_ppb),
        AttributeKey::FrameRate => Some(judge.units_per_s_millionths()),
        AttributeKey::Cpu => Some(outcome.cpu_ppb),
        _ => None,
    }
}

fn standing(judge: &Judge<'_>, chosen: &End, key: AttributeKey, asked: &Requirement) -> Standing {
    let played = judge.request.used != Use::Handed;
    match key {
        AttributeKey::Throughput if asked.max.is_some() => Standing::Enforced,
        AttributeKey::Delay | AttributeKey::Jitter | AttributeKey::Deadline if played => {
            Standing::Enforced
        }
        AttributeKey::Loss if asked.max == Some(0) => Standing::Enforced,
        AttributeKey::Deadline if !judge.lets_late_pass(&chosen.facts) => Standing::Enforced,
        AttributeKey::Throughput
        | AttributeKey::Delay
        | AttributeKey::Jitter
        | AttributeKey::Deadline
        | AttributeKey::Loss
        | AttributeKey::Cpu => Standing::Predicted,
        AttributeKey::Priority
        | AttributeKey::Share
        | AttributeKey::FrameRate
        | AttributeKey::Receivers => Standing::Admitted,
        _ if level_kept(key, &chosen.facts) > 0 => Standing::Enforced,
        // It was asked for only where it can be had.
        _ => Standing::Monitored,
    }
}
