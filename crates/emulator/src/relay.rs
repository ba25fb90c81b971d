//! [`Relay`]: a UDP relay that treats datagrams as a bad network would.
//!
//! ```text
//!   client ── listen ── forward ── socket of this client, connected ── server
//!   client ── listen ─── back ──── socket of this client, connected ── server
//! ```
//!
//! That nobody listens at the server's address shows to a client as silence.
//!
//! Policy. Every source address is a client and gets a socket of its own, so the server sees as
//! many addresses as there are, and its answers find their way. There are at most
//! [`RelayConfig::clients_max`]; datagrams of further ones are dropped and counted as refused. A
//! client that was silent for [`RelayConfig::idle_max`] is forgotten, and is a new one when it
//! speaks again. All clients share both links, as they would share a bottleneck.
//!
//! Invariants: a datagram leaves as long as it came, with its congestion mark or the one that its
//! link has set, and with DF set; a turn reads each socket at most [`READS_MAX`] times.

use crate::clients::{Client, Clients};
use crate::path::{Path, PathStats, Way};
use crate::runner::{Ends, Runner};
use crate::train::{Target, Train};
use dacapo_base::{Random, Time};
use dacapo_link::{Carry, ConfigError, Corruption, Delivery, Ecn, LinkConfig};
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::udp::{Config, Recv, RecvError, Socket};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

/// Reads of a socket in a turn.
const READS_MAX: usize = 32;
/// The token of the listening socket; clients have those above.
const LISTEN: u64 = 0;
/// How often idle clients are looked for, at most.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// The longest that one call receives.
const BUFFER_LEN: usize = 65_536;

/// What a relay does.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Where clients find it; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where the server is.
    pub to: SocketAddr,
    /// The link from the clients to the server.
    pub forward: LinkConfig,
    /// The link from the server to the clients.
    pub back: LinkConfig,
    /// What both links draw their chances from ([`crate::directions`]).
    pub seed: u64,
    /// Clients at a time, at most.
    pub clients_max: usize,
    /// A client that was silent for so long is forgotten.
    pub idle_max: Duration,
}

impl RelayConfig {
    /// A relay that changes nothing: perfect links, 256 clients, forgotten after 5 minutes.
    #[must_use]
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            listen,
            to,
            forward: LinkConfig::default(),
            back: LinkConfig::default(),
            seed: 1,
            clients_max: 256,
            idle_max: Duration::from_secs(300),
        }
    }
}

/// Where relays come from.
#[derive(Debug)]
pub struct Relay;

impl Relay {
    /// Starts a relay, in a thread of its own. The times of partitions count from now on.
    ///
    /// # Errors
    /// `InvalidInput` with what is wrong with a link; `AddrInUse` and others when it cannot listen.
    pub fn spawn(config: RelayConfig) -> io::Result<RelayHandle> {
        let invalid = |error: ConfigError| io::Error::new(io::ErrorKind::InvalidInput, error);
        let path = Path::new(config.forward, config.back, config.seed).map_err(invalid)?;
        let listen = Socket::bind(config.listen, &Config::default())?;
        let local_addr = listen.local_addr()?;
        let poller = Poller::new()?;
        poller.add(listen.as_fd(), LISTEN, Interest::Read)?;
        let ends = Sockets {
            poller,
            listen,
            listen_drops: 0,
            to: config.to,
            clients: Clients::new(LISTEN + 1, config.clients_max, config.idle_max),
            sweep: None,
            sweep_every: SWEEP_EVERY.min(config.idle_max),
            train: Train::default(),
            buffer: vec![0; BUFFER_LEN],
        };
        Ok(RelayHandle { local_addr, runner: Runner::spawn("link relay", path, ends)? })
    }
}

/// A relay that runs; it ends with this value.
pub struct RelayHandle {
    local_addr: SocketAddr,
    runner: Runner<Parcel>,
}

impl RelayHandle {
    /// Where clients find it.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Changes a link from now on; what is on the way keeps its fate.
    ///
    /// # Errors
    /// When the configuration is not valid; the link then goes on as before.
    pub fn set_link(&self, way: Way, config: LinkConfig) -> Result<(), ConfigError> {
        self.runner.set_link(way, config)
    }

    /// Cuts a link (`true`) or heals it; what is on the way still arrives.
    pub fn partition(&self, way: Way, is_cut: bool) {
        self.runner.partition(way, is_cut);
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> PathStats {
        self.runner.stats()
    }

    /// Ends it; what is on the way stays there and is counted as in flight.
    #[must_use]
    pub fn stop(mut self) -> PathStats {
        self.runner.stop()
    }
}

impl std::fmt::Debug for RelayHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayHandle").field("local_addr", &self.local_addr).finish_non_exhaustive()
    }
}

/// A datagram on a link of a relay: the same to the link as its bytes.
struct Parcel {
    token: u64,
    /// Nothing where it is not ECN-capable.
    ecn: Ecn,
    bytes: Vec<u8>,
}

impl Carry for Parcel {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn corrupt(&mut self, random: &mut Random, kind: Corruption) {
        self.bytes.corrupt(random, kind);
    }

    fn duplicate(&self) -> Self {
        Self { bytes: self.bytes.clone(), ..*self }
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
}

/// The sockets of a relay.
struct Sockets {
    poller: Poller,
    listen: Socket,
    listen_drops: u64,
    to: SocketAddr,
    clients: Clients,
    /// When idle clients are looked for; never while there are none.
    sweep: Option<Time>,
    sweep_every: Duration,
    train: Train,
    buffer: Vec<u8>,
}

impl Sockets {
    fn read_clients(&mut self, now: Time, path: &mut Path<Parcel>) {
        for _ in 0..READS_MAX {
            match self.listen.recv(&mut self.buffer) {
                Ok(recv) => {
                    note_drops(&recv, &mut self.listen_drops, &mut path.counts);
                    let datagrams = count_of(&recv);
                    match self.client_of(now, recv.from, &mut path.counts) {
                        Some(token) => self.enter(now, Way::Forward, token, &recv, path),
                        None => path.counts.refused += datagrams,
                    }
                }
                // What comes back for datagrams to clients that are gone; others may wait behind.
                Err(RecvError::Refused | RecvError::Unreachable | RecvError::TooLarge) => {}
                Err(RecvError::WouldBlock | RecvError::Other(_)) => return,
            }
        }
    }

    fn read_server(&mut self, now: Time, token: u64, path: &mut Path<Parcel>) {
        for _ in 0..READS_MAX {
            let Some(client) = self.clients.get_mut(token) else { return };
            match client.upstream.recv(&mut self.buffer) {
                Ok(recv) => {
                    client.heard = now;
                    note_drops(&recv, &mut client.kernel_drops, &mut path.counts);
                    self.enter(now, Way::Back, token, &recv, path);
                }
                Err(RecvError::Refused | RecvError::Unreachable | RecvError::TooLarge) => {}
                Err(RecvError::WouldBlock | RecvError::Other(_)) => return,
            }
        }
    }

    /// Puts what was read onto a link, each datagram for itself.
    fn enter(&self, now: Time, way: Way, token: u64, recv: &Recv, path: &mut Path<Parcel>) {
        let bytes = self.buffer.get(..recv.len).unwrap_or_default();
        let parcel = |bytes: &[u8]| Parcel { token, ecn: recv.ecn, bytes: bytes.to_vec() };
        match recv.segment_size.map(usize::from).filter(|len| *len > 0) {
            Some(len) if !bytes.is_empty() => {
                bytes.chunks(len).for_each(|bytes| path.handle_send(now, way, parcel(bytes)));
            }
            _ => path.handle_send(now, way, parcel(bytes)),
        }
    }

    /// The token of a source address, which is a client from now on if there is room.
    fn client_of(&mut self, now: Time, addr: SocketAddr, counts: &mut PathStats) -> Option<u64> {
        if let Some(token) = self.clients.token_of(addr) {
            self.clients.get_mut(token)?.heard = now;
            return Some(token);
        }
        if !self.clients.has_capacity() {
            self.forget_idle(now, counts);
        }
        if !self.clients.has_capacity() {
            return None;
        }
        let any: SocketAddr = match self.to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let upstream = Socket::bind(any, &Config::default()).ok()?;
        upstream.connect(self.to).ok()?;
        let token = self.clients.next_token();
        self.poller.add(upstream.as_fd(), token, Interest::Read).ok()?;
        self.clients.insert(addr, upstream, now);
        self.sweep.get_or_insert(now + self.sweep_every);
        counts.clients = self.clients.len();
        Some(token)
    }

    fn forget_idle(&mut self, now: Time, counts: &mut PathStats) {
        while let Some(client) = self.clients.take_idle(now) {
            count_last_drops(&client.upstream, client.kernel_drops, counts);
            // Closing the descriptor would take it out of the poller, too.
            let _ = self.poller.remove(client.upstream.as_fd());
        }
        counts.clients = self.clients.len();
    }
}

impl Ends<Parcel> for Sockets {
    fn poller(&mut self) -> &mut Poller {
        &mut self.poller
    }

    fn handle_ready(&mut self, now: Time, token: u64, path: &mut Path<Parcel>) -> io::Result<()> {
        match token {
            LISTEN => self.read_clients(now, path),
            token => self.read_server(now, token, path),
        }
        Ok(())
    }

    fn send(&mut self, now: Time, way: Way, delivery: Delivery<Parcel>, counts: &mut PathStats) {
        let Parcel { token, ecn, bytes } = delivery.item;
        let is_back = way == Way::Back;
        if let Some(client) = self.clients.get_mut(token) {
            client.heard = now;
        }
        let target = Target { token, is_back, ecn };
        if !self.train.push(target, &bytes) {
            self.flush(counts);
            self.train.push(target, &bytes);
        }
    }

    fn flush(&mut self, counts: &mut PathStats) {
        let Some(target) = self.train.target() else { return };
        let Some(Client { addr, upstream, .. }) = self.clients.get_mut(target.token) else {
            counts.unsent += self.train.count() as u64;
            return self.train.clear();
        };
        counts.unsent += match target.is_back {
            true => self.train.send(&mut self.listen, Some(*addr)),
            false => self.train.send(upstream, None),
        };
    }

    fn next_deadline(&self) -> Option<Time> {
        self.sweep
    }

    fn handle_timeout(&mut self, now: Time, counts: &mut PathStats) {
        self.forget_idle(now, counts);
        self.sweep = (self.clients.len() > 0).then_some(now + self.sweep_every);
    }

    fn close(&mut self, counts: &mut PathStats) {
        count_last_drops(&self.listen, self.listen_drops, counts);
        for client in self.clients.iter() {
            count_last_drops(&client.upstream, client.kernel_drops, counts);
        }
    }
}

fn count_of(recv: &Recv) -> u64 {
    let segment = recv.segment_size.map_or(recv.len, usize::from).max(1);
    recv.len.div_ceil(segment).max(1) as u64
}

/// Counts what the kernel has dropped since the last arrival.
fn note_drops(recv: &Recv, before: &mut u64, counts: &mut PathStats) {
    let now = recv.overflow_count.map_or(*before, u64::from).max(*before);
    counts.kernel_drops += now - *before;
    *before = now;
}

fn count_last_drops(socket: &Socket, before: u64, counts: &mut PathStats) {
    let now = socket.drops().map_or(before, u64::from);
    counts.kernel_drops += now.saturating_sub(before);
}
