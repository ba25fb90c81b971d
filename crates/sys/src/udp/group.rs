//! Groups: a socket joins one, from any source or from one only, and says how it sends to one.
//!
//! ```text
//!   bind(group:port) -> connect(source) -> join(group, source, interface)   the receiving end
//!   bind(local)      -> set_delivery(interface, hops, copies here)          the sending end
//! ```
//!
//! Source: RFC 3678, section 5 (the interface that is one for both families); RFC 4607 (source-
//! specific); ip(7), ipv6(7).

use super::Socket;
use crate::faults::{self, Call};
use crate::sockopt;
use socket2::{SockAddr, SockAddrStorage};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// What to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The group.
    pub group: IpAddr,
    /// The one source whose datagrams are wanted; routers bring no other's.
    pub source: Option<IpAddr>,
    /// The number of the interface where; 0 leaves the choice to the kernel's routes.
    pub interface: u32,
}

/// How datagrams to a group leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The number of the interface through which; 0 leaves the choice to the kernel's routes.
    pub interface: u32,
    /// How many hops they go; 1 stays on the link.
    pub hops: u8,
    /// Receivers on this host get them too.
    pub loops: bool,
}

/// `struct group_source_req`; its beginning is a `struct group_req`.
#[repr(C)]
struct Request {
    interface: u32,
    group: SockAddrStorage,
    source: SockAddrStorage,
}

/// The length of the part of a [`Request`] that is a `struct group_req`.
const GROUP_REQ_LEN: usize = std::mem::offset_of!(Request, source);

impl Socket {
    /// Joins a group; the socket leaves it when it is closed.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface or no route to the group; `ENOBUFS` when the host
    /// joins no more; `InvalidInput` when it is no group, or source and group differ in family;
    /// `AddrInUse` when this socket has joined it there already.
    pub fn join(&self, join: &Join) -> io::Result<()> {
        join_with(self.inner.as_fd(), self.v6, join)
    }

    /// Says how datagrams to groups leave; to be called before [`Socket::connect`] to one.
    ///
    /// # Errors
    /// `ENODEV` or `AddrNotAvailable` when there is no such interface.
    pub fn set_delivery(&self, delivery: &Delivery) -> io::Result<()> {
        set_delivery_of(&self.inner, self.v6, delivery)
    }
}

/// Has a socket of this family join a group.
pub(crate) fn join_with(fd: BorrowedFd<'_>, v6: bool, join: &Join) -> io::Result<()> {
    let families = join.source.map(|source| source.is_ipv6()).into_iter();
    let mismatch = families.chain([join.group.is_ipv6()]).any(|is_v6| is_v6 != v6);
    if !join.group.is_multicast() || mismatch {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    faults::before(Call::Join)?;
    let request = Request {
        interface: join.interface,
        group: storage(join.group),
        source: storage(join.source.unwrap_or(join.group)),
    };
    let level = if v6 { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
    let (name, len) = match join.source {
        Some(_) => (libc::MCAST_JOIN_SOURCE_GROUP, size_of::<Request>()),
        None => (libc::MCAST_JOIN_GROUP, GROUP_REQ_LEN),
    };
    sockopt::set_front(fd, level, name, &request, len)
}

/// Says how datagrams of a socket of this family leave to groups.
pub(crate) fn set_delivery_of(
    inner: &socket2::Socket,
    v6: bool,
    delivery: &Delivery,
) -> io::Result<()> {
    let hops = u32::from(delivery.hops);
    if v6 {
        inner.set_multicast_if_v6(delivery.interface)?;
        inner.set_multicast_hops_v6(hops)?;
        return inner.set_multicast_loop_v6(delivery.loops);
    }
    // The structure that names an interface by its number; the address in it is not looked at.
    let any = libc::in_addr { s_addr: 0 };
    let by_number = libc::ip_mreqn {
        imr_multiaddr: any,
        imr_address: any,
        imr_ifindex: delivery.interface.cast_signed(),
    };
    let len = size_of::<libc::ip_mreqn>();
    let (level, name) = (libc::IPPROTO_IP, libc::IP_MULTICAST_IF);
    sockopt::set_front(inner.as_fd(), level, name, &by_number, len)?;
    inner.set_multicast_ttl_v4(hops)?;
    inner.set_multicast_loop_v4(delivery.loops)
}

/// Whether the system has no room for one more of what was asked for (ENOBUFS): of groups, for one
/// more membership.
#[must_use]
pub fn is_no_buffers(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// A kernel that lacks the option lets more through, which who receives must expect anyway.
pub(crate) fn only_own(socket: &socket2::Socket, v6: bool) {
    let _ =
        if v6 { socket.set_multicast_all_v6(false) } else { socket.set_multicast_all_v4(false) };
}

fn storage(ip: IpAddr) -> SockAddrStorage {
    SockAddr::from(SocketAddr::new(ip, 0)).as_storage()
}
