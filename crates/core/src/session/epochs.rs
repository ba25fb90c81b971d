//! What a flow is made of at this end, and made of anew while it runs.
//!
//! ```text
//!   offer, access module --build--> the first epoch
//!   this end sends:     propose --> PREPARE            receives: PREPARE --> prepare --> its label
//! ```

use super::setup::{check_port, extend};
use super::table::Role;
use super::{Flow, FlowEnd, SessionCx};
use crate::agreement::{Agreement, check_named};
use crate::error::{Code, Error};
use crate::flow::FlowParams;
use crate::flow::epoch::{RxEpoch, TxEpoch};
use crate::flow::receiver::Receiver;
use crate::flow::sender::Sender;
use crate::graphs::Graphs;
use crate::labels::Target;
use crate::port::Port;
use dacapo_wire::change::{Mode, Prepare};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::message::Message;
use dacapo_wire::session::FlowOffer;

impl Flow {
    /// Makes this end of it: its graph, its label, its access module.
    ///
    /// # Errors
    /// The access module is none for this role; the graph is not legal here; labels are used up.
    pub fn build(
        &mut self,
        cx: &mut SessionCx<'_>,
        role: Role,
        port: Port,
        datagram_len: usize,
    ) -> Result<(), Error> {
        let offer = &self.offer;
        check_port(offer, Some(&port), role)?;
        let len_max = usize::from(offer.datagram_len);
        let len = datagram_len.min(len_max);
        let graphs = &cx.shared.graphs;
        graphs.check(offer, len)?;
        // Who sends is ready for the path to take more later.
        let built_for = if matches!(port, Port::Source(_)) { len_max } else { len };
        let unit_len_max = offer.unit_len_max as usize;
        let built = graphs.build(&offer.graph, built_for, unit_len_max)?;
        let ordered = graphs.gives_order(offer.transport, &offer.graph);
        let keeping = graphs.keeping(offer.transport, &offer.graph);
        let waits_for_room = graphs.waits_for_room(offer.transport, &offer.graph);
        // What this end has found out since, else what was agreed.
        let found = cx.peer.and_then(|peer| peer.data().settled_len());
        let found = found.filter(|_| !graphs.is_stream(offer.transport)).unwrap_or(len);
        let is_loopback = cx.peer.is_some_and(|peer| peer.remote().is_loopback());
        let pace = graphs.pace(offer, is_loopback);
        // The label of a group is its sender's.
        let is_group = graphs.is_shared(offer.transport);
        let params = FlowParams { id: self.place.1 as u16, unit_len_max, digest: offer.digest };
        let (agreement, spread) = (Agreement::new(graphs, offer), graphs.spread(offer.transport));
        let label = if is_group { 0 } else { self.allot(cx, 0)? };
        let (now, queues) = (cx.now, cx.shared.queues);
        let end = match port {
            Port::Source(source) => {
                let epoch = TxEpoch::new(0, built, label);
                let mut flow = Sender::new(now, params, source, epoch, pace, queues);
                flow.set_datagram_len(&mut cx.shared.pool, found);
                FlowEnd::Sender(Box::new(flow))
            }
            Port::Sink(sink) => {
                let clock = cx.peer.and_then(|peer| peer.data().clock());
                let mut epoch = RxEpoch::new(0, built, label, ordered);
                epoch.waits_for_room = waits_for_room;
                let mut flow = Receiver::new(params, sink, epoch, keeping, now, queues);
                flow.handle_clock(clock.unwrap_or_default());
                FlowEnd::Receiver(Box::new(flow))
            }
        };
        (self.end, self.label_rx, self.spread) = (end, label, spread);
        self.agreement = Some(agreement);
        Ok(())
    }

    /// Proposes another graph for it, or an equal one, while it runs and this end sends it: the
    /// message that says so.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when this end does not send it, a change is going on or it has ended;
    /// [`Code::IllegalGraph`] with the reason.
    pub fn propose(&mut self, cx: &mut SessionCx<'_>, graph: GraphForm) -> Result<Message, Error> {
        let sender = changeable(&self.end)?;
        let (epoch, offer) = (sender.next_epoch(), &self.offer);
        let len_max = sender.current().datagram_len_max();
        let len = len_max.min(sender.datagram_len());
        let mut wanted = offer.clone();
        wanted.graph = graph.clone();
        cx.shared.graphs.check(&wanted, len)?;
        self.admits(&cx.shared.graphs, &graph)?;
        keeps_as_much(&cx.shared.graphs, offer, &graph)?;
        let built = cx.shared.graphs.build(&graph, len_max, offer.unit_len_max as usize)?;
        let label = self.allot(cx, epoch)?;
        let mut prepare = Prepare {
            flow: self.place.1 as u16,
            epoch,
            label,
            mode: Mode::Make,
            graph,
            transcript: [0; 32],
            hints: Vec::new(),
            transport: None,
        };
        prepare.transcript = extend(self.transcript, &Message::Prepare(prepare.clone()));
        self.transcript = prepare.transcript;
        if let FlowEnd::Sender(sender) = &mut self.end {
            sender.prepare(cx.now, built, label);
        }
        Ok(Message::Prepare(prepare))
    }

    /// Builds the proposed epoch beside the running one, of modules that the peer has named, if it
    /// has named any; its label.
    ///
    /// # Errors
    /// Why the proposal is refused.
    pub fn prepare(
        &mut self,
        cx: &mut SessionCx<'_>,
        modules: &[u16],
        prepare: &Prepare,
    ) -> Result<u32, Error> {
        let FlowEnd::Receiver(receiver) = &self.end else {
            return Err(Error::new(Code::Violation, "this end does not receive the flow"));
        };
        let mut bare = prepare.clone();
        bare.transcript = [0; 32];
        let transcript = extend(self.transcript, &Message::Prepare(bare));
        if transcript != prepare.transcript {
            let text = "the two ends do not remember the same exchange";
            return Err(Error::new(Code::Violation, text));
        }
        self.transcript = transcript;
        let mut wanted = self.offer.clone();
        if prepare.mode != Mode::Make {
            return Err(Error::new(Code::Unsupported, "a change by break"));
        }
        if prepare.transport.is_some_and(|transport| transport != wanted.transport) {
            return Err(Error::new(Code::Unsupported, "a change to another transport"));
        }
        if !receiver.may_prepare(prepare.epoch) {
            return Err(Error::new(Code::TooMany, "epochs, or the flow has ended"));
        }
        let len = receiver.newest().map_or(0, |epoch| epoch.layout.stride());
        wanted.graph = prepare.graph.clone();
        let graphs = &cx.shared.graphs;
        graphs.check(&wanted, len)?;
        check_named(modules, &wanted.graph)?;
        self.admits(graphs, &wanted.graph)?;
        keeps_as_much(graphs, &self.offer, &wanted.graph)?;
        let built = graphs.build(&wanted.graph, len, wanted.unit_len_max as usize)?;
        let ordered = graphs.gives_order(wanted.transport, &wanted.graph);
        let waits_for_room = graphs.waits_for_room(wanted.transport, &wanted.graph);
        let label = self.allot(cx, prepare.epoch)?;
        let mut epoch = RxEpoch::new(prepare.epoch, built, label, ordered);
        epoch.label_tx = prepare.label;
        epoch.waits_for_room = waits_for_room;
        if let FlowEnd::Receiver(receiver) = &mut self.end {
            receiver.prepare(epoch);
        }
        Ok(label)
    }

    /// A label for an epoch of it.
    fn allot(&self, cx: &mut SessionCx<'_>, epoch: u64) -> Result<u32, Error> {
        let target = Target { session: self.place.0.0, flow: self.place.1, epoch };
        let label = cx.shared.allot(cx.now, target, self.peer);
        let too_many = "labels, for flows with this peer or in all";
        label.ok_or_else(|| Error::new(Code::TooMany, too_many))
    }
}

/// Who waits for what is missing has decided so when the flow was set up.
fn keeps_as_much(graphs: &Graphs, offer: &FlowOffer, graph: &GraphForm) -> Result<(), Error> {
    let keeping = |graph| graphs.keeping(offer.transport, graph);
    if keeping(graph) == keeping(&offer.graph) {
        return Ok(());
    }
    let text = "a change between a graph that may lose units and one that may not";
    Err(Error::new(Code::Unsupported, text))
}

/// The sender of a flow that can be changed from here.
fn changeable(end: &FlowEnd) -> Result<&Sender, Error> {
    match end {
        FlowEnd::Sender(sender) if sender.may_change() => Ok(sender),
        FlowEnd::Sender(_) => {
            Err(Error::new(Code::NoSuchThing, "a change is going on, or the flow has ended"))
        }
        FlowEnd::Member(_) => {
            let text = "a change of a flow to a group: who wants another graph joins again";
            Err(Error::new(Code::Unsupported, text))
        }
        FlowEnd::None | FlowEnd::Receiver(_) => {
            Err(Error::new(Code::NoSuchThing, "this end does not send the flow"))
        }
    }
}
