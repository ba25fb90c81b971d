//! [`Connectionless`]: a network that takes packets for any address at any time.
//!
//! ```text
//!   send(to, | packet | packet | packet | short |)     equal packets in one call, where it can
//!   recv(into) -> lends the bytes, of `into` or its own: from whom, how long each
//! ```
//!
//! Packets may be lost, come twice and out of order; XTP repairs that.
//!
//! Invariants of every implementation: no call blocks; an address that comes out of `recv` is one
//! that `address` gives back unchanged, so an engine may compare it with its peers'; what `send`
//! says was taken ends at the edge of a packet.

use crate::capture::Carriage;
use crate::fault::{AddressError, Fault, JoinError};
use dacapo_base::Time;
use dacapo_sys::poll::{Event, Registry};
use std::io;
use std::net::SocketAddr;

/// Packets that came together from one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// Who sent them.
    pub from: SocketAddr,
    /// The packets, one behind the other.
    pub train: &'a [u8],
    /// The length of each, of which the last may be shorter.
    pub segment: usize,
    /// Bytes between one packet and the next, which are nobody's.
    pub gap: usize,
}

impl<'a> Arrival<'a> {
    /// The packets, one by one; an empty train is one that is empty.
    pub fn packets(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let Self { train, segment, gap, .. } = *self;
        let is_empty = train.is_empty();
        let packets = train.chunks(segment.max(1).saturating_add(gap));
        let packets = packets.map(move |bytes| bytes.get(..segment).unwrap_or(bytes));
        packets.chain(is_empty.then_some(train))
    }
}

/// A group of receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its address; over UDP with the port of the group.
    pub address: SocketAddr,
    /// The number of the interface where it is joined; 0 leaves the choice to the routes.
    pub interface: u32,
}

/// Why nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// There is no room now; [`Connectionless::watch_capacity`] has the poller tell when there is.
    WouldBlock,
    /// There is no room in a device, and nothing tells when there is: try again in a moment.
    Busy,
    /// The first packet cannot be sent.
    Fault(Fault),
}

/// Why nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// Nothing is there now.
    WouldBlock,
    /// Something happened to what was sent, or to what came; more may be there to receive.
    Fault {
        /// To whom it was sent, where that is known.
        to: Option<SocketAddr>,
        /// What happened.
        fault: Fault,
    },
}

/// A network without connections.
pub trait Connectionless: Send {
    /// The address of this end.
    fn local(&self) -> SocketAddr;

    /// The longest packet, bytes.
    fn packet_len_max(&self) -> usize;

    /// How packets look on this network, for captures.
    fn carriage(&self) -> Carriage;

    /// The one form in which this network says the address of a peer.
    ///
    /// # Errors
    /// [`AddressError`] when nothing can be sent there.
    fn address(&self, peer: SocketAddr) -> Result<SocketAddr, AddressError>;

    /// Watches its descriptors in a poller from now on.
    ///
    /// # Errors
    /// When the poller takes no more.
    fn watch(&mut self, registry: Registry) -> io::Result<()>;

    /// Whether the poller is to tell when there is room to send, too.
    ///
    /// # Errors
    /// None that a correct program sees.
    fn watch_capacity(&mut self, is_wanted: bool) -> io::Result<()>;

    /// The poller says this of the descriptor at a place.
    fn handle_event(&mut self, _place: u16, _event: Event) {}

    /// Sends packets of `segment` bytes, of which the last may be shorter, to one peer; gives the
    /// bytes that were taken, at least one packet's.
    ///
    /// # Errors
    /// [`SendError`], and nothing was taken.
    fn send(
        &mut self,
        now: Time,
        to: SocketAddr,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, SendError>;

    /// Which peer's packets have no room any more, or have again, since this was called the last
    /// time: who waits for a connection of its own holds up nobody else. What is sent all the same
    /// may be dropped.
    fn poll_capacity(&mut self) -> Option<(SocketAddr, bool)> {
        None
    }

    /// Receives what is next, into `into`, which has room for everything when it has 65,536 bytes;
    /// or lends memory of its own where it is already there, until it is called again.
    ///
    /// # Errors
    /// [`RecvError`].
    fn recv<'a>(&'a mut self, now: Time, into: &'a mut [u8]) -> Result<Arrival<'a>, RecvError>;

    /// Takes what is sent to a group, from now until the end of this value.
    ///
    /// # Errors
    /// [`JoinError`].
    fn join(&mut self, group: Group) -> Result<(), JoinError>;

    /// Packets that came since this was called the last time and for which the system had no room,
    /// as far as it has said so.
    fn take_missed(&mut self) -> u64 {
        0
    }

    /// When [`Connectionless::handle_time`] has something to do.
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// Time goes on.
    fn handle_time(&mut self, _now: Time) {}
}
