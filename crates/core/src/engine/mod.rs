//! [`Core`]: a whole core as one sans-IO engine.
//!
//! Peers, sessions and flows behind inputs (`handle_*`), outputs (`poll_*`) and commands. It runs
//! on a host inside `dacapo-reactor`, and in virtual time inside `dacapo-netlab`.
//!
//! ```text
//!   datagrams, time --> handle_*  +---------------------------+  poll_transmit --> datagrams
//!   streams open, …               | control   peers  sessions |  poll_stream ----> dial, expect …
//!   commands -------->            | labels -> flows -> ports  |  poll_event -----> application
//!                                 +---------------------------+  next_deadline --> clock
//! ```
//!
//! Order of use: give it inputs and commands, then drain `poll_stream`, `poll_transmit` and
//! `poll_event` until all are empty, then wait until `next_deadline` or the next input.
//!
//! Invariants: all queues are bounded; nothing allocates from unauthenticated input but what the
//! bounds of the control connections allow; the same inputs at the same times give the same
//! outputs.

mod cast;
mod change;
mod closing;
mod contact;
mod datapath;
mod exchange;
mod graphs;
mod groups;
mod hub;
mod near;
mod outgoing;
mod path_mtu;
mod places;
mod probes;
mod serving;
mod stops;
mod streams;
mod watch;

use crate::control::{ConnId, Control, ControlCrypto, ControlEvent};
use crate::error::{Code, Error};
use crate::flow::Context;
use crate::labels::Labels;
use crate::ledger::Ledger;
use crate::peer::{PeerId, Peers};
use crate::port::Port;
use crate::queues::Queues;
use crate::session::table::State;
use crate::session::{Awaited, FlowEnd, Session, Sessions};
use dacapo_base::{Random, Time};
use dacapo_lift::{Catalogue, ModuleCounters, ModuleSpec};
use dacapo_packet::Pool;
use dacapo_path::ClockOffset;
use dacapo_wire::hub::SessionEntry;
use dacapo_wire::message::Message;
use dacapo_wire::session::FlowOffer;
use quinn_proto::StreamId as ControlStream;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::time::{Duration, Instant};

pub(crate) use cast::Cast;
pub use groups::GroupAsk;
pub(crate) use groups::{Groups, Joined};
pub use near::Look;
pub(crate) use outgoing::Outbox;
pub use outgoing::{Local, Payload, Transmit, Way};
pub(crate) use serving::Published;
pub use serving::{Joining, Publisher, SessionSpec, Wishes};
pub(crate) use streams::{FlowStream, StreamState, Streams};
pub use streams::{StreamAsk, StreamId};

/// The version of the protocol that this core speaks.
pub const VERSION: u16 = 1;

/// The most sessions at a time.
pub const SESSIONS_MAX: usize = 16_384;

/// The most peers at a time.
pub const PEERS_MAX: usize = 1_024;

/// The most events that wait for the application; the oldest progress is dropped first.
const EVENTS_MAX: usize = 65_536;

/// How long a command waits for its answer.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How long contact may be lost before a session is given up, when its Creator does not say.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(300);

/// How long the peer's application may take to answer an offer.
pub(crate) const APPLICATION_MAX: Duration = Duration::from_secs(60);

/// While nothing but data comes, what is due need not be looked at more often.
const WATCH_EVERY: Duration = Duration::from_micros(50);

/// A session at this core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u64);

/// What a core is told at its start.
pub struct CoreConfig {
    /// The modules that exist here.
    pub catalogue: Catalogue,
    /// The memory budget for packets, in bytes.
    pub pool_bytes_max: usize,
    /// The host's boot, to tell whether two cores read one clock.
    pub boot: [u8; 16],
    /// The time namespace, for the same.
    pub time_namespace: u64,
    /// The oldest and newest protocol version to offer; tests skew them.
    pub versions: (u16, u16),
    /// How long its queues may grow.
    pub queues: Queues,
}

impl CoreConfig {
    /// The usual configuration with these modules.
    #[must_use]
    pub fn new(catalogue: Catalogue) -> Self {
        Self {
            catalogue,
            pool_bytes_max: 256 << 20,
            boot: [0; 16],
            time_namespace: 0,
            versions: (VERSION, VERSION),
            queues: Queues::default(),
        }
    }
}

/// What happened, for the application.
#[derive(Debug)]
pub enum CoreEvent {
    /// A peer answers; sessions can be joined.
    PeerOpen {
        /// The peer.
        peer: PeerId,
    },
    /// A peer is gone: it could not be reached, contact was lost for too long, or it closed.
    PeerLost {
        /// The peer.
        peer: PeerId,
        /// Why.
        error: Error,
    },
    /// What a peer serves.
    Listing {
        /// The peer.
        peer: PeerId,
        /// Its sessions, or why there is no list.
        sessions: Result<Vec<SessionEntry>, Error>,
    },
    /// Participant: the offer is here; answer it with [`Core::answer`].
    Offered {
        /// The session.
        session: SessionId,
        /// For people.
        title: String,
        /// The flows.
        flows: Vec<FlowOffer>,
    },
    /// The session is set up at this end.
    Ready {
        /// The session.
        session: SessionId,
    },
    /// Flows run.
    Active {
        /// The session.
        session: SessionId,
    },
    /// Flows pause.
    Inactive {
        /// The session.
        session: SessionId,
    },
    /// Contact with the peer is lost: the flows of a session wait for it, until it is given up.
    ContactLost {
        /// The session.
        session: SessionId,
    },
    /// Contact is back: the flows of a session go on where they stopped.
    ContactRestored {
        /// The session.
        session: SessionId,
        /// How long the flows waited.
        after: Duration,
    },
    /// The path of a session takes longer or shorter datagrams than before: flows that cut units do
    /// so from their next unit on; units that do not fit, and nothing cuts, will be lost.
    PathMtuChanged {
        /// The session.
        session: SessionId,
        /// The longest datagram before, in bytes of UDP payload.
        from: usize,
        /// The longest now.
        to: usize,
    },
    /// A flow is carried by another transport than was agreed, which gives it as much.
    StoodIn {
        /// The session.
        session: SessionId,
        /// The flow's place in the session.
        flow: usize,
        /// The number of the transport that carries it.
        transport: u16,
        /// Why the one that was agreed does not.
        reason: String,
    },
    /// A flow is accounted for.
    FlowEnded {
        /// The session.
        session: SessionId,
        /// The flow's place in the session.
        flow: usize,
        /// The account.
        ledger: Ledger,
        /// Whether both ends saw the same bytes; `None` when not all units were delivered.
        hash: Option<bool>,
    },
    /// The source of a flow failed before its end; what it gave is accounted for.
    FlowFailed {
        /// The session.
        session: SessionId,
        /// The flow's place.
        flow: usize,
        /// Why.
        error: Error,
    },
    /// A flow runs in a new epoch.
    Changed {
        /// The session.
        session: SessionId,
        /// The flow's place.
        flow: usize,
        /// The epoch.
        epoch: u64,
    },
    /// A change was not made.
    ChangeFailed {
        /// The session.
        session: SessionId,
        /// The flow's place.
        flow: usize,
        /// Why.
        error: Error,
    },
    /// The answer to [`Core::control`].
    ControlAnswered {
        /// The session.
        session: SessionId,
        /// The request.
        request: u32,
        /// The answer.
        answer: Result<Vec<u8>, Error>,
    },
    /// The peer serves the session at another port of its host, and refuses it at this one.
    /// [`CoreEvent::SessionEnded`] follows.
    Elsewhere {
        /// The session.
        session: SessionId,
        /// The port.
        port: NonZeroU16,
    },
    /// The session is over at this end.
    SessionEnded {
        /// The session.
        session: SessionId,
        /// `None` for the usual end; else why it ended.
        error: Option<Error>,
    },
}

/// Counters of what belongs to no flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Datagrams of the reserved range.
    pub reserved: u64,
    /// Datagrams that begin like ours and are not.
    pub malformed: u64,
    /// Data with a label that is not ours.
    pub unknown_label: u64,
    /// Data with a label that was taken back less than two minutes ago.
    pub old_label: u64,
    /// Probes with a token that is not ours, or answers to nothing.
    pub unknown_probe: u64,
    /// Events that were dropped because the application did not read them.
    pub events_dropped: u64,
    /// Sessions that were looked at, once for each turn in which something had happened in them,
    /// was due or was under way; those in which nothing happens are not.
    pub sessions_watched: u64,
    /// Flows that were asked for something to send.
    pub flows_asked: u64,
    /// Peers that were looked at, counted as sessions are.
    pub peers_watched: u64,
    /// Control connections that were looked at, counted as sessions are.
    pub connections_watched: u64,
}

/// What a flow is doing, for display.
#[derive(Clone, Debug)]
pub struct FlowStatus {
    /// The offer as agreed.
    pub offer: FlowOffer,
    /// The epoch that runs.
    pub epoch: u64,
    /// The modules and their counters.
    pub modules: Vec<(&'static ModuleSpec, ModuleCounters)>,
    /// Units fed (sender), or known of (receiver).
    pub sent: u64,
    /// Units that were taken from the source and wait to be fed (sender).
    pub waiting: u64,
    /// The receiver's account so far; the sender's is known at the end.
    pub ledger: Option<Ledger>,
    /// Why it was not taken at set-up, by this end or the other.
    pub refused: Option<Error>,
}

/// Which stream carries what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    Hub(PeerId),
    Session(SessionId),
    /// A session that is over at this end; what still comes is passed over.
    Over,
}

/// A core without sockets and clock.
pub struct Core {
    pub(crate) config: CoreConfig,
    pub(crate) instance: [u8; 16],
    pub(crate) pool: Pool,
    pub(crate) random: Random,
    pub(crate) control: Control,
    pub(crate) peers: Peers,
    /// Peers by what names their connection in probes.
    pub(crate) probed: BTreeMap<u64, PeerId>,
    pub(crate) conns: BTreeMap<ConnId, PeerId>,
    pub(crate) streams: BTreeMap<(ConnId, ControlStream), Carries>,
    /// The byte streams of flows.
    pub(crate) flow_streams: Streams,
    /// The groups that flows come from.
    pub(crate) groups: Groups,
    /// Where a peer is to be looked for on this host.
    looks: VecDeque<Look>,
    /// The casts that go to the streams of their members.
    pub(crate) stream_casts: Vec<SessionId>,
    pub(crate) sessions: Sessions,
    pub(crate) ports: BTreeMap<SessionId, Vec<Option<Port>>>,
    pub(crate) labels: Labels,
    pub(crate) published: BTreeMap<String, Published>,
    pub(crate) events: VecDeque<CoreEvent>,
    /// How many events were read or dropped before those.
    events_read: u64,
    pub(crate) outbox: Outbox,
    pub(crate) counters: CoreCounters,
    looks_at: stops::Looks,
    /// When [`Core::handle_timeout`] was called last, if nothing but data has come since.
    watched_at: Option<Time>,
    next_id: u64,
}

impl Core {
    /// A core. `origin` is where `Time::ZERO` lies on the clock that `quinn-proto` counts with: any
    /// instant will do, and it is not read again.
    #[must_use]
    pub fn new(
        config: CoreConfig,
        crypto: ControlCrypto,
        mut random: Random,
        origin: Instant,
    ) -> Self {
        let mut instance = [0; 16];
        random.fill(&mut instance);
        Self {
            pool: Pool::new(config.pool_bytes_max),
            control: Control::new(crypto, &mut random, origin, config.queues.answers_max),
            config,
            instance,
            random,
            peers: Peers::default(),
            probed: BTreeMap::new(),
            conns: BTreeMap::new(),
            streams: BTreeMap::new(),
            flow_streams: Streams::default(),
            groups: Groups::default(),
            looks: VecDeque::new(),
            stream_casts: Vec::new(),
            sessions: Sessions::default(),
            ports: BTreeMap::new(),
            labels: Labels::default(),
            published: BTreeMap::new(),
            events: VecDeque::new(),
            events_read: 0,
            outbox: Outbox::default(),
            counters: CoreCounters::default(),
            looks_at: stops::Looks::default(),
            watched_at: None,
            next_id: 1,
        }
    }

    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// The packet memory, to bring datagrams in and to read what goes out.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Counters of what belongs to no flow.
    #[must_use]
    pub fn counters(&self) -> CoreCounters {
        CoreCounters { connections_watched: self.control.watched(), ..self.counters }
    }

    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<CoreEvent> {
        let event = self.events.pop_front()?;
        self.events_read += 1;
        Some(event)
    }

    /// True when events wait.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(crate) fn event(&mut self, event: CoreEvent) {
        if let CoreEvent::Active { session } | CoreEvent::Inactive { session } = &event
            && self.replace_unread(*session, &event)
        {
            return;
        }
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
            self.events_read += 1;
            self.counters.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    /// Of going on and pausing only the newest is kept while nobody reads events, so that a peer
    /// that does nothing else pushes out nothing of others.
    fn replace_unread(&mut self, id: SessionId, event: &CoreEvent) -> bool {
        let (read, told) = (self.events_read, self.events_read + self.events.len() as u64);
        let Some(session) = self.sessions.get_mut(&id) else { return false };
        let at = session.activity_told.filter(|at| (read..told).contains(at));
        let Some(at) = at else {
            session.activity_told = Some(told);
            return false;
        };
        let place = usize::try_from(at - read).ok().and_then(|at| self.events.get_mut(at));
        let Some(place) = place else { return false };
        *place = match event {
            CoreEvent::Active { .. } => CoreEvent::Active { session: id },
            _ => CoreEvent::Inactive { session: id },
        };
        true
    }

    /// Lets the flows of a session run; [`CoreEvent::Active`] follows. Participant only.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when the session is not set up, or this end is its Creator.
    pub fn activate(&mut self, now: Time, id: SessionId) -> Result<(), Error> {
        self.request(now, id, State::Ready, State::Activating, Awaited::Activated, |request| {
            Message::Activate(dacapo_wire::session::Activate { request })
        })
    }

    /// Lets the flows of a session pause; [`CoreEvent::Inactive`] follows. Participant only.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when the session does not run, or this end is its Creator.
    pub fn deactivate(&mut self, now: Time, id: SessionId) -> Result<(), Error> {
        self.request(now, id, State::Active, State::Deactivating, Awaited::Deactivated, |request| {
            Message::Deactivate(dacapo_wire::session::Deactivate { request })
        })
    }

    fn request(
        &mut self,
        now: Time,
        id: SessionId,
        from: State,
        to: State,
        awaited: fn(u32) -> Awaited,
        message: impl FnOnce(u32) -> Message,
    ) -> Result<(), Error> {
        let session = self.sessions.get_mut(&id).ok_or_else(|| no_session(id))?;
        if session.state != from || session.role != crate::session::table::Role::Participant {
            let text = format!("the session is {:?}, not {from:?}", session.state);
            return Err(Error::new(Code::NoSuchThing, text));
        }
        session.next_request += 1;
        let message = message(session.next_request);
        session.state = to;
        session.await_answer(now + ANSWER_MAX, awaited(session.next_request));
        self.send_on(now, id, &message);
        Ok(())
    }

    /// Asks the source of a flow again that has answered [`crate::SourcePoll::Idle`], or its sink
    /// whether it has room again ([`crate::Sink::has_room`]): for those that are fed and emptied
    /// from outside.
    pub fn wake(&mut self, now: Time, id: SessionId, flow: usize) {
        self.note_room(now, id, flow);
        let (id, flow) = self.sending(id, flow);
        let flow = self.sessions.get_mut(&id).and_then(|session| session.flows.get_mut(flow));
        if let Some(FlowEnd::Sender(sender)) = flow.map(|flow| &mut flow.end) {
            sender.wake(now);
        }
    }

    /// Hands a unit over for a flow that this end sends, past its source, in which none may wait:
    /// it is written into the memory in which it leaves. False when it cannot be taken now, and
    /// nothing has changed; then it is the source's to give.
    pub fn push(&mut self, now: Time, id: SessionId, flow: usize, unit: &[u8]) -> bool {
        let (id, flow) = self.sending(id, flow);
        let taken = self.with_session(now, id, |session, around| {
            match session.flows.get_mut(flow).map(|flow| &mut flow.end) {
                Some(FlowEnd::Sender(sender)) => sender.push(around, unit),
                _ => false,
            }
        });
        taken.unwrap_or(false)
    }

    /// Whether units of a flow wait at this end that may be sent.
    #[must_use]
    pub fn has_backlog(&self, id: SessionId, flow: usize) -> bool {
        let (id, flow) = self.sending(id, flow);
        let flow = self.sessions.get(&id).and_then(|session| session.flows.get(flow));
        let waits =
            matches!(flow.map(|flow| &flow.end), Some(FlowEnd::Sender(it)) if it.has_backlog());
        waits || self.has_copies()
    }

    /// Sends a command out of band to the peer's end: to the access module of one flow (or of all,
    /// [`dacapo_wire::session::FLOW_ALL`]), or to a module of a flow's graph by its place. Returns
    /// the request's number; [`CoreEvent::ControlAnswered`] follows, within 10 s.
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
        let to_module = module != dacapo_wire::session::MODULE_ACCESS;
        let epoch = to_module.then(|| self.epoch_of(id, usize::from(flow))).flatten().unwrap_or(0);
        let session = self.sessions.get_mut(&id).ok_or_else(|| no_session(id))?;
        if !session.state.is_running() {
            let text = format!("the session is {:?}", session.state);
            return Err(Error::new(Code::NoSuchThing, text));
        }
        if payload.len() > dacapo_wire::limits::PAYLOAD_LEN_MAX || session.awaited.len() >= 256 {
            return Err(Error::new(Code::TooMany, "requests, or bytes in one (at most 4 KiB)"));
        }
        session.next_request += 1;
        let request = session.next_request;
        session.await_answer(now + ANSWER_MAX, Awaited::Control(request));
        let message = dacapo_wire::session::Control {
            request,
            flow,
            epoch,
            module,
            payload: payload.to_vec(),
        };
        self.send_on(now, id, &Message::Control(message));
        Ok(request)
    }

    /// The ids of all sessions, with the name and the peer of each.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &str, PeerId)> {
        let with_peer = self.sessions.iter().filter(|(_, it)| it.cast.is_none());
        with_peer.map(|(id, it)| (*id, it.name.as_str(), it.peer))
    }

    /// The address of a peer's control port.
    #[must_use]
    pub fn peer_address(&self, peer: PeerId) -> Option<SocketAddr> {
        self.peers.get(&peer).map(|peer| peer.remote)
    }

    /// Round trip to a peer and the offset of its clock, as probed.
    #[must_use]
    pub fn path(&self, peer: PeerId) -> Option<(Duration, ClockOffset)> {
        let prober = self.peers.get(&peer)?.prober.as_ref()?;
        Some((prober.rtt().smoothed()?, *prober.offset()))
    }

    /// Who a peer says it is: what the handshake gave, to be interpreted by who made the crypto.
    #[must_use]
    pub fn peer_identity(&self, peer: PeerId) -> Option<Box<dyn std::any::Any>> {
        self.control.peer_identity(self.peers.get(&peer)?.conn?)
    }

    /// What the flows of a session are doing.
    #[must_use]
    pub fn status(&self, id: SessionId) -> Vec<FlowStatus> {
        let Some(session) = self.sessions.get(&id) else { return Vec::new() };
        let own = session.flows.iter().map(|flow| self.own_status(flow));
        own.collect()
    }

    /// What a flow is doing; one to a group as its cast does.
    fn own_status(&self, flow: &crate::session::Flow) -> FlowStatus {
        let mut status = flow_status(flow);
        if let FlowEnd::Member(member) = &flow.end
            && let Some(sending) = self.sessions.get(&member.cast).and_then(|it| it.flows.first())
        {
            let of_all = flow_status(sending);
            (status.modules, status.waiting) = (of_all.modules, of_all.waiting);
            status.sent = of_all.sent.saturating_sub(member.base());
        }
        status
    }

    /// The control connections that exist, half-open ones included.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.control.connection_count()
    }

    /// Runs `body` over the flows of a session with what a call into a flow is given.
    pub(crate) fn with_session<R>(
        &mut self,
        now: Time,
        id: SessionId,
        body: impl FnOnce(&mut Session, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let session = self.sessions.get_mut(&id)?;
        let mut around = Context { now, pool: &mut self.pool, random: &mut self.random };
        Some(body(session, &mut around))
    }

    /// Sends a message on a session's stream; when that cannot be, the session is over.
    pub(crate) fn send_on(&mut self, now: Time, id: SessionId, message: &Message) {
        let Some((conn, stream)) = self.stream_of(id) else { return };
        self.hurry(now, conn);
        if self.control.send(conn, stream, message).is_err() {
            let text = format!("the peer does not read its control stream ({:?})", message.kind());
            self.end_session(now, id, Some(Error::new(Code::NoAnswer, text)));
        }
    }

    /// Something is said on a connection, and is to arrive soon.
    pub(crate) fn hurry(&mut self, now: Time, conn: ConnId) {
        let peer = self.conns.get(&conn).and_then(|id| self.peers.get_mut(id));
        if let Some(peer) = peer {
            peer.hurry(now);
        }
    }

    pub(crate) fn stream_of(&self, id: SessionId) -> Option<(ConnId, ControlStream)> {
        let session = self.sessions.get(&id)?;
        let conn = self.peers.get(&session.peer)?.conn?;
        Some((conn, session.stream))
    }

    /// Does what the control connections report.
    pub(crate) fn drain_control(&mut self, now: Time) {
        while let Some(event) = self.control.poll_event() {
            self.touch();
            match event {
                ControlEvent::Connected { conn, remote, dialed } => {
                    self.handle_connected(now, conn, remote, dialed);
                }
                ControlEvent::Lost { conn, reason, said } => {
                    self.handle_lost(now, conn, &reason, said);
                }
                ControlEvent::Message { conn, stream, message } => {
                    self.handle_message(now, conn, stream, message);
                }
                ControlEvent::Ended { conn, stream, error } => {
                    self.handle_stream_ended(now, conn, stream, error);
                }
            }
        }
    }

    /// Time has passed: everything that is due happens. To be called when [`Core::next_deadline`]
    /// has said, which is to be asked again after that: what is later was stopped, and no deadline
    /// passes meanwhile.
    pub fn handle_timeout(&mut self, now: Time) {
        self.note_stop(now);
        self.control.handle_timeout(now);
        self.drain_control(now);
        self.watch_peers(now);
        self.watch_sessions(now);
        self.drain_control(now);
        self.watched_at = Some(now);
    }

    /// For tests: looks at everything at once, due or not, and counts nothing. Nothing may come of
    /// what was not ready.
    #[doc(hidden)]
    pub fn visit_all(&mut self, now: Time) {
        let counters = self.counters;
        self.control.visit_all(now);
        self.peers.wake_all();
        self.sessions.wake_all();
        self.watch_peers(now);
        self.watch_sessions(now);
        self.drain_control(now);
        self.counters = counters;
    }

    /// Whether [`Core::handle_timeout`] may be left out now: it was called less than 50 µs ago, and
    /// since then nothing has come but data, of which flows take care at once. For who turns more
    /// often than that; nobody sleeps as exactly.
    #[must_use]
    pub fn is_watched(&self, now: Time) -> bool {
        self.watched_at.is_some_and(|at| now.since(at) < WATCH_EVERY)
    }

    /// Whether something has happened since that [`Core::handle_timeout`] is to see.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.watched_at.is_none()
    }

    /// Something has happened that [`Core::handle_timeout`] is to see: all that is not data.
    pub fn touch(&mut self) {
        self.watched_at = None;
    }
}

pub(crate) fn no_session(id: SessionId) -> Error {
    Error::new(Code::NoSuchThing, format!("session {}", id.0))
}

fn flow_status(flow: &crate::session::Flow) -> FlowStatus {
    let (epoch, modules, sent, ledger) = match &flow.end {
        FlowEnd::None | FlowEnd::Member(_) => (0, Vec::new(), 0, None),
        FlowEnd::Sender(sender) => {
            let epoch = sender.current();
            let modules = epoch.runner.modules().map(|(spec, seen)| (spec, *seen)).collect();
            (epoch.number, modules, sender.sent(), None)
        }
        FlowEnd::Receiver(receiver) => {
            let newest = receiver.newest();
            let modules = newest.map_or_else(Vec::new, |epoch| {
                epoch.runner.modules().map(|(spec, seen)| (spec, *seen)).collect()
            });
            let ledger = receiver.ledger().clone();
            (newest.map_or(0, |epoch| epoch.number), modules, ledger.sent, Some(ledger))
        }
    };
    let waiting = match &flow.end {
        FlowEnd::Sender(sender) => sender.waiting(),
        _ => 0,
    };
    let (offer, refused) = (flow.offer.clone(), flow.refused.clone());
    FlowStatus { offer, epoch, modules, sent, waiting, ledger, refused }
}
