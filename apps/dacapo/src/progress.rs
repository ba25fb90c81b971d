//! [`Progress`]: one line that says how far it is, on standard error.
//!
//! ```text
//!   on a terminal   rewritten in place, once a second, cut at the window's edge
//!   elsewhere       a line every five seconds
//!   quiet           nothing
//! ```
//!
//! Invariant: whoever prints something else clears the line first, so that nothing is mixed.

use dacapo_sys::term;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

const TERMINAL_EVERY: Duration = Duration::from_secs(1);
const ELSEWHERE_EVERY: Duration = Duration::from_secs(5);

/// The line of progress.
pub struct Progress {
    every: Option<Duration>,
    is_terminal: bool,
    is_shown: bool,
    last: Instant,
}

impl Progress {
    /// A line of progress, or none at all.
    pub fn new(is_quiet: bool) -> Self {
        let is_terminal = term::is_terminal(io::stderr().as_fd());
        let every = if is_terminal { TERMINAL_EVERY } else { ELSEWHERE_EVERY };
        let every = (!is_quiet).then_some(every);
        Self { every, is_terminal, is_shown: false, last: Instant::now() }
    }

    /// True when it is time to show how far it is.
    pub fn is_due(&self) -> bool {
        self.every.is_some_and(|every| self.last.elapsed() >= every)
    }

    /// How long until it is due; `most` when it never is.
    pub fn due_in(&self, most: Duration) -> Duration {
        self.every.map_or(most, |every| every.saturating_sub(self.last.elapsed()).min(most))
    }

    /// Characters that fit the line.
    pub fn width(&self) -> usize {
        if !self.is_terminal {
            return usize::MAX;
        }
        let columns = term::size(io::stderr().as_fd()).map_or(80, |size| size.columns);
        usize::from(columns).saturating_sub(1)
    }

    /// Shows how far it is.
    pub fn show(&mut self, text: &str) {
        if self.every.is_none() {
            return;
        }
        self.last = Instant::now();
        let width = self.width();
        let mut out = io::stderr().lock();
        // A terminal that is gone needs no progress.
        let _ = if self.is_terminal {
            self.is_shown = true;
            write!(out, "\r\x1b[K{}", cut(text, width))
        } else {
            writeln!(out, "{text}")
        };
        let _ = out.flush();
    }

    /// Takes the line away, so that something else can be printed.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let mut out = io::stderr().lock();
            let _ = write!(out, "\r\x1b[K");
            let _ = out.flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn cut(text: &str, columns: usize) -> &str {
    text.char_indices().nth(columns).map_or(text, |(at, _)| text.get(..at).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_a_character_and_not_inside() {
        assert_eq!(cut("…abc", 2), "…a");
        assert_eq!(cut("…abc", 4), "…abc");
        assert_eq!(cut("…abc", 9), "…abc");
        assert_eq!(cut("abc", 0), "");
    }
}
