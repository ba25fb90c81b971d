//! [`Sleeper`]: how who leads sleeps, until something comes, somebody wakes it, or it is time.
//!
//! ```text
//!   calls       the turn loop's own set, the waker in it       what is found there saves a look
//!   background  a set of its own: the turn loop's, the waker
//! ```
//!
//! What it is not: the rule who leads (`drive`).
//!
//! Invariants: who wakes first clears its waker, so each has one of its own; two threads never
//! sleep at the same set, where an event wakes one of them only.
//!
//! Waking up costs a processor that sleeps 20 µs and more. So who has not waited long the last time
//! watches for [`WATCH_MAX`] before it sleeps, while a processor is free for that.

use dacapo_base::{Gather, Time};
use dacapo_core::Reactor;
use dacapo_sys::clock;
use dacapo_sys::load::Load;
use dacapo_sys::poll::{Event, Interest, Poller, Waker};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
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

/// What is slept at, and how it is woken.
pub(super) struct Sleeper {
    poller: Poller,
    /// The turn loop's descriptor, where it is watched from a set of its own.
    turn_loop: Option<OwnedFd>,
    /// It is in that set now.
    is_nested: bool,
    events: Vec<Event>,
    waker: Arc<Waker>,
    load: Load,
    /// The last wait was short.
    is_brisk: bool,
    gather: Gather,
}

impl Sleeper {
    /// How calls sleep.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn of_calls(reactor: &mut Reactor) -> io::Result<Self> {
        let waker = Waker::new()?;
        reactor.watch(waker.as_fd(), CALLS)?;
        Ok(Self::new(reactor.poller(), None, waker))
    }

    /// How the background sleeps.
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
        let (events, waker) = (Vec::new(), Arc::new(waker));
        let (load, gather) = (Load::new(), Gather::default());
        let (is_nested, is_brisk) = (false, false);
        Self { poller, turn_loop, is_nested, events, waker, load, is_brisk, gather }
    }

    /// What wakes it.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Sleeps until something comes, somebody wakes it, or it is time; true when something came.
    /// `received` is how many bytes have come so far in all.
    ///
    /// # Errors
    /// None that a correct program sees; who sleeps again would not sleep.
    pub fn sleep(&mut self, until: Time, received: u64) -> io::Result<bool> {
        self.nest()?;
        let began = clock::now();
        if let Some(rest) = self.gather.rest(began, received) {
            std::thread::sleep(rest.min(until.since(began)));
        }
        if !(self.is_brisk && self.load.is_processor_free(began) && self.watch(began, until)?) {
            let wait = (until != Time::NEVER).then(|| until.since(clock::now()));
            self.poller.wait(wait, &mut self.events)?;
        }
        let now = clock::now();
        self.is_brisk = now.since(began) < BRISK;
        self.gather.looked(now);
        if self.events.iter().any(|event| self.is_waker(event)) {
            self.waker.clear();
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

impl Drop for Sleeper {
    fn drop(&mut self) {
        // A descriptor is removed before it is closed; those of the turn loop live on in others'
        // hands.
        self.let_go();
        if self.turn_loop.is_none() {
            let _ = self.poller.remove(self.waker.as_fd());
        }
    }
}
