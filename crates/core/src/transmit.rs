//! [`Transmit`]: what goes out, how, from where and to whom.

use crate::ids::StreamId;
use dacapo_base::{Address, Ecn, Time};
use dacapo_packet::Packet;

/// How a [`Transmit`] goes to its remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// As datagrams, in the lane for control.
    Control,
    /// As datagrams, in the lane for data.
    Data,
    /// As records of the byte stream of a flow.
    Stream(StreamId),
}

/// One of the places at which a core receives, by a number of who drives it: what came to one is
/// answered from there, for another would not be known to the remote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub u64);

/// What became of a unit that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It cannot be taken now, and nothing has changed.
    NotNow,
    /// It was written into the memory in which it leaves, and is among what may be sent next.
    Taken,
    /// It has left from where the application has it.
    Sent,
}

/// Who carries the streams of a core, for a unit that leaves from where the application has it.
pub trait StreamWriter {
    /// Sends one datagram of a stream whose bytes lie in two places; false when nothing of it was
    /// taken.
    fn write_split(&mut self, now: Time, stream: StreamId, head: &[u8], body: &[u8]) -> bool;
}

/// Something to send.
#[derive(Debug)]
pub struct Transmit {
    /// Which way.
    pub way: Way,
    /// From where: the place at which the remote is known to have come in; any will do when it is
    /// not said.
    pub local: Option<ListenerId>,
    /// To whom; the address of the peer's control port when it goes by a stream.
    pub remote: Address,
    /// What.
    pub payload: Payload,
    /// The congestion codepoint with which it is to leave (RFC 3168, 9331).
    pub ecn: Ecn,
}

/// The bytes of a [`Transmit`].
#[derive(Debug)]
pub enum Payload {
    /// One datagram.
    Bytes(Vec<u8>),
    /// A packet or train in the core's pool; give it back through [`crate::Core::transmitted`].
    Packet(Packet),
}

impl Payload {
    /// In bytes, of all segments together.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Packet(packet) => packet.payload_len(),
        }
    }
}
