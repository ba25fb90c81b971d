//! `Runner`: the thread that drives a path, and what its owner can say to it meanwhile.
//!
//! ```text
//!   owner:   set_link, partition, stats ──> lock(path) ──> wake
//!   thread:  wait ─> clock ─> lock(path) ─> due: Ends::send ─> Ends::handle_ready ─> due ─> …
//! ```
//!
//! Invariants: the lock is held for one turn at most, and a turn reads a bounded number of times;
//! the thread ends with the value.

use crate::path::{Path, PathStats, Way};
use dacapo_base::Time;
use dacapo_link::{Carry, ConfigError, Delivery, LinkConfig};
use dacapo_sys::clock;
use dacapo_sys::poll::{Event, Interest, Poller, Waker};
use dacapo_sys::thread::set_timer_slack;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The token of the waker in every poller.
const WAKER: u64 = u64::MAX;

/// Where the datagrams of a path come from and go to.
pub(crate) trait Ends<T: Carry>: Send {
    /// What is watched.
    fn poller(&mut self) -> &mut Poller;

    /// Reads from a descriptor that is ready, a bounded number of times.
    fn handle_ready(&mut self, now: Time, token: u64, path: &mut Path<T>) -> io::Result<()>;

    /// Sends on what a link has delivered, or keeps it for [`Ends::flush`].
    fn send(&mut self, now: Time, way: Way, delivery: Delivery<T>, counts: &mut PathStats);

    /// Sends what was kept.
    fn flush(&mut self, counts: &mut PathStats);

    /// When it has something to do of its own accord.
    fn next_deadline(&self) -> Option<Time>;

    /// Does it.
    fn handle_timeout(&mut self, now: Time, counts: &mut PathStats);

    /// Counts what is only known at the end.
    fn close(&mut self, counts: &mut PathStats);
}

struct Shared<T> {
    path: Mutex<Path<T>>,
    waker: Waker,
    is_stopping: AtomicBool,
    /// Zero of the path's time.
    origin: Time,
}

impl<T> Shared<T> {
    fn path(&self) -> MutexGuard<'_, Path<T>> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::from_nanos(0) + clock::now().since(self.origin)
    }
}

/// A path that runs.
pub(crate) struct Runner<T: Carry> {
    shared: Arc<Shared<T>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Carry + Send + 'static> Runner<T> {
    /// Starts a thread of this name. The time of the path begins now.
    pub fn spawn(name: &str, path: Path<T>, mut ends: impl Ends<T> + 'static) -> io::Result<Self> {
        let waker = Waker::new()?;
        ends.poller().add(waker.as_fd(), WAKER, Interest::Read)?;
        let is_stopping = AtomicBool::new(false);
        let path = Mutex::new(path);
        let shared = Arc::new(Shared { path, waker, is_stopping, origin: clock::now() });
        let driven = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            // Without it everything leaves some 50 us late, no more.
            let _ = set_timer_slack(Duration::from_nanos(1));
            let result = drive(&driven, &mut ends);
            let mut path = driven.path();
            ends.close(&mut path.counts);
            path.counts.fault = result.err().map(|error| error.to_string());
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl<T: Carry> Runner<T> {
    pub fn set_link(&self, way: Way, config: LinkConfig) -> Result<(), ConfigError> {
        let now = self.shared.now();
        let result = self.shared.path().link(way).set_config(now, config);
        self.shared.waker.wake();
        result
    }

    pub fn partition(&self, way: Way, is_cut: bool) {
        self.shared.path().link(way).set_partitioned(is_cut);
    }

    pub fn stats(&self) -> PathStats {
        self.shared.path().stats()
    }

    /// Ends the thread, and waits for it.
    pub fn stop(&mut self) -> PathStats {
        self.shared.is_stopping.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
        self.stats()
    }
}

impl<T: Carry> Drop for Runner<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

fn drive<T: Carry>(shared: &Shared<T>, ends: &mut impl Ends<T>) -> io::Result<()> {
    let mut events: Vec<Event> = Vec::new();
    while !shared.is_stopping.load(Ordering::Acquire) {
        let timeout = timeout(shared, ends);
        ends.poller().wait(timeout, &mut events)?;
        let now = shared.now();
        let mut path = shared.path();
        // What is due leaves before anything enters: it makes room in flight.
        deliver(now, ends, &mut path);
        for event in &events {
            if event.token == WAKER {
                shared.waker.clear();
            } else {
                ends.handle_ready(now, event.token, &mut path)?;
            }
        }
        deliver(now, ends, &mut path);
        if ends.next_deadline().is_some_and(|due| due <= now) {
            ends.handle_timeout(now, &mut path.counts);
        }
    }
    Ok(())
}

/// How long nothing is due. The turn has taken some time: hence the second look at the clock, only
/// where something is waited for.
fn timeout<T: Carry>(shared: &Shared<T>, ends: &impl Ends<T>) -> Option<Duration> {
    let due = [shared.path().next_deadline(), ends.next_deadline()].into_iter().flatten().min()?;
    Some(due.since(shared.now()))
}

fn deliver<T: Carry>(now: Time, ends: &mut impl Ends<T>, path: &mut Path<T>) {
    for way in Way::ALL {
        while let Some(delivery) = path.poll_deliver(now, way) {
            ends.send(now, way, delivery, &mut path.counts);
        }
    }
    ends.flush(&mut path.counts);
}
