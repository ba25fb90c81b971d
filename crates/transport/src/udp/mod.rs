//! [`Udp`]: datagrams over the kernel's UDP.
//!
//! One port of a server with a socket for control and one per peer for data, or the two sockets of
//! a client; trains by GSO and GRO.
//!
//! ```text
//!   serve                                             dial(remote)
//!   :19980  unconnected  <======== control ========>  :41001  connected
//!   :19980  -> a:41002   <========= data ==========>  :41002  connected
//!   :19980  -> b:52002   <========= data ========= another client
//!      |  one epoll: fd(), or the owner's
//! ```
//!
//! Linux hands a datagram to the connected socket before the unconnected one, so every peer has its
//! own receive buffer, and a burst of data never drops control.
//!
//! Invariants
//! - A used port is an error, always: `SO_REUSEADDR` is set on the listening socket only for the
//!   moment in which a data socket binds, so no other process can slip into the port.
//! - Between its bind and its connect a data socket may catch the datagram of anybody. Such a
//!   datagram is handed up with its true source.
//! - Of what is sent to a group only that of the source is handed up for which it was joined.
//! - While the pool has no room for an arrival nothing is read, and it waits in the kernel.
//! - A server with several addresses answers from the one that suits the remote; on a wildcard
//!   address the kernel picks the source by its routes.

pub mod bond;
mod channel;
mod entry;
mod group;
mod lanes;
mod recv;
mod send;
mod spec;

pub use crate::sockets::{Config, Groups};
pub use dacapo_io::{BindError, DialError, LISTEN_ADDRS_MAX};
pub use entry::entries;
pub use spec::{GROUP_SPEC, SPEC};

use crate::{Incoming, Outgoing, RecvOutcome, SendError, Sent};
use crate::{JoinError, Membership, TooLong, Transport, TransportStats};
use channel::Channel;
use dacapo_base::{Address, Time};
use dacapo_io::address::ip;
use dacapo_io::{Watching, connected};
use dacapo_lift::TransportSpec;
use dacapo_packet::Pool;
use dacapo_sys::poll::{Event, Interest, Registry};
use dacapo_sys::udp::Socket;
use lanes::{Lanes, Place};
use recv::Inbox;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// A UDP transport.
#[derive(Debug)]
pub struct Udp {
    config: Config,
    local_addrs: Vec<Address>,
    /// The remote of a dialled transport, to which its control socket is connected.
    dialled: Option<SocketAddr>,
    lanes: Lanes,
    watching: Watching,
    events: Vec<Event>,
    control: Inbox,
    data: Inbox,
    stats: TransportStats,
    too_large: Option<TooLong>,
    refused: Option<Address>,
}

impl Udp {
    /// Listens at every address of `addrs`; port 0 takes a free port.
    ///
    /// # Errors
    /// [`BindError`] names the address and what to do.
    pub fn serve(addrs: &[SocketAddr], config: &Config) -> Result<Self, BindError> {
        BindError::check_count(addrs)?;
        let mut controls = Vec::new();
        for &address in addrs {
            let socket = Socket::bind(address, &config.socket(false))
                .map_err(|error| BindError::of(address, error))?;
            controls.push(socket);
        }
        Self::with_controls(controls, None, config).map_err(|error| BindError::of(addrs[0], error))
    }

    /// Makes the client's end of a path to `remote`, at a free port of its family. Nothing is sent
    /// yet. The control lane of this transport reaches `remote` only.
    ///
    /// # Errors
    /// [`DialError`] when there is no way to `remote` from here.
    pub fn dial(remote: SocketAddr, config: &Config) -> Result<Self, DialError> {
        let control = connected(remote, &config.socket(false));
        control
            .and_then(|control| Self::with_controls(vec![control], Some(remote), config))
            .map_err(|error| DialError::of(remote, error))
    }

    fn with_controls(
        controls: Vec<Socket>,
        dialled: Option<SocketAddr>,
        config: &Config,
    ) -> io::Result<Self> {
        let watching = Watching::new()?;
        let mut local_addrs = Vec::new();
        let mut channels = Vec::new();
        for (index, socket) in controls.into_iter().enumerate() {
            let local = socket.local_addr()?;
            watching.add(socket.as_fd(), Place::Control(index).number(), Interest::Read)?;
            local_addrs.push(local.into());
            channels.push(Channel::new(socket, local, dialled));
        }
        Ok(Self {
            config: *config,
            local_addrs,
            dialled,
            lanes: Lanes::new(channels),
            watching,
            events: Vec::new(),
            control: Inbox::default(),
            data: Inbox::default(),
            stats: TransportStats::default(),
            too_large: None,
            refused: None,
        })
    }
}

impl Transport for Udp {
    fn spec(&self) -> &'static TransportSpec {
        &SPEC
    }

    fn local_addrs(&self) -> &[Address] {
        &self.local_addrs
    }

    fn open_data(&mut self, remote: Address) -> io::Result<Address> {
        Ok(self.open_lane(ip(remote)?)?.into())
    }

    fn close_data(&mut self, remote: Address) {
        if let Some(remote) = remote.ip() {
            self.close_lane(remote);
        }
    }

    fn join(&mut self, wanted: &Membership) -> Result<(), JoinError> {
        self.join_group(wanted)
    }

    fn leave(&mut self, membership: &Membership) {
        self.leave_group(membership);
    }

    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let result = self.send_out(outgoing);
        self.count_refusal(&result);
        result
    }

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        self.recv_lanes(now, pool, into)
    }

    fn poll_too_large(&mut self) -> Option<TooLong> {
        self.too_large.take()
    }

    fn poll_refused(&mut self) -> Option<Address> {
        self.refused.take()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.watching.fd()
    }

    fn watch_in(&mut self, registry: Registry) -> io::Result<bool> {
        self.watching.move_to(registry);
        self.lanes.watch_all(&self.watching)?;
        Ok(true)
    }

    fn handle_ready(&mut self, event: Event) {
        self.watching.handle_ready(event);
    }

    fn stats(&self) -> TransportStats {
        let mut stats = self.stats;
        stats.drops.kernel_overflow += self.lanes.kernel_drops();
        stats
    }
}
