//! [`Field`]: the candidates of a request.
//!
//! Every end of every transport's frontier, or, where a graph is pinned, that graph over each
//! transport; the cheapest first.

use super::frontier::{Stack, frontier};
use super::order::Order;
use super::outcome::End;
use super::refusal::Reason;
use super::request::{Pins, Request};
use dacapo_lift::{Catalogue, Graph, Illegal, Needs, Offer, TransportSpec, check};

/// The candidates of a request, in their order, at least one.
pub(super) struct Field {
    pub order: Order,
    pub ends: Vec<End>,
}

impl Field {
    /// The candidates that the pins leave.
    pub fn of(catalogue: &Catalogue, request: &Request, pins: &Pins) -> Result<Self, Reason> {
        let order = Order::of(catalogue).ok_or(Reason::TooMany)?;
        let transports = transports(catalogue, pins)?;
        let mut ends = match &pins.graph {
            Some(graph) => pinned(catalogue, graph, &transports, request)?,
            None => searched(&order, &transports, request)?,
        };
        ends.sort_by(End::order);
        Ok(Self { order, ends })
    }
}

fn transports(catalogue: &Catalogue, pins: &Pins) -> Result<Vec<&'static TransportSpec>, Reason> {
    let Some(id) = pins.transport else {
        // Of two with the same number the first counts.
        let first = |spec: &&&'static TransportSpec| {
            catalogue.transport(spec.id).is_some_and(|first| std::ptr::eq(first, **spec))
        };
        let open =
            catalogue.transports().iter().filter(|spec| !spec.groups && spec.spread.is_none());
        return Ok(open.filter(first).copied().collect());
    };
    catalogue.transport(id).map(|spec| vec![spec]).ok_or(Reason::UnknownTransport(id))
}

fn searched(
    order: &Order,
    transports: &[&'static TransportSpec],
    request: &Request,
) -> Result<Vec<End>, Reason> {
    let mut ends = Vec::new();
    for &transport in transports {
        let stacks = frontier(order, transport, request).map_err(|_| Reason::TooMany)?;
        ends.extend(stacks.into_iter().map(|stack| End::new(transport, stack, request)));
    }
    if ends.is_empty() { Err(Reason::NoTransport) } else { Ok(ends) }
}

fn pinned(
    catalogue: &Catalogue,
    graph: &Graph,
    transports: &[&'static TransportSpec],
    request: &Request,
) -> Result<Vec<End>, Reason> {
    let mut illegal = None;
    let mut ends = Vec::new();
    for &transport in transports {
        match end_of(catalogue, graph, transport, request) {
            Ok(end) => ends.push(end),
            Err(reason) => illegal = illegal.or(Some(reason)),
        }
    }
    if ends.is_empty() {
        return Err(illegal.map_or(Reason::NoTransport, Reason::Illegal));
    }
    Ok(ends)
}

/// A graph as it is, over a transport. Whether its units fit is not asked here.
pub(super) fn end_of(
    catalogue: &Catalogue,
    graph: &Graph,
    transport: &'static TransportSpec,
    request: &Request,
) -> Result<End, Illegal> {
    let setting = &request.setting;
    let datagram_len = transport.datagram_len_over(setting.path.datagram_len) as usize;
    let offer = Offer {
        transport: transport.name,
        properties: transport.properties,
        datagram_len,
        path_head: request.path_head as usize,
    };
    check(catalogue, graph, &offer, Needs::default())?;
    let raise = |stack: Stack, node: &dacapo_lift::Node| {
        stack.with(catalogue.by_id(node.module)?.spec, node.params.clone(), setting)
    };
    let bare = Stack::bare(transport, request);
    let stack = bare.and_then(|bare| graph.nodes.iter().rev().try_fold(bare, raise));
    // What was checked can be stacked, unless its headers leave too little room.
    let overhead = datagram_len.saturating_sub(dacapo_lift::SEGMENT_LEN_MIN);
    let stack = stack.ok_or(Illegal::NoRoom { overhead, datagram_len })?;
    Ok(End::new(transport, stack, request))
}
