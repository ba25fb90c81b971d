//! The oracle: every candidate of a catalogue, one after the other, and nothing clever.

use dacapo_lift::{
    Catalogue, Cost, Graph, ModuleSpec, Needs, Node, Offer, Params, Property, Service, Setting,
    Stratum, TransportSpec, check,
};
use dacapo_qos::configure::{Demand, DemandSet};
use dacapo_qos::{AttributeKey, Pins, Request, Requirement, Use, attribute::level};
use std::collections::BTreeSet;

/// A legal candidate and what it gives, whatever is asked.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub graph: Graph,
    pub transport: &'static TransportSpec,
    pub service: Service,
    pub cost: Cost,
    pub work_ps: u128,
    pub cpu_ppb: u64,
    pub fits: bool,
}

/// Number, then parameters, of each module from the network upwards.
type Upwards = Vec<(u16, Vec<(u16, u64)>)>;

impl Candidate {
    pub fn tie(&self) -> (u128, Cost, usize, u16, Upwards) {
        let nodes = &self.graph.nodes;
        let node = |node: &Node| (node.module, node.params.values().to_vec());
        let upwards = nodes.iter().rev().map(node).collect();
        (self.work_ps, self.cost, nodes.len(), self.transport.id, upwards)
    }

    pub fn has(&self, module: &str, catalogue: &Catalogue) -> bool {
        let name = |node: &Node| catalogue.by_id(node.module).map(|entry| entry.spec.name);
        self.graph.nodes.iter().any(|node| name(node) == Some(module))
    }
}

/// All legal candidates, in the order among equals.
pub fn candidates(catalogue: &Catalogue, request: &Request) -> Vec<Candidate> {
    let slots = slots(catalogue);
    let mut found = Vec::new();
    for &transport in catalogue.transports() {
        let Some(service) = transport.serve(&request.setting, request.path_head) else { continue };
        let start = Growing { nodes: Vec::new(), service, cost: transport.profile.cost() };
        let mut grown = vec![start];
        for slot in &slots {
            let more: Vec<Growing> = grown
                .iter()
                .flat_map(|below| slot.iter().flat_map(|spec| on(below, spec, &request.setting)))
                .collect();
            grown.extend(more);
        }
        let legal =
            grown.into_iter().filter(|grown| is_legal(catalogue, transport, grown, request));
        found.extend(legal.map(|grown| finished(grown, transport, request)));
    }
    found.sort_by_cached_key(Candidate::tie);
    found
}

#[derive(Clone)]
struct Growing {
    /// From the network upwards.
    nodes: Vec<Node>,
    service: Service,
    cost: Cost,
}

fn on(below: &Growing, spec: &'static ModuleSpec, setting: &Setting) -> Vec<Growing> {
    let grow = |params: Params| {
        let service = spec.serve(&params, setting, &below.service)?;
        let own = spec.profile.cost(&params);
        let cost = below.cost.times_milli(spec.profile.packets_milli(&params, setting)).plus(&own);
        let mut nodes = below.nodes.clone();
        nodes.push(Node { module: spec.id, params });
        Some(Growing { nodes, service, cost })
    };
    if !spec.profile.suits(setting) {
        return Vec::new();
    }
    spec.points(setting, &below.service).into_iter().filter_map(grow).collect()
}

/// The modules by stratum and function, in the order in which they are stacked.
fn slots(catalogue: &Catalogue) -> Vec<Vec<&'static ModuleSpec>> {
    let specs: Vec<&'static ModuleSpec> = catalogue.entries().iter().map(|e| e.spec).collect();
    let mut strata: Vec<Stratum> = specs.iter().map(|spec| spec.stratum).collect();
    strata.sort_unstable();
    strata.dedup();
    let mut slots = Vec::new();
    for stratum in strata.into_iter().rev() {
        let here: Vec<_> = specs.iter().copied().filter(|spec| spec.stratum == stratum).collect();
        let mut left: BTreeSet<&str> = here.iter().map(|spec| spec.function).collect();
        while let Some(first) = left.first().copied() {
            // Nobody who is left has to stand below it.
            let is_free = |function: &&str| {
                let below = |spec: &&ModuleSpec| {
                    spec.function != *function
                        && left.contains(spec.function)
                        && spec.beneath.contains(function)
                };
                !here.iter().copied().any(|spec| below(&spec))
            };
            let next = left.iter().copied().find(|function| is_free(function)).unwrap_or(first);
            left.remove(next);
            slots.push(here.iter().copied().filter(|spec| spec.function == next).collect());
        }
    }
    slots
}

fn is_legal(
    catalogue: &Catalogue,
    transport: &TransportSpec,
    grown: &Growing,
    request: &Request,
) -> bool {
    let offer = Offer {
        transport: transport.name,
        properties: transport.properties,
        datagram_len: transport.datagram_len_over(request.setting.path.datagram_len) as usize,
        path_head: request.path_head as usize,
    };
    let graph = Graph { nodes: grown.nodes.iter().rev().cloned().collect() };
    check(catalogue, &graph, &offer, Needs::default()).is_ok()
}

fn finished(grown: Growing, transport: &'static TransportSpec, request: &Request) -> Candidate {
    let Growing { mut nodes, mut service, cost } = grown;
    nodes.reverse();
    if request.setting.deadline_ns < u64::MAX {
        // What is nearly full is late.
        let rate_bps = u128::from(service.figures.rate_bps) * 98 / 100;
        service.figures.rate_bps = u64::try_from(rate_bps).unwrap();
    }
    let units = request.setting.units;
    let (room, head) = (u64::from(service.payload_len_max), u64::from(request.unit_head));
    let whole = service.properties.contains(Property::AnyUnitSize)
        || u64::from(units.len_max) + head <= room;
    let (packets, trains) = if whole || !units.divisible {
        let packets = (u64::from(units.len_mean) + head).div_ceil(room);
        let datagram = transport.datagram_len_over(request.setting.path.datagram_len);
        (packets, (packets * u64::from(datagram)).div_ceil(65_536).clamp(1, packets))
    } else {
        let pieces = u64::from(units.len_mean).div_ceil(room - head);
        (pieces, pieces)
    };
    let work_ps = u128::from(trains) * u128::from(cost.train_ps)
        + u128::from(packets) * u128::from(cost.packet_ps)
        + u128::from(units.len_mean) * u128::from(cost.byte_ps);
    let cpu_ppb = (work_ps * u128::from(units.per_ks)).div_ceil(1_000_000) as u64;
    // A byte on the network is worth a nanosecond.
    let work_ps = work_ps + u128::from(units.len_mean) * u128::from(cost.wire_milli);
    let fits = whole || units.divisible;
    Candidate { graph: Graph { nodes }, transport, service, cost, work_ps, cpu_ppb, fits }
}

/// Everything that a request asks for.
pub fn demands(request: &Request) -> DemandSet {
    let mut set: DemandSet =
        request.attributes.entries().map(|(key, _)| Demand::Attribute(key)).collect();
    set = set.with(DemandSet::one(Demand::UnitSize));
    if matches!(request.used, Use::Played { playout_ns: Some(_) }) {
        set = set.with(DemandSet::one(Demand::Playout));
    }
    set
}

/// The best candidate when only these demands count, by going through all of them.
pub fn best<'c>(
    candidates: &'c [Candidate],
    request: &Request,
    active: DemandSet,
    pins: &Pins,
) -> Option<&'c Candidate> {
    let pinned = |candidate: &&Candidate| {
        pins.transport.is_none_or(|id| id == candidate.transport.id)
            && pins.graph.as_ref().is_none_or(|graph| *graph == candidate.graph)
    };
    let met = Active::of(request, active);
    let feasible: Vec<&Candidate> =
        candidates.iter().filter(pinned).filter(|candidate| met.is_met_by(candidate)).collect();
    let cheapest = feasible.iter().map(|candidate| candidate.work_ps).min()?.max(1);
    let scales: Vec<Scale> = request
        .attributes
        .entries()
        .filter(|(key, _)| active.contains(Demand::Attribute(*key)))
        .filter_map(|(key, asked)| Scale::of(key, asked.min, asked.weight, request, &feasible))
        .collect();
    if scales.is_empty() {
        return feasible.first().copied();
    }
    let score = |candidate: &Candidate| {
        let cost = candidate.work_ps * 1_000_000 / cheapest;
        let soft = |scale: &Scale| scale.ppm(candidate) * u128::from(scale.weight) / 100;
        cost + scales.iter().map(soft).sum::<u128>()
    };
    // The candidates come in their order among equals, and the first of them counts.
    let mut best: Option<(u128, &Candidate)> = None;
    for candidate in feasible {
        let score = score(candidate);
        if best.is_none_or(|(least, _)| score < least) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// An attribute with a weight, and the best value that there is.
struct Scale {
    key: AttributeKey,
    weight: u8,
    best: u64,
}

impl Scale {
    fn of(
        key: AttributeKey,
        min: Option<u64>,
        weight: Option<u8>,
        request: &Request,
        feasible: &[&Candidate],
    ) -> Option<Self> {
        let preferred = match key {
            AttributeKey::Confidentiality => min == Some(level::CONFIDENTIALITY_PREFERRED),
            AttributeKey::Authenticity => min == Some(level::AUTHENTICITY_PREFERRED),
            AttributeKey::Jitter if request.used != Use::Handed => return None,
            _ => false,
        };
        let weight = weight.or(preferred.then_some(100))?;
        let figure = |candidate: &&Candidate| {
            let figures = &candidate.service.figures;
            match key {
                AttributeKey::Cpu => candidate.cpu_ppb,
                AttributeKey::Throughput => figures.rate_bps,
                AttributeKey::Loss => figures.loss_ppb,
                AttributeKey::Jitter => figures.jitter_ns,
                _ => figures.delay_ns,
            }
        };
        let values = feasible.iter().map(figure);
        let best = if key == AttributeKey::Throughput { values.max() } else { values.min() }?;
        (weight > 0).then_some(Self { key, weight, best })
    }

    fn ppm(&self, candidate: &Candidate) -> u128 {
        let figures = &candidate.service.figures;
        let has = |property| candidate.service.properties.contains(property);
        let over = |value: u64, quantum: u64| {
            u128::from(value + quantum) * 1_000_000 / u128::from(self.best + quantum)
        };
        let lacks = |has: bool| if has { 0 } else { 1_000_000 };
        match self.key {
            AttributeKey::Throughput => {
                u128::from(self.best) * 1_000_000 / u128::from(figures.rate_bps.max(1))
            }
            AttributeKey::Loss => over(figures.loss_ppb, 1_000),
            AttributeKey::Jitter => over(figures.jitter_ns, 1_000_000),
            AttributeKey::Delay | AttributeKey::Deadline => over(figures.delay_ns, 1_000_000),
            AttributeKey::Cpu => {
                u128::from(candidate.cpu_ppb) * 1_000_000 / u128::from(self.best.max(1))
            }
            AttributeKey::Order => lacks(has(Property::Order)),
            AttributeKey::Newest => lacks(has(Property::Newest) || has(Property::NoLoss)),
            AttributeKey::Integrity => lacks(has(Property::Integrity)),
            AttributeKey::Confidentiality => lacks(has(Property::Confidentiality)),
            AttributeKey::Authenticity => {
                lacks(has(Property::GroupAuthenticity) || has(Property::SourceAuthenticity))
            }
            _ => 0,
        }
    }
}

/// The demands that count, looked up once.
pub struct Active {
    asked: Vec<(Demand, Requirement)>,
    playout: Option<u64>,
    receivers: u64,
    bound_bps: u64,
    units: u64,
    handed: bool,
}

impl Active {
    pub fn of(request: &Request, active: DemandSet) -> Self {
        let requirement = |demand| match demand {
            Demand::Attribute(key) => request.attributes.get(key).copied().unwrap_or_default(),
            _ => Requirement::default(),
        };
        let playout = match request.used {
            Use::Played { playout_ns } => playout_ns.filter(|_| active.contains(Demand::Playout)),
            Use::Handed => None,
        };
        let several = active.contains(Demand::Attribute(AttributeKey::Receivers));
        let receivers = request.attributes.get(AttributeKey::Receivers).and_then(|asked| asked.min);
        let bound = request.setting.bound_bps;
        Self {
            asked: active.iter().map(|demand| (demand, requirement(demand))).collect(),
            playout,
            receivers: receivers.filter(|_| several).unwrap_or(1),
            bound_bps: if bound == 0 { u64::MAX } else { bound },
            units: request.setting.units.per_ks * 1_000,
            handed: request.used == Use::Handed,
        }
    }

    pub fn is_met_by(&self, candidate: &Candidate) -> bool {
        self.asked.iter().all(|(demand, asked)| self.meets(candidate, *demand, asked))
    }

    fn meets(&self, candidate: &Candidate, demand: Demand, asked: &Requirement) -> bool {
        let figures = &candidate.service.figures;
        let has = |property| candidate.service.properties.contains(property);
        let at_most = |value: u64| asked.max.is_none_or(|max| value <= max);
        let at_least = |value: u64| asked.min.is_none_or(|min| value >= min);
        let least = asked.min.unwrap_or(0);
        let key = match demand {
            Demand::Attribute(key) => key,
            Demand::UnitSize => return candidate.fits,
            Demand::Playout => return self.playout.is_none_or(|ns| figures.delay_ns <= ns),
        };
        match key {
            AttributeKey::Throughput => at_least(figures.rate_bps) && at_most(self.bound_bps),
            AttributeKey::Deadline
                if self.handed && asked.max.is_some() && !has(Property::Timely) =>
            {
                false
            }
            AttributeKey::Delay | AttributeKey::Deadline => {
                at_most(figures.delay_ns) && self.playout.is_none_or(at_most)
            }
            AttributeKey::Jitter => !self.handed || at_most(figures.jitter_ns),
            AttributeKey::Loss if asked.max == Some(0) => has(Property::NoLoss),
            AttributeKey::Loss => at_most(figures.loss_ppb),
            AttributeKey::Order => least == 0 || has(Property::Order),
            AttributeKey::Integrity => least == 0 || has(Property::Integrity),
            AttributeKey::Newest => least == 0 || has(Property::Newest) || has(Property::NoLoss),
            AttributeKey::FrameRate => at_least(self.units) && at_most(self.units),
            AttributeKey::Cpu => at_most(candidate.cpu_ppb * self.receivers),
            AttributeKey::Confidentiality => least < 2 || has(Property::Confidentiality),
            AttributeKey::Authenticity => match least {
                0 | 1 => true,
                2 => has(Property::GroupAuthenticity) || has(Property::SourceAuthenticity),
                _ => has(Property::SourceAuthenticity),
            },
            AttributeKey::Duplicates
            | AttributeKey::Priority
            | AttributeKey::Share
            | AttributeKey::Receivers => true,
        }
    }
}
