//! Module `interleave`: packets leave in blocks, in an order that puts neighbours far apart, so
//! that a run of losses takes single packets of what stands above.
//!
//! ```text
//!   down   0 1 2 3 4 5 6 7 | 8 9 …       wait for the others of their block
//!   wire   4 1 x x x 5 2 7               a run of three is lost
//!   up     4 1 5 2 7                     0, 3 and 6 are missing: none beside another
//! ```
//!
//! A block ends when it has `depth` packets, or `hold` after its first. Then its packets leave: one
//! for each that comes, so that the flow leaves as evenly as it was handed down, or, where fewer
//! come, evenly within a further `hold`. So no packet is older than twice `hold` when it leaves.
//! A train is cut into its packets, which leave one by one.
//!
//! What a module above says to its peer (an acknowledgement, a question) passes at once where
//! nothing waits: at a receiver always.
//!
//! The peer has nothing to do: packets go up as they come, and order is taken away. Whoever needs
//! order stands above with a number of its own (`sequence`, `arq-nak` in order), and so does all
//! that computes or asks for what is lost; a second number here would be four bytes of each packet,
//! a queue and a timer at the receiver, to put in order what is put in order again, or what
//! `segment` and a decoder that conceals take as it comes. So there is no header, and no byte from
//! outside is looked at.
//!
//! Source: RFC 2354, section 4.2 (interleaving); `order.rs` says which order, and why.
//!
//! Invariants: every packet leaves, once: `drain` and a mark of an epoch send what waits before
//! them; at most a block waits for being full and one for its turn, of 64 packets each; a receiver
//! keeps nothing.

use super::blocks::{Blocks, DEPTH_MAX};
use super::profile::Spread;
use crate::control::parameter;
use crate::runs::down_or_drop;
use dacapo_base::Time;
use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params,
    Property, Setup, Stratum, TimerId, Verdict,
};
use dacapo_packet::{Kind, Packet};
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "interleave",
    id: 0x0011,
    function: "interleaving",
    mechanism: "blocks of packets in golden order (RFC 2354, 4.2)",
    summary: "packets leave in another order, so that a run of losses takes no two neighbours",
    stratum: Stratum::Repair,
    head: 0,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: false,
    segments: false,
    acknowledges: false,
    orders: None,
    requires: &[Property::Boundaries],
    provides: &[],
    takes: &[Property::Order, Property::Answers],
    beneath: &["ordering", "duplicates", "retransmission", "redundancy", "parity"],
    notes: &[],
    profile: &Spread,
    params: &[
        ParamSpec {
            name: "depth",
            unit: ParamUnit::Count,
            default: 16,
            min: 2,
            max: DEPTH_MAX as u64,
            summary: "how many packets a block has at most",
            control: Some(CONTROL_SET_DEPTH),
        },
        ParamSpec {
            name: "hold",
            unit: ParamUnit::Nanoseconds,
            default: 100_000_000,
            min: 1_000_000,
            max: 500_000_000,
            summary: "how long a block takes at most to be filled, and as long to leave",
            control: Some(CONTROL_SET_HOLD),
        },
    ],
};

/// The numbers of the parameters.
pub(super) const DEPTH: u16 = 0;
pub(super) const HOLD: u16 = 1;

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Out-of-band message: set `depth`, for the block that is filled too; the new value follows as a
/// u64.
pub const CONTROL_SET_DEPTH: u8 = 1;

/// Out-of-band message: set `hold`, for what waits too; the new value in nanoseconds follows as a
/// u64.
pub const CONTROL_SET_HOLD: u8 = 2;

const TIMER: TimerId = 0;

fn build(params: &Params, _: &Setup) -> Box<dyn Module> {
    Box::new(Interleave {
        depth: params.value(&SPEC, "depth") as usize,
        hold: Duration::from_nanos(params.value(&SPEC, "hold")),
        blocks: Blocks::new(),
        armed: None,
    })
}

struct Interleave {
    depth: usize,
    hold: Duration,
    blocks: Blocks,
    /// When the timer fires: maybe before anything is due, since that leaves when others come, too.
    armed: Option<Time>,
}

impl Module for Interleave {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match slot.kind() {
            Kind::Mark => self.send_all(cx),
            Kind::Parity if self.blocks.is_empty() => {}
            _ => return self.take_all(cx, slot),
        }
        Verdict::Forward
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        self.armed = None;
        if self.blocks.begun().is_some_and(|begun| begun + self.hold <= cx.now()) {
            self.end_block(cx);
        }
        while self.blocks.due(self.hold).is_some_and(|due| due <= cx.now()) {
            self.send_one(cx);
        }
        self.arm(cx);
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        match parameter(&SPEC, message)? {
            (CONTROL_SET_DEPTH, depth) => self.depth = depth as usize,
            (_, hold) => self.hold = Duration::from_nanos(hold),
        }
        if self.blocks.filled() >= self.depth {
            self.end_block(cx);
        }
        self.arm(cx);
        Ok(Vec::new())
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.send_all(cx);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.blocks.take_all().for_each(|packet| cx.discard(packet, DropReason::Shutdown));
        self.arm(cx);
    }
}

impl Interleave {
    /// Takes each packet of a train.
    fn take_all(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        while let Some(first) = cx.pool.split_first(slot, 1) {
            self.take(cx, first);
        }
        self.take(cx, slot.take());
        self.arm(cx);
        Verdict::Held
    }

    /// Takes one packet, for which another leaves, if there is one.
    fn take(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        self.blocks.push(cx.now(), packet);
        if self.blocks.filled() >= self.depth {
            self.end_block(cx);
        }
        self.send_one(cx);
    }

    /// The block leaves from now on; what is left of the one before it, now.
    fn end_block(&mut self, cx: &mut Cx<'_>) {
        while self.send_one(cx) {}
        self.blocks.end(cx.now());
    }

    /// Sends the next packet of the block that leaves; false when there is none.
    fn send_one(&mut self, cx: &mut Cx<'_>) -> bool {
        let next = self.blocks.pop();
        let is_one = next.is_some();
        next.into_iter().for_each(|packet| down_or_drop(cx, packet));
        is_one
    }

    /// Sends what leaves, and what waits for it.
    fn send_all(&mut self, cx: &mut Cx<'_>) {
        self.end_block(cx);
        while self.send_one(cx) {}
        self.arm(cx);
    }

    /// Sees to it that the timer fires in time.
    fn arm(&mut self, cx: &mut Cx<'_>) {
        let full = self.blocks.begun().map(|begun| begun + self.hold);
        let next = self.blocks.due(self.hold).into_iter().chain(full).min();
        match (next, self.armed) {
            (Some(next), Some(armed)) if armed <= next => return,
            (Some(next), _) => cx.arm(TIMER, next),
            (None, Some(_)) => cx.disarm(TIMER),
            (None, None) => return,
        }
        self.armed = next;
    }
}
