//! [`Bed`]: packets that go down and up through a chain of equal modules, timed in short samples.
//!
//! ```text
//!   chain     [M] [M] [M]      called one after the other, their type known to the compiler
//!   counted   Runner           packets, bytes, reasons of drops: always on
//!   timed     Runner + meter   and one reading of the clock per module and batch
//! ```
//!
//! Invariant: what comes out is as it went in, so that the same packets go round for ever.

use dacapo::{Random, Time};
use dacapo_lift::{Bare, Context, Meter, Module, Runner};
use dacapo_packet::{Batch, Layout, Packet, Pool};
use dacapo_sys::clock;
use std::time::Instant;

use super::modules::TOUCHED;

/// Payload bytes of a packet.
pub const LEN: usize = 64;

/// The memory of one bed.
const POOL_BYTES: usize = 4 << 20;

/// How the modules are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Without a runner.
    Chain,
    /// By a runner, which counts.
    Counted,
    /// By a runner that counts and takes the time of every batch.
    Timed,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Chain, Self::Counted, Self::Timed];

    /// Its name in JSON and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chain => "monomorphised",
            Self::Counted => "counted",
            Self::Timed => "timed",
        }
    }
}

/// A packet got lost, or memory did not suffice: nothing was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmeasured(pub &'static str);

impl std::fmt::Display for Unmeasured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

const LOST: Unmeasured = Unmeasured("a packet got lost on its way through the modules");
const NO_MEMORY: Unmeasured = Unmeasured("the packet memory does not suffice");

/// What is fed and freed again in a sample of whole lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// One packet.
    Alone,
    /// 32 packets.
    Batch,
    /// One train of 32 segments.
    Train,
}

impl Load {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Alone, Self::Batch, Self::Train];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Batch => "batch of 32",
            Self::Train => "train of 32",
        }
    }

    fn packets(self) -> usize {
        if self == Self::Alone { 1 } else { 32 }
    }
}

/// A chain of equal modules with all that it needs.
pub struct Bed<M> {
    modules: Vec<M>,
    runner: Runner,
    bare: Bare,
    pool: Pool,
    random: Random,
    round: Batch,
    way: Way,
}

impl<M: Module + Default + 'static> Bed<M> {
    /// So many modules, and so many packets that go round.
    pub fn new(way: Way, modules: usize, packets: usize) -> Result<Self, Unmeasured> {
        let boxed = (0..modules).map(|_| Box::new(M::default()) as Box<dyn Module>);
        let mut runner = Runner::new(boxed.collect());
        let each = Meter { read_ns: meter, cost_ns: 0, every: 1 };
        runner.set_meter((way == Way::Timed).then_some(each));
        let mut pool = Pool::new(POOL_BYTES);
        let mut round = Batch::new();
        for _ in 0..packets {
            let mut packet = pool.alloc(TOUCHED * modules, LEN, 0).map_err(|_| NO_MEMORY)?;
            packet.set_unit_ends(true, true);
            round.push(packet);
        }
        let modules = (0..modules).map(|_| M::default()).collect();
        let random = Random::from_number(1);
        Ok(Self { modules, runner, bare: Bare::default(), pool, random, round, way })
    }

    /// Nanoseconds that a packet takes through all modules one way: half of there and back.
    pub fn sample(&mut self, batches: usize) -> Result<f64, Unmeasured> {
        let packets = self.round.len();
        let start = Instant::now();
        match self.way {
            Way::Chain => self.go_round_chain(batches),
            _ => self.go_round_runner(batches),
        }
        let ns = start.elapsed().as_nanos() as f64;
        let is_whole = self.round.payload_len() == packets * LEN && !self.bare.is_touched();
        if !is_whole || self.round.len() != packets {
            return Err(LOST);
        }
        Ok(ns / (2 * batches * packets) as f64)
    }

    fn go_round_chain(&mut self, batches: usize) {
        let mut around =
            Context { now: Time::ZERO, pool: &mut self.pool, random: &mut self.random };
        let (modules, slots) = (&mut self.modules, self.round.slots_mut());
        self.bare.with(&mut around, |cx| {
            for _ in 0..batches {
                modules.iter_mut().for_each(|module| module.down_batch(cx, slots));
                modules.iter_mut().rev().for_each(|module| module.up_batch(cx, slots));
            }
        });
    }

    fn go_round_runner(&mut self, batches: usize) {
        let (runner, round) = (&mut self.runner, &mut self.round);
        let mut around =
            Context { now: Time::ZERO, pool: &mut self.pool, random: &mut self.random };
        for _ in 0..batches {
            round.drain().for_each(|packet| runner.feed(&mut around, packet));
            runner.run(&mut around);
            round.append(runner.take_down());
            round.drain().for_each(|packet| runner.handle_up(&mut around, packet));
            runner.run(&mut around);
            round.append(runner.take_up());
        }
    }

    /// Nanoseconds of a packet's whole life on the way down: allocated, carried, freed.
    pub fn sample_lives(&mut self, load: Load, len: usize, runs: usize) -> Result<f64, Unmeasured> {
        let head = TOUCHED * self.modules.len();
        let start = Instant::now();
        for _ in 0..runs {
            match load {
                Load::Train => {
                    let layout = Layout { head, tail: 0, segment: len.max(1), segmented: true };
                    let train = self.pool.alloc_train(&layout, len * load.packets());
                    self.feed(train.map_err(|_| NO_MEMORY)?);
                }
                _ => {
                    for _ in 0..load.packets() {
                        let packet = self.pool.alloc(head, len, 0);
                        self.feed(packet.map_err(|_| NO_MEMORY)?);
                    }
                }
            }
            let mut around =
                Context { now: Time::ZERO, pool: &mut self.pool, random: &mut self.random };
            self.runner.run(&mut around);
            self.runner.take_down().drain().for_each(|packet| self.pool.free(packet));
        }
        let ns = start.elapsed().as_nanos() as f64;
        if self.pool.live_views() != self.round.len() {
            return Err(LOST);
        }
        Ok(ns / (runs * load.packets()) as f64)
    }

    #[inline]
    fn feed(&mut self, packet: Packet) {
        let mut around =
            Context { now: Time::ZERO, pool: &mut self.pool, random: &mut self.random };
        self.runner.feed(&mut around, packet);
    }
}

/// Nanoseconds on the monotonic clock: the meter of a runner that takes the time.
fn meter() -> u64 {
    clock::now().as_nanos()
}

/// What one reading of the clock takes, in nanoseconds.
pub fn meter_ns(readings: u32) -> f64 {
    let start = Instant::now();
    (0..readings).for_each(|_| {
        std::hint::black_box(meter());
    });
    start.elapsed().as_nanos() as f64 / f64::from(readings)
}
