//! [`Tcp`]: datagrams over the kernel's TCP, a stream per flow.
//!
//! What it is: sockets and one epoll around the engine of [`crate::stream`]. A server listens at
//! its addresses and takes the streams whose tokens it expects; a dialed transport has the one
//! stream that it was made for.
//!
//! What it is not: a pool of connections, or TLS: what must be secret or whole is sealed by the
//! modules above. A 16-bit checksum is no integrity.
//!
//! ```text
//!   serve                                              dial(remote, token)
//!   :19980  listener  <---- connect, preface + token ----  :41001
//!   :19980 = a:41001  <======== records ================>  :41001
//!   :19980 = b:52002  <======== records ======== another dialer
//!      |  one epoll: fd()
//! ```
//!
//! Both lanes are the one stream to a remote. The streams share no buffer: one that takes no more
//! holds no other up.
//!
//! Invariants
//! - Nothing blocks; a connect that fails later is a [`crate::StreamEvent::Closed`] with its
//!   reason.
//! - The end of the other side's writing is the end of the stream, after everything before it was
//!   handed up. A stream closed here first writes what was sent, says so (FIN), and waits for the
//!   other end before it lets go, so that no reset overtakes its last bytes.
//! - Without descriptors the listener gives up the oldest connection that has said nothing, or
//!   pauses; it never spins.
//!
//! Source: RFC 9293; design D7; docs/protocol.md, "Streams".

mod config;
mod recv;
mod send;
pub(crate) mod spec;
mod streams;

pub use config::Config;
pub use spec::SPEC;

use crate::stream::Token;
use crate::stream::{Connection, Ending, RECORD_LEN_MAX, StreamEvent, StreamTransport, Streams};
use crate::udp::{BindError, DialError, LISTEN_ADDRS_MAX};
use crate::{Capabilities, Incoming, Outgoing, RecvOutcome, SendError, Sent};
use crate::{Transport, TransportStats};
use dacapo_base::Time;
use dacapo_packet::Pool;
use dacapo_sys::poll::{Event, Poller};
use dacapo_sys::tcp::{Listener, Stream};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use streams::Door;

/// How errors name it.
const NAME: &str = "TCP";

const CAPABILITIES: Capabilities = Capabilities {
    name: "tcp",
    lanes: false,
    datagram_len_max: RECORD_LEN_MAX,
    reliable: true,
    ordered: true,
    boundaries: true,
    duplicates: false,
    integrity: false,
    multicast: false,
    trains: true,
};

/// A TCP transport.
#[derive(Debug)]
pub struct Tcp {
    local_addrs: Vec<SocketAddr>,
    doors: Vec<Door>,
    streams: Streams<Stream>,
    poller: Poller,
    events: Vec<Event>,
}

impl Tcp {
    /// Listens at every address of `addrs`; port 0 takes a free port.
    ///
    /// # Errors
    /// `InvalidInput` without addresses or with more than [`LISTEN_ADDRS_MAX`]; else what the
    /// system says, with a text that names the address and what to do.
    pub fn serve(addrs: &[SocketAddr], config: &Config) -> io::Result<Self> {
        if addrs.is_empty() {
            return Err(BindError::NoAddress.of_protocol(NAME));
        }
        if addrs.len() > LISTEN_ADDRS_MAX {
            return Err(BindError::TooManyAddresses { count: addrs.len() }.of_protocol(NAME));
        }
        let mut tcp = Self::new(config)?;
        for &address in addrs {
            let bound = Listener::bind(address, &config.socket());
            let opened = bound.and_then(|listener| tcp.open_door(listener));
            opened.map_err(|error| BindError::of(address, error).of_protocol(NAME))?;
        }
        Ok(tcp)
    }

    /// Begins to open a stream to `remote` with `token`; [`StreamTransport::poll_stream`] tells
    /// when it is open, or why it is not.
    ///
    /// # Errors
    /// When there is no way to `remote` or no descriptor left.
    pub fn dial(remote: SocketAddr, token: Token, config: &Config) -> io::Result<Self> {
        let mut tcp = Self::new(config)?;
        match Stream::connect(remote, &config.socket()) {
            Ok(stream) => tcp.add_dialed(stream, remote, token)?,
            Err(error) => match Ending::of(error) {
                // On one host the answer may be there at once.
                ending @ (Ending::Refused | Ending::Reset | Ending::TimedOut) => {
                    tcp.streams.not_dialed(remote, token, &ending);
                }
                Ending::Unreachable => {
                    let error = io::ErrorKind::HostUnreachable.into();
                    return Err(DialError::of_protocol(NAME, remote, error));
                }
                Ending::Other(error) => return Err(DialError::of_protocol(NAME, remote, error)),
                ending => return Err(io::Error::other(ending.to_string())),
            },
        }
        Ok(tcp)
    }

    fn new(config: &Config) -> io::Result<Self> {
        Ok(Self {
            local_addrs: Vec::new(),
            doors: Vec::new(),
            streams: Streams::new(config.streams_max),
            poller: Poller::new()?,
            events: Vec::new(),
        })
    }
}

impl Transport for Tcp {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn local_addrs(&self) -> &[SocketAddr] {
        &self.local_addrs
    }

    fn open_data(&mut self, remote: SocketAddr) -> io::Result<SocketAddr> {
        self.streams.open_data(remote)
    }

    fn close_data(&mut self, _remote: SocketAddr) {}

    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        self.send_to_stream(outgoing)
    }

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        self.recv_from_streams(now, pool, into)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.as_fd())
    }

    fn stats(&self) -> TransportStats {
        self.streams.stats
    }
}

impl StreamTransport for Tcp {
    fn expect(&mut self, token: Token, until: Time) {
        self.streams.expect(token, until);
    }

    fn forget(&mut self, token: &Token) {
        self.streams.forget(token);
    }

    fn poll_stream(&mut self) -> Option<StreamEvent> {
        self.streams.poll_event()
    }

    fn send_split(
        &mut self,
        remote: SocketAddr,
        head: &[u8],
        body: &[u8],
    ) -> Result<Sent, SendError> {
        let result = self.streams.send_split(remote, head, body);
        self.settle_watches();
        result
    }

    fn set_reading(&mut self, remote: SocketAddr, is_reading: bool) {
        self.streams.set_reading(remote, is_reading);
        self.settle_watches();
    }

    fn set_patience(&mut self, remote: SocketAddr, patience: Duration) {
        self.streams.set_patience(remote, patience);
    }

    fn close_stream(&mut self, remote: SocketAddr) {
        self.streams.close(remote);
        self.settle_watches();
    }

    fn next_deadline(&self) -> Option<Time> {
        let pauses = self.doors.iter().filter_map(Door::paused_until);
        pauses.chain(self.streams.next_deadline()).min()
    }

    fn stream_count(&self) -> usize {
        self.streams.count()
    }

    fn release(&mut self, pool: &mut Pool) {
        self.streams.release(pool);
    }
}

impl Connection for Stream {
    const SHORT_READ_IS_ALL: bool = true;

    fn end_writing(&mut self) {
        // A connection that is gone has nobody left to tell.
        let _ = Stream::end_writing(self);
    }

    fn set_patience(&mut self, patience: Duration) {
        Stream::set_patience(self, patience);
    }
}
