//! The thread of an endpoint that works when nobody else does.
//!
//! ```text
//!   a call has turned -> rests until nobody has for 5 ms
//!   a call leads      -> parked: sleeps until it is told that nobody leads
//!   nobody            -> leads: sleeps on the descriptor or until the next deadline, turns
//! ```
//!
//! What it is not: needed for the work of calls; it keeps the promises of the engine (life signs,
//! answers to the peer, pace) while the application is elsewhere.
//!
//! Invariants: it turns only when something has come or is due; while nothing happens it sleeps as
//! long as the engine lets it; a call takes the lead from it without asking; while calls turn it
//! never takes the lock of the state, which they would have to wait for, and wake it for; it ends
//! as soon as the endpoint stops, or nothing works any more.

use super::drive::{Alarm, Guard, Lead, Shared};
use super::sleeper::Sleeper;
use dacapo_base::{Time, failpoint};
use dacapo_sys::clock;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// It leads when nobody has turned for so long.
const QUIET: Duration = Duration::from_millis(5);

/// What calls and the background thread know of each other without the lock of the state.
pub(super) struct Background {
    /// How it is woken while it sleeps as the leader.
    pub alarm: Alarm,
    thread: OnceLock<Thread>,
    /// When a call has turned last, in nanoseconds.
    turned_at: AtomicU64,
    /// It sleeps until it is told. Written under the lock of the state.
    is_parked: AtomicBool,
    /// The endpoint is going.
    is_stopping: AtomicBool,
    /// Times that it looked whether somebody else works, and did not turn.
    looks: AtomicU64,
}

impl Background {
    pub fn new(alarm: Alarm) -> Self {
        Self {
            alarm,
            thread: OnceLock::new(),
            turned_at: AtomicU64::new(0),
            is_parked: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            looks: AtomicU64::new(0),
        }
    }

    /// Which thread it is; said before the first call.
    pub fn is_at(&self, thread: &Thread) {
        self.thread.get_or_init(|| thread.clone());
    }

    /// A call has turned.
    pub fn turned(&self, at: Time) {
        self.turned_at.store(at.as_nanos(), Ordering::Release);
    }

    /// Tells it that nobody leads; whether it waited for that.
    pub fn unpark(&self) -> bool {
        let was_parked = self.is_parked.swap(false, Ordering::AcqRel);
        if was_parked {
            self.wake();
        }
        was_parked
    }

    /// Ends it, wherever it sleeps.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.alarm.ring();
        self.wake();
    }

    /// Times that it looked whether somebody else works, and did not turn.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// When a call has turned last.
    pub fn turned_at(&self) -> Time {
        Time::from_nanos(self.turned_at.load(Ordering::Acquire))
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// How long it is until no call has turned for [`QUIET`]; `None` when none has.
    fn rest(&self) -> Option<Duration> {
        let rest = (self.turned_at() + QUIET).since(clock::now());
        (!rest.is_zero()).then_some(rest)
    }

    /// Sleeps until no call has turned for [`QUIET`], or the endpoint stops.
    fn sleep_while_calls_turn(&self) {
        while let Some(rest) = self.rest()
            && !self.is_stopping()
        {
            self.looks.fetch_add(1, Ordering::Relaxed);
            thread::park_timeout(rest);
        }
    }

    /// Sleeps until it is told that nobody leads, or the endpoint stops.
    fn sleep_while_a_call_leads(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        while self.is_parked.load(Ordering::Acquire) && !self.is_stopping() {
            thread::park();
        }
    }
}

/// Works until the endpoint stops.
pub(super) fn run(shared: &Shared, mut sleeper: Sleeper) {
    let its = &*shared.background;
    loop {
        if its.rest().is_some() {
            sleeper.let_go();
        }
        // A call that comes again at once, as calls do in a loop, does not meet this thread.
        its.sleep_while_calls_turn();
        let state = lock(shared);
        failpoint!("endpoint.thread");
        if its.is_stopping() || state.failure.is_some() {
            return;
        }
        match state.drive.lead {
            Lead::Call => {
                its.is_parked.store(true, Ordering::Release);
                drop(state);
                sleeper.let_go();
                its.sleep_while_a_call_leads();
            }
            Lead::Free | Lead::Background if its.rest().is_some() => {}
            Lead::Free | Lead::Background => lead(shared, state, &mut sleeper),
        }
    }
}

/// Leads for one turn, unless a call takes the lead or has turned meanwhile.
fn lead(shared: &Shared, mut state: Guard<'_>, sleeper: &mut Sleeper) {
    let its = &*shared.background;
    let until = state.next_deadline();
    state.drive.lead = Lead::Background;
    its.alarm.set(until);
    let turned_at = its.turned_at();
    let received = state.host.reactor().counters().received_bytes;
    drop(state);
    let slept = sleeper.sleep(until, received);
    its.alarm.clear();
    if slept.is_ok() && its.turned_at() != turned_at {
        // Calls work. That it still seems to lead keeps none of them from leading.
        return;
    }
    let mut state = lock(shared);
    let came = state.came(slept);
    let mine = state.drive.lead == Lead::Background && its.turned_at() == turned_at;
    if mine && !its.is_stopping() {
        let is_due = came || until <= clock::now();
        let counters = &mut state.drive.counters;
        counters.background_turns += 1;
        counters.empty_turns += u64::from(!is_due);
        state.drive.lead = Lead::Free;
        state.turn();
        shared.after_turn(&mut state);
    }
}

/// The state, locked by this thread, which is counted.
fn lock(shared: &Shared) -> Guard<'_> {
    let mut state = shared.lock();
    state.drive.counters.background_locks += 1;
    state
}
