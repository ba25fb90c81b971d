//! [`Pause`]: a listener that cannot accept is not looked at for a moment.
//!
//! ```text
//!   no descriptor left -> not watched, 100 ms -> watched again
//! ```
//!
//! Such a listener stays readable, and who looked at it would spin.

use dacapo_base::Time;
use std::io;
use std::time::Duration;

/// How long a listener pauses.
const LENGTH: Duration = Duration::from_millis(100);

/// Until when a listener pauses, if it does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pause(Option<Time>);

impl Pause {
    /// It begins, where `unwatch` has the listener watched no more.
    pub fn begin(&mut self, now: Time, unwatch: impl FnOnce() -> io::Result<()>) {
        if unwatch().is_ok() {
            self.0 = Some(now + LENGTH);
        }
    }

    /// It ends when it is over and `watch` has the listener watched again.
    pub fn end(&mut self, now: Time, watch: impl FnOnce() -> io::Result<()>) {
        if self.0.is_some_and(|until| until <= now) {
            self.0 = watch().err().map(|_| now + LENGTH);
        }
    }

    /// When it is over.
    #[must_use]
    pub fn until(&self) -> Option<Time> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_until_its_time_and_as_long_as_watching_fails() {
        let at = Time::from_millis;
        let refused = || Err(io::ErrorKind::OutOfMemory.into());
        let mut pause = Pause::default();
        pause.begin(at(10), refused);
        assert_eq!(pause.until(), None, "it is watched on");
        pause.begin(at(10), || Ok(()));
        pause.end(at(109), || panic!("too early"));
        pause.end(at(110), refused);
        assert_eq!(pause.until(), Some(at(210)));
        pause.end(at(210), || Ok(()));
        assert_eq!(pause.until(), None);
    }
}
