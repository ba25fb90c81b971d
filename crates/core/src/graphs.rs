//! [`Graphs`]: what a core's catalogue says of a flow, and what it builds of it.
//!
//! The one place where the number of a transport is looked up and a graph is checked.
//!
//! Invariant: what [`Graphs::check`] lets pass for a length of datagrams, [`Graphs::build`]
//! builds for it, and a packet of the pool holds a datagram of it.

use crate::error::{Code, Error};
use crate::flow::receiver::Keeping;
use crate::flow::sender::Pace;
use dacapo_lift::{
    Built, Catalogue, Graph, Illegal, Meter, Needs, Node, Offer, Params, Properties, Property,
    Spread, StreamParams, TransportSpec, check,
};
use dacapo_packet::TRAIN_BYTES_MAX;
use dacapo_wire::data;
use dacapo_wire::graph::{GraphError, GraphForm};
use dacapo_wire::session::{Direction, FlowOffer};

/// The largest unit that this core agrees to, whatever the peer offers.
const UNIT_LEN_MAX: u32 = 64 << 20;

/// The bound of a flow that names none: where there is no network in between, and elsewhere until
/// there is congestion control.
const BOUND_LOOPBACK_BPS: u64 = 1_000_000_000;
const BOUND_BPS: u64 = 10_000_000;

/// The modules and transports of a core.
pub(crate) struct Graphs {
    catalogue: Catalogue,
    meter: Option<Meter>,
}

impl Graphs {
    /// Graphs whose time is taken with this meter.
    pub fn new(catalogue: Catalogue, meter: Option<Meter>) -> Self {
        Self { catalogue, meter }
    }

    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Whether the datagrams of a flow over this transport go through a stream of its own.
    pub fn is_stream(&self, transport: u16) -> bool {
        self.catalogue.transport(transport).is_some_and(|spec| spec.streams)
    }

    /// Whether one sender serves all who are offered the same flow over this transport.
    pub fn is_shared(&self, transport: u16) -> bool {
        self.catalogue.transport(transport).is_some_and(|spec| spec.groups)
    }

    /// How the packets of a flow over this transport are spread over the paths to the peer.
    pub fn spread(&self, transport: u16) -> Option<Spread> {
        self.catalogue.transport(transport)?.spread
    }

    /// How fast a flow may send: a stream that yields to others keeps its own pace, unless the flow
    /// is to be slower.
    pub fn pace(&self, offer: &FlowOffer, is_loopback: bool) -> Pace {
        match offer.bound_bps {
            // One of several streams is no measure for the others.
            0 if self.yields(offer.transport) && !self.is_shared(offer.transport) => {
                Pace::Transport
            }
            0 if is_loopback => Pace::Bound(BOUND_LOOPBACK_BPS),
            0 => Pace::Bound(BOUND_BPS),
            bound => Pace::Bound(bound),
        }
    }

    /// The facts of a transport.
    pub fn transport(&self, id: u16) -> Result<&'static TransportSpec, Error> {
        let spec = self.catalogue.transport(id);
        spec.ok_or_else(|| {
            Error::new(Code::Unsupported, format!("this end has no transport number {id}"))
        })
    }

    /// The longest datagram of a transport over a path that takes `path_len` bytes, as it is told
    /// to the peer.
    pub fn datagram_len(&self, transport: u16, path_len: usize) -> Result<u16, Error> {
        let path_len = u32::try_from(path_len).unwrap_or(u32::MAX);
        let len = self.transport(transport)?.datagram_len_over(path_len);
        Ok(u16::try_from(len).unwrap_or(u16::MAX))
    }

    fn below(&self, transport: u16) -> Properties {
        self.catalogue.below(transport)
    }

    /// Whether units that have come up wait where the sink has no room: a module sends again, or
    /// does not send before, what has none.
    pub fn waits_for_room(&self, transport: u16, graph: &GraphForm) -> bool {
        let is_held_back = self.above(transport, graph).contains(Property::FlowControl);
        is_held_back || self.keeping(transport, graph) == Keeping::Graph
    }

    /// Who sees to it that everything that is sent through a graph arrives.
    pub fn keeping(&self, transport: u16, graph: &GraphForm) -> Keeping {
        if self.below(transport).contains(Property::NoLoss) {
            return Keeping::Transport;
        }
        let is_kept = self.above(transport, graph).contains(Property::NoLoss);
        if is_kept { Keeping::Graph } else { Keeping::Nothing }
    }

    /// Whether a transport finds out by itself how fast the way is.
    fn yields(&self, transport: u16) -> bool {
        self.is_stream(transport) && self.below(transport).contains(Property::CongestionControl)
    }

    /// What a transport is told of a flow.
    pub fn stream_params(
        &self,
        offer: &FlowOffer,
        path_len: Option<usize>,
        pace: Pace,
    ) -> StreamParams {
        StreamParams {
            bound_bps: if let Pace::Bound(bound) = pace { bound } else { 0 },
            is_checked: self.above(offer.transport, &offer.graph).contains(Property::Integrity),
            path_len: path_len.and_then(|len| u16::try_from(len).ok()),
            priority: crate::schedule::priority(offer),
        }
    }

    /// Whether units come up through a graph in the order in which they were fed.
    pub fn gives_order(&self, transport: u16, graph: &GraphForm) -> bool {
        self.above(transport, graph).contains(Property::Order)
    }

    /// What is kept above a graph.
    pub fn above(&self, transport: u16, graph: &GraphForm) -> Properties {
        self.catalogue.above(transport, graph.modules())
    }

    pub fn build(
        &self,
        graph: &GraphForm,
        datagram_len: usize,
        unit_len_max: usize,
    ) -> Result<Built, Error> {
        let unit_len = unit_len_max + dacapo_wire::unit::LEN;
        let len = datagram_len.min(TRAIN_BYTES_MAX);
        let built = self.catalogue.try_build(&to_graph(graph), data::LEN, len, unit_len);
        let built = built.map_err(|said| Error::new(Code::ModuleFailed, said))?;
        let none = || Error::new(Code::UnknownModule, "the graph cannot be built here");
        Ok(Built { meter: self.meter, ..built.ok_or_else(none)? })
    }

    /// Checks the graph of a flow against this core's catalogue and the flow's transport.
    pub fn check(&self, flow: &FlowOffer, datagram_len: usize) -> Result<(), Error> {
        if flow.unit_len_max > UNIT_LEN_MAX {
            let text = format!("units of {} bytes; at most {UNIT_LEN_MAX}", flow.unit_len_max);
            return Err(Error::new(Code::UnitTooLarge, text));
        }
        // What cannot be written cannot be proposed: it would end the session.
        let malformed = |error: GraphError| Error::new(Code::IllegalGraph, error.to_string());
        flow.graph.check().map_err(malformed)?;
        if !flow.graph.is_line() {
            return Err(Error::new(Code::Unsupported, "graphs with branches"));
        }
        let transport = self.transport(flow.transport)?;
        check_group(flow, transport)?;
        let offer = Offer {
            transport: transport.name,
            properties: transport.properties,
            // A packet of the pool is no longer, whatever the transport takes.
            datagram_len: datagram_len.min(TRAIN_BYTES_MAX),
            path_head: data::LEN,
        };
        let needs = Needs { unit_len_max: flow.unit_len_max as usize + dacapo_wire::unit::LEN };
        check(&self.catalogue, &to_graph(&flow.graph), &offer, needs).map_err(|illegal| {
            let code = match illegal {
                Illegal::UnknownModule { .. } => Code::UnknownModule,
                _ => Code::IllegalGraph,
            };
            Error::new(code, illegal.to_string())
        })
    }
}

/// Checks that a flow names a group where its transport sends to one, and nowhere else.
fn check_group(flow: &FlowOffer, transport: &TransportSpec) -> Result<(), Error> {
    let name = transport.name;
    let by_address = transport.groups && !transport.streams;
    let text = match (by_address, flow.multicast) {
        (true, None) => format!("{name} sends to a group, and the flow names none"),
        (false, Some(group)) => format!("{name} does not send to groups such as {group}"),
        (true, Some(group)) if !group.ip().is_multicast() || group.port() == 0 => {
            format!("{group} is not the address and the port of a group")
        }
        _ if transport.groups && flow.direction != Direction::ToParticipant => {
            "only the creator sends to a group".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Error::new(Code::Unsupported, text))
}

/// A graph as it is on the wire, as the one that is checked and built.
fn to_graph(form: &GraphForm) -> Graph {
    let node = |node: &dacapo_wire::graph::NodeForm| {
        let mut params = Params::new();
        node.params.iter().for_each(|(number, value)| params.set(*number, *value));
        Node { module: node.module, params }
    };
    Graph { nodes: form.nodes.iter().map(node).collect() }
}
