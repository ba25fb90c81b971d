//! Receiving: a datagram, or a train that the kernel joined, with what it says about them.
//!
//! Invariant: whatever arrives, the call returns a length within the buffer and a source address.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::control::{Buffer, Message};
use super::{Socket, not_internet};
use crate::faults::{self, Call};
use crate::recvmsg::recvmsg;
use dacapo_base::Ecn;
use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recv {
    /// Bytes in the buffer.
    pub len: usize,
    /// Where they came from.
    pub from: SocketAddr,
    /// Present when the bytes are a train: datagrams of this length, of which the last may be
    /// shorter.
    pub segment_size: Option<u16>,
    /// The congestion codepoint; Not-ECT, too, where the socket does not say it
    /// ([`Config::marks`](super::Config::marks)).
    pub ecn: Ecn,
    /// The buffer was too short and the rest is gone.
    pub truncated: bool,
    /// Arrivals dropped for a full buffer before this one, since the bind, wrapping at 2^32; `None`
    /// while there were none.
    pub overflow_count: Option<u32>,
}

/// Why nothing was received.
#[derive(Debug)]
pub enum RecvError {
    /// Nothing is there; wait until the socket is readable.
    WouldBlock,
    /// A datagram sent earlier found no listener at the other end; more may be there to read.
    Refused,
    /// A datagram sent earlier found no route; more may be there to read.
    Unreachable,
    /// ICMP says that a datagram sent earlier was too long for the way (EMSGSIZE); more may be
    /// there to read.
    TooLarge,
    /// Another error of the kernel.
    Other(io::Error),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldBlock => f.write_str("nothing has arrived: wait until something has"),
            Self::Refused => f.write_str("nobody listens at the remote port"),
            Self::Unreachable => f.write_str("there is no route to the remote address"),
            Self::TooLarge => f.write_str("a datagram sent earlier was too long for the way"),
            Self::Other(error) => write!(f, "the kernel refused to receive: {error}"),
        }
    }
}

impl std::error::Error for RecvError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other(error) => Some(error),
            _ => None,
        }
    }
}

impl RecvError {
    pub(crate) fn of(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAGAIN) => Self::WouldBlock,
            Some(libc::ECONNREFUSED) => Self::Refused,
            Some(libc::EMSGSIZE) => Self::TooLarge,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN) => {
                Self::Unreachable
            }
            _ => Self::Other(error),
        }
    }
}

impl Socket {
    /// Receives what is next into `into`, which holds a whole train when it has 65,536 bytes.
    ///
    /// # Errors
    /// [`RecvError`]; an ICMP answer to something that was sent shows here, too.
    pub fn recv(&self, into: &mut [u8]) -> Result<Recv, RecvError> {
        let mut control = Buffer::new();
        let (arrived, from) = loop {
            let arrived = faults::before(Call::RecvMsg);
            match arrived.and_then(|()| recvmsg(self.inner.as_fd(), into, &mut control, 0)) {
                Ok(arrived) => break arrived,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(RecvError::of(error)),
            }
        };
        let mut recv = Recv {
            len: arrived.len.min(into.len()),
            from: from.as_socket().ok_or_else(|| RecvError::Other(not_internet()))?,
            segment_size: None,
            ecn: Ecn::NotEct,
            truncated: arrived.flags & libc::MSG_TRUNC != 0,
            overflow_count: None,
        };
        control.messages(arrived.control_len).for_each(|message| recv.note(&message));
        Ok(recv)
    }

    /// The same from a connected socket without GRO, once all is read that had come before it was
    /// connected: nothing is asked of the kernel but the bytes, which saves a quarter of the time.
    /// `into` holds any datagram when it has 65,536 bytes.
    ///
    /// # Errors
    /// As [`Socket::recv`].
    pub fn recv_from_peer(&self, into: &mut [u8], peer: SocketAddr) -> Result<Recv, RecvError> {
        let room = into.len();
        loop {
            let received = faults::before(Call::RecvMsg).and_then(|()| (&self.inner).read(into));
            match received {
                Ok(len) => {
                    return Ok(Recv {
                        len: len.min(room),
                        from: peer,
                        segment_size: None,
                        ecn: Ecn::NotEct,
                        truncated: false,
                        overflow_count: None,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(RecvError::of(error)),
            }
        }
    }
}

impl Recv {
    fn note(&mut self, message: &Message<'_>) {
        match (message.level, message.kind) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                self.segment_size = int(message.data)
                    .and_then(|size| u16::try_from(size).ok())
                    .filter(|&size| size > 0 && usize::from(size) < self.len);
            }
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                self.ecn = message.data.first().copied().map_or(Ecn::NotEct, Ecn::from_bits);
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                let class = int(message.data).and_then(|class| u8::try_from(class).ok());
                self.ecn = class.map_or(Ecn::NotEct, Ecn::from_bits);
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                self.overflow_count = int(message.data).map(i32::cast_unsigned);
            }
            _ => {}
        }
    }
}

fn int(data: &[u8]) -> Option<i32> {
    data.first_chunk::<4>().map(|bytes| i32::from_ne_bytes(*bytes))
}
