//! [`Socket`]: frames of one Ethertype on one Ethernet interface; [`Tap`]: a look at all frames.
//!
//! Packet sockets. [`Socket`] gets and gives what is between Ethernet header and check sequence;
//! the kernel writes and reads the header. [`Tap`] sees whole frames, both ways.
//!
//! ```text
//!   send(to, payload) -> kernel: | to 6 | own 6 | ethertype 2 | payload … |
//!   recv <- payload, padded to 46 bytes where the sender's card did so; also of frames for others
//!     a call for each: copied into the caller's buffer
//!     by a ring (ring.rs): lent where the kernel has put it, until the next is asked for
//! ```
//!
//! Invariants: non-blocking, close-on-exec; bound to its interface before anything can come in.
//!
//! Source: packet(7).

mod inlet;
mod ring;

use crate::faults::{self, Call};
use crate::poll::owned;
use crate::sendmmsg::sendmmsg;
use crate::udp::{RecvError, SendError};
pub use inlet::Inlet;
use ring::Ring;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of receive buffer that the kernel is asked for; it may give less.
const BUFFER_LEN: i32 = 8 << 20;

/// The address of an Ethernet interface, or of a group of them.
pub type Address = [u8; 6];

/// A frame that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recv {
    /// Bytes of it that are there.
    pub len: usize,
    /// Whose they are.
    pub from: Address,
    /// Whether they are for this host, by its own address or by a group's; false of what only
    /// passes by, and of what this host has sent itself.
    pub is_for_us: bool,
    /// Whether this host has sent it, which a [`Tap`] sees.
    pub is_sent: bool,
    /// It was longer than its place, and the rest is gone.
    pub truncated: bool,
}

impl Recv {
    /// A frame of which `room` bytes were kept, and of which there were `len`.
    fn of(from: &libc::sockaddr_ll, room: usize, len: usize) -> Self {
        let [a, b, c, d, e, f, ..] = from.sll_addr;
        let for_us = [libc::PACKET_HOST, libc::PACKET_BROADCAST, libc::PACKET_MULTICAST];
        Self {
            len: len.min(room),
            from: [a, b, c, d, e, f],
            is_for_us: for_us.contains(&from.sll_pkttype),
            is_sent: from.sll_pkttype == libc::PACKET_OUTGOING,
            truncated: len > room,
        }
    }
}

/// A socket for frames of one Ethertype on one interface.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    interface: i32,
    ethertype: u16,
    ring: Option<Ring>,
}

impl Socket {
    /// A socket at the interface of this number.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW, `ENODEV` when there is no such interface.
    pub fn open(interface: u32, ethertype: u16) -> io::Result<Self> {
        let (fd, interface) = (unbound(libc::SOCK_DGRAM)?, number(interface)?);
        ask_for_buffer(fd.as_fd());
        bind(fd.as_fd(), interface, ethertype)?;
        Ok(Self { fd, interface, ethertype, ring: None })
    }

    /// The same, whose frames come in by a ring of 4 MiB; payloads of up to so many bytes whole.
    ///
    /// # Errors
    /// As [`Socket::open`]; and what the kernel says where it gives no ring: `ENOMEM`, `EINVAL`.
    pub fn with_ring(interface: u32, ethertype: u16, payload_len_max: usize) -> io::Result<Self> {
        let (fd, interface) = (unbound(libc::SOCK_DGRAM)?, number(interface)?);
        let ring = Some(Ring::open(fd.as_fd(), payload_len_max)?);
        bind(fd.as_fd(), interface, ethertype)?;
        Ok(Self { fd, interface, ethertype, ring })
    }

    /// By a ring where the kernel gives one, else without; which it is, and why.
    ///
    /// # Errors
    /// As [`Socket::open`].
    pub fn open_either(
        interface: u32,
        ethertype: u16,
        payload_len_max: usize,
    ) -> io::Result<(Self, Inlet)> {
        match Self::with_ring(interface, ethertype, payload_len_max) {
            Ok(socket) => Ok((socket, Inlet::Ring)),
            Err(error) => Ok((Self::open(interface, ethertype)?, Inlet::Calls(error))),
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
    pub fn send(&self, to: Address, payload: &[u8]) -> Result<(), SendError> {
        let to = link_address(self.interface, self.ethertype, to);
        loop {
            let sent = faults::before(Call::SendMsg).and_then(|()| self.send_to(&to, payload));
            match sent {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SendError::of(error)),
            }
        }
    }

    /// Sends payloads of `segment` bytes, of which the last may be shorter, in one call; gives the
    /// bytes that it took, at least one packet's.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
    pub fn send_train(
        &self,
        to: Address,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, SendError> {
        if train.len() <= segment {
            return self.send(to, train).map(|()| train.len());
        }
        let to = link_address(self.interface, self.ethertype, to);
        let to_len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        sendmmsg(self.fd.as_fd(), (&to, to_len), train, segment)
    }

    fn send_to(&self, to: &libc::sockaddr_ll, payload: &[u8]) -> io::Result<()> {
        // SAFETY: both pointers are to borrowed memory that outlives the call, with its length
        // beside it; the kernel only reads.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                payload.as_ptr().cast(),
                payload.len(),
                0,
                std::ptr::from_ref(to).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The next frame: its payload is in the buffer, or where [`Socket::payload`] says.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv(&mut self, into: &mut [u8]) -> Result<Recv, RecvError> {
        let lent = self.ring.as_mut().and_then(Ring::advance);
        // A socket with a ring has no frames in its queue, but may have to say that its interface
        // is gone.
        lent.map_or_else(|| recv(self.fd.as_fd(), into), Ok)
    }

    /// The payload of what [`Socket::recv`] gave last, with the same buffer.
    #[must_use]
    pub fn payload<'a>(&'a self, recv: &Recv, into: &'a [u8]) -> &'a [u8] {
        match &self.ring {
            Some(ring) => ring.payload(),
            None => into.get(..recv.len).unwrap_or_default(),
        }
    }

    /// Whether the kernel has said, with the frames of a ring, that it dropped others since this
    /// was asked the last time: then there is something to [`Socket::take_drops`].
    pub fn take_has_lost(&mut self) -> bool {
        self.ring.as_mut().is_some_and(Ring::take_has_lost)
    }

    /// Frames that were dropped for a full ring or buffer since this was asked the last time.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn take_drops(&self) -> io::Result<u32> {
        take_drops(self.fd.as_fd())
    }

    /// Has the interface take frames to a group, too; it is left when the socket is closed.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn join(&self, group: Address) -> io::Result<()> {
        let [a, b, c, d, e, f] = group;
        let request = libc::packet_mreq {
            mr_ifindex: self.interface,
            mr_type: libc::PACKET_MR_MULTICAST as libc::c_ushort,
            mr_alen: 6,
            mr_address: [a, b, c, d, e, f, 0, 0],
        };
        let (level, name) = (libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP);
        let len = size_of::<libc::packet_mreq>();
        crate::sockopt::set_front(self.fd.as_fd(), level, name, &request, len)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A look at every frame of an interface, whole, in both directions.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
}

impl Tap {
    /// A tap at the interface of this number; 0 is all of them.
    ///
    /// # Errors
    /// As [`Socket::open`].
    pub fn open(interface: u32) -> io::Result<Self> {
        let (fd, interface) = (unbound(libc::SOCK_RAW)?, number(interface)?);
        ask_for_buffer(fd.as_fd());
        bind(fd.as_fd(), interface, libc::ETH_P_ALL as u16)?;
        Ok(Self { fd })
    }

    /// Frames that were dropped for a full buffer since this was asked the last time.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn take_drops(&self) -> io::Result<u32> {
        take_drops(self.fd.as_fd())
    }

    /// The next frame, from its link header on.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv(&self, into: &mut [u8]) -> Result<Recv, RecvError> {
        recv(self.fd.as_fd(), into)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn number(interface: u32) -> io::Result<i32> {
    i32::try_from(interface).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// A packet socket that gets nothing before it is bound: until then its protocol is none.
fn unbound(kind: i32) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes numbers and returns a new descriptor or -1.
    owned(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })
}

fn bind(fd: BorrowedFd<'_>, interface: i32, ethertype: u16) -> io::Result<()> {
    let at = link_address(interface, ethertype, [0; 6]);
    // SAFETY: the pointer is to an address that outlives the call, with its length beside it; the
    // kernel only reads.
    let result = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const at).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn take_drops(fd: BorrowedFd<'_>) -> io::Result<u32> {
    // A `struct tpacket_stats`: packets, and drops among them.
    let mut words = [0; 2];
    crate::sockopt::words_into(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut words)?;
    Ok(words[1].cast_unsigned())
}

/// Beyond the limit of the system where that is allowed, else up to it: its limit is a hundred
/// frames, as the kernel counts them.
fn ask_for_buffer(fd: BorrowedFd<'_>) {
    let set = |name| crate::sockopt::set(fd, libc::SOL_SOCKET, name, BUFFER_LEN);
    let _ = set(libc::SO_RCVBUFFORCE).or_else(|_| set(libc::SO_RCVBUF));
}

fn link_address(interface: i32, ethertype: u16, address: Address) -> libc::sockaddr_ll {
    let [a, b, c, d, e, f] = address;
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: ethertype.to_be(),
        sll_ifindex: interface,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [a, b, c, d, e, f, 0, 0],
    }
}

fn recv(fd: BorrowedFd<'_>, into: &mut [u8]) -> Result<Recv, RecvError> {
    loop {
        match faults::before(Call::RecvMsg).and_then(|()| recv_from(fd, into)) {
            Ok(recv) => return Ok(recv),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(RecvError::of(error)),
        }
    }
}

fn recv_from(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<Recv> {
    let mut from = link_address(0, 0, [0; 6]);
    let mut from_len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the buffer and the address are exclusively borrowed for the call, with their lengths
    // beside them; any bytes are valid in both. With MSG_TRUNC the call returns the whole length.
    let len = unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            into.as_mut_ptr().cast(),
            into.len(),
            libc::MSG_TRUNC,
            (&raw mut from).cast(),
            &raw mut from_len,
        )
    };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    Ok(Recv::of(&from, into.len(), len))
}
