//! What an application asks of a core, and hands over.

use super::Core;
use crate::command::{Command, Done};
use crate::effect::Out;
use crate::error::Error;
use crate::ids::SessionId;
use crate::peer::{PeerCx, Peers};
use crate::port::Port;
use crate::schedule::Asked;
use crate::served::{SessionProvider, SessionSpec};
use crate::session::{Flow, Session, SessionCx};
use crate::transmit::{Offered, StreamWriter};
use dacapo_base::Time;

impl Core {
    /// Does what is asked, or begins it.
    ///
    /// # Errors
    /// As each [`Command`] says; then nothing has changed.
    pub fn handle_command(&mut self, now: Time, command: Command) -> Result<Done, Error> {
        match command {
            Command::Connect { remote, params } => {
                let dial = |peers: &mut Peers, cx: &mut PeerCx<'_>, out: &mut Out| {
                    peers.connect(cx, remote, params, out)
                };
                return self.router.with_peers(now, dial).map(Done::Peer);
            }
            Command::List(id) => {
                self.router.with_peers(now, |peers, cx, out| peers.list(cx, id, out))?
            }
            Command::Disconnect(id) => {
                self.router.with_peers(now, |peers, cx, out| peers.disconnect(cx, id, out));
            }
            Command::Unpublish(name) => self.router.served.unpublish(&name),
            Command::Join { peer, name, params } => {
                return self.router.join(now, peer, &name, params).map(Done::Session);
            }
            Command::Activate(id) | Command::Deactivate(id) => {
                let is_active = matches!(command, Command::Activate(_));
                self.router.ask(now, id, |it, cx, out| it.set_active(cx.now, is_active, out))?;
            }
            Command::Control { session, flow, module, payload } => {
                let control = |it: &mut Session, cx: &mut SessionCx<'_>, out: &mut Out| {
                    it.control(cx.now, flow, module, &payload, out)
                };
                return self.router.ask(now, session, control).map(Done::Request);
            }
            Command::Change { session, flow, graph } => {
                self.router.ask(now, session, |it, cx, out| {
                    it.on_flows(|flows| flows.change(cx, flow, graph, out))
                })?;
            }
            Command::GiveUpAfter(id, after) => {
                self.router.ask(now, id, |it, _, _| {
                    it.set_give_up_after(after);
                    Ok(())
                })?;
            }
            Command::Close(id) => self.router.ask(now, id, |it, cx, out| {
                it.close(cx, out);
                Ok(())
            })?,
            Command::CloseBecause(id, error) => {
                self.router.ask(now, id, |it, cx, out| {
                    it.fail(cx, error, out);
                    Ok(())
                })?;
            }
        }
        Ok(Done::All)
    }

    /// Serves a session under its name, in place of one that had it.
    ///
    /// # Errors
    /// [`crate::Code::IllegalGraph`] with the flow and the reason, [`crate::Code::Unsupported`] for
    /// a transport that this core does not have, or [`crate::Code::TooMany`] flows.
    pub fn publish(
        &mut self,
        spec: SessionSpec,
        publisher: Box<dyn SessionProvider>,
    ) -> Result<(), Error> {
        self.router.served.publish(&self.router.shared.graphs, spec, publisher)
    }

    /// Answers an offer: an access module for each flow that is wanted, a sink where the Creator
    /// sends, a source where the Participant does. [`crate::CoreEvent::Ready`] follows; the answer
    /// goes out when the data path is open.
    ///
    /// # Errors
    /// [`crate::Code::NoSuchThing`] when no offer waits; the number or kind of the ports is wrong.
    pub fn answer(
        &mut self,
        now: Time,
        id: SessionId,
        ports: Vec<Option<Port>>,
    ) -> Result<(), Error> {
        self.router.ask(now, id, |session, cx, out| session.answer(cx, ports, out))
    }

    /// Asks the source of a flow again that has answered [`crate::SourcePoll::Idle`], or its sink
    /// whether it has room again ([`crate::Sink::has_capacity`]): for those that are fed and
    /// emptied from outside.
    pub fn wake(&mut self, now: Time, id: SessionId, flow: usize) {
        let channels = &mut self.router.shared.channels;
        self.router.sessions.with(id, |it| it.on_flow(flow, |flow| flow.wake(now, channels)));
        if let Asked::FanOut(fan_out) = self.router.sessions.sending(id, flow) {
            self.router.fan_outs.wake_source(now, fan_out);
        }
    }

    /// Takes a unit for a flow that this end sends, past its source, in which none may wait; what
    /// cannot be taken now is the source's to give. What was taken goes out with the next packets
    /// of the flows ([`Core::poll_flows`]).
    pub fn offer(
        &mut self,
        now: Time,
        id: SessionId,
        flow: usize,
        unit: &[u8],
        writer: &mut dyn StreamWriter,
    ) -> Offered {
        let asked = self.router.sessions.sending(id, flow);
        let shared = &mut self.router.shared;
        let offered = match asked {
            Asked::Flow(id, flow) => {
                let offer = |flow: &mut Flow| flow.offer(&mut shared.flow(now), unit, writer);
                self.router.sessions.with(id, |it| it.on_flow(flow, offer)).flatten()
            }
            Asked::FanOut(id) => self.router.fan_outs.offer(&mut shared.flow(now), id, unit),
        };
        offered.unwrap_or(Offered::NotNow)
    }

    /// Whether units of a flow wait at this end that may be sent.
    #[must_use]
    pub fn has_backlog(&self, id: SessionId, flow: usize) -> bool {
        let waits = match self.router.sessions.sending(id, flow) {
            Asked::Flow(id, flow) => {
                let flow = self.router.sessions.get(id).and_then(|it| it.flows().get(flow));
                flow.is_some_and(Flow::has_backlog)
            }
            Asked::FanOut(id) => {
                self.router.fan_outs.get(id).is_some_and(|it| it.sender().has_backlog())
            }
        };
        waits || self.outgoing.has_copies()
    }
}
