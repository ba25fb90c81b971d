//! [`Quic`]: datagrams over QUIC, a connection and a stream in it per flow.
//!
//! Sockets, `quinn-proto` and one epoll around the engine of [`crate::stream`]. A server listens at
//! its addresses and takes the streams whose tokens it expects; a dialed transport has the one
//! stream that it was made for. It has two modes: in [`Mode::Streams`] datagrams are records of the
//! stream, in order and without loss; in [`Mode::Datagrams`] the stream says only the preface and
//! the end, and each datagram goes by itself (RFC 9221), some lost, some out of order. Nobody on
//! the way can read or alter either.
//!
//! ```text
//!   serve                                               dial(remote, token)
//!   :19981  socket    <== QUIC: TLS, then stream 0 ===>  :41001   preface + token, records
//!   :19981            <== QUIC =======================>  another dialer
//!      |  one epoll: fd()        timers: next_deadline()
//!
//!   Sockets -- Links (endpoint, connections) -- Streams (table, prefaces, records)
//! ```
//!
//! Invariants
//! - A dialer shows its token only to the peer that its keys let pass, and a listener takes only
//!   who knows the token: so both ends of the connection are those of the control connection.
//! - Handshakes and streams without a preface are 64 at most, the oldest goes first; from 16 on
//!   addresses are proved before anything is kept for them. Until its token is known, a connection
//!   may send 16 KiB.
//! - What a transport has taken, and a queue had no room for, is counted ([`crate::Drops`]). A full
//!   queue at the sender takes nothing.
//! - A connection that is closed here is told so once and forgotten; nothing lingers.
//!
//! Source: RFC 9000, RFC 9001, RFC 9221; design D8; docs/protocol.md, "Streams".

mod config;
mod datagrams;
mod entry;
mod link;
mod links;
mod marks;
mod recv;
mod send;
mod spec;
mod watch;

pub use crate::mode::Mode;
pub use config::{ClientCrypto, Common, Config, DATAGRAM_LEN_MAX, ServerCrypto};
pub use entry::entries;
pub use spec::{SPEC, SPEC_DATAGRAM};

use crate::stream::{RECORD_LEN_MAX, StreamTransport, Streams, Token};
use crate::{Incoming, Outgoing, RecvOutcome, SendError, Sent, Transport};
use crate::{TransportStats, pass_on};
use dacapo_base::{Address, Time};
use dacapo_io::DialError;
use dacapo_io::Sockets;
use dacapo_lift::TransportSpec;
use dacapo_packet::{ARRIVAL_BYTES_MAX, Pool};
use link::StreamOf;
use links::Links;
use quinn_proto::Endpoint;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// How errors name it.
const NAME: &str = "QUIC";

/// A QUIC transport.
pub struct Quic {
    mode: Mode,
    config: Config,
    local_addrs: Vec<Address>,
    sockets: Sockets,
    links: Links,
    streams: Streams<StreamOf>,
    /// The time of the last call that said one.
    now: Time,
    /// What a socket is read into.
    buffer: Vec<u8>,
}

impl Quic {
    /// Listens at every address of `addrs`; port 0 takes a free port.
    ///
    /// # Errors
    /// `InvalidInput` without addresses or with more than [`dacapo_io::LISTEN_ADDRS_MAX`]; else
    /// what the system says, with a text that names the address and what to do.
    pub fn serve(
        addrs: &[SocketAddr],
        mode: Mode,
        crypto: &ServerCrypto,
        config: &Config,
    ) -> io::Result<Self> {
        let bound = Sockets::listen(NAME, addrs, &config.udp.socket_with_marks())?;
        let server = Arc::new(config::server(crypto, mode, config));
        let endpoint = config::endpoint(&crypto.common);
        let endpoint = Endpoint::new(endpoint, Some(server), true, None);
        let links = Links::new(endpoint, crypto.common.origin);
        Ok(Self::new(mode, config, links, bound))
    }

    /// Begins to open a stream to `remote` with `token`; [`StreamTransport::poll_stream`] tells
    /// when it is open, or why it is not. Nothing is sent before the first receive.
    ///
    /// # Errors
    /// When there is no way to `remote` or no descriptor left.
    pub fn dial(
        remote: SocketAddr,
        token: Token,
        mode: Mode,
        crypto: &ClientCrypto,
        config: &Config,
    ) -> io::Result<Self> {
        let named = |error| DialError::of_protocol(NAME, remote, error);
        let (sockets, local) = Sockets::dial(NAME, remote, &config.udp.socket_with_marks())?;
        let endpoint = Endpoint::new(config::endpoint(&crypto.common), None, true, None);
        let links = Links::new(endpoint, crypto.common.origin);
        let mut quic = Self::new(mode, config, links, (sockets, vec![local]));
        let begun = quic.links.instant(Time::ZERO);
        let client = config::client(crypto, mode, config);
        // The name is neither sent nor checked: keys say who the peer is.
        let connection = quic.links.endpoint.connect(begun, client, remote, "dacapo");
        let (handle, inner) = connection.map_err(|error| named(io::Error::other(error)))?;
        let stream = quic.links.adopt(Time::ZERO, handle, inner, 0);
        stream.link().handle_known(config);
        let place = quic.streams.dialed(stream, [local, remote].map(Address::from), token);
        quic.links.set_place(handle, place);
        Ok(quic)
    }

    fn new(
        mode: Mode,
        config: &Config,
        links: Links,
        (sockets, local_addrs): (Sockets, Vec<SocketAddr>),
    ) -> Self {
        Self {
            mode,
            config: *config,
            local_addrs: local_addrs.into_iter().map(Address::from).collect(),
            sockets,
            links,
            streams: Streams::new(config.streams_max),
            now: Time::ZERO,
            buffer: vec![0; ARRIVAL_BYTES_MAX],
        }
    }
}

impl Transport for Quic {
    pass_on!(streams: open_data);

    fn spec(&self) -> &'static TransportSpec {
        spec::spec(self.mode)
    }

    fn datagram_len_max(&self) -> usize {
        self.mode.pick(RECORD_LEN_MAX, DATAGRAM_LEN_MAX)
    }

    fn local_addrs(&self) -> &[Address] {
        &self.local_addrs
    }

    fn close_data(&mut self, _remote: Address) {}

    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        match self.mode {
            Mode::Streams => self.send_records(outgoing),
            Mode::Datagrams => self.send_datagrams(outgoing),
        }
    }

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        self.recv_from_links(now, pool, into)
    }

    fn stats(&self) -> TransportStats {
        self.streams.stats_with(self.sockets.counts())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.sockets.fd()
    }
}

impl StreamTransport for Quic {
    pass_on!(streams: expect, forget, poll_stream, estimates, stream_count);

    fn send_split(&mut self, remote: Address, head: &[u8], body: &[u8]) -> Result<Sent, SendError> {
        match self.mode {
            Mode::Streams => {
                let sent = self.streams.send_split(remote, head, body);
                self.transmit_to(remote);
                sent
            }
            Mode::Datagrams => self.send_joined(remote, head, body),
        }
    }

    fn set_reading(&mut self, remote: Address, is_reading: bool) {
        self.streams.set_reading(remote, is_reading);
        self.with_link(remote, |link| link.is_paused = !is_reading);
    }

    fn set_patience(&mut self, remote: Address, patience: Duration) {
        self.with_link(remote, |link| {
            link.watch.set_patience(patience);
            // So that its deadline is looked up again.
            link.is_stirred = true;
        });
        self.transmit_to(remote);
    }

    fn close_stream(&mut self, remote: Address) {
        let place = self.streams.place_of(remote).map(|(place, _)| place);
        self.streams.close_stream(remote);
        place.into_iter().for_each(|place| self.transmit_at(place));
        self.close_left();
    }

    fn next_deadline(&self) -> Option<Time> {
        self.streams.next_deadline().into_iter().chain(self.links.next_deadline()).min()
    }

    fn release(&mut self, pool: &mut Pool) {
        self.streams.release(pool);
        self.close_left();
    }
}

impl Drop for Quic {
    /// Says to every other end that it is over: nobody else would, when the program ends.
    fn drop(&mut self) {
        self.streams = Streams::new(0);
        self.close_left();
    }
}
