//! Calls of one module after the other on the same batch, as long as everything is forwarded; and
//! the end of a graph one of whose modules has panicked.
//!
//! ```text
//!   plain     [module] [module] [module]      nothing waits, no trains, no clock
//!   with all  lane? trains? [module] clock
//! ```
//!
//! Invariants: every module that was called is counted; a batch is never taken past what waits.

use super::guard::{Guard, guarded};
use super::{Context, Direction, Runner, Stage};
use crate::effects::Effects;
use crate::load::Load;
use crate::meter::Metering;
use crate::module::Module;
use crate::{Cx, DropReason, ModuleSpec, Verdict};
use dacapo_packet::{BATCH_PACKETS_MAX, Packet, Pool};
use std::cell::Cell;

/// What the runner lends while it calls modules.
pub(super) struct Parts<'a> {
    pub stages: &'a mut [Stage],
    pub effects: &'a mut Effects,
    pub offered: &'a mut [u16; BATCH_PACKETS_MAX],
    /// Where this pass is timed.
    pub meter: Option<&'a mut Metering>,
    /// How many slots wait in lanes, by direction.
    pub waiting: [usize; 2],
    pub guard: &'a Guard,
}

impl Parts<'_> {
    /// Calls one module after the other on the load, from the one after `first` others on, as long
    /// as it simply goes on; how many were called, or `None` when one has panicked.
    #[inline(always)]
    pub fn go(
        &mut self,
        around: &mut Context<'_>,
        direction: Direction,
        first: usize,
        load: &mut Load,
    ) -> Option<usize> {
        let cx = Cx::new(around.now, around.pool, around.random, self.effects, 0);
        let waits = self.waiting[direction as usize] > 0;
        let is_plain = !waits && self.meter.is_none() && !load.has_trains() && !load.is_split;
        let meter = self.meter.as_deref_mut();
        let mut walk = Walk { cx, load, offered: self.offered, meter };
        let stages = match direction {
            Direction::Down => &mut self.stages[first..],
            Direction::Up => {
                let end = self.stages.len() - first;
                &mut self.stages[..end]
            }
        };
        let passed = guarded(|| match (direction, is_plain) {
            (Direction::Down, true) => walk.plain_down(stages),
            (Direction::Up, true) => walk.plain_up(stages),
            (Direction::Down, false) => walk.down(stages),
            (Direction::Up, false) => walk.up(stages),
        });
        let place = walk.cx.module;
        passed.map_err(|said| self.guard.note(self.stages[place].spec.name, &said)).ok()
    }
}

/// A load on its way through modules that forward everything.
struct Walk<'a> {
    cx: Cx<'a>,
    load: &'a mut Load,
    offered: &'a mut [u16; BATCH_PACKETS_MAX],
    meter: Option<&'a mut Metering>,
}

impl Walk<'_> {
    #[inline(never)]
    fn plain_down(&mut self, stages: &mut [Stage]) -> usize {
        self.walk::<true, true>(stages.iter_mut())
    }

    #[inline(never)]
    fn plain_up(&mut self, stages: &mut [Stage]) -> usize {
        self.walk::<false, true>(stages.iter_mut().rev())
    }

    #[inline(never)]
    fn down(&mut self, stages: &mut [Stage]) -> usize {
        self.walk::<true, false>(stages.iter_mut())
    }

    #[inline(never)]
    fn up(&mut self, stages: &mut [Stage]) -> usize {
        self.walk::<false, false>(stages.iter_mut().rev())
    }

    /// The plain walk is compiled by itself: it asks for nothing that it knows is not there.
    #[inline(always)]
    fn walk<'a, const DOWN: bool, const PLAIN: bool>(
        &mut self,
        stages: impl Iterator<Item = &'a mut Stage>,
    ) -> usize {
        let (segments, has_trains) = (self.load.segments, !PLAIN && self.load.has_trains());
        let (mut bytes, is_split) = (self.load.bytes, !PLAIN && self.load.is_split);
        let (mut passed, slots) = (0, self.load.batch.slots_mut());
        for stage in stages {
            let lane = if DOWN { &stage.down } else { &stage.up };
            if !PLAIN && !lane.is_empty() && passed > 0 {
                break;
            }
            if has_trains {
                let trains = if DOWN { stage.spec.trains_down } else { stage.spec.trains_up };
                if !trains {
                    break;
                }
                note_segments(slots, self.offered);
            }
            self.cx.module = stage.place;
            if !DOWN {
                stage.module.offer_up(&mut self.cx, slots);
            } else if !stage.module.offer_down(&mut self.cx, slots, segments as usize) {
                break;
            }
            passed += 1;
            let seen = if DOWN { &mut stage.counters.down } else { &mut stage.counters.up };
            seen.packets += segments;
            seen.bytes += bytes;
            if let (false, Some(meter)) = (PLAIN, &mut self.meter) {
                seen.timed_packets += segments;
                seen.timed_ns += meter.lap();
            }
            if self.cx.effects.is_touched {
                break;
            }
            let growth = segments * stage.growth;
            bytes = if DOWN { bytes + growth } else { bytes.saturating_sub(growth) };
            if DOWN && is_split {
                break;
            }
        }
        self.load.bytes = bytes;
        passed
    }
}

/// Notes how many segments each slot has, before a module may empty it.
#[inline(never)]
fn note_segments(slots: &[Packet], into: &mut [u16; BATCH_PACKETS_MAX]) {
    for (count, packet) in into.iter_mut().zip(slots) {
        *count = packet.segment_count() as u16;
    }
}

/// Stands where a module was, and lets nothing pass.
struct Gone(&'static ModuleSpec);

impl Module for Gone {
    fn spec(&self) -> &'static ModuleSpec {
        self.0
    }

    fn down(&mut self, _: &mut Cx<'_>, _: &mut Packet) -> Verdict {
        Verdict::Drop(DropReason::Shutdown)
    }

    fn up(&mut self, _: &mut Cx<'_>, _: &mut Packet) -> Verdict {
        Verdict::Drop(DropReason::Shutdown)
    }
}

impl Runner {
    /// Which module has panicked, and what it said: then the graph lets nothing pass any more.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.guard.said.get().map(String::as_str)
    }

    /// Asks each module in turn for what it says of itself, and gives that to `take`.
    #[inline]
    pub(super) fn ask<R>(&self, body: impl Fn(&dyn Module) -> R, mut take: impl FnMut(R)) {
        let at = Cell::new(0);
        let asked = guarded(|| {
            for stage in &self.stages {
                at.set(stage.place);
                take(body(stage.module.as_ref()));
            }
        });
        asked.unwrap_or_else(|said| self.guard.note(self.stages[at.get()].spec.name, &said));
    }

    /// The credit of one module; one that panics is offered what there is.
    pub(super) fn ask_credit(&self, index: usize) -> usize {
        let stage = &self.stages[index];
        guarded(|| stage.module.credit()).unwrap_or_else(|said| {
            self.guard.note(stage.spec.name, &said);
            usize::MAX
        })
    }

    /// Before modules are called: which views are not theirs.
    #[inline]
    pub(super) fn before_calls(&mut self, pool: &Pool) {
        let own = self.guard.inside + self.beside();
        self.guard.elsewhere = pool.live_views().saturating_sub(own);
    }

    /// After it: which are, in lanes and modules.
    #[inline]
    pub(super) fn after_calls(&mut self, pool: &Pool) {
        let others = self.guard.elsewhere + self.beside();
        self.guard.inside = pool.live_views().saturating_sub(others);
    }

    /// Views that lie before the first lane, and behind the last.
    #[inline]
    fn beside(&self) -> usize {
        let [down, up] = &self.entry;
        down.batch.len() + up.batch.len() + self.out_down.len() + self.out_up.len()
    }

    /// Whether a module has panicked and stands there yet.
    #[inline]
    pub(super) fn is_to_end(&self) -> bool {
        !self.guard.is_over && self.guard.said.get().is_some()
    }

    /// Ends the graph when a module has panicked.
    #[inline]
    pub(super) fn end_if_failed(&mut self, around: &mut Context<'_>) {
        if self.is_to_end() {
            self.end(around);
        }
    }

    #[cold]
    fn end(&mut self, around: &mut Context<'_>) {
        self.guard.is_over = true;
        for index in 0..self.stages.len() {
            self.remove(around, index);
        }
        self.effects.forget(around.pool);
        self.empty(around.pool);
        self.after_calls(around.pool);
        around.pool.write_off(std::mem::take(&mut self.guard.inside));
        let said = self.guard.said.get().cloned().unwrap_or_default();
        self.effects.signals.fail(said);
    }

    /// Has a module give its views back, and puts one that drops in its place.
    fn remove(&mut self, around: &mut Context<'_>, index: usize) {
        let stage = &mut self.stages[index];
        let mut module = std::mem::replace(&mut stage.module, Box::new(Gone(stage.spec)));
        let mut cx = Cx::new(around.now, around.pool, around.random, &mut self.effects, index);
        // What it says when it panics again tells nothing new.
        _ = guarded(|| module.flush(&mut cx));
        _ = guarded(|| drop(module));
    }

    /// Ends the graph, of which this load was on its way.
    #[cold]
    pub(super) fn end_with(&mut self, around: &mut Context<'_>, load: &mut Load) {
        load.batch.drain().for_each(|packet| around.pool.free(packet));
        load.reset();
        self.end_if_failed(around);
    }
}
