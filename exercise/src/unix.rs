//! T-module `toy-unix`: datagrams over Unix sockets, whose addresses are names and none of IP.
//!
//! ```text
//!   listen   toy-unix:movie          the abstract name "dacapo-toy/movie"
//!   dial     toy-unix:4711-1         a name of its own, so that it can be answered
//! ```
//!
//! A host that has it is reached at `dacapo+toy-unix://movie/SESSION`: control and flows go by the
//! one socket. A toy: between processes of one host; `shm` is for use.
//!
//! Invariant: what was taken arrives, in order; when the other end's queue is full, nothing is
//! taken.

use dacapo::{Address, Time};
use dacapo_lift::{Cost, Figures, Property, Setting, TransportProfile, TransportSpec};
use dacapo_packet::Pool;
use dacapo_transport::entry::{ControlCarrier, Opened, TransportEntry};
use dacapo_transport::{
    Incoming, Outgoing, RECV_PACKETS_MAX, RecvOutcome, SendError, Sent, TrafficClass, Transport,
    TransportStats,
};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU32, Ordering};

/// The scheme of its addresses.
pub const SCHEME: &str = "toy-unix";

/// The longest datagram in bytes; a socket's buffer has room for several.
const DATAGRAM_LEN_MAX: usize = 16_384;

/// What the catalogue is told: name, number, what it gives to a graph.
pub static SPEC: TransportSpec = TransportSpec {
    name: "toy-unix",
    id: 0xF0E9,
    summary: "datagrams over Unix sockets, between two ends of one host; a toy",
    scheme: SCHEME,
    properties: &[
        Property::Boundaries,
        Property::Order,
        Property::NoDuplicates,
        Property::NoLoss,
        Property::Integrity,
    ],
    datagram_len: DATAGRAM_LEN_MAX as u32,
    any_path: true,
    lanes: false,
    streams: false,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: None,
    profile: &Local,
};

/// The catalogue's entry, for [`dacapo::Builder::transport`].
pub fn entry() -> TransportEntry {
    TransportEntry::new(&SPEC, |_| Ok(Opened::Control(Box::new(Carrier))))
}

#[derive(Debug)]
struct Local;

impl TransportProfile for Local {
    fn figures(&self, setting: &Setting) -> Figures {
        let bound_bps = if setting.bound_bps == 0 { u64::MAX } else { setting.bound_bps };
        Figures {
            loss_ppb: 0,
            loss_runs_ppb: 0,
            delay_ns: 100_000,
            jitter_ns: 100_000,
            rate_bps: bound_bps.min(2_000_000_000),
        }
    }

    fn cost(&self) -> Cost {
        Cost { train_ps: 8_000_000, packet_ps: 3_000_000, byte_ps: 400, wire_milli: 1_000 }
    }
}

struct Carrier;

impl ControlCarrier for Carrier {
    fn listen(&mut self, at: &[Address]) -> io::Result<Vec<Box<dyn Transport>>> {
        at.iter().map(|at| Ok(Box::new(Unix::listen(*at)?) as Box<dyn Transport>)).collect()
    }

    fn dial(&mut self, remote: Address) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(Unix::dial(remote)?))
    }
}

/// A socket that has a name.
pub struct Unix {
    socket: UnixDatagram,
    local: [Address; 1],
    /// The one that is dialed; nobody else is heard then.
    remote: Option<Address>,
    /// Something was not taken since it was last said that there is room.
    is_blocked: bool,
    stats: TransportStats,
}

impl Unix {
    /// Listens at an address.
    ///
    /// # Errors
    /// `AddrInUse` when somebody does already.
    pub fn listen(at: Address) -> io::Result<Self> {
        let named = |error: io::Error| match error.kind() {
            ErrorKind::AddrInUse => {
                let text = format!("{at} is in use: stop who listens there, or take another name");
                io::Error::new(ErrorKind::AddrInUse, text)
            }
            _ => error,
        };
        Self::bound(at, None).map_err(named)
    }

    /// Makes the near end of a path to an address.
    ///
    /// # Errors
    /// When no name or socket can be had.
    pub fn dial(remote: Address) -> io::Result<Self> {
        static DIALED: AtomicU32 = AtomicU32::new(0);
        let number = DIALED.fetch_add(1, Ordering::Relaxed);
        let own = format!("{}-{number}", std::process::id());
        let local = Address::other(SCHEME, own.as_bytes());
        Self::bound(local.map_err(io::Error::other)?, Some(remote))
    }

    fn bound(local: Address, remote: Option<Address>) -> io::Result<Self> {
        let socket = UnixDatagram::bind_addr(&name(local)?)?;
        socket.set_nonblocking(true)?;
        let (local, stats) = ([local], TransportStats::default());
        Ok(Self { socket, local, remote, is_blocked: false, stats })
    }

    /// Who has sent a datagram, where that is one whom this end hears.
    fn heard(&self, from: &SocketAddr) -> Option<Address> {
        let bytes = from.as_abstract_name()?.strip_prefix(PREFIX)?;
        let from = Address::other(SCHEME, bytes).ok()?;
        (self.remote.is_none() || self.remote == Some(from)).then_some(from)
    }
}

/// What the names of all toys begin with.
const PREFIX: &[u8] = b"dacapo-toy/";

fn name(address: Address) -> io::Result<SocketAddr> {
    let foreign = || io::Error::new(ErrorKind::InvalidInput, format!("{address}: not {SCHEME}"));
    let bytes = address.bytes_of(SCHEME).ok_or_else(foreign)?;
    SocketAddr::from_abstract_name([PREFIX, bytes].concat())
}

impl Transport for Unix {
    fn spec(&self) -> &'static TransportSpec {
        &SPEC
    }

    fn local_addrs(&self) -> &[Address] {
        &self.local
    }

    /// Control and data go by one socket; whether anybody is there it finds out.
    fn open_data(&mut self, remote: Address) -> io::Result<Address> {
        let is_there = name(remote).and_then(|at| UnixDatagram::unbound()?.connect_addr(&at));
        let nobody = |_| io::Error::new(ErrorKind::NotConnected, format!("nobody is at {remote}"));
        is_there.map_err(nobody)?;
        Ok(self.local[0])
    }

    fn close_data(&mut self, _: Address) {}

    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let len = outgoing.datagram_len();
        if len > DATAGRAM_LEN_MAX {
            self.stats.too_large += 1;
            return Err(SendError::TooLarge { mtu: Some(DATAGRAM_LEN_MAX) });
        }
        let to = name(outgoing.remote).map_err(|_| SendError::Unreachable)?;
        let mut taken = 0;
        for datagram in 0..outgoing.datagram_count() {
            let from = datagram * len;
            let bytes = &outgoing.bytes[from..outgoing.bytes.len().min(from + len)];
            match self.socket.send_to_addr(bytes, &to) {
                Ok(_) => taken += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) if taken > 0 => break,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    self.stats.refused += 1;
                    return Err(SendError::Refused);
                }
                Err(error) => {
                    self.stats.errors += 1;
                    return Err(SendError::Other(error));
                }
            }
        }
        let sent = self.stats.count_front(outgoing, taken);
        self.is_blocked |= sent != Sent::All;
        Ok(sent)
    }

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        // Nobody tells when another's queue has room: who was blocked tries again.
        let writable = std::mem::take(&mut self.is_blocked);
        let mut outcome = RecvOutcome { writable, ..RecvOutcome::default() };
        for _ in 0..RECV_PACKETS_MAX {
            let Ok(mut arrival) = pool.alloc_arrival() else {
                self.stats.pool_full += 1;
                return RecvOutcome { blocked: true, ..outcome };
            };
            let bytes = pool.segment_mut(&mut arrival, 0).unwrap_or_default();
            let Ok((len, from)) = self.socket.recv_from(bytes) else {
                pool.free(arrival);
                return outcome;
            };
            let mut packet = pool.cut(&mut arrival, len, len);
            pool.free(arrival);
            packet.set_unit_ends(true, true);
            packet.time = now;
            let Some(remote) = self.heard(&from) else {
                self.stats.drops.foreign += 1;
                pool.free(packet);
                continue;
            };
            self.stats.received.count(1, len);
            (outcome.packet_count, outcome.bytes) = (outcome.packet_count + 1, outcome.bytes + len);
            into.push(Incoming { lane: TrafficClass::Data, remote, packet });
        }
        RecvOutcome { more: true, ..outcome }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn stats(&self) -> TransportStats {
        self.stats
    }
}
