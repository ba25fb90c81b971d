//! [`Runner`]: owns the modules of one epoch, the loop that drives them, and their queues.
//!
//! Batch-major (a batch goes through one module before the next module is called), run to
//! completion. Because it owns the loop, counters, time per module and drop reasons come for every
//! module without its doing.
//!
//! ```text
//!  feed -> lane 0 -> [module 0] -> lane 1 -> [module 1] -> … -> take_down
//!  take_up <- … <- [module 0] <- lane 0 <- [module 1] <- lane 1 <- handle_up
//! ```
//!
//! As long as every packet of a batch is forwarded, the batch stays where it is and the next module
//! is called on it; lanes are for what is left over. Time is taken with one stamp per module and
//! batch: the end of one module is the start of the next.
//!
//! In `carry`: where packets wait and go on. In `walk`: the calls. In `timers`: when they are due.
//! In `guard`: what becomes of it when a module panics.
//!
//! Invariants: effects of a call apply after it; what a module emits in the direction of its call
//! is merged in slot order, the emitted before the slot's own packet; what it emits against it
//! waits in the lane of the neighbour until the present module is done. In steady state nothing is
//! allocated.

mod carry;
mod guard;
mod timers;
mod walk;

use crate::ModuleSpec;
use crate::counters::{DirectionCounters, ModuleCounters};
use crate::effects::Effects;
use crate::lanes::TrafficClass;
use crate::load::Load;
use crate::meter::{Meter, Metering};
use crate::module::{ControlError, Module, Unread};
use crate::signals::{Note, Signals, Told};
use dacapo_base::{Random, Time};
use dacapo_packet::{BATCH_PACKETS_MAX, Batch, Packet, Pool};
use dacapo_path::ClockOffset;
use guard::Guard;
use std::time::Duration;
use timers::Timers;

pub(crate) use guard::{failure, guarded};

/// Rounds over all modules after which a run stops and leaves the rest to the next one: more than
/// any graph needs, so that modules that answer each other without end cannot hold the core.
const ROUNDS_MAX: usize = 1_000;

/// What a call of the runner is given.
pub struct Context<'a> {
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
    place: usize,
    module: Box<dyn Module>,
    spec: &'static ModuleSpec,
    down: TrafficClass,
    up: TrafficClass,
    counters: ModuleCounters,
    /// Bytes that it adds to every segment on the way down, and removes on the way up.
    growth: u64,
}

impl Stage {
    fn new(place: usize, module: Box<dyn Module>) -> Self {
        let spec = module.spec();
        Self {
            place,
            spec,
            module,
            down: TrafficClass::default(),
            up: TrafficClass::default(),
            counters: ModuleCounters::default(),
            growth: u64::from(spec.head) + u64::from(spec.tail),
        }
    }

    #[inline]
    fn counters(&mut self, direction: Direction) -> &mut DirectionCounters {
        match direction {
            Direction::Down => &mut self.counters.down,
            Direction::Up => &mut self.counters.up,
        }
    }

    #[inline]
    fn lane(&mut self, direction: Direction) -> &mut TrafficClass {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}

/// The running graph of one epoch.
pub struct Runner {
    stages: Vec<Stage>,
    timers: Timers,
    /// How many slots wait in lanes, by direction.
    waiting: [usize; 2],
    out_down: Batch,
    out_up: Batch,
    effects: Effects,
    load: Load,
    /// What came from outside since the last run, by direction, while nothing waited.
    entry: [Load; 2],
    /// How many segments each slot of a batch with trains was offered with: a module may leave a
    /// slot empty.
    offered: [u16; BATCH_PACKETS_MAX],
    meter: Option<Metering>,
    /// This pass is timed.
    is_timed: bool,
    guard: Guard,
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
        let signals = Signals::new(modules.len());
        Self {
            stages: (0..).zip(modules).map(|(place, module)| Stage::new(place, module)).collect(),
            timers: Timers::default(),
            waiting: [0; 2],
            out_down: Batch::new(),
            out_up: Batch::new(),
            effects: Effects { signals, ..Effects::default() },
            load: Load::default(),
            entry: <[Load; 2]>::default(),
            offered: [1; BATCH_PACKETS_MAX],
            meter: None,
            is_timed: false,
            guard: Guard::default(),
        }
    }

    /// Measures the time per module of one batch in some, one reading of the meter each; `None`
    /// stops it.
    pub fn set_meter(&mut self, meter: Option<Meter>) {
        self.meter = meter.map(Metering::new);
    }

    /// The facts and counters of every module, from the application down.
    pub fn modules(&self) -> impl Iterator<Item = (&'static ModuleSpec, &ModuleCounters)> {
        self.stages.iter().map(|stage| (stage.spec, &stage.counters))
    }

    /// How many packets may be fed now: the least credit of all modules, and 0 while packets wait
    /// before one of them.
    #[must_use]
    pub fn credit(&self) -> usize {
        if self.has_packets(Direction::Down) {
            return 0;
        }
        let mut least = usize::MAX;
        self.ask(|module| module.credit(), |credit| least = least.min(credit));
        least
    }

    /// How long packets may wait inside on their way up, all modules together.
    #[must_use]
    pub fn patience(&self) -> Duration {
        let mut sum = Duration::ZERO;
        self.ask(|module| module.patience(), |patience| sum += patience);
        sum
    }

    /// This end takes part from the middle of the epoch ([`Module::join`]): to be said before
    /// anything comes up.
    pub fn join(&mut self) {
        for Stage { module, spec, .. } in &mut self.stages {
            guarded(|| module.join()).unwrap_or_else(|said| self.guard.note(spec.name, &said));
        }
    }

    /// How far the peer's clock is ahead.
    pub fn handle_clock(&mut self, offset: ClockOffset) {
        for Stage { module, spec, .. } in &mut self.stages {
            guarded(|| module.handle_clock(offset))
                .unwrap_or_else(|said| self.guard.note(spec.name, &said));
        }
    }

    /// Of which of several receivers is what comes from the network from now on.
    pub fn handle_receiver(&mut self, receiver: u32) {
        for Stage { module, spec, .. } in &mut self.stages {
            guarded(|| module.handle_receiver(receiver))
                .unwrap_or_else(|said| self.guard.note(spec.name, &said));
        }
    }

    /// Takes a packet from the application. It goes out through [`Runner::take_down`] after
    /// [`Runner::run`]. Feed only while [`Runner::credit`] is not 0.
    pub fn feed(&mut self, around: &mut Context<'_>, packet: Packet) {
        self.enter(around.pool, Direction::Down, packet);
    }

    /// Takes a packet from the network. It comes out through [`Runner::take_up`] after
    /// [`Runner::run`].
    pub fn handle_up(&mut self, around: &mut Context<'_>, packet: Packet) {
        self.enter(around.pool, Direction::Up, packet);
    }

    /// Carries everything as far as it goes now. Call it after feeding, and when time has passed.
    pub fn run(&mut self, around: &mut Context<'_>) {
        let has_packets = self.has_packets(Direction::Down) || self.has_packets(Direction::Up);
        if !has_packets && !self.is_to_end() {
            return;
        }
        self.before_calls(around.pool);
        self.end_if_failed(around);
        for _ in 0..ROUNDS_MAX {
            let moved = self.has_packets(Direction::Down) && self.pass(around, Direction::Down);
            let came = self.has_packets(Direction::Up) && self.pass(around, Direction::Up);
            if !moved && !came {
                break;
            }
        }
        self.after_calls(around.pool);
    }

    /// Whether packets were fed in a direction, or wait before a module.
    #[inline]
    fn has_packets(&self, direction: Direction) -> bool {
        let at = direction as usize;
        !self.entry[at].batch.is_empty() || self.waiting[at] > 0
    }

    /// The packets for the network, in order.
    pub fn take_down(&mut self) -> &mut Batch {
        &mut self.out_down
    }

    /// The packets for the application, in order.
    pub fn take_up(&mut self) -> &mut Batch {
        &mut self.out_up
    }

    /// Whether modules told something beyond their packets.
    #[must_use]
    #[inline]
    pub fn has_told(&self) -> bool {
        self.effects.signals.has_told()
    }

    /// What modules told since this was asked last.
    pub fn take_told(&mut self) -> Told {
        self.effects.signals.take_told()
    }

    /// What modules show of themselves.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        self.effects.signals.notes()
    }

    /// When [`Runner::handle_timeout`] wants to be called next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Fires every timer that is due, then runs.
    pub fn handle_timeout(&mut self, around: &mut Context<'_>) {
        let mut due = self.timers.take_due(around.now);
        for (_, index, timer) in due.drain(..) {
            self.stages[index].counters.timeouts += 1;
            self.call(around, index, |module, cx| module.timeout(cx, timer));
        }
        self.timers.give_back(due);
        self.run(around);
    }

    /// Whether a module has something of its own to send when the network takes it.
    #[must_use]
    #[inline]
    pub fn wants_room(&self) -> bool {
        self.effects.wants_room
    }

    /// The network takes `bytes` more: modules send what they wanted to.
    pub fn handle_room(&mut self, around: &mut Context<'_>, bytes: usize) {
        self.effects.wants_room = false;
        for index in 0..self.stages.len() {
            self.call(around, index, |module, cx| module.handle_room(cx, bytes));
        }
        self.run(around);
    }

    /// Whether a module wants to know what waits for the application.
    #[must_use]
    #[inline]
    pub fn wants_unread(&self) -> bool {
        self.effects.wants_unread
    }

    /// So much of what has come up waits for the application.
    pub fn handle_unread(&mut self, around: &mut Context<'_>, unread: Unread) {
        self.effects.wants_unread = false;
        for index in 0..self.stages.len() {
            self.call(around, index, |module, cx| module.handle_unread(cx, unread));
        }
        self.run(around);
    }

    /// Gives an out-of-band message to module `index`.
    ///
    /// # Errors
    /// What the module says, [`ControlError::Failed`] when it panics, or [`ControlError::Unknown`]
    /// when there is no such module.
    pub fn control(
        &mut self,
        around: &mut Context<'_>,
        index: usize,
        message: &[u8],
    ) -> Result<Vec<u8>, ControlError> {
        if index >= self.stages.len() {
            return Err(ControlError::Unknown);
        }
        let mut answer = Err(ControlError::Unknown);
        self.call(around, index, |module, cx| answer = module.control(cx, message));
        self.run(around);
        self.failure().map_or(answer, |said| Err(ControlError::Failed(said.to_owned())))
    }

    /// The answer to a message that module `index` has sent to the peer; one to nothing is passed
    /// over.
    pub fn handle_answer(
        &mut self,
        around: &mut Context<'_>,
        index: usize,
        answer: Result<&[u8], &str>,
    ) {
        if self.effects.signals.close(index) {
            self.call(around, index, |module, cx| module.answered(cx, answer));
            self.run(around);
        }
    }

    /// Tells every module, from the application down, to send what can still be sent.
    pub fn drain(&mut self, around: &mut Context<'_>) {
        for index in 0..self.stages.len() {
            self.run(around);
            self.call(around, index, |module, cx| module.drain(cx));
        }
        self.run(around);
    }

    /// Forgets everything: modules, lanes and outputs give their views back. Returns how many
    /// packets lay in lanes and outputs.
    pub fn flush(&mut self, around: &mut Context<'_>) -> usize {
        let mut count = 0;
        for index in 0..self.stages.len() {
            self.call(around, index, |module, cx| module.flush(cx));
        }
        for out in [&mut self.out_down, &mut self.out_up] {
            count += out.len();
            out.drain().for_each(|packet| around.pool.free(packet));
        }
        self.before_calls(around.pool);
        count += self.empty(around.pool);
        self.after_calls(around.pool);
        count
    }

    /// Gives back what waits before modules, and forgets their timers; how many packets that were.
    fn empty(&mut self, pool: &mut Pool) -> usize {
        let mut count = 0;
        for stage in &mut self.stages {
            count += stage.down.free_all(pool) + stage.up.free_all(pool);
        }
        for entry in &mut self.entry {
            count += entry.batch.len();
            entry.batch.drain().for_each(|packet| pool.free(packet));
            entry.reset();
        }
        self.waiting = [0; 2];
        self.timers.clear();
        count
    }
}

impl Drop for Runner {
    /// Modules that panic while they are dropped take nobody along.
    fn drop(&mut self) {
        for stage in self.stages.drain(..) {
            _ = guarded(|| drop(stage));
        }
    }
}
