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
//! What it is not: reliable; packets that wait for a connection that fails are lost, and said of.
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

    /// Sends a packet.
    ///
    /// # Errors
    /// [`SendError::WouldBlock`] when there is no room now; [`SendError::Fault`] when the
    /// connection is gone.
    fn send(&mut self, id: ConnectionId, packet: &[u8]) -> Result<(), SendError>;

    /// The next packet: its length in `into`, which has room for any with 65,536 bytes.
    fn recv(&mut self, into: &mut [u8]) -> Option<(ConnectionId, usize)>;

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

#[derive(Debug)]
struct Connection {
    peer: SocketAddr,
    is_open: bool,
    used: Time,
    queue: VecDeque<Vec<u8>>,
    queued: usize,
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
        if !self.make_room() {
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
        let (queue, queued) = (VecDeque::new(), 0);
        self.connections.insert(id, Connection { peer, is_open, used: now, queue, queued });
        self.by_peer.entry(peer).or_insert(id);
    }

    /// Whether there is room for one more, after the one went that was used least recently; one
    /// for which packets wait stays.
    fn make_room(&mut self) -> bool {
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
                if !self.make_room() {
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
        let count = queue.len().max(usize::from(!is_open));
        let room = TOLD_MAX.saturating_sub(self.told.len());
        self.told.extend(std::iter::repeat_n((peer, fault), count.min(room)));
    }

    /// Sends what waits, as far as there is room.
    fn flush_all(&mut self, now: Time) {
        let waiting = self.connections.iter_mut().filter(|(_, it)| it.is_open);
        waiting.for_each(|(id, it)| flush(&mut self.network, now, *id, it));
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
        let mut taken = 0;
        for packet in train.chunks(segment.max(1)) {
            match self.send_one(now, id, packet) {
                Ok(()) => taken += packet.len(),
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(taken)
    }

    /// Sends a packet over a connection, or has it wait.
    fn send_one(&mut self, now: Time, id: ConnectionId, packet: &[u8]) -> Result<(), SendError> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Err(SendError::Fault(Fault::Unreachable));
        };
        connection.used = now;
        if connection.is_open && connection.queue.is_empty() {
            match self.network.send(id, packet) {
                Ok(()) => return Ok(()),
                Err(SendError::Fault(fault)) => return Err(SendError::Fault(fault)),
                Err(_) => {}
            }
        }
        let is_full = connection.queued + packet.len() > self.config.queue_bytes_max
            || connection.queue.len() >= QUEUE_PACKETS_MAX;
        if is_full {
            return Err(SendError::Fault(Fault::Overrun));
        }
        connection.queued += packet.len();
        connection.queue.push_back(packet.to_vec());
        Ok(())
    }
}

/// Sends what waits for a connection, as far as there is room.
fn flush<N: ConnectionOriented>(
    network: &mut N,
    now: Time,
    id: ConnectionId,
    connection: &mut Connection,
) {
    while let Some(packet) = connection.queue.front() {
        // A fault is followed by the event that says so.
        if network.send(id, packet).is_err() {
            break;
        }
        connection.used = now;
        connection.queued -= packet.len();
        connection.queue.pop_front();
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

    fn watch_room(&mut self, _is_wanted: bool) -> io::Result<()> {
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

    fn recv<'a>(&'a mut self, now: Time, into: &'a mut [u8]) -> Result<Arrival<'a>, RecvError> {
        if let Some(told) = self.next_told() {
            return Err(told);
        }
        while let Some((id, len)) = self.network.recv(into) {
            // What a connection has brought that was closed here is nobody's.
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            connection.used = now;
            let train = into.get(..len).unwrap_or_default();
            return Ok(Arrival { from: connection.peer, train, segment: len });
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
