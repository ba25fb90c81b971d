//! [`Station`]: a whole host in a thread that serves one flow, or joins it, until it is to end.
//!
//! ```text
//!   who watches                     the thread
//!     order: run | finish | quit -->  Host::next_event, again and again
//!     seen, arrivals, heard     <--   what happened, what came, what passed the socket
//! ```
//!
//! Invariants: a station that is dropped quits, says nothing to its peer, and its thread is gone;
//! the heap counted is that of its thread alone.

use super::ports::{Arrivals, Supply};
use super::tap::{Heard, Tap};
use dacapo::Host;
use dacapo_base::{Address, Time};
use dacapo_core::{
    Command, CoreCounters, CoreEvent, Done, Error, JoinParams, JoinRequest, Ledger, PeerId, Port,
    SessionId, SessionProvider, SessionSpec,
};
use dacapo_security::Identity;
use dacapo_sys::netns::Namespace;
use dacapo_transport::Transport;
use dacapo_transport::tcp::{self, Tcp};
use dacapo_transport::udp::{Config, Udp};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::medium::Medium;
use dacapo_wire::session::{Direction, FlowOffer};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The name of the session.
pub const NAME: &str = "units";

/// An order is followed after so long at most.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What is waited for comes within this time, or never.
pub const LONG: Duration = Duration::from_secs(60);

/// The one flow of a session.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    /// Which way it goes.
    pub direction: Direction,
    /// Over kernel TCP, which loses nothing; else over UDP, without repair.
    pub stream: bool,
    /// What its source gives.
    pub supply: Supply,
    /// Its bound, bit/s.
    pub bound_bps: u64,
    /// How long lost contact is waited for.
    pub give_up_after: Duration,
}

impl Course {
    /// A unit of 500 bytes every 10 ms to who joins, over UDP.
    #[must_use]
    pub fn ticking() -> Self {
        Self {
            direction: Direction::ToParticipant,
            stream: false,
            supply: Supply { len: 500, every: Duration::from_millis(10), count: u64::MAX },
            bound_bps: 10_000_000,
            give_up_after: Duration::from_secs(300),
        }
    }

    /// The session with it.
    #[must_use]
    pub fn spec(&self, name: &str) -> SessionSpec {
        let modules: &[&str] =
            if self.stream { &["segment"] } else { &["segment", "sequence", "checksum"] };
        let catalogue = dacapo::catalogue();
        let ids = modules.iter().filter_map(|module| Some(catalogue.by_name(module)?.spec.id));
        let flow = FlowOffer {
            name: "units".into(),
            direction: self.direction,
            medium: Medium::Raw,
            graph: GraphForm::line(ids.map(|id| (id, Vec::new()))),
            transport: if self.stream { tcp::SPEC.id } else { dacapo_transport::udp::SPEC.id },
            bound_bps: self.bound_bps,
            // Both ends must have seen the same bytes.
            digest: self.stream,
            unit_len_max: u32::try_from(self.supply.len.max(64)).unwrap_or(u32::MAX),
            ..FlowOffer::default()
        };
        SessionSpec {
            name: name.into(),
            title: String::new(),
            flows: vec![flow],
            participants_max: 8_192,
            give_up_after: self.give_up_after,
        }
    }

    /// The access module at one of the ends.
    #[must_use]
    pub fn port(&self, at_creator: bool, arrivals: &Arc<Arrivals>) -> Port {
        let sends = at_creator == (self.direction == Direction::ToParticipant);
        if sends { self.supply.port() } else { arrivals.port() }
    }
}

/// Publishes a course, for as many as ask.
pub struct Publish(pub Course, pub Arc<Arrivals>);

impl SessionProvider for Publish {
    fn open(&mut self, _: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        Ok(self.0.port(true, &self.1))
    }
}

/// Which end a station is.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// It listens here; port 0 takes a free one.
    Serve(SocketAddr),
    /// It connects to here.
    Join(SocketAddr),
}

/// What a station has seen so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Where it listens.
    pub listening: Option<SocketAddr>,
    /// When flows began to run.
    pub active: Option<Time>,
    /// When it began to connect, and when the session was set up.
    pub set_up: Option<(Time, Time)>,
    /// When contact was lost.
    pub lost: Vec<Time>,
    /// When contact was back, and how long flows had waited.
    pub restored: Vec<(Time, Duration)>,
    /// The accounts of flows, and whether both ends saw the same bytes.
    pub accounts: Vec<(Ledger, Option<bool>)>,
    /// When sessions ended, and why where that was not the usual end.
    pub over: Vec<(Time, Option<Error>)>,
    /// Why peers are gone.
    pub peers_lost: Vec<(Time, Error)>,
    /// The core's counters.
    pub counters: CoreCounters,
    /// Packets that modules gave up.
    pub module_drops: u64,
    /// Sessions that there are.
    pub sessions: usize,
    /// Control connections that there are.
    pub connections: usize,
    /// Bytes of this thread on the heap, and the most there were.
    pub heap: (i64, i64),
    /// Packets that are out of the pool, and bytes that it holds, used or free.
    pub pool: (usize, usize),
    /// Processor time of this thread.
    pub cpu: Duration,
    /// Why it could not go on.
    pub failed: Option<String>,
    /// Its thread has ended.
    pub is_gone: bool,
}

const RUN: u8 = 0;
const FINISH: u8 = 1;
const QUIT: u8 = 2;

/// What a thread and its owner share.
#[derive(Default)]
struct Shared {
    order: AtomicU8,
    seen: Mutex<Seen>,
    heard: Arc<Heard>,
    arrivals: Arc<Arrivals>,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A host in a thread.
pub struct Station {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Station {
    /// Begins one. `namespace` is the name of the network namespace it lives in; `None`: ours.
    #[must_use]
    pub fn begin(role: Role, course: Course, who: &Identity, namespace: Option<&str>) -> Self {
        let shared = Arc::new(Shared::default());
        let (inside, who) = (Arc::clone(&shared), who.clone());
        let namespace = namespace.map(str::to_owned);
        let name = match role {
            Role::Serve(_) => "station, serves",
            Role::Join(_) => "station, joins",
        };
        let work = move || {
            let work = || live(role, course, &who, &inside);
            let done = match namespace {
                None => work(),
                Some(name) => Namespace::open(&name)
                    .and_then(|space| space.run(work))
                    .map_err(|error| format!("the network namespace {name}: {error}"))
                    .flatten(),
            };
            let mut seen = inside.seen();
            (seen.failed, seen.is_gone) = (done.err(), true);
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(work);
        if let Err(error) = &thread {
            shared.seen().failed = Some(format!("no thread: {error}"));
        }
        Self { shared, thread: thread.ok() }
    }

    /// What it has seen so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.shared.seen().clone()
    }

    /// What came out of its flow.
    #[must_use]
    pub fn arrivals(&self) -> &Arc<Arrivals> {
        &self.shared.arrivals
    }

    /// What passed its socket.
    #[must_use]
    pub fn heard(&self) -> &Arc<Heard> {
        &self.shared.heard
    }

    /// Tells it to close the session; its thread ends when the session has.
    pub fn finish(&self) {
        self.shared.order.store(FINISH, Relaxed);
    }

    /// Its thread ends, and nobody is told.
    pub fn quit(&mut self) {
        self.shared.order.store(QUIT, Relaxed);
        if let Some(thread) = self.thread.take() {
            // What went wrong in it is in `seen`, unless it panicked, which its owner sees by that.
            let _ = thread.join();
        }
    }

    /// The most that is on the heap is counted from now on anew.
    pub fn forget_peak(&self) {
        let mut seen = self.shared.seen();
        seen.heap.1 = seen.heap.0;
    }

    /// Waits until `found` finds something.
    ///
    /// # Errors
    /// What was waited for, and what was seen instead, after [`LONG`] or when the thread is gone.
    pub fn wait<T>(&self, what: &str, found: impl Fn(&Seen) -> Option<T>) -> Result<T, String> {
        let begun = Instant::now();
        loop {
            let seen = self.seen();
            if let Some(found) = found(&seen) {
                return Ok(found);
            }
            let is_gone = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
            if seen.is_gone || is_gone || begun.elapsed() > LONG {
                return Err(format!("{what}: did not come in {:?}: {seen:?}", begun.elapsed()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until a unit has come after [`Arrivals::wait_from`]; how long that took.
    ///
    /// # Errors
    /// As [`Station::wait`].
    pub fn first_unit(&self) -> Result<Duration, String> {
        self.wait("a unit", |_| self.shared.arrivals.first_after())
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.quit();
    }
}

/// The life of a station.
fn live(role: Role, course: Course, who: &Identity, shared: &Shared) -> Result<(), String> {
    let mut host = Host::with_identity(who.clone()).map_err(|error| error.to_string())?;
    let begun = host.reactor().now();
    let mut life = Life { course, begun, peer: None, session: None, is_closing: false };
    match role {
        Role::Serve(at) => serve(&mut host, at, course, shared)?,
        Role::Join(remote) => {
            let udp = Udp::dial(remote, &Config::default()).map_err(|error| error.to_string())?;
            let tap = Box::new(Tap::new(udp, &shared.heard));
            let peer =
                host.reactor().connect(tap, remote.into()).map_err(|error| error.to_string())?;
            life.peer = Some(peer);
        }
    }
    let mut noted = begun;
    loop {
        let mut tokens = Vec::new();
        let (event, used) = dacapo_heap::measure(|| host.next_event(LOOK_EVERY, &mut tokens));
        let event = event.map_err(|error| error.to_string())?;
        let now = host.reactor().now();
        note_heap(shared, used);
        if let Some(event) = event {
            let (done, used) = dacapo_heap::measure(|| life.handle(now, &mut host, event, shared));
            note_heap(shared, used);
            if done? {
                host.reactor().flush(Duration::from_millis(100));
                return Ok(());
            }
        }
        if now.since(noted) >= LOOK_EVERY {
            noted = now;
            note(&mut host, shared);
        }
        match shared.order.load(Relaxed) {
            RUN => {}
            FINISH => life.close(now, &mut host)?,
            _ => return Ok(()),
        }
    }
}

fn serve(host: &mut Host, at: SocketAddr, course: Course, shared: &Shared) -> Result<(), String> {
    // TCP's port of the same number may be taken, as in `Host::listen`.
    for _ in 0..16 {
        let udp = Udp::serve(&[at], &Config::default()).map_err(|error| error.to_string())?;
        let found: Vec<_> = udp.local_addrs().iter().filter_map(Address::ip).collect();
        let Ok(tcp) = Tcp::serve(&found, &tcp::Config::default()) else { continue };
        let told = |error: std::io::Error| error.to_string();
        host.reactor().listen_streams(tcp::SPEC.id, Box::new(tcp)).map_err(told)?;
        host.reactor().listen(Box::new(Tap::new(udp, &shared.heard))).map_err(told)?;
        let publish = Box::new(Publish(course, Arc::clone(&shared.arrivals)));
        let published = host.reactor().core().publish(course.spec(NAME), publish);
        published.map_err(|error| error.to_string())?;
        shared.seen().listening = found.first().copied();
        return Ok(());
    }
    Err(format!("{at}: no port is free in both UDP and TCP"))
}

fn note_heap(shared: &Shared, used: dacapo_heap::Use) {
    let mut seen = shared.seen();
    let peak = seen.heap.0.saturating_add_unsigned(used.peak_bytes);
    seen.heap = (seen.heap.0 + used.live_bytes, seen.heap.1.max(peak));
}

/// Notes what a core says of itself.
fn note(host: &mut Host, shared: &Shared) {
    let core = host.reactor().core();
    let sessions: Vec<SessionId> = core.sessions().map(|(id, ..)| id).collect();
    let flows = sessions.iter().flat_map(|id| core.status(*id)).collect::<Vec<_>>();
    let modules = flows.iter().flat_map(|flow| &flow.modules);
    let drops = modules.map(|it| it.counters.up.dropped_count()).sum();
    let (counters, connections) = (core.counters(), core.connection_count());
    let pool = (core.pool().live_views(), core.pool().stats().bytes);
    let cpu = thread_cpu();
    let mut seen = shared.seen();
    (seen.pool, seen.cpu) = (pool, cpu);
    seen.module_drops = seen.module_drops.max(drops);
    (seen.counters, seen.sessions, seen.connections) = (counters, sessions.len(), connections);
}

/// Processor time of this thread, as the scheduler counts it; zero where it does not.
fn thread_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// What a station is about.
struct Life {
    course: Course,
    begun: Time,
    peer: Option<PeerId>,
    session: Option<SessionId>,
    is_closing: bool,
}

impl Life {
    /// Follows an event; true when the station's work is done.
    fn handle(
        &mut self,
        now: Time,
        host: &mut Host,
        event: CoreEvent,
        shared: &Shared,
    ) -> Result<bool, String> {
        let joins = self.peer.is_some();
        let core = host.reactor().core();
        let told = |error: Error| error.to_string();
        match event {
            CoreEvent::PeerOpen { peer } if joins && self.session.is_none() => {
                self.session = Some(
                    core.handle_command(
                        now,
                        Command::Join { peer, name: NAME.into(), params: JoinParams::default() },
                    )
                    .and_then(Done::session)
                    .map_err(told)?,
                );
            }
            CoreEvent::Offered { session, .. } => {
                let port = self.course.port(false, &shared.arrivals);
                core.answer(now, session, vec![Some(port)]).map_err(told)?;
            }
            CoreEvent::Ready { session } if joins => {
                shared.seen().set_up = Some((self.begun, now));
                core.handle_command(now, Command::Activate(session)).map_err(told)?;
            }
            CoreEvent::SessionEnded { error, .. } => {
                shared.seen().over.push((now, error));
                return Ok(joins);
            }
            CoreEvent::PeerLost { error, .. } => {
                shared.seen().peers_lost.push((now, error));
                return Ok(joins && self.session.is_none());
            }
            other => note_event(now, other, shared),
        }
        Ok(false)
    }

    fn close(&mut self, now: Time, host: &mut Host) -> Result<(), String> {
        match self.session {
            Some(session) if !self.is_closing => {
                self.is_closing = true;
                host.reactor()
                    .core()
                    .handle_command(now, Command::Close(session))
                    .map(drop)
                    .map_err(|error| error.to_string())
            }
            _ => Ok(()),
        }
    }
}

/// Events that ask for nothing.
fn note_event(now: Time, event: CoreEvent, shared: &Shared) {
    let mut seen = shared.seen();
    match event {
        CoreEvent::Active { .. } => seen.active = Some(now),
        CoreEvent::ContactLost { .. } => seen.lost.push(now),
        CoreEvent::ContactRestored { after, .. } => seen.restored.push((now, after)),
        CoreEvent::FlowEnded { ledger, hash, .. } => seen.accounts.push((*ledger, hash)),
        _ => {}
    }
}
