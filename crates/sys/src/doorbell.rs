//! [`Doorbell`]: a local stream socket that wakes the other end, and says when it is gone.
//!
//! For two processes that talk by memory. A listener has an abstract name, which is of the network
//! namespace, as ports are. Over the connection goes one descriptor, then single bytes that mean
//! nothing but "look"; the end of the connection is the end of the process.
//!
//! ```text
//!   Listener("name")  <---- connect ----  Doorbell, bound to a number that the kernel chose
//!   accept -> Doorbell    <---- descriptor --
//!   hear              <---- ring -------   (either way)
//! ```
//!
//! Invariants
//! - Non-blocking and close-on-exec; ringing never blocks, is never a signal (`MSG_NOSIGNAL`), and
//!   needs no second ring while the first was not heard.
//! - Who dials is bound to a number that no other socket of the namespace has while it lives.
//! - One descriptor is taken, at the beginning; what else is sent along the kernel closes.
//!
//! Source: unix(7) (abstract names, autobind, `SCM_RIGHTS`), socket(7) (`SO_PEERCRED`).

use crate::faults::{self, Call};
use crate::unix::{Peer, peer_of};
use socket2::{Domain, SockAddr, Socket, Type};
use std::ffi::OsStr;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Connections that wait to be accepted before the kernel refuses more.
pub const BACKLOG: i32 = 128;

/// Connections that broke while they waited and are passed over in one call of
/// [`Listener::accept`].
const BROKEN_MAX: usize = 16;

/// Bytes that one look takes; more of them wait for the next.
const RINGS_MAX: usize = 64;

/// The most descriptors that one message can bring (`SCM_MAX_FD` of the kernel).
const DESCRIPTORS_MAX: usize = 253;

/// The digits, in base 16, of the name that the kernel gives to who asks for any.
const NUMBER_DIGITS: usize = 5;

/// A listening socket with an abstract name.
#[derive(Debug)]
pub struct Listener {
    inner: Socket,
}

impl Listener {
    /// Listens under `name`, in the network namespace of this thread. The name is free again when
    /// the process ends, however it does.
    ///
    /// # Errors
    /// `AddrInUse` when somebody has it, of whatever user; `InvalidInput` when it is too long.
    pub fn bind(name: &str) -> io::Result<Self> {
        let inner = socket()?;
        inner.bind(&address(name)?)?;
        inner.listen(BACKLOG)?;
        Ok(Self { inner })
    }

    /// The next connection; `None` when none waits.
    ///
    /// # Errors
    /// When there is no descriptor or memory left. The connection waits on, and the socket stays
    /// readable.
    pub fn accept(&self) -> io::Result<Option<Accepted>> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        for _ in 0..BROKEN_MAX {
            match faults::before(Call::Accept).and_then(|()| self.inner.accept4(flags)) {
                Ok((inner, from)) => {
                    let peer = peer_of(inner.as_fd())?;
                    return Ok(Some(Accepted {
                        doorbell: Doorbell { inner },
                        peer,
                        number: number(&from),
                    }));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if is_lack(&error) => return Err(error),
                // It broke while it waited.
                Err(_) => {}
            }
        }
        Ok(None)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// Who came.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub doorbell: Doorbell,
    /// Whose it is.
    pub peer: Peer,
    /// The number that its other end is bound to, if the kernel chose it.
    pub number: Option<u32>,
}

/// What a look at a doorbell found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing since the last look.
    Nothing,
    /// It was rung, once or more often.
    Ring,
    /// The other end is gone, and rings no more.
    Gone,
}

/// What came instead of one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gift {
    /// Nothing yet.
    NotYet,
    /// The connection ended before.
    Gone,
    /// So many descriptors, which were closed; 0 for none.
    Wrong(usize),
}

/// One end of a connection.
#[derive(Debug)]
pub struct Doorbell {
    inner: Socket,
}

impl Doorbell {
    /// Connects to who listens under `name`.
    ///
    /// # Errors
    /// `ConnectionRefused` when nobody does; `WouldBlock` when too many wait there; others when
    /// there is no descriptor left.
    pub fn connect(name: &str) -> io::Result<Self> {
        let inner = socket()?;
        // The empty name: the kernel chooses a number.
        inner.bind(&SockAddr::unix("")?)?;
        faults::before(Call::Connect)?;
        inner.connect(&address(name)?)?;
        Ok(Self { inner })
    }

    /// Who listens there, or who connected.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn peer(&self) -> io::Result<Peer> {
        peer_of(self.inner.as_fd())
    }

    /// The number that this end is bound to, if it is one that the kernel chose.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        self.inner.local_addr().ok().as_ref().and_then(number)
    }

    /// Sends a descriptor, which stays open here.
    ///
    /// # Errors
    /// `BrokenPipe` when the other end is gone; `WouldBlock` when it has not read what was sent
    /// before; others when too many descriptors are under way.
    pub fn give(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.give_all(&[fd])
    }

    /// The same for any number of descriptors, which no correct program sends.
    ///
    /// # Errors
    /// As [`Doorbell::give`]; `InvalidInput` beyond what one message can bring.
    pub fn give_all(&self, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        if fds.is_empty() {
            return self.ring().map(drop);
        }
        if fds.len() > DESCRIPTORS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let raw: Vec<i32> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let mut room = Room::new();
        let mut byte = 0_u8;
        let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let mut message = room.message(&mut part);
        // SAFETY: the header points to `part` and to `room`, which both outlive the call and hold
        // what their lengths say: CMSG_FIRSTHDR is the start of the room, which is aligned for it,
        // and the room has place for as many descriptors as there are at most. The kernel only
        // reads.
        let sent = unsafe {
            let bytes = size_of_val(raw.as_slice()) as u32;
            message.msg_controllen = libc::CMSG_SPACE(bytes) as usize;
            let head = libc::CMSG_FIRSTHDR(&raw const message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(bytes) as usize;
            libc::CMSG_DATA(head).cast::<i32>().copy_from(raw.as_ptr(), raw.len());
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::sendmsg(self.inner.as_raw_fd(), &raw const message, flags)
        };
        if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The one descriptor that the other end gives.
    ///
    /// # Errors
    /// What came instead.
    pub fn take(&self) -> Result<OwnedFd, Gift> {
        let mut room = Room::new();
        let mut byte = 0_u8;
        let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let mut message = room.message(&mut part);
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the header points to one byte and to the room, which both outlive the call; the
        // kernel writes at most what their lengths say, and says how much that was.
        let count = unsafe { libc::recvmsg(self.inner.as_raw_fd(), &raw mut message, flags) };
        match count {
            0 => return Err(Gift::Gone),
            1 => {}
            _ => {
                let kind = io::Error::last_os_error().kind();
                let later = matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                return Err(if later { Gift::NotYet } else { Gift::Gone });
            }
        }
        let mut all = room.descriptors(message.msg_controllen);
        match (all.pop(), all.len()) {
            (Some(one), 0) if message.msg_flags & libc::MSG_CTRUNC == 0 => Ok(one),
            (one, more) => Err(Gift::Wrong(more + usize::from(one.is_some()))),
        }
    }

    /// Wakes the other end; false when it is gone.
    ///
    /// # Errors
    /// None that a correct program sees: a doorbell that was rung very often and not heard is rung.
    pub fn ring(&self) -> io::Result<bool> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        loop {
            match self.inner.send_with_flags(&[0], flags) {
                Ok(_) => return Ok(true),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(true),
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => return Ok(false),
                    _ => return Err(error),
                },
            }
        }
    }

    /// Takes what was rung.
    pub fn hear(&self) -> Heard {
        let mut bytes = [MaybeUninit::uninit(); RINGS_MAX];
        loop {
            match self.inner.recv(&mut bytes) {
                Ok(0) => return Heard::Gone,
                Ok(_) => return Heard::Ring,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Nothing,
                Err(_) => return Heard::Gone,
            }
        }
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// Room for the descriptors of one message, aligned as the kernel's structures are.
#[repr(align(8))]
struct Room {
    bytes: [u8; Self::LEN],
}

impl Room {
    /// A header and all that one message can bring, so that nothing is ever cut off.
    const LEN: usize = size_of::<libc::cmsghdr>() + (DESCRIPTORS_MAX + 1) * size_of::<i32>();

    fn new() -> Self {
        Self { bytes: [0; Self::LEN] }
    }

    /// A header of a message with this one part and this room.
    fn message(&mut self, part: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: a msghdr is numbers and pointers, for which zero is a value.
        let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        message.msg_iov = std::ptr::from_mut(part);
        message.msg_iovlen = 1;
        message.msg_control = self.bytes.as_mut_ptr().cast();
        message.msg_controllen = Self::LEN;
        message
    }

    /// The descriptors that the kernel has put into the first `len` bytes; nobody else owns them.
    fn descriptors(&self, len: usize) -> Vec<OwnedFd> {
        let bytes = self.bytes.get(..len).unwrap_or_default();
        let messages = crate::udp::control::messages(bytes);
        let rights =
            messages.filter(|it| (it.level, it.kind) == (libc::SOL_SOCKET, libc::SCM_RIGHTS));
        let numbers = rights.flat_map(|it| it.data.as_chunks::<4>().0);
        let owned = |bytes: &[u8; 4]| {
            // SAFETY: the kernel has just opened this descriptor for us, and it stands in one
            // place of the message, so nothing else owns it.
            unsafe { OwnedFd::from_raw_fd(i32::from_ne_bytes(*bytes)) }
        };
        numbers.map(owned).collect()
    }
}

fn socket() -> io::Result<Socket> {
    Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)
}

/// The abstract name: a zero, then the text.
fn address(name: &str) -> io::Result<SockAddr> {
    let bytes = [b"\0".as_slice(), name.as_bytes()].concat();
    SockAddr::unix(OsStr::from_bytes(&bytes))
}

/// The number of a name that the kernel chose: five digits in base 16.
fn number(address: &SockAddr) -> Option<u32> {
    let name = address.as_abstract_namespace().filter(|name| name.len() == NUMBER_DIGITS)?;
    let digits = str::from_utf8(name).ok()?;
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.iter().all(is_digit).then(|| u32::from_str_radix(digits, 16).ok())?
}

/// True when the system lacks something that it may have later.
fn is_lack(error: &io::Error) -> bool {
    let lacks = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|errno| lacks.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    fn pair(test: &str) -> (Doorbell, Accepted) {
        let name = format!("dacapo-sys-{}-{test}", std::process::id());
        let listener = Listener::bind(&name).unwrap();
        let doorbell = Doorbell::connect(&name).unwrap();
        let accepted = listener.accept().unwrap().unwrap();
        assert!(listener.accept().unwrap().is_none());
        (doorbell, accepted)
    }

    #[test]
    fn each_end_knows_who_and_which_the_other_is() {
        let (doorbell, accepted) = pair("who");
        assert_eq!(accepted.peer.uid, crate::process::uid());
        assert_eq!(doorbell.peer().unwrap().uid, crate::process::uid());
        assert!(accepted.number.is_some() && accepted.number == doorbell.number());
        let (other, _accepted) = pair("who-else");
        assert_ne!(other.number(), doorbell.number());
    }

    #[test]
    fn a_name_that_the_kernel_did_not_choose_is_no_number() {
        let of = |name: &str| number(&address(name).unwrap());
        assert_eq!((of("0a0ff"), of("00000")), (Some(0xa0ff), Some(0)));
        for name in ["", "0a0f", "0a0fff", "0A0FF", "+a0ff", "dacapo", "0a0f\u{e9}"] {
            assert_eq!(of(name), None, "{name:?}");
        }
    }

    #[test]
    fn what_is_rung_is_heard_once_and_the_end_at_last() {
        let (doorbell, Accepted { doorbell: there, .. }) = pair("ring");
        assert_eq!(there.hear(), Heard::Nothing);
        assert!(doorbell.ring().unwrap() && doorbell.ring().unwrap());
        assert_eq!((there.hear(), there.hear()), (Heard::Ring, Heard::Nothing));
        assert!(there.ring().unwrap());
        assert_eq!(doorbell.hear(), Heard::Ring);
        doorbell.ring().unwrap();
        drop(doorbell);
        assert_eq!((there.hear(), there.hear()), (Heard::Ring, Heard::Gone));
        assert!(!there.ring().unwrap());
    }

    #[test]
    fn a_bell_that_nobody_hears_can_be_rung_for_ever() {
        let (doorbell, _accepted) = pair("deaf");
        assert!((0..100_000).all(|_| doorbell.ring().unwrap()));
    }

    #[test]
    fn a_descriptor_arrives_as_the_same_file() {
        let (doorbell, Accepted { doorbell: there, .. }) = pair("give");
        assert_eq!(there.take().unwrap_err(), Gift::NotYet);
        let name = File::open("/proc/self/comm").unwrap();
        doorbell.give(name.as_fd()).unwrap();
        let (mut text, mut same) = (String::new(), String::new());
        File::from(there.take().unwrap()).read_to_string(&mut text).unwrap();
        File::open("/proc/self/comm").unwrap().read_to_string(&mut same).unwrap();
        assert_eq!(text, same);
        assert_eq!(there.take().unwrap_err(), Gift::NotYet);
        drop(doorbell);
        assert_eq!(there.take().unwrap_err(), Gift::Gone);
    }

    /// Which descriptors are open in this process, those of other tests too.
    fn open_count() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    #[test]
    fn none_and_too_many_are_told_and_nothing_stays_open() {
        let (doorbell, Accepted { doorbell: there, .. }) = pair("wrong");
        let file = File::open("/dev/null").unwrap();
        doorbell.ring().unwrap();
        assert_eq!(there.take().unwrap_err(), Gift::Wrong(0));
        let before = open_count();
        for _ in 0..50 {
            for count in [2, 3, DESCRIPTORS_MAX] {
                doorbell.give_all(&vec![file.as_fd(); count]).unwrap();
                assert_eq!(there.take().unwrap_err(), Gift::Wrong(count));
            }
        }
        // Those that come where none is looked for are closed by the kernel.
        for _ in 0..50 {
            doorbell.give_all(&[file.as_fd(); 20]).unwrap();
            assert_eq!(there.hear(), Heard::Ring);
        }
        assert!(open_count() < before + 200, "{before} before, {} now", open_count());
        let too_many = doorbell.give_all(&vec![file.as_fd(); DESCRIPTORS_MAX + 1]).unwrap_err();
        assert_eq!(too_many.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn nobody_a_name_that_is_taken_and_one_that_is_too_long_are_errors() {
        let name = format!("dacapo-sys-{}-errors", std::process::id());
        let error = Doorbell::connect(&name).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let _listener = Listener::bind(&name).unwrap();
        assert_eq!(Listener::bind(&name).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(Listener::bind(&"x".repeat(200)).is_err());
    }
}
