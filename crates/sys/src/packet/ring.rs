//! [`Ring`]: the frames of a packet socket in memory that is shared with the kernel.
//!
//! ```text
//!   slot | status | lengths, places | address | … payload …      a power of two of bytes each
//!   kernel:  a free slot -> copies the frame in -> status: ours
//!   advance: the slot that was lent -> status: the kernel's; the next, if it is ours, is lent
//! ```
//!
//! A frame for which no slot is free is dropped by the kernel, which counts it. The socket's
//! descriptor is readable while a slot is filled.
//!
//! Invariants: a slot is read only while its status says that it is ours, and given back once; what
//! the kernel says of lengths and places is cut to the slot; slots are taken in order; the memory
//! is as long as it was asked for, whatever comes.
//!
//! Source: packet(7); Documentation/networking/packet_mmap.rst of Linux. TPACKET_V2, and not V3:
//! that gives a block that is not full away after a millisecond at the earliest.

use super::Recv;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a ring: a full window of XTP (1 MiB) in frames of 1,500 bytes takes 700 of its 2,048
/// slots. With a quarter of it 0.3 % of a stream were dropped, with twice as many slots nothing was
/// better.
pub const LEN: usize = 4 << 20;

/// Bytes of a slot before the payload, rounded up: the head of TPACKET_V2, the address, and what
/// the kernel leaves free for a link header.
const HEAD_LEN: usize = 128;
/// Where in a slot the address of the sender is.
const ADDRESS_AT: usize = size_of::<libc::tpacket2_hdr>();
/// The bytes that the kernel takes in one piece, where a slot is not longer.
const BLOCK_LEN: usize = 1 << 16;
/// `TPACKET_V2` of `enum tpacket_versions`.
const VERSION: i32 = 1;

/// Slots with frames.
#[derive(Debug)]
pub(super) struct Ring {
    base: NonNull<u8>,
    slot_len: usize,
    /// A power of two.
    slot_count: usize,
    /// The slot that is lent, or is looked at next.
    at: usize,
    /// Where in the lent slot the payload begins, and its length.
    lent: Option<(usize, usize)>,
    has_lost: bool,
}

// SAFETY: the mapping belongs to no thread, and all that is in it is reached through this value.
unsafe impl Send for Ring {}

impl Ring {
    /// Has a socket put its frames into a ring of [`LEN`] bytes, payloads of up to so many bytes
    /// whole. To be called before the socket is bound.
    ///
    /// # Errors
    /// `InvalidInput` when two slots are longer than the ring; what the kernel says: `EINVAL` or
    /// `ENOPROTOOPT` where it has no such rings, `ENOMEM` without memory for one.
    pub fn open(fd: BorrowedFd<'_>, payload_len_max: usize) -> io::Result<Self> {
        let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
        if payload_len_max > LEN / 2 - HEAD_LEN {
            return Err(wrong());
        }
        let slot_len = (payload_len_max + HEAD_LEN).next_power_of_two();
        let (block_len, slot_count) = (slot_len.max(BLOCK_LEN), LEN / slot_len);
        let int = |value| libc::c_uint::try_from(value).map_err(|_| wrong());
        let request = libc::tpacket_req {
            tp_block_size: int(block_len)?,
            tp_block_nr: int(LEN / block_len)?,
            tp_frame_size: int(slot_len)?,
            tp_frame_nr: int(slot_count)?,
        };
        crate::sockopt::set(fd, libc::SOL_PACKET, libc::PACKET_VERSION, VERSION)?;
        let (name, request_len) = (libc::PACKET_RX_RING, size_of::<libc::tpacket_req>());
        crate::sockopt::set_front(fd, libc::SOL_PACKET, name, &request, request_len)?;
        Ok(Self { base: map(fd)?, slot_len, slot_count, at: 0, lent: None, has_lost: false })
    }

    /// Gives the lent slot back, and lends the next, when there is a frame in it.
    pub fn advance(&mut self) -> Option<Recv> {
        if self.lent.take().is_some() {
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.at = (self.at + 1) & (self.slot_count - 1);
        }
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        self.has_lost |= status & libc::TP_STATUS_LOSING != 0;
        // SAFETY: the slot is ours until it is given back, so nobody writes it. Head and address
        // are inside it, because it is longer than HEAD_LEN; it begins at a multiple of its length,
        // which aligns the head, and the address is read as if it were not aligned. Any bytes are
        // valid in both.
        let (head, from) = unsafe {
            let head = self.slot().cast::<libc::tpacket2_hdr>().read();
            let from = self.slot().add(ADDRESS_AT).cast::<libc::sockaddr_ll>().read_unaligned();
            (head, from)
        };
        let (start, len) = place(&head, self.slot_len);
        self.lent = Some((start, len));
        Some(Recv::of(&from, len, head.tp_len as usize))
    }

    /// The payload in the lent slot.
    pub fn payload(&self) -> &[u8] {
        let Some((start, len)) = self.lent else { return &[] };
        // SAFETY: the slot is ours until `advance` gives it back, which takes an exclusive borrow,
        // so nobody writes it while this one lasts; start and length were cut to the slot.
        unsafe { std::slice::from_raw_parts(self.slot().add(start), len) }
    }

    /// Whether the kernel has said since the last call that it dropped frames.
    pub fn take_has_lost(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    fn slot(&self) -> *mut u8 {
        // SAFETY: `at` is below the number of slots, all of which are inside the mapping.
        unsafe { self.base.as_ptr().add(self.at * self.slot_len) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the status is the first word of a slot, which begins at a multiple of its length;
        // the kernel and this value use it as one word; it is mapped as long as `self` is there.
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }
}

/// Where in its slot a payload begins, and its length, whatever its head says.
fn place(head: &libc::tpacket2_hdr, slot_len: usize) -> (usize, usize) {
    let start = usize::from(head.tp_mac).min(slot_len);
    (start, (head.tp_snaplen as usize).min(slot_len - start))
}

/// Maps the ring that a socket has been given.
fn map(fd: BorrowedFd<'_>) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses the place, so the call changes no mapping that there is; the
    // descriptor is open, and the length is that of the ring that its socket has, or it fails.
    let base = unsafe {
        let flags = libc::MAP_SHARED;
        libc::mmap(std::ptr::null_mut(), LEN, access, flags, fd.as_raw_fd(), 0)
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing borrows from it any more. The
        // call cannot fail for what mmap has returned.
        unsafe { libc::munmap(self.base.as_ptr().cast(), LEN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_lies_names_no_byte_outside_its_slot() {
        // SAFETY: a head is made of integers, for which zero bytes are valid.
        let zero: libc::tpacket2_hdr = unsafe { std::mem::zeroed() };
        for (tp_mac, tp_snaplen, expected) in [
            (80, 1_500, (80, 1_500)),
            (80, 1_968, (80, 1_968)),
            (80, 1_969, (80, 1_968)),
            (0, u32::MAX, (0, 2_048)),
            (2_048, 1, (2_048, 0)),
            (u16::MAX, u32::MAX, (2_048, 0)),
        ] {
            let head = libc::tpacket2_hdr { tp_mac, tp_snaplen, ..zero };
            assert_eq!(place(&head, 2_048), expected);
        }
    }
}
