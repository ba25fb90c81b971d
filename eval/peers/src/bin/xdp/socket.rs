//! [`Xsk`]: a socket of AF_XDP with its memory and its four rings.
//!
//! ```text
//!              fill: free frames -->  [ kernel ] --> rx: frames that came
//!   memory of COUNT frames            [        ]
//!              tx: frames to send --> [ kernel ] --> done: frames that were sent
//! ```
//!
//! Half of the frames begin in `fill` and half are free for sending; an echo sends what came, and
//! refills from what was sent.
//!
//! Invariants: a [`Frame`] is ours until it is put into a ring, and then not to be had again before
//! it comes out of one; its bytes lie within the memory, or it is not made.

#![allow(unsafe_code, reason = "rings and frames are memory that the kernel writes, too")]

use crate::refused::{Refused, Step};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use peers::{Failure, SOCKET_BUFFER_BYTES};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Frames of the memory, half for each direction, and entries of every ring.
const COUNT: u32 = 4_096;
/// Bytes of a frame.
const FRAME_LEN: usize = 2_048;

/// The kernel gives a queue back some time after the socket of an earlier run was closed.
const BIND_TRIES: usize = 200;
const BIND_PAUSE: Duration = Duration::from_millis(10);

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    ToReceive,
    ToSend,
}

/// Bytes in the memory, in our hands.
#[derive(Debug)]
pub struct Frame {
    at: usize,
    len: usize,
}

/// Memory that the kernel knows, given back when dropped.
struct Mapped {
    base: NonNull<c_void>,
    len: usize,
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and what points into it goes with it.
        let _ = unsafe { munmap(self.base, self.len) };
    }
}

/// One of the rings, with entries of `T`: we put in or take out, the kernel does the other.
struct Ring<T> {
    mapped: Mapped,
    at: libc::xdp_ring_offset,
    /// Our index, and what we last saw of the kernel's.
    own: u32,
    seen: u32,
    entries: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(fd: &OwnedFd, page: i64, at: libc::xdp_ring_offset) -> Result<Self, Refused> {
        let len = at.desc as usize + COUNT as usize * size_of::<T>();
        let bytes = NonZeroUsize::new(len).unwrap_or(NonZeroUsize::MIN);
        let (prot, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { mmap(None, bytes, prot, flags | MapFlags::MAP_POPULATE, fd, page) };
        let base = base.map_err(|error| Refused { step: Step::Rings, error })?;
        let mapped = Mapped { base, len };
        Ok(Self { mapped, at, own: 0, seen: 0, entries: std::marker::PhantomData })
    }

    fn index(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel says that an aligned index lies at this offset of the mapping, and
        // both sides access it as an atomic only.
        unsafe { self.mapped.base.byte_add(offset as usize).cast::<AtomicU32>().as_ref() }
    }

    fn entry(&self) -> NonNull<T> {
        let place = (self.own & (COUNT - 1)) as usize;
        // SAFETY: the mapping has `COUNT` entries from `desc` on.
        unsafe { self.mapped.base.byte_add(self.at.desc as usize).cast::<T>().add(place) }
    }

    /// Puts an entry in; false when the ring is full.
    fn put(&mut self, entry: T) -> bool {
        if self.own.wrapping_sub(self.seen) >= COUNT {
            self.seen = self.index(self.at.consumer).load(Ordering::Acquire);
            if self.own.wrapping_sub(self.seen) >= COUNT {
                return false;
            }
        }
        // SAFETY: the kernel has taken out what lay here, and looks again only after the store.
        unsafe { self.entry().write_volatile(entry) };
        self.own = self.own.wrapping_add(1);
        self.index(self.at.producer).store(self.own, Ordering::Release);
        true
    }

    /// Takes an entry out.
    fn take(&mut self) -> Option<T> {
        if self.own == self.seen {
            self.seen = self.index(self.at.producer).load(Ordering::Acquire);
            if self.own == self.seen {
                return None;
            }
        }
        // SAFETY: the kernel has written it before the index that was loaded, and does not again
        // before the store.
        let entry = unsafe { self.entry().read_volatile() };
        self.own = self.own.wrapping_add(1);
        self.index(self.at.consumer).store(self.own, Ordering::Release);
        Some(entry)
    }
}

/// A socket at queue 0 of an interface.
pub struct Xsk {
    // Before the memory: it is closed first.
    fd: OwnedFd,
    rx: Ring<libc::xdp_desc>,
    tx: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    done: Ring<u64>,
    free: Vec<usize>,
    memory: Mapped,
}

impl AsRawFd for Xsk {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Xsk {
    /// Opens a socket; zero-copy where the driver can, otherwise with a copy.
    ///
    /// # Errors
    /// The step that the kernel refuses.
    pub fn open(interface: u32) -> Result<Self, Refused> {
        // SAFETY: no memory is involved.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        let fd = Errno::result(fd).map_err(|error| Refused { step: Step::Socket, error })?;
        // SAFETY: the kernel has just made it for us, and nobody else closes it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let memory = lend_memory(&fd)?;
        let offsets = make_rings(&fd)?;
        let mut xsk = Self {
            rx: Ring::map(&fd, libc::XDP_PGOFF_RX_RING, offsets.rx)?,
            tx: Ring::map(&fd, libc::XDP_PGOFF_TX_RING, offsets.tx)?,
            fill: Ring::map(&fd, libc::XDP_UMEM_PGOFF_FILL_RING as i64, offsets.fr)?,
            done: Ring::map(&fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, offsets.cr)?,
            free: (COUNT as usize / 2..COUNT as usize).map(|place| place * FRAME_LEN).collect(),
            memory,
            fd,
        };
        for place in 0..u64::from(COUNT) / 2 {
            xsk.fill.put(place * FRAME_LEN as u64);
        }
        bind(&xsk.fd, interface)?;
        Ok(xsk)
    }

    /// Whether frames are not copied on their way.
    pub fn is_zero_copy(&self) -> bool {
        let mut options = libc::xdp_options { flags: 0 };
        let is_known = ask(&self.fd, libc::XDP_OPTIONS, &mut options).is_ok();
        is_known && options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0
    }

    /// Writes the same frame into all that are free.
    pub fn fill_all(&mut self, frame: &[u8]) {
        for at in self.free.clone() {
            self.bytes(&Frame { at, len: frame.len() }).copy_from_slice(frame);
        }
    }

    /// The bytes of a frame.
    pub fn bytes(&mut self, frame: &Frame) -> &mut [u8] {
        assert!(frame.at + frame.len <= self.memory.len, "{frame:?} is beyond the memory");
        // SAFETY: within the mapping, as was just looked; the frame is in no ring while somebody
        // has it, so the kernel leaves it alone, and `self` is borrowed for as long.
        unsafe {
            let start = self.memory.base.byte_add(frame.at).cast::<u8>();
            std::slice::from_raw_parts_mut(start.as_ptr(), frame.len)
        }
    }

    /// A frame that is free for sending, when there is one.
    pub fn take_free(&mut self, len: usize) -> Option<Frame> {
        while let Some(at) = self.done.take() {
            self.free.push(at as usize);
        }
        self.free.pop().map(|at| Frame { at, len })
    }

    /// Gives frames that were sent back for receiving: for who sends what came.
    pub fn refill(&mut self) {
        while let Some(at) = self.done.take() {
            self.fill.put(at);
        }
    }

    /// Puts a frame where [`Xsk::kick`] finds it. There is an entry for each frame.
    pub fn send(&mut self, frame: Frame) {
        let Frame { at, len } = frame;
        self.tx.put(libc::xdp_desc { addr: at as u64, len: len as u32, options: 0 });
    }

    /// Has the kernel send what waits.
    ///
    /// # Errors
    /// What it says, unless it only wants to be asked again.
    pub fn kick(&self) -> Result<(), Refused> {
        let (fd, none) = (self.fd.as_raw_fd(), std::ptr::null());
        // SAFETY: no bytes are handed over, and no address.
        let sent = unsafe { libc::sendto(fd, none, 0, libc::MSG_DONTWAIT, none.cast(), 0) };
        match Errno::result(sent) {
            Ok(_) | Err(Errno::EAGAIN | Errno::EBUSY | Errno::ENOBUFS | Errno::EINTR) => Ok(()),
            Err(error) => Err(Refused { step: Step::Call, error }),
        }
    }

    /// A frame that came.
    pub fn receive(&mut self) -> Option<Frame> {
        let entry = self.rx.take()?;
        Some(Frame { at: entry.addr as usize, len: entry.len as usize })
    }

    /// Lets a frame that came be filled again.
    pub fn give_back(&mut self, frame: Frame) {
        self.fill.put(frame.at as u64);
    }

    /// Sleeps until there is something to do, unless it spins; false when nothing was within
    /// `patience`.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait(
        &self,
        what: Ready,
        patience: Duration,
        is_spinning: bool,
    ) -> Result<bool, Failure> {
        if is_spinning {
            std::hint::spin_loop();
            return Ok(true);
        }
        let events = match what {
            Ready::ToReceive => PollFlags::POLLIN,
            Ready::ToSend => PollFlags::POLLOUT,
        };
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.fd.as_fd(), events)], timeout) {
            Ok(count) => Ok(count > 0),
            Err(Errno::EINTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

/// Makes the memory of the frames and lends it to the kernel.
fn lend_memory(fd: &OwnedFd) -> Result<Mapped, Refused> {
    let refused = |error| Refused { step: Step::Memory, error };
    let len = NonZeroUsize::MIN
        .saturating_mul(NonZeroUsize::new(COUNT as usize * FRAME_LEN).unwrap_or(NonZeroUsize::MIN));
    let (prot, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe { mmap_anonymous(None, len, prot, flags | MapFlags::MAP_POPULATE) };
    let mapped = Mapped { base: base.map_err(refused)?, len: len.get() };
    // SAFETY: a structure of numbers, of which 0 is what is not asked for.
    let mut lent: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
    lent.addr = mapped.base.as_ptr() as u64;
    lent.len = len.get() as u64;
    lent.chunk_size = FRAME_LEN as u32;
    tell(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &lent).map_err(refused)?;
    Ok(mapped)
}

fn make_rings(fd: &OwnedFd) -> Result<libc::xdp_mmap_offsets, Refused> {
    let refused = |error| Refused { step: Step::Rings, error };
    for ring in [
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
        libc::XDP_RX_RING,
        libc::XDP_TX_RING,
    ] {
        tell(fd, libc::SOL_XDP, ring, &COUNT).map_err(refused)?;
    }
    let bytes = SOCKET_BUFFER_BYTES as libc::c_int;
    tell(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes).map_err(refused)?;
    // SAFETY: a structure of numbers, which the kernel fills in.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    ask(fd, libc::XDP_MMAP_OFFSETS, &mut offsets).map_err(refused)?;
    Ok(offsets)
}

fn bind(fd: &OwnedFd, interface: u32) -> Result<(), Refused> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: 0,
        sxdp_ifindex: interface,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    let len = size_of_val(&address) as libc::socklen_t;
    let mut bound = Err(Errno::EBUSY);
    for _ in 0..BIND_TRIES {
        // SAFETY: an address of this family, with its length.
        let done = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) };
        bound = Errno::result(done).map(|_| ());
        if bound != Err(Errno::EBUSY) {
            break;
        }
        std::thread::sleep(BIND_PAUSE);
    }
    bound.map_err(|error| Refused { step: Step::Bind, error })
}

fn tell<T>(fd: &OwnedFd, level: i32, name: i32, value: &T) -> nix::Result<()> {
    let (value, len) = (&raw const *value, size_of::<T>() as libc::socklen_t);
    // SAFETY: a value of the type that the option takes, with its length.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.cast(), len) };
    Errno::result(done).map(|_| ())
}

fn ask<T>(fd: &OwnedFd, name: i32, value: &mut T) -> nix::Result<()> {
    let mut len = size_of::<T>() as libc::socklen_t;
    let value = (&raw mut *value).cast();
    // SAFETY: room for the type that the option gives, with its length.
    let done = unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, name, value, &mut len) };
    Errno::result(done).map(|_| ())
}
