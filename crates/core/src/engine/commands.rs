//! What an application asks of a core.

use super::{Core, Out};
use crate::config::SESSIONS_MAX;
use crate::error::{Code, Error};
use crate::ids::{PeerId, SessionId};
use crate::peer::DialParams;
use crate::port::Port;
use crate::served::{self, JoinParams, SessionProvider, SessionSpec};
use crate::session::{Session, SessionCx, no_session};
use dacapo_base::Time;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::message::Message;
use std::net::SocketAddr;
use std::time::Duration;

impl Core {
    /// Connects to a core, or returns the peer that is there already: two cores share one
    /// connection. [`crate::CoreEvent::PeerOpen`] or [`crate::CoreEvent::PeerLost`] follows, within
    /// 10 s; with [`Code::NotListening`] as soon as that is known.
    ///
    /// # Errors
    /// [`Code::TooMany`] peers, or [`Code::Unreachable`] for an address that cannot be one.
    pub fn connect(&mut self, now: Time, remote: SocketAddr) -> Result<PeerId, Error> {
        self.connect_with(now, remote, DialParams::default())
    }

    /// The same, told how long to try.
    ///
    /// # Errors
    /// As [`Core::connect`].
    pub fn connect_with(
        &mut self,
        now: Time,
        remote: SocketAddr,
        params: DialParams,
    ) -> Result<PeerId, Error> {
        self.with_peers(now, |peers, cx, out| peers.connect(cx, remote, params, out))
    }

    /// Asks what a peer serves; [`crate::CoreEvent::Listing`] follows, within 10 s.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when the peer is not open; [`Code::TooMany`] lists are waited for.
    pub fn list(&mut self, now: Time, id: PeerId) -> Result<(), Error> {
        self.with_peers(now, |peers, cx, out| peers.list(cx, id, out))
    }

    /// Says goodbye to a peer and ends everything with it.
    pub fn disconnect(&mut self, now: Time, id: PeerId) {
        self.with_peers(now, |peers, cx, out| peers.disconnect(cx, id, out));
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

    /// Serves a session no longer; those who have joined stay.
    pub fn unpublish(&mut self, name: &str) {
        self.served.unpublish(name);
    }

    /// Asks a peer for a session; [`crate::CoreEvent::Offered`] or
    /// [`crate::CoreEvent::SessionEnded`] follows.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when the peer is not open or the name is none; [`Code::ContactLost`]
    /// while it is; [`Code::TooMany`] sessions or wishes.
    pub fn join(
        &mut self,
        now: Time,
        peer: PeerId,
        name: &str,
        wishes: JoinParams,
    ) -> Result<SessionId, Error> {
        let no_peer = || Error::new(Code::NoSuchThing, "the peer is not open");
        let it = self.peers.get(peer).ok_or_else(no_peer)?;
        let (graphs, random) = (&self.shared.graphs, &mut self.shared.random);
        let join = served::introduce(graphs, random, it, name, wishes)?;
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
        self.command(now, id, |session, cx, out| session.answer(cx, ports, out))
    }

    /// Lets the flows of a session run; [`crate::CoreEvent::Active`] follows. Participant only.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when the session is not set up, or this end is its Creator.
    pub fn activate(&mut self, now: Time, id: SessionId) -> Result<(), Error> {
        self.command(now, id, |session, cx, out| session.set_active(cx.now, true, out))
    }

    /// Lets the flows of a session pause; [`crate::CoreEvent::Inactive`] follows. Participant only.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when the session does not run, or this end is its Creator.
    pub fn deactivate(&mut self, now: Time, id: SessionId) -> Result<(), Error> {
        self.command(now, id, |session, cx, out| session.set_active(cx.now, false, out))
    }

    /// Sends a command out of band to the peer's end: to the access module of one flow (or of all,
    /// [`dacapo_wire::session::FLOW_ALL`]), or to a module of a flow's graph by its place. Returns
    /// the request's number; [`crate::CoreEvent::ControlAnswered`] follows, within 10 s.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when the session is not set up, or closes; [`Code::TooMany`] when the
    /// payload exceeds 4 KiB or 256 requests wait.
    pub fn control(
        &mut self,
        now: Time,
        id: SessionId,
        flow: u16,
        module: u16,
        payload: &[u8],
    ) -> Result<u32, Error> {
        self.command(now, id, |session, cx, out| {
            session.control(cx.now, flow, module, payload, out)
        })
    }

    /// Changes a flow that this end sends to another graph (or an equal one) while it runs.
    /// [`crate::CoreEvent::Changed`] or [`crate::CoreEvent::ChangeFailed`] follows.
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
        self.command(now, id, |session, cx, out| session.change(cx, index, graph, out))
    }

    /// How long contact may be lost before this end gives a session up, whatever was offered; zero
    /// ends it as soon as contact is lost. Counts from when contact was lost, also when it is.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when there is no such session.
    pub fn set_give_up_after(&mut self, id: SessionId, after: Duration) -> Result<(), Error> {
        let set = self.sessions.with(id, |session| session.set_give_up_after(after));
        set.ok_or_else(|| no_session(id))
    }

    /// Closes a session: what waits is not sent, what was sent is accounted for;
    /// [`crate::CoreEvent::SessionEnded`] follows, within 10 s; at once while contact is lost, and
    /// then what was on its way is unknown.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when there is no such session.
    pub fn close(&mut self, now: Time, id: SessionId) -> Result<(), Error> {
        self.command(now, id, |session, cx, out| {
            session.close(cx, out);
            Ok(())
        })
    }

    /// Ends a session at once and tells the peer why; what is on its way is booked as unknown.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when there is no such session.
    pub fn close_because(&mut self, now: Time, id: SessionId, error: Error) -> Result<(), Error> {
        self.command(now, id, |session, cx, out| {
            session.fail(cx, error, out);
            Ok(())
        })
    }

    fn command<R>(
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
