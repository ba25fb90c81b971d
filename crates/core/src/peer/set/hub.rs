//! How peers are met and left: dialing with staggered attempts, the greeting, lists, the end.
//!
//! Invariant: a peer that is gone has no connection, no stream and no name in probes.

use super::{Carries, Identity, PeerCx, Peers};
use crate::config::{ANSWER_MAX, PEERS_MAX};
use crate::control::ConnId;
use crate::effect::{Effect, Out, PeerNews};
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::ids::{PeerId, SessionId};
use crate::peer::data_path::ProbeKey;
use crate::peer::{DialParams, HostLookup, Peer, not_listening, not_open};
use crate::session::table::{HubState, hub_step};
use dacapo_base::{Address, failpoint};
use dacapo_wire::hub::{Goodbye, Hello, List, Listing, Refuse, Welcome};
use dacapo_wire::message::Message;
use dacapo_wire::record::RecordError;
use quinn_proto::StreamId;

/// For whom a record has come.
pub(crate) enum Routed {
    /// The hub has dealt with it, or nobody wants it.
    Nobody,
    Session(SessionId, Message),
    /// A peer has opened a stream for a session, with this.
    NewSession(PeerId, Message),
}

impl Peers {
    /// Connects to a core, or returns the peer that is there already.
    ///
    /// # Errors
    /// [`Code::TooMany`] peers, or [`Code::Unreachable`] for an address that cannot be one.
    pub fn connect(
        &mut self,
        cx: &mut PeerCx<'_>,
        remote: Address,
        params: DialParams,
        out: &mut Out,
    ) -> Result<PeerId, Error> {
        let is_it = |(_, peer): &(PeerId, &Peer)| peer.remote == remote && peer.is_dialed();
        let known = self.all.iter().find(is_it).map(|(id, _)| id);
        if let Some(id) = known {
            if self.get(id).is_some_and(|peer| peer.open_conn().is_ok()) {
                out.event(CoreEvent::PeerOpen { peer: id });
            } else {
                self.all.with(id, |peer| {
                    peer.contact.ask();
                    peer.link.join_dialing(cx.now, params);
                });
            }
            return Ok(id);
        }
        if self.all.len() >= PEERS_MAX {
            return Err(Error::new(Code::TooMany, format!("{PEERS_MAX} peers")));
        }
        let id = PeerId(cx.shared.fresh_id());
        let controller = cx.shared.controllers.of(&remote);
        self.all.insert(id, Peer::dialed(remote, cx.now, params, controller));
        let begun = self.begin_attempt(cx, id);
        if begun.is_err() {
            self.all.remove(id);
        }
        begun.map(|()| id)
    }

    /// Begins another attempt to connect and sets when the next one is due.
    pub(super) fn begin_attempt(&mut self, cx: &mut PeerCx<'_>, id: PeerId) -> Result<(), Error> {
        let now = cx.now;
        let begun = self.all.with(id, |peer| peer.link.begin_attempt(now).then_some(peer.remote));
        let Some(remote) = begun.flatten() else { return Ok(()) };
        let conn = cx.control.connect(now, remote)?;
        self.all.with(id, |peer| peer.link.add_attempt(conn));
        self.conns.insert(conn, id);
        Ok(())
    }

    /// The network says that nothing listens at an address. Who is being dialed there is given up
    /// when that is to be believed.
    pub fn handle_refused(&mut self, cx: &mut PeerCx<'_>, remote: Address, out: &mut Out) {
        let meant = self.all.iter().filter(|(_, peer)| peer.remote == remote);
        let meant: Vec<PeerId> = meant.map(|(id, _)| id).collect();
        for id in meant {
            let is_sure = self.all.adjust(id, |peer| peer.link.handle_refused(cx.now, remote));
            if is_sure == Some(true) {
                self.lose(cx, id, &not_listening(remote), out);
            }
        }
    }

    /// A datagram has come for a connection of a peer: what it acknowledges shows life.
    pub fn handle_heard(&mut self, conn: ConnId) {
        if let Some(id) = self.conns.get(&conn) {
            self.all.with(*id, |peer| peer.link.handle_heard());
        }
    }

    /// A handshake is through.
    pub fn handle_connected(
        &mut self,
        cx: &mut PeerCx<'_>,
        conn: ConnId,
        remote: Address,
        is_dialed: bool,
        out: &mut Out,
    ) {
        failpoint!("core.connected");
        if is_dialed {
            return self.handle_attempt_through(cx, conn, out);
        }
        if self.all.len() >= PEERS_MAX && !self.drop_idle_peer(cx, out) {
            return cx.control.close(cx.now, conn, Code::TooMany, "too many peers");
        }
        let controller = cx.shared.controllers.of(&remote);
        let mut peer = Peer::came_in(remote, cx.control.local(conn), conn, cx.now, controller);
        let mut token = [0; 16];
        cx.shared.random.fill(&mut token);
        let key = ProbeKey::new(token);
        peer.data.set_key(key);
        let id = PeerId(cx.shared.fresh_id());
        self.probed.insert(key.connection(), (id, 0));
        self.all.insert(id, peer);
        self.conns.insert(conn, id);
    }

    /// Makes room for a newcomer: of the peers that have come in and have no session, the first
    /// that came goes. False when there is none.
    fn drop_idle_peer(&mut self, cx: &mut PeerCx<'_>, out: &mut Out) -> bool {
        let idle = self.all.iter().find(|(_, peer)| !peer.is_dialed() && !peer.has_sessions());
        let Some(id) = idle.map(|(id, _)| id) else { return false };
        let error = Error::new(Code::TooMany, "peers; one without a session goes");
        self.lose(cx, id, &error, out);
        true
    }

    /// An attempt is through and greets. Which connection is used is decided by the first WELCOME:
    /// a connection that is through at this end need not be at the other.
    fn handle_attempt_through(&mut self, cx: &mut PeerCx<'_>, conn: ConnId, out: &mut Out) {
        let Some(&id) = self.conns.get(&conn) else { return };
        // While contact is lost a further connection finds out whether the peer was started anew.
        let is_wanted = |peer: &Peer| peer.conn().is_none() || peer.is_suspended();
        if !self.get(id).is_some_and(is_wanted) {
            return;
        }
        let Some(hub) = cx.control.open_stream(conn) else {
            let error = Error::new(Code::Violation, "the peer allows no streams");
            return self.lose(cx, id, &error, out);
        };
        self.streams.insert((conn, hub), Carries::Hub(id));
        let Identity { instance, boot, time_namespace, versions } = cx.identity;
        let (version_min, version_max) = versions;
        let hello =
            Message::Hello(Hello { version_min, version_max, instance, boot, time_namespace });
        // A fresh stream takes a HELLO; if not, a further attempt is due.
        let _ = cx.control.send(conn, hub, &hello);
    }

    /// Says something on the hub of a peer.
    pub fn send_hub(&mut self, cx: &mut PeerCx<'_>, id: PeerId, message: &Message, out: &mut Out) {
        let Some((conn, hub)) = self.get(id).and_then(|peer| peer.link.hub()) else { return };
        self.speak(cx.now, id);
        if cx.control.send(conn, hub, message).is_err() {
            let error = Error::new(Code::NoAnswer, "the peer does not read its hub stream");
            self.lose(cx, id, &error, out);
        }
    }

    /// A record has come, on whatever stream.
    pub fn handle_message(
        &mut self,
        cx: &mut PeerCx<'_>,
        conn: ConnId,
        stream: StreamId,
        message: Message,
        out: &mut Out,
    ) -> Routed {
        let Some(&id) = self.conns.get(&conn) else { return Routed::Nobody };
        let Some(peer) = self.get(id) else { return Routed::Nobody };
        let (waits_for_hub, is_greeted) =
            (!peer.is_dialed() && peer.link.hub().is_none(), peer.link.open_conn().is_some());
        match self.streams.get(&(conn, stream)).copied() {
            Some(Carries::Hub(id)) => self.handle_hub(cx, id, (conn, stream), message, out),
            Some(Carries::Session(session)) => return Routed::Session(session, message),
            Some(Carries::Over) => {}
            // The first stream that a dialer opens is the hub, every further one a session, which
            // may not come before the greeting is over.
            None if waits_for_hub => {
                self.streams.insert((conn, stream), Carries::Hub(id));
                self.all.with(id, |peer| peer.link.set_hub(stream));
                self.handle_hub(cx, id, (conn, stream), message, out);
            }
            None if !is_greeted => {
                let error = Error::new(Code::Violation, "a session before the greeting");
                self.lose(cx, id, &error, out);
            }
            None => return Routed::NewSession(id, message),
        }
        Routed::Nobody
    }

    fn handle_hub(
        &mut self,
        cx: &mut PeerCx<'_>,
        id: PeerId,
        (conn, stream): (ConnId, StreamId),
        message: Message,
        out: &mut Out,
    ) {
        let Some(peer) = self.get(id) else { return };
        if peer.conn().is_some_and(|chosen| chosen != conn) {
            return self.handle_second_hub(cx, id, conn, &message, out);
        }
        let said = match hub_step(peer.role, peer.link.state(), message.kind()) {
            Err(_) => {
                let text = format!("{} on the hub", message.kind().name());
                return self.lose(cx, id, &Error::new(Code::Violation, text), out);
            }
            Ok(HubState::Closed) => match &message {
                Message::Refuse(refuse) => Error::from_peer(refuse.code, &refuse.text),
                Message::Goodbye(goodbye) => Error::from_peer(goodbye.code, &goodbye.text),
                _ => return,
            },
            Ok(_) => return self.apply_hub(cx, id, (conn, stream), message, out),
        };
        self.lose(cx, id, &said, out);
    }

    fn apply_hub(
        &mut self,
        cx: &mut PeerCx<'_>,
        id: PeerId,
        (conn, stream): (ConnId, StreamId),
        message: Message,
        out: &mut Out,
    ) {
        self.all.wake(id);
        match message {
            Message::Hello(hello) => self.handle_hello(cx, id, &hello, out),
            Message::Welcome(welcome) => {
                let others = self.all.with(id, |peer| peer.link.choose(conn, stream));
                for other in others.unwrap_or_default() {
                    self.drop_attempt(cx, other, "another attempt was first");
                }
                self.handle_welcome(cx, id, &welcome, out);
            }
            Message::List(list) => out.push(Effect::List(id, list.request)),
            Message::Listing(listing) => self.handle_listing(id, listing, out),
            _ => {}
        }
    }

    fn handle_listing(&mut self, id: PeerId, listing: Listing, out: &mut Out) {
        if self.all.with(id, |peer| peer.link.take_list(listing.request)) == Some(true) {
            out.event(CoreEvent::Listing { peer: id, sessions: Ok(listing.sessions) });
        }
    }

    /// Something has come on a connection besides the one in use.
    fn handle_second_hub(
        &mut self,
        cx: &mut PeerCx<'_>,
        id: PeerId,
        conn: ConnId,
        message: &Message,
        out: &mut Out,
    ) {
        let known = self.all.with(id, |peer| {
            peer.link.remove_attempt(conn);
            (peer.link.instance(), peer.remote)
        });
        self.drop_attempt(cx, conn, "the connection before is still in use");
        if let (Message::Welcome(welcome), Some((instance, remote))) = (message, known)
            && welcome.instance != instance
        {
            let text = format!("{remote}: its sessions are gone");
            self.lose(cx, id, &Error::new(Code::PeerRestarted, text), out);
        }
    }

    fn handle_hello(&mut self, cx: &mut PeerCx<'_>, id: PeerId, hello: &Hello, out: &mut Out) {
        let (ours_min, ours_max) = cx.identity.versions;
        let version = hello.version_max.min(ours_max);
        if version < hello.version_min.max(ours_min) {
            let text = format!(
                "this end speaks versions {ours_min} to {ours_max}, the other {} to {}",
                hello.version_min, hello.version_max
            );
            let refuse = Refuse { code: Code::NoCommonVersion as u16, text, port: None };
            // The connection stays until the dialer has read this and closes; else the watch ends
            // it.
            return self.send_hub(cx, id, &Message::Refuse(refuse), out);
        }
        let one_clock = cx.identity.is_one_clock(hello.boot, hello.time_namespace);
        let token = self.all.with(id, |peer| {
            peer.link.open(hello.instance);
            peer.data.set_one_clock(one_clock);
            peer.data.key().token()
        });
        let Some(path_token) = token else { return };
        let Identity { instance, boot, time_namespace, .. } = cx.identity;
        let welcome = Welcome { version, instance, boot, time_namespace, path_token };
        self.send_hub(cx, id, &Message::Welcome(welcome), out);
        failpoint!("core.hello");
        out.event(CoreEvent::PeerOpen { peer: id });
    }

    fn handle_welcome(
        &mut self,
        cx: &mut PeerCx<'_>,
        id: PeerId,
        welcome: &Welcome,
        out: &mut Out,
    ) {
        let (ours_min, ours_max) = cx.identity.versions;
        if !(ours_min..=ours_max).contains(&welcome.version) {
            let text = format!("the peer chose version {}", welcome.version);
            return self.lose(cx, id, &Error::new(Code::NoCommonVersion, text), out);
        }
        let one_clock = cx.identity.is_one_clock(welcome.boot, welcome.time_namespace);
        let key = ProbeKey::new(welcome.path_token);
        self.all.with(id, |peer| {
            peer.link.open(welcome.instance);
            peer.data.set_one_clock(one_clock);
            peer.data.open(cx.now, peer.remote, key);
        });
        self.probed.insert(key.connection(), (id, 0));
        self.look_on_host(cx, id);
        failpoint!("core.welcome");
        out.event(CoreEvent::PeerOpen { peer: id });
    }

    /// Asks whether a peer that was dialed can be reached by what needs one host. Anew with each
    /// connection, because it may be another process by now.
    fn look_on_host(&mut self, cx: &PeerCx<'_>, id: PeerId) {
        self.looks.retain(|look| look.peer != id);
        let here = self.all.with(id, |peer| {
            peer.same_host.clear();
            peer.is_here().then_some(peer.remote)
        });
        let Some(remote) = here.flatten() else { return };
        let specs = cx.shared.graphs.catalogue().transports().iter();
        let specs = specs.filter(|spec| spec.same_host && spec.scheme == remote.scheme());
        self.looks.extend(specs.map(|spec| HostLookup { peer: id, transport: spec.id, remote }));
    }

    /// Asks what a peer serves.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when the peer is not open; [`Code::TooMany`] lists are waited for.
    pub fn list(&mut self, cx: &mut PeerCx<'_>, id: PeerId, out: &mut Out) -> Result<(), Error> {
        let request = cx.shared.fresh_id() as u32;
        self.get(id).ok_or_else(not_open)?.open_conn()?;
        let until = cx.now + ANSWER_MAX;
        let waits = self.all.with(id, |peer| peer.link.await_list(until, request));
        waits.unwrap_or_else(|| Err(not_open()))?;
        self.send_hub(cx, id, &Message::List(List { request }), out);
        Ok(())
    }

    /// A control connection is gone.
    pub fn handle_lost(
        &mut self,
        cx: &mut PeerCx<'_>,
        conn: ConnId,
        reason: &str,
        said: Option<Code>,
        out: &mut Out,
    ) {
        let Some(id) = self.conns.remove(&conn) else { return };
        let lost = self.all.with(id, |it| it.link.handle_lost(conn, it.remote, reason, said));
        if let Some(error) = lost.flatten() {
            self.lose(cx, id, &error, out);
        }
    }

    /// A stream has ended; whose session that ends, and why.
    pub fn handle_stream_ended(
        &mut self,
        cx: &mut PeerCx<'_>,
        conn: ConnId,
        stream: StreamId,
        error: Option<RecordError>,
        out: &mut Out,
    ) -> Option<(SessionId, Option<Error>)> {
        let carries = self.streams.remove(&(conn, stream));
        if carries == Some(Carries::Over) && error.is_none() {
            // Both ends are done with it; what we have said last is still on its way.
            return None;
        }
        let error = error.map(|error| Error::new(Code::Malformed, error.to_string()));
        // Before anything ends the stream in order: the peer is to see the code.
        let code = if error.is_some() { Code::Malformed } else { Code::Violation };
        cx.control.reset(conn, stream, code);
        match carries {
            Some(Carries::Hub(id)) => {
                let closed = || Error::new(Code::Closed, "the peer closed its hub stream");
                self.lose(cx, id, &error.unwrap_or_else(closed), out);
                None
            }
            Some(Carries::Session(session)) => Some((session, error)),
            Some(Carries::Over) | None => None,
        }
    }

    /// A peer is gone: its connections are closed, its sessions will end abnormally.
    pub fn lose(&mut self, cx: &mut PeerCx<'_>, id: PeerId, error: &Error, out: &mut Out) {
        let Some(peer) = self.all.remove(id) else { return };
        self.probed.remove(&peer.data.key().connection());
        for conn in peer.link.conns() {
            self.conns.remove(&conn);
            self.streams.retain(|(known, _), _| *known != conn);
            cx.control.close(cx.now, conn, error.code, &error.text);
        }
        // What was dialed goes too, also when nobody has answered.
        let dialed = peer.is_dialed().then_some(peer.remote);
        let data = peer.data.remote().or(dialed);
        data.into_iter().for_each(|remote| out.push(Effect::CloseData(remote)));
        self.further.forget(id, &peer, out);
        for (_, path) in peer.further.iter() {
            self.probed.remove(&path.data.key().connection());
        }
        let lists = peer.link.list_count();
        out.peer(id, PeerNews::Lost { error: error.clone(), lists });
    }

    /// Says goodbye to a peer and ends everything with it.
    pub fn disconnect(&mut self, cx: &mut PeerCx<'_>, id: PeerId, out: &mut Out) {
        let goodbye = Goodbye { code: Code::Closed as u16, text: String::new() };
        self.send_hub(cx, id, &Message::Goodbye(goodbye), out);
        // What waits for the network goes before the close.
        self.lose(cx, id, &Error::new(Code::Closed, ""), out);
    }
}

impl Identity {
    fn is_one_clock(&self, boot: [u8; 16], time_namespace: u64) -> bool {
        boot == self.boot && time_namespace == self.time_namespace && boot != [0; 16]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ends_read_one_clock_only_on_one_boot_that_is_known_and_in_one_namespace() {
        let of = |boot| Identity { instance: [1; 16], boot, time_namespace: 3, versions: (1, 1) };
        let us = of([7; 16]);
        assert!(us.is_one_clock([7; 16], 3));
        assert!(!us.is_one_clock([8; 16], 3) && !us.is_one_clock([7; 16], 4));
        assert!(!us.is_one_clock([8; 16], 4) && !us.is_one_clock([0; 16], 3));
        assert!(!of([0; 16]).is_one_clock([0; 16], 3), "no boot is known");
    }
}
