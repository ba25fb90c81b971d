//! [`frontier`]: every stack of modules over one transport that could be the best one for somebody.
//!
//! Dynamic programming over the slots of [`Order`], from the network upwards. After each slot a
//! stack is dropped when another one beats it: serves at least as well, costs at most as much, and,
//! where it costs the same, comes first among equals. Nothing that is asked plays a part, so one
//! search serves every request with the same setting, and relaxing a demand is a filter over its
//! result.
//!
//! ```text
//!   slot 3    o   o   x   o          o kept    x beaten by another of this row
//!   slot 2    o   x   o
//!   slot 1    o   o                  one Rc<Step> per arrow, shared by all that stand on it
//!   transport   o
//! ```
//!
//! Why it is exact. Let A beat B, and put the modules M on B. Profiles are monotone: on A the same
//! modules have points whose service is at least as good and whose cost is at most as high. So the
//! two ends compare as A and B did in everything that is judged; where they are equal in all of it,
//! the cost of A and B was equal (what is cheaper in a part stays cheaper in it, below saturation),
//! and the order among equals looks at the number of modules and then at modules and parameters
//! *from the network upwards*, where A's come first. The last is why parameters are compared
//! upwards: those of M need not be the same on A and on B. Each transport has a frontier of its
//! own, because a longer datagram can cost more trains.
//!
//! Invariants: at most [`CANDIDATES_MAX`] stacks are kept and at most 16 times as many are looked
//! at in a slot; beyond that there is an error, never a worse choice.
//!
//! Source: Bellman's principle with Pareto pruning (multi-objective dynamic programming).

use super::order::{Candidate, Order, Slot};
use super::request::Request;
use dacapo_lift::{
    Cost, GRAPH_NODES_MAX, Graph, ModuleSpec, Node, Params, Service, Setting, TransportSpec,
};
use std::cmp::Ordering;
use std::rc::Rc;

/// The most stacks over one transport that are kept.
pub const CANDIDATES_MAX: usize = 4_096;
const LOOKED_AT_MAX: usize = CANDIDATES_MAX * 16;

/// More stacks than are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// One module of a stack, and what it stands on.
#[derive(Debug)]
pub(super) struct Step {
    pub below: Option<Rc<Step>>,
    pub spec: &'static ModuleSpec,
    pub params: Params,
}

/// A transport with modules on it.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    pub service: Service,
    pub cost: Cost,
    /// The module at the top.
    pub top: Option<Rc<Step>>,
    /// How many modules there are.
    pub count: usize,
    /// The marks of the functions that are served.
    pub marks: u64,
}

impl Stack {
    /// The transport alone; `None` when its packets have too little room over this path.
    pub fn bare(transport: &TransportSpec, request: &Request) -> Option<Self> {
        let service = transport.serve(&request.setting, request.path_head)?;
        let cost = transport.profile.cost();
        Some(Self { service, cost, top: None, count: 0, marks: 0 })
    }

    /// The same with another module on top; `None` when it cannot stand there.
    pub fn with(
        &self,
        spec: &'static ModuleSpec,
        params: Params,
        setting: &Setting,
    ) -> Option<Self> {
        let service = spec.serve(&params, setting, &self.service)?;
        let packets = spec.profile.packets_milli(&params, setting);
        let cost = self.cost.times_milli(packets).plus(&spec.profile.cost(&params));
        let top = Some(Rc::new(Step { below: self.top.clone(), spec, params }));
        Some(Self { service, cost, top, count: self.count.saturating_add(1), marks: self.marks })
    }

    /// The modules, from the application downwards.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        std::iter::successors(self.top.as_deref(), |step| step.below.as_deref())
    }

    /// The modules as a graph.
    pub fn graph(&self) -> Graph {
        let node = |step: &Step| Node { module: step.spec.id, params: step.params.clone() };
        Graph { nodes: self.steps().map(node).collect() }
    }

    /// Which comes first among equals: the one with fewer modules, else by the modules' numbers and
    /// parameters, from the network upwards.
    pub fn among_equals(&self, other: &Self) -> Ordering {
        self.count.cmp(&other.count).then_with(|| upwards(self.top.as_ref(), other.top.as_ref()))
    }

    /// Whether this one, which comes first by cost and then among equals, leaves no use for the
    /// other one.
    fn beats(&self, other: &Self, long: bool) -> bool {
        self.service.at_least(&other.service)
            && self.cost.at_most(&other.cost)
            && self.marks & !other.marks == 0
            && (!long || self.count <= other.count)
    }
}

/// Compares as many modules of one stack with as many of another, from the network upwards.
fn upwards(a: Option<&Rc<Step>>, b: Option<&Rc<Step>>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if Rc::ptr_eq(a, b) => Ordering::Equal,
        (Some(a), Some(b)) => upwards(a.below.as_ref(), b.below.as_ref())
            .then_with(|| a.spec.id.cmp(&b.spec.id))
            .then_with(|| a.params.values().cmp(b.params.values())),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// The stacks over a transport that no other one beats.
pub(super) fn frontier(
    order: &Order,
    transport: &'static TransportSpec,
    request: &Request,
) -> Result<Vec<Stack>, TooMany> {
    let mut stacks: Vec<Stack> = Stack::bare(transport, request).into_iter().collect();
    // Where a graph can be too long, a longer stack leaves a use for a shorter one.
    let long = order.slots.len() > GRAPH_NODES_MAX;
    for slot in &order.slots {
        let raised = fill(slot, &mut stacks, &request.setting)?;
        if !raised.is_empty() {
            stacks = prune(stacks, raised, long)?;
        }
    }
    Ok(stacks)
}

/// The stacks with each module of a slot on top; those without one forget what is not asked for
/// any more.
fn fill(slot: &Slot, stacks: &mut [Stack], setting: &Setting) -> Result<Vec<Stack>, TooMany> {
    let mut all = Vec::new();
    for below in stacks.iter_mut() {
        let placed = below.marks;
        below.marks &= slot.watched;
        let marks = (placed | slot.mark) & slot.watched;
        let fits = |candidate: &&Candidate| candidate.refused_above & placed == 0;
        for candidate in slot.modules.iter().filter(fits) {
            all.extend(raised(candidate.spec, below, setting).map(|on| Stack { marks, ..on }));
        }
        if all.len() > LOOKED_AT_MAX {
            return Err(TooMany);
        }
    }
    Ok(all)
}

/// A stack with a module on top, at each of its operating points; none where the module does not
/// suit what is sent.
pub(super) fn raised(
    spec: &'static ModuleSpec,
    below: &Stack,
    setting: &Setting,
) -> impl Iterator<Item = Stack> {
    let is_tried = below.count < GRAPH_NODES_MAX && spec.profile.suits(setting);
    let points = if is_tried { spec.points(setting, &below.service) } else { Vec::new() };
    let points = points.into_iter().filter(move |params| are_allowed(spec, params));
    points.filter_map(move |params| below.with(spec, params, setting))
}

/// Whether the parameters are those of the module and within their bounds.
fn are_allowed(spec: &ModuleSpec, params: &Params) -> bool {
    params.values().iter().all(|&(number, value)| {
        let param = spec.params.get(usize::from(number));
        param.is_some_and(|param| (param.min..=param.max).contains(&value))
    })
}

/// Those of the stacks without and with a module of the slot that no other one beats. Those
/// without were compared with each other before.
fn prune(without: Vec<Stack>, with: Vec<Stack>, long: bool) -> Result<Vec<Stack>, TooMany> {
    let without = without.into_iter().map(|stack| (stack, false));
    let mut all: Vec<(Stack, bool)> = without.chain(with.into_iter().map(|s| (s, true))).collect();
    // Nothing is beaten by what comes after it in this order.
    all.sort_by(|(a, _), (b, _)| a.cost.cmp(&b.cost).then_with(|| a.among_equals(b)));
    let (mut old, mut new): (Vec<Stack>, Vec<Stack>) = (Vec::new(), Vec::new());
    for (stack, is_new) in all {
        let beaten = |by: &[Stack]| by.iter().any(|better| better.beats(&stack, long));
        if beaten(&new) || is_new && beaten(&old) {
            continue;
        }
        if is_new { &mut new } else { &mut old }.push(stack);
        if old.len().saturating_add(new.len()) > CANDIDATES_MAX {
            return Err(TooMany);
        }
    }
    old.append(&mut new);
    Ok(old)
}
