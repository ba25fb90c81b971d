//! [`Poller`]: which descriptors are ready; [`Waker`]: a descriptor that another thread makes
//! ready.
//!
//! Level-triggered epoll with a 64-bit token per descriptor. A poller is itself a descriptor,
//! readable while one of its own is ready, so who has many sockets can show a turn loop a single
//! one; a [`Registry`] watches them in the turn loop's own set instead, which saves a look at each
//! level.
//!
//! ```text
//!   socket --+
//!   socket --+-> Poller (transport) --+
//!   socket ----> Registry ------------+-> Poller (turn loop) -> wait(timeout)
//!                          Waker -----+
//!                        Signals -----+
//! ```
//!
//! Source: epoll(7), epoll_pwait2(2) (Linux 5.11), eventfd(2).

use crate::faults::{self, Call};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// The most events that one wait reports; the rest come with the next.
pub const EVENTS_MAX: usize = 512;

/// What to watch a descriptor for. Errors and the end of the other side are always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Something to read.
    Read,
    /// Something to read, or room to write.
    ReadWrite,
}

impl Interest {
    fn bits(self) -> u32 {
        let bits = match self {
            Self::Read => libc::EPOLLIN | libc::EPOLLRDHUP,
            Self::ReadWrite => libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLOUT,
        };
        bits.cast_unsigned()
    }
}

/// A descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number that came with the descriptor.
    pub token: u64,
    /// Reading makes progress: data, an error or the end.
    pub readable: bool,
    /// Writing makes progress.
    pub writable: bool,
    /// The other side is gone or an error waits; reading tells which.
    pub closed: bool,
}

impl Event {
    fn of(raw: libc::epoll_event) -> Self {
        let has = |bits: i32| raw.events & bits.cast_unsigned() != 0;
        Self {
            token: raw.u64,
            readable: has(libc::EPOLLIN | libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLRDHUP),
            writable: has(libc::EPOLLOUT),
            closed: has(libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLRDHUP),
        }
    }
}

/// A set of watched descriptors.
pub struct Poller {
    epoll: Arc<OwnedFd>,
    buffer: Vec<libc::epoll_event>,
    /// False once the kernel said that it has no nanosecond timeouts.
    nanoseconds: bool,
}

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// When the process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1 takes a flag and returns a new descriptor or -1.
        let fd = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let buffer = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        Ok(Self { epoll: Arc::new(fd), buffer, nanoseconds: true })
    }

    /// The same set once more, for another thread to wait at. Each event goes to whoever looks
    /// first, and again to whoever looks while it lasts.
    #[must_use]
    pub fn twin(&self) -> Self {
        let epoll = Arc::clone(&self.epoll);
        Self { epoll, buffer: self.buffer.clone(), nanoseconds: self.nanoseconds }
    }

    /// A part of the tokens of this set, those with `key` in front, for somebody who watches
    /// descriptors of its own in it.
    #[must_use]
    pub fn registry(&self, key: u64) -> Registry {
        Registry { epoll: Arc::clone(&self.epoll), key }
    }

    /// Watches a descriptor, which the caller keeps open and removes before it closes it.
    ///
    /// # Errors
    /// `AlreadyExists` when it is watched already; others when it cannot be watched.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        control(&self.epoll, libc::EPOLL_CTL_ADD, fd, (token, interest))
    }

    /// Changes what a watched descriptor is watched for, or its token.
    ///
    /// # Errors
    /// `NotFound` when it is not watched.
    pub fn modify(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        control(&self.epoll, libc::EPOLL_CTL_MOD, fd, (token, interest))
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// `NotFound` when it is not watched.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        control(&self.epoll, libc::EPOLL_CTL_DEL, fd, (0, Interest::Read))
    }

    /// Waits until a descriptor is ready or `timeout` has passed (`None`: for ever), and puts what
    /// is ready into `events`, which is emptied first. A signal ends the wait with no event; a look
    /// that does not wait is taken again.
    ///
    /// The timeout has nanoseconds where the kernel knows them, else it is rounded up to
    /// milliseconds, so that a wait never ends before its time.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        events.clear();
        let count = loop {
            match faults::before(Call::Wait).and_then(|()| self.wait_raw(timeout)) {
                Ok(count) => break count,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Err(_) if timeout.is_some_and(|timeout| timeout.is_zero()) => {}
                Err(_) => break 0,
            }
        };
        events.extend(self.buffer.iter().take(count).map(|&raw| Event::of(raw)));
        Ok(())
    }

    fn wait_raw(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        // A look needs no timespec and no signal mask to be copied in.
        let is_look = timeout.is_some_and(|timeout| timeout.is_zero());
        if self.nanoseconds && !is_look {
            match self.wait_nanoseconds(timeout) {
                Err(error) if lacks_pwait2(&error) => self.nanoseconds = false,
                result => return result,
            }
        }
        self.wait_milliseconds(timeout)
    }

    fn wait_nanoseconds(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let spec = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let spec = spec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the buffer is exclusively borrowed and holds as many events as the call is told;
        // `spec` is null or points to a timespec that outlives the call; the signal mask is null,
        // whose size the kernel then ignores. The number is called directly because older C
        // libraries lack the function.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.buffer.as_mut_ptr(),
                self.buffer.len(),
                spec,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    fn wait_milliseconds(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let timeout_ms = timeout.map_or(-1, milliseconds_up);
        let len = i32::try_from(self.buffer.len()).unwrap_or(i32::MAX);
        // SAFETY: the buffer is exclusively borrowed and holds `len` events or more.
        let count = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), self.buffer.as_mut_ptr(), len, timeout_ms)
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poller").field("epoll", &self.epoll).finish_non_exhaustive()
    }
}

fn control(
    epoll: &OwnedFd,
    op: i32,
    fd: BorrowedFd<'_>,
    (token, on): (u64, Interest),
) -> io::Result<()> {
    let mut event = libc::epoll_event { events: on.bits(), u64: token };
    // SAFETY: both descriptors are borrowed, so they are open; `event` outlives the call and is
    // only read.
    let result = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), op, fd.as_raw_fd(), &raw mut event) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The bits of a token that a [`Registry`] leaves to who has it.
const PLACE_BITS: u32 = 16;

/// A part of the tokens of a [`Poller`]: its key, and below it the place of each descriptor.
#[derive(Clone, Debug)]
pub struct Registry {
    epoll: Arc<OwnedFd>,
    key: u64,
}

impl Registry {
    /// The key and the place of a token.
    #[must_use]
    pub fn split(token: u64) -> (u64, u16) {
        (token >> PLACE_BITS, token as u16)
    }

    fn token(&self, place: u16) -> u64 {
        self.key << PLACE_BITS | u64::from(place)
    }

    /// Watches a descriptor, which the caller keeps open and removes before it closes it.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn add(&self, fd: BorrowedFd<'_>, place: u16, interest: Interest) -> io::Result<()> {
        control(&self.epoll, libc::EPOLL_CTL_ADD, fd, (self.token(place), interest))
    }

    /// Changes what a watched descriptor is watched for, or its place.
    ///
    /// # Errors
    /// As [`Poller::modify`].
    pub fn modify(&self, fd: BorrowedFd<'_>, place: u16, interest: Interest) -> io::Result<()> {
        control(&self.epoll, libc::EPOLL_CTL_MOD, fd, (self.token(place), interest))
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// As [`Poller::remove`].
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        control(&self.epoll, libc::EPOLL_CTL_DEL, fd, (0, Interest::Read))
    }
}

fn lacks_pwait2(error: &io::Error) -> bool {
    // Sandboxes answer EPERM to calls that are newer than their lists.
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
}

fn milliseconds_up(timeout: Duration) -> i32 {
    i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

/// Makes a poller's wait end, from any thread.
#[derive(Debug)]
pub struct Waker {
    event: OwnedFd,
}

impl Waker {
    /// A waker that is not set. Add its descriptor to a [`Poller`] for reading.
    ///
    /// # Errors
    /// When the process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes a number and flags and returns a new descriptor or -1.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        Ok(Self { event: owned(fd)? })
    }

    /// Sets it: its descriptor is readable until [`Waker::clear`]. Setting it twice is once.
    pub fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the buffer is eight readable bytes, as eventfd asks. A full counter (2^64-2
        // wakes without a clear) refuses the write, and the waker is set all the same.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Takes it back; true when it was set.
    pub fn clear(&self) -> bool {
        let mut count = [0_u8; 8];
        // SAFETY: the buffer is eight writable bytes, as eventfd asks.
        let read =
            unsafe { libc::read(self.event.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        read > 0
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// Takes a descriptor that a system call just returned.
pub(crate) fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and the caller got it from the kernel just now, so nothing
    // else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Option<Duration> = Some(Duration::ZERO);

    fn ready(poller: &mut Poller, timeout: Option<Duration>) -> Vec<Event> {
        let mut events = Vec::new();
        poller.wait(timeout, &mut events).unwrap();
        events
    }

    #[test]
    fn a_waker_is_readable_from_wake_to_clear() {
        let mut poller = Poller::new().unwrap();
        let waker = Waker::new().unwrap();
        poller.add(waker.as_fd(), u64::MAX - 1, Interest::Read).unwrap();
        assert_eq!(ready(&mut poller, SOON), []);
        waker.wake();
        waker.wake();
        let events = ready(&mut poller, None);
        assert_eq!(events.len(), 1);
        assert!(events[0].readable && !events[0].writable && !events[0].closed);
        assert_eq!(events[0].token, u64::MAX - 1);
        assert!(waker.clear());
        assert!(!waker.clear());
        assert_eq!(ready(&mut poller, SOON), []);
    }

    #[test]
    fn another_thread_ends_an_endless_wait() {
        let mut poller = Poller::new().unwrap();
        let waker = std::sync::Arc::new(Waker::new().unwrap());
        poller.add(waker.as_fd(), 7, Interest::Read).unwrap();
        let other = std::sync::Arc::clone(&waker);
        let thread = std::thread::spawn(move || other.wake());
        assert_eq!(ready(&mut poller, None)[0].token, 7);
        thread.join().unwrap();
    }

    #[test]
    fn a_poller_inside_a_poller_shows_what_is_ready_inside() {
        let mut outer = Poller::new().unwrap();
        let inner = Poller::new().unwrap();
        let waker = Waker::new().unwrap();
        inner.add(waker.as_fd(), 1, Interest::Read).unwrap();
        outer.add(inner.as_fd(), 2, Interest::Read).unwrap();
        assert_eq!(ready(&mut outer, SOON), []);
        waker.wake();
        assert_eq!(ready(&mut outer, None)[0].token, 2);
        waker.clear();
        assert_eq!(ready(&mut outer, SOON), []);
    }

    #[test]
    fn a_registry_watches_in_the_set_of_another_and_tells_key_and_place() {
        let mut poller = Poller::new().unwrap();
        let (registry, waker) = (poller.registry(5), Waker::new().unwrap());
        registry.add(waker.as_fd(), u16::MAX, Interest::Read).unwrap();
        assert!(registry.add(waker.as_fd(), 1, Interest::Read).is_err(), "watched already");
        waker.wake();
        assert_eq!(Registry::split(ready(&mut poller, None)[0].token), (5, u16::MAX));
        registry.modify(waker.as_fd(), 3, Interest::ReadWrite).unwrap();
        let event = ready(&mut poller, SOON)[0];
        assert_eq!((Registry::split(event.token), event.writable), ((5, 3), true));
        registry.remove(waker.as_fd()).unwrap();
        assert_eq!(ready(&mut poller, SOON), []);
    }

    #[test]
    fn a_twin_finds_what_is_ready_in_the_same_set() {
        let poller = Poller::new().unwrap();
        let mut twin = poller.twin();
        let waker = Waker::new().unwrap();
        poller.add(waker.as_fd(), 9, Interest::Read).unwrap();
        waker.wake();
        assert_eq!(ready(&mut twin, None)[0].token, 9);
        drop(poller);
        assert_eq!(ready(&mut twin, SOON)[0].token, 9, "the set lives as long as one of them");
    }

    #[test]
    fn interest_in_writing_is_added_and_taken_back() {
        let mut poller = Poller::new().unwrap();
        let waker = Waker::new().unwrap();
        poller.add(waker.as_fd(), 1, Interest::ReadWrite).unwrap();
        assert!(ready(&mut poller, SOON)[0].writable);
        poller.modify(waker.as_fd(), 1, Interest::Read).unwrap();
        assert_eq!(ready(&mut poller, SOON), []);
        poller.remove(waker.as_fd()).unwrap();
        waker.wake();
        assert_eq!(ready(&mut poller, SOON), []);
        let again = poller.remove(waker.as_fd()).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_other_end_closing_is_an_event() {
        let (here, there) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(here.as_fd(), 3, Interest::Read).unwrap();
        drop(there);
        let events = ready(&mut poller, None);
        assert!(events[0].closed && events[0].readable);
    }

    #[test]
    fn a_wait_never_ends_before_its_time_with_either_timeout() {
        let mut poller = Poller::new().unwrap();
        for nanoseconds in [true, false] {
            poller.nanoseconds = nanoseconds;
            let before = crate::clock::now();
            let wait = Duration::from_micros(1_300);
            assert_eq!(ready(&mut poller, Some(wait)), []);
            assert!(crate::clock::now().since(before) >= wait);
        }
    }

    #[test]
    fn timeouts_are_rounded_up_and_clamped() {
        assert_eq!(milliseconds_up(Duration::ZERO), 0);
        assert_eq!(milliseconds_up(Duration::from_nanos(1)), 1);
        assert_eq!(milliseconds_up(Duration::from_micros(1_001)), 2);
        assert_eq!(milliseconds_up(Duration::MAX), i32::MAX);
    }
}
