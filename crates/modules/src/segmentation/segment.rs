//! Module `segment`: cuts units into packets of the path's size, and joins packets to units.
//!
//! On the way down a header before every segment of the strided layout in which the unit already
//! lies: no byte of payload moves. On the way up a window of units of which some segments have
//! come; a whole unit goes up as a chain of views, a unit that gets no further segment for
//! `patience` is given up. Segments that came in one train stay one.
//!
//! ```text
//!   down   unit (chain of trains)   |h0|seg 0|h1|seg 1|h2|seg 2, last|
//!   up     seg 1, seg 0, seg 2  ->  chain seg 0 > seg 1 > seg 2
//! ```
//!
//! What modules above say to each other passes by, without a number: of a flow to a group it comes
//! to the sender from several.
//!
//! Invariants: a unit goes up whole or not at all, and at most once; at most 256 units are in work,
//! and 2,048 lie between the oldest that is missing and the newest; bytes of one unit are at most
//! `unit_len_max` of the flow and what the modules above add to it.

use super::profile::UnitsOfPackets;
use super::reassembly::{Outcome, Piece, Reassembly};
use crate::emitting::behind;
use crate::runs::{in_parts, up_or_drop};
use dacapo_base::Time;
use dacapo_lift::{
    Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params, Property, Setup,
    Stratum, TimerId, Verdict,
};
use dacapo_packet::{Kind, Packet};
use dacapo_wire::segment::{Header, INDEX_MAX, LEN};
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "segment",
    id: 0x0001,
    function: "segmentation",
    mechanism: "fragmentation and reassembly",
    summary: "units larger than a packet are cut, and joined at the peer",
    stratum: Stratum::Segment,
    head: LEN as u16,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: false,
    segments: true,
    acknowledges: false,
    orders: None,
    requires: &[Property::Boundaries],
    provides: &[Property::AnyUnitSize],
    takes: &[],
    beneath: &[],
    notes: &[],
    profile: &UnitsOfPackets,
    params: &[ParamSpec {
        name: "patience",
        unit: ParamUnit::Nanoseconds,
        default: 500_000_000,
        min: 1_000_000,
        max: 60_000_000_000,
        summary: "how long a unit waits for its next segment",
        control: None,
    }],
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

const PATIENCE_TIMER: TimerId = 0;

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    Box::new(Segment {
        unit: 0,
        index: 0,
        begun: false,
        reassembly: Reassembly::new(setup.unit_len_max_here()),
        patience: Duration::from_nanos(params.value(&SPEC, "patience")),
        armed: false,
    })
}

struct Segment {
    /// The unit that is being sent, and the index of its next segment.
    unit: u16,
    index: u16,
    begun: bool,
    reassembly: Reassembly,
    patience: Duration,
    armed: bool,
}

impl Module for Segment {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        if slot.kind() == Kind::Parity {
            return behind(cx, slot, |_| Header::OF_MODULES.emit());
        }
        if slot.is_unit_first() {
            if self.begun {
                self.unit = self.unit.wrapping_add(1);
            }
            (self.index, self.begun) = (0, true);
        }
        let count = slot.segment_count();
        if usize::from(self.index) + count > usize::from(INDEX_MAX) + 1 {
            return Verdict::Drop(DropReason::TooLarge);
        }
        let (unit, first) = (self.unit, self.index);
        let end = if slot.is_unit_last() { count } else { 0 };
        let put = cx.pool.put_head(slot, |at| {
            Header { unit, index: first + at as u16, last: at + 1 == end }.emit()
        });
        if put.is_err() {
            return Verdict::Drop(DropReason::TooLarge);
        }
        self.index += count as u16;
        Verdict::Forward
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        if !slot.is_train() {
            return self.up_single(cx, slot);
        }
        let Some(run) = run_of(cx, slot) else {
            return in_parts(cx, slot, |_, _| 1, |cx, part| self.up_single(cx, part));
        };
        if run.count == slot.segment_count() && self.reassembly.takes_run(run.unit, run.index) {
            return self.up_run(cx, slot, &run);
        }
        in_parts(
            cx,
            slot,
            |cx, rest| run_of(cx, rest).map_or(1, |run| run.count),
            |cx, part| match run_of(cx, part) {
                Some(run) if self.reassembly.takes_run(run.unit, run.index) => {
                    self.up_run(cx, part, &run)
                }
                _ => in_parts(cx, part, |_, _| 1, |cx, part| self.up_single(cx, part)),
            },
        )
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        self.give_up(cx, cx.now() - self.patience, DropReason::Stale);
    }

    fn join(&mut self) {
        self.reassembly.join();
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.give_up(cx, Time::NEVER, DropReason::Stale);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.give_up(cx, Time::NEVER, DropReason::Shutdown);
    }
}

/// Segments of one unit that follow each other in a train, from its first on.
struct Run {
    unit: u16,
    index: usize,
    last: bool,
    count: usize,
}

/// The run that a packet begins with; `None` when its first segment has no header.
fn run_of(cx: &Cx<'_>, packet: &Packet) -> Option<Run> {
    let header = |at| Header::parse(cx.pool.segment(packet, at)).ok();
    let mut end = header(0)?;
    let (unit, index, mut count) = (end.unit, usize::from(end.index), 1);
    while !end.last
        && count < packet.segment_count()
        && let Some(next) = header(count)
        && next.unit == unit
        && next.index == end.index + 1
    {
        (end, count) = (next, count + 1);
    }
    Some(Run { unit, index, last: end.last, count })
}

impl Segment {
    fn up_single(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match run_of(cx, slot) {
            Some(run) => self.up_run(cx, slot, &run),
            None => Verdict::Drop(DropReason::Malformed),
        }
    }

    /// Takes a run that fills its slot.
    fn up_run(&mut self, cx: &mut Cx<'_>, slot: &mut Packet, run: &Run) -> Verdict {
        if cx.pool.pull_head(slot, LEN).is_err() {
            return Verdict::Drop(DropReason::Malformed);
        }
        if run.index > usize::from(INDEX_MAX) {
            // What modules above say to each other, or nothing.
            slot.set_unit_ends(true, true);
            return if run.last { Verdict::Forward } else { Verdict::Drop(DropReason::Malformed) };
        }
        let segments = slot.segment_count();
        let mut packet = slot.take();
        packet.time = packet.time.max(Time::from_nanos(1));
        let whole_in_one = run.last && run.index == 0;
        if !whole_in_one {
            // A small view must not pin the large body that a burst arrived in.
            let _ = cx.pool.settle(&mut packet);
        }
        let piece = Piece { unit: run.unit, index: run.index, last: run.last, packet };
        let outcome = self.reassembly.insert(cx.pool, piece);
        while let Some(lost) = self.reassembly.poll_given_up() {
            cx.discard(lost, DropReason::Stale);
        }
        let verdict = self.apply(cx, slot, outcome);
        if verdict == Verdict::Forward && slot.segment_count() != segments {
            cx.resized();
        }
        if !self.armed && !whole_in_one {
            self.arm(cx);
        }
        verdict
    }

    /// Passes a whole unit up as a chain, its last view in the slot; everything else is kept or
    /// given up.
    fn apply(&mut self, cx: &mut Cx<'_>, slot: &mut Packet, outcome: Outcome) -> Verdict {
        let (packet, reason) = match outcome {
            Outcome::Kept => return Verdict::Held,
            Outcome::Whole => {
                let chain = self.reassembly.taken();
                let Some(mut last) = chain.pop() else { return Verdict::Held };
                last.set_unit_ends(chain.is_empty(), true);
                for (index, mut packet) in chain.drain(..).enumerate() {
                    packet.set_unit_ends(index == 0, false);
                    up_or_drop(cx, packet);
                }
                *slot = last;
                return Verdict::Forward;
            }
            Outcome::Repeated(packet) => (packet, DropReason::Duplicate),
            Outcome::Late(packet) => (packet, DropReason::Stale),
            Outcome::Strange(packet) => (packet, DropReason::Malformed),
            Outcome::TooLarge(packet) => {
                let others = self.reassembly.taken().drain(..);
                others.for_each(|other| cx.discard(other, DropReason::TooLarge));
                (packet, DropReason::TooLarge)
            }
        };
        *slot = packet;
        Verdict::Drop(reason)
    }

    fn give_up(&mut self, cx: &mut Cx<'_>, before: Time, reason: DropReason) {
        self.reassembly.give_up(before);
        while let Some(packet) = self.reassembly.poll_given_up() {
            cx.discard(packet, reason);
        }
        self.arm(cx);
    }

    fn arm(&mut self, cx: &mut Cx<'_>) {
        let oldest = self.reassembly.oldest();
        self.armed = oldest.is_some();
        match oldest {
            Some(came) => cx.arm(PATIENCE_TIMER, came + self.patience),
            None => cx.disarm(PATIENCE_TIMER),
        }
    }
}
