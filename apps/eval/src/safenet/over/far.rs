//! [`Far`], a far end in a thread of its own, and what it counts.
//!
//! ```text
//!   near   begin(first) | messages first, first + 1, …        arrived()
//!   far       counts those numbered first or more; late ones of earlier rounds are not
//! ```
//!
//! Invariants: a far end ends with its handle; why it could not go on is kept for who asks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest that a far end waits before it looks whether it is over.
pub const SLICE: Duration = Duration::from_millis(50);

/// What has arrived of a round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The number of its first message.
    first: u64,
    /// How many of its messages have arrived.
    arrived: u64,
}

/// What a far end says of itself.
#[derive(Debug, Default)]
pub struct Tally {
    round: Mutex<Round>,
    is_over: AtomicBool,
    fault: Mutex<Option<String>>,
}

impl Tally {
    /// A message that is not answered has arrived: its number, over all rounds.
    pub fn count(&self, number: u64) {
        let mut round = held(&self.round);
        round.arrived += u64::from(number >= round.first);
    }
}

/// What a thread that panicked has left is whole: nothing in between can panic.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A far end.
#[derive(Debug)]
pub struct Far {
    tally: Arc<Tally>,
    thread: Option<JoinHandle<()>>,
}

impl Far {
    /// Has a thread do this again and again, each time for [`SLICE`] at most.
    pub fn start(
        mut work: impl FnMut(&Tally) -> Result<(), String> + Send + 'static,
    ) -> Result<Self, String> {
        let tally = Arc::<Tally>::default();
        let own = Arc::clone(&tally);
        let body = move || {
            while !own.is_over.load(Ordering::Relaxed) {
                if let Err(error) = work(&own) {
                    *held(&own.fault) = Some(error);
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("far".to_owned()).spawn(body);
        let thread = thread.map_err(|error| format!("the far end, a thread: {error}"))?;
        Ok(Self { tally, thread: Some(thread) })
    }

    /// Begins a round with the message of this number.
    pub fn begin(&self, first: u64) {
        *held(&self.tally.round) = Round { first, arrived: 0 };
    }

    /// How many messages of this round have arrived.
    pub fn arrived(&self) -> u64 {
        held(&self.tally.round).arrived
    }

    /// Why it could not go on.
    pub fn fault(&self) -> Option<String> {
        held(&self.tally.fault).clone()
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.tally.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed, and what it was to do is missed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_does_not_count_in_the_next_round() {
        let far = Far::start(|_| Ok(())).unwrap();
        [0, 1, 3].into_iter().for_each(|number| far.tally.count(number));
        assert_eq!(far.arrived(), 3);
        far.begin(5);
        [4, 5, 6, 2].into_iter().for_each(|number| far.tally.count(number));
        assert_eq!(far.arrived(), 2);
    }
}
