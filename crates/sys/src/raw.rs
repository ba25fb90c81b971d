//! [`Socket`]: packets of one protocol directly over IP, without UDP or TCP.
//!
//! A raw socket of IPv4 or IPv6; the kernel writes the IP header of what is sent, and that of what
//! comes is taken off. Needs the right to open it (CAP_NET_RAW).
//!
//! ```text
//!   send(to, payload) -> kernel: | IP header, protocol N | payload |
//!   recv <- | IPv4 header | payload |    the header is in the buffer, `Recv::payload` says where
//!   recv <- | payload |                  IPv6: the kernel keeps it
//! ```
//!
//! Invariants
//! - Non-blocking, close-on-exec; DF is set, so nothing is fragmented.
//! - The ports of addresses are 0.
//! - Over IPv4 a socket gets what is sent to groups that it has joined itself; over IPv6 the kernel
//!   gives it what any socket of this host has joined, too.
//!
//! Source: raw(7), ip(7), ipv6(7); RFC 791 section 3.1.

#![deny(clippy::indexing_slicing, clippy::panic, clippy::arithmetic_side_effects)]

use crate::faults::{self, Call};
use crate::recvmsg::recvmsg;
use crate::sendmmsg::sendmmsg;
use crate::udp::control::Buffer;
use crate::udp::group::{join_with, only_own, set_delivery_of};
use crate::udp::{Delivery, Join, RecvError, SendError, never_fragment, not_internet};
use socket2::{Domain, Protocol, SockAddr, Type};
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes of each buffer that the kernel is asked for; it may give less.
const BUFFER_LEN: usize = 4 << 20;

/// A packet that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recv {
    /// Where in the buffer what follows the IP header is.
    pub payload: Range<usize>,
    /// Where it came from.
    pub from: SocketAddr,
    /// The buffer was too short and the rest is gone.
    pub truncated: bool,
}

/// A raw socket of one protocol.
#[derive(Debug)]
pub struct Socket {
    inner: socket2::Socket,
    v6: bool,
}

impl Socket {
    /// A socket for packets of this protocol to `local`; the port of it is not looked at.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW, `AddrNotAvailable` when the address is not of this
    /// host, and others, as the kernel says.
    pub fn bind(local: SocketAddr, protocol: u8) -> io::Result<Self> {
        let v6 = local.is_ipv6();
        let kind = Type::RAW.nonblocking().cloexec();
        let protocol = Protocol::from(i32::from(protocol));
        let inner = socket2::Socket::new(Domain::for_address(local), kind, Some(protocol))?;
        only_own(&inner, v6);
        let mut local = local;
        local.set_port(0);
        inner.bind(&SockAddr::from(local))?;
        never_fragment(inner.as_fd(), v6)?;
        // The kernel cuts the wish to its limit without an error.
        let _ = inner.set_recv_buffer_size(BUFFER_LEN);
        let _ = inner.set_send_buffer_size(BUFFER_LEN);
        Ok(Self { inner, v6 })
    }

    /// The address of this end, with port 0.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let mut local = self.inner.local_addr()?.as_socket().ok_or_else(not_internet)?;
        // Over IPv6 the kernel says the protocol there.
        local.set_port(0);
        Ok(local)
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
    pub fn send(&self, to: SocketAddr, payload: &[u8]) -> Result<(), SendError> {
        let mut to = to;
        // Over IPv6 a port is taken for the protocol, and another than the socket's is refused.
        to.set_port(0);
        let to = SockAddr::from(to);
        loop {
            let sent =
                faults::before(Call::SendMsg).and_then(|()| self.inner.send_to(payload, &to));
            match sent {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SendError::of(error)),
            }
        }
    }

    /// Sends packets of `segment` bytes, of which the last may be shorter, in one call; gives the
    /// bytes that it took, at least one packet's.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
    pub fn send_train(
        &self,
        to: SocketAddr,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, SendError> {
        if train.len() <= segment {
            return self.send(to, train).map(|()| train.len());
        }
        let mut to = to;
        to.set_port(0);
        let to = SockAddr::from(to);
        let to_len = to.len();
        sendmmsg(self.inner.as_fd(), (&to.as_storage(), to_len), train, segment)
    }

    /// Receives the next packet into `into`, which holds any when it has 65,536 bytes.
    ///
    /// # Errors
    /// [`RecvError`]; one whose IP header is not to be read is `RecvError::Other`.
    pub fn recv(&self, into: &mut [u8]) -> Result<Recv, RecvError> {
        let room = into.len();
        let (arrived, from) = loop {
            let received = faults::before(Call::RecvMsg)
                .and_then(|()| recvmsg(self.inner.as_fd(), into, &mut Buffer::new(), 0));
            match received {
                Ok(received) => break received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(RecvError::of(error)),
            }
        };
        let mut from = from.as_socket().ok_or_else(|| RecvError::Other(not_internet()))?;
        from.set_port(0);
        let end = arrived.len.min(room);
        let start = if self.v6 { 0 } else { header_len(into.get(..end).unwrap_or_default()) };
        let truncated = arrived.flags & libc::MSG_TRUNC != 0;
        Ok(Recv { payload: start.min(end)..end, from, truncated })
    }

    /// Joins a group; the socket leaves it when it is closed.
    ///
    /// # Errors
    /// As [`crate::udp::Socket::join`].
    pub fn join(&self, join: &Join) -> io::Result<()> {
        join_with(self.inner.as_fd(), self.v6, join)
    }

    /// Says how packets to groups leave.
    ///
    /// # Errors
    /// As [`crate::udp::Socket::set_delivery`].
    pub fn set_delivery(&self, delivery: &Delivery) -> io::Result<()> {
        set_delivery_of(&self.inner, self.v6, delivery)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// The length of the IPv4 header before a payload: its low four bits count words of four bytes. Of
/// what is no header all is passed over.
fn header_len(packet: &[u8]) -> usize {
    const LEN_MIN: usize = 20;
    match packet.first() {
        Some(first) if first >> 4 == 4 => {
            usize::from(first & 0xF).saturating_mul(4).clamp(LEN_MIN, packet.len().max(LEN_MIN))
        }
        _ => packet.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_begins_behind_the_ipv4_header_whatever_its_length() {
        assert_eq!(header_len(&[0x45; 60]), 20);
        assert_eq!(header_len(&[0x4F; 80]), 60);
        for not_one in [&[][..], &[0x65; 40], &[0x05; 40]] {
            assert_eq!(header_len(not_one), not_one.len());
        }
        // Shorter than it says: `recv` cuts at the end.
        assert_eq!(header_len(&[0x4F; 30]), 30);
        assert_eq!(header_len(&[0x40; 30]), 20);
    }
}
