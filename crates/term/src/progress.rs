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

/// When something is to be shown again: regular times, whether anything is shown at them or not.
struct Tick {
    every: Duration,
    last: Instant,
}

impl Tick {
    fn is_due(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= self.every
    }

    /// How long until it is due again, never nothing. One that is past, and at which nothing was
    /// shown, is over: who waits for it again waits for the next.
    fn until_next(&mut self, now: Instant) -> Duration {
        if self.is_due(now) {
            self.last = now;
        }
        self.every.saturating_sub(now.saturating_duration_since(self.last))
    }
}

/// The line of progress.
pub struct Progress {
    tick: Option<Tick>,
    is_terminal: bool,
    is_shown: bool,
}

impl Progress {
    /// A line of progress, or none at all.
    pub fn new(is_quiet: bool) -> Self {
        let is_terminal = term::is_terminal(io::stderr().as_fd());
        let every = if is_terminal { TERMINAL_EVERY } else { ELSEWHERE_EVERY };
        let tick = (!is_quiet).then(|| Tick { every, last: Instant::now() });
        Self { tick, is_terminal, is_shown: false }
    }

    /// True when it is time to show how far it is.
    pub fn is_due(&self) -> bool {
        self.tick.as_ref().is_some_and(|tick| tick.is_due(Instant::now()))
    }

    /// How long to wait until it is due, `most` when that is sooner; never nothing. To be asked
    /// after [`Progress::is_due`] was: a time at which there was nothing to show has passed.
    pub fn due_in(&mut self, most: Duration) -> Duration {
        self.tick.as_mut().map_or(most, |tick| tick.until_next(Instant::now()).min(most))
    }

    /// Whether the line is on a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
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
        let Some(tick) = &mut self.tick else { return };
        tick.last = Instant::now();
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
    fn a_time_at_which_nothing_was_shown_is_over_when_it_is_waited_for_again() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut tick = Tick { every: Duration::from_secs(1), last: start };
        assert_eq!(tick.until_next(at(400)), Duration::from_millis(600));
        assert!(!tick.is_due(at(999)) && tick.is_due(at(1_000)));
        assert_eq!(tick.until_next(at(1_000)), Duration::from_secs(1), "nothing was to be shown");
        assert!(!tick.is_due(at(1_000)));
        // A process that was stopped for a minute owes nothing.
        assert_eq!(tick.until_next(at(61_000)), Duration::from_secs(1));
        for ms in 61_000..65_000 {
            assert!(tick.until_next(at(ms)) > Duration::ZERO, "{ms}");
        }
    }

    #[test]
    fn a_line_is_cut_at_a_character_and_not_inside() {
        assert_eq!(cut("…abc", 2), "…a");
        assert_eq!(cut("…abc", 4), "…abc");
        assert_eq!(cut("…abc", 9), "…abc");
        assert_eq!(cut("abc", 0), "");
    }
}
