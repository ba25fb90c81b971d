//! [`Poll`]: where who leads sleeps, until something comes, somebody wakes it, or it is time;
//! [`Wakeup`]: how it is woken.
//!
//! ```text
//!   calls       the turn loop's own set, the waker in it       what is found there saves a look
//!   background  a set of its own: the turn loop's, the waker
//! ```
//!
//! Invariants: who wakes first clears its waker, so each has one of its own; two threads never
//! sleep at the same set, where an event wakes one of them only.
//!
//! Waking up costs a processor that sleeps 20 µs and more. So who may ([`Wait::Adaptive`]) and has
//! not waited long the last time watches for [`WATCH_MAX`] before it sleeps, while a processor is
//! free for that.

use super::driver::Ring;
use super::waiting::{Place, Wait};
use dacapo_base::Time;
use dacapo_io::Coalescing;
use dacapo_reactor::Reactor;
use dacapo_sys::clock;
use dacapo_sys::load::Load;
use dacapo_sys::poll::{Event, Interest, Poller, Waker};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A leader watches for so long before it sleeps, where that is worth it.
const WATCH_MAX: Duration = Duration::from_micros(50);

/// It is worth it while what is waited for comes within this time.
const BRISK: Duration = Duration::from_micros(200);

/// The token of the calls' waker at the turn loop.
const CALLS: u32 = 0;

/// The tokens of the background's set.
const LOOP: u64 = 0;
const WAKER: u64 = 1;

/// Wakes who sleeps at a poll. Set and rung under the lock of the state.
pub(super) struct Wakeup {
    waker: Waker,
    /// Until when it sleeps, in nanoseconds; [`AWAKE`] when it does not, or has been woken.
    asleep: AtomicU64,
}

/// Nobody sleeps until the origin of the clock.
const AWAKE: u64 = 0;

impl Wakeup {
    fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self { waker, asleep: AtomicU64::new(AWAKE) })
    }

    /// It sleeps from now on.
    fn set(&self, until: Time) {
        self.asleep.store(until.as_nanos(), Ordering::Release);
    }

    /// It is awake; needs no lock, and who rings just now rings for nothing.
    fn clear(&self) {
        self.asleep.store(AWAKE, Ordering::Release);
    }

    /// Until when it sleeps, if it does.
    pub fn asleep(&self) -> Option<Time> {
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

/// What is slept at, and how who sleeps there is woken.
pub(super) struct Poll {
    poller: Poller,
    /// The turn loop's descriptor, where it is watched from a set of its own.
    turn_loop: Option<OwnedFd>,
    /// It is in that set now.
    is_nested: bool,
    events: Vec<Event>,
    wakeup: Arc<Wakeup>,
    load: Load,
    /// The last wait was short.
    is_brisk: bool,
    coalescing: Coalescing,
    /// How many bytes had come in all when it lay down.
    received: u64,
}

impl Poll {
    /// Where calls sleep.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn of_calls(reactor: &mut Reactor) -> io::Result<Self> {
        let waker = Waker::new()?;
        reactor.watch(waker.as_fd(), CALLS)?;
        Ok(Self::new(reactor.poller(), None, waker))
    }

    /// Where the background sleeps.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn of_background(reactor: &Reactor) -> io::Result<Self> {
        let (poller, waker) = (Poller::new()?, Waker::new()?);
        let turn_loop = reactor.as_fd().try_clone_to_owned()?;
        poller.add(waker.as_fd(), WAKER, Interest::Read)?;
        Ok(Self::new(poller, Some(turn_loop), waker))
    }

    fn new(poller: Poller, turn_loop: Option<OwnedFd>, waker: Waker) -> Self {
        Self {
            poller,
            turn_loop,
            is_nested: false,
            events: Vec::new(),
            wakeup: Wakeup::new(waker),
            load: Load::new(),
            is_brisk: false,
            coalescing: Coalescing::default(),
            received: 0,
        }
    }

    /// What wakes who sleeps here.
    pub fn wakeup(&self) -> Arc<Wakeup> {
        Arc::clone(&self.wakeup)
    }

    /// Who leads is about to sleep until then, and can be woken from now on; `received` is how many
    /// bytes have come so far in all.
    pub fn lie_down(&mut self, until: Time, received: u64) {
        self.received = received;
        self.wakeup.set(until);
    }

    fn sleep_and_wake(&mut self, until: Time, how: Wait) -> io::Result<bool> {
        self.nest()?;
        let began = clock::now();
        if let Some(rest) = self.coalescing.rest(began, self.received) {
            std::thread::sleep(rest.min(until.since(began)));
        }
        if !(self.may_watch(began, how) && self.watch(began, until)?) {
            let wait = (until != Time::NEVER).then(|| until.since(clock::now()));
            self.poller.wait(wait, &mut self.events)?;
        }
        let now = clock::now();
        self.is_brisk = now.since(began) < BRISK;
        self.coalescing.looked(now);
        if self.events.iter().any(|event| self.is_waker(event)) {
            self.wakeup.hush();
        }
        Ok(self.events.iter().any(|event| !self.is_waker(event)))
    }

    /// Watches the turn loop from a set of its own.
    fn nest(&mut self) -> io::Result<()> {
        if let Some(turn_loop) = self.turn_loop.as_ref().filter(|_| !self.is_nested) {
            self.poller.add(turn_loop.as_fd(), LOOP, Interest::Read)?;
            self.is_nested = true;
        }
        Ok(())
    }

    /// Sleeps no more for a while: of each datagram that comes the kernel would tell this set, too.
    pub fn let_go(&mut self) {
        if let Some(turn_loop) = self.turn_loop.as_ref().filter(|_| self.is_nested) {
            // It lives as long as this, so it is there to be removed.
            self.is_nested = self.poller.remove(turn_loop.as_fd()).is_err();
        }
    }

    fn is_waker(&self, event: &Event) -> bool {
        match self.turn_loop {
            Some(_) => event.token == WAKER,
            None => Reactor::watched(event).is_some(),
        }
    }

    fn may_watch(&mut self, now: Time, how: Wait) -> bool {
        how == Wait::Adaptive && self.is_brisk && self.load.is_processor_free(now)
    }

    /// Looks again and again without sleeping; true when there is no need to sleep any more.
    fn watch(&mut self, began: Time, until: Time) -> io::Result<bool> {
        let end = (began + WATCH_MAX).min(until);
        loop {
            self.poller.wait(Some(Duration::ZERO), &mut self.events)?;
            if !self.events.is_empty() {
                return Ok(true);
            }
            let now = clock::now();
            if now >= end {
                return Ok(now >= until);
            }
        }
    }

    /// What the last sleep has found at the turn loop, for [`Reactor::handle_ready`].
    pub fn found(&self) -> &[Event] {
        if self.turn_loop.is_none() { &self.events } else { &[] }
    }
}

impl Place for Poll {
    type Doorbell = Ring;
    type Slept = io::Result<bool>;

    fn doorbell(&self) -> Ring {
        Ring::Poll(self.wakeup())
    }

    /// Sleeps until something comes, somebody rings, or it is time; true when something came. An
    /// error is none that a correct program sees; who sleeps again would not sleep.
    fn sleep(&mut self, until: Time, how: Wait) -> io::Result<bool> {
        let slept = self.sleep_and_wake(until, how);
        self.wakeup.clear();
        slept
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        // A descriptor is removed before it is closed; those of the turn loop live on in others'
        // hands.
        self.let_go();
        if self.turn_loop.is_none() {
            let _ = self.poller.remove(self.wakeup.waker.as_fd());
        }
    }
}
