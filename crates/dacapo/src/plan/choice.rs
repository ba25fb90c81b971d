//! [`choose`]: the protocol of one flow for one participant, as an offer.
//!
//! ```text
//!   Need + attributes (the file's, tightened by who joins) + Constraints (path, catalogues)
//!       --configure::choose-->  graph, transport, outcome  -->  FlowOffer + explanation
//! ```
//!
//! Invariant: an offer that is made is legal over its transport, as the core will check again.

use super::Assumptions;
use super::load::load_bps;
use super::need::Need;
use dacapo_core::{Code, Error};
use dacapo_lift::{Catalogue, Graph, Path, Property, Setting, TransportSpec};
use dacapo_packet::Layout;
use dacapo_qos::configure::{self, Choice, Refusal, Request};
use dacapo_qos::{AttributeKey, Attributes};
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::FlowOffer;
use dacapo_wire::{data, unit};

/// The receiver's jitter budget where nothing is played.
const PLAYOUT_NS: u64 = 100_000_000;

/// Units that are cut to fit a packet fit one over any IPv6 path: 1,280 bytes less the headers of
/// IPv6 and UDP.
const SAFE_DATAGRAM_LEN: u32 = 1_232;

/// A flow that is bounded below this goes between processes of one host as it goes between hosts:
/// shared memory would save it less than 1 % of a core in units of 16 KiB, for up to 2 MiB of
/// rings. In bit/s.
const MEMORY_BPS_MIN: u64 = 100_000_000;

/// What a choice is made in.
#[derive(Clone, Debug)]
pub(super) struct Constraints {
    /// The modules and transports that both ends have.
    pub catalogue: Catalogue,
    /// What is assumed of the path.
    pub path: Path,
    /// The participant is on this host.
    pub on_loopback: bool,
    /// What is only between processes of one host may be taken without being named: who joins has
    /// found it here, and nobody says what the path is like.
    pub is_near: bool,
}

impl Constraints {
    /// Before anybody has joined.
    pub fn new(assumptions: &Assumptions) -> Self {
        let on_loopback = assumptions.on_loopback;
        let path = assumptions.path(on_loopback);
        let catalogue = assumptions.catalogue();
        let is_near = on_loopback && assumptions.path.is_none();
        Self { catalogue, path, on_loopback, is_near }
    }

    /// What a flow is chosen from: what is only between processes of one host is taken between
    /// those, for flows that gain by it, and where the session names it.
    fn catalogue_for(&self, need: &Need, attributes: &Attributes) -> Catalogue {
        let is_near = self.is_near && gains_by_memory(need, attributes);
        let is_within_reach =
            |id| is_near || self.catalogue.transport(id).is_some_and(|spec| !spec.same_host);
        self.catalogue.only(|_| true, |id| need.pins.transport == Some(id) || is_within_reach(id))
    }
}

/// Whether a flow gains by memory of its own. One that may lose would be held up by a slow reader,
/// and one of a low rate saves less than the memory and the descriptors cost.
fn gains_by_memory(need: &Need, attributes: &Attributes) -> bool {
    let loses_nothing = attributes.get(AttributeKey::Loss).and_then(|loss| loss.max) == Some(0);
    let pace_bps = need.pace_bps(attributes);
    loses_nothing && (pace_bps == 0 || pace_bps >= MEMORY_BPS_MIN)
}

/// What was chosen for a flow.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub choice: Choice,
    pub offer: FlowOffer,
    pub layout: Layout,
    /// What it takes of the path at least, in bit/s.
    pub load_bps: u64,
    /// What is asked, the participant's part included.
    pub attributes: Attributes,
}

/// What is asked of the search.
pub(super) fn request(need: &Need, attributes: &Attributes, constraints: &Constraints) -> Request {
    let setting = Setting {
        path: constraints.path,
        units: need.units(attributes),
        bound_bps: need.effective_pace_bps(attributes, constraints.on_loopback),
        useful_ns: need.useful_ns(attributes),
        deadline_ns: need.deadline_ns(attributes),
        is_newest: attributes.newest(),
    };
    Request::new(with_medium(need, attributes), setting, need.used())
}

/// What is asked, and the throughput that the medium cannot do without: it is sent at its own rate,
/// however little is asked for, and a graph that multiplies it must leave that much of the bound.
fn with_medium(need: &Need, attributes: &Attributes) -> Attributes {
    let asked = attributes.get(AttributeKey::Throughput).copied().unwrap_or_default();
    let most = need.asked_bound_bps(attributes).unwrap_or(u64::MAX);
    let least = need.rate_bps_min().min(most);
    if asked.min.is_some_and(|min| min >= least) || least == 0 {
        return attributes.clone();
    }
    attributes.clone().min(AttributeKey::Throughput, three_digits(least).min(most))
}

/// A mean needs no more than three digits; rounded up.
fn three_digits(bps: u64) -> u64 {
    let step = 10_u64.pow(bps.max(1).ilog10().saturating_sub(2));
    bps.div_ceil(step).saturating_mul(step)
}

/// Chooses a protocol.
pub(super) fn choose(
    need: &Need,
    attributes: Attributes,
    constraints: &Constraints,
) -> Result<Chosen, Box<Refusal>> {
    let request = request(need, &attributes, constraints);
    let choice =
        configure::choose(&constraints.catalogue_for(need, &attributes), &request, &need.pins)?;
    let layout =
        layout(constraints, &choice.graph, choice.transport, constraints.path.datagram_len);
    let offer = offer(need, &attributes, constraints, &choice);
    let least = request.attributes.get(AttributeKey::Throughput).and_then(|asked| asked.min);
    let load_bps = load_bps(least.unwrap_or(0), &request.setting, layout, &choice.outcome);
    Ok(Chosen { choice, offer, layout, load_bps, attributes })
}

/// Chooses a protocol that also meets what a participant asks.
///
/// # Errors
/// [`Code::Contradiction`], [`Code::Infeasible`]; the text names the flow.
pub(super) fn tightened(
    need: &Need,
    asked: &Attributes,
    constraints: &Constraints,
) -> Result<Chosen, Error> {
    let named = |text: &dyn std::fmt::Display| format!("{}: {text}", need.name);
    let both = need.attributes.tightened(asked);
    let both = both.map_err(|error| Error::new(Code::Contradiction, named(&error)))?;
    if let Some(text) = need.too_fast(&both) {
        return Err(Error::new(Code::Infeasible, named(&text)));
    }
    choose(need, both, constraints).map_err(|refusal| Error::new(Code::Infeasible, named(&refusal)))
}

/// Where the units of a graph lie. A choice has room, so there is a layout.
fn layout(
    constraints: &Constraints,
    graph: &Graph,
    transport: &TransportSpec,
    path_datagram_len: u32,
) -> Layout {
    let datagram_len = transport.datagram_len_over(path_datagram_len) as usize;
    let layout = constraints.catalogue.layout(graph, data::LEN, datagram_len);
    layout.unwrap_or(Layout { head: data::LEN, tail: 0, segment: 1, segmented: false })
}

fn offer(
    need: &Need,
    attributes: &Attributes,
    constraints: &Constraints,
    choice: &Choice,
) -> FlowOffer {
    let transport = choice.transport;
    let joined = choice.outcome.properties.contains(Property::AnyUnitSize);
    let planned = match need.is_cut_to_fit() {
        true => constraints.path.datagram_len.min(SAFE_DATAGRAM_LEN),
        false => constraints.path.datagram_len,
    };
    let room = layout(constraints, &choice.graph, transport, planned).segment;
    let room = u32::try_from(room.saturating_sub(unit::LEN)).unwrap_or(u32::MAX);
    // One of several streams is no measure for the others.
    let congestion_control = transport.properties.contains(&Property::CongestionControl);
    let paced = !congestion_control || transport.groups;
    let format = need.found.format.as_ref();
    FlowOffer {
        flow: need.index,
        name: need.name.clone(),
        direction: need.direction,
        medium: format.map(crate::access::sinks::medium_of).unwrap_or_default(),
        group: String::new(),
        graph: form(&choice.graph),
        transport: transport.id,
        multicast: need.multicast.filter(|_| transport.groups),
        bound_bps: match paced {
            true => need.pace_bps(attributes),
            false => need.asked_bound_bps(attributes).unwrap_or(0),
        },
        unit_len_max: need.unit_len_max(joined, room),
        datagram_len: 0,
        playout_ns: choice.outcome.playout_ns.or(need.playout_ns).unwrap_or(PLAYOUT_NS),
        playout_min_ns: need.playout_min_ns,
        digest: need.digest(),
        attributes: attribute_forms(attributes),
    }
}

/// A graph as it goes over the wire.
pub(super) fn form(graph: &Graph) -> GraphForm {
    GraphForm::line(graph.nodes.iter().map(|node| (node.module, node.params.values().to_vec())))
}

/// Attributes as they go over the wire.
#[must_use]
pub fn attribute_forms(attributes: &Attributes) -> Vec<AttributeForm> {
    let form = |numbers: dacapo_qos::AttributeNumbers| AttributeForm {
        key: numbers.key,
        min: numbers.min,
        max: numbers.max,
        weight: numbers.weight,
    };
    attributes.numbers().map(form).collect()
}
