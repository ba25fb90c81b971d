//! Every order in which the steps of two ends can be taken, store buffers included: nobody sleeps
//! beside what it waits for.
//!
//! ```text
//!   thread 0: store, fence, load     a step is taken when the schedule says so;
//!   thread 1: store, load, fence     a store leaves its thread's buffer when the schedule says so
//!   schedule: 0 1 1 0 ...            all schedules, one after the other (depth first)
//! ```

use super::super::ring::{CAPACITY_MIN, End, Memory, Rings};
use super::{read, write};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex};

#[derive(Default)]
struct State {
    words: BTreeMap<usize, u64>,
    /// What a thread stored and no other sees yet.
    buffers: [VecDeque<(usize, u64)>; 2],
    /// Steps are taken one by one, as the schedule says.
    is_scheduled: bool,
    waits: [Option<Step>; 2],
    granted: Option<usize>,
    is_done: [bool; 2],
}

/// What a thread is about to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Nothing that the other thread sees yet: when it is done makes no difference.
    Store,
    Other,
}

#[derive(Clone)]
struct World {
    state: Arc<(Mutex<State>, Condvar)>,
    who: usize,
    has_fences: bool,
}

impl World {
    fn step<T>(&self, kind: Step, step: impl FnOnce(&mut State) -> T) -> T {
        let (state, changed) = &*self.state;
        let mut state = state.lock().unwrap();
        if state.is_scheduled {
            state.waits[self.who] = Some(kind);
            changed.notify_all();
            state = changed.wait_while(state, |it| it.granted != Some(self.who)).unwrap();
            state.waits[self.who] = None;
            state.granted = None;
        }
        let result = step(&mut state);
        changed.notify_all();
        result
    }
}

impl State {
    fn flush_one(&mut self, who: usize) {
        if let Some((at, word)) = self.buffers[who].pop_front() {
            self.words.insert(at, word);
        }
    }

    fn flush(&mut self, who: usize) {
        while !self.buffers[who].is_empty() {
            self.flush_one(who);
        }
    }
}

impl Memory for World {
    fn load(&self, at: usize) -> u64 {
        self.step(Step::Other, |state| {
            let own = state.buffers[self.who].iter().rev().find(|(place, _)| *place == at);
            own.map_or_else(|| state.words.get(&at).copied().unwrap_or(0), |(_, word)| *word)
        })
    }

    fn store(&self, at: usize, word: u64) {
        self.step(Step::Store, |state| {
            state.buffers[self.who].push_back((at, word));
            if !state.is_scheduled {
                state.flush(self.who);
            }
        });
    }

    fn fence(&self) {
        if self.has_fences {
            self.step(Step::Other, |state| state.flush(self.who));
        }
    }

    fn copy_in(&self, _: usize, _: &[u8]) {}

    fn copy_out(&self, _: usize, _: &mut [u8]) {}
}

type Ends = [Rings<World>; 2];
/// What one end does; true when it was asked to wake the other, and when it goes to sleep.
type Act = fn(&mut Rings<World>) -> (bool, bool);

/// Runs both acts by the schedule, which is grown by zeros; returns how many choices there were at
/// each step, and what the acts said.
fn run(
    prepare: fn(&mut Ends),
    acts: [Act; 2],
    has_fences: bool,
    schedule: &mut Vec<usize>,
) -> (Vec<usize>, [(bool, bool); 2]) {
    let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
    let ends = [End::Dialer, End::Listener];
    let mut rings: Ends = [0, 1].map(|who| {
        let world = World { state: Arc::clone(&state), who, has_fences };
        Rings::new(world, ends[who], CAPACITY_MIN)
    });
    prepare(&mut rings);
    state.0.lock().unwrap().is_scheduled = true;
    let mut counts = Vec::new();
    let said = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for ((who, mut rings), act) in rings.into_iter().enumerate().zip(acts) {
            let state = Arc::clone(&state);
            threads.push(scope.spawn(move || {
                let said = act(&mut rings);
                state.0.lock().unwrap().is_done[who] = true;
                state.1.notify_all();
                said
            }));
        }
        while let Some(count) = choose(&state, schedule, counts.len()) {
            counts.push(count);
        }
        let mut said = threads.into_iter().map(|thread| thread.join().unwrap());
        [said.next().unwrap(), said.next().unwrap()]
    });
    (counts, said)
}

/// Lets one step be taken; how many could have been, or nothing when all are done.
fn choose(state: &(Mutex<State>, Condvar), schedule: &mut Vec<usize>, at: usize) -> Option<usize> {
    let (state, changed) = state;
    let is_busy = |it: &mut State| {
        it.granted.is_some()
            || [0, 1].iter().any(|&who| it.waits[who].is_none() && !it.is_done[who])
    };
    let mut state = changed.wait_while(state.lock().unwrap(), is_busy).unwrap();
    let runs = [0, 1].into_iter().filter(|&who| !state.is_done[who]).map(|who| (who, false));
    let flushes = [0, 1].into_iter().filter(|&who| !state.buffers[who].is_empty());
    let mut choices: Vec<_> = runs.chain(flushes.map(|who| (who, true))).collect();
    let stores =
        |&(who, is_flush): &(usize, bool)| !is_flush && state.waits[who] == Some(Step::Store);
    if let Some(store) = choices.iter().copied().find(stores) {
        choices = vec![store];
    }
    if state.is_done == [true; 2] {
        return None;
    }
    if schedule.len() == at {
        schedule.push(0);
    }
    match choices[schedule[at]] {
        (who, true) => state.flush_one(who),
        (who, false) => {
            state.granted = Some(who);
            changed.notify_all();
        }
    }
    Some(choices.len())
}

/// Runs every schedule; in how many of them an end slept that nobody woke, and how many there are.
fn explore(prepare: fn(&mut Ends), acts: [Act; 2], has_fences: bool) -> (usize, usize) {
    let (mut lost, mut all) = (0, 0);
    let mut schedule = Vec::new();
    loop {
        let (counts, [(wakes_1, sleeps_0), (wakes_0, sleeps_1)]) =
            run(prepare, acts, has_fences, &mut schedule);
        all += 1;
        lost += usize::from((sleeps_0 && !wakes_0) || (sleeps_1 && !wakes_1));
        // The next schedule: another choice at the last place that has one.
        schedule.truncate(counts.len());
        while let Some(last) = schedule.pop() {
            if last + 1 < counts[schedule.len()] {
                schedule.push(last + 1);
                break;
            }
        }
        if schedule.is_empty() {
            return (lost, all);
        }
    }
}

fn writes(rings: &mut Rings<World>) -> (bool, bool) {
    let moved = write(rings, b"x");
    (moved.wakes, moved.len == 0)
}

fn reads_or_sleeps(rings: &mut Rings<World>) -> (bool, bool) {
    rings.await_data();
    (false, read(rings, 1).is_empty())
}

/// Half of the ring and no more: less would leave the writer asleep by right.
fn reads_half(rings: &mut Rings<World>) -> (bool, bool) {
    let mut bytes = [0; CAPACITY_MIN / 2];
    let moved = rings.read(&mut [std::io::IoSliceMut::new(&mut bytes)]).unwrap();
    (moved.wakes, false)
}

fn awake(ends: &mut Ends) {
    write(&mut ends[0], b"x");
    assert_eq!(read(&mut ends[1], 1).len(), 1);
}

fn full(ends: &mut Ends) {
    awake(ends);
    assert_eq!(write(&mut ends[0], &[0; CAPACITY_MIN]).len, CAPACITY_MIN);
}

#[test]
fn no_order_of_steps_leaves_a_reader_asleep_beside_data() {
    let (lost, all) = explore(awake, [writes, reads_or_sleeps], true);
    assert_eq!(lost, 0, "of {all} orders");
    assert!(all > 50, "{all} orders");
    let (lost, all) = explore(awake, [writes, reads_or_sleeps], false);
    assert!(lost > 0, "without fences none of {all} orders loses a wake-up: nothing was looked at");
}

#[test]
fn no_order_of_steps_leaves_a_writer_asleep_beside_room() {
    let (lost, all) = explore(full, [writes, reads_half], true);
    assert_eq!(lost, 0, "of {all} orders");
    assert!(all > 50, "{all} orders");
    let (lost, all) = explore(full, [writes, reads_half], false);
    assert!(lost > 0, "without fences none of {all} orders loses a wake-up: nothing was looked at");
}
