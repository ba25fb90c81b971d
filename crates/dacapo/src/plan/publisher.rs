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

use super::choice::{self, Constraints};
use super::media::Origin;
use super::need::Need;
use super::{Assumptions, OpenBytes, name_groups};
use crate::access::live::{Begin, LiveClock};
use crate::access::timeline::{Extent, Speed};
use crate::access::{AudioSource, Progress, VideoSource, count, file, test};
use dacapo_base::failpoint;
use dacapo_core::{Code, Error, JoinRequest, Port, SessionProvider, Source};
use dacapo_lift::{Graph, Node, Params};
use dacapo_qos::configure::Pins;
use dacapo_qos::{AttributeNumbers, Attributes};
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::session::{Direction, FlowOffer};
use std::time::Duration;

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

impl SessionProvider for MediaPublisher {
    fn offer(
        &mut self,
        joining: &JoinRequest,
        published: &[FlowOffer],
    ) -> Result<Vec<FlowOffer>, Error> {
        failpoint!("plan.offer");
        let asked = attributes_of(&joining.attributes)?;
        let constraints = self.around(joining);
        let (mut offers, mut keys) = (Vec::new(), Vec::new());
        for flow in published {
            let Some((need, planned)) = self.of(flow) else {
                let text = format!("{}: the plan has no such flow", flow.name);
                return Err(Error::new(Code::AccessFailed, text));
            };
            let need = changed(need, planned, flow)?;
            let chosen = choice::tightened(&need, &asked, &constraints);
            let chosen =
                chosen.map_err(|error| self.lacking(error, &need, &asked, &constraints))?;
            let mut offer = chosen.offer;
            keep_changes(&mut offer, planned, flow);
            offers.push(offer);
            keys.push(need.found.origin.group_key());
        }
        name_groups(&mut offers, &keys);
        Ok(offers)
    }

    fn open(&mut self, flow: &FlowOffer, joining: &JoinRequest) -> Result<Port, String> {
        let origin = self.of(flow).map(|(need, _)| need.found.origin.clone());
        let origin = origin.ok_or("the plan has no such flow")?;
        match (origin, flow.direction) {
            (Origin::Raw, _) => (self.open_bytes)(flow, joining),
            (_, Direction::ToCreator) => Ok(counted(flow)),
            (origin, _) => self.open_media(flow, &origin, joining.live).map(Port::Source),
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

impl MediaPublisher {
    /// What a flow needs, and what the plan would offer; by its name, because flows can be left out
    /// of what is published.
    fn of(&self, flow: &FlowOffer) -> Option<(&Need, &FlowOffer)> {
        let mut flows = self.needs.iter().zip(&self.planned);
        flows.find(|(need, _)| need.name == flow.name)
    }

    fn around(&self, joining: &JoinRequest) -> Constraints {
        let on_loopback = joining.remote.ip().is_loopback();
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
            let why = match transport.same_host {
                true => {
                    " (it is not a process of this user on this host, or has no memory to share)"
                }
                false => "",
            };
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

    fn open_media(
        &self,
        flow: &FlowOffer,
        origin: &Origin,
        live: bool,
    ) -> Result<Box<dyn Source>, String> {
        let (extent, speed, len) = (self.extent, self.speed, flow.unit_len_max);
        let begin = match live {
            true => Begin::Live(self.live.clone()),
            false => Begin::Start(self.live.clone()),
        };
        failpoint!("source.open");
        let text = |error: dacapo_media::testmovie::TestMovieError| error.to_string();
        Ok(match origin {
            Origin::Pictures { path, stream } => {
                let pictures = file::AviPictures::open(path, *stream)?;
                Box::new(VideoSource::new(pictures, extent, speed).beginning(begin))
            }
            Origin::AviSound { path, stream } => {
                let sound = file::AviSound::open(path, *stream)?;
                Box::new(AudioSource::new(sound, extent, speed, len).beginning(begin))
            }
            Origin::SoundFile { path } => {
                let sound = file::WavSound::open(path)?;
                Box::new(AudioSource::new(sound, extent, speed, len).beginning(begin))
            }
            Origin::TestVideo(movie) => {
                let pictures = test::TestPictures::new(movie).map_err(text)?;
                Box::new(VideoSource::new(pictures, extent, speed).beginning(begin))
            }
            Origin::TestAudio(movie) => {
                let sound = test::TestSound::new(movie).map_err(text)?;
                Box::new(AudioSource::new(sound, extent, speed, len).beginning(begin))
            }
            Origin::Missing(path) => return Err(file::at(path, &"it was missing")),
            Origin::Raw => return Err("bytes come from the application".to_owned()),
        })
    }
}

/// A sink that only counts: media that a participant sends to whoever serves.
fn counted(flow: &FlowOffer) -> Port {
    let budget = Duration::from_nanos(flow.playout_ns);
    Port::Sink(Box::new(count::CountSink::new(Progress::new(&flow.name), budget)))
}
