//! Calls of one module after the other on the same batch, as long as everything is forwarded.
//!
//! ```text
//!   plain     [module] [module] [module]      nothing waits, no trains, no clock
//!   with all  lane? trains? [module] clock
//! ```
//!
//! Invariants: every module that was called is counted; a batch is never taken past what waits.

use super::{Context, Direction, Stage};
use crate::Cx;
use crate::effects::Effects;
use crate::load::Load;
use crate::meter::Metering;
use dacapo_packet::{BATCH_PACKETS_MAX, Packet};

/// What the runner lends while it calls modules.
pub(super) struct Parts<'a> {
    pub stages: &'a mut [Stage],
    pub effects: &'a mut Effects,
    pub offered: &'a mut [u16; BATCH_PACKETS_MAX],
    /// Where this pass is timed.
    pub meter: Option<&'a mut Metering>,
    /// How many slots wait in lanes, by direction.
    pub waiting: [usize; 2],
}

impl Parts<'_> {
    /// Calls one module after the other on the load, from the one after `first` others on, as long
    /// as it simply goes on; how many were called.
    #[inline(always)]
    pub fn go(
        &mut self,
        around: &mut Context<'_>,
        direction: Direction,
        first: usize,
        load: &mut Load,
    ) -> usize {
        let cx = Cx::new(around.now, around.pool, around.random, self.effects, 0);
        let waits = self.waiting[direction as usize] > 0;
        let is_plain = !waits && self.meter.is_none() && !load.has_trains() && !load.is_split;
        let meter = self.meter.as_deref_mut();
        let walk = Walk { cx, load, offered: self.offered, meter };
        let end = self.stages.len() - first;
        match (direction, is_plain) {
            (Direction::Down, true) => walk.plain_down(&mut self.stages[first..]),
            (Direction::Up, true) => walk.plain_up(&mut self.stages[..end]),
            (Direction::Down, false) => walk.down(&mut self.stages[first..]),
            (Direction::Up, false) => walk.up(&mut self.stages[..end]),
        }
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
    fn plain_down(self, stages: &mut [Stage]) -> usize {
        self.walk::<true, true>(stages.iter_mut())
    }

    #[inline(never)]
    fn plain_up(self, stages: &mut [Stage]) -> usize {
        self.walk::<false, true>(stages.iter_mut().rev())
    }

    #[inline(never)]
    fn down(self, stages: &mut [Stage]) -> usize {
        self.walk::<true, false>(stages.iter_mut())
    }

    #[inline(never)]
    fn up(self, stages: &mut [Stage]) -> usize {
        self.walk::<false, false>(stages.iter_mut().rev())
    }

    /// The plain walk is compiled by itself: it asks for nothing that it knows is not there.
    #[inline(always)]
    fn walk<'a, const DOWN: bool, const PLAIN: bool>(
        mut self,
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
