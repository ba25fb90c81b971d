//! [`ConnectionOriented`]: a network on which a connection must be there before a packet goes; and
//! [`Connected`], which makes a connectionless one of it.
//!
//! ```text
//!   send(to) -> by_peer -> connection, open?  yes: send        no: wait in its queue
//!                  | none: dial
//!   idle for 60 s: closed        closed by the peer, or lost: made again for the next packet
//!   as many as there may be: the one that was used least recently goes
//! ```
//!
//! XTP assumes that a packet can be sent to any address at any time. Where each needs a connection
//! (ATM, here TCP in its place) this table keeps them for that.
//!
//! Invariants: connections, and the packets and bytes that wait for each, are bounded; what is
//! dropped is told, packet by packet, as a fault of its peer; who does not answer is dialed once in
//! a while, not with every packet; what the network says has happened is heard before a packet is
//! given to a connection, so that none goes to one that is known to be gone.

use crate::capture::Carriage;
use crate::fault::{AddressError, Fault, JoinError};
use crate::network::{Arrival, Connectionless, Group, RecvError, SendError};
use crate::pass_on;
use dacapo_base::Time;
use dacapo_sys::poll::Registry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A connection; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Something that happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// A peer has made one.
    Incoming {
        /// The connection.
        id: ConnectionId,
        /// The address at which the peer can be connected to.
        peer: SocketAddr,
    },
    /// One that was asked for is there.
    Open(ConnectionId),
    /// One is gone.
    Closed {
        /// The connection.
        id: ConnectionId,
        /// Why, when it was not in order.
        fault: Option<Fault>,
    },
}

/// Packets that came one behind the other by one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received<'a> {
    /// From the first byte of the first packet to the last of the last.
    pub train: &'a [u8],
    /// The length of each, of which the last may be shorter.
    pub segment: usize,
    /// Bytes between one packet and the next, which are nobody's.
    pub gap: usize,
}

/// A network with connections. No call blocks.
pub trait ConnectionOriented: Send {
    /// The address of this end.
    fn local(&self) -> SocketAddr;

    /// The longest packet, bytes.
    fn packet_len_max(&self) -> usize;

    /// How packets look on this network, for captures.
    fn carriage(&self) -> Carriage;

    /// The one form in which this network says the address of a peer.
    ///
    /// # Errors
    /// [`AddressError`] when nothing can be connected to there.
    fn address(&self, peer: SocketAddr) -> Result<SocketAddr, AddressError>;

    /// Watches its descriptors in a poller from now on.
    ///
    /// # Errors
    /// When the poller takes no more.
    fn watch(&mut self, registry: Registry) -> io::Result<()>;

    /// Begins a connection; an event says when it is there, or that it failed.
    ///
    /// # Errors
    /// What is known at once.
    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Fault>;

    /// Lets a connection go; no event follows.
    fn close(&mut self, id: ConnectionId);

    /// Sends packets of `segment` bytes, of which the last may be shorter; gives the bytes that
    /// were taken, at least one packet's.
    ///
    /// # Errors
    /// [`SendError::WouldBlock`] when there is no room now; [`SendError::Fault`] when the
    /// connection is gone.
    fn send(&mut self, id: ConnectionId, train: &[u8], segment: usize) -> Result<usize, SendError>;

    /// Goes on to what came next, and says by which connection.
    fn recv(&mut self) -> Option<ConnectionId>;

    /// What came, until [`ConnectionOriented::recv`] is called again.
    fn received(&self) -> Received<'_>;

    /// What happened next.
    fn poll_event(&mut self) -> Option<ConnectionEvent>;

    /// When [`ConnectionOriented::handle_time`] has something to do, besides what descriptors say.
    fn deadline(&self) -> Time;

    /// Looks at what has happened; called with every turn.
    fn handle_time(&mut self, now: Time);
}

/// How many connections are kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// The most connections.
    pub connections_max: usize,
    /// A connection that carried nothing for so long is closed.
    pub idle: Duration,
    /// Who could not be connected to is tried again after so long.
    pub retry: Duration,
    /// The most bytes that wait for a connection.
    pub queue_bytes_max: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            connections_max: 256,
            idle: Duration::from_secs(60),
            retry: Duration::from_secs(1),
            queue_bytes_max: 256 << 10,
        }
    }
}

/// What became of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Connections that were begun here.
    pub dialed: u64,
    /// Connections of peers.
    pub accepted: u64,
    /// Closed because nothing went over them.
    pub idle_closed: u64,
    /// Closed to make room for another.
    pub evicted: u64,
    /// Lost, or not there at all.
    pub failed: u64,
}

/// Addresses that are not tried again yet; more are tried too often.
const REFUSED_MAX: usize = 64;
/// Faults that wait to be told; of more only the count of the first is told.
const TOLD_MAX: usize = 4_096;
/// Packets that one connection has waiting, however short.
const QUEUE_PACKETS_MAX: usize = 1_024;

/// Packets that wait for their connection.
#[derive(Debug)]
struct Waiting {
    train: Vec<u8>,
    /// Bytes that have left.
    gone: usize,
    segment: usize,
}

impl Waiting {
    fn rest(&self) -> &[u8] {
        self.train.get(self.gone..).unwrap_or_default()
    }

    fn packet_count(&self) -> usize {
        self.rest().len().div_ceil(self.segment)
    }
}

#[derive(Debug)]
struct Connection {
    peer: SocketAddr,
    is_open: bool,
    used: Time,
    queue: VecDeque<Waiting>,
    /// Packets and bytes of it.
    queued: (usize, usize),
    /// The peer's packets are to wait elsewhere.
    is_full: bool,
}

impl Connection {
    /// Has as many packets wait as may; gives their bytes.
    fn hold(&mut self, train: &[u8], segment: usize, bytes_max: usize) -> usize {
        let (packets, bytes) = self.queued;
        let count = QUEUE_PACKETS_MAX.saturating_sub(packets);
        let count = count.min(bytes_max.saturating_sub(bytes) / segment);
        let taken = train.get(..count.saturating_mul(segment)).unwrap_or(train);
        if !taken.is_empty() {
            self.queued = (packets + taken.len().div_ceil(segment), bytes + taken.len());
            self.queue.push_back(Waiting { train: taken.to_vec(), gone: 0, segment });
        }
        taken.len()
    }

    /// Whether more is to wait elsewhere: of an open connection as soon as anything waits, and of
    /// one that is dialed when half of what may wait does.
    fn is_to_be_full(&self, bytes_max: usize) -> bool {
        let (packets, bytes) = self.queued;
        let is_half = packets >= QUEUE_PACKETS_MAX / 2 || bytes >= bytes_max / 2;
        is_half || self.is_open && packets > 0
    }
}

/// A connectionless network made of connections.
#[derive(Debug)]
pub struct Connected<N> {
    network: N,
    config: CacheConfig,
    connections: BTreeMap<ConnectionId, Connection>,
    by_peer: HashMap<SocketAddr, ConnectionId>,
    refused: HashMap<SocketAddr, (Time, Fault)>,
    told: VecDeque<(SocketAddr, Fault)>,
    /// Peers that have room, or have none, and of which that is to be told.
    capacity: BTreeMap<SocketAddr, bool>,
    counters: CacheCounters,
}

impl<N: ConnectionOriented> Connected<N> {
    /// Keeps the connections of a network.
    #[must_use]
    pub fn new(network: N, config: CacheConfig) -> Self {
        Self {
            network,
            config,
            connections: BTreeMap::new(),
            by_peer: HashMap::new(),
            refused: HashMap::new(),
            told: VecDeque::new(),
            capacity: BTreeMap::new(),
            counters: CacheCounters::default(),
        }
    }

    /// What became of connections.
    #[must_use]
    pub const fn counters(&self) -> &CacheCounters {
        &self.counters
    }

    /// Connections that there are, those included that are not open yet.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// The connection over which packets go to a peer.
    fn connection_to(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Fault> {
        if let Some(id) = self.by_peer.get(&peer) {
            return Ok(*id);
        }
        self.refused.retain(|_, (until, _)| *until > now);
        if let Some((_, fault)) = self.refused.get(&peer) {
            return Err(*fault);
        }
        if !self.evict_one() {
            return Err(Fault::Overrun);
        }
        self.counters.dialed += 1;
        let id = self.network.connect(now, peer).inspect_err(|fault| {
            self.counters.failed += 1;
            refuse(&mut self.refused, peer, now + self.config.retry, *fault);
        })?;
        self.insert(now, id, peer, false);
        Ok(id)
    }

    fn insert(&mut self, now: Time, id: ConnectionId, peer: SocketAddr, is_open: bool) {
        let (queue, queued, is_full) = (VecDeque::new(), (0, 0), false);
        let connection = Connection { peer, is_open, used: now, queue, queued, is_full };
        self.connections.insert(id, connection);
        self.by_peer.entry(peer).or_insert(id);
    }

    /// Whether there is room for one more, after the one went that was used least recently; one
    /// for which packets wait stays.
    fn evict_one(&mut self) -> bool {
        if self.connections.len() < self.config.connections_max {
            return true;
        }
        let resting = self.connections.iter().filter(|(_, it)| it.is_open && it.queue.is_empty());
        let Some(id) = resting.min_by_key(|(_, it)| it.used).map(|(id, _)| *id) else {
            return false;
        };
        self.counters.evicted += 1;
        self.network.close(id);
        self.remove(id);
        true
    }

    /// Forgets a connection; another to the same peer takes its place.
    fn remove(&mut self, id: ConnectionId) -> Option<Connection> {
        let connection = self.connections.remove(&id)?;
        let peer = connection.peer;
        if connection.is_full {
            self.capacity.insert(peer, true);
        }
        if self.by_peer.get(&peer) == Some(&id) {
            self.by_peer.remove(&peer);
            let mut others = self.connections.iter().filter(|(_, it)| it.peer == peer);
            if let Some((other, _)) = others.next() {
                self.by_peer.insert(peer, *other);
            }
        }
        Some(connection)
    }

    /// Hears what has happened to connections, and what comes of that: at most the end of each.
    fn handle_events(&mut self, now: Time) {
        while let Some(event) = self.network.poll_event() {
            self.handle_event(now, event);
        }
    }

    fn handle_event(&mut self, now: Time, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Incoming { id, peer } => {
                if !self.evict_one() {
                    return self.network.close(id);
                }
                self.counters.accepted += 1;
                self.refused.remove(&peer);
                self.insert(now, id, peer, true);
            }
            ConnectionEvent::Open(id) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    (connection.is_open, connection.used) = (true, now);
                    flush(&mut self.network, now, id, connection);
                }
                self.look_at_capacity(id);
            }
            ConnectionEvent::Closed { id, fault } => self.handle_closed(now, id, fault),
        }
    }

    /// What waited for a connection that is gone is lost, and told, packet by packet.
    fn handle_closed(&mut self, now: Time, id: ConnectionId, fault: Option<Fault>) {
        let Some(Connection { peer, is_open, queue, .. }) = self.remove(id) else { return };
        if fault.is_some() || !is_open {
            self.counters.failed += 1;
        }
        let fault = fault.unwrap_or(Fault::Unreachable);
        if !is_open {
            refuse(&mut self.refused, peer, now + self.config.retry, fault);
        }
        let count: usize = queue.iter().map(Waiting::packet_count).sum();
        let count = count.max(usize::from(!is_open));
        let left = TOLD_MAX.saturating_sub(self.told.len());
        self.told.extend(std::iter::repeat_n((peer, fault), count.min(left)));
    }

    /// Sends what waits, as far as there is room.
    fn flush_all(&mut self, now: Time) {
        let has_some = |it: &Connection| it.is_open && !it.queue.is_empty();
        let waiting = self.connections.iter().filter(|(_, it)| has_some(it));
        let ids: Vec<ConnectionId> = waiting.map(|(id, _)| *id).collect();
        for id in ids {
            if let Some(connection) = self.connections.get_mut(&id) {
                flush(&mut self.network, now, id, connection);
            }
            self.look_at_capacity(id);
        }
    }

    /// Notes when a connection has become full, or is no more.
    fn look_at_capacity(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let is_full = connection.is_to_be_full(self.config.queue_bytes_max);
        if std::mem::replace(&mut connection.is_full, is_full) != is_full {
            self.capacity.insert(connection.peer, !is_full);
        }
    }

    /// What is to be told next of packets that were lost.
    fn next_told(&mut self) -> Option<RecvError> {
        let (peer, fault) = self.told.pop_front()?;
        Some(RecvError::Fault { to: Some(peer), fault })
    }

    fn close_idle(&mut self, now: Time) {
        let idle = self.config.idle;
        let is_idle = |it: &Connection| it.is_open && it.queue.is_empty() && it.used + idle <= now;
        let resting = self.connections.iter().filter(|(_, it)| is_idle(it));
        let ids: Vec<ConnectionId> = resting.map(|(id, _)| *id).collect();
        for id in ids {
            self.counters.idle_closed += 1;
            self.network.close(id);
            self.remove(id);
        }
    }

    /// Sends packets over a connection, or has them wait: the bytes that were taken.
    fn send_over(
        &mut self,
        now: Time,
        id: ConnectionId,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, SendError> {
        let segment = segment.max(1);
        let Some(connection) = self.connections.get_mut(&id) else {
            return Err(SendError::Fault(Fault::Unreachable));
        };
        connection.used = now;
        let is_free = connection.is_open && connection.queue.is_empty();
        let (mut taken, mut ends) = (0, Ok(()));
        while let Some(rest) = train.get(taken..).filter(|rest| is_free && !rest.is_empty()) {
            match self.network.send(id, rest, segment) {
                Ok(len) => taken += len,
                Err(error) => {
                    ends = Err(error);
                    break;
                }
            }
        }
        if let Err(error @ SendError::Fault(_)) = ends {
            return if taken == 0 { Err(error) } else { Ok(taken) };
        }
        let rest = train.get(taken..).unwrap_or_default();
        taken += connection.hold(rest, segment, self.config.queue_bytes_max);
        self.look_at_capacity(id);
        if taken == 0 { Err(SendError::Fault(Fault::Overrun)) } else { Ok(taken) }
    }
}

/// Sends what waits for a connection, as far as there is room.
fn flush<N: ConnectionOriented>(
    network: &mut N,
    now: Time,
    id: ConnectionId,
    connection: &mut Connection,
) {
    while let Some(waiting) = connection.queue.front_mut() {
        // A fault is followed by the event that says so.
        let Ok(len) = network.send(id, waiting.rest(), waiting.segment) else { break };
        connection.used = now;
        waiting.gone += len;
        let (packets, bytes) = connection.queued;
        connection.queued = (packets - len.div_ceil(waiting.segment), bytes - len);
        if waiting.rest().is_empty() {
            connection.queue.pop_front();
        }
    }
}

fn refuse(
    refused: &mut HashMap<SocketAddr, (Time, Fault)>,
    peer: SocketAddr,
    until: Time,
    fault: Fault,
) {
    if refused.len() < REFUSED_MAX {
        refused.insert(peer, (until, fault));
    }
}

impl<N: ConnectionOriented> Connectionless for Connected<N> {
    pass_on!(network: local, packet_len_max, carriage, address, watch);

    fn watch_capacity(&mut self, _is_wanted: bool) -> io::Result<()> {
        // Each connection has a queue, and none holds up another.
        Ok(())
    }

    fn send(
        &mut self,
        now: Time,
        to: SocketAddr,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, SendError> {
        self.handle_events(now);
        let id = self.connection_to(now, to).map_err(SendError::Fault)?;
        let sent = self.send_over(now, id, train, segment);
        if !matches!(sent, Err(SendError::Fault(_))) {
            return sent;
        }
        self.handle_events(now);
        if self.connections.contains_key(&id) {
            // It is the packet, or a full queue.
            return sent;
        }
        // The peer had closed it, which this packet found: another is made, once.
        let id = self.connection_to(now, to).map_err(SendError::Fault)?;
        self.send_over(now, id, train, segment)
    }

    fn poll_capacity(&mut self) -> Option<(SocketAddr, bool)> {
        self.capacity.pop_first()
    }

    fn recv<'a>(&'a mut self, now: Time, _into: &'a mut [u8]) -> Result<Arrival<'a>, RecvError> {
        if let Some(told) = self.next_told() {
            return Err(told);
        }
        while let Some(id) = self.network.recv() {
            // What a connection has brought that was closed here is nobody's.
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            connection.used = now;
            let Received { train, segment, gap } = self.network.received();
            return Ok(Arrival { from: connection.peer, train, segment, gap });
        }
        // Reading finds which connections are over: what waited for them is told now.
        self.handle_events(now);
        Err(self.next_told().unwrap_or(RecvError::WouldBlock))
    }

    fn join(&mut self, _group: Group) -> Result<(), JoinError> {
        Err(JoinError::Unsupported)
    }

    fn deadline(&self) -> Time {
        let resting = self.connections.values().filter(|it| it.is_open && it.queue.is_empty());
        let idle = resting.map(|it| it.used + self.config.idle).min();
        self.network.deadline().min(idle.unwrap_or(Time::NEVER))
    }

    fn handle_time(&mut self, now: Time) {
        self.network.handle_time(now);
        self.handle_events(now);
        self.flush_all(now);
        // Sending finds which connections are over.
        self.handle_events(now);
        self.close_idle(now);
    }
}
