//! How calls wait, in every order of their threads' steps with so many preemptions (`loom`): the
//! code is `waiting`'s, what stands below it is a stand-in.
//!
//! ```text
//!   network --unit--> inbox    epoll, level-triggered: shows a unit only as long as it is there
//!                       ^ turn of any thread takes it
//! ```
//!
//! A wait has no end but its unit, so one that is missed is a deadlock, which `loom` reports with
//! the state of each thread.

use super::super::waiters::{Doorbell, Waiters};
use super::{Place, Turning, Wait, Waiting};
use dacapo_base::Time;
use dacapo_core::Error;
use loom::model::Builder;
use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
use loom::thread;
use std::mem;

/// The steps at which another thread is let on although this one could go on, at most: with two a
/// wait that is registered too late is found, in a second.
const PREEMPTIONS: usize = 2;
/// A minute; without a bound there is no end in five.
const PREEMPTIONS_AT_NIGHT: usize = 4;

const FLOWS: usize = 2;

/// What has come, by the numbers of flows, and whether who sleeps there was rung.
#[derive(Default)]
struct Inbox {
    units: Vec<usize>,
    is_rung: bool,
}

#[derive(Default)]
struct Network {
    inbox: Mutex<Inbox>,
    shows: Condvar,
}

impl Network {
    fn change(&self, change: impl FnOnce(&mut Inbox)) {
        change(&mut self.inbox.lock().unwrap());
        self.shows.notify_all();
    }
}

#[derive(Clone)]
enum Ring {
    Poll(Arc<Network>),
    Thread(Arc<Condvar>),
}

impl Doorbell for Ring {
    fn ring(&self) {
        match self {
            Self::Poll(network) => network.change(|inbox| inbox.is_rung = true),
            Self::Thread(sleeps) => sleeps.notify_one(),
        }
    }
}

struct Poll(Arc<Network>);

impl Place for Poll {
    type Doorbell = Ring;
    type Slept = ();

    fn doorbell(&self) -> Ring {
        Ring::Poll(Arc::clone(&self.0))
    }

    fn sleep(&mut self, _until: Time, _how: Wait) {
        let mut inbox = self.0.inbox.lock().unwrap();
        while inbox.units.is_empty() && !inbox.is_rung {
            inbox = self.0.shows.wait(inbox).unwrap();
        }
        inbox.is_rung = false;
    }
}

struct Model {
    waiters: Waiters<usize, Ring, Poll>,
    network: Arc<Network>,
    /// Units of each flow that a turn has taken, and no call yet.
    came: [usize; FLOWS],
}

impl Turning for Model {
    type Wanted = usize;
    type Poll = Poll;

    fn waiters(&mut self) -> &mut Waiters<usize, Ring, Poll> {
        &mut self.waiters
    }

    fn is_met(&self, flow: &usize) -> bool {
        self.came[*flow] > 0
    }

    fn failure(&self) -> Option<&Error> {
        None
    }

    fn turn(&mut self) -> bool {
        let units = mem::take(&mut self.network.inbox.lock().unwrap().units);
        units.iter().for_each(|flow| self.came[*flow] += 1);
        !units.is_empty()
    }

    fn reschedule(&mut self) {}

    fn lie_down(&mut self, _poll: &mut Poll, until: Time) -> Time {
        until
    }

    fn get_up(&mut self, _poll: &mut Poll, (): ()) {}
}

struct Endpoint {
    state: Mutex<Model>,
    network: Arc<Network>,
}

impl Endpoint {
    fn new() -> Arc<Self> {
        let network = Arc::<Network>::default();
        let (waiters, its) = (Waiters::new(Poll(Arc::clone(&network))), Arc::clone(&network));
        let state = Mutex::new(Model { waiters, network: its, came: [0; FLOWS] });
        Arc::new(Self { state, network })
    }

    fn recv(&self, flow: usize) {
        let (mut state, outcome) = self.wait(self.lock(), Time::NEVER, Wait::Block, &flow);
        assert_eq!(outcome, Ok(true));
        state.came[flow] -= 1;
    }

    fn comes(&self, flow: usize) {
        self.network.change(|inbox| inbox.units.push(flow));
    }
}

impl Waiting for Endpoint {
    type State = Model;
    type Guard<'a> = MutexGuard<'a, Model>;

    fn lock(&self) -> MutexGuard<'_, Model> {
        self.state.lock().unwrap()
    }

    fn now(&self) -> Time {
        Time::ZERO
    }

    fn doorbell(&self) -> Ring {
        Ring::Thread(Arc::new(Condvar::new()))
    }

    fn sleep_at<'a>(
        &'a self,
        doorbell: &Ring,
        state: MutexGuard<'a, Model>,
        _until: Time,
    ) -> MutexGuard<'a, Model> {
        let Ring::Thread(doorbell) = doorbell else { panic!("a leader sleeps at its poll") };
        doorbell.wait(state).unwrap()
    }

    fn desert(&self, _state: &mut Model) {}
}

/// Threads that receive, one for each of these flows, while units of these flows come and, if that
/// is so, another thread looks without waiting, as `try_recv` does.
fn explore(preemptions: usize, flows: &'static [usize], another_looks: bool) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let endpoint = Endpoint::new();
        let with = |task: fn(&Endpoint, usize), flow| {
            let its = Arc::clone(&endpoint);
            thread::spawn(move || task(&its, flow))
        };
        let mut threads: Vec<_> = flows.iter().map(|flow| with(Endpoint::recv, *flow)).collect();
        if another_looks {
            threads.push(with(|its, _| _ = its.look(&mut its.lock()), 0));
        }
        flows.iter().rev().for_each(|flow| endpoint.comes(*flow));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let state = endpoint.lock();
        assert_eq!((state.came, state.waiters.missed()), ([0; FLOWS], 0));
    });
}

fn explore_all(preemptions: usize) {
    explore(preemptions, &[0], true);
    explore(preemptions, &[0, 1], false);
    explore(preemptions, &[0, 0], false);
    explore(preemptions, &[0, 1], true);
}

#[test]
fn no_wait_is_missed_whichever_thread_turns() {
    explore_all(PREEMPTIONS);
}

#[test]
#[ignore = "four preemptions, a minute: make nightly"]
fn no_wait_is_missed_with_more_preemptions() {
    explore_all(PREEMPTIONS_AT_NIGHT);
}
