//! What an application asks of a core.

use super::{Core, Out};
use crate::command::{Command, Done};
use crate::config::SESSIONS_MAX;
use crate::error::{Code, Error};
use crate::ids::{PeerId, SessionId};
use crate::peer::{PeerCx, Peers};
use crate::port::Port;
use crate::served::{self, JoinParams, SessionProvider, SessionSpec};
use crate::session::{Session, SessionCx, no_session};
use dacapo_base::Time;
use dacapo_wire::message::Message;

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
                return self.with_peers(now, dial).map(Done::Peer);
            }
            Command::List(id) => self.with_peers(now, |peers, cx, out| peers.list(cx, id, out))?,
            Command::Disconnect(id) => {
                self.with_peers(now, |peers, cx, out| peers.disconnect(cx, id, out));
            }
            Command::Unpublish(name) => self.served.unpublish(&name),
            Command::Join { peer, name, params } => {
                return self.join(now, peer, &name, params).map(Done::Session);
            }
            Command::Activate(id) | Command::Deactivate(id) => {
                let is_active = matches!(command, Command::Activate(_));
                self.ask(now, id, |it, cx, out| it.set_active(cx.now, is_active, out))?;
            }
            Command::Control { session, flow, module, payload } => {
                let control = |it: &mut Session, cx: &mut SessionCx<'_>, out: &mut Out| {
                    it.control(cx.now, flow, module, &payload, out)
                };
                return self.ask(now, session, control).map(Done::Request);
            }
            Command::Change { session, flow, graph } => {
                self.ask(now, session, |it, cx, out| it.change(cx, flow, graph, out))?;
            }
            Command::GiveUpAfter(id, after) => {
                self.ask(now, id, |it, _, _| {
                    it.set_give_up_after(after);
                    Ok(())
                })?;
            }
            Command::Close(id) => self.ask(now, id, |it, cx, out| {
                it.close(cx, out);
                Ok(())
            })?,
            Command::CloseBecause(id, error) => {
                self.ask(now, id, |it, cx, out| {
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
    /// [`Code::IllegalGraph`] with the flow and the reason, [`Code::Unsupported`] for a transport
    /// that this core does not have, or [`Code::TooMany`] flows.
    pub fn publish(
        &mut self,
        spec: SessionSpec,
        publisher: Box<dyn SessionProvider>,
    ) -> Result<(), Error> {
        self.served.publish(&self.shared.graphs, spec, publisher)
    }

    fn join(
        &mut self,
        now: Time,
        peer: PeerId,
        name: &str,
        params: JoinParams,
    ) -> Result<SessionId, Error> {
        let no_peer = || Error::new(Code::NoSuchThing, "the peer is not open");
        let it = self.peers.get(peer).ok_or_else(no_peer)?;
        let (graphs, random) = (&self.shared.graphs, &mut self.shared.random);
        let join = served::introduce(graphs, random, it, name, params)?;
        let conn = it.open_conn()?;
        if self.session_count() >= SESSIONS_MAX {
            return Err(Error::new(Code::TooMany, "sessions"));
        }
        let id = SessionId(self.shared.fresh_id());
        let stream = self.with_peers(now, |peers, cx, _| peers.open_stream(cx, conn, id));
        let stream = stream.ok_or_else(|| Error::new(Code::TooMany, "sessions with this peer"))?;
        self.add_session(Session::joining(now, id, peer, stream, name));
        let mut out = Out::default();
        out.send(id, Message::Join(join));
        self.route(now, out);
        Ok(id)
    }

    /// Answers an offer: an access module for each flow that is wanted, a sink where the Creator
    /// sends, a source where the Participant does. [`crate::CoreEvent::Ready`] follows; the answer
    /// goes out when the data path is open.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when no offer waits; the number or kind of the ports is wrong.
    pub fn answer(
        &mut self,
        now: Time,
        id: SessionId,
        ports: Vec<Option<Port>>,
    ) -> Result<(), Error> {
        self.ask(now, id, |session, cx, out| session.answer(cx, ports, out))
    }

    fn ask<R>(
        &mut self,
        now: Time,
        id: SessionId,
        body: impl FnOnce(&mut Session, &mut SessionCx<'_>, &mut Out) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut out = Out::default();
        let result = self.with_session(now, id, &mut out, body);
        self.route(now, out);
        result.unwrap_or_else(|| Err(no_session(id)))
    }
}
