//! How packets go from module to module, and what a call leaves is applied.
//!
//! ```text
//!   lane 0 -> load -> [module 0] -> load -> [module 1] -> load -> out
//!                         | touched: verdicts, emissions
//!                         v
//!                       lane 1 -> load -> [module 1] …
//! ```
//!
//! Invariants: a load that no call touched is neither moved nor counted again; `waiting` is the
//! number of slots in all lanes of a direction.

use super::guard::guarded;
use super::walk::Parts;
use super::{Context, Direction, Runner, Stage};
use crate::Cx;
use crate::effects::Emission;
use crate::load::Load;
use crate::meter::Metering;
use crate::module::Module;
use crate::verdict::{DropReason, Verdict};
use dacapo_packet::{BATCH_PACKETS_MAX, Packet, Pool};

impl Runner {
    /// Carries one batch through all modules in a direction, and what waits before one of them;
    /// false when nothing moved.
    pub(super) fn pass(&mut self, around: &mut Context<'_>, direction: Direction) -> bool {
        let is_fed = !self.entry[direction as usize].batch.is_empty();
        self.is_timed = self.meter.as_mut().is_some_and(Metering::is_next);
        if !is_fed {
            let load = std::mem::take(&mut self.load);
            return self.carry_on(around, direction, load, None);
        }
        // What was fed came before what waits in the first lane.
        let (mut parts, entry) = self.parts();
        let load = &mut entry[direction as usize];
        let Some(passed) = parts.go(around, direction, 0, load) else {
            self.end_if_failed(around);
            return false;
        };
        let is_through = passed == parts.stages.len() && !parts.effects.is_touched;
        if is_through && !load.is_split {
            self.leave(around.pool, direction);
            return true;
        }
        let spare = std::mem::take(&mut self.load);
        let load = std::mem::replace(&mut self.entry[direction as usize], spare);
        self.carry_on(around, direction, load, Some(passed))
    }

    /// Carries a load as far as it goes, and what waits; `passed` modules were called on it, or
    /// none was asked yet.
    #[inline(never)]
    fn carry_on(
        &mut self,
        around: &mut Context<'_>,
        direction: Direction,
        mut load: Load,
        mut passed: Option<usize>,
    ) -> bool {
        let (mut at, mut refused_at, mut moved) = (0, None, false);
        while at < self.stages.len() {
            let (index, is_fed) = (self.place(direction, at), passed.is_some());
            let is_free = is_fed || self.stages[index].lane(direction).is_empty();
            if (load.batch.is_empty() || !is_free)
                && !self.board(around.pool, direction, index, &mut load)
            {
                if self.waiting[direction as usize] == 0 {
                    break;
                }
                at += 1;
                continue;
            }
            let next = passed.take();
            let passed = next.or_else(|| self.parts().0.go(around, direction, at, &mut load));
            let Some(passed) = passed else {
                self.end_with(around, &mut load);
                break;
            };
            moved |= passed > 0;
            at += passed;
            if self.effects.is_touched {
                let last = self.place(direction, at - 1);
                self.settle(around.pool, direction, last, &mut load);
            } else if load.is_split && direction == Direction::Down {
                load.rejoin(around.pool);
            } else if passed == 0 && is_fed {
                let lane = self.stages[index].lane(direction);
                self.waiting[direction as usize] += lane.prepend(&mut load);
            } else if passed == 0 {
                self.hand_in(around.pool, direction, index, &mut load);
                // Who refuses what was cut for it is passed by.
                at += usize::from(refused_at.replace(at) == Some(at));
            }
        }
        self.arrive(around.pool, direction, &mut load);
        self.load = load;
        moved
    }

    /// What calls need, and what was fed.
    #[inline]
    fn parts(&mut self) -> (Parts<'_>, &mut [Load; 2]) {
        let parts = Parts {
            stages: &mut self.stages,
            effects: &mut self.effects,
            offered: &mut self.offered,
            meter: self.meter.as_mut().filter(|_| self.is_timed),
            waiting: self.waiting,
            guard: &self.guard,
        };
        (parts, &mut self.entry)
    }

    /// Takes a packet from outside: for the next batch, or behind what waits already.
    #[inline]
    pub(super) fn enter(&mut self, pool: &mut Pool, direction: Direction, packet: Packet) {
        let waits = self.waiting[direction as usize] > 0 || self.stages.is_empty();
        let entry = &mut self.entry[direction as usize];
        if waits || !entry.has_capacity() {
            return self.enter_behind(pool, direction, packet);
        }
        entry.push(packet);
    }

    /// Takes a packet from outside behind what waits already, or where no module is.
    #[inline(never)]
    fn enter_behind(&mut self, pool: &mut Pool, direction: Direction, packet: Packet) {
        self.guard.note_entered(&packet);
        self.before_calls(pool);
        let to = if direction == Direction::Down { 0 } else { self.stages.len() };
        self.push(pool, direction, to, packet);
        self.after_calls(pool);
    }

    /// The place of the module that comes after `at` others in a direction.
    #[inline]
    fn place(&self, direction: Direction, at: usize) -> usize {
        match direction {
            Direction::Down => at,
            Direction::Up => self.stages.len() - 1 - at,
        }
    }

    /// Takes what module `index` takes now out of its lane, behind which the load goes; false when
    /// that is nothing.
    #[inline(never)]
    fn board(
        &mut self,
        pool: &mut Pool,
        direction: Direction,
        index: usize,
        load: &mut Load,
    ) -> bool {
        if !load.batch.is_empty() {
            self.hand_in(pool, direction, index, load);
        }
        if self.stages[index].lane(direction).is_empty() {
            return false;
        }
        let credit = match direction {
            Direction::Down => self.ask_credit(index),
            Direction::Up => usize::MAX,
        };
        let stage = &mut self.stages[index];
        let (lane, trains) = match direction {
            Direction::Down => (&mut stage.down, stage.spec.trains_down),
            Direction::Up => (&mut stage.up, stage.spec.trains_up),
        };
        let waited = lane.len();
        lane.take(pool, load, credit, trains);
        let waiting = &mut self.waiting[direction as usize];
        *waiting = *waiting + lane.len() - waited;
        !load.batch.is_empty()
    }

    /// Puts the load behind what waits before module `index`.
    #[inline(never)]
    fn hand_in(&mut self, pool: &mut Pool, direction: Direction, index: usize, load: &mut Load) {
        for packet in load.batch.drain() {
            self.push(pool, direction, before(direction, index), packet);
        }
        load.reset();
    }

    /// Applies verdicts and effects of a batch call, in slot order.
    #[inline(never)]
    fn settle(&mut self, pool: &mut Pool, direction: Direction, index: usize, load: &mut Load) {
        if !load.has_trains() {
            self.offered = [1; BATCH_PACKETS_MAX];
        }
        let mut same = std::mem::take(match direction {
            Direction::Down => &mut self.effects.down,
            Direction::Up => &mut self.effects.up,
        });
        let mut verdicts = std::mem::take(&mut self.effects.verdicts);
        let mut emissions = same.drain(..).peekable();
        let mut decided = verdicts.drain(..).peekable();
        for (slot, packet) in load.batch.drain().enumerate() {
            while let Some(emission) = emissions.next_if(|emission| emission.slot <= slot) {
                self.emit_one(pool, direction, index, emission);
            }
            let mut verdict = Verdict::Forward;
            while let Some((_, said)) = decided.next_if(|(at, _)| *at <= slot) {
                verdict = said;
            }
            let segments = self.offered.get(slot).map_or(1, |&count| u64::from(count));
            self.apply(pool, direction, index, verdict, packet, segments);
        }
        load.reset();
        for emission in emissions {
            self.emit_one(pool, direction, index, emission);
        }
        drop(decided);
        self.effects.verdicts = verdicts;
        match direction {
            Direction::Down => self.effects.down = same,
            Direction::Up => self.effects.up = same,
        }
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
        match verdict {
            Verdict::Forward => self.push(pool, direction, after(direction, index), packet),
            Verdict::Held => {
                let name = self.stages[index].spec.name;
                debug_assert!(packet.is_empty_slot(), "rule 2: {name}: held, but left in its slot");
                self.stages[index].counters(direction).held += segments;
                pool.free(packet);
            }
            Verdict::Drop(reason) => {
                self.stages[index].counters(direction).dropped[reason.index()] += segments;
                pool.free(packet);
            }
        }
    }

    /// Puts what was fed and has passed all modules out: mostly where nothing is yet.
    #[inline]
    fn leave(&mut self, pool: &mut Pool, direction: Direction) {
        let load = &mut self.entry[direction as usize];
        let out = match direction {
            Direction::Down => &mut self.out_down,
            Direction::Up => &mut self.out_up,
        };
        if out.is_empty() && !load.batch.packets().iter().any(Packet::is_empty_slot) {
            out.append(&mut load.batch);
            return load.reset();
        }
        let mut load = std::mem::take(load);
        self.arrive(pool, direction, &mut load);
        self.entry[direction as usize] = load;
    }

    /// Puts what has passed all modules out.
    #[inline(never)]
    fn arrive(&mut self, pool: &mut Pool, direction: Direction, load: &mut Load) {
        if load.batch.is_empty() {
            return;
        }
        // What a module emptied and said to forward.
        if load.batch.packets().iter().any(Packet::is_empty_slot) {
            load.batch.remove_empty();
        }
        let out = match direction {
            Direction::Down => &mut self.out_down,
            Direction::Up => &mut self.out_up,
        };
        if direction == Direction::Down
            && let (Some(last), Some(first)) =
                (out.slots_mut().last_mut(), load.batch.slots_mut().first_mut())
        {
            match pool.join(last, first.take()) {
                Ok(()) => load.batch.remove_empty(),
                Err(packet) => *first = packet,
            }
        }
        out.append(&mut load.batch);
        load.reset();
    }

    /// Calls a module outside the flow of packets and applies its effects.
    pub(super) fn call(
        &mut self,
        around: &mut Context<'_>,
        index: usize,
        body: impl FnOnce(&mut dyn Module, &mut Cx<'_>),
    ) {
        self.before_calls(around.pool);
        let Stage { module, spec, .. } = &mut self.stages[index];
        let mut cx = Cx::new(around.now, around.pool, around.random, &mut self.effects, index);
        if let Err(said) = guarded(|| body(module.as_mut(), &mut cx)) {
            self.guard.note(spec.name, &said);
            return self.end_if_failed(around);
        }
        if self.effects.is_touched {
            self.effects.verdicts.clear();
            self.emit(around.pool, Direction::Down, index);
            self.emit(around.pool, Direction::Up, index);
            self.apply_rest(Direction::Up, index);
        }
        self.after_calls(around.pool);
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
        self.stages[index].counters(direction).emitted += it.packet.segment_count() as u64;
        self.push(pool, direction, after(direction, index), it.packet);
    }

    /// Applies timers and counts; what was discarded counts in the direction of the call, and
    /// outside the flow of packets as on its way up, where packets are held.
    fn apply_rest(&mut self, direction: Direction, index: usize) {
        self.effects.is_touched = false;
        for (timer, at) in self.effects.timers.drain(..) {
            self.timers.set(index, timer, at);
        }
        let stage = &mut self.stages[index];
        stage.counters.lost += std::mem::take(&mut self.effects.packets_lost);
        stage.counters.refused += std::mem::take(&mut self.effects.refused);
        for (reason, segments) in self.effects.discarded.drain(..) {
            stage.counters(direction).dropped[reason.index()] += segments;
        }
    }

    /// Puts a packet into the lane that module `to` reads in this direction: for `Down` the modules
    /// count from 0, for `Up` the lane `to` is read by module `to - 1`.
    #[inline]
    pub(super) fn push(
        &mut self,
        pool: &mut Pool,
        direction: Direction,
        to: usize,
        mut packet: Packet,
    ) {
        if direction == Direction::Down {
            match self.rejoin(pool, to, packet) {
                Some(left) => packet = left,
                None => return,
            }
        }
        let at = match direction {
            Direction::Down if to >= self.stages.len() => return self.out_down.push(packet),
            Direction::Up if to == 0 => return self.out_up.push(packet),
            Direction::Down => to,
            Direction::Up => to - 1,
        };
        match self.stages[at].lane(direction).push(packet) {
            Ok(()) => self.waiting[direction as usize] += 1,
            Err(packet) => self.overflow(pool, direction, at, packet),
        }
    }

    #[cold]
    fn overflow(&mut self, pool: &mut Pool, direction: Direction, at: usize, packet: Packet) {
        let segments = packet.segment_count() as u64;
        let seen = self.stages[at].counters(direction);
        seen.dropped[DropReason::Overflow.index()] += segments;
        pool.free(packet);
    }

    /// Joins a packet to the train that it was split from, when that train is the last in the lane.
    /// Between modules units stay apart.
    #[inline]
    fn rejoin(&mut self, pool: &mut Pool, to: usize, packet: Packet) -> Option<Packet> {
        let last = match self.stages.get_mut(to) {
            Some(stage) => {
                let last = stage.down.last_mut();
                last.filter(|last| !(last.is_unit_last() && packet.is_unit_first()))
            }
            None => self.out_down.slots_mut().last_mut(),
        };
        match last {
            Some(last) => pool.join(last, packet).err(),
            None => Some(packet),
        }
    }
}

/// The lane before module `index` in a direction (see [`Runner::push`]).
fn before(direction: Direction, index: usize) -> usize {
    match direction {
        Direction::Down => index,
        Direction::Up => index + 1,
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
