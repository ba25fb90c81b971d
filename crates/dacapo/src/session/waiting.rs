//! [`Waiting`]: how a call waits, and turns what it waits at; [`Wait`]: how its thread does.
//!
//! ```text
//!   wait:  met? --yes--> leave, pass the lead on
//!           | no
//!           +-- nobody leads:   register, unlock, sleep at the poll, lock, leave, turn
//!           +-- somebody leads: register, unlock, sleep at a doorbell,   lock, leave
//!           +-- Wait::Spin:     unlock, lock, turn
//! ```
//!
//! It knows neither sessions nor the system: those are `driver`'s, and the model's in the tests,
//! which goes through the orders in which threads can take their steps.
//!
//! Invariants: nobody sleeps with the lock; at most one thread turns at a time; whoever has turned
//! rings all whose wait is met before it unlocks; a wait whose time is past makes its round all the
//! same; a panic in a turn leaves the lead to others.

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use super::waiters::{Doorbell, Waiters};
use dacapo_base::{Time, failpoint};
use dacapo_core::Error;
use std::hint;
use std::ops::DerefMut;
use std::panic::{self, AssertUnwindSafe};

/// How a call waits for what has not come yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Asleep until the system wakes it: no processor time is spent on waiting.
    Block,
    /// Asleep, but where the last wait was short and a processor is free it first watches for 50 µs
    /// at most: to wake a processor up that sleeps takes 20 µs and more.
    #[default]
    Adaptive,
    /// Awake, looking again and again: one processor does nothing else.
    Spin,
}

/// Where a call sleeps that leads: at everything that can come.
pub(super) trait Place {
    /// What ends its sleep besides.
    type Doorbell: Doorbell;
    /// What the sleep has shown.
    type Slept;

    fn doorbell(&self) -> Self::Doorbell;
    fn sleep(&mut self, until: Time, how: Wait) -> Self::Slept;
}

/// What ends the sleep of those who wait in such a state.
pub(super) type BellOf<S> = <<S as Turning>::Poll as Place>::Doorbell;

/// Those who wait in it.
pub(super) type WaitersOf<S> = Waiters<<S as Turning>::Wanted, BellOf<S>, <S as Turning>::Poll>;

/// A state that turns, in which calls wait for something.
pub(super) trait Turning: Sized {
    /// What can be waited for.
    type Wanted: Clone;
    /// Where the leader sleeps.
    type Poll: Place;

    fn waiters(&mut self) -> &mut WaitersOf<Self>;

    /// Whether what is wanted is there, or will never be.
    fn is_met(&self, wanted: &Self::Wanted) -> bool;

    /// Why nothing works any more.
    fn failure(&self) -> Option<&Error>;

    /// Takes what has come and does what is due, without waiting; false when that was nothing.
    fn turn(&mut self) -> bool;

    /// The next turn may be due at another time than it was.
    fn reschedule(&mut self);

    /// A call is about to lead: until when it may sleep.
    fn lie_down(&mut self, poll: &mut Self::Poll, until: Time) -> Time;

    /// It has slept.
    fn get_up(&mut self, poll: &mut Self::Poll, slept: <Self::Poll as Place>::Slept);
}

/// The state under its lock, and calls that wait.
pub(super) trait Waiting {
    type State: Turning;
    type Guard<'a>: DerefMut<Target = Self::State>
    where
        Self: 'a;

    fn lock(&self) -> Self::Guard<'_>;

    fn now(&self) -> Time;

    /// A doorbell for who does not lead.
    fn doorbell(&self) -> BellOf<Self::State>;

    /// Sleeps until it is rung, or it is time, and may wake for nothing. The lock is given back no
    /// earlier than the sleep begins.
    fn sleep_at<'a>(
        &'a self,
        doorbell: &BellOf<Self::State>,
        state: Self::Guard<'a>,
        until: Time,
    ) -> Self::Guard<'a>;

    /// No call waits any more.
    fn desert(&self, state: &mut Self::State);

    /// Turns, for a call that has changed something.
    fn act(&self, state: &mut Self::State) {
        failpoint!("endpoint.command");
        self.turn(state);
        self.satisfy(state);
    }

    /// Turns, for a call that looks whether something has come; false when nothing has happened.
    fn look(&self, state: &mut Self::State) -> bool {
        let has_changed = self.turn(state);
        if has_changed {
            self.satisfy(state);
        }
        has_changed
    }

    /// Turns. Where that panics, those who wait get what has come, and another who leads.
    fn turn(&self, state: &mut Self::State) -> bool {
        panic::catch_unwind(AssertUnwindSafe(|| state.turn())).unwrap_or_else(|panic| {
            self.satisfy(state);
            self.pass_lead(state);
            panic::resume_unwind(panic)
        })
    }

    /// Rings all whose wait is met by what has happened.
    fn satisfy(&self, state: &mut Self::State) {
        let mut list = state.waiters().lend();
        let has_failed = state.failure().is_some();
        for waiter in &mut list {
            waiter.ring_if(|wanted| has_failed || state.is_met(wanted));
        }
        state.waiters().take_back(list);
        state.reschedule();
    }

    /// Changes something from outside, and rings all for whom that matters.
    fn tell(&self, change: impl FnOnce()) {
        let mut state = self.lock();
        change();
        self.satisfy(&mut state);
    }

    /// Waits for something, at most until `until`: whether it is there, or why nothing works any
    /// more.
    fn wait<'a>(
        &'a self,
        mut state: Self::Guard<'a>,
        until: Time,
        how: Wait,
        wanted: &<Self::State as Turning>::Wanted,
    ) -> (Self::Guard<'a>, Result<bool, Error>) {
        let mut has_looked = false;
        let outcome = loop {
            if state.is_met(wanted) {
                break Ok(true);
            }
            if let Some(failure) = state.failure() {
                break Err(failure.clone());
            }
            if has_looked && until != Time::NEVER && self.now() >= until {
                break Ok(false);
            }
            state = match how {
                Wait::Spin => self.spin(state),
                Wait::Block | Wait::Adaptive => self.doze(state, until, how, wanted),
            };
            has_looked = true;
        };
        self.pass_lead(&mut state);
        (state, outcome)
    }

    /// Sleeps once: as the leader, if no other call leads, and then for one turn.
    fn doze<'a>(
        &'a self,
        mut state: Self::Guard<'a>,
        until: Time,
        how: Wait,
        wanted: &<Self::State as Turning>::Wanted,
    ) -> Self::Guard<'a> {
        let Some(mut poll) = state.waiters().take_lead() else {
            let doorbell = self.doorbell();
            let id = state.waiters().register(wanted.clone(), doorbell.clone());
            state = self.sleep_at(&doorbell, state, until);
            self.leave(&mut state, id, wanted);
            return state;
        };
        let id = state.waiters().register(wanted.clone(), poll.doorbell());
        let until = state.lie_down(&mut poll, until);
        drop(state);
        let slept = poll.sleep(until, how);
        state = self.lock();
        self.leave(&mut state, id, wanted);
        state.get_up(&mut poll, slept);
        state.waiters().give_lead_back(poll);
        self.act(&mut state);
        state
    }

    /// A call is awake again.
    fn leave(&self, state: &mut Self::State, id: u64, wanted: &<Self::State as Turning>::Wanted) {
        let was_rung = state.waiters().leave(id);
        if !was_rung && state.is_met(wanted) {
            state.waiters().note_missed();
        }
    }

    /// Looks once more, after others.
    fn spin<'a>(&'a self, state: Self::Guard<'a>) -> Self::Guard<'a> {
        drop(state);
        hint::spin_loop();
        let mut state = self.lock();
        self.look(&mut state);
        state
    }

    /// A call leaves, and sees to it that another leads.
    fn pass_lead(&self, state: &mut Self::State) {
        if !state.waiters().pass_lead() {
            self.desert(state);
        }
    }
}
