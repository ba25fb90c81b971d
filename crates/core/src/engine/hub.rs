//! Peers: dialing with staggered attempts, the greeting, lists, and the end of a connection.

use super::{ANSWER_MAX, Carries, Core, CoreEvent, PEERS_MAX};
use crate::control::ConnId;
use crate::error::{Code, Error};
use crate::peer::{DialParams, Dialing, Peer, PeerId, ProbeKey};
use crate::session::table::{HubRole, HubState, hub_step};
use dacapo_base::{Time, failpoint};
use dacapo_path::Prober;
use dacapo_wire::hub::{Goodbye, Hello, List, Listing, Refuse, SessionEntry, Welcome};
use dacapo_wire::message::Message;
use dacapo_wire::record::RecordError;
use quinn_proto::StreamId;
use std::net::SocketAddr;
use std::time::Duration;

/// A further attempt begins after this time.
const ATTEMPT_EVERY: Duration = Duration::from_millis(500);

/// Who comes in has greeted by this time.
const GREETING_MAX: Duration = Duration::from_secs(10);

/// The most attempts at a time; 20 begin in ten seconds.
const ATTEMPTS_MAX: usize = 20;

impl Core {
    /// Connects to a core, or returns the peer that is there already: two cores share one
    /// connection. [`CoreEvent::PeerOpen`] or [`CoreEvent::PeerLost`] follows, within 10 s; with
    /// [`Code::NotListening`] as soon as that is known.
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
        let known = self
            .peers
            .iter()
            .find(|(_, peer)| peer.remote == remote && peer.role == HubRole::Dialer);
        if let Some((id, peer)) = known {
            let (id, open, lost) = (*id, peer.is_open(), peer.suspended.is_some());
            if open && !lost {
                self.event(CoreEvent::PeerOpen { peer: id });
            } else if let Some(peer) = self.peers.get_mut(&id) {
                peer.is_asked_for = lost;
                peer.dialing.join(params);
                peer.deadline = peer.deadline.map(|at| at.max(now + params.most()));
            }
            return Ok(id);
        }
        if self.peers.len() >= PEERS_MAX {
            return Err(Error::new(Code::TooMany, format!("{PEERS_MAX} peers")));
        }
        let mut peer = Peer::new(remote, HubRole::Dialer, now);
        peer.dialing = Dialing::new(params);
        peer.deadline = Some(now + params.most());
        let id = PeerId(self.fresh_id());
        self.peers.insert(id, peer);
        let begun = self.begin_attempt(now, id);
        if begun.is_err() {
            self.peers.remove(&id);
        }
        begun.map(|()| id)
    }

    /// The network says that nothing listens at an address. Who is being dialed there is given up
    /// when that is to be believed.
    pub fn handle_refused(&mut self, now: Time, remote: SocketAddr) {
        self.touch();
        let is_meant = |(_, peer): &(&PeerId, &Peer)| peer.remote == remote && peer.conn.is_none();
        let meant: Vec<PeerId> = self.peers.iter().filter(is_meant).map(|(id, _)| *id).collect();
        for id in meant {
            let peer = self.peers.get_resting_mut(&id);
            if peer.is_some_and(|peer| peer.dialing.handle_refused(now, remote)) {
                self.lose_peer(now, id, &not_listening(remote));
            }
        }
    }

    /// A datagram has come for a connection of a peer.
    pub(super) fn handle_heard(&mut self, conn: ConnId) {
        let Some(id) = self.conns.get(&conn) else { return };
        // What it acknowledges shows life.
        if let Some(peer) = self.peers.get_mut(id) {
            peer.dialing.handle_heard();
        }
    }

    /// Begins another attempt to connect and sets when the next one is due.
    pub(super) fn begin_attempt(&mut self, now: Time, id: PeerId) -> Result<(), Error> {
        let Some(peer) = self.peers.get_mut(&id) else { return Ok(()) };
        peer.next_attempt = now + ATTEMPT_EVERY;
        if peer.attempts.len() >= ATTEMPTS_MAX {
            return Ok(());
        }
        let conn = self.control.connect(now, peer.remote)?;
        peer.attempts.push(conn);
        self.conns.insert(conn, id);
        Ok(())
    }

    pub(super) fn handle_connected(
        &mut self,
        now: Time,
        conn: ConnId,
        remote: SocketAddr,
        dialed: bool,
    ) {
        failpoint!("core.connected");
        if dialed {
            self.handle_attempt_through(now, conn);
        } else if self.peers.len() >= PEERS_MAX && !self.drop_idle_peer(now) {
            self.control.close(now, conn, Code::TooMany, "too many peers");
        } else {
            let mut peer = Peer::new(remote, HubRole::Listener, now);
            peer.conn = Some(conn);
            peer.local = self.control.local(conn);
            peer.deadline = Some(now + GREETING_MAX);
            let mut token = [0; 16];
            self.random.fill(&mut token);
            peer.key = ProbeKey::new(token);
            let id = PeerId(self.fresh_id());
            self.probed.insert(peer.key.connection(), id);
            self.peers.insert(id, peer);
            self.conns.insert(conn, id);
        }
    }

    /// Makes room for a newcomer: of the peers that have come in and have no session, the first
    /// that came goes. False when there is none.
    fn drop_idle_peer(&mut self, now: Time) -> bool {
        let has_session = |id: PeerId| self.sessions.with(id).next().is_some();
        let idle = self
            .peers
            .iter()
            .find(|(id, peer)| peer.role == HubRole::Listener && !has_session(**id));
        let Some(id) = idle.map(|(id, _)| *id) else { return false };
        self.lose_peer(now, id, &Error::new(Code::TooMany, "peers; one without a session goes"));
        true
    }

    /// An attempt is through and greets. Which connection is used is decided by the first WELCOME:
    /// a connection that is through at this end need not be at the other.
    fn handle_attempt_through(&mut self, now: Time, conn: ConnId) {
        let Some(&id) = self.conns.get(&conn) else { return };
        // While contact is lost a further connection finds out whether the peer was started anew.
        let is_wanted = |peer: &Peer| peer.conn.is_none() || peer.suspended.is_some();
        if !self.peers.get(&id).is_some_and(is_wanted) {
            return;
        }
        let Some(hub) = self.control.open_stream(conn) else {
            let error = Error::new(Code::Violation, "the peer allows no streams");
            return self.lose_peer(now, id, &error);
        };
        self.streams.insert((conn, hub), Carries::Hub(id));
        let (version_min, version_max) = self.config.versions;
        let hello = Message::Hello(Hello {
            version_min,
            version_max,
            instance: self.instance,
            boot: self.config.boot,
            time_namespace: self.config.time_namespace,
        });
        // A fresh stream takes a HELLO; if not, a further attempt is due.
        let _ = self.control.send(conn, hub, &hello);
    }

    /// The first attempt that is welcomed is used; the others are dropped.
    fn choose_attempt(&mut self, now: Time, id: PeerId, conn: ConnId, hub: StreamId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.conn = Some(conn);
        peer.hub = Some(hub);
        let others: Vec<ConnId> =
            peer.attempts.drain(..).filter(|attempt| *attempt != conn).collect();
        for other in others {
            self.conns.remove(&other);
            self.streams.retain(|(known, _), _| *known != other);
            self.control.close(now, other, Code::Closed, "another attempt was first");
        }
    }

    fn set_hub(&mut self, id: PeerId, conn: ConnId, hub: StreamId) {
        self.streams.insert((conn, hub), Carries::Hub(id));
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.hub = Some(hub);
        }
    }

    fn send_hub(&mut self, now: Time, id: PeerId, message: &Message) {
        let Some((conn, hub)) = self.peers.get(&id).and_then(|peer| peer.conn.zip(peer.hub)) else {
            return;
        };
        self.hurry(now, conn);
        if self.control.send(conn, hub, message).is_err() {
            let error = Error::new(Code::NoAnswer, "the peer does not read its hub stream");
            self.lose_peer(now, id, &error);
        }
    }

    /// A record has come, on whatever stream.
    pub(super) fn handle_message(
        &mut self,
        now: Time,
        conn: ConnId,
        stream: StreamId,
        message: Message,
    ) {
        let Some(&id) = self.conns.get(&conn) else { return };
        let carries = match self.streams.get(&(conn, stream)) {
            Some(carries) => Some(*carries),
            None => self.adopt_stream(now, id, conn, stream),
        };
        match carries {
            Some(Carries::Hub(peer)) => self.handle_hub(now, peer, conn, stream, message),
            Some(Carries::Session(session)) => self.handle_session(now, session, message),
            Some(Carries::Over) | None => {}
        }
    }

    /// The first stream that a dialer opens is the hub, every further one a session, which may not
    /// come before the greeting is over.
    fn adopt_stream(
        &mut self,
        now: Time,
        id: PeerId,
        conn: ConnId,
        stream: StreamId,
    ) -> Option<Carries> {
        let peer = self.peers.get(&id)?;
        if peer.role == HubRole::Listener && peer.hub.is_none() {
            self.set_hub(id, conn, stream);
            return Some(Carries::Hub(id));
        }
        if !peer.is_open() {
            self.lose_peer(now, id, &Error::new(Code::Violation, "a session before the greeting"));
            return None;
        }
        let session = self.open_served_session(now, id, stream);
        self.streams.insert((conn, stream), Carries::Session(session));
        Some(Carries::Session(session))
    }

    fn handle_hub(
        &mut self,
        now: Time,
        id: PeerId,
        conn: ConnId,
        stream: StreamId,
        message: Message,
    ) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.conn.is_some_and(|chosen| chosen != conn) {
            return self.handle_second_hub(now, id, conn, &message);
        }
        match hub_step(peer.role, peer.hub_state, message.kind()) {
            Ok(HubState::Closed) => {
                let error = match message {
                    Message::Refuse(refuse) => Error::from_peer(refuse.code, &refuse.text),
                    Message::Goodbye(goodbye) => Error::from_peer(goodbye.code, &goodbye.text),
                    _ => return,
                };
                return self.lose_peer(now, id, &error);
            }
            Ok(_) => {}
            Err(_) => {
                let text = format!("{} on the hub", message.kind().name());
                return self.lose_peer(now, id, &Error::new(Code::Violation, text));
            }
        }
        match message {
            Message::Hello(hello) => self.handle_hello(now, id, &hello),
            Message::Welcome(welcome) => {
                self.choose_attempt(now, id, conn, stream);
                self.handle_welcome(now, id, &welcome);
            }
            Message::List(list) => self.handle_list(now, id, list.request),
            Message::Listing(listing) => self.handle_listing(id, listing),
            _ => {}
        }
    }

    fn handle_hello(&mut self, now: Time, id: PeerId, hello: &Hello) {
        let (ours_min, ours_max) = self.config.versions;
        let version = hello.version_max.min(ours_max);
        if version < hello.version_min.max(ours_min) {
            let text = format!(
                "this end speaks versions {ours_min} to {ours_max}, the other {} to {}",
                hello.version_min, hello.version_max
            );
            let refuse =
                Refuse { code: Code::NoCommonVersion as u16, text: text.clone(), port: None };
            self.send_hub(now, id, &Message::Refuse(refuse));
            // The connection stays until the dialer has read this and closes; else the watch ends
            // it.
            return;
        }
        let one_clock = self.is_one_clock(hello.boot, hello.time_namespace);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.hub_state = HubState::Open;
        peer.deadline = None;
        peer.one_clock = one_clock;
        peer.instance = hello.instance;
        let welcome = Welcome {
            version,
            instance: self.instance,
            boot: self.config.boot,
            time_namespace: self.config.time_namespace,
            path_token: peer.key.token(),
        };
        self.send_hub(now, id, &Message::Welcome(welcome));
        failpoint!("core.hello");
        self.event(CoreEvent::PeerOpen { peer: id });
    }

    fn is_one_clock(&self, boot: [u8; 16], time_namespace: u64) -> bool {
        boot == self.config.boot && time_namespace == self.config.time_namespace && boot != [0; 16]
    }

    fn handle_welcome(&mut self, now: Time, id: PeerId, welcome: &Welcome) {
        let (ours_min, ours_max) = self.config.versions;
        if !(ours_min..=ours_max).contains(&welcome.version) {
            let text = format!("the peer chose version {}", welcome.version);
            return self.lose_peer(now, id, &Error::new(Code::NoCommonVersion, text));
        }
        let one_clock = self.is_one_clock(welcome.boot, welcome.time_namespace);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.hub_state = HubState::Open;
        peer.deadline = None;
        peer.one_clock = one_clock;
        peer.instance = welcome.instance;
        peer.key = ProbeKey::new(welcome.path_token);
        let connection = peer.key.connection();
        peer.data_remote = Some(peer.remote);
        peer.prober = Some(Prober::new(now, one_clock));
        self.probed.insert(connection, id);
        self.look_near(id);
        failpoint!("core.welcome");
        self.event(CoreEvent::PeerOpen { peer: id });
    }

    /// Asks what a peer serves; [`CoreEvent::Listing`] follows, within 10 s.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when the peer is not open; [`Code::TooMany`] lists are waited for.
    pub fn list(&mut self, now: Time, id: PeerId) -> Result<(), Error> {
        let request = self.fresh_id() as u32;
        self.open_conn(id)?;
        let peer = self.peers.get_mut(&id);
        let peer = peer.ok_or_else(|| Error::new(Code::NoSuchThing, "the peer is not open"))?;
        if peer.lists.len() >= 16 {
            return Err(Error::new(Code::TooMany, "lists are waited for"));
        }
        peer.lists.push((now + ANSWER_MAX, request));
        self.send_hub(now, id, &Message::List(List { request }));
        Ok(())
    }

    fn handle_list(&mut self, now: Time, id: PeerId, request: u32) {
        let entry = |published: &super::Published| SessionEntry {
            name: published.spec.name.clone(),
            title: published.spec.title.clone(),
            flow_count: published.spec.flows.len() as u16,
            participants: self.participants_of(&published.spec.name) as u32,
        };
        let most = dacapo_wire::limits::SESSIONS_MAX;
        // The list's number, and of each entry its header, four fields' headers, and two numbers.
        let mut room = dacapo_wire::limits::BODY_LEN_MAX - 8;
        let fits = |entry: &SessionEntry| {
            let len = entry.name.len() + entry.title.len() + 26;
            let fits = len <= room;
            room = room.saturating_sub(len);
            fits
        };
        let sessions = self.published.values().take(most).map(entry).take_while(fits).collect();
        self.send_hub(now, id, &Message::Listing(Listing { request, sessions }));
    }

    fn handle_listing(&mut self, id: PeerId, listing: Listing) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let before = peer.lists.len();
        peer.lists.retain(|(_, request)| *request != listing.request);
        if peer.lists.len() != before {
            self.event(CoreEvent::Listing { peer: id, sessions: Ok(listing.sessions) });
        }
    }

    /// A control connection is gone.
    pub(super) fn handle_lost(
        &mut self,
        now: Time,
        conn: ConnId,
        reason: &str,
        said: Option<Code>,
    ) {
        let Some(id) = self.conns.remove(&conn) else { return };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.attempts.retain(|attempt| *attempt != conn);
        let refused = peer.conn.is_none() && said.is_some();
        if peer.conn == Some(conn) || refused {
            let unsaid = if peer.is_open() { Code::Closed } else { Code::Unreachable };
            let error = Error::new(said.unwrap_or(unsaid), format!("{}: {reason}", peer.remote));
            self.lose_peer(now, id, &error);
        } else if peer.conn.is_none() {
            // Further attempts are due; the last failure is reported if none gets through.
            peer.last_failure = reason.to_owned();
        }
    }

    pub(super) fn handle_stream_ended(
        &mut self,
        now: Time,
        conn: ConnId,
        stream: StreamId,
        error: Option<RecordError>,
    ) {
        let carries = self.streams.remove(&(conn, stream));
        if carries == Some(Carries::Over) && error.is_none() {
            // Both ends are done with it; what we have said last is still on its way.
            return;
        }
        let error = error.map(|error| Error::new(Code::Malformed, error.to_string()));
        // Before anything ends the stream in order: the peer is to see the code.
        let code = if error.is_some() { Code::Malformed } else { Code::Violation };
        self.control.reset(conn, stream, code);
        match carries {
            Some(Carries::Hub(id)) => {
                let closed = || Error::new(Code::Closed, "the peer closed its hub stream");
                self.lose_peer(now, id, &error.unwrap_or_else(closed));
            }
            Some(Carries::Session(session)) => {
                self.handle_session_stream_ended(now, session, error)
            }
            Some(Carries::Over) | None => {}
        }
    }

    /// A peer is gone: its sessions end abnormally, its connection is closed.
    pub(super) fn lose_peer(&mut self, now: Time, id: PeerId, error: &Error) {
        let Some(peer) = self.peers.remove(&id) else { return };
        self.probed.remove(&peer.key.connection());
        let sessions: Vec<_> = self.sessions.with(id).collect();
        for session in sessions {
            self.end_session(now, session, Some(error.clone()));
        }
        let conns = peer.conn.into_iter().chain(peer.attempts);
        for conn in conns {
            self.conns.remove(&conn);
            self.streams.retain(|(known, _), _| *known != conn);
            self.control.close(now, conn, error.code, &error.text);
        }
        // What was dialed goes too, also when nobody has answered.
        let dialed = (peer.role == HubRole::Dialer).then_some(peer.remote);
        if let Some(remote) = peer.data_remote.or(dialed) {
            self.outbox.closed_data.push(remote);
        }
        for _ in &peer.lists {
            self.event(CoreEvent::Listing { peer: id, sessions: Err(error.clone()) });
        }
        self.event(CoreEvent::PeerLost { peer: id, error: error.clone() });
    }

    /// Says goodbye to a peer and ends everything with it.
    pub fn disconnect(&mut self, now: Time, id: PeerId) {
        let goodbye = Goodbye { code: Code::Closed as u16, text: String::new() };
        self.send_hub(now, id, &Message::Goodbye(goodbye));
        // What waits for the network goes before the close.
        self.lose_peer(now, id, &Error::new(Code::Closed, ""));
    }
}

/// Nothing listens where a core was dialed.
pub(super) fn not_listening(remote: SocketAddr) -> Error {
    Error::new(Code::NotListening, format!("{remote}; is a dacapo serving there?"))
}
