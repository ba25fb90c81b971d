//! [`Socket`]: one UDP socket with segmentation offload both ways.
//!
//! `sendmsg` and `recvmsg` with their ancillary data. A train of equal datagrams goes out in one
//! call (GSO) and arrives in one (GRO), where the kernel can; where it cannot, or is told not to,
//! the same datagrams go one call each.
//!
//! ```text
//!   send(to, |seg 0|seg 1|seg 2|s3|, segment_size)        recv -> Recv { len, segment_size, .. }
//!              one sendmsg + UDP_SEGMENT            |       one recvmsg + UDP_GRO
//!              or a sendmsg per segment          network    or a recvmsg per datagram
//! ```
//!
//! Invariants
//! - Non-blocking, and DF is set (`IP_PMTUDISC_PROBE`): the kernel never fragments, and no ICMP
//!   message, which anybody can forge, lowers what is sent.
//! - A train that the kernel refuses to segment is sent datagram by datagram; nothing is lost.
//! - An IPv6 socket takes IPv6 only, so one address has one form.
//! - Of groups a socket gets those that it has joined itself, whatever others here have joined.
//!
//! Source: udp(7), ip(7), ipv6(7), socket(7); Documentation/networking of Linux for UDP GSO.

pub(crate) mod control;
pub(crate) mod group;
mod recv;
mod send;

pub use dacapo_base::Ecn;
pub use group::{Delivery, Join, is_no_buffers};
pub use recv::{Recv, RecvError};
pub use send::{SendError, Sent};

use crate::faults::{self, Call};
use crate::sockopt;
use socket2::{Domain, Protocol, SockAddr, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// The most datagrams that one call hands to the kernel: every kernel with UDP GSO takes as many.
pub const SEGMENTS_MAX: usize = 64;

/// The most bytes that one call hands to the kernel as a train.
pub const TRAIN_BYTES_MAX: usize = 65_000;

/// What to ask the kernel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Send trains in one call; false forces a call per datagram.
    pub gso: bool,
    /// Receive trains in one call; false forces a call per datagram.
    pub gro: bool,
    /// Bytes of receive buffer to ask for; the kernel may give less.
    pub recv_buffer_bytes: usize,
    /// Bytes of send buffer to ask for; the kernel may give less.
    pub send_buffer_bytes: usize,
    /// Set `SO_REUSEADDR` before the bind, to share a port with sockets that have it set too.
    pub reuse: bool,
    /// Tell the congestion mark of what arrives; the kernel takes time for that, so not for who
    /// does not read it.
    pub marks: bool,
}

impl Default for Config {
    fn default() -> Self {
        let bytes = 4 * 1024 * 1024;
        Self {
            gso: true,
            gro: true,
            recv_buffer_bytes: bytes,
            send_buffer_bytes: bytes,
            reuse: false,
            marks: true,
        }
    }
}

/// What the kernel does for this socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// Trains go out in one call.
    pub gso: bool,
    /// Trains arrive in one call.
    pub gro: bool,
}

/// The buffers that the kernel gave, in bytes of payload and bookkeeping together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// For what has arrived and was not read.
    pub recv_bytes: usize,
    /// For what was sent and has not left.
    pub send_bytes: usize,
}

/// A UDP socket.
#[derive(Debug)]
pub struct Socket {
    inner: socket2::Socket,
    v6: bool,
    offloads: Offloads,
    buffers: Buffers,
    /// What ended a train half-way; the next send reports it.
    pending: Option<SendError>,
}

impl Socket {
    /// A socket at `local`; port 0 takes a free one.
    ///
    /// # Errors
    /// `AddrInUse`, `AddrNotAvailable`, `PermissionDenied` and others, as the kernel says.
    pub fn bind(local: SocketAddr, config: &Config) -> io::Result<Self> {
        let v6 = local.is_ipv6();
        let kind = Type::DGRAM.nonblocking().cloexec();
        let inner = socket2::Socket::new(Domain::for_address(local), kind, Some(Protocol::UDP))?;
        if v6 {
            inner.set_only_v6(true)?;
        }
        if config.reuse {
            inner.set_reuse_address(true)?;
        }
        group::only_own(&inner, v6);
        inner.bind(&SockAddr::from(local))?;
        never_fragment(inner.as_fd(), v6)?;
        if config.marks {
            report_marks(&inner, v6);
        }
        // Without it a datagram arrives all the same.
        let _ = sockopt::set(inner.as_fd(), libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
        let offloads = Offloads {
            gso: config.gso && has_gso(inner.as_fd()),
            gro: config.gro && enable_gro(inner.as_fd()),
        };
        let buffers = ask_for_buffers(&inner, config);
        Ok(Self { inner, v6, offloads, buffers, pending: None })
    }

    /// From now on takes datagrams of `remote` only and sends to it. What is in the receive buffer
    /// already stays there, from whomever it came.
    ///
    /// # Errors
    /// When there is no route, or none from the local address.
    pub fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        faults::before(Call::Connect)?;
        self.inner.connect(&SockAddr::from(remote))
    }

    /// Lets other sockets that have this set too bind to the same port, or no longer.
    ///
    /// Any process of this host could do so while it is set: set it only around a bind of one's
    /// own.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn set_reuse(&self, on: bool) -> io::Result<()> {
        self.inner.set_reuse_address(on)
    }

    /// The address of this end; after a connect with the address that the route gives.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()?.as_socket().ok_or_else(not_internet)
    }

    /// What the kernel does for this socket now; GSO goes off by itself when the kernel refuses it.
    #[must_use]
    pub fn offloads(&self) -> Offloads {
        self.offloads
    }

    /// From now on trains arrive in one call, where the kernel can.
    pub fn enable_gro(&mut self) {
        self.offloads.gro = enable_gro(self.inner.as_fd());
    }

    /// The buffers that the kernel gave.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// Arrivals dropped so far because the receive buffer was full, wrapping at 2^32; a train that
    /// arrived as one counts once. `None` when the kernel does not tell.
    #[must_use]
    pub fn drops(&self) -> Option<u32> {
        const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;
        let mut words = [0; DROPS + 1];
        let fd = self.inner.as_fd();
        let count = sockopt::words_into(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words).ok()?;
        (count > DROPS).then(|| words[DROPS].cast_unsigned())
    }

    /// The longest datagram in bytes that fits the path of a connected socket, as far as the kernel
    /// knows it (that is the first link's limit); `None` when the socket is not connected.
    #[must_use]
    pub fn datagram_len_max(&self) -> Option<usize> {
        let (level, name, headers) = if self.v6 {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU, 40 + 8)
        } else {
            (libc::IPPROTO_IP, libc::IP_MTU, 20 + 8)
        };
        let mtu = sockopt::int(self.inner.as_fd(), level, name).ok()?;
        usize::try_from(mtu).ok()?.checked_sub(headers)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

pub(crate) fn not_internet() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the address is not an internet address")
}

pub(crate) fn never_fragment(fd: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    if v6 {
        let probe = libc::IPV6_PMTUDISC_PROBE;
        sockopt::set(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, probe)
    } else {
        let probe = libc::IP_PMTUDISC_PROBE;
        sockopt::set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, probe)
    }
}

/// A datagram without its mark is good enough.
fn report_marks(socket: &socket2::Socket, v6: bool) {
    let _ = if v6 { socket.set_recv_tclass_v6(true) } else { socket.set_recv_tos_v4(true) };
}

fn has_gso(fd: BorrowedFd<'_>) -> bool {
    sockopt::int(fd, libc::SOL_UDP, libc::UDP_SEGMENT).is_ok()
}

fn enable_gro(fd: BorrowedFd<'_>) -> bool {
    sockopt::set(fd, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

fn ask_for_buffers(socket: &socket2::Socket, config: &Config) -> Buffers {
    // The kernel cuts the wish to its limit without an error; what it gave is read back. It counts
    // bookkeeping too and shows twice the wish (socket(7)), hence the halves.
    let _ = socket.set_recv_buffer_size(config.recv_buffer_bytes);
    let _ = socket.set_send_buffer_size(config.send_buffer_bytes);
    Buffers {
        recv_bytes: socket.recv_buffer_size().unwrap_or(0) / 2,
        send_bytes: socket.send_buffer_size().unwrap_or(0) / 2,
    }
}
