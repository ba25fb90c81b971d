//! Calls at a state that panics, fails, or has nothing more to wait for; one thread, no sleep.

use super::super::waiters::{Doorbell, Waiters};
use super::{Place, Turning, Wait, Waiting};
use dacapo_base::Time;
use dacapo_core::{Code, Error};
use std::cell::{Cell, RefCell, RefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

#[derive(Clone, Default)]
struct Flag(Rc<Cell<bool>>);

impl Doorbell for Flag {
    fn ring(&self) {
        self.0.set(true);
    }
}

/// A poll that shows what is to come one sleep later.
struct Poll(Flag);

impl Place for Poll {
    type Doorbell = Flag;
    type Slept = ();

    fn doorbell(&self) -> Flag {
        self.0.clone()
    }

    fn sleep(&mut self, _until: Time, _how: Wait) {}
}

/// What the next turn does.
#[derive(Clone, Copy)]
enum Next {
    Nothing,
    Bring,
    Fail,
    Panic,
    BringAndPanic,
}

struct Fake {
    waiters: Waiters<(), Flag, Poll>,
    next: Next,
    is_there: bool,
    failure: Option<Error>,
    turns: u32,
}

impl Turning for Fake {
    type Wanted = ();
    type Poll = Poll;

    fn waiters(&mut self) -> &mut Waiters<(), Flag, Poll> {
        &mut self.waiters
    }

    fn is_met(&self, (): &()) -> bool {
        self.is_there
    }

    fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    fn turn(&mut self) -> bool {
        self.turns += 1;
        self.is_there |= matches!(self.next, Next::Bring | Next::BringAndPanic);
        match self.next {
            Next::Fail => self.failure = Some(Error::new(Code::System, "no descriptor left")),
            Next::Panic | Next::BringAndPanic => panic!("a module"),
            Next::Nothing | Next::Bring => {}
        }
        true
    }

    fn reschedule(&mut self) {}

    fn lie_down(&mut self, _poll: &mut Poll, until: Time) -> Time {
        until
    }

    fn get_up(&mut self, _poll: &mut Poll, (): ()) {}
}

struct Endpoint {
    state: RefCell<Fake>,
    is_deserted: Cell<bool>,
}

fn with(next: Next) -> Endpoint {
    let waiters = Waiters::new(Poll(Flag::default()));
    let fake = Fake { waiters, next, is_there: false, failure: None, turns: 0 };
    Endpoint { state: RefCell::new(fake), is_deserted: Cell::new(false) }
}

impl Waiting for Endpoint {
    type State = Fake;
    type Guard<'a> = RefMut<'a, Fake>;

    fn lock(&self) -> RefMut<'_, Fake> {
        self.state.borrow_mut()
    }

    fn now(&self) -> Time {
        Time::from_millis(7)
    }

    fn doorbell(&self) -> Flag {
        Flag::default()
    }

    fn sleep_at<'a>(
        &'a self,
        _bell: &Flag,
        state: RefMut<'a, Fake>,
        _until: Time,
    ) -> RefMut<'a, Fake> {
        state
    }

    fn desert(&self, _state: &mut Fake) {
        self.is_deserted.set(true);
    }
}

#[test]
fn a_wait_whose_time_is_past_makes_one_round() {
    for how in [Wait::Block, Wait::Adaptive, Wait::Spin] {
        for (next, came) in [(Next::Nothing, false), (Next::Bring, true)] {
            let place = with(next);
            let (state, outcome) = place.wait(place.lock(), Time::from_millis(7), how, &());
            assert_eq!((outcome, state.turns), (Ok(came), 1), "{how:?}");
            assert!(place.is_deserted.get(), "the background leads");
        }
    }
}

#[test]
fn what_is_there_needs_no_turn_and_a_failure_ends_all_waits() {
    let place = with(Next::Fail);
    let (state, outcome) = place.wait(place.lock(), Time::NEVER, Wait::Block, &());
    assert_eq!(outcome.unwrap_err().text, "no descriptor left");
    drop(state);
    place.lock().is_there = true;
    let (state, outcome) = place.wait(place.lock(), Time::NEVER, Wait::Block, &());
    assert_eq!((outcome, state.turns), (Ok(true), 1));
}

/// Whether who follows is rung when the turn of the call that leads panics so.
fn is_rung_after(next: Next) -> bool {
    let (place, follower) = (with(next), Flag::default());
    place.lock().waiters.register((), follower.clone());
    let wait = || drop(place.wait(place.lock(), Time::NEVER, Wait::Block, &()));
    assert!(catch_unwind(AssertUnwindSafe(wait)).is_err());
    assert!(place.lock().waiters.take_lead().is_some(), "the lead is free");
    follower.0.get()
}

#[test]
fn a_turn_that_panics_leaves_the_lead_and_what_it_has_brought_to_others() {
    assert!(is_rung_after(Next::Panic), "somebody else is to lead");
    assert!(is_rung_after(Next::BringAndPanic), "it has got its unit");
}
