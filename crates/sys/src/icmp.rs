//! What ICMP says of packets that were sent: which destination, and why they did not get there.
//!
//! The error queue of a socket that is not connected, where errno alone would not say of whom it
//! speaks. Whoever guesses addresses and ports can forge such a message, so it is a hint why nobody
//! answers, and never the end of anything.
//!
//! ```text
//!   sendmsg -> router: ICMP unreachable -> error queue -> next() -> Reported { to, why }
//! ```
//!
//! Invariant: where it is on, a call of the socket may fail once with the errno of such a message;
//! what was to be sent then was not, and may be tried again.
//!
//! Source: ip(7) `IP_RECVERR`, ipv6(7) `IPV6_RECVERR`; `struct sock_extended_err` of the Linux
//! UAPI.

#![deny(clippy::indexing_slicing, clippy::panic, clippy::arithmetic_side_effects)]

use crate::recvmsg::recvmsg;
use crate::sockopt;
use crate::udp::control::{Buffer, Message};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// Why a packet did not get where it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nobody listens there, or the host does not know the protocol.
    Refused,
    /// There is no way to it.
    Unreachable,
    /// It was too long for the way.
    TooLong {
        /// The longest IP packet that the next link takes, bytes; 0 where that is not said.
        mtu: u32,
    },
    /// A filter on the way forbids it.
    Denied,
    /// Something else, by its number.
    Other(i32),
}

/// A message about a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Where the packet was sent.
    pub to: SocketAddr,
    /// What became of it.
    pub why: Why,
}

/// Has the kernel keep such messages for [`next`].
///
/// # Errors
/// When the kernel does not know the option.
pub fn enable(fd: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    let (level, name) = if v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
    } else {
        (libc::IPPROTO_IP, libc::IP_RECVERR)
    };
    sockopt::set(fd, level, name, 1)
}

/// The next message; `None` when there is none.
#[must_use]
pub fn next(fd: BorrowedFd<'_>) -> Option<Reported> {
    let (mut control, mut packet) = (Buffer::new(), [0; 64]);
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    let (arrived, to) = recvmsg(fd, &mut packet, &mut control, flags).ok()?;
    let why = control.messages(arrived.control_len).find_map(|message| why(&message))?;
    Some(Reported { to: to.as_socket()?, why })
}

fn why(message: &Message<'_>) -> Option<Why> {
    let is_ours = matches!(
        (message.level, message.kind),
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
    );
    let word = |at: usize| {
        let bytes = message.data.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_ne_bytes(*bytes))
    };
    let errno = word(0).filter(|_| is_ours)?.cast_signed();
    Some(match errno {
        // A protocol that the host does not know comes as ENOPROTOOPT over IPv4, EPROTO over IPv6.
        libc::ECONNREFUSED | libc::ENOPROTOOPT | libc::EPROTO => Why::Refused,
        libc::EMSGSIZE => Why::TooLong { mtu: word(8)? },
        libc::EACCES | libc::EPERM => Why::Denied,
        libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EHOSTDOWN | libc::ENONET => Why::Unreachable,
        other => Why::Other(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{Config, Socket};
    use dacapo_base::{Ecn, patience};
    use std::net::Ipv4Addr;
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    #[test]
    fn a_port_where_nobody_listens_is_reported_with_its_address() {
        let here = (Ipv4Addr::LOCALHOST, 0).into();
        let gone = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = gone.local_addr().unwrap();
        drop(gone);
        let mut socket = Socket::bind(here, &Config::default()).unwrap();
        enable(socket.as_fd(), false).unwrap();
        assert_eq!(next(socket.as_fd()), None);
        socket.send(Some(to), b"anybody?", None, Ecn::NotEct).unwrap();
        // The answer may come a moment after the call returns.
        let reported = patience::until(Instant::now, Duration::from_secs(60), || {
            next(socket.as_fd()).or_else(|| {
                std::thread::sleep(Duration::from_millis(1));
                None
            })
        });
        assert_eq!(reported, Some(Reported { to, why: Why::Refused }));
        assert_eq!(next(socket.as_fd()), None);
    }

    #[test]
    fn messages_of_other_kinds_and_short_ones_say_nothing() {
        let data = [&libc::EMSGSIZE.to_ne_bytes()[..], &[0; 4], &1_280_u32.to_ne_bytes()].concat();
        let of_ip =
            |data: &[u8]| why(&Message { level: libc::IPPROTO_IP, kind: libc::IP_RECVERR, data });
        assert_eq!(of_ip(&data), Some(Why::TooLong { mtu: 1_280 }));
        assert_eq!(of_ip(data.get(..11).unwrap()), None);
        assert_eq!(of_ip(&[1, 2, 3]), None);
        let of_another = Message { level: libc::SOL_SOCKET, kind: libc::IP_RECVERR, data: &data };
        assert_eq!(why(&of_another), None);
        let of = |errno: i32| of_ip(&errno.to_ne_bytes());
        assert_eq!(of(libc::EHOSTUNREACH), Some(Why::Unreachable));
        assert_eq!(of(libc::EACCES), Some(Why::Denied));
        assert_eq!(of(libc::EPROTO), Some(Why::Refused));
        assert_eq!(of(libc::EIO), Some(Why::Other(libc::EIO)));
    }
}
