//! [`Load`]: whether a processor is free for somebody who would rather watch than sleep.
//!
//! The number of threads that run or want to, out of `/proc/loadavg`, and that of processors.
//!
//! Invariant: the system is asked at most every [`ASK_EVERY`]; where it does not say, no processor
//! is free.
//!
//! Source: proc(5), `/proc/loadavg`, fourth field.

use dacapo_base::Time;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// How long an answer is believed.
pub const ASK_EVERY: Duration = Duration::from_millis(10);

/// How busy this host is.
#[derive(Debug)]
pub struct Load {
    file: Option<File>,
    processors: usize,
    is_free: bool,
    ask_at: Time,
}

impl Load {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new() -> Self {
        let processors = crate::process::processors().get();
        let file = File::open("/proc/loadavg").ok();
        Self { file, processors, is_free: false, ask_at: Time::ZERO }
    }

    /// Whether fewer threads than there are processors run or want to, the one that asks left out.
    pub fn is_processor_free(&mut self, now: Time) -> bool {
        if now >= self.ask_at {
            self.ask_at = now + ASK_EVERY;
            self.is_free = self.others().is_some_and(|others| others < self.processors);
        }
        self.is_free
    }

    fn others(&self) -> Option<usize> {
        let mut bytes = [0; 128];
        let len = self.file.as_ref()?.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(bytes.get(..len)?).ok()?;
        Some(running(text)?.saturating_sub(1))
    }
}

impl Default for Load {
    fn default() -> Self {
        Self::new()
    }
}

/// The threads that run or want to, out of `0.20 0.18 0.12 1/80 11206`.
fn running(text: &str) -> Option<usize> {
    text.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_threads_are_the_fourth_field() {
        assert_eq!(running("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        for text in ["", "0.20 0.18 0.12", "0.20 0.18 0.12 80 11206", "a b c d/e"] {
            assert_eq!(running(text), None, "{text:?}");
        }
    }

    #[test]
    fn who_asks_runs_itself_and_an_answer_is_believed_for_a_while() {
        let mut load = Load::new();
        assert!(load.others().is_some(), "this system says it");
        let first = load.is_processor_free(Time::from_millis(1));
        load.file = None;
        assert_eq!(load.is_processor_free(Time::from_millis(10)), first);
        assert!(!load.is_processor_free(Time::from_millis(11)), "who does not know does not watch");
    }
}
