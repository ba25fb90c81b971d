//! [`sendmmsg`]: the one place that calls it: packets of one length to one peer, each a message.
//!
//! Source: sendmmsg(2).

use crate::faults::{self, Call};
use crate::udp::SendError;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The most packets of a call.
const COUNT_MAX: usize = 64;

/// Sends the first packets of a train, each `segment` bytes, of which the last may be shorter, to
/// the address of `to_len` bytes at the front of `to`; gives how many bytes of it were taken, at
/// least one packet's.
///
/// # Errors
/// What the kernel says of the first packet; nothing was sent.
pub(crate) fn sendmmsg<A>(
    fd: BorrowedFd<'_>,
    to: (&A, libc::socklen_t),
    train: &[u8],
    segment: usize,
) -> Result<usize, SendError> {
    loop {
        match faults::before(Call::SendMsg).and_then(|()| send(fd, to, train, segment.max(1))) {
            Ok(taken) => return Ok(taken),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(SendError::of(error)),
        }
    }
}

fn send<A>(
    fd: BorrowedFd<'_>,
    (to, to_len): (&A, libc::socklen_t),
    train: &[u8],
    segment: usize,
) -> io::Result<usize> {
    assert!(to_len as usize <= size_of::<A>(), "an address is not longer than its place");
    let part = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut parts = [part; COUNT_MAX];
    // SAFETY: mmsghdr is made of integers and pointers, for which zero bytes are valid.
    let mut messages: [libc::mmsghdr; COUNT_MAX] = unsafe { std::mem::zeroed() };
    let mut count = 0;
    for ((packet, part), message) in train.chunks(segment).zip(&mut parts).zip(&mut messages) {
        *part = libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() };
        message.msg_hdr.msg_name = std::ptr::from_ref(to).cast_mut().cast();
        message.msg_hdr.msg_namelen = to_len;
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` messages point to parts, an address and bytes that are borrowed for
    // longer than the call, with their lengths beside them; the kernel only reads those, and writes
    // how much was sent into the messages, which are exclusively ours.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
    let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
    Ok((sent * segment).min(train.len()))
}
