//! Terminals: raw mode with a guard, and the size of the window.
//!
//! Key by key input without echo, for as long as a [`RawMode`] lives. Ctrl-C still makes a signal,
//! so a program that hangs can be stopped.
//!
//! Source: termios(3), ioctl_tty(2).

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The size of a terminal's window, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Lines from top to bottom.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// True when the descriptor is a terminal.
#[must_use]
pub fn is_terminal(fd: BorrowedFd<'_>) -> bool {
    fd.is_terminal()
}

/// The size of the terminal's window; `None` when it is no terminal or does not know.
#[must_use]
pub fn size(fd: BorrowedFd<'_>) -> Option<Size> {
    let mut window = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes one winsize, and `window` is one that outlives the call.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &raw mut window) };
    let known = result == 0 && window.ws_row > 0 && window.ws_col > 0;
    known.then_some(Size { rows: window.ws_row, columns: window.ws_col })
}

/// A terminal without echo and line editing; the drop restores what was.
pub struct RawMode {
    terminal: OwnedFd,
    before: libc::termios,
}

impl RawMode {
    /// Turns echo and line editing off; keys that make signals keep doing so.
    ///
    /// # Errors
    /// When the descriptor is no terminal.
    pub fn enter(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let terminal = fd.try_clone_to_owned()?;
        let before = settings(terminal.as_fd())?;
        set(terminal.as_fd(), &raw(before))?;
        Ok(Self { terminal, before })
    }

    /// Turns them off again when somebody has turned them on: a shell does while the program is
    /// stopped. Only for who is in the foreground of the terminal: another is stopped by it.
    pub fn renew(&self) {
        // A terminal that is gone needs no settings.
        if let Ok(now) = settings(self.terminal.as_fd())
            && now.c_lflag & (libc::ECHO | libc::ICANON) != 0
        {
            let _ = set(self.terminal.as_fd(), &raw(now));
        }
    }
}

fn raw(mut settings: libc::termios) -> libc::termios {
    settings.c_lflag &= !(libc::ECHO | libc::ICANON);
    settings.c_cc[libc::VMIN] = 1;
    settings.c_cc[libc::VTIME] = 0;
    settings
}

impl std::fmt::Debug for RawMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawMode").field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = set(self.terminal.as_fd(), &self.before);
    }
}

fn settings(fd: BorrowedFd<'_>) -> io::Result<libc::termios> {
    // SAFETY: termios is made of integers, for which zero bytes are valid.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: tcgetattr writes one termios, and `settings` is one that outlives the call.
    let result = unsafe { libc::tcgetattr(fd.as_raw_fd(), &raw mut settings) };
    if result == 0 { Ok(settings) } else { Err(io::Error::last_os_error()) }
}

fn set(fd: BorrowedFd<'_>, settings: &libc::termios) -> io::Result<()> {
    // SAFETY: tcsetattr reads one termios, which is borrowed for the call.
    let result = unsafe { libc::tcsetattr(fd.as_raw_fd(), libc::TCSANOW, settings) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pty::Pty;

    #[test]
    fn raw_mode_turns_echo_and_lines_off_and_is_undone_by_the_drop() {
        let Ok(pty) = Pty::open(Size { rows: 24, columns: 80 }) else {
            dacapo_base::skip("this system has no pseudo terminals");
            return;
        };
        let slave = pty.terminal();
        assert!(is_terminal(slave.as_fd()));
        assert_eq!(size(slave.as_fd()), Some(Size { rows: 24, columns: 80 }));
        let before = settings(slave.as_fd()).unwrap().c_lflag;
        let raw = RawMode::enter(slave.as_fd()).unwrap();
        let during = settings(slave.as_fd()).unwrap().c_lflag;
        assert_eq!(during & (libc::ECHO | libc::ICANON), 0);
        assert_eq!(during & libc::ISIG, libc::ISIG);
        set(slave.as_fd(), &raw.before).unwrap();
        raw.renew();
        assert_eq!(
            settings(slave.as_fd()).unwrap().c_lflag,
            during,
            "after somebody else's change"
        );
        drop(raw);
        assert_eq!(settings(slave.as_fd()).unwrap().c_lflag, before);
    }

    #[test]
    fn what_is_no_terminal_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(!is_terminal(file.as_fd()));
        assert_eq!(size(file.as_fd()), None);
        assert!(RawMode::enter(file.as_fd()).is_err());
    }
}
