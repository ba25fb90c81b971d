//! [`Tcp`]: datagrams over the kernel's TCP, a stream per flow.
//!
//! Sockets and one epoll around the engine of [`crate::stream`]. A server listens at its addresses
//! and takes the streams whose tokens it expects; a dialed transport has the one stream that it was
//! made for.
//!
//! A 16-bit checksum is no integrity.
//!
//! ```text
//!   serve                                              dial(remote, token)
//!   :19980  listener  <---- connect, preface + token ----  :41001
//!   :19980 = a:41001  <======== records ================>  :41001
//!   :19980 = b:52002  <======== records ======== another dialer
//!      |  one epoll: fd()
//! ```
//!
//! Invariants are those of [`Connections`]; what was written goes out before the FIN, and no reset
//! overtakes it.
//!
//! Source: RFC 9293; design D7; docs/protocol.md, "Streams".

mod config;
mod entry;
mod spec;

pub use config::Config;
pub use entry::entries;
pub use spec::{GROUP_SPEC, SPEC};

use crate::stream::{self, Connection, Connections, Ending, Token};
use dacapo_base::Address;
use dacapo_io::{BindError, DialError, LISTEN_ADDRS_MAX};
use dacapo_lift::{BelowSeen, TransportSpec};
use dacapo_sys::tcp::{Listener, Stream};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// How errors name it.
const NAME: &str = "TCP";

/// A TCP transport.
pub type Tcp = Connections<Listener>;

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
        let mut tcp = Self::new(config.streams_max)?;
        for &address in addrs {
            let bound = Listener::bind(address, &config.socket());
            let opened = bound.and_then(|listener| {
                let local = listener.local_addr()?;
                tcp.add_listener(listener, local.into())
            });
            opened.map_err(|error| BindError::of(address, error).of_protocol(NAME))?;
        }
        Ok(tcp)
    }

    /// Begins to open a stream to `remote` with `token`;
    /// [`poll_stream`](crate::StreamTransport::poll_stream) tells when it is open, or why it is
    /// not.
    ///
    /// # Errors
    /// When there is no way to `remote` or no descriptor left.
    pub fn dial(remote: SocketAddr, token: Token, config: &Config) -> io::Result<Self> {
        let mut tcp = Self::new(config.streams_max)?;
        match Stream::connect(remote, &config.socket()) {
            Ok(stream) => {
                let local = stream.local_addr()?;
                tcp.add_dialed(stream, [local, remote].map(Address::from), token)?;
            }
            Err(error) => match Ending::of(error) {
                // On one host the answer may be there at once.
                ending @ (Ending::Refused | Ending::Reset | Ending::TimedOut) => {
                    tcp.not_dialed(remote.into(), token, &ending);
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
}

impl stream::Listener for Listener {
    type Connection = Stream;

    const SPEC: &'static TransportSpec = &SPEC;
    const ROOM_IS_POLLED: bool = true;

    fn accept(&self) -> io::Result<Option<(Stream, Address)>> {
        Ok(Listener::accept(self)?.map(|(stream, remote)| (stream, remote.into())))
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

    fn estimates(&self) -> Option<BelowSeen> {
        let seen = self.measured().ok()?;
        Some(BelowSeen {
            rtt: Some(seen.rtt).filter(|rtt| !rtt.is_zero()),
            delivery_rate_bps: Some(seen.delivery_rate_bps).filter(|rate| *rate > 0),
            window_bytes: Some(seen.window_bytes),
            sent_packets: seen.sent,
            lost_packets: seen.resent,
        })
    }
}
