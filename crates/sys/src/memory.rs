//! [`SharedMemory`]: memory that another process writes, too.
//!
//! An anonymous file of fixed length (a sealed memfd), mapped by both ends. One end makes it and
//! gives its descriptor away; the other one maps what it is given after it has seen that it can be
//! neither longer nor shorter, ever.
//!
//! Nothing here lends bytes of the mapping: words are read and written atomically, longer bytes are
//! copied in and out, by instructions of which the compiler assumes nothing. What was copied out is
//! private and changes no more; what was not may be anything at the next look.
//!
//! ```text
//!   create(len) --> (SharedMemory, descriptor) ---- SCM_RIGHTS ----> open(descriptor)
//!                    sealed: shrink, grow, seal                      tmpfs? seals? length? map
//! ```
//!
//! Invariants
//! - A mapping is as long as its file, and the file keeps its length: no access of it meets the end
//!   of the file (`SIGBUS`). Its pages were allotted when it was made.
//! - An offset out of the mapping is a panic, never an access.
//! - The limit of file sizes (`RLIMIT_FSIZE`) is looked at before the file gets its length, so
//!   that it is an error and not a signal (`SIGXFSZ`).
//!
//! What remains: whoever made the file may punch holes into it, which the kernel fills with zeros
//! again; only where it refuses memory that it has not promised (`vm.overcommit_memory=2`) and none
//! is left, that fails by a signal. Take memory from processes of the same user only, who could
//! send the signal as well.
//!
//! Source: memfd_create(2), fcntl(2) (`F_ADD_SEALS`), mmap(2), fallocate(2), getrlimit(2).

use crate::poll::owned;
use std::fmt;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// What the length of a file is kept by, and its seals.
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// The bytes of a word, and what its offset is a multiple of.
pub const WORD_LEN: usize = size_of::<AtomicU64>();

/// Why a descriptor is not mapped.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refused {
    /// It is no file that can be sealed, or one of huge pages, of which there may be none.
    NotMemory,
    /// It can still become shorter or longer.
    Unsealed,
    /// Its length in bytes is not one that is taken.
    Length(u64),
    /// The system cannot map it.
    System(io::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMemory => f.write_str("the descriptor is not of shared memory"),
            Self::Unsealed => f.write_str("the shared memory is not sealed against changes"),
            Self::Length(len) => write!(f, "the shared memory has a wrong length, {len} bytes"),
            Self::System(error) => write!(f, "the shared memory cannot be mapped: {error}"),
        }
    }
}

impl std::error::Error for Refused {}

/// What is made for a look.
const PAGE: usize = 4_096;

/// The system kills who writes a longer file than it may.
fn check_limit(len: usize) -> io::Result<()> {
    if crate::process::file_size_max().is_some_and(|max| max < len as u64) {
        let text = format!("the limit of file sizes is below {len} bytes: see ulimit -f");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(())
}

/// A mapping that another process may have, too.
pub struct SharedMemory {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to no thread; all access is by atomics or by copies whose other side
// may write at any time anyway.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// Makes `len` bytes of zeros, and the descriptor to give away.
    ///
    /// # Errors
    /// `InvalidInput` for no bytes; `FileTooLarge` when the limit of file sizes is below `len`;
    /// others when there is no memory, descriptor or address space left, or where the kernel or a
    /// sandbox has no such files.
    pub fn create(len: usize) -> io::Result<(Self, OwnedFd)> {
        let size = i64::try_from(len).ok().filter(|size| *size > 0);
        let size = size.ok_or(io::ErrorKind::InvalidInput)?;
        check_limit(len)?;
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a constant with an end; the call returns a new descriptor or -1.
        let fd = owned(unsafe { libc::memfd_create(c"dacapo".as_ptr(), flags) })?;
        let file = File::from(fd);
        file.set_len(len as u64)?;
        // SAFETY: the descriptor is open; the call takes numbers and touches no memory of ours.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, size) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((Self::map(file.as_fd(), len)?, file.into()))
    }

    /// Whether `len` bytes may be made here: a page of them is, because all of them would have to
    /// be zeroed. Whether so much memory is left is seen by [`SharedMemory::create`].
    ///
    /// # Errors
    /// As there.
    pub fn look(len: usize) -> io::Result<()> {
        check_limit(len)?;
        Self::create(len.min(PAGE)).map(drop)
    }

    /// Maps what another process has made, if it is sealed and of one of the lengths in bytes
    /// `lens`. The mapping outlives the descriptor.
    ///
    /// # Errors
    /// [`Refused`]; nothing is mapped then.
    pub fn open(fd: OwnedFd, lens: RangeInclusive<usize>) -> Result<Self, Refused> {
        // SAFETY: the descriptor is open; the call takes numbers and touches no memory of ours.
        let seals = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || !is_of_small_pages(fd.as_fd()) {
            return Err(Refused::NotMemory);
        }
        if seals & SEALS != SEALS {
            return Err(Refused::Unsealed);
        }
        // From here on the length is what it will be.
        let file = File::from(fd);
        let len = file.metadata().map_err(Refused::System)?.len();
        let fits = usize::try_from(len).ok().filter(|len| lens.contains(len) && *len > 0);
        let fits = fits.ok_or(Refused::Length(len))?;
        Self::map(file.as_fd(), fits).map_err(Refused::System)
    }

    fn map(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the place, so the call changes no mapping that there is; the
        // descriptor is open, and the length is that of the file, which is more than 0.
        let base = unsafe {
            let flags = libc::MAP_SHARED;
            libc::mmap(std::ptr::null_mut(), len, access, flags, fd.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len })
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True for a mapping of no bytes, which there is none of.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The word at an offset. Another process may write it between any two loads.
    ///
    /// # Panics
    /// When the offset is not a multiple of [`WORD_LEN`], or the word is not inside.
    #[must_use]
    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(WORD_LEN) && self.has(at, WORD_LEN), "word at {at}");
        // SAFETY: the word is inside the mapping, which lives as long as the borrow of `self`; the
        // base is the start of a page, so a multiple of the word's length is aligned. This process
        // uses the word atomically or by `copy` only, and what another process writes is, for an
        // atomic load, a value like any other.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Copies bytes to an offset.
    ///
    /// # Panics
    /// When there is no room for all of them behind the offset.
    pub fn copy_in(&self, at: usize, bytes: &[u8]) {
        assert!(self.has(at, bytes.len()), "{} bytes at {at}", bytes.len());
        // SAFETY: both sides are `bytes.len()` bytes of memory that is mapped: the source is
        // borrowed, and the target was checked to be inside the mapping. They do not overlap,
        // because nothing here lends bytes of the mapping.
        unsafe { copy(self.base.as_ptr().add(at), bytes.as_ptr(), bytes.len()) }
    }

    /// Copies the bytes at an offset out, as they are at some moment, each for itself.
    ///
    /// # Panics
    /// When there are not so many behind the offset.
    pub fn copy_out(&self, at: usize, into: &mut [u8]) {
        assert!(self.has(at, into.len()), "{} bytes at {at}", into.len());
        // SAFETY: as in `copy_in`; the target is borrowed exclusively.
        unsafe { copy(into.as_mut_ptr(), self.base.as_ptr().add(at), into.len()) }
    }

    fn has(&self, at: usize, len: usize) -> bool {
        at.checked_add(len).is_some_and(|end| end <= self.len)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing borrows from it any more. The
        // call cannot fail for what mmap has returned.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMemory").field("len", &self.len).finish_non_exhaustive()
    }
}

/// True for a file of a tmpfs, whose pages are there when they are needed. Those of huge pages
/// can be sealed, too, but run out.
fn is_of_small_pages(fd: BorrowedFd<'_>) -> bool {
    let mut about = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the descriptor is open; the call writes one statfs where the pointer says, which is
    // ours and large enough; all zeros are a valid one, so it is initialised in any case.
    let (result, about) =
        unsafe { (libc::fstatfs(fd.as_raw_fd(), about.as_mut_ptr()), about.assume_init()) };
    result == 0 && about.f_type == libc::TMPFS_MAGIC
}

/// Copies bytes of which one side may be written by others meanwhile.
///
/// # Safety
/// Both sides are `len` bytes of mapped memory that do not overlap, and `to` may be written.
// Not inlined, so that who counts copies (`dacapo bench copies`) finds it.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the instruction copies exactly what the caller vouches for, upwards, because the
    // direction flag is clear at every call. In assembly the compiler concludes nothing from what
    // was read, so that a value that changes meanwhile is no more than a value.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies bytes of which one side may be written by others meanwhile.
///
/// # Safety
/// Both sides are `len` bytes of mapped memory that do not overlap, and `to` may be written.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    for at in 0..len {
        // SAFETY: the byte is one of those that the caller vouches for; volatile, so that it is
        // read and written once, as it is then.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    const LEN: usize = 16_384;

    /// A file like the one that [`SharedMemory::create`] makes, but for its flags and seals.
    fn file(flags: u32, len: u64, seals: i32) -> OwnedFd {
        // SAFETY: as in `create`.
        let file = File::from(owned(unsafe { libc::memfd_create(c"t".as_ptr(), flags) }).unwrap());
        file.set_len(len).unwrap();
        // SAFETY: as in `create`.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
        file.into()
    }

    #[test]
    fn both_ends_see_what_either_writes_and_the_rest_is_zero() {
        let (here, fd) = SharedMemory::create(LEN).unwrap();
        let there = SharedMemory::open(fd, LEN..=LEN).unwrap();
        assert_eq!((here.len(), there.len(), there.is_empty()), (LEN, LEN, false));
        here.copy_in(LEN - 5, b"hello");
        there.word(8).store(7, Ordering::Release);
        let mut bytes = [9; 6];
        there.copy_out(LEN - 6, &mut bytes);
        assert_eq!(&bytes, b"\0hello");
        assert_eq!(here.word(8).load(Ordering::Acquire), 7);
        // Who mapped it keeps it when the other end is gone.
        drop(here);
        there.copy_out(LEN - 6, &mut bytes);
        assert_eq!(&bytes, b"\0hello");
    }

    #[test]
    fn a_look_makes_no_more_than_a_page() {
        assert!(SharedMemory::look(LEN).is_ok());
        // More than any machine has.
        assert!(SharedMemory::look(1 << 50).is_ok());
        assert_eq!(SharedMemory::look(0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn copies_of_every_length_and_place_are_exact() {
        let (memory, _fd) = SharedMemory::create(LEN).unwrap();
        let mut random = dacapo_base::Random::from_number(1);
        for _ in 0..500 {
            let len = random.below(3_000) as usize;
            let at = random.below((LEN - len) as u64) as usize;
            let mut bytes = vec![0; len];
            random.fill(&mut bytes);
            memory.copy_in(at, &bytes);
            let mut back = vec![0; len];
            memory.copy_out(at, &mut back);
            assert!(bytes == back, "{len} bytes at {at}");
        }
    }

    #[test]
    fn what_is_made_keeps_its_length_and_its_seals() {
        let (_memory, fd) = SharedMemory::create(LEN).unwrap();
        let file = File::from(fd);
        assert_eq!(file.set_len(0).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(file.set_len(1 << 20).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        // SAFETY: as in `create`.
        let more =
            unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_FUTURE_WRITE) };
        assert_eq!(more, -1, "it takes no more seals");
    }

    #[test]
    fn what_could_become_shorter_is_not_mapped() {
        for missing in [libc::F_SEAL_SHRINK, libc::F_SEAL_GROW, libc::F_SEAL_SEAL] {
            let fd = file(libc::MFD_ALLOW_SEALING, LEN as u64, SEALS & !missing);
            let refused = SharedMemory::open(fd, 1..=LEN).unwrap_err();
            assert!(matches!(refused, Refused::Unsealed), "{refused}");
        }
        // Without permission to seal, the file is sealed against seals only.
        let refused = SharedMemory::open(file(0, LEN as u64, 0), 1..=LEN).unwrap_err();
        assert!(matches!(refused, Refused::Unsealed), "{refused}");
    }

    #[test]
    fn only_memory_of_a_fitting_length_is_mapped() {
        let fd = || file(libc::MFD_ALLOW_SEALING, LEN as u64, SEALS);
        for lens in [1..=LEN - 1, LEN + 1..=2 * LEN] {
            let refused = SharedMemory::open(fd(), lens).unwrap_err();
            assert!(matches!(refused, Refused::Length(len) if len == LEN as u64), "{refused}");
        }
        let refused = SharedMemory::open(file(libc::MFD_ALLOW_SEALING, 0, SEALS), 0..=LEN);
        assert!(matches!(refused, Err(Refused::Length(0))), "{refused:?}");
        for path in ["/dev/null", "/proc/self/exe", "/"] {
            let refused = SharedMemory::open(File::open(path).unwrap().into(), 1..=usize::MAX);
            assert!(matches!(refused, Err(Refused::NotMemory)), "{path}: {refused:?}");
        }
        // Sealed against writing it cannot be mapped for writing.
        let fd = file(libc::MFD_ALLOW_SEALING, LEN as u64, SEALS | libc::F_SEAL_WRITE);
        let refused = SharedMemory::open(fd, 1..=LEN);
        assert!(matches!(refused, Err(Refused::System(_))), "{refused:?}");
    }

    #[test]
    fn no_bytes_and_too_many_are_errors() {
        assert_eq!(SharedMemory::create(0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let error = SharedMemory::create(usize::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    #[should_panic(expected = "2 bytes at 16383")]
    fn an_offset_outside_is_no_access() {
        SharedMemory::create(LEN).unwrap().0.copy_in(LEN - 1, &[1, 2]);
    }

    #[test]
    #[should_panic(expected = "word at 4")]
    fn a_word_that_is_not_aligned_is_no_access() {
        let _ = SharedMemory::create(LEN).unwrap().0.word(4);
    }

    /// With a mapping per turn left over, addresses or descriptors would run out.
    #[test]
    fn nothing_is_left_of_what_is_dropped() {
        let count =
            || std::fs::read_to_string("/proc/self/maps").unwrap().matches("dacapo").count();
        for _ in 0..2_000 {
            let (here, fd) = SharedMemory::create(LEN).unwrap();
            let _there = SharedMemory::open(fd, LEN..=LEN).unwrap();
            drop(here);
        }
        assert!(count() < 100, "{} mappings", count());
    }
}
