//! [`Signals`]: the signals that ask a program to stop, as a readable descriptor.
//!
//! A self-pipe. The handler writes the number of the signal into a pipe, and the turn loop reads
//! it. Unlike signalfd it needs no mask, which other threads and children would inherit.
//!
//! Invariants: the handler only loads an atomic and writes one byte (both are
//! async-signal-safe); the pipe lives as long as the process, so a late handler never writes into
//! somebody else's descriptor.
//!
//! Source: signal-safety(7), sigaction(2), pipe(7).

use crate::poll::owned;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static CLAIMED: AtomicBool = AtomicBool::new(false);
static PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();
/// The writing end for the handler; -1 until there is one.
static WRITE_END: AtomicI32 = AtomicI32::new(-1);

/// A signal that can be caught here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: the user pressed the interrupt key.
    Interrupt,
    /// SIGTERM: somebody asks the program to end.
    Terminate,
    /// SIGHUP: the terminal is gone, or read the configuration again.
    HangUp,
}

impl Signal {
    /// Every signal that can be caught here.
    pub const ALL: [Self; 3] = [Self::Interrupt, Self::Terminate, Self::HangUp];

    fn number(self) -> i32 {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
            Self::HangUp => libc::SIGHUP,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.number() == i32::from(byte))
    }
}

/// From now on a write beyond the limit of file sizes (`ulimit -f`) is an error of that write, as
/// on a full disk, and not the end of the process (SIGXFSZ). Programs that are started inherit it.
pub fn ignore_file_size_limit() {
    // SAFETY: SIG_IGN is a valid disposition of SIGXFSZ; the call touches no memory of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Catches signals while it lives; what happened on them before is restored by the drop.
#[derive(Debug)]
pub struct Signals {
    read_end: BorrowedFd<'static>,
    before: Vec<Caught>,
}

struct Caught {
    signal: Signal,
    action: libc::sigaction,
}

impl std::fmt::Debug for Caught {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.signal.fmt(f)
    }
}

impl Signals {
    /// Catches `signals` from now on. Who was started to outlive its terminal (`nohup`) ignores
    /// [`Signal::HangUp`], and that stays so.
    ///
    /// # Errors
    /// `AlreadyExists` when another [`Signals`] lives in this process; others when there is no
    /// descriptor left.
    pub fn catch(signals: &[Signal]) -> io::Result<Self> {
        let pipe = pipe()?;
        if CLAIMED.swap(true, Ordering::AcqRel) {
            let text = "signals are caught already in this process: use that Signals";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        let mut caught = Self { read_end: pipe.as_fd(), before: Vec::new() };
        while caught.poll().is_some() {}
        for &signal in signals {
            let action = replace(signal, &handler())?;
            if signal == Signal::HangUp && action.sa_sigaction == libc::SIG_IGN {
                replace(signal, &action)?;
                continue;
            }
            caught.before.push(Caught { signal, action });
        }
        Ok(caught)
    }

    /// The next signal that arrived; `None` when none is waiting.
    pub fn poll(&mut self) -> Option<Signal> {
        loop {
            let mut byte = 0_u8;
            // SAFETY: the buffer is one writable byte that outlives the call.
            let read = unsafe { libc::read(self.read_end.as_raw_fd(), (&raw mut byte).cast(), 1) };
            if read == 1 {
                if let Some(signal) = Signal::from_byte(byte) {
                    return Some(signal);
                }
            } else if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return None;
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read_end
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for Caught { signal, action } in self.before.drain(..).rev() {
            // A signal that could be caught can be given back: nothing to do about a refusal.
            let _ = replace(signal, &action);
        }
        CLAIMED.store(false, Ordering::Release);
    }
}

fn pipe() -> io::Result<&'static OwnedFd> {
    if PIPE.get().is_none() {
        let mut ends = [-1; 2];
        // SAFETY: `ends` is room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // Of two threads here at once one loses, and its pipe is closed by the drop.
        let _ = PIPE.set((owned(ends[0])?, owned(ends[1])?));
    }
    let (read_end, write_end) = PIPE.get().ok_or(io::ErrorKind::NotFound)?;
    WRITE_END.store(write_end.as_raw_fd(), Ordering::Release);
    Ok(read_end)
}

fn handler() -> libc::sigaction {
    // SAFETY: all zero bytes are a valid sigaction: no flags, an empty mask, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(i32) as libc::sighandler_t;
    // Other parts of the program see no EINTR from calls that can be restarted.
    action.sa_flags = libc::SA_RESTART;
    action
}

fn replace(signal: Signal, with: &libc::sigaction) -> io::Result<libc::sigaction> {
    // SAFETY: all zero bytes are a valid sigaction, and the kernel overwrites it.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to sigactions that outlive the call, and the handler in `with` is
    // either `on_signal`, which is async-signal-safe, or what was there before.
    let result = unsafe { libc::sigaction(signal.number(), with, &raw mut before) };
    if result == 0 { Ok(before) } else { Err(io::Error::last_os_error()) }
}

extern "C" fn on_signal(number: i32) {
    let byte = number as u8;
    let fd = WRITE_END.load(Ordering::Acquire);
    // SAFETY: errno is a thread-local integer. The code that was interrupted may be about to read
    // it, so it is put back. write is async-signal-safe, the buffer is one readable byte, and the
    // pipe is never closed; a full pipe refuses the byte, and then signals enough are waiting.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(fd, (&raw const byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Interest, Poller};

    fn raise(signal: Signal) {
        // SAFETY: raise takes a number; the signal is caught by the test that calls this.
        assert_eq!(unsafe { libc::raise(signal.number()) }, 0);
    }

    fn set(signal: Signal, disposition: libc::sighandler_t) {
        let mut action = handler();
        action.sa_sigaction = disposition;
        replace(signal, &action).unwrap();
    }

    // One test, because a process has one set of handlers.
    #[test]
    fn signals_are_read_in_order_and_given_back_by_the_drop() {
        // Who starts the tests may have them ignored.
        Signal::ALL.into_iter().for_each(|signal| set(signal, libc::SIG_DFL));
        let mut signals = Signals::catch(&Signal::ALL).unwrap();
        assert_eq!(signals.poll(), None);
        let refused = Signals::catch(&[Signal::HangUp]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);

        raise(Signal::HangUp);
        raise(Signal::Terminate);
        raise(Signal::Interrupt);
        let mut poller = Poller::new().unwrap();
        poller.add(signals.as_fd(), 0, Interest::Read).unwrap();
        let mut events = Vec::new();
        while events.is_empty() {
            poller.wait(None, &mut events).unwrap();
        }
        let read: Vec<_> = std::iter::from_fn(|| signals.poll()).collect();
        assert_eq!(read, [Signal::HangUp, Signal::Terminate, Signal::Interrupt]);

        drop(signals);
        let before = replace(Signal::HangUp, &handler()).unwrap();
        assert_eq!(before.sa_sigaction, libc::SIG_DFL);
        raise(Signal::HangUp);
        replace(Signal::HangUp, &before).unwrap();
        let mut again = Signals::catch(&[Signal::Terminate]).unwrap();
        assert_eq!(again.poll(), None, "what came before is not for the new one");

        drop(again);
        set(Signal::HangUp, libc::SIG_IGN);
        let mut under_nohup = Signals::catch(&Signal::ALL).unwrap();
        raise(Signal::HangUp);
        raise(Signal::Terminate);
        let read: Vec<_> = std::iter::from_fn(|| under_nohup.poll()).collect();
        assert_eq!(read, [Signal::Terminate], "who is to outlive the terminal does");
        drop(under_nohup);
        set(Signal::HangUp, libc::SIG_DFL);
    }
}
