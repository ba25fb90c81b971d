//! The thread of an endpoint that works when nobody else does.
//!
//! ```text
//!   a call has turned -> rests until nobody has for 5 ms
//!   a call leads      -> parked: sleeps until it is told that nobody leads
//!   nobody            -> leads: sleeps on the descriptor or until the next deadline, turns
//! ```
//!
//! Calls do without it; it keeps the promises of the engine (life signs, answers to the peer, pace)
//! while the application is elsewhere.
//!
//! Invariants: it turns only when something has come or is due; while nothing happens it sleeps as
//! long as the engine lets it; a call takes the lead from it without asking; while calls turn it
//! never takes the lock of the state, which they would have to wait for, and wake it for; it ends
//! as soon as the endpoint stops, or nothing works any more.

use super::driver::{Guard, Shared};
use super::poll::{Poll, Wakeup};
use super::waiters::Leader;
use super::waiting::{Place, Wait, Waiting};
use super::watch::Notice;
use dacapo_base::{Time, failpoint};
use dacapo_sys::clock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

/// It leads when nobody has turned for so long.
const QUIET: Duration = Duration::from_millis(5);

/// What calls and the background thread know of each other without the lock of the state.
pub(super) struct Background {
    /// How it is woken while it sleeps as the leader.
    pub wakeup: Arc<Wakeup>,
    /// Who turns by [`Endpoint::turn`](super::Endpoint::turn) is told here.
    pub notice: Arc<Notice>,
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
    pub fn new(wakeup: Arc<Wakeup>, notice: Arc<Notice>) -> Self {
        Self {
            wakeup,
            notice,
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
        self.wakeup.ring();
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

    /// How long it is until no call has turned for [`QUIET`]; `None` when none has, or calls leave
    /// the work to this thread and sleep elsewhere.
    fn rest(&self) -> Option<Duration> {
        if self.notice.is_watched() {
            return None;
        }
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
pub(super) fn run(shared: &Shared, mut poll: Poll) {
    let its = &*shared.background;
    loop {
        if its.rest().is_some() {
            poll.let_go();
        }
        // A call that comes again at once, as calls do in a loop, does not meet this thread.
        its.sleep_while_calls_turn();
        let state = lock(shared);
        failpoint!("endpoint.thread");
        if its.is_stopping() || state.failure.is_some() {
            return;
        }
        match state.driver.waiters.leader() {
            Leader::Call => {
                its.is_parked.store(true, Ordering::Release);
                drop(state);
                poll.let_go();
                its.sleep_while_a_call_leads();
            }
            Leader::Nobody(_) | Leader::Background(_) if its.rest().is_some() => {}
            Leader::Nobody(_) | Leader::Background(_) => lead(shared, state, &mut poll),
        }
    }
}

/// Leads for one turn, unless a call takes the lead or has turned meanwhile.
fn lead(shared: &Shared, mut state: Guard<'_>, poll: &mut Poll) {
    let its = &*shared.background;
    let until = state.next_deadline();
    if !state.driver.waiters.lead_from_background(true) {
        return;
    }
    poll.lie_down(until, state.host.reactor().counters().received_bytes);
    let turned_at = its.turned_at();
    drop(state);
    // It does not wait for somebody's answer, so it never watches.
    let slept = poll.sleep(until, Wait::Block);
    if slept.is_ok() && its.turned_at() != turned_at {
        // Calls work. That it still seems to lead keeps none of them from leading.
        return;
    }
    let mut state = lock(shared);
    let came = state.came(slept);
    let leads = matches!(state.driver.waiters.leader(), Leader::Background(_));
    if leads && its.turned_at() == turned_at && !its.is_stopping() {
        let is_due = came || until <= clock::now();
        let counters = &mut state.driver.counters;
        counters.background_turns += 1;
        counters.empty_turns += u64::from(!is_due);
        state.driver.waiters.lead_from_background(false);
        state.round();
        shared.satisfy(&mut state);
    }
}

/// The state, locked by this thread, which is counted.
fn lock(shared: &Shared) -> Guard<'_> {
    let mut state = shared.lock();
    state.driver.counters.background_locks += 1;
    state
}
