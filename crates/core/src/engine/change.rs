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

use super::exchange::extend;
use super::{Core, SessionId, no_session};
use crate::error::{Code, Error};
use crate::flow::FlowOut;
use crate::flow::epoch::RxEpoch;
use crate::labels::Target;
use crate::session::FlowEnd;
use dacapo_base::Time;
use dacapo_wire::change::{Cannot, Mode, Prepare, Ready, Switched};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::message::Message;

impl Core {
    /// Changes a flow that this end sends to another graph (or an equal one) while it runs.
    /// [`super::CoreEvent::Changed`] or [`super::CoreEvent::ChangeFailed`] follows.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when this end does not send such a flow, a change is going on or the
    /// flow has ended; [`Code::IllegalGraph`] with the reason.
    pub fn change(
        &mut self,
        now: Time,
        id: SessionId,
        index: usize,
        graph: GraphForm,
    ) -> Result<(), Error> {
        let session = self.sessions.get(&id).ok_or_else(|| no_session(id))?;
        let flow = session.flows.get(index).ok_or_else(|| no_session(id))?;
        if matches!(flow.end, FlowEnd::Member(_)) {
            let text = "a change of a flow to a group: who wants another graph joins again";
            return Err(Error::new(Code::Unsupported, text));
        }
        let FlowEnd::Sender(sender) = &flow.end else {
            return Err(Error::new(Code::NoSuchThing, "this end does not send the flow"));
        };
        if !sender.may_change() {
            return Err(Error::new(
                Code::NoSuchThing,
                "a change is going on, or the flow has ended",
            ));
        }
        let (epoch, offer) = (sender.next_epoch(), flow.offer.clone());
        let len = sender.current().datagram_len_max().min(sender.datagram_len());
        let len_max = sender.current().datagram_len_max();
        let mut wanted = offer.clone();
        wanted.graph = graph.clone();
        self.check_graph(&wanted, len)?;
        let built = self.build_graph(&graph, len_max, offer.unit_len_max as usize)?;
        let target = Target { session: id.0, flow: index, epoch };
        let label = self.allot_label(now, id, target);
        let label = label.ok_or_else(|| {
            Error::new(Code::TooMany, "labels, for flows with this peer or in all")
        })?;
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
        let session = self.sessions.get_mut(&id).ok_or_else(|| no_session(id))?;
        let flow = session.flows.get_mut(index).ok_or_else(|| no_session(id))?;
        prepare.transcript = extend(flow.transcript, &Message::Prepare(prepare.clone()));
        flow.transcript = prepare.transcript;
        if let FlowEnd::Sender(sender) = &mut flow.end {
            sender.prepare(now, built, label);
        }
        self.send_on(now, id, &Message::Prepare(prepare));
        Ok(())
    }

    /// A message of the exchange has come.
    pub(super) fn handle_change(&mut self, now: Time, id: SessionId, message: Message) {
        match message {
            Message::Prepare(prepare) => self.handle_prepare(now, id, &prepare),
            Message::Ready(ready) => self.handle_ready(now, id, &ready),
            Message::Cannot(cannot) => {
                let error = Error::from_peer(cannot.code, &cannot.text);
                let epoch = cannot.epoch;
                self.with_flow(now, id, cannot.flow, |flow, _, out| {
                    if let FlowEnd::Sender(sender) = flow {
                        sender.handle_cannot(epoch, error, out);
                    }
                });
            }
            Message::Abort(abort) => self.with_flow(now, id, abort.flow, |flow, around, out| {
                if let FlowEnd::Receiver(receiver) = flow {
                    receiver.handle_abort(around, abort.epoch, out);
                }
            }),
            Message::Switched(switched) => {
                let times = self.times(id);
                let Switched { epoch, base, .. } = switched;
                self.with_flow(now, id, switched.flow, |flow, around, out| {
                    if let FlowEnd::Receiver(receiver) = flow {
                        receiver.handle_switched(around, epoch, base, times, out);
                    }
                });
            }
            Message::Done(done) => self.with_flow(now, id, done.flow, |flow, around, out| {
                if let FlowEnd::Sender(sender) = flow {
                    sender.handle_done(around, done.epoch, out);
                }
            }),
            // A wish of the receiver: who decides about changes comes with the search for graphs.
            Message::Request(_) => {}
            _ => {}
        }
    }

    /// Runs `body` over one flow and does what it tells; a flow that does not exist is passed over.
    fn with_flow(
        &mut self,
        now: Time,
        id: SessionId,
        flow: u16,
        body: impl FnOnce(&mut FlowEnd, &mut crate::flow::Context<'_>, &mut FlowOut),
    ) {
        let Some(index) = self.sessions.get(&id).and_then(|it| it.flow_index(flow)) else { return };
        let mut out = FlowOut::default();
        self.with_session(now, id, |session, around| {
            if let Some(flow) = session.flows.get_mut(index) {
                body(&mut flow.end, around, &mut out);
            }
        });
        self.apply_out(now, id, index, out);
    }

    fn handle_prepare(&mut self, now: Time, id: SessionId, prepare: &Prepare) {
        let (flow, epoch) = (prepare.flow, prepare.epoch);
        let answer = match self.try_prepare(now, id, prepare) {
            Ok(label) => Message::Ready(Ready { flow, epoch, label, position: None }),
            Err(error) => {
                let (code, text) = (error.code as u16, error.text);
                Message::Cannot(Cannot { flow, epoch, code, text })
            }
        };
        self.send_on(now, id, &answer);
    }

    /// Builds the proposed epoch beside the running one; its label.
    fn try_prepare(&mut self, now: Time, id: SessionId, prepare: &Prepare) -> Result<u32, Error> {
        let session = self.sessions.get_mut(&id).ok_or_else(|| no_session(id))?;
        let index = session.flow_index(prepare.flow).ok_or_else(|| no_session(id))?;
        let flow = session.flows.get_mut(index).ok_or_else(|| no_session(id))?;
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
        self.check_graph(&wanted, len)?;
        let built = self.build_graph(&wanted.graph, len, wanted.unit_len_max as usize)?;
        let target = Target { session: id.0, flow: index, epoch: prepare.epoch };
        let label = self.allot_label(now, id, target);
        let label = label.ok_or_else(|| {
            Error::new(Code::TooMany, "labels, for flows with this peer or in all")
        })?;
        let ordered = self.gives_order(wanted.transport, &wanted.graph);
        let mut epoch = RxEpoch::new(prepare.epoch, built, label, ordered);
        epoch.label_tx = prepare.label;
        let flow = self.sessions.get_mut(&id).and_then(|session| session.flows.get_mut(index));
        if let Some(FlowEnd::Receiver(receiver)) = flow.map(|flow| &mut flow.end) {
            receiver.prepare(epoch);
        }
        Ok(label)
    }

    fn handle_ready(&mut self, now: Time, id: SessionId, ready: &Ready) {
        let rtt = self.times(id).rtt;
        let (epoch, label, flow) = (ready.epoch, ready.label, ready.flow);
        self.with_flow(now, id, flow, |end, around, out| {
            if let FlowEnd::Sender(sender) = end
                && let Some(base) = sender.handle_ready(around, epoch, label, rtt)
            {
                out.messages.push(Message::Switched(Switched { flow, epoch, base }));
            }
        });
    }
}
