//! [`Shm`]: datagrams between two processes of one host, a stream per flow in shared memory.
//!
//! A ring for each direction in place of TCP's, around the engine of [`crate::stream`]. A server
//! listens under the names of its addresses and takes the streams whose tokens it expects; a dialed
//! transport has the one stream that it was made for.
//!
//! The addresses are those of the UDP ports beside it; nothing listens at a port here.
//!
//! ```text
//!   serve                                               dial(remote, token)
//!   "dacapo-shm-1/127.0.0.1:19980"  <-- connect, memory --  127.3.1.4:19980 (its number)
//!        |                          <== records in rings ==>
//!        |                          <-- doorbell, when asleep -->
//!     one epoll: fd()
//! ```
//!
//! Invariants
//! - Those of [`Connections`]: nothing is lost before an end, a full ring holds no other stream up.
//! - A peer may write anything into the memory at any time: it breaks its own stream and nothing
//!   else. Memory is mapped only when it can never become shorter.
//! - Both ends are of the same user, and each has looked; the token says which stream it is.
//! - A peer that dies is seen by the end of its socket, and what it wrote before is read first.
//!
//! Source: design D14; docs/protocol.md, "Streams".

mod config;
mod entry;
mod link;
mod name;
pub mod ring;
mod spec;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use entry::entries;
pub use link::Link;
pub use spec::SPEC;

use crate::stream::{self, Connections, Ending, Token};
use dacapo_base::Address;
use dacapo_io::LISTEN_ADDRS_MAX;
use dacapo_lift::TransportSpec;
use dacapo_sys::doorbell::{self, Accepted};
use dacapo_sys::memory::SharedMemory;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Those who came and are not taken, in one look at a listener.
const TURNED_AWAY_MAX: usize = 16;

/// A transport over shared memory.
pub type Shm = Connections<Listener>;

/// What listens under the name of an address.
#[derive(Debug)]
pub struct Listener {
    inner: doorbell::Listener,
    local: SocketAddr,
}

impl Shm {
    /// Serves those of this user on this host who dial one of `addrs`: the addresses, ports
    /// included, that they reach this core at.
    ///
    /// # Errors
    /// `InvalidInput` without addresses, with more than [`LISTEN_ADDRS_MAX`] or without a port;
    /// `AddrInUse` when somebody has the name of one; else what the system says.
    pub fn serve(addrs: &[SocketAddr], config: &Config) -> io::Result<Self> {
        if addrs.is_empty() || addrs.len() > LISTEN_ADDRS_MAX {
            let text = format!("shared memory: 1 to {LISTEN_ADDRS_MAX} addresses");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut shm = Self::new(config.streams_max)?;
        for &local in addrs {
            let listening = match local.port() {
                0 => Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no port")),
                _ => name::listen(local),
            };
            let opened = listening
                .and_then(|inner| shm.add_listener(Listener { inner, local }, local.into()));
            opened.map_err(|error| config::serve_error(local, &error))?;
        }
        Ok(shm)
    }

    /// Begins to open a stream to who serves at `remote` on this host, with `token`;
    /// [`poll_stream`](crate::StreamTransport::poll_stream) tells when it is open, or why it is
    /// not.
    ///
    /// # Errors
    /// As [`Link::connect`], but that nobody serves is told as the end of the stream.
    pub fn dial(remote: SocketAddr, token: Token, config: &Config) -> io::Result<Self> {
        let mut shm = Self::new(config.streams_max)?;
        match Link::connect(remote, config.ring_bytes) {
            Ok(link) => {
                let local = link.local_addr(remote)?;
                shm.add_dialed(link, [local, remote].map(Address::from), token)?;
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                shm.not_dialed(remote.into(), token, &Ending::Refused);
            }
            Err(error) => return Err(config::dial_error(remote, &error)),
        }
        Ok(shm)
    }

    /// Whether a stream could be dialed to `remote` now: somebody of this user serves there, and
    /// memory may be made.
    ///
    /// # Errors
    /// Why not.
    pub fn look(remote: SocketAddr, config: &Config) -> io::Result<()> {
        let there = name::connect(remote).map(drop);
        let memory = || SharedMemory::look(ring::memory_len(config.ring_bytes));
        there.and_then(|()| memory()).map_err(|error| config::dial_error(remote, &error))
    }
}

impl stream::Listener for Listener {
    type Connection = Link;

    const SPEC: &'static TransportSpec = &SPEC;
    const ROOM_IS_POLLED: bool = false;

    fn accept(&self) -> io::Result<Option<(Link, Address)>> {
        // Who is turned away is not the one to wait for; after some of them it is another turn.
        for _ in 0..TURNED_AWAY_MAX {
            let Some(Accepted { doorbell, peer, number }) = self.inner.accept()? else {
                return Ok(None);
            };
            let Some(number) = number.filter(|_| name::check_user(peer.uid).is_ok()) else {
                continue;
            };
            if let Some(link) = Link::accepted(doorbell) {
                return Ok(Some((link, name::stands_for(number, self.local.port()).into())));
            }
        }
        Ok(None)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}
