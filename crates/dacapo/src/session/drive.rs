//! [`Shared`]: an endpoint's state and its lock, and who does the work: a leader, followers, and a
//! thread for when nobody else does.
//!
//! ```text
//!   call --lock--> command, turn --+--> done
//!                                  +--> must wait:
//!     nobody leads, or the background: lead     somebody leads: follow
//!       unlock, sleep on the descriptor           sleep until a turn has brought what is waited
//!       or until the next deadline                for, or the lead is free
//!       lock, turn, wake who has got something
//!     on leaving, the lead goes to a follower, or the background looks after it
//! ```
//!
//! What it is not: the work itself (`State::turn`), or the background thread's rule (`background`).
//!
//! Invariants: nobody sleeps with the lock; at most one thread turns at a time; who leads, or will
//! have to, is woken when a turn of another brings an earlier deadline than it sleeps until; who
//! waits wakes only when there is something for it to do; the background never turns after a call
//! has taken the lead from it.

use super::background::Background;
use super::sleeper::Sleeper;
use super::state::{Pushed, State};
use dacapo_base::{Time, failpoint};
use dacapo_core::{Code, Error};
use dacapo_sys::clock;
use dacapo_sys::poll::Waker;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The state of an endpoint, locked.
pub(super) type Guard<'a> = MutexGuard<'a, State>;

/// What is waited for.
type Met = Box<dyn Fn(&State) -> bool + Send>;

/// Who leads: sleeps on the descriptor and turns when something comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// Nobody; the background looks after it within its time.
    Free,
    /// A call that waits.
    Call,
    /// The background thread.
    Background,
}

/// A call that follows.
struct Follower {
    id: u64,
    met: Met,
    turn_to: Arc<Condvar>,
    /// It is awake, or about to be.
    is_told: bool,
}

/// What an endpoint has done, to see that it does not do too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reactors: one, and further ones that were made for new peers when all were full.
    pub reactors: u64,
    /// The share of the last second that the busiest of them has worked, in permille, by a sample
    /// of one call in sixteen.
    pub busy_permille: u16,
    /// Turns made.
    pub turns: u64,
    /// Those of them that the background thread made.
    pub background_turns: u64,
    /// Those of the background thread for which there was no reason: nothing had come, and nothing
    /// was due.
    pub empty_turns: u64,
    /// Times that the background thread looked whether somebody else works, and did not turn.
    pub background_looks: u64,
    /// Times that the background thread took the lock that calls need too. While calls turn it
    /// takes none.
    pub background_locks: u64,
    /// Times that a leader was woken because something was due earlier than it slept.
    pub wakes: u64,
}

impl Counters {
    /// Those of two reactors together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            reactors: self.reactors + other.reactors,
            busy_permille: self.busy_permille.max(other.busy_permille),
            turns: self.turns + other.turns,
            background_turns: self.background_turns + other.background_turns,
            empty_turns: self.empty_turns + other.empty_turns,
            background_looks: self.background_looks + other.background_looks,
            background_locks: self.background_locks + other.background_locks,
            wakes: self.wakes + other.wakes,
        }
    }
}

/// Who drives an endpoint.
pub(super) struct Drive {
    pub lead: Lead,
    /// What calls that lead sleep on; away while one does.
    sleeper: Option<Sleeper>,
    /// Until when a call sleeps that leads, and how it is woken.
    pub call: Alarm,
    /// What calls know of the background thread, which also sleeps on when it has lost the lead.
    pub background: Arc<Background>,
    followers: Vec<Follower>,
    next_follower: u64,
    pub counters: Counters,
}

impl Drive {
    pub fn new(sleeper: Sleeper, background: &Sleeper) -> Self {
        Self {
            lead: Lead::Free,
            call: Alarm::new(sleeper.waker()),
            background: Arc::new(Background::new(Alarm::new(background.waker()))),
            sleeper: Some(sleeper),
            followers: Vec::new(),
            next_follower: 0,
            counters: Counters::default(),
        }
    }

    /// How who leads, or will have to, is woken.
    fn alarm(&self) -> &Alarm {
        match self.lead {
            Lead::Call => &self.call,
            Lead::Free | Lead::Background => &self.background.alarm,
        }
    }
}

/// Wakes who sleeps, when something is due earlier. Set and rung under the lock of the state.
pub(super) struct Alarm {
    waker: Arc<Waker>,
    /// Until when it sleeps, in nanoseconds; [`AWAKE`] when it does not, or has been woken.
    asleep: AtomicU64,
}

/// Nobody sleeps until the origin of the clock.
const AWAKE: u64 = 0;

impl Alarm {
    fn new(waker: Arc<Waker>) -> Self {
        Self { waker, asleep: AtomicU64::new(AWAKE) }
    }

    /// It sleeps from now on.
    pub fn set(&self, until: Time) {
        self.asleep.store(until.as_nanos(), Ordering::Release);
    }

    /// It is awake; needs no lock, and who rings just now rings for nothing.
    pub fn clear(&self) {
        self.asleep.store(AWAKE, Ordering::Release);
    }

    /// Until when it sleeps, if it does.
    fn asleep(&self) -> Option<Time> {
        let until = self.asleep.load(Ordering::Acquire);
        (until != AWAKE).then(|| Time::from_nanos(until))
    }

    /// Somebody else has found its waker set.
    pub fn hush(&self) {
        self.waker.clear();
    }

    /// Wakes it if it sleeps.
    pub fn ring(&self) {
        if self.asleep.swap(AWAKE, Ordering::AcqRel) != AWAKE {
            self.waker.wake();
        }
    }
}

/// Who hands over unit after unit makes a whole turn so often.
const TURN_EVERY: Duration = Duration::from_micros(100);

/// An endpoint's state, its lock, and what its background thread looks at without it.
pub(super) struct Shared {
    state: Mutex<State>,
    pub background: Arc<Background>,
}

impl Shared {
    pub fn new(state: State) -> Self {
        let background = Arc::clone(&state.drive.background);
        Self { state: Mutex::new(state), background }
    }

    /// The state. A thread that panicked with it has left nothing half done that matters more than
    /// the others' calls.
    pub fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns, for a call that has changed something.
    pub fn act(&self, state: &mut State) {
        failpoint!("endpoint.command");
        self.turn(state);
        self.after_turn(state);
    }

    /// Turns, for a call that looks whether something has come; false when nothing has happened.
    pub fn look(&self, state: &mut State) -> bool {
        let has_changed = self.turn(state);
        if has_changed {
            self.after_turn(state);
        }
        has_changed
    }

    fn turn(&self, state: &mut State) -> bool {
        let has_changed = state.turn();
        self.background.turned(state.host.reactor().turned_at());
        has_changed
    }

    /// Turns, for a call that has handed a unit over to a flow, when there was no turn for a while
    /// or the unit has left something to do.
    pub fn after_push(&self, state: &mut State, now: Time, pushed: Pushed) {
        let is_late = now.since(self.background.turned_at()) >= TURN_EVERY;
        if is_late || pushed != Pushed::Sent {
            self.act(state);
        }
    }

    /// Tells those for whom a turn has brought something.
    pub fn after_turn(&self, state: &mut State) {
        let mut followers = std::mem::take(&mut state.drive.followers);
        for follower in followers.iter_mut().filter(|follower| !follower.is_told) {
            if (follower.met)(state) || state.failure.is_some() {
                follower.is_told = true;
                follower.turn_to.notify_one();
            }
        }
        state.drive.followers = followers;
        state.ring_if_earlier();
    }

    /// Something has come that no turn has brought: who waits for it is woken.
    pub fn tell(&self) {
        let mut state = self.lock();
        self.after_turn(&mut state);
        state.drive.call.ring();
    }

    /// Waits until `met`, at most until `until`: whether it is, or what the system said when
    /// nothing works any more.
    pub fn wait<'a>(
        &'a self,
        mut state: Guard<'a>,
        until: Time,
        met: impl Fn(&State) -> bool + Clone + Send + 'static,
    ) -> (Guard<'a>, Result<bool, Error>) {
        let outcome = loop {
            if met(&state) {
                break Ok(true);
            }
            if let Some(failure) = &state.failure {
                break Err(failure.clone());
            }
            if clock::now() >= until {
                break Ok(false);
            }
            state = match state.drive.lead {
                Lead::Call => self.follow(state, until, Box::new(met.clone())),
                Lead::Free | Lead::Background => self.lead(state, until),
            };
        };
        self.hand_over(&mut state);
        (state, outcome)
    }

    /// Leads for one turn.
    fn lead<'a>(&'a self, mut state: Guard<'a>, until: Time) -> Guard<'a> {
        let Some(mut sleeper) = state.drive.sleeper.take() else {
            // Cannot be: only who leads has it. Then the turn alone must do.
            self.act(&mut state);
            return state;
        };
        let until = state.next_deadline().min(until);
        state.drive.lead = Lead::Call;
        state.drive.call.set(until);
        let received = state.host.reactor().counters().received_bytes;
        drop(state);
        let slept = sleeper.sleep(until, received);
        let mut state = self.lock();
        state.host.reactor().handle_ready(sleeper.found());
        state.came(slept);
        state.drive.call.clear();
        (state.drive.lead, state.drive.sleeper) = (Lead::Free, Some(sleeper));
        self.act(&mut state);
        state
    }

    /// Sleeps until there is something for it, or the lead is free.
    fn follow<'a>(&'a self, mut state: Guard<'a>, until: Time, met: Met) -> Guard<'a> {
        let turn_to = Arc::new(Condvar::new());
        let id = state.drive.next_follower;
        state.drive.next_follower += 1;
        let follower = Follower { id, met, turn_to: Arc::clone(&turn_to), is_told: false };
        state.drive.followers.push(follower);
        let mut state = wait_at(&turn_to, state, until);
        state.drive.followers.retain(|follower| follower.id != id);
        state
    }

    /// A call that leaves sees to it that somebody leads.
    fn hand_over(&self, state: &mut State) {
        let drive = &mut state.drive;
        if drive.lead != Lead::Free {
            return;
        }
        if let Some(next) = drive.followers.iter_mut().find(|follower| !follower.is_told) {
            next.is_told = true;
            next.turn_to.notify_one();
        } else if !(drive.followers.is_empty() && self.background.unpark()) {
            state.ring_if_earlier();
        }
    }
}

impl State {
    /// Whether something came while a leader slept; nothing works any more when it cannot.
    pub fn came(&mut self, slept: io::Result<bool>) -> bool {
        let failed = |error: io::Error| Error::new(Code::System, error.to_string());
        match slept.map_err(failed) {
            Ok(came) => came,
            Err(failure) => {
                self.failure.get_or_insert(failure);
                false
            }
        }
    }

    /// Wakes who sleeps until something is due, when something else is due before.
    pub fn ring_if_earlier(&mut self) {
        let Some(asleep) = self.drive.alarm().asleep() else { return };
        if self.next_deadline() < asleep {
            self.drive.counters.wakes += 1;
            self.drive.alarm().ring();
        }
    }
}

/// Waits at a condition until it is told, or it is time; it may wake for nothing.
pub(super) fn wait_at<'a>(at: &Condvar, state: Guard<'a>, until: Time) -> Guard<'a> {
    if until == Time::NEVER {
        return at.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    let most = until.since(clock::now());
    at.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
}
