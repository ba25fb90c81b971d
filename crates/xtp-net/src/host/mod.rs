//! [`Host`]: an engine of XTP over one network.
//!
//! ```text
//!   turn:  time -> engine   receive -> engine     engine -> outbox -> network   nothing? wait for
//!          timers           at most 64 arrivals   at most 4 times 256 packets   a packet, room,
//!                           or 96 KiB                                            a time, an alarm
//! ```
//!
//! Nothing happens but in [`Host::turn`] and in the calls of `calls.rs`, which turn it until they
//! have what they wait for.
//!
//! Two styles, one at a time for each host: calls that wait ([`Host::accept`] and others), or
//! [`Host::engine`] and its events with [`Host::turn`] in between.
//!
//! Invariants: work in a turn is bounded; what the engine gives is sent, waits in the outbox, or is
//! counted; at most [`FAULTS_MAX`] peers have their last fault remembered; what is watched is
//! looked at with every turn, however much comes. While trains come one close behind the other, a
//! wait begins with a rest of at most 30 µs ([`Coalescing`]), so that several are taken at once.

mod calls;
mod outbox;

use crate::capture::Carriage;
use crate::fault::Fault;
use crate::network::{Arrival, Connectionless, Group, RecvError};
use crate::{AddressError, JoinError};
pub use calls::{CallError, Incoming};
use dacapo_base::{Random, Time};
use dacapo_io::Coalescing;
use dacapo_sys::poll::{Event, Interest, Poller, Registry};
use dacapo_sys::{NoEntropy, clock};
use dacapo_xtp::{Config, ContextId, Engine};
use outbox::Outbox;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Arrivals of a turn; each may be many packets.
const ARRIVALS_MAX: usize = 64;
/// Bytes of a turn, but for the last arrival: who reads is to find them where they were just put.
const ARRIVED_LEN_MAX: u64 = 96 << 10;
/// How often in a turn the outbox is filled: it holds what one call takes of a stream.
const SENDS_MAX: usize = 4;
/// Whatever comes fits.
const BUFFER_LEN: usize = 65_536;
/// Peers whose last fault is remembered.
const FAULTS_MAX: usize = 64;
/// The keys of the poller: the network's descriptors, and what others watch.
const NETWORK: u64 = 0;
const WATCHED: u64 = 1;

/// What has become of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that the engine gave: those sent, dropped, and waiting.
    pub packets_given: u64,
    /// Packets that the network took.
    pub packets_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Packets that the network did not take, by [`Fault::index`].
    pub packets_dropped: [u64; Fault::COUNT],
    /// Packets that came.
    pub packets_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Packets that came and for which the system had no room, where it says so (Ethernet; those
    /// for others on the cable, too). It says so with what comes later: the last may be missing.
    pub packets_missed: u64,
    /// Faults that the network told of later, by [`Fault::index`].
    pub faults_told: [u64; Fault::COUNT],
    /// How often there was no room to send.
    pub blocked: u64,
    /// Calls of the network that sent something.
    pub sends: u64,
    /// Calls that received something.
    pub receives: u64,
}

/// Why a host cannot go on.
#[derive(Debug)]
pub enum HostError {
    /// No randomness for keys.
    Entropy(NoEntropy),
    /// The system does not let descriptors be watched.
    Poll(io::Error),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entropy(error) => write!(f, "{error}"),
            Self::Poll(error) => write!(f, "descriptors cannot be watched: {error}"),
        }
    }
}

impl std::error::Error for HostError {}

/// An engine over one network.
pub struct Host {
    engine: Engine,
    network: Box<dyn Connectionless>,
    poller: Poller,
    coalescing: Coalescing,
    ready: Vec<Event>,
    buffer: Vec<u8>,
    outbox: Outbox,
    counters: Counters,
    faults: VecDeque<(SocketAddr, Fault)>,
    incoming: VecDeque<(u16, ContextId)>,
    alarm: Option<u16>,
    /// Others watch descriptors here.
    has_watched: bool,
}

impl Host {
    /// A host over a network; the length of packets is the network's, whatever `config` says.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn new(network: Box<dyn Connectionless>, config: Config) -> Result<Self, HostError> {
        let seed = dacapo_sys::entropy().map_err(HostError::Entropy)?;
        let config = Config { packet_len_max: network.packet_len_max(), ..config };
        let poller = Poller::new().map_err(HostError::Poll)?;
        let mut network = network;
        network.watch(poller.registry(NETWORK)).map_err(HostError::Poll)?;
        let coalescing = match network.carriage() {
            Carriage::Ip | Carriage::Ethernet => Coalescing::of_packets(),
            _ => Coalescing::default(),
        };
        Ok(Self {
            engine: Engine::new(config, Random::from_seed(seed)),
            network,
            poller,
            coalescing,
            ready: Vec::new(),
            buffer: vec![0; BUFFER_LEN],
            outbox: Outbox::default(),
            counters: Counters::default(),
            faults: VecDeque::new(),
            incoming: VecDeque::new(),
            alarm: None,
            has_watched: false,
        })
    }

    /// The address of this end, below XTP.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.network.local()
    }

    /// The engine; what it is to send goes out with the next turn.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The present, as the engine is told it.
    #[must_use]
    pub fn now(&self) -> Time {
        clock::now()
    }

    /// What has become of packets.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Packets that wait for room.
    #[must_use]
    pub fn packets_waiting(&self) -> u64 {
        self.outbox.packet_count()
    }

    /// The last fault of packets to a peer that is still remembered.
    #[must_use]
    pub fn fault_of(&self, peer: SocketAddr) -> Option<Fault> {
        let is_it = |of: &SocketAddr| of.ip() == peer.ip() && of.port() == peer.port();
        self.faults.iter().find(|(of, _)| is_it(of)).map(|(_, fault)| *fault)
    }

    /// The one form of a peer's address, with which an engine is to open associations.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn address(&self, peer: SocketAddr) -> Result<SocketAddr, AddressError> {
        self.network.address(peer)
    }

    /// Takes what is sent to a group, from now on.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(&mut self, group: Group) -> Result<(), JoinError> {
        self.network.join(group)
    }

    /// Ends waits when this descriptor is readable, until it is no more: calls then fail with
    /// [`CallError::Interrupted`] and this token.
    ///
    /// # Errors
    /// When it is watched already.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, token: u16) -> io::Result<()> {
        self.poller.registry(WATCHED).add(fd, token, Interest::Read)?;
        self.has_watched = true;
        Ok(())
    }

    /// The token of a watched descriptor that is ready.
    pub fn take_alarm(&mut self) -> Option<u16> {
        self.alarm.take()
    }

    /// Does what there is to do, or waits for it at most this long.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn turn(&mut self, most: Duration) -> Result<(), HostError> {
        self.work_or_wait(most).map(drop)
    }

    /// A turn that does not wait; whether anything came, left, failed or was due. The engine may
    /// have events then.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn look(&mut self) -> Result<bool, HostError> {
        self.work_or_wait(Duration::ZERO)
    }

    /// Whether anything was done. A timer is something: what it ends may have no packet.
    fn work_or_wait(&mut self, most: Duration) -> Result<bool, HostError> {
        let now = clock::now();
        let (is_due, has_moved) = (self.is_due(now), self.work(now));
        if !is_due && !has_moved {
            self.wait(most)?;
            let now = clock::now();
            let (is_due, has_moved) = (self.is_due(now), self.work(now));
            return Ok(is_due || has_moved);
        }
        if self.has_watched || !has_moved {
            // Peers that send without end do not keep an alarm away, nor timers the network.
            self.wait(Duration::ZERO)?;
        }
        Ok(true)
    }

    fn is_due(&self, now: Time) -> bool {
        self.engine.deadline() <= now
    }

    /// Whether packets were moved.
    fn work(&mut self, now: Time) -> bool {
        self.network.handle_time(now);
        if self.is_due(now) {
            self.engine.handle_time(now);
        }
        let has_received = self.receive(now);
        let sends = (0..SENDS_MAX).take_while(|_| self.send(now)).count();
        has_received || sends > 0
    }

    fn receive(&mut self, now: Time) -> bool {
        let mut has_received = false;
        let full = self.counters.bytes_received + ARRIVED_LEN_MAX;
        for _ in 0..ARRIVALS_MAX {
            if self.counters.bytes_received >= full {
                break;
            }
            match self.network.recv(now, &mut self.buffer) {
                Ok(arrival) => take(now, arrival, &mut self.engine, &mut self.counters),
                Err(RecvError::WouldBlock) => break,
                Err(RecvError::Fault { to, fault }) => self.note(to, fault),
            }
            has_received = true;
        }
        self.counters.packets_missed += self.network.take_missed();
        has_received
    }

    fn note(&mut self, to: Option<SocketAddr>, fault: Fault) {
        if let Some(count) = self.counters.faults_told.get_mut(fault.index()) {
            *count += 1;
        }
        if let Some(peer) = to {
            self.remember(peer, fault);
        }
    }

    fn remember(&mut self, peer: SocketAddr, fault: Fault) {
        self.faults.retain(|(of, _)| *of != peer);
        if self.faults.len() >= FAULTS_MAX {
            self.faults.pop_front();
        }
        self.faults.push_back((peer, fault));
    }

    fn forget_faults(&mut self, peer: SocketAddr) {
        self.faults.retain(|(of, _)| (of.ip(), of.port()) != (peer.ip(), peer.port()));
    }

    /// Associations whose peer has no room wait in the engine.
    fn heed_capacity(&mut self, now: Time) {
        while let Some((peer, has_capacity)) = self.network.poll_capacity() {
            self.engine.set_capacity(now, peer, has_capacity);
        }
    }

    fn send(&mut self, now: Time) -> bool {
        self.heed_capacity(now);
        self.outbox.fill(now, &mut self.engine, &mut self.counters);
        let was_blocked = self.outbox.is_blocked();
        let sent_before = self.counters.packets_sent;
        let mut has_dropped = false;
        while let Some((peer, fault)) =
            self.outbox.flush(now, self.network.as_mut(), &mut self.counters)
        {
            self.remember(peer, fault);
            has_dropped = true;
        }
        self.heed_capacity(now);
        if self.outbox.is_blocked() != was_blocked {
            // A network that cannot say when it has room is tried again with each turn.
            let _ = self.network.watch_capacity(self.outbox.is_blocked());
        }
        // Who waits for a peer is to see at once that nothing goes there.
        has_dropped || self.counters.packets_sent > sent_before
    }

    fn wait(&mut self, most: Duration) -> Result<(), HostError> {
        let now = clock::now();
        let due = self.engine.deadline().min(self.network.deadline()).min(self.outbox.retry_at());
        let most = if due == Time::NEVER { most } else { most.min(due.since(now)) };
        // A look is no wait: a rest that is none would seem to bring nothing.
        let sleeps = !most.is_zero();
        if sleeps && let Some(rest) = self.coalescing.rest(now, self.counters.bytes_received) {
            std::thread::sleep(rest.min(most));
        }
        self.poller.wait(Some(most), &mut self.ready).map_err(HostError::Poll)?;
        if sleeps {
            self.coalescing.looked(clock::now());
        }
        for event in self.ready.drain(..) {
            match Registry::split(event.token) {
                (NETWORK, place) => self.network.handle_event(place, event),
                (_, token) => self.alarm = Some(token),
            }
        }
        Ok(())
    }
}

fn take(now: Time, arrival: Arrival<'_>, engine: &mut Engine, counters: &mut Counters) {
    counters.receives += 1;
    // An empty datagram is no packet, and the engine counts it so.
    for packet in arrival.packets() {
        counters.packets_received += 1;
        counters.bytes_received += packet.len() as u64;
        engine.handle_packet(now, arrival.from, packet);
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("local", &self.local()).finish_non_exhaustive()
    }
}
