//! [`Link`]: the bytes of one stream, through memory and a doorbell.
//!
//! ```text
//!   dialer    connect ---> makes memory, gives its descriptor ---> listener maps it
//!             write -> ring -> (asleep? ring the doorbell) -------> hear -> read
//!   gone      <---- the doorbell's connection ends with the process or with the drop of the link
//! ```
//!
//! Decoder: a descriptor is mapped when it is one, is sealed and has a length that rings have; what
//! stands in the memory is judged by [`super::ring`]. Anything else is an error of this link.
//!
//! Invariants
//! - The end comes after the bytes before it: that the other end has closed, or is gone, is found
//!   out first, and then the ring is looked at once more.
//! - A doorbell is heard before its end says that it sleeps, so none that is rung for that sleep is
//!   taken for an older one.
//! - A doorbell that cannot be rung ends the link, so nobody sleeps on for want of one.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::name::{self, Refusal};
use super::ring::{self, CAPACITY_MAX, CAPACITY_MIN, End, Memory, Moved, Rings};
use crate::stream::Connection;
use dacapo_sys::doorbell::{Doorbell, Gift, Heard};
use dacapo_sys::memory::{Refused, SharedMemory};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

impl Memory for SharedMemory {
    fn load(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    fn store(&self, at: usize, word: u64) {
        self.word(at).store(word, Ordering::Release);
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn copy_in(&self, at: usize, bytes: &[u8]) {
        SharedMemory::copy_in(self, at, bytes);
    }

    fn copy_out(&self, at: usize, into: &mut [u8]) {
        SharedMemory::copy_out(self, at, into);
    }
}

/// One end of a stream.
#[derive(Debug)]
pub struct Link {
    doorbell: Doorbell,
    /// `None` at the listener until the memory came.
    rings: Option<Rings<SharedMemory>>,
    /// The other end rings no more.
    is_gone: bool,
    /// Why this end is over, told by the next call.
    failure: Option<io::Error>,
}

impl Link {
    /// Connects to who serves at `remote` on this host, with rings of `ring_bytes` bytes.
    ///
    /// # Errors
    /// `ConnectionRefused` when nobody does, `PermissionDenied` when it is another user,
    /// `WouldBlock` when too many wait there; others when there is no memory or descriptor left,
    /// or no file may be so long.
    pub fn connect(remote: SocketAddr, ring_bytes: usize) -> io::Result<Self> {
        let ring_bytes = ring_bytes.clamp(CAPACITY_MIN, CAPACITY_MAX).next_power_of_two();
        let doorbell = name::connect(remote)?;
        let (memory, fd) = SharedMemory::create(ring::memory_len(ring_bytes))?;
        doorbell.give(fd.as_fd())?;
        let rings = Rings::new(memory, End::Dialer, ring_bytes);
        Ok(Self { doorbell, rings: Some(rings), is_gone: false, failure: None })
    }

    /// The listener's end of what was accepted; `None` for who only had a look and is gone.
    pub(super) fn accepted(doorbell: Doorbell) -> Option<Self> {
        let mut link = Self { doorbell, rings: None, is_gone: false, failure: None };
        link.failure = link.take_memory().err();
        (!link.is_gone).then_some(link)
    }

    /// The address that stands for this end.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn local_addr(&self, remote: SocketAddr) -> io::Result<SocketAddr> {
        let number = self.doorbell.number().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(name::stands_for(number, remote.port()))
    }

    /// Maps what the other end gives, once; false when it has not come yet.
    fn take_memory(&mut self) -> io::Result<bool> {
        if self.rings.is_some() {
            return Ok(true);
        }
        let fd = match self.doorbell.take() {
            Ok(fd) => fd,
            Err(Gift::NotYet) => return Ok(false),
            Err(Gift::Gone) => {
                self.is_gone = true;
                return Ok(false);
            }
            Err(Gift::Wrong(count)) => return Err(broken(Refusal::Descriptors(count))),
        };
        let lens = ring::memory_len(CAPACITY_MIN)..=ring::memory_len(CAPACITY_MAX);
        let memory = SharedMemory::open(fd, lens).map_err(broken)?;
        let len = memory.len();
        let capacity = ring::capacity_of(len).ok_or_else(|| broken(Refused::Length(len as u64)))?;
        self.rings = Some(Rings::new(memory, End::Listener, capacity));
        Ok(true)
    }

    /// Wakes the other end when it is to be woken; how much was moved.
    fn moved(&mut self, moved: Moved) -> usize {
        if moved.wakes {
            self.ring();
        }
        moved.len
    }

    fn ring(&mut self) {
        match self.doorbell.ring() {
            Ok(true) => {}
            Ok(false) => self.is_gone = true,
            Err(error) => self.failure = Some(error),
        }
    }

    /// Reads what there is; nothing of something is the end.
    fn read_ring(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let rings = self.rings.as_mut().ok_or(io::ErrorKind::WouldBlock)?;
        let moved = rings.read(parts).map_err(broken)?;
        if moved.len > 0 {
            return Ok(self.moved(moved));
        }
        self.is_gone |= self.doorbell.hear() == Heard::Gone;
        let is_over = self.is_gone || rings.is_closed_there();
        if !is_over {
            rings.await_data();
        }
        // What came before the end, or before it was said that this end sleeps.
        let moved = rings.read(parts).map_err(broken)?;
        match (moved.len, is_over) {
            (0, true) => Ok(0),
            (0, false) => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(self.moved(moved)),
        }
    }
}

impl Read for Link {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(0);
        }
        let result = match self.take_memory() {
            Ok(true) => self.read_ring(parts),
            Ok(false) if self.is_gone => Ok(0),
            Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        };
        // What came before a failure is read before it is told.
        if result.as_ref().is_ok_and(|len| *len > 0) {
            return result;
        }
        self.failure.take().map_or(result, Err)
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.is_gone || self.failure.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let rings = self.rings.as_mut().ok_or(io::ErrorKind::WouldBlock)?;
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(0);
        }
        let moved = rings.write(parts).map_err(broken)?;
        match self.moved(moved) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            len => Ok(len),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection for Link {
    /// A short read has not said yet that this end sleeps; the next one does, or finds the end.
    const SHORT_READ_IS_ALL: bool = false;

    fn end_writing(&mut self) {
        if let Some(rings) = &mut self.rings {
            rings.close();
            self.ring();
        }
    }

    /// Nothing gets lost in memory.
    fn set_patience(&mut self, _: Duration) {}

    fn has_capacity(&self) -> bool {
        self.rings.as_ref().is_some_and(Rings::has_capacity)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }
}

fn broken(why: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
