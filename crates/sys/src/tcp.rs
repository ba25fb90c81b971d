//! [`Listener`], [`Stream`]: TCP that never blocks.
//!
//! Listen, accept, connect, and the vectored reads and writes of one connection, with the options
//! that keep latency out of the kernel. [`Stream`] reads and writes through [`io::Read`] and
//! [`io::Write`]; what is not possible now is `WouldBlock`.
//!
//! ```text
//!   Listener::bind -> accept -> Stream ---- network ---- Stream <- Stream::connect
//!                               readv, writev
//! ```
//!
//! Invariants
//! - Non-blocking and close-on-exec, without Nagle's delay (`TCP_NODELAY`).
//! - The kernel takes at most about `unsent_bytes_max` bytes more than it has sent
//!   (`TCP_NOTSENT_LOWAT`): what waits, waits where it can still be seen.
//! - What is not acknowledged is sent again at least every second, so that a connection goes on a
//!   second after its path carries again (`TCP_RTO_MAX_MS`; before Linux 6.15 the time doubles up
//!   to two minutes). A connection on which nothing is acknowledged lives for [`PATIENCE`], or as
//!   long as who holds it says (`TCP_USER_TIMEOUT`).
//! - A write to a connection that is gone is an error, never a signal (`MSG_NOSIGNAL`).
//! - An IPv6 listener takes IPv6 only, so one address has one form.
//! - A connect that fails later is told by the first write or read, which returns the pending error
//!   of the socket (`SO_ERROR`).
//!
//! Source: RFC 9293; tcp(7), socket(7), accept(2), connect(2), shutdown(2).

use crate::faults::{self, Call};
use crate::sockopt;
use crate::udp::not_internet;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// An option of Linux 6.15 that `libc` does not name yet (`include/uapi/linux/tcp.h`).
const TCP_RTO_MAX_MS: i32 = 44;

/// The longest time after which what is not acknowledged is sent again.
const RESEND_EVERY_MAX: Duration = Duration::from_secs(1);

/// How long a connection lives on which nothing is acknowledged, unless
/// [`Stream::set_patience`] says otherwise, and after it was dropped.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Connections that wait to be accepted before the kernel refuses more.
pub const BACKLOG: i32 = 128;

/// Connections that broke while they waited and are passed over in one call of
/// [`Listener::accept`].
const BROKEN_MAX: usize = 16;

/// What to ask the kernel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes that a stream takes beyond those that were sent already.
    pub unsent_bytes_max: u32,
    /// Bytes of receive buffer to ask for; `None` lets the kernel find the size, which is best
    /// nearly always.
    pub recv_buffer_bytes: Option<usize>,
    /// Bytes of send buffer to ask for; `None` lets the kernel find the size, which is best nearly
    /// always.
    pub send_buffer_bytes: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self { unsent_bytes_max: 128 * 1024, recv_buffer_bytes: None, send_buffer_bytes: None }
    }
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    inner: Socket,
    config: Config,
}

impl Listener {
    /// Listens at `local`; port 0 takes a free one. Connections that are still being closed by an
    /// earlier listener do not keep the port (`SO_REUSEADDR`); a living listener does.
    ///
    /// # Errors
    /// `AddrInUse`, `AddrNotAvailable`, `PermissionDenied` and others, as the kernel says.
    pub fn bind(local: SocketAddr, config: &Config) -> io::Result<Self> {
        let inner = socket(local)?;
        if local.is_ipv6() {
            inner.set_only_v6(true)?;
        }
        inner.set_reuse_address(true)?;
        // Before listening: the window scale of a connection is agreed when it is made.
        ask_for_buffers(&inner, config);
        inner.bind(&SockAddr::from(local))?;
        inner.listen(BACKLOG)?;
        Ok(Self { inner, config: *config })
    }

    /// The address of this end.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()?.as_socket().ok_or_else(not_internet)
    }

    /// The next connection and who made it; `None` when none waits.
    ///
    /// # Errors
    /// When there is no descriptor or memory left. The connection waits on, and the socket stays
    /// readable.
    pub fn accept(&self) -> io::Result<Option<(Stream, SocketAddr)>> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        for _ in 0..BROKEN_MAX {
            let accepted = faults::before(Call::Accept).and_then(|()| self.inner.accept4(flags));
            match accepted {
                Ok((inner, remote)) => {
                    let remote = remote.as_socket().ok_or_else(not_internet)?;
                    return Ok(Some((Stream::with_options(inner, &self.config), remote)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if is_lack(&error) => return Err(error),
                // It broke while it waited; accept(2) tells its error here.
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

/// One connection.
#[derive(Debug)]
pub struct Stream {
    inner: Socket,
}

/// What the kernel has measured of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The smoothed round trip; zero before the first measurement.
    pub rtt: Duration,
    /// The congestion window, in bytes.
    pub window_bytes: u64,
    /// How fast it has been delivering of late, in bit/s; 0 before it is known.
    pub delivery_rate_bps: u64,
    /// Segments with data that were sent, again ones included.
    pub sent: u64,
    /// Segments that were sent again.
    pub resent: u64,
}

// Where in `struct tcp_info` of linux/tcp.h, in words of 32 bits.
const INFO_SEGMENT_LEN: usize = 4;
const INFO_RTT: usize = 17;
const INFO_WINDOW: usize = 20;
const INFO_RESENT: usize = 25;
const INFO_SENT: usize = 39;
const INFO_DELIVERY_RATE: usize = 40;
const INFO_WORDS: usize = INFO_DELIVERY_RATE + 2;

impl Stream {
    /// Begins to connect to `remote`. It is writable when that is over, and the first write says
    /// how it ended.
    ///
    /// # Errors
    /// What the kernel knows at once: no route, no port or descriptor left, or nobody listens on
    /// this host.
    pub fn connect(remote: SocketAddr, config: &Config) -> io::Result<Self> {
        let inner = socket(remote)?;
        ask_for_buffers(&inner, config);
        let stream = Self::with_options(inner, config);
        faults::before(Call::Connect)?;
        match stream.inner.connect(&SockAddr::from(remote)) {
            Ok(()) => Ok(stream),
            Err(error) if is_under_way(&error) => Ok(stream),
            Err(error) => Err(error),
        }
    }

    fn with_options(inner: Socket, config: &Config) -> Self {
        // A kernel without them carries the same bytes, only later.
        let _ = inner.set_tcp_nodelay(true);
        let _ = inner.set_tcp_notsent_lowat(config.unsent_bytes_max);
        let rto_ms_max = RESEND_EVERY_MAX.as_millis() as i32;
        let _ = sockopt::set(inner.as_fd(), libc::IPPROTO_TCP, TCP_RTO_MAX_MS, rto_ms_max);
        let _ = inner.set_tcp_user_timeout(Some(PATIENCE));
        Self { inner }
    }

    /// Keeps the connection for so long, in whole milliseconds, while nothing that was written is
    /// acknowledged.
    pub fn set_patience(&self, patience: Duration) {
        let _ = self.inner.set_tcp_user_timeout(Some(patience));
    }

    /// The longest time after which what is not acknowledged is sent again; `None` where the kernel
    /// cannot be told.
    #[must_use]
    pub fn resend_every_max(&self) -> Option<Duration> {
        let set = sockopt::int(self.inner.as_fd(), libc::IPPROTO_TCP, TCP_RTO_MAX_MS);
        set.ok().and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis)
    }

    /// What the kernel has measured of the connection (`TCP_INFO` of `tcp(7)`).
    ///
    /// # Errors
    /// What the kernel says; `Unsupported` where it tells less than this.
    pub fn measured(&self) -> io::Result<Measured> {
        let mut words = [0; INFO_WORDS];
        let fd = self.inner.as_fd();
        let told = sockopt::words_into(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut words)?;
        if told < INFO_WORDS {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let word = |at: usize| u64::from(words[at].cast_unsigned());
        // The two halves of a number of 64 bits lie as in memory.
        let rate = (words[INFO_DELIVERY_RATE], words[INFO_DELIVERY_RATE + 1]);
        let rate = [rate.0.to_ne_bytes(), rate.1.to_ne_bytes()].concat();
        let rate = rate.try_into().map(u64::from_ne_bytes).unwrap_or_default();
        Ok(Measured {
            rtt: Duration::from_micros(word(INFO_RTT)),
            window_bytes: word(INFO_WINDOW) * word(INFO_SEGMENT_LEN),
            delivery_rate_bps: rate.saturating_mul(8),
            sent: word(INFO_SENT),
            resent: word(INFO_RESENT),
        })
    }

    /// The address of this end.
    ///
    /// # Errors
    /// None that a correct program sees.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()?.as_socket().ok_or_else(not_internet)
    }

    /// Says that nothing more will be written; what was written still goes out first.
    ///
    /// # Errors
    /// `NotConnected` when the connection is gone already.
    pub fn end_writing(&self) -> io::Result<()> {
        self.inner.shutdown(Shutdown::Write)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // What is on its way is still tried to be delivered, but not for as long as somebody has
        // said who waits for it no more.
        self.set_patience(PATIENCE);
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        faults::before(Call::TcpRead)?;
        let len = faults::cut(Call::TcpRead, into.len());
        self.inner.read(&mut into[..len])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        faults::before(Call::TcpRead)?;
        match into.iter_mut().find(|part| !part.is_empty()) {
            Some(part) if faults::is_partial(Call::TcpRead) => {
                let half = part.len().div_ceil(2);
                self.inner.read(&mut part[..half])
            }
            _ => self.inner.read_vectored(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        faults::before(Call::TcpWrite)?;
        let len = faults::cut(Call::TcpWrite, bytes.len());
        self.inner.send_with_flags(&bytes[..len], libc::MSG_NOSIGNAL)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        faults::before(Call::TcpWrite)?;
        match parts.iter().find(|part| !part.is_empty()) {
            Some(part) if faults::is_partial(Call::TcpWrite) => {
                let half = part.len().div_ceil(2);
                self.inner.send_with_flags(&part[..half], libc::MSG_NOSIGNAL)
            }
            _ => self.inner.send_vectored_with_flags(parts, libc::MSG_NOSIGNAL),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))
}

fn ask_for_buffers(socket: &Socket, config: &Config) {
    // The kernel cuts the wish to its limits; a smaller buffer carries the same bytes.
    if let Some(bytes) = config.recv_buffer_bytes {
        let _ = socket.set_recv_buffer_size(bytes);
    }
    if let Some(bytes) = config.send_buffer_bytes {
        let _ = socket.set_send_buffer_size(bytes);
    }
}

fn is_under_way(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR))
}

fn is_lack(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}
