//! Module `segment`: cuts units into packets of the path's size, and joins packets to units.
//!
//! What it is: on the way down a header before every segment of the strided layout in which the
//! unit already lies: no byte of payload moves. On the way up a window of units of which some
//! segments have come; a whole unit goes up as a chain of views, a unit that gets no further
//! segment for `patience` is given up.
//!
//! What it is not: order (units go up as they become whole) or repair.
//!
//! ```text
//!   down   unit (chain of trains)   |h0|seg 0|h1|seg 1|h2|seg 2, last|
//!   up     seg 1, seg 0, seg 2  ->  chain seg 0 > seg 1 > seg 2
//! ```
//!
//! Invariants: a unit goes up whole or not at all, and at most once; at most 256 units are in work;
//! bytes of one unit are at most `unit_len_max` of the flow.

use super::profile::UnitsOfPackets;
use super::reassembly::{Outcome, Reassembly};
use dacapo_base::Time;
use dacapo_lift::{
    Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params, Property, Setup,
    Stratum, TimerId, Verdict,
};
use dacapo_packet::Packet;
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
    trains_up: false,
    keeps_order: false,
    segments: true,
    requires: &[Property::Boundaries],
    provides: &[Property::AnyUnitSize],
    takes: &[],
    beneath: &[],
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
        reassembly: Reassembly::new(setup.unit_len_max),
        patience: Duration::from_nanos(params.value(&SPEC, "patience")),
        given_up: Vec::new(),
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
    given_up: Vec<Packet>,
    armed: bool,
}

impl Module for Segment {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
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
        if cx.pool.push_head(slot, LEN).is_err() {
            return Verdict::Drop(DropReason::TooLarge);
        }
        for at in 0..count {
            let last = slot.is_unit_last() && at + 1 == count;
            let header = Header { unit: self.unit, index: self.index, last };
            cx.pool.head_mut(slot, at, LEN).copy_from_slice(&header.emit());
            self.index += 1;
        }
        Verdict::Forward
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let Ok(header) = Header::parse(cx.pool.segment(slot, 0)) else {
            return Verdict::Drop(DropReason::Malformed);
        };
        if cx.pool.pull_head(slot, LEN).is_err() {
            return Verdict::Drop(DropReason::Malformed);
        }
        let mut packet = slot.take();
        packet.time = packet.time.max(Time::from_nanos(1));
        let whole_in_one = header.last && header.index == 0;
        if !whole_in_one {
            // A small view must not pin the large body that a burst arrived in.
            let _ = cx.pool.settle(&mut packet);
        }
        let outcome = self.reassembly.insert(header, packet, &mut self.given_up);
        for lost in self.given_up.drain(..) {
            cx.discard(lost, DropReason::Stale);
        }
        let verdict = apply(cx, slot, outcome);
        if !self.armed && !whole_in_one {
            self.arm(cx);
        }
        verdict
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        for packet in self.reassembly.give_up(cx.now() - self.patience) {
            cx.discard(packet, DropReason::Stale);
        }
        self.arm(cx);
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        for packet in self.reassembly.give_up(Time::NEVER) {
            cx.discard(packet, DropReason::Stale);
        }
        self.arm(cx);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        for packet in self.reassembly.give_up(Time::NEVER) {
            cx.discard(packet, DropReason::Shutdown);
        }
        self.arm(cx);
    }
}

impl Segment {
    fn arm(&mut self, cx: &mut Cx<'_>) {
        let oldest = self.reassembly.oldest();
        self.armed = oldest.is_some();
        match oldest {
            Some(came) => cx.arm(PATIENCE_TIMER, came + self.patience),
            None => cx.disarm(PATIENCE_TIMER),
        }
    }
}

/// Passes a whole unit up as a chain; everything else is kept or given up.
fn apply(cx: &mut Cx<'_>, slot: &mut Packet, outcome: Outcome) -> Verdict {
    let (packet, reason) = match outcome {
        Outcome::Kept => return Verdict::Held,
        Outcome::Whole(segments) => {
            let last = segments.len().saturating_sub(1);
            for (index, mut packet) in segments.into_iter().enumerate() {
                packet.set_unit_ends(index == 0, index == last);
                if let Err(packet) = cx.emit_up(packet) {
                    cx.discard(packet, DropReason::Overflow);
                }
            }
            return Verdict::Held;
        }
        Outcome::Repeated(packet) => (packet, DropReason::Duplicate),
        Outcome::Late(packet) => (packet, DropReason::Stale),
        Outcome::Strange(packet) => (packet, DropReason::Malformed),
        Outcome::TooLarge(packet, others) => {
            others.into_iter().for_each(|other| cx.discard(other, DropReason::TooLarge));
            (packet, DropReason::TooLarge)
        }
    };
    *slot = packet;
    Verdict::Drop(reason)
}
