//! [`Near`], what is measured, and [`Far`], a far end in a thread of its own.
//!
//! What it is not: what goes between them.
//!
//! Invariants: a far end ends with its handle; why it could not go on is kept for who asks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest that a far end waits before it looks whether it is over.
pub const SLICE: Duration = Duration::from_millis(50);
/// The longest that anything is waited for.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// What has not arrived after so long without another arrival is lost.
const QUIET: Duration = Duration::from_millis(20);

/// A near end and the far ends that it talks to. A call that fails says what did not come.
pub trait Near {
    /// Sends a message and waits until it has come back whole.
    fn round_trip(&mut self, len: usize) -> Result<(), String>;

    /// Sends a message that is not answered; returns when it was accepted.
    fn send(&mut self, len: usize) -> Result<(), String>;

    /// Waits until what was sent has arrived, as much of it as does.
    fn settle(&mut self) -> Result<(), String>;

    /// The far ends.
    fn fars(&self) -> &[Far];

    /// How many messages that are not answered have arrived at each far end.
    fn arrived(&self) -> Vec<u64> {
        self.fars().iter().map(Far::arrived).collect()
    }

    /// Why a far end could not go on.
    fn fault(&self) -> Option<String> {
        self.fars().iter().find_map(Far::fault)
    }
}

/// What a far end says of itself.
#[derive(Debug, Default)]
pub struct Tally {
    arrived: AtomicU64,
    is_over: AtomicBool,
    fault: Mutex<Option<String>>,
}

impl Tally {
    /// A message that is not answered has arrived.
    pub fn count(&self) {
        self.arrived.fetch_add(1, Ordering::Relaxed);
    }
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
                    *own.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("far".to_owned()).spawn(body);
        let thread = thread.map_err(|error| format!("the far end, a thread: {error}"))?;
        Ok(Self { tally, thread: Some(thread) })
    }

    fn arrived(&self) -> u64 {
        self.tally.arrived.load(Ordering::Relaxed)
    }

    fn fault(&self) -> Option<String> {
        self.tally.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

/// Waits, `turn` by `turn`, until so many messages have arrived at each far end, or no more do.
pub fn until_arrived(
    fars: &[Far],
    wanted: u64,
    mut turn: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let began = Instant::now();
    let (mut last, mut since) = (u64::MAX, began);
    while began.elapsed() < PATIENCE {
        let fewest = fars.iter().map(Far::arrived).min().unwrap_or(wanted);
        if fewest >= wanted {
            break;
        }
        let sum = fars.iter().map(Far::arrived).sum();
        if std::mem::replace(&mut last, sum) != sum {
            since = Instant::now();
        } else if since.elapsed() > QUIET {
            break;
        }
        turn()?;
    }
    Ok(())
}
