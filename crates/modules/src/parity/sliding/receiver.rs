//! [`Receiver`]: what a module does with packets of the network, whichever code its repairs are of.
//!
//! ```text
//!   source   goes up, and a view of it stays
//!   repair   stays, and what is known by it goes up, behind newer ones
//! ```

use super::Code;
use super::history::Place;
use super::receiving::Receiving;
use crate::runs::{consecutive, in_parts, in_runs, up_or_drop};
use dacapo_lift::{Cx, DropReason, TimerId, Verdict};
use dacapo_packet::Packet;
use dacapo_wire::sliding::{Header, LEN};
use std::time::Duration;

/// Which timer and which note of its module it uses.
#[derive(Clone, Copy, Debug)]
pub(in crate::parity) struct Uses {
    /// What has come has its age.
    pub timer: TimerId,
    /// How many packets were computed.
    pub note: u16,
}

#[derive(Debug)]
pub(in crate::parity) struct Receiver<C> {
    uses: Uses,
    /// How long what has come is kept.
    hold: Duration,
    receiving: Receiving<C>,
    /// How many packets were computed.
    computed: i64,
    /// The timer of what has come is armed.
    is_holding: bool,
}

impl<C: Code> Receiver<C> {
    /// Keeps at most the last `range` sources, and none longer than `hold`.
    pub fn new(uses: Uses, code: C, range: u64, hold: Duration) -> Self {
        let receiving = Receiving::new(code, range);
        Self { uses, hold, receiving, computed: 0, is_holding: false }
    }

    /// Changes how many sources are kept, and for how long.
    pub fn set(&mut self, range: u64, hold: Duration) {
        self.receiving.set_range(range);
        self.hold = hold;
    }

    /// Where the stream is will be seen by what comes.
    pub fn join(&mut self) {
        self.receiving.join();
    }

    /// Takes what comes from the network.
    pub fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        in_runs(cx, slot, run_of, |cx, run| self.up_run(cx, run))
    }

    /// Takes a run that fills its slot.
    fn up_run(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let Ok(header) = Header::parse(cx.pool.segment(slot, 0)) else {
            return Verdict::Drop(DropReason::Malformed);
        };
        let number = match self.receiving.place(cx.pool, &header) {
            Place::At(number) | Place::Begins(number) => number,
            Place::Late => return Verdict::Drop(DropReason::Stale),
            Place::Beyond => return Verdict::Drop(DropReason::Overflow),
        };
        if header.is_repair() {
            return self.take_repair(cx, number, &header, slot);
        }
        let count = slot.segment_count();
        if count > 1 && !self.receiving.takes_run(number, count) {
            return in_parts(cx, slot, |_, _| 1, |cx, part| self.up_run(cx, part));
        }
        if self.receiving.has(number) {
            return Verdict::Drop(DropReason::Duplicate);
        }
        self.receiving.add_sources(cx, number, slot);
        self.compute(cx);
        self.arm(cx);
        match cx.pool.pull_head(slot, LEN) {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::Malformed),
        }
    }

    fn take_repair(
        &mut self,
        cx: &mut Cx<'_>,
        number: u64,
        header: &Header,
        slot: &mut Packet,
    ) -> Verdict {
        let repair = slot.take();
        if self.receiving.add_repair(cx, number, header, &repair) {
            self.compute(cx);
            self.arm(cx);
        }
        cx.pool.free(repair);
        Verdict::Held
    }

    /// Sends what can be computed upwards.
    fn compute(&mut self, cx: &mut Cx<'_>) {
        let before = self.computed;
        let computed = &mut self.computed;
        self.receiving.solve(cx, |cx, mut packet| {
            if cx.pool.pull_head(&mut packet, LEN).is_err() {
                return cx.discard(packet, DropReason::Malformed);
            }
            *computed += 1;
            up_or_drop(cx, packet);
        });
        if self.computed != before {
            cx.note(self.uses.note, self.computed);
        }
    }

    /// Gives up what has its age.
    pub fn timeout(&mut self, cx: &mut Cx<'_>) {
        self.receiving.give_up(cx.pool, cx.now() - self.hold);
        self.is_holding = false;
        self.arm(cx);
    }

    /// Arms the timer of what has come, unless it is; it need not be exact.
    fn arm(&mut self, cx: &mut Cx<'_>) {
        if self.is_holding {
            return;
        }
        if let Some(oldest) = self.receiving.oldest() {
            let at = (oldest + self.hold).max(cx.now() + self.hold / 4);
            cx.arm(self.uses.timer, at);
            self.is_holding = true;
        }
    }

    /// Forgets all that is kept.
    pub fn flush(&mut self, cx: &mut Cx<'_>) {
        self.receiving.forget(cx.pool);
        self.is_holding = false;
        cx.disarm(self.uses.timer);
    }
}

/// How many sources that follow each other a packet begins with; 1 for everything else.
fn run_of(cx: &Cx<'_>, packet: &Packet) -> usize {
    consecutive(cx, packet, |bytes| {
        let header = Header::parse(bytes).ok().filter(|header| !header.is_repair())?;
        Some((header.number, ()))
    })
}
