//! [`MediaPublisher`]: chooses a protocol for each participant of a plan, and opens its media.
//!
//! ```text
//!   JOIN  modules, transports, attributes, live  ->  offer: a choice per flow, tightened
//!                                                ->  open: a source or sink per flow
//! ```
//!
//! Invariants: what a plan offers can be changed before it is published; a flow is offered as it
//! was published in all that was changed, and chosen in the rest. Participants have sources of
//! their own, so that one never moves another's medium; a live one begins where the first one is
//! who has not moved.

use super::choice::{self, Chosen, Constraints};
use super::load;
use super::measured::path_to;
use super::need::Need;
use super::{Assumptions, OpenBytes, name_groups};
use crate::access::Opening;
use crate::access::live::{Begin, LiveClock};
use crate::access::timeline::{Extent, Speed};
use dacapo_base::{Address, failpoint};
use dacapo_core::{Code, Error, JoinRequest, Port, SessionProvider};
use dacapo_lift::{Graph, Node, Params, TransportSpec};
use dacapo_qos::configure::Pins;
use dacapo_qos::{AttributeNumbers, Attributes};
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::session::{Direction, FlowOffer};

/// Opens the media of a plan for each participant.
pub(super) struct MediaPublisher {
    pub needs: Vec<Need>,
    /// What the plan itself would offer, flow by flow.
    pub planned: Vec<FlowOffer>,
    pub extent: Extent,
    pub speed: Speed,
    pub assumptions: Assumptions,
    pub live: LiveClock,
    pub open_bytes: OpenBytes,
}

/// What a participant's flows are chosen in.
struct BothPaths {
    /// As the path is assumed, or described.
    assumed: Constraints,
    /// With what is known of the path, where nobody describes it.
    measured: Constraints,
}

impl SessionProvider for MediaPublisher {
    fn offer(
        &mut self,
        joining: &JoinRequest,
        published: &[FlowOffer],
    ) -> Result<Vec<FlowOffer>, Error> {
        failpoint!("plan.offer");
        let asked = attributes_of(&joining.attributes)?;
        let around = self.around(joining);
        let (mut offers, mut keys, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for flow in published {
            let Some((need, planned)) = self.of(flow) else {
                let text = format!("{}: the plan has no such flow", flow.name);
                return Err(Error::new(Code::AccessFailed, text));
            };
            let need = changed(need, planned, flow)?;
            let chosen = self.choose(&need, &asked, &around, joining)?;
            let mut offer = chosen.offer;
            keep_changes(&mut offer, planned, flow);
            offers.push(offer);
            keys.push(need.found.group());
            all.push((need, chosen.load_bps));
        }
        load::check(all.iter().map(|(need, load_bps)| (need, *load_bps)), &around.measured.path)?;
        name_groups(&mut offers, &keys);
        Ok(offers)
    }

    fn open(&mut self, flow: &FlowOffer, joining: &JoinRequest) -> Result<Port, String> {
        let (need, _) = self.of(flow).ok_or("the plan has no such flow")?;
        let begin = match joining.live {
            true => Begin::Live(self.live.clone()),
            false => Begin::Start(self.live.clone()),
        };
        let to = Opening { flow, extent: self.extent, speed: self.speed, begin };
        match (&need.found.access, flow.direction, &need.sink) {
            (Some(access), Direction::ToParticipant, _) => {
                failpoint!("source.open");
                access.source(&to).map(Port::Source)
            }
            (_, Direction::ToCreator, Some(sink)) => sink.sink(&to).map(Port::Sink),
            (Some(access), Direction::ToCreator, None) => access.sink(&to).map(Port::Sink),
            (None, ..) => (self.open_bytes)(flow, joining),
        }
    }
}

/// The need of a flow as it was published: what was changed of the plan's offer is fixed.
fn changed(need: &Need, planned: &FlowOffer, flow: &FlowOffer) -> Result<Need, Error> {
    let mut need = need.clone();
    if flow.graph != planned.graph || flow.transport != planned.transport {
        need.pins = Pins { graph: Some(graph_of(flow)), transport: Some(flow.transport) };
    }
    if flow.bound_bps != planned.bound_bps {
        need.bound_bps = Some(flow.bound_bps).filter(|bound| *bound > 0);
    }
    if flow.playout_ns != planned.playout_ns {
        need.playout_ns = Some(flow.playout_ns);
    }
    if flow.playout_min_ns != planned.playout_min_ns {
        need.playout_min_ns = flow.playout_min_ns;
    }
    if flow.unit_len_max != planned.unit_len_max {
        need.unit_max = Some(flow.unit_len_max);
    }
    if flow.digest != planned.digest {
        need.digest = Some(flow.digest);
    }
    if flow.attributes != planned.attributes {
        need.attributes = attributes_of(&flow.attributes)?;
    }
    Ok(need)
}

/// What no choice is made of: it is as it was published.
fn keep_changes(offer: &mut FlowOffer, planned: &FlowOffer, flow: &FlowOffer) {
    if flow.unit_len_max != planned.unit_len_max {
        offer.unit_len_max = flow.unit_len_max;
    }
    if flow.bound_bps != planned.bound_bps {
        offer.bound_bps = flow.bound_bps;
    }
    if flow.playout_ns != planned.playout_ns {
        offer.playout_ns = flow.playout_ns;
    }
    if flow.medium != planned.medium {
        offer.medium = flow.medium;
    }
}

fn graph_of(flow: &FlowOffer) -> Graph {
    let nodes = flow.graph.nodes.iter().map(|node| {
        let mut params = Params::new();
        node.params.iter().for_each(|(number, value)| params.set(*number, *value));
        Node { module: node.module, params }
    });
    Graph { nodes: nodes.collect() }
}

/// What a participant asks, in this end's words.
fn attributes_of(forms: &[AttributeForm]) -> Result<Attributes, Error> {
    let numbers = forms.iter().map(|form| AttributeNumbers {
        key: form.key,
        min: form.min,
        max: form.max,
        weight: form.weight,
    });
    let (attributes, unknown) = Attributes::from_numbers(numbers)
        .map_err(|error| Error::new(Code::Contradiction, error.to_string()))?;
    match unknown.first() {
        // What is asked and not understood cannot be promised.
        Some(key) => Err(Error::new(Code::Unsupported, format!("attribute number {key}"))),
        None => Ok(attributes),
    }
}

/// Why a transport cannot carry a flow to who is there, where its spec says so: behind its name.
fn why_not(transport: &TransportSpec, remote: Address) -> String {
    if transport.scheme != remote.scheme() {
        return format!(" (it takes addresses of {}, and it came from {remote})", transport.scheme);
    }
    match transport.same_host {
        true => " (it is not a process of this user on this host, or has no memory to share)",
        false => "",
    }
    .to_owned()
}

impl MediaPublisher {
    /// What a flow needs, and what the plan would offer; by its name, because flows can be left out
    /// of what is published.
    fn of(&self, flow: &FlowOffer) -> Option<(&Need, &FlowOffer)> {
        let mut flows = self.needs.iter().zip(&self.planned);
        flows.find(|(need, _)| need.name == flow.name)
    }

    fn around(&self, joining: &JoinRequest) -> BothPaths {
        let assumed = self.assumed(joining);
        let is_described = self.assumptions.path.is_some() || assumed.on_loopback;
        let path = match is_described {
            true => assumed.path,
            false => path_to(assumed.path, &joining.path),
        };
        BothPaths { measured: Constraints { path, ..assumed.clone() }, assumed }
    }

    /// What is chosen for a flow: over what is measured, but for what others receive too, which is
    /// chosen for all of them; and over what is assumed, where one round trip alone would refuse
    /// it: that may have waited for a processor.
    fn choose(
        &self,
        need: &Need,
        asked: &Attributes,
        BothPaths { assumed, measured }: &BothPaths,
        joining: &JoinRequest,
    ) -> Result<Chosen, Error> {
        let is_assumed = need.multicast.is_some() || measured.path == assumed.path;
        let (around, then) = match (is_assumed, joining.path.is_probed) {
            (true, _) => (assumed, None),
            (false, true) => (measured, None),
            (false, false) => (measured, Some(assumed)),
        };
        let refused = |error, around| self.lacking(error, need, asked, around, joining.remote);
        match (choice::tightened(need, asked, around), then) {
            (Ok(chosen), _) => Ok(chosen),
            (Err(error), None) => Err(refused(error, around)),
            (Err(_), Some(then)) => {
                choice::tightened(need, asked, then).map_err(|error| refused(error, then))
            }
        }
    }

    fn assumed(&self, joining: &JoinRequest) -> Constraints {
        let on_loopback = joining.remote.is_loopback();
        let has_module = |id| joining.modules.contains(&id);
        let has_transport = |id| joining.transports.contains(&id);
        Constraints {
            catalogue: self.assumptions.catalogue().only(has_module, has_transport),
            path: self.assumptions.path(on_loopback),
            on_loopback,
            // What needs one host is in the catalogue when the JOIN says that it was found.
            is_near: self.assumptions.path.is_none(),
        }
    }

    /// A refusal, with what the participant lacks where that is the only reason.
    fn lacking(
        &self,
        error: Error,
        need: &Need,
        asked: &Attributes,
        constraints: &Constraints,
        remote: Address,
    ) -> Error {
        let catalogue = self.assumptions.catalogue();
        // Nobody lacks what only one host has, unless it is named.
        let all = Constraints { catalogue, is_near: false, ..constraints.clone() };
        let Ok(chosen) = choice::tightened(need, asked, &all) else { return error };
        let (has, graph) = (&constraints.catalogue, &chosen.choice.graph);
        let modules = graph.nodes.iter().filter(|node| has.by_id(node.module).is_none());
        let modules = modules.filter_map(|node| all.catalogue.by_id(node.module));
        let mut lacks: Vec<String> =
            modules.map(|entry| format!("module \"{}\"", entry.spec.name)).collect();
        let is_module = !lacks.is_empty();
        let transport = chosen.choice.transport;
        if has.transport(transport.id).is_none() {
            let why = why_not(transport, remote);
            lacks.push(format!("transport \"{}\"{why}", transport.name));
        }
        let code = match (need.pins.is_empty(), is_module) {
            (true, _) => error.code,
            (false, true) => Code::UnknownModule,
            (false, false) => Code::Unsupported,
        };
        let lacks = lacks.join(", ");
        Error::new(code, format!("{}; the participant lacks {lacks}", error.text))
    }
}
