//! [`Runner`]: owns the modules of one epoch, the loop that drives them, and their queues.
//!
//! What it is: batch-major (a batch goes through one module before the next module is called), run
//! to completion. Because it owns the loop, counters, time per module and drop reasons come for
//! every module without its doing.
//!
//! What it is not: a scheduler of flows, or a holder of sockets and clocks; time, memory and
//! randomness come with each call ([`Surroundings`]).
//!
//! ```text
//!  feed -> lane 0 -> [module 0] -> lane 1 -> [module 1] -> … -> take_down
//!  take_up <- … <- [module 0] <- lane 0 <- [module 1] <- lane 1 <- handle_up
//! ```
//!
//! Invariants: effects of a call apply after it; what a module emits in the direction of its call
//! is merged in slot order, the emitted before the slot's own packet; what it emits against it
//! waits in the lane of the neighbour until the present module is done.

use crate::counters::{DirectionCounters, ModuleCounters};
use crate::effects::{Effects, Emission, Event};
use crate::lanes::Lane;
use crate::module::{ControlError, Module, TimerId};
use crate::verdict::{DropReason, Verdict};
use crate::{Cx, ModuleSpec};
use dacapo_base::{Random, Time};
use dacapo_packet::{Batch, Packet, Pool};
use std::time::Duration;

/// Rounds over all modules after which a run stops and leaves the rest to the next one: more than
/// any graph needs, so that modules that answer each other without end cannot hold the core.
const ROUNDS_MAX: usize = 1_000;

/// What a call of the runner is given.
pub struct Surroundings<'a> {
    /// The time.
    pub now: Time,
    /// The memory.
    pub pool: &'a mut Pool,
    /// The randomness.
    pub random: &'a mut Random,
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the network.
    Down,
    /// Towards the application.
    Up,
}

struct Stage {
    module: Box<dyn Module>,
    spec: &'static ModuleSpec,
    down: Lane,
    up: Lane,
    counters: ModuleCounters,
}

/// The running graph of one epoch.
pub struct Runner {
    stages: Vec<Stage>,
    timers: Vec<(Time, usize, TimerId)>,
    out_down: Batch,
    out_up: Batch,
    effects: Effects,
    batch: Batch,
    verdicts: Vec<Verdict>,
    /// How many segments each slot of the batch was offered with: a module may leave a slot empty.
    offered: Vec<u64>,
    meter: Option<fn() -> u64>,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.stages.iter().map(|stage| stage.spec.name).collect();
        f.debug_struct("Runner").field("modules", &names).finish_non_exhaustive()
    }
}

impl Runner {
    /// Runs these modules, the first next to the application.
    #[must_use]
    pub fn new(modules: Vec<Box<dyn Module>>) -> Self {
        let stage = |module: Box<dyn Module>| Stage {
            spec: module.spec(),
            module,
            down: Lane::default(),
            up: Lane::default(),
            counters: ModuleCounters::default(),
        };
        Self {
            stages: modules.into_iter().map(stage).collect(),
            timers: Vec::new(),
            out_down: Batch::new(),
            out_up: Batch::new(),
            effects: Effects::default(),
            batch: Batch::new(),
            verdicts: Vec::new(),
            offered: Vec::new(),
            meter: None,
        }
    }

    /// Measures the time per module and batch with `meter`, one stamp each; `None` stops it.
    pub fn set_meter(&mut self, meter: Option<fn() -> u64>) {
        self.meter = meter;
    }

    /// The facts and counters of every module, from the application down.
    pub fn modules(&self) -> impl Iterator<Item = (&'static ModuleSpec, &ModuleCounters)> {
        self.stages.iter().map(|stage| (stage.spec, &stage.counters))
    }

    /// How many packets may be fed now: the least credit of all modules, and 0 while packets wait
    /// before one of them.
    #[must_use]
    pub fn credit(&self) -> usize {
        if self.stages.iter().any(|stage| !stage.down.is_empty()) {
            return 0;
        }
        self.stages.iter().map(|stage| stage.module.credit()).min().unwrap_or(usize::MAX)
    }

    /// How long packets may wait inside on their way up, all modules together.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.stages.iter().map(|stage| stage.module.patience()).sum()
    }

    /// Takes a packet from the application. It goes out through [`Runner::take_down`] after
    /// [`Runner::run`]. Feed only while [`Runner::credit`] is not 0.
    pub fn feed(&mut self, around: &mut Surroundings<'_>, packet: Packet) {
        self.push(around.pool, Direction::Down, 0, packet);
    }

    /// Takes a packet from the network. It comes out through [`Runner::take_up`] after
    /// [`Runner::run`].
    pub fn handle_up(&mut self, around: &mut Surroundings<'_>, packet: Packet) {
        self.push(around.pool, Direction::Up, self.stages.len(), packet);
    }

    /// Carries everything as far as it goes now. Call it after feeding, and when time has passed.
    pub fn run(&mut self, around: &mut Surroundings<'_>) {
        for _ in 0..ROUNDS_MAX {
            let mut moved = false;
            for index in 0..self.stages.len() {
                moved |= self.step(around, Direction::Down, index);
            }
            for index in (0..self.stages.len()).rev() {
                moved |= self.step(around, Direction::Up, index);
            }
            if !moved {
                break;
            }
        }
    }

    /// The packets for the network, in order.
    pub fn take_down(&mut self) -> &mut Batch {
        &mut self.out_down
    }

    /// The packets for the application, in order.
    pub fn take_up(&mut self) -> &mut Batch {
        &mut self.out_up
    }

    /// The next event that a module raised.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.effects.events.is_empty() { None } else { Some(self.effects.events.remove(0)) }
    }

    /// When [`Runner::handle_timeout`] wants to be called next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.iter().map(|(at, ..)| *at).min()
    }

    /// Fires every timer that is due, then runs.
    pub fn handle_timeout(&mut self, around: &mut Surroundings<'_>) {
        let mut due: Vec<_> =
            self.timers.iter().copied().filter(|(at, ..)| *at <= around.now).collect();
        due.sort_unstable();
        self.timers.retain(|(at, ..)| *at > around.now);
        for (_, index, timer) in due {
            self.stages[index].counters.timeouts += 1;
            self.call(around, index, |module, cx| module.timeout(cx, timer));
        }
        self.run(around);
    }

    /// Gives an out-of-band message to module `index`.
    ///
    /// # Errors
    /// What the module says, or [`ControlError::Unknown`] when there is no such module.
    pub fn control(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        message: &[u8],
    ) -> Result<Vec<u8>, ControlError> {
        if index >= self.stages.len() {
            return Err(ControlError::Unknown);
        }
        let mut answer = Err(ControlError::Unknown);
        self.call(around, index, |module, cx| answer = module.control(cx, message));
        self.run(around);
        answer
    }

    /// Tells every module, from the application down, to send what can still be sent.
    pub fn drain(&mut self, around: &mut Surroundings<'_>) {
        for index in 0..self.stages.len() {
            self.run(around);
            self.call(around, index, |module, cx| module.drain(cx));
        }
        self.run(around);
    }

    /// Forgets everything: modules, lanes and outputs give their views back. Returns how many
    /// packets lay in lanes and outputs.
    pub fn flush(&mut self, around: &mut Surroundings<'_>) -> usize {
        let mut count = 0;
        for index in 0..self.stages.len() {
            self.call(around, index, |module, cx| module.flush(cx));
        }
        for stage in &mut self.stages {
            count += stage.down.free_all(around.pool) + stage.up.free_all(around.pool);
        }
        for out in [&mut self.out_down, &mut self.out_up] {
            count += out.len();
            out.drain().for_each(|packet| around.pool.free(packet));
        }
        self.timers.clear();
        count
    }

    /// Calls a module outside the flow of packets and applies its effects.
    fn call(
        &mut self,
        around: &mut Surroundings<'_>,
        index: usize,
        body: impl FnOnce(&mut dyn Module, &mut Cx<'_>),
    ) {
        let mut effects = std::mem::take(&mut self.effects);
        let mut cx = Cx::new(around.now, around.pool, around.random, &mut effects, index);
        body(self.stages[index].module.as_mut(), &mut cx);
        self.effects = effects;
        self.emit(around.pool, Direction::Down, index);
        self.emit(around.pool, Direction::Up, index);
        self.apply_rest(Direction::Up, index);
    }

    /// Puts everything that module `index` emitted in a direction into the neighbour's lane.
    fn emit(&mut self, pool: &mut Pool, direction: Direction, index: usize) {
        let mut emissions = std::mem::take(match direction {
            Direction::Down => &mut self.effects.down,
            Direction::Up => &mut self.effects.up,
        });
        for emission in emissions.drain(..) {
            self.emit_one(pool, direction, index, emission);
        }
        match direction {
            Direction::Down => self.effects.down = emissions,
            Direction::Up => self.effects.up = emissions,
        }
    }

    fn emit_one(&mut self, pool: &mut Pool, direction: Direction, index: usize, it: Emission) {
        counters(&mut self.stages[index], direction).emitted += it.packet.segment_count() as u64;
        self.push(pool, direction, after(direction, index), it.packet);
    }

    /// Applies timers and counts; what was discarded counts in the direction of the call, and
    /// outside the flow of packets as on its way up, where packets are held.
    fn apply_rest(&mut self, direction: Direction, index: usize) {
        for (timer, at) in self.effects.timers.drain(..) {
            self.timers.retain(|(_, module, known)| (*module, *known) != (index, timer));
            if let Some(at) = at {
                self.timers.push((at, index, timer));
            }
        }
        let stage = &mut self.stages[index];
        stage.counters.lost += std::mem::take(&mut self.effects.packets_lost);
        for (reason, segments) in self.effects.discarded.drain(..) {
            counters(stage, direction).dropped[reason.index()] += segments;
        }
    }

    /// Puts a packet into the lane that module `to` reads in this direction: for `Down` the modules
    /// count from 0, for `Up` the lane `to` is read by module `to - 1`.
    fn push(&mut self, pool: &mut Pool, direction: Direction, to: usize, packet: Packet) {
        let count = self.stages.len();
        let packet = match direction {
            Direction::Down => match self.rejoin(pool, to, packet) {
                Some(packet) => packet,
                None => return,
            },
            Direction::Up => packet,
        };
        let lane = match direction {
            Direction::Down if to >= count => return self.out_down.push(packet),
            Direction::Up if to == 0 => return self.out_up.push(packet),
            Direction::Down => &mut self.stages[to].down,
            Direction::Up => &mut self.stages[to - 1].up,
        };
        if let Err(packet) = lane.push(packet) {
            let at = if direction == Direction::Down { to } else { to - 1 };
            let segments = packet.segment_count() as u64;
            let counters = counters(&mut self.stages[at], direction);
            counters.dropped[DropReason::Overflow.index()] += segments;
            pool.free(packet);
        }
    }

    /// Joins a packet to the train that it was split from, when that train is the last in the lane.
    fn rejoin(&mut self, pool: &mut Pool, to: usize, packet: Packet) -> Option<Packet> {
        let last = match self.stages.get_mut(to) {
            Some(stage) => stage.down.last_mut(),
            None => self.out_down.slots_mut().last_mut(),
        };
        match last {
            Some(last) => pool.join(last, packet).err(),
            None => Some(packet),
        }
    }

    /// Carries one batch through one module; false when there was nothing to carry.
    fn step(&mut self, around: &mut Surroundings<'_>, direction: Direction, index: usize) -> bool {
        let mut batch = std::mem::take(&mut self.batch);
        let stage = &mut self.stages[index];
        let (lane, credit, trains) = match direction {
            Direction::Down => (&mut stage.down, stage.module.credit(), stage.spec.trains_down),
            Direction::Up => (&mut stage.up, usize::MAX, stage.spec.trains_up),
        };
        lane.take_batch(around.pool, &mut batch, credit, trains);
        let moved = !batch.is_empty();
        if moved {
            self.offer(around, direction, index, &mut batch);
            self.settle(around.pool, direction, index, &mut batch);
        }
        self.batch = batch;
        moved
    }

    fn offer(
        &mut self,
        around: &mut Surroundings<'_>,
        direction: Direction,
        index: usize,
        batch: &mut Batch,
    ) {
        let stage = &mut self.stages[index];
        let seen = counters(stage, direction);
        self.offered.clear();
        for packet in batch.packets() {
            let segments = packet.segment_count() as u64;
            seen.packets += segments;
            seen.bytes += packet.payload_len() as u64;
            self.offered.push(segments);
        }
        self.verdicts.clear();
        let start = self.meter.map(|meter| meter());
        let mut cx = Cx::new(around.now, around.pool, around.random, &mut self.effects, index);
        match direction {
            Direction::Down => {
                stage.module.down_batch(&mut cx, batch.slots_mut(), &mut self.verdicts);
            }
            Direction::Up => {
                stage.module.up_batch(&mut cx, batch.slots_mut(), &mut self.verdicts);
            }
        }
        if let (Some(meter), Some(start)) = (self.meter, start) {
            counters(stage, direction).ticks += meter().saturating_sub(start);
        }
    }

    /// Applies verdicts and effects of a batch call, in slot order.
    fn settle(&mut self, pool: &mut Pool, direction: Direction, index: usize, batch: &mut Batch) {
        let same = match direction {
            Direction::Down => std::mem::take(&mut self.effects.down),
            Direction::Up => std::mem::take(&mut self.effects.up),
        };
        let verdicts = std::mem::take(&mut self.verdicts);
        let mut emissions = same.into_iter().peekable();
        let mut verdict = verdicts.iter().copied();
        for (slot, packet) in batch.drain().enumerate() {
            while let Some(emission) = emissions.next_if(|emission| emission.slot <= slot) {
                self.emit_one(pool, direction, index, emission);
            }
            let verdict = verdict.next().unwrap_or(Verdict::Forward);
            let segments = self.offered.get(slot).copied().unwrap_or(0);
            self.apply(pool, direction, index, verdict, packet, segments);
        }
        for emission in emissions {
            self.emit_one(pool, direction, index, emission);
        }
        self.verdicts = verdicts;
        self.emit(pool, opposite(direction), index);
        self.apply_rest(direction, index);
    }

    fn apply(
        &mut self,
        pool: &mut Pool,
        direction: Direction,
        index: usize,
        verdict: Verdict,
        packet: Packet,
        segments: u64,
    ) {
        let seen = counters(&mut self.stages[index], direction);
        match verdict {
            Verdict::Forward => self.push(pool, direction, after(direction, index), packet),
            Verdict::Held => {
                debug_assert!(packet.is_empty_slot(), "a held packet was left in its slot");
                seen.held += segments;
                pool.free(packet);
            }
            Verdict::Drop(reason) => {
                seen.dropped[reason.index()] += segments;
                pool.free(packet);
            }
        }
    }
}

fn counters(stage: &mut Stage, direction: Direction) -> &mut DirectionCounters {
    match direction {
        Direction::Down => &mut stage.counters.down,
        Direction::Up => &mut stage.counters.up,
    }
}

/// The lane after module `index` in a direction (see [`Runner::push`]).
fn after(direction: Direction, index: usize) -> usize {
    match direction {
        Direction::Down => index + 1,
        Direction::Up => index,
    }
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Down => Direction::Up,
        Direction::Up => Direction::Down,
    }
}
