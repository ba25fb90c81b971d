//! [`Pty`]: a pseudo terminal, and a program that has it as its terminal.
//!
//! ```text
//!   Pty (what a window shows, what a person types)  <- kernel: lines, echo, ^C ->  a program
//! ```
//!
//! Invariant: the program leads a session of its own with this terminal, so that the keys that make
//! signals reach it, and the end of the [`Pty`] hangs it up.
//!
//! Source: pty(7), signal(7), setsid(2), ioctl_tty(2), TIOCGPTPEER.

use crate::poll::owned;
use crate::term::Size;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A pseudo terminal, both ends.
#[derive(Debug)]
pub struct Pty {
    window: Window,
    terminal: OwnedFd,
}

/// A pseudo terminal as the person in front of it has it: what is read was printed, what is
/// written was typed. When nobody has the other end any more, reading comes to the end after the
/// last byte that was printed.
#[derive(Debug)]
pub struct Window(File);

impl Window {
    /// The same window, once more.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl Read for Window {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        until_end(|| self.0.read(buffer))
    }
}

impl Write for Window {
    fn write(&mut self, keys: &[u8]) -> io::Result<usize> {
        self.0.write(keys)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Window {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Pty {
    /// A pseudo terminal of this size.
    ///
    /// # Errors
    /// The system has none, or no descriptor is left.
    pub fn open(size: Size) -> io::Result<Self> {
        // Both ends are close-on-exec from the beginning: a program that another thread starts
        // meanwhile would keep the terminal alive.
        // SAFETY: posix_openpt takes flags and touches no memory.
        let window = unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC) };
        let window = owned(window)?;
        let fd = window.as_raw_fd();
        // SAFETY: both take an open descriptor and touch no memory of ours.
        if unsafe { libc::grantpt(fd) != 0 || libc::unlockpt(fd) != 0 } {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        // SAFETY: TIOCGPTPEER takes flags and gives a descriptor; it touches no memory of ours.
        let terminal = owned(unsafe { libc::ioctl(fd, libc::TIOCGPTPEER, flags) })?;
        let size = winsize(size);
        // SAFETY: TIOCSWINSZ reads one winsize, which outlives the call.
        if unsafe { libc::ioctl(fd, libc::TIOCSWINSZ, &raw const size) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { window: Window(File::from(window)), terminal })
    }

    /// The end of the programs.
    #[must_use]
    pub fn terminal(&self) -> &OwnedFd {
        &self.terminal
    }

    /// Starts a program at this terminal. Only it has the terminal then: when it and what it has
    /// started are gone, reading from the window comes to its end.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(self, mut command: Command) -> io::Result<(Child, Window)> {
        let stdin = Stdio::from(self.terminal.try_clone()?);
        let stdout = Stdio::from(self.terminal.try_clone()?);
        command.stdin(stdin).stdout(stdout).stderr(Stdio::from(self.terminal));
        // SAFETY: between fork and exec only signal, setsid and ioctl are called, which are
        // async-signal-safe and touch no memory; descriptor 0 is the terminal by then.
        unsafe {
            command.pre_exec(|| {
                // Who started us to outlive its terminal (`nohup`) meant us, not this program.
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        Ok((command.spawn()?, self.window))
    }
}

/// Linux says `EIO` when the programs are gone. It looks for bytes first and for programs then:
/// what is printed last may come between the two looks, and is there at the next.
fn until_end(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    let is_gone = |error: &io::Error| error.raw_os_error() == Some(libc::EIO);
    let first = read();
    let last = if first.as_ref().is_err_and(is_gone) { read() } else { first };
    if last.as_ref().is_err_and(is_gone) { Ok(0) } else { last }
}

fn winsize(size: Size) -> libc::winsize {
    libc::winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of a pseudo terminal; `None` where the system has none.
    fn pty() -> Option<Pty> {
        let pty = Pty::open(Size { rows: 24, columns: 80 }).ok();
        if pty.is_none() {
            dacapo_base::skip("this system has no pseudo terminals");
        }
        pty
    }

    #[test]
    fn a_program_has_the_terminal_and_its_interrupt_key() {
        let Some(pty) = pty() else { return };
        // The shell looks for signals after each command. It may not wait in `read`: one that comes
        // after that look and before the wait would be seen with the next line, which never comes.
        let waits = "i=0; while [ $i -lt 1200 ]; do sleep 0.05; i=$((i + 1)); done";
        let script = format!("trap 'echo caught; exit 3' INT; stty size; {waits}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        let (mut child, mut window) = pty.spawn(command).unwrap();
        let mut keys = window.try_clone().unwrap();
        let mut seen = Vec::new();
        let mut read = |until: &str| {
            while !String::from_utf8_lossy(&seen).contains(until) {
                let mut buffer = [0; 64];
                let len = window.read(&mut buffer).unwrap();
                assert_ne!(len, 0, "{until:?} is not in {:?}", String::from_utf8_lossy(&seen));
                seen.extend_from_slice(&buffer[..len]);
            }
        };
        read("24 80");
        keys.write_all(b"\x03").unwrap();
        read("caught");
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }

    #[test]
    fn what_is_printed_last_is_read_and_then_the_end() {
        let Some(Pty { mut window, terminal }) = pty() else { return };
        File::from(terminal).write_all(b"last").unwrap();
        let mut printed = String::new();
        window.read_to_string(&mut printed).unwrap();
        assert_eq!(printed, "last");
    }

    #[test]
    fn what_comes_between_the_two_looks_of_the_system_is_read() {
        let check = |reads: &[Result<usize, i32>], expected| {
            let mut left = reads.iter();
            let got = until_end(|| left.next().unwrap().map_err(io::Error::from_raw_os_error));
            assert_eq!(got.map_err(|error| error.raw_os_error().unwrap()), expected, "{reads:?}");
            assert_eq!(left.next(), None, "{reads:?}");
        };
        check(&[Ok(3)], Ok(3));
        check(&[Err(libc::EIO), Ok(6)], Ok(6));
        check(&[Err(libc::EIO), Err(libc::EIO)], Ok(0));
        check(&[Err(libc::EINTR)], Err(libc::EINTR));
    }

    #[test]
    fn who_closes_the_window_hangs_the_program_up() {
        use std::os::unix::process::ExitStatusExt;
        let Some(pty) = pty() else { return };
        let mut command = Command::new("sh");
        command.args(["-c", "read line"]);
        let (mut child, window) = pty.spawn(command).unwrap();
        drop(window);
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGHUP));
    }
}
