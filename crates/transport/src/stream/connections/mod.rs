//! [`Connections`]: a transport of streams whose connections are descriptors, around one epoll.
//!
//! What kernel TCP and shared memory have in common: listeners that are accepted from, connections
//! that are watched, and the table of streams that reads and writes them. A T-module says what
//! listens ([`Listener`]), what carries the bytes ([`Connection`]), and how both are made.
//!
//! The simulated stream has no descriptors and does without.
//!
//! ```text
//!   Listener  --accept-->  Connection --+
//!   Listener  --accept-->  Connection --+-- one epoll: fd()
//!   dialed  ----------->  Connection --+
//! ```
//!
//! Both lanes are the one stream to a remote. The streams share no buffer: one that takes no more
//! holds no other up.
//!
//! Invariants
//! - Nothing blocks; a connect that fails later is a [`StreamEvent::Closed`] with its reason.
//! - The end of the other side's writing is the end of the stream, after everything before it was
//!   handed up. A stream closed here first writes what was sent, says so, and waits for the other
//!   end before it lets go, so that nothing overtakes its last bytes.
//! - Without descriptors the listener gives up the oldest connection that has said nothing, or
//!   pauses; it never spins.
//!
//! Source: design D7; docs/protocol.md, "Streams".

mod accepting;
mod recv;

use super::table::Connection;
use super::{Ending, RECORD_LEN_MAX, StreamTransport, Streams, Token};
use crate::{Incoming, Outgoing, RecvOutcome, SendError, Sent, Transport, pass_on};
use accepting::Accepting;
use dacapo_base::{Address, Time};
use dacapo_lift::TransportSpec;
use dacapo_packet::Pool;
use dacapo_sys::poll::{Event, Poller};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// What listens for connections.
pub trait Listener: AsFd + Send {
    /// What is accepted.
    type Connection: Connection + AsFd + Send;

    /// The transport.
    const SPEC: &'static TransportSpec;

    /// The poller tells when a connection has room. Otherwise the other end makes it readable, and
    /// [`Connection::has_capacity`] tells.
    const ROOM_IS_POLLED: bool;

    /// The next connection and the address of its other end; `None` when none waits.
    ///
    /// # Errors
    /// When there is no descriptor or memory left. The connection waits on.
    fn accept(&self) -> io::Result<Option<(Self::Connection, Address)>>;
}

/// A transport of streams over descriptors.
#[derive(Debug)]
pub struct Connections<L: Listener> {
    local_addrs: Vec<Address>,
    listeners: Vec<Accepting<L>>,
    streams: Streams<L::Connection>,
    /// Streams that want to write, where the poller does not tell when they have room.
    full: BTreeSet<usize>,
    poller: Poller,
    events: Vec<Event>,
}

impl<L: Listener> Connections<L> {
    /// Neither listeners nor streams; at most `streams_max` of them later.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new(streams_max: usize) -> io::Result<Self> {
        Ok(Self {
            local_addrs: Vec::new(),
            listeners: Vec::new(),
            streams: Streams::new(streams_max),
            full: BTreeSet::new(),
            poller: Poller::new()?,
            events: Vec::new(),
        })
    }

    /// Tells that a connection could not even be begun.
    pub fn not_dialed(&mut self, remote: Address, token: Token, ending: &Ending) {
        self.streams.not_dialed(remote, token, ending);
    }
}

impl<L: Listener> Transport for Connections<L> {
    pass_on!(streams: open_data, stats);

    fn spec(&self) -> &'static TransportSpec {
        L::SPEC
    }

    fn datagram_len_max(&self) -> usize {
        RECORD_LEN_MAX
    }

    fn local_addrs(&self) -> &[Address] {
        &self.local_addrs
    }

    fn close_data(&mut self, _remote: Address) {}

    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let result = self.streams.send(outgoing);
        self.settle_watches();
        result
    }

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        self.recv_from_streams(now, pool, into)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.as_fd())
    }
}

impl<L: Listener> StreamTransport for Connections<L> {
    pass_on!(streams: expect, forget, poll_stream, set_patience, estimates, stream_count);

    fn send_split(&mut self, remote: Address, head: &[u8], body: &[u8]) -> Result<Sent, SendError> {
        let result = self.streams.send_split(remote, head, body);
        self.settle_watches();
        result
    }

    fn set_reading(&mut self, remote: Address, is_reading: bool) {
        self.streams.set_reading(remote, is_reading);
        self.settle_watches();
    }

    fn close_stream(&mut self, remote: Address) {
        self.streams.close_stream(remote);
        self.settle_watches();
    }

    fn next_deadline(&self) -> Option<Time> {
        let pauses = self.listeners.iter().filter_map(Accepting::paused_until);
        pauses.chain(self.streams.next_deadline()).min()
    }

    fn release(&mut self, pool: &mut Pool) {
        self.streams.release(pool);
        self.full.clear();
    }
}
