//! The [`Transport`] trait and what goes in and out of it.

use crate::{JoinError, Membership, TransportStats};
use dacapo_base::{Address, Ecn, Time};
use dacapo_lift::TransportSpec;
use dacapo_packet::{Packet, Pool};
use dacapo_sys::poll::{Event, Registry};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

/// Which of the two ways to a peer a datagram takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrafficClass {
    /// For the control connection; no burst of data drops it.
    Control,
    /// For flows.
    Data,
}

/// Datagrams to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The way to take. Data without an open data lane goes the control way.
    pub lane: TrafficClass,
    /// Where to.
    pub remote: Address,
    /// One datagram, or a train: equal datagrams one after the other, of which the last may be
    /// shorter.
    pub bytes: &'a [u8],
    /// The length in bytes of each datagram of the train; `bytes.len()` for a single one.
    pub segment_len: usize,
    /// The congestion codepoint with which it is to leave, where the transport can say so.
    pub ecn: Ecn,
}

impl<'a> Outgoing<'a> {
    /// One datagram.
    #[must_use]
    pub fn datagram(lane: TrafficClass, remote: impl Into<Address>, bytes: &'a [u8]) -> Self {
        Self::train(lane, remote, bytes, bytes.len())
    }

    /// A train of datagrams of this length each, of which the last may be shorter.
    #[must_use]
    pub fn train(
        lane: TrafficClass,
        remote: impl Into<Address>,
        bytes: &'a [u8],
        segment_len: usize,
    ) -> Self {
        Self { lane, remote: remote.into(), bytes, segment_len, ecn: Ecn::NotEct }
    }

    /// How many datagrams these are; an empty one is one.
    #[must_use]
    pub fn datagram_count(&self) -> usize {
        datagrams_in(self.bytes.len(), self.datagram_len())
    }

    /// The length of each datagram in bytes, the last one excepted; a train of length 0 would have
    /// no end, so it is one datagram.
    #[must_use]
    pub fn datagram_len(&self) -> usize {
        match self.segment_len {
            0 => self.bytes.len(),
            len => len.min(self.bytes.len()),
        }
    }
}

/// How many datagrams of `segment_len` bytes `len` bytes make; at least 1.
pub(crate) fn datagrams_in(len: usize, segment_len: usize) -> usize {
    len.div_ceil(segment_len.max(1)).max(1)
}

/// A datagram, or a train of them, that arrived.
#[derive(Debug)]
pub struct Incoming {
    /// The way it came.
    pub lane: TrafficClass,
    /// Where it came from, as the network says: not to be trusted.
    pub remote: Address,
    /// The bytes: one segment per datagram, and the time of arrival. Between the segments there may
    /// be gaps, and other packets may share the body. Whether it came with a mark of congestion is
    /// said by [`Packet::ecn`]. Whoever takes it frees it in the pool.
    pub packet: Packet,
}

/// What the network says of datagrams that were taken earlier: they were too long for the way. It
/// can be forged, and may be of a way that is used no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// To whom they were sent.
    pub remote: Address,
    /// The longest datagram in bytes that gets there, where that was said.
    pub datagram_len: Option<usize>,
}

/// How much of an [`Outgoing`] was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Everything.
    All,
    /// Whole datagrams from the front only. Send the rest when [`RecvOutcome::writable`] says so or
    /// after a millisecond: a device whose queue was full tells nobody when it has room again.
    Blocked {
        /// Bytes taken; 0 when nothing was.
        bytes_taken: usize,
    },
}

/// Why nothing of an [`Outgoing`] was taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum SendError {
    /// A datagram is longer than the transport or the first link takes.
    TooLarge {
        /// The longest datagram in bytes that fits, where it is known.
        mtu: Option<usize>,
    },
    /// Nobody listens at the remote port: the answer to this or to an earlier datagram. A hint that
    /// can be forged; the path may work again.
    Refused,
    /// There is no way to this address from here.
    Unreachable,
    /// The transport, or the stream to this address, is closed or was never there.
    Closed,
    /// Another error of the system.
    Other(io::Error),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { mtu: Some(mtu) } => {
                write!(f, "the datagram is too long: the path takes at most {mtu} bytes")
            }
            Self::TooLarge { mtu: None } => {
                f.write_str("the datagram is too long for the path: send shorter ones")
            }
            Self::Refused => f.write_str("nobody listens at the remote port: start the peer first"),
            Self::Unreachable => f.write_str("there is no way to the remote address from here"),
            Self::Closed => f.write_str("the transport has no open way to the remote address"),
            Self::Other(error) => write!(f, "the system refused to send: {error}"),
        }
    }
}

impl std::error::Error for SendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other(error) => Some(error),
            _ => None,
        }
    }
}

/// What one call of [`Transport::recv`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecvOutcome {
    /// Packets handed up; a train is one.
    pub packet_count: usize,
    /// Bytes handed up.
    pub bytes: usize,
    /// The limit of the call was reached: call again without waiting.
    pub more: bool,
    /// The pool is full, and something waits for room. Give views back, then call again; until then
    /// do not wait for [`Transport::fd`], which stays readable.
    pub blocked: bool,
    /// A lane that was blocked has room: send again.
    pub writable: bool,
}

/// A network, or something like it, as seen from one core.
///
/// One call order per turn: wait for [`Transport::fd`] (or a timer), [`Transport::recv`] until it
/// has no more, then [`Transport::send`]. Nothing blocks.
pub trait Transport: Send {
    /// What this transport is, and does to datagrams.
    fn spec(&self) -> &'static TransportSpec;

    /// The longest datagram in bytes that [`Transport::send`] takes; a path may take less.
    fn datagram_len_max(&self) -> usize {
        self.spec().datagram_len as usize
    }

    /// The addresses of the control lane, in the order in which they were asked for.
    fn local_addrs(&self) -> &[Address];

    /// Opens a data lane of its own to `remote`, or finds the one that is open. Returns the address
    /// that the lane has here, for the peer to open its own to. Without [`TransportSpec::lanes`]
    /// what reaches `remote` is the lane; it is found, never opened.
    ///
    /// # Errors
    /// `QuotaExceeded` beyond [`crate::DATA_LANES_MAX`] lanes; `NotConnected` without a stream;
    /// others when there is no way to `remote` or no descriptor is left.
    fn open_data(&mut self, remote: Address) -> io::Result<Address>;

    /// From now on hands up what the source of this membership sends to its group, as data from
    /// that source. Who has joined already stays so. Where groups can be joined, one is
    /// sent to by a data lane to its address.
    ///
    /// # Errors
    /// [`JoinError`] says what, where and what to do; nothing has changed then.
    fn join(&mut self, wanted: &Membership) -> Result<(), JoinError> {
        let _ = wanted;
        Err(JoinError::Unsupported { transport: self.spec().name })
    }

    /// Hands up nothing more of this membership; what waits unread is dropped.
    fn leave(&mut self, membership: &Membership) {
        let _ = membership;
    }

    /// Closes the data lane to `remote`, if there is one. What waits in it unread is dropped; what
    /// arrives from `remote` later arrives by the control lane. Without [`TransportSpec::lanes`] it
    /// does nothing: streams have their own close.
    fn close_data(&mut self, remote: Address);

    /// Sends a datagram or a train. A stream keeps the rest of a datagram of which it took a part,
    /// and writes it in [`Transport::recv`] when the descriptor says that there is room.
    ///
    /// # Errors
    /// [`SendError`]; nothing of `outgoing` was taken then.
    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError>;

    /// Appends what has arrived to `into`, control first; `now` becomes the time of the packets.
    ///
    /// Reads about [`crate::RECV_PACKETS_MAX`] packets or [`crate::RECV_BYTES_MAX`] bytes per lane,
    /// whatever comes first, so that a flood in one lane never starves the other.
    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome;

    /// What the network has said of the length of datagrams since the last call, the newest of it.
    fn poll_too_large(&mut self) -> Option<TooLong> {
        None
    }

    /// Where nothing listens, as the network has said since the last call, the newest of it. That
    /// can be forged; what is sent there goes out all the same.
    fn poll_refused(&mut self) -> Option<Address> {
        None
    }

    /// A descriptor that is readable while [`Transport::recv`] finds something, be it a datagram or
    /// room for a blocked send. It stays the same while the transport lives, whatever lanes are
    /// opened and closed. `None`: call every turn, unless [`Transport::watch_in`] was taken up.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Watches its descriptors in its owner's poller from now on, which spares both a look: the
    /// owner hands what that finds to [`Transport::handle_ready`], and calls [`Transport::recv`]
    /// then. False when this transport does no such thing, and [`Transport::fd`] is to be watched.
    ///
    /// # Errors
    /// What the system says when a descriptor cannot be watched; the transport is of no use then.
    fn watch_in(&mut self, _registry: Registry) -> io::Result<bool> {
        Ok(false)
    }

    /// The owner's poller has found this with a token of the registry.
    fn handle_ready(&mut self, _event: Event) {}

    /// The counters since the start.
    fn stats(&self) -> TransportStats;
}
