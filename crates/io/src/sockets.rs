//! [`Sockets`] of UDP for a protocol that is run over it, as QUIC and XTP are: one for each address
//! of a listener, or the one of a dialer.
//!
//! ```text
//!   look -> who is ready    read(round) -> Came, Came, … as much as one call takes of each
//!   send -> gone | kept: watched for room until it has left
//! ```
//!
//! Invariants: a socket that takes no more keeps one train waiting and takes no other until it has
//! gone; it is watched for room as long. One round reads at most [`READS_MAX`] arrivals and about
//! as many bytes as it was made for of each socket.

use crate::address::any_port;
use crate::{BindError, DialError, Watching};
use dacapo_base::Ecn;
use dacapo_sys::poll::{Event, Interest, Registry};
use dacapo_sys::udp::{Config, Recv, RecvError, SendError, Socket};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// The most addresses that are listened at together.
pub const LISTEN_ADDRS_MAX: usize = 16;

/// Arrivals that one round reads of each socket.
pub const READS_MAX: usize = 64;

/// A socket.
#[derive(Debug)]
struct Door {
    socket: Socket,
    local: SocketAddr,
    /// The only address that it reaches, when it is connected.
    remote: Option<SocketAddr>,
    waiting: Option<Waiting>,
    /// It may have something to read.
    is_ready: bool,
}

/// Where a datagram or a train goes, and how.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// To whom.
    pub to: SocketAddr,
    /// The length in bytes of each datagram of a train, of which the last may be shorter.
    pub segment_len: Option<u16>,
    /// The congestion codepoint.
    pub ecn: Ecn,
}

/// What a socket has not taken yet.
#[derive(Debug)]
struct Waiting {
    departure: Departure,
    bytes: Vec<u8>,
}

/// What a send came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// It is gone, or was given up: who repairs losses repairs it, as if the network had lost it.
    Gone,
    /// The socket keeps it, and takes no other.
    Kept,
    /// Nobody listens there.
    Refused,
    /// The system takes nothing so long there, or says so of an earlier one.
    TooLong,
}

/// What the system has said of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounts {
    /// Nobody listens.
    pub refused: u64,
    /// There is no way.
    pub unreachable: u64,
    /// Other errors.
    pub errors: u64,
}

/// What a read brought.
#[derive(Debug)]
pub enum Came {
    /// A datagram or a train, by the socket of this number, which has this address.
    Train {
        /// The number of the socket.
        at: usize,
        /// Its address.
        local: SocketAddr,
        /// From whom, and how long.
        recv: Recv,
    },
    /// Nobody listens where something was sent.
    Refused,
}

/// How far reading has come: each socket in turn.
#[derive(Debug)]
pub struct Round {
    at: usize,
    reads: usize,
    bytes: usize,
    bytes_max: usize,
    may_have_more: bool,
}

impl Round {
    /// From the first socket on; about so many bytes of each.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { at: 0, reads: READS_MAX, bytes: bytes_max, bytes_max, may_have_more: false }
    }

    /// Whether a socket had more than one round takes.
    #[must_use]
    pub fn may_have_more(&self) -> bool {
        self.may_have_more
    }

    /// Whether this socket may still be read.
    fn has_share(&self) -> bool {
        self.reads > 0 && self.bytes > 0
    }

    fn count(&mut self, len: usize) {
        self.reads = self.reads.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(len);
    }

    fn next_socket(&mut self) {
        self.may_have_more |= !self.has_share();
        (self.at, self.reads, self.bytes) = (self.at + 1, READS_MAX, self.bytes_max);
    }
}

/// The sockets, and what watches them.
#[derive(Debug)]
pub struct Sockets {
    doors: Vec<Door>,
    watching: Watching,
    events: Vec<Event>,
    counts: SocketCounts,
}

impl Sockets {
    fn new() -> io::Result<Self> {
        Ok(Self {
            doors: Vec::new(),
            watching: Watching::new()?,
            events: Vec::new(),
            counts: SocketCounts::default(),
        })
    }

    /// Those of a listener at every address of `addrs`, with the addresses that they have; port 0
    /// takes a free one. Errors name the protocol.
    ///
    /// # Errors
    /// `InvalidInput` without addresses or with more than [`LISTEN_ADDRS_MAX`]; else what the
    /// system says, with a text that names the address and what to do.
    pub fn listen(
        protocol: &str,
        addrs: &[SocketAddr],
        config: &Config,
    ) -> io::Result<(Self, Vec<SocketAddr>)> {
        BindError::check_count(addrs).map_err(|error| error.of_protocol(protocol))?;
        let (mut sockets, mut local_addrs) = (Self::new()?, Vec::new());
        for &address in addrs {
            let opened = Socket::bind(address, config).and_then(|socket| sockets.add(socket, None));
            let named = |error| BindError::of(address, error).of_protocol(protocol);
            local_addrs.push(opened.map_err(named)?);
        }
        Ok((sockets, local_addrs))
    }

    /// The one of a dialer, with the address that it has.
    ///
    /// # Errors
    /// When there is no way to `remote` or no descriptor left; names the protocol.
    pub fn dial(
        protocol: &str,
        remote: SocketAddr,
        config: &Config,
    ) -> io::Result<(Self, SocketAddr)> {
        let open = || {
            let socket = connected(remote, config)?;
            let mut sockets = Self::new()?;
            let local = sockets.add(socket, Some(remote))?;
            Ok((sockets, local))
        };
        open().map_err(|error| DialError::of_protocol(protocol, remote, error))
    }

    /// Takes a socket; returns its address here.
    fn add(&mut self, socket: Socket, remote: Option<SocketAddr>) -> io::Result<SocketAddr> {
        let local = socket.local_addr()?;
        self.watching.add(socket.as_fd(), place(self.doors.len()), Interest::Read)?;
        self.doors.push(Door { socket, local, remote, waiting: None, is_ready: false });
        Ok(local)
    }

    /// The descriptor to wait for, while nobody else looks.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.watching.fd()
    }

    /// From now on the owner of a set looks, and tells by [`Sockets::handle_ready`].
    ///
    /// # Errors
    /// What the system says when a descriptor cannot be watched.
    pub fn watch_in(&mut self, registry: Registry) -> io::Result<()> {
        self.watching.move_to(registry);
        for (at, door) in self.doors.iter().enumerate() {
            self.watching.add(door.socket.as_fd(), place(at), door.interest())?;
        }
        Ok(())
    }

    /// The owner of the set has found this.
    pub fn handle_ready(&mut self, event: Event) {
        self.watching.handle_ready(event);
    }

    /// What the system has said so far.
    #[must_use]
    pub fn counts(&self) -> SocketCounts {
        self.counts
    }

    /// The address of a socket.
    #[must_use]
    pub fn local(&self, at: usize) -> Option<SocketAddr> {
        self.doors.get(at).map(|door| door.local)
    }

    /// True when the socket takes something.
    #[must_use]
    pub fn has_capacity(&self, at: usize) -> bool {
        self.doors.get(at).is_some_and(|door| door.waiting.is_none())
    }

    /// True when every socket takes something.
    #[must_use]
    pub fn all_have_capacity(&self) -> bool {
        self.doors.iter().all(|door| door.waiting.is_none())
    }

    /// Asks which sockets are ready, and sends what they have kept.
    pub fn look(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        if self.watching.take_ready(&mut events).is_err() {
            self.counts.errors += 1;
        }
        for event in &events {
            let at = usize::try_from(event.token).unwrap_or(usize::MAX);
            if let Some(door) = self.doors.get_mut(at) {
                door.is_ready |= event.readable;
            }
            if event.writable {
                self.send_waiting(at);
            }
        }
        self.events = events;
    }

    /// Reads what is next in a round; `None` when all have nothing more, or their share.
    pub fn read(&mut self, round: &mut Round, into: &mut [u8]) -> Option<Came> {
        while let Some(door) = self.doors.get_mut(round.at) {
            if !door.is_ready || !round.has_share() {
                round.next_socket();
                continue;
            }
            let found = door.socket.recv(into);
            door.is_ready = !matches!(found, Err(RecvError::WouldBlock | RecvError::Other(_)));
            round.count(found.as_ref().map_or(0, |recv| recv.len));
            match found {
                Ok(recv) => return Some(Came::Train { at: round.at, local: door.local, recv }),
                Err(RecvError::Refused) => {
                    self.counts.refused += 1;
                    return Some(Came::Refused);
                }
                Err(RecvError::Unreachable) => self.counts.unreachable += 1,
                Err(RecvError::WouldBlock | RecvError::TooLarge) => {}
                Err(RecvError::Other(_)) => self.counts.errors += 1,
            }
        }
        None
    }

    /// Sends what a socket has kept.
    fn send_waiting(&mut self, at: usize) {
        let Some(door) = self.doors.get_mut(at) else { return };
        let Some(mut waiting) = door.waiting.take() else { return };
        match door.send(&waiting.departure, &waiting.bytes, &mut self.counts) {
            Ok(taken) if taken < waiting.bytes.len() => {
                waiting.bytes.drain(..taken);
                door.waiting = Some(waiting);
            }
            Ok(_) | Err(_) => self.watch_for_room(at),
        }
    }

    /// Sends a train; what the socket does not take now, it keeps.
    pub fn send(&mut self, at: usize, departure: &Departure, bytes: &[u8]) -> SendOutcome {
        let Some(door) = self.doors.get_mut(at) else { return SendOutcome::Gone };
        let taken = match door.send(departure, bytes, &mut self.counts) {
            Ok(taken) if taken < bytes.len() => taken,
            Ok(_) => return SendOutcome::Gone,
            Err(outcome) => return outcome,
        };
        let rest = bytes.get(taken..).unwrap_or_default().to_vec();
        door.waiting = Some(Waiting { departure: *departure, bytes: rest });
        self.watch_for_room(at);
        SendOutcome::Kept
    }

    /// Watches a socket for room while it keeps something.
    fn watch_for_room(&mut self, at: usize) {
        let Some(door) = self.doors.get(at) else { return };
        let watched = self.watching.modify(door.socket.as_fd(), place(at), door.interest());
        self.counts.errors += u64::from(watched.is_err());
    }
}

/// A socket of a client: at a free port of its own, connected.
///
/// # Errors
/// As the system says.
pub fn connected(remote: SocketAddr, config: &Config) -> io::Result<Socket> {
    let socket = Socket::bind(any_port(remote), config)?;
    socket.connect(remote)?;
    Ok(socket)
}

/// What a socket is watched by; there are at most [`LISTEN_ADDRS_MAX`].
fn place(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

impl Door {
    fn interest(&self) -> Interest {
        if self.waiting.is_some() { Interest::ReadWrite } else { Interest::Read }
    }

    /// How many bytes the socket takes; an error when that is none, ever.
    fn send(
        &mut self,
        departure: &Departure,
        bytes: &[u8],
        counts: &mut SocketCounts,
    ) -> Result<usize, SendOutcome> {
        let Departure { to, segment_len, ecn } = *departure;
        let to = if self.remote.is_some() { None } else { Some(to) };
        let (count, outcome) = match self.socket.send(to, bytes, segment_len, ecn) {
            Ok(sent) => return Ok(sent.bytes),
            Err(SendError::WouldBlock) => return Ok(0),
            // Who probes for longer paths has asked one that is not there.
            Err(SendError::MessageTooLarge) => return Err(SendOutcome::TooLong),
            Err(SendError::Refused) => (&mut counts.refused, SendOutcome::Refused),
            Err(SendError::Unreachable) => (&mut counts.unreachable, SendOutcome::Gone),
            // A device whose queue is full says nobody when it has room: it is as good as lost.
            Err(SendError::NoBuffers | SendError::Other(_)) => {
                (&mut counts.errors, SendOutcome::Gone)
            }
        };
        *count += 1;
        Err(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const BYTES_MAX: usize = 1 << 16;

    fn listener() -> (Sockets, SocketAddr) {
        let here = [(Ipv4Addr::LOCALHOST, 0).into(), (Ipv4Addr::LOCALHOST, 0).into()];
        let (sockets, addrs) = Sockets::listen("TEST", &here, &Config::default()).unwrap();
        (sockets, addrs[1])
    }

    fn departure(to: SocketAddr) -> Departure {
        Departure { to, segment_len: None, ecn: Ecn::NotEct }
    }

    #[test]
    fn what_comes_is_told_with_its_socket_and_a_round_ends() {
        let (mut sockets, to) = listener();
        let (mut dialer, from) = Sockets::dial("TEST", to, &Config::default()).unwrap();
        let mut buffer = [0; 100];
        for text in [b"one", b"two"] {
            assert_eq!(dialer.send(0, &departure(to), text), SendOutcome::Gone);
        }
        sockets.look();
        let mut round = Round::new(BYTES_MAX);
        for text in [b"one", b"two"] {
            let came = sockets.read(&mut round, &mut buffer);
            let Some(Came::Train { at: 1, local, recv }) = came else { panic!("{came:?}") };
            assert_eq!((local, recv.from, &buffer[..recv.len]), (to, from, &text[..]));
        }
        assert!(sockets.read(&mut round, &mut buffer).is_none());
        assert!(!round.may_have_more());
        assert_eq!(sockets.counts(), SocketCounts::default());
    }

    #[test]
    fn a_round_takes_its_share_of_each_socket() {
        let (mut sockets, to) = listener();
        let (mut dialer, _) = Sockets::dial("TEST", to, &Config::default()).unwrap();
        for _ in 0..4 {
            dialer.send(0, &departure(to), &[7; 40]);
        }
        sockets.look();
        let mut round = Round::new(80);
        let mut buffer = [0; 100];
        let count = std::iter::from_fn(|| sockets.read(&mut round, &mut buffer)).count();
        assert_eq!((count, round.may_have_more()), (2, true));
        // It is ready on, without another look.
        let mut round = Round::new(BYTES_MAX);
        let count = std::iter::from_fn(|| sockets.read(&mut round, &mut buffer)).count();
        assert_eq!((count, round.may_have_more()), (2, false));
    }

    #[test]
    fn a_socket_is_watched_in_the_set_of_who_takes_it_in() {
        use dacapo_sys::poll::Poller;
        let (mut sockets, to) = listener();
        let (mut dialer, _) = Sockets::dial("TEST", to, &Config::default()).unwrap();
        let mut poller = Poller::new().unwrap();
        sockets.watch_in(poller.registry(5)).unwrap();
        assert!(sockets.fd().is_none());
        dialer.send(0, &departure(to), b"hello");
        let mut events = Vec::new();
        poller.wait(Some(std::time::Duration::ZERO), &mut events).unwrap();
        assert_eq!(events.len(), 1);
        sockets.handle_ready(events[0]);
        sockets.look();
        let came = sockets.read(&mut Round::new(BYTES_MAX), &mut [0; 100]);
        assert!(matches!(came, Some(Came::Train { at: 1, .. })), "{came:?}");
    }

    #[test]
    fn without_an_address_or_with_too_many_nothing_listens() {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        for addrs in [vec![], vec![here; LISTEN_ADDRS_MAX + 1]] {
            let error = Sockets::listen("TEST", &addrs, &Config::default()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().starts_with("TEST: "), "{error}");
        }
    }
}
