//! [`Sim`]: datagrams over simulated byte streams, in virtual time.
//!
//! The same engine as [`crate::tcp`], over a [`Pipe`] instead of a socket: bytes in random pieces,
//! a buffer that fills, an end at any byte, all from a seed. [`Pipe`] and [`End`] are for worlds
//! that carry whole cores themselves, with [`crate::stream::StreamEnd`] at each end.
//!
//! ```text
//!   Net -- serve() --> Sim at 100::1          Pipe: End(Dialer) <=== bytes ===> End(Listener)
//!    |---- dial() ---> Sim at 100::2               ^ write, read, advance(now), next_arrival()
//!    |---- connect() > Wire, bare bytes
//!    '---- cut(), cut_after(byte)
//! ```
//!
//! Invariants: no clock, no thread, no descriptor: what happens, happens in the calls, at the time
//! that they say. The same seed and the same calls give the same bytes at the same times.

mod config;
mod net;
mod pipe;
mod recv;
mod send;

pub use config::Config;
pub use net::{Net, Wire};
pub use pipe::{End, Pipe, Side};

use crate::inproc::UNLISTED;
use crate::stream::{RECORD_LEN_MAX, StreamTransport, Streams, Token};
use crate::{Incoming, Outgoing, RecvOutcome, SendError, Sent, Transport, pass_on};
use dacapo_base::{Address, Time};
use dacapo_lift::TransportSpec;
use dacapo_packet::Pool;
use std::os::fd::BorrowedFd;

static SPEC: TransportSpec = TransportSpec { name: "sim", ..UNLISTED };

/// A transport over the simulated streams of a [`Net`].
#[derive(Debug)]
pub struct Sim {
    net: Net,
    local_addrs: [Address; 1],
    is_listener: bool,
    streams: Streams<Wire>,
}

impl Sim {
    fn new(net: Net, local: Address, is_listener: bool) -> Self {
        let streams = Streams::new(net.config().streams_max);
        Self { net, local_addrs: [local], is_listener, streams }
    }

    fn dialed(mut self, wire: Wire, remote: Address, token: Token) -> Self {
        self.streams.dialed(wire, [self.local(), remote], token);
        self
    }

    fn local(&self) -> Address {
        self.local_addrs[0]
    }
}

impl Transport for Sim {
    pass_on!(streams: open_data, stats);

    fn spec(&self) -> &'static TransportSpec {
        &SPEC
    }

    fn datagram_len_max(&self) -> usize {
        RECORD_LEN_MAX
    }

    fn local_addrs(&self) -> &[Address] {
        &self.local_addrs
    }

    fn close_data(&mut self, _remote: Address) {}

    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        self.send_to_stream(outgoing)
    }

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        self.recv_from_streams(now, pool, into)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl StreamTransport for Sim {
    pass_on!(
        streams: expect, forget, poll_stream, set_reading, set_patience, close_stream, stream_count,
        release
    );

    fn next_deadline(&self) -> Option<Time> {
        let arrival = self.net.next_arrival(self.local());
        self.streams.next_deadline().into_iter().chain(arrival).min()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        if self.is_listener {
            self.net.leave(self.local());
        }
    }
}
