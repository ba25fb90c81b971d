//! [`Rig`]: one whole core in virtual time, with nothing around it; and what is said to it.
//!
//! ```text
//!   Peer (peer.rs) -- datagrams --> Rig { Core, clock, meter } -- what it sends --> sent
//!        '-- keys (tap.rs) --> packets with any frames in them (packet.rs)
//! ```
//!
//! Invariants: only calls of the core are measured, each by itself; one may allocate
//! [`oracle::limit`] of the bytes that it brings, or of those that are held where it brings none,
//! and what the pool holds is the pool's.

pub mod balance;
pub mod packet;
pub mod peer;
mod pieces;
pub mod ports;
pub mod tap;

use crate::{known, oracle};
use dacapo_base::{Address, Random, Time};
use dacapo_core::{ChannelEvent, Core, CoreConfig, CoreEvent, ListenerId, Request, StreamAsk, Way};
use dacapo_heap::{Use, measure};
use dacapo_netlab::plain_tls;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Turns at one instant after which a core is taken to spin.
const TURNS_MAX: usize = 20_000;

/// What a core has done to the heap beside its pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    /// Bytes that came in.
    pub received: usize,
    /// Bytes allocated in all calls.
    pub allocated: u64,
    /// Bytes in use now, less those at the start.
    pub live: i64,
    /// The most bytes in use after a call.
    pub live_max: i64,
    /// The most bytes that a single call allocated.
    pub call_max: u64,
    /// The most bytes by which a datagram exceeded what its bytes justify.
    pub churn_max: u64,
}

/// A datagram that the core has sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Which way.
    pub way: Way,
    /// To whom.
    pub remote: Address,
    /// What.
    pub bytes: Vec<u8>,
}

/// A core in virtual time.
pub struct Rig {
    core: Core,
    now: Time,
    origin: Instant,
    clock: Arc<plain_tls::clock::WorldClock>,
    pool_bytes: u64,
    /// What was measured.
    pub meter: Meter,
    /// What the core has sent and nobody has taken yet.
    pub sent: Vec<Sent>,
    /// What it has reported and nobody has taken yet.
    pub events: Vec<CoreEvent>,
    /// The kinds of everything that it has reported: how far a script has come.
    pub seen: BTreeSet<&'static str>,
}

impl Rig {
    /// A core that serves and dials; it and everything random in it follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::from_number(seed);
        let clock = Arc::new(plain_tls::clock::WorldClock::new());
        let crypto = plain_tls::control_crypto(&mut random, Some(clock.clone()));
        let mut config = CoreConfig::new(dacapo::catalogue());
        config.boot = [1; 16];
        config.pool_bytes_max = 16 << 20;
        let origin = Instant::now();
        let core = Core::new(config, crypto, random, origin);
        let now = Time::from_millis(1);
        clock.set(now);
        Self {
            core,
            now,
            origin,
            clock,
            pool_bytes: 0,
            meter: Meter::default(),
            sent: Vec::new(),
            events: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    /// Where the core serves.
    #[must_use]
    pub fn address() -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 19_980))
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The time on the clock that `quinn-proto` counts with.
    #[must_use]
    pub fn instant(&self) -> Instant {
        self.origin + Duration::from_nanos(self.now.as_nanos())
    }

    /// The core, for commands of its application; what they use is not measured.
    pub fn core(&mut self) -> &mut Core {
        &mut self.core
    }

    /// Calls the core with so many bytes and checks what that allocated. Time and what only looks
    /// bring none: what they end or give came before, and is held.
    ///
    /// # Panics
    /// It allocated more than they justify.
    pub fn call<R>(&mut self, received: usize, body: impl FnOnce(&mut Core, Time) -> R) -> R {
        let held = usize::try_from(self.meter.live).unwrap_or(0);
        let (result, used) = self.measured(body);
        self.meter.received += received;
        let came = if received > 0 { received } else { held };
        oracle::check("a call of a core", came, used);
        result
    }

    /// Calls the core; what that used beside the pool.
    fn measured<R>(&mut self, body: impl FnOnce(&mut Core, Time) -> R) -> (R, Use) {
        let now = self.now;
        let (result, used) = measure(|| body(&mut self.core, now));
        let pool_bytes = self.core.pool().stats().bytes as u64;
        let grown = pool_bytes.saturating_sub(self.pool_bytes);
        let shrunk = self.pool_bytes.saturating_sub(pool_bytes);
        self.pool_bytes = pool_bytes;
        let beside = Use {
            allocated_bytes: used.allocated_bytes.saturating_sub(grown),
            live_bytes: used.live_bytes - grown as i64 + shrunk as i64,
            ..used
        };
        let meter = &mut self.meter;
        meter.allocated += beside.allocated_bytes;
        meter.call_max = meter.call_max.max(beside.allocated_bytes);
        meter.live += beside.live_bytes;
        meter.live_max = meter.live_max.max(meter.live);
        (result, beside)
    }

    /// Gives the core a datagram; without room in its pool it is lost.
    ///
    /// # Panics
    /// As [`Rig::call`].
    pub fn handle(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.handle_datagram(from, bytes, false);
    }

    /// The same for a datagram that was sealed with these frames: for pieces of streams what is
    /// known of `quinn-proto` is allowed besides.
    ///
    /// # Panics
    /// As [`Rig::call`].
    pub fn handle_frames(&mut self, from: SocketAddr, bytes: &[u8], frames: &[u8]) {
        self.handle_datagram(from, bytes, pieces::pieces(frames) > 0);
    }

    fn handle_datagram(&mut self, from: SocketAddr, bytes: &[u8], has_pieces: bool) {
        let (_, used) = self.measured(|core, now| {
            if let Ok(packet) = core.pool().packet_from(0, bytes, 0) {
                core.handle_datagram(now, ListenerId::default(), from.into(), packet);
            }
        });
        let beyond = used.allocated_bytes.saturating_sub(oracle::limit(bytes.len()));
        self.meter.churn_max = self.meter.churn_max.max(beyond);
        let churn = if has_pieces { known::CHURN_BYTES } else { 0 };
        let allocated_bytes = used.allocated_bytes.saturating_sub(churn);
        self.meter.received += bytes.len();
        oracle::check("a datagram at a core", bytes.len(), Use { allocated_bytes, ..used });
    }

    /// Lets the core send and report everything that it has at this instant.
    ///
    /// # Panics
    /// It never comes to rest.
    pub fn settle(&mut self) {
        for turn in 0.. {
            assert!(turn < TURNS_MAX, "the core does not come to rest at {:?}", self.now);
            if let Some(request) = self.call(0, |core, _| core.poll_request()) {
                if let Request::Stream(ask) = request {
                    self.ask(&ask);
                }
                continue;
            }
            let Some(transmit) = self.call(0, Core::poll_transmit) else { break };
            let (bytes, segment) = self.core.bytes(&transmit);
            let (way, remote) = (transmit.way, transmit.remote);
            let datagrams = bytes.chunks(segment.max(1));
            self.sent.extend(datagrams.map(|it| Sent { way, remote, bytes: it.to_vec() }));
            self.call(0, |core, _| core.transmitted(transmit));
        }
        while let Some(event) = self.call(0, |core, _| core.poll_event()) {
            self.seen.insert(kind_of(&event));
            self.events.push(event);
        }
    }

    /// There are no byte streams here: what is dialed does not open, what is expected never comes.
    fn ask(&mut self, ask: &StreamAsk) {
        if let StreamAsk::Dial { stream, .. } = ask {
            let stream = *stream;
            self.call(0, |core, now| {
                core.handle_channel(now, stream, ChannelEvent::closed("nobody at the address"));
            });
        }
    }

    /// Lets time pass; whatever is due happens at its time.
    ///
    /// # Panics
    /// Timers fire without end.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        for turn in 0.. {
            assert!(turn < TURNS_MAX * 10, "timers without progress at {:?}", self.now);
            let next = self.call(0, Core::next_deadline).filter(|at| *at <= end);
            // A deadline that is past must not stop the clock.
            self.now = next.map_or(end, |at| at.max(self.now + Duration::from_nanos(1))).min(end);
            self.clock.set(self.now);
            self.call(0, Core::handle_timeout);
            self.settle();
            if self.now >= end {
                break;
            }
        }
    }

    /// What the core has sent since the last call.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// What the core has reported since the last call.
    pub fn take_events(&mut self) -> Vec<CoreEvent> {
        std::mem::take(&mut self.events)
    }

    /// Throws what was reported away, as the application does in the end.
    pub fn drop_events(&mut self) {
        let events = self.take_events();
        let ((), used) = measure(|| drop(events));
        self.meter.live += used.live_bytes;
    }

    /// Checks that the core holds nothing but `kept` bytes beside its pool, and no view.
    ///
    /// # Panics
    /// It holds more: something was not given back.
    pub fn check_empty(&mut self, kept: i64) {
        self.drop_events();
        assert_eq!(self.core.sessions().count(), 0, "sessions are left");
        assert_eq!(self.core.connection_count(), 0, "connections are left");
        assert_eq!(self.core.pool().live_views(), 0, "views are left");
        assert!(self.meter.live <= kept, "{} bytes are left: {:?}", self.meter.live, self.meter);
    }
}

/// What a report is about.
fn kind_of(event: &CoreEvent) -> &'static str {
    match event {
        CoreEvent::PeerOpen { .. } => "peer open",
        CoreEvent::PeerLost { .. } => "peer lost",
        CoreEvent::Offered { .. } => "offered",
        CoreEvent::Ready { .. } => "ready",
        CoreEvent::Active { .. } => "active",
        CoreEvent::Inactive { .. } => "inactive",
        CoreEvent::FlowEnded { .. } => "flow ended",
        CoreEvent::FlowFailed { .. } => "flow failed",
        CoreEvent::Changed { .. } => "changed",
        CoreEvent::SessionEnded { error: None, .. } => "closed",
        CoreEvent::SessionEnded { .. } => "session ended",
        _ => "other",
    }
}
