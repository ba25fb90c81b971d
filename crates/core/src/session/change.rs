//! The exchange that changes a running flow's graph, hitless (`make`).
//!
//! ```text
//!   sender                          receiver
//!   PREPARE(e, graph, label) ---->  builds e beside n
//!   <------------- READY(e, label)  accepts both labels
//!   the next unit enters e
//!   SWITCHED(e, base) ----------->
//!   in band: END(n) BEGIN(e) ---->  settles n
//!   <---------------------- DONE(n)
//! ```
//!
//! Invariant: a change that is not ready in 5 s is aborted and the flow stays in n; the number e is
//! not used again.

use super::setup::extend;
use super::{FlowEnd, Session, SessionCx, no_session};
use crate::agreement::check_named;
use crate::effect::Out;
use crate::error::{Code, Error};
use crate::flow::epoch::RxEpoch;
use crate::flow::sender::Sender;
use crate::flow::{Context, FlowOut};
use dacapo_wire::change::{Cannot, Mode, Prepare, Ready, Switched};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::message::Message;

impl Session {
    /// Changes a flow that this end sends to another graph (or an equal one) while it runs.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when this end does not send such a flow, a change is going on or the
    /// flow has ended; [`Code::IllegalGraph`] with the reason.
    pub fn change(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        graph: GraphForm,
        out: &mut Out,
    ) -> Result<(), Error> {
        let flow = self.flows.get(index).ok_or_else(|| no_session(self.id))?;
        let sender = changeable(&flow.end)?;
        let (epoch, offer) = (sender.next_epoch(), &flow.offer);
        let len_max = sender.current().datagram_len_max();
        let len = len_max.min(sender.datagram_len());
        let mut wanted = offer.clone();
        wanted.graph = graph.clone();
        cx.shared.graphs.check(&wanted, len)?;
        flow.admits(&cx.shared.graphs, &graph)?;
        let built = cx.shared.graphs.build(&graph, len_max, offer.unit_len_max as usize)?;
        let label = self.allot(cx, index, epoch)?;
        let mut prepare = Prepare {
            flow: index as u16,
            epoch,
            label,
            mode: Mode::Make,
            graph,
            transcript: [0; 32],
            hints: Vec::new(),
            transport: None,
        };
        let flow = self.flows.get_mut(index).ok_or_else(|| no_session(self.id))?;
        prepare.transcript = extend(flow.transcript, &Message::Prepare(prepare.clone()));
        flow.transcript = prepare.transcript;
        if let FlowEnd::Sender(sender) = &mut flow.end {
            sender.prepare(cx.now, built, label);
        }
        out.send(self.id, Message::Prepare(prepare));
        Ok(())
    }

    /// A message of the exchange has come.
    pub(super) fn handle_change(
        &mut self,
        cx: &mut SessionCx<'_>,
        message: Message,
        out: &mut Out,
    ) {
        match message {
            Message::Prepare(prepare) => self.handle_prepare(cx, &prepare, out),
            Message::Ready(ready) => self.handle_ready(cx, &ready, out),
            Message::Cannot(cannot) => {
                let error = Error::from_peer(cannot.code, &cannot.text);
                self.with_flow_of(cx, cannot.flow, out, |end, _, told| {
                    if let FlowEnd::Sender(sender) = end {
                        sender.handle_cannot(cannot.epoch, error, told);
                    }
                });
            }
            Message::Abort(abort) => self.with_flow_of(cx, abort.flow, out, |end, cx, told| {
                if let FlowEnd::Receiver(receiver) = end {
                    receiver.handle_abort(cx, abort.epoch, told);
                }
            }),
            Message::Switched(Switched { flow, epoch, base }) => {
                let times = cx.times();
                self.with_flow_of(cx, flow, out, |end, cx, told| {
                    if let FlowEnd::Receiver(receiver) = end {
                        receiver.handle_switched(cx, epoch, base, times, told);
                    }
                });
            }
            Message::Done(done) => self.with_flow_of(cx, done.flow, out, |end, cx, told| {
                if let FlowEnd::Sender(sender) = end {
                    sender.handle_done(cx, done.epoch, told);
                }
            }),
            // A wish of the receiver: who decides about changes comes with the search for graphs.
            Message::Request(_) => {}
            _ => {}
        }
    }

    /// Runs `body` over one flow and does what it tells; a flow that does not exist is passed over.
    fn with_flow_of(
        &mut self,
        cx: &mut SessionCx<'_>,
        flow: u16,
        out: &mut Out,
        body: impl FnOnce(&mut FlowEnd, &mut Context<'_>, &mut FlowOut),
    ) {
        if let Some(index) = self.index_of(flow) {
            self.with_flow(cx, index, out, body);
        }
    }

    fn handle_prepare(&mut self, cx: &mut SessionCx<'_>, prepare: &Prepare, out: &mut Out) {
        let (flow, epoch) = (prepare.flow, prepare.epoch);
        let answer = match self.try_prepare(cx, prepare) {
            Ok(label) => Message::Ready(Ready { flow, epoch, label, position: None }),
            Err(error) => {
                cx.shared.changes_refused += 1;
                let (code, text) = (error.code as u16, error.text);
                Message::Cannot(Cannot { flow, epoch, code, text })
            }
        };
        out.send(self.id, answer);
    }

    /// Builds the proposed epoch beside the running one; its label.
    fn try_prepare(&mut self, cx: &mut SessionCx<'_>, prepare: &Prepare) -> Result<u32, Error> {
        let index = self.index_of(prepare.flow).ok_or_else(|| no_session(self.id))?;
        let flow = self.flows.get_mut(index).ok_or_else(|| no_session(self.id))?;
        let FlowEnd::Receiver(receiver) = &flow.end else {
            return Err(Error::new(Code::Violation, "this end does not receive the flow"));
        };
        let mut bare = prepare.clone();
        bare.transcript = [0; 32];
        let transcript = extend(flow.transcript, &Message::Prepare(bare));
        if transcript != prepare.transcript {
            let text = "the two ends do not remember the same exchange";
            return Err(Error::new(Code::Violation, text));
        }
        flow.transcript = transcript;
        let mut wanted = flow.offer.clone();
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
        check_named(&self.modules, &wanted.graph)?;
        flow.admits(graphs, &wanted.graph)?;
        let built = graphs.build(&wanted.graph, len, wanted.unit_len_max as usize)?;
        let ordered = graphs.gives_order(wanted.transport, &wanted.graph);
        let label = self.allot(cx, index, prepare.epoch)?;
        let mut epoch = RxEpoch::new(prepare.epoch, built, label, ordered);
        epoch.label_tx = prepare.label;
        if let Some(FlowEnd::Receiver(receiver)) = self.flows.get_mut(index).map(|it| &mut it.end) {
            receiver.prepare(epoch);
        }
        Ok(label)
    }

    fn handle_ready(&mut self, cx: &mut SessionCx<'_>, ready: &Ready, out: &mut Out) {
        let rtt = cx.times().rtt;
        let (epoch, label, flow) = (ready.epoch, ready.label, ready.flow);
        self.with_flow_of(cx, flow, out, |end, cx, told| {
            if let FlowEnd::Sender(sender) = end
                && let Some(base) = sender.handle_ready(cx, epoch, label, rtt)
            {
                told.messages.push(Message::Switched(Switched { flow, epoch, base }));
            }
        });
    }
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
