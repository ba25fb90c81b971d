//! [`Xtp`]: datagrams over XTP 4.0, an association per flow, without the kernel's TCP.
//!
//! Sockets, an engine of `dacapo-xtp` and one epoll around the engine of [`crate::stream`]. A
//! listener takes the associations whose labels it expects and the streams whose tokens those show;
//! a dialed transport has the one stream that it was made for. It has two modes: in
//! [`Mode::Streams`] datagrams are records of a reliable stream (service 4), in order and without
//! loss; in [`Mode::Datagrams`] each is a message that is sent once (NOERR): some lost, the others
//! in order.
//!
//! The Internet checksum misses what is altered often enough, whoever can read the way can forge,
//! and nothing yields to others on the way: the flow's bound does.
//!
//! ```text
//!   serve                                               dial(remote, token)
//!   :19982  socket    <== label | XTP, service 4 ====>   :41001   preface + token, records
//!   :19982            <== label | XTP ===============>   another dialer
//!      |  one epoll: fd()        timers: next_deadline()
//!
//!   Sockets -- Links (labels, engine, associations) -- Streams (table, prefaces, records)
//! ```
//!
//! Invariants
//! - A datagram whose label nobody expects is dropped and counted before XTP looks at it, and gets
//!   no answer.
//! - Associations without a preface are 64 at most, the oldest goes first; a context keeps at most
//!   [`Config::buffer_len`] bytes each way.
//! - A full window at the sender takes nothing; what is not read closes the window.
//! - A packet from another address than the one that opened an association changes nothing.
//!
//! Source: docs/xtp.md; docs/protocol.md, "Streams".

mod clock;
mod config;
mod datagrams;
mod entry;
mod label;
mod link;
mod links;
mod messages;
mod options;
mod recv;
mod send;
mod spec;
mod stream_of;

pub use crate::mode::Mode;
pub use config::{Config, DATAGRAM_LEN_MAX};
pub use entry::entries;
pub use label::{HEAD_LEN, TYPE_XTP, head, label_of};
pub use spec::{SPEC, SPEC_DATAGRAM};

use crate::stream::{RECORD_LEN_MAX, StreamParams, StreamTransport, Streams, Token};
use crate::{Incoming, Outgoing, RecvOutcome, SendError, Sent, Transport};
use crate::{TransportStats, pass_on};
use dacapo_base::{Address, Random, Time};
use dacapo_io::Sockets;
use dacapo_lift::TransportSpec;
use dacapo_packet::{ARRIVAL_BYTES_MAX, Pool};
use label::LabelsFull;
use links::Links;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stream_of::{StreamOf, lock};

/// How errors name it.
const NAME: &str = "XTP";

/// An XTP transport.
pub struct Xtp {
    mode: Mode,
    local_addrs: Vec<Address>,
    sockets: Sockets,
    links: Arc<Mutex<Links>>,
    streams: Streams<StreamOf>,
    train: send::Train,
    /// A call had more to send than it may.
    is_unsent: bool,
    /// The time of the last call that said one.
    now: Time,
    /// What a socket is read into.
    buffer: Vec<u8>,
}

impl Xtp {
    /// Listens at every address of `addrs`; port 0 takes a free port. `random` draws the keys of
    /// associations: seed it from the system.
    ///
    /// # Errors
    /// `InvalidInput` without addresses or with more than [`dacapo_io::LISTEN_ADDRS_MAX`]; else
    /// what the system says, with a text that names the address and what to do.
    pub fn serve(
        addrs: &[SocketAddr],
        mode: Mode,
        random: Random,
        config: &Config,
    ) -> io::Result<Self> {
        let bound = Sockets::listen(NAME, addrs, &config.udp.socket(false))?;
        let links = Links::new(config, mode, config::listener_packet_len(), random);
        Ok(Self::new(mode, config, links, bound))
    }

    /// Begins to open a stream to `remote` with `token`, for a flow of these terms;
    /// [`StreamTransport::poll_stream`] tells when it is open, or why it is not. Nothing is sent
    /// before the first receive.
    ///
    /// # Errors
    /// When there is no way to `remote` or no descriptor left.
    pub fn dial(
        remote: SocketAddr,
        token: Token,
        mode: Mode,
        terms: &StreamParams,
        random: Random,
        config: &Config,
    ) -> io::Result<Self> {
        let (sockets, local) = Sockets::dial(NAME, remote, &config.udp.socket(false))?;
        let packet_len = config::dialer_packet_len(remote.ip(), terms.path_len);
        let links = Links::new(config, mode, packet_len, random);
        let mut xtp = Self::new(mode, config, links, (sockets, vec![local]));
        let mut links = lock(&xtp.links);
        let number = links.dial(remote, &token, terms);
        drop(links);
        let stream = StreamOf::new(&xtp.links, number);
        let place = xtp.streams.dialed(stream, [local, remote].map(Address::from), token);
        xtp.set_place(number, place);
        Ok(xtp)
    }

    fn new(
        mode: Mode,
        config: &Config,
        links: Links,
        (sockets, local_addrs): (Sockets, Vec<SocketAddr>),
    ) -> Self {
        Self {
            mode,
            local_addrs: local_addrs.into_iter().map(Address::from).collect(),
            sockets,
            links: Arc::new(Mutex::new(links)),
            streams: Streams::new(config.streams_max),
            train: send::Train::default(),
            is_unsent: false,
            now: Time::ZERO,
            buffer: vec![0; ARRIVAL_BYTES_MAX],
        }
    }

    /// Ends everything, and says so to every other end.
    fn end_all(&mut self) {
        lock(&self.links).end_all();
        self.close_left();
        self.transmit();
    }
}

impl Transport for Xtp {
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

impl StreamTransport for Xtp {
    pass_on!(streams: poll_stream, estimates, stream_count);

    fn expect(&mut self, token: Token, until: Time) {
        let expected = lock(&self.links).expect(&token, until);
        match expected {
            Ok(()) => {
                if !self.streams.expect(token, until) {
                    // Nothing may come with the label of a token that is refused.
                    lock(&self.links).forget(&token);
                }
            }
            Err(LabelsFull { limit }) => self.streams.refuse(token, limit),
        }
    }

    fn set_terms(&mut self, token: &Token, terms: &StreamParams) {
        lock(&self.links).set_terms(token, terms);
    }

    fn forget(&mut self, token: &Token) {
        lock(&self.links).forget(token);
        self.streams.forget(token);
    }

    fn send_split(&mut self, remote: Address, head: &[u8], body: &[u8]) -> Result<Sent, SendError> {
        match self.mode {
            Mode::Streams => {
                self.expect_records(remote, head.len().saturating_add(body.len()));
                let sent = self.streams.send_split(remote, head, body);
                self.transmit();
                sent
            }
            Mode::Datagrams => self.send_joined(remote, head, body),
        }
    }

    fn set_reading(&mut self, remote: Address, is_reading: bool) {
        self.streams.set_reading(remote, is_reading);
        lock(&self.links).set_reading(remote, is_reading);
    }

    fn set_patience(&mut self, remote: Address, patience: Duration) {
        self.streams.set_patience(remote, patience);
        self.transmit();
    }

    fn close_stream(&mut self, remote: Address) {
        self.streams.close_stream(remote);
        self.close_left();
        self.transmit();
    }

    fn next_deadline(&self) -> Option<Time> {
        let due = lock(&self.links).due();
        let unsent = self.is_unsent.then_some(self.now);
        self.streams.next_deadline().into_iter().chain(due).chain(unsent).min()
    }

    fn release(&mut self, pool: &mut Pool) {
        self.streams.release(pool);
        self.end_all();
    }
}

impl Drop for Xtp {
    /// Says to every other end that it is over: nobody else would, when the program ends.
    fn drop(&mut self) {
        self.end_all();
    }
}
