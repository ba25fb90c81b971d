//! [`recvmsg`]: the one place that calls it.
//!
//! Source: recvmsg(2).

use crate::udp::control::Buffer;
use socket2::{SockAddr, SockAddrStorage};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What one `recvmsg` returned.
pub(crate) struct Arrived {
    /// Bytes that came; more than the buffer has room for with `MSG_TRUNC`.
    pub len: usize,
    /// Bytes of ancillary data.
    pub control_len: usize,
    /// `MSG_TRUNC` and others.
    pub flags: i32,
}

/// Receives one message of a socket into `into`, what the kernel says of it into `control`.
pub(crate) fn recvmsg(
    fd: BorrowedFd<'_>,
    into: &mut [u8],
    control: &mut Buffer,
    flags: i32,
) -> io::Result<(Arrived, SockAddr)> {
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let room = control.room();
    // SAFETY: msghdr is made of integers and pointers, for which zero bytes are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = room.as_mut_ptr().cast();
    message.msg_controllen = room.len() as _;
    let receive = |storage: *mut SockAddrStorage, len: *mut libc::socklen_t| {
        message.msg_name = storage.cast();
        // SAFETY: try_init hands over a valid pointer to the length of its storage.
        message.msg_namelen = unsafe { *len };
        // SAFETY: name, part and control point to memory that is exclusively borrowed for the
        // call, with its length beside it; any bytes are valid in all three.
        let count = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the same pointer as above.
        unsafe { *len = message.msg_namelen };
        Ok(Arrived {
            len: count,
            control_len: message.msg_controllen as usize,
            flags: message.msg_flags,
        })
    };
    // SAFETY: on success the kernel wrote an address into the storage, and its length into `len`.
    unsafe { SockAddr::try_init(receive) }
}
