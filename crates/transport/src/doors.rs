//! The sockets of a transport that runs a protocol of its own over UDP, as QUIC and XTP are run: a
//! listener per address, or the one of a dialer.
//!
//! Invariants: a socket that takes no more keeps one train waiting and takes no other until it has
//! gone; it is watched for room as long.

use crate::udp::{BindError, DialError, LISTEN_ADDRS_MAX, any_port, connected};
use crate::{RECV_BYTES_MAX, TransportStats};
use dacapo_sys::poll::{Event, Interest, Poller};
use dacapo_sys::udp::{self, Ecn, Recv, RecvError, Socket};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A socket.
#[derive(Debug)]
pub(crate) struct Door {
    socket: Socket,
    pub(crate) local: SocketAddr,
    /// The only address that it reaches, when it is connected.
    remote: Option<SocketAddr>,
    waiting: Option<Waiting>,
    /// It may have something to read.
    pub(crate) is_ready: bool,
}

/// Arrivals that one call reads of each socket.
pub(crate) const READS_MAX: usize = 64;

/// Reads each of so many sockets until it has nothing, or as much has come of it as one call takes;
/// true when there may be more. `read` gives the bytes that came, `None` when nothing is there.
pub(crate) fn read_each(count: usize, mut read: impl FnMut(usize) -> Option<usize>) -> bool {
    let mut more = false;
    for index in 0..count {
        let (mut reads, mut bytes) = (READS_MAX, RECV_BYTES_MAX);
        while reads > 0 && bytes > 0 {
            let Some(len) = read(index) else { break };
            reads = reads.saturating_sub(1);
            bytes = bytes.saturating_sub(len);
        }
        more |= reads == 0 || bytes == 0;
    }
    more
}

/// Where a datagram or a train goes, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) to: SocketAddr,
    /// The length in bytes of each datagram of a train, of which the last may be shorter.
    pub(crate) segment_len: Option<u16>,
    pub(crate) ecn: Option<Ecn>,
}

/// What a socket has not taken yet.
#[derive(Debug)]
struct Waiting {
    departure: Departure,
    bytes: Vec<u8>,
}

/// What a send came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It is gone, or was given up: who repairs losses repairs it, as if the network had lost it.
    Yes,
    /// The socket keeps it, and takes no other.
    Kept,
    /// Nobody listens there.
    Refused,
    /// The system takes nothing so long there, or says so of an earlier one.
    TooLong,
}

/// The sockets, and what watches them.
pub(crate) struct Doors {
    doors: Vec<Door>,
    poller: Poller,
    events: Vec<Event>,
}

impl Doors {
    fn new() -> io::Result<Self> {
        Ok(Self { doors: Vec::new(), poller: Poller::new()?, events: Vec::new() })
    }

    /// Those of a listener at every address of `addrs`, with the addresses that they have; port 0
    /// takes a free one. Errors name the protocol.
    ///
    /// # Errors
    /// `InvalidInput` without addresses or with more than [`LISTEN_ADDRS_MAX`]; else what the
    /// system says, with a text that names the address and what to do.
    pub(crate) fn listen(
        protocol: &str,
        addrs: &[SocketAddr],
        config: &udp::Config,
    ) -> io::Result<(Self, Vec<SocketAddr>)> {
        if addrs.is_empty() {
            return Err(BindError::NoAddress.of_protocol(protocol));
        }
        if addrs.len() > LISTEN_ADDRS_MAX {
            return Err(BindError::TooManyAddresses { count: addrs.len() }.of_protocol(protocol));
        }
        let (mut doors, mut local_addrs) = (Self::new()?, Vec::new());
        for &address in addrs {
            let opened = Socket::bind(address, config).and_then(|socket| doors.add(socket, None));
            let named = |error| BindError::of(address, error).of_protocol(protocol);
            local_addrs.push(opened.map_err(named)?);
        }
        Ok((doors, local_addrs))
    }

    /// The one of a dialer, with the address that it has.
    ///
    /// # Errors
    /// When there is no way to `remote` or no descriptor left; names the protocol.
    pub(crate) fn dial(
        protocol: &str,
        remote: SocketAddr,
        config: &udp::Config,
    ) -> io::Result<(Self, SocketAddr)> {
        let open = || {
            let socket = connected(any_port(remote), remote, config)?;
            let mut doors = Self::new()?;
            let local = doors.add(socket, Some(remote))?;
            Ok((doors, local))
        };
        open().map_err(|error| DialError::of_protocol(protocol, remote, error))
    }

    /// Takes a socket; returns its address here.
    fn add(&mut self, socket: Socket, remote: Option<SocketAddr>) -> io::Result<SocketAddr> {
        let local = socket.local_addr()?;
        self.poller.add(socket.as_fd(), self.doors.len() as u64, Interest::Read)?;
        self.doors.push(Door { socket, local, remote, waiting: None, is_ready: false });
        Ok(local)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    pub(crate) fn count(&self) -> usize {
        self.doors.len()
    }

    pub(crate) fn door(&mut self, index: usize) -> Option<&mut Door> {
        self.doors.get_mut(index)
    }

    /// True when the socket takes something.
    pub(crate) fn has_room(&self, index: usize) -> bool {
        self.doors.get(index).is_some_and(|door| door.waiting.is_none())
    }

    /// Asks which sockets are ready; true when one that was full has room.
    pub(crate) fn look(&mut self, stats: &mut TransportStats) -> bool {
        if self.poller.wait(Some(Duration::ZERO), &mut self.events).is_err() {
            stats.errors += 1;
        }
        let mut has_room = false;
        for event in std::mem::take(&mut self.events) {
            let index = usize::try_from(event.token).unwrap_or(usize::MAX);
            if let Some(door) = self.doors.get_mut(index) {
                door.is_ready |= event.readable;
            }
            if event.writable {
                has_room |= self.send_waiting(index, stats);
            }
        }
        has_room
    }

    /// Sends what a socket has kept; true when it is gone.
    fn send_waiting(&mut self, index: usize, stats: &mut TransportStats) -> bool {
        let Some(door) = self.doors.get_mut(index) else { return false };
        let Some(waiting) = door.waiting.take() else { return false };
        let gone = door.send_train(waiting, stats) != Gone::Kept;
        if gone {
            self.watch_write(index, false, stats);
        }
        gone
    }

    /// Sends a train; what the socket does not take now, it keeps.
    pub(crate) fn send(
        &mut self,
        index: usize,
        departure: &Departure,
        bytes: &[u8],
        stats: &mut TransportStats,
    ) -> Gone {
        let Some(door) = self.doors.get_mut(index) else { return Gone::Yes };
        let taken = match door.send_some(departure, bytes, stats) {
            Ok(taken) if taken < bytes.len() => taken,
            Ok(_) => return Gone::Yes,
            Err(gone) => return gone,
        };
        let rest = bytes.get(taken..).unwrap_or_default().to_vec();
        door.waiting = Some(Waiting { departure: *departure, bytes: rest });
        self.watch_write(index, true, stats);
        Gone::Kept
    }

    /// Watches a socket for room, or no longer.
    fn watch_write(&mut self, index: usize, on: bool, stats: &mut TransportStats) {
        let Some(door) = self.doors.get(index) else { return };
        let interest = if on { Interest::ReadWrite } else { Interest::Read };
        let watched = self.poller.modify(door.socket.as_fd(), index as u64, interest);
        stats.errors += u64::from(watched.is_err());
    }
}

impl Door {
    /// Reads what is next; `Err` when nothing is there any more.
    pub(crate) fn recv(&mut self, into: &mut [u8]) -> Result<Recv, RecvError> {
        let found = self.socket.recv(into);
        self.is_ready = !matches!(found, Err(RecvError::WouldBlock | RecvError::Other(_)));
        found
    }

    fn send_train(&mut self, mut waiting: Waiting, stats: &mut TransportStats) -> Gone {
        match self.send_some(&waiting.departure, &waiting.bytes, stats) {
            Ok(taken) if taken < waiting.bytes.len() => {
                waiting.bytes.drain(..taken);
                self.waiting = Some(waiting);
                Gone::Kept
            }
            Ok(_) => Gone::Yes,
            Err(gone) => gone,
        }
    }

    /// How many bytes the socket takes; an error when that is none, ever.
    fn send_some(
        &mut self,
        departure: &Departure,
        bytes: &[u8],
        stats: &mut TransportStats,
    ) -> Result<usize, Gone> {
        let Departure { to, segment_len, ecn } = *departure;
        let to = if self.remote.is_some() { None } else { Some(to) };
        match self.socket.send(to, bytes, segment_len, ecn) {
            Ok(sent) => Ok(sent.bytes),
            Err(udp::SendError::WouldBlock) => Ok(0),
            Err(udp::SendError::Refused) => {
                stats.refused += 1;
                Err(Gone::Refused)
            }
            Err(udp::SendError::Unreachable) => {
                stats.unreachable += 1;
                Err(Gone::Yes)
            }
            // Who probes for longer paths has asked one that is not there.
            Err(udp::SendError::MessageTooLarge) => Err(Gone::TooLong),
            // A device whose queue is full says nobody when it has room: it is as good as lost.
            Err(udp::SendError::NoBuffers | udp::SendError::Other(_)) => {
                stats.errors += 1;
                Err(Gone::Yes)
            }
        }
    }
}
