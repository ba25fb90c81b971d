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

use super::Flows;
use crate::effect::Out;
use crate::error::Error;
use crate::flow::{Context, FlowOut};
use crate::session::{FlowEnd, SessionCx, no_session};
use dacapo_wire::change::{Cannot, Prepare, Ready, Switched};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::message::Message;

impl Flows {
    /// Changes a flow that this end sends to another graph (or an equal one) while it runs.
    ///
    /// # Errors
    /// [`crate::Code::NoSuchThing`] when there is no such flow; as [`Flow::propose`].
    ///
    /// [`Flow::propose`]: crate::session::Flow::propose
    pub fn change(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        graph: GraphForm,
        out: &mut Out,
    ) -> Result<(), Error> {
        let proposed = self.on(index, |flow| flow.propose(cx, graph));
        out.send(self.session, proposed.unwrap_or_else(|| Err(no_session(self.session)))?);
        Ok(())
    }

    /// A message of the exchange has come; the peer has named these modules, if any.
    pub fn handle_change(
        &mut self,
        cx: &mut SessionCx<'_>,
        modules: &[u16],
        message: Message,
        out: &mut Out,
    ) {
        match message {
            Message::Prepare(prepare) => self.handle_prepare(cx, modules, &prepare, out),
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
            // A REQUEST is a wish of the receiver: who decides about changes comes with the search
            // for graphs.
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
            self.with(cx, index, out, body);
        }
    }

    fn handle_prepare(
        &mut self,
        cx: &mut SessionCx<'_>,
        modules: &[u16],
        prepare: &Prepare,
        out: &mut Out,
    ) {
        let (flow, epoch) = (prepare.flow, prepare.epoch);
        let index = self.index_of(flow);
        let prepared = index.and_then(|at| self.on(at, |it| it.prepare(cx, modules, prepare)));
        let answer = match prepared.unwrap_or_else(|| Err(no_session(self.session))) {
            Ok(label) => Message::Ready(Ready { flow, epoch, label, position: None }),
            Err(error) => {
                cx.shared.changes_refused += 1;
                let (code, text) = (error.code as u16, error.text);
                Message::Cannot(Cannot { flow, epoch, code, text })
            }
        };
        out.send(self.session, answer);
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
