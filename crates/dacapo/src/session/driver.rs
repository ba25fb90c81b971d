//! [`Shared`]: an endpoint's state and its lock; [`Driver`]: who waits there and drives it, and how
//! who sleeps is woken.
//!
//! How calls wait is `waiting`'s, the rule of the background thread `background`'s, the work itself
//! the state's.
//!
//! In a fork of the process that made it, where the lock may be held by a thread that is not there
//! and the sockets are the parent's, calls get another state: one in which nothing is, and which
//! says why.
//!
//! Invariants: who leads, or will have to, is woken when a turn of another brings an earlier
//! deadline than it sleeps until; the background never turns after a call has taken the lead from
//! it.

use super::background::Background;
use super::poll::{Poll, Wakeup};
use super::state::State;
use super::waiters::{Doorbell, Leader, Waiters};
use super::waiting::{Turning, Waiting};
use super::wanted::Wanted;
use super::watch::Notice;
use crate::host::{Host, Seed};
use dacapo_base::Time;
use dacapo_core::{Code, Error, Offered};
use dacapo_sys::clock;
use dacapo_sys::process::Birth;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The state of an endpoint, locked.
pub(super) type Guard<'a> = MutexGuard<'a, State>;

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
    /// Times that a wait ran out although its unit was there: the call woke by itself, because its
    /// time was over or something else had come, and found what it waited for, for which nobody had
    /// woken it. It is 0, whatever the load.
    pub missed_waits: u64,
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
            missed_waits: self.missed_waits + other.missed_waits,
        }
    }
}

/// How a call is woken that waits.
#[derive(Clone)]
pub(super) enum Ring {
    /// It leads, and sleeps at its poll.
    Poll(Arc<Wakeup>),
    /// Another leads.
    Thread(Arc<Condvar>),
}

impl Doorbell for Ring {
    fn ring(&self) {
        match self {
            Self::Poll(wakeup) => wakeup.ring(),
            Self::Thread(sleeps) => sleeps.notify_one(),
        }
    }
}

/// Who drives an endpoint.
pub(super) struct Driver {
    pub waiters: Waiters<Wanted, Ring, Poll>,
    /// How a call is woken that leads.
    call: Arc<Wakeup>,
    /// What calls know of the background thread, which also sleeps on when it has lost the lead.
    pub background: Arc<Background>,
    pub counters: Counters,
}

impl Driver {
    /// The driver of a host, that host, and where its background sleeps.
    ///
    /// # Errors
    /// [`Code::System`] when there is no descriptor left.
    pub fn of(mut host: Host, notice: Arc<Notice>) -> Result<(Self, Host, Poll), Error> {
        let system = |error: io::Error| Error::new(Code::System, error.to_string());
        let calls = Poll::of_calls(host.reactor()).map_err(system)?;
        let background = Poll::of_background(host.reactor()).map_err(system)?;
        Ok((Self::new(calls, &background, notice), host, background))
    }

    fn new(calls: Poll, background: &Poll, notice: Arc<Notice>) -> Self {
        Self {
            call: calls.wakeup(),
            background: Arc::new(Background::new(background.wakeup(), notice)),
            waiters: Waiters::new(calls),
            counters: Counters::default(),
        }
    }

    /// What it has done.
    pub fn counters(&self) -> Counters {
        Counters { missed_waits: self.waiters.missed(), ..self.counters }
    }

    /// The turn has found the waker of calls set. While a call leads that is for it; else it was
    /// rung too late, and would keep the background from sleeping.
    pub fn hush(&self) {
        if !matches!(self.waiters.leader(), Leader::Call) {
            self.call.hush();
        }
    }

    /// How who leads, or will have to, is woken.
    fn wakeup(&self) -> &Wakeup {
        match self.waiters.leader() {
            Leader::Call => &self.call,
            Leader::Nobody(_) | Leader::Background(_) => &self.background.wakeup,
        }
    }
}

/// What a call says in a fork.
fn forked() -> Error {
    let text =
        "the process was forked: sessions stay with the parent, make an endpoint of your own";
    Error::new(Code::Forked, text)
}

/// Who hands over unit after unit makes a whole turn so often.
const TURN_EVERY: Duration = Duration::from_micros(100);

/// An endpoint's state, its lock, and what its background thread looks at without it.
pub(super) struct Shared {
    state: Mutex<State>,
    pub background: Arc<Background>,
    birth: Birth,
    /// What a fork is made a state of, and that state.
    seed: Seed,
    orphan: OnceLock<Mutex<State>>,
}

impl Shared {
    pub fn new(state: State) -> Self {
        let background = Arc::clone(&state.driver.background);
        let (seed, birth, orphan) = (state.host.seed(), Birth::now(), OnceLock::new());
        Self { state: Mutex::new(state), background, birth, seed, orphan }
    }

    /// Whether this is the process in which the endpoint works, and no fork of it.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.birth.is_here()
    }

    /// The same, for who has to give an error.
    ///
    /// # Errors
    /// [`Code::Forked`].
    pub fn check_here(&self) -> Result<(), Error> {
        if self.is_here() { Ok(()) } else { Err(forked()) }
    }

    /// What is locked in a fork.
    #[cold]
    fn orphan(&self) -> &Mutex<State> {
        self.orphan.get_or_init(|| {
            let state = Notice::new().map_err(|error| Error::caused(Code::System, error));
            let state = state.and_then(|notice| {
                let (driver, host, _) = Driver::of(self.seed.grow()?, Arc::new(notice))?;
                Ok(State { failure: Some(forked()), ..State::new(host, driver, 0) })
            });
            Mutex::new(state.expect("a fork that calls what its parent made needs descriptors"))
        })
    }

    /// Turns, for a call that has handed a unit over to a flow, when there was no turn for a while
    /// or the unit has left something to do.
    pub fn after_offer(&self, state: &mut State, now: Time, offered: Offered) {
        let is_late = now.since(self.background.turned_at()) >= TURN_EVERY;
        if is_late || offered != Offered::Sent {
            self.act(state);
        }
    }
}

impl Waiting for Shared {
    type State = State;
    type Guard<'a> = Guard<'a>;

    /// A thread that panicked with it has left nothing half done that matters more than the others'
    /// calls.
    fn lock(&self) -> Guard<'_> {
        let state = if self.is_here() { &self.state } else { self.orphan() };
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        clock::now()
    }

    fn doorbell(&self) -> Ring {
        Ring::Thread(Arc::default())
    }

    fn sleep_at<'a>(&'a self, doorbell: &Ring, state: Guard<'a>, until: Time) -> Guard<'a> {
        // A leader has a poll to sleep at.
        let Ring::Thread(doorbell) = doorbell else { return state };
        if until == Time::NEVER {
            return doorbell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let most = until.since(clock::now());
        doorbell.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
    }

    fn desert(&self, state: &mut State) {
        if !self.background.unpark() {
            state.reschedule();
        }
    }
}

impl Turning for State {
    type Wanted = Wanted;
    type Poll = Poll;

    fn waiters(&mut self) -> &mut Waiters<Wanted, Ring, Poll> {
        &mut self.driver.waiters
    }

    fn is_met(&self, wanted: &Wanted) -> bool {
        wanted.is_met(self)
    }

    fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    fn turn(&mut self) -> bool {
        let has_changed = self.round();
        let turned_at = self.host.reactor().turned_at();
        self.driver.background.turned(turned_at);
        has_changed
    }

    /// Wakes who sleeps until something is due, when something else is due before.
    fn reschedule(&mut self) {
        let Some(asleep) = self.driver.wakeup().asleep() else { return };
        if self.next_deadline() < asleep {
            self.driver.counters.wakes += 1;
            self.driver.wakeup().ring();
        }
    }

    fn lie_down(&mut self, poll: &mut Poll, until: Time) -> Time {
        let until = self.next_deadline().min(until);
        poll.lie_down(until, self.host.reactor().counters().received_bytes);
        until
    }

    fn get_up(&mut self, poll: &mut Poll, slept: io::Result<bool>) {
        self.host.reactor().handle_ready(poll.found());
        self.came(slept);
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
                self.driver.background.notice.set();
                false
            }
        }
    }
}
