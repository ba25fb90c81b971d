//! Module `repeat`: sends every packet again, once or a few times, some time later.
//!
//! The simplest forward error correction, for flows that cannot wait for a question and its answer:
//! a loss is made good when one of the copies comes. It follows RFC 2198 (redundant audio data) in
//! the idea that what was sent is sent again some packets later, without its coarser coding and
//! without its header: a copy is the packet itself, byte for byte, so what stands above tells it by
//! what it tells packets by.
//!
//! ```text
//!   down   1 2 3 4 5 6        1' is the bytes of 1, read-only until they are copied
//!          | <-gap-> |
//!                    1' 2' 3'
//!   up     everything as it comes
//! ```
//!
//! Invariants: the packet itself is never held, delayed or dropped; at most 1,024 trains and 4 MiB
//! wait to be sent again, and what exceeds that is sent once and its copy counted as `overflow`; no
//! copy is sent after [`BEHIND_MAX`] further packets.

use super::profile::SentAgain;
use super::waiting::{Copy, Waiting};
use crate::control::parameter;
use crate::copying::Copier;
use crate::runs::down_or_drop;
use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params,
    Property, Setup, Stratum, TimerId, Verdict,
};
use dacapo_packet::{BATCH_BYTES_MAX, BATCH_PACKETS_MAX, Packet};
use std::time::Duration;

/// How many packets may follow the first of its kind before a copy is no longer sent: modules above
/// number units in 16 bits, and must not take a late copy for an early one.
pub const BEHIND_MAX: u64 = 16_384;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "repeat",
    id: 0x0004,
    function: "redundancy",
    mechanism: "repetition (RFC 2198 without compression)",
    summary: "every packet is sent again some time later, so that one loss takes nothing",
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
    takes: &[Property::Order, Property::NoDuplicates, Property::Answers],
    beneath: &["ordering", "duplicates"],
    notes: &[],
    profile: &SentAgain,
    params: &[
        ParamSpec {
            name: "copies",
            unit: ParamUnit::Count,
            default: 1,
            min: 1,
            max: 3,
            summary: "how many times each packet is sent again",
            control: Some(CONTROL_SET_COPIES),
        },
        ParamSpec {
            name: "gap",
            unit: ParamUnit::Nanoseconds,
            default: 20_000_000,
            min: 1_000_000,
            max: 1_000_000_000,
            summary: "how long after it was sent a packet is sent again",
            control: Some(CONTROL_SET_GAP),
        },
    ],
};

/// The numbers of the parameters.
pub(super) const COPIES: u16 = 0;
pub(super) const GAP: u16 = 1;

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Out-of-band message: set `copies`, for what is sent from now on; the new value follows as a
/// u64.
pub const CONTROL_SET_COPIES: u8 = 1;

/// Out-of-band message: set `gap`, also for what waits; the new value in nanoseconds follows as a
/// u64.
pub const CONTROL_SET_GAP: u8 = 2;

const GAP_TIMER: TimerId = 0;

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    Box::new(Repeat {
        copies: params.value(&SPEC, "copies"),
        gap: Duration::from_nanos(params.value(&SPEC, "gap")),
        waiting: Waiting::default(),
        sent: 0,
        copier: Copier::new(setup),
    })
}

struct Repeat {
    copies: u64,
    gap: Duration,
    waiting: Waiting,
    /// How many packets were sent, copies not counted.
    sent: u64,
    copier: Copier,
}

impl Module for Repeat {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.sent += slot.segment_count() as u64;
        let has_capacity = self.waiting.has_capacity(slot.payload_len());
        let view = cx.pool.share(slot);
        if !has_capacity {
            cx.discard(view, DropReason::Overflow);
            return Verdict::Forward;
        }
        let is_first = self.waiting.len() == 0;
        let copy = Copy { view, sent: cx.now(), left: self.copies, number: self.sent };
        self.waiting.push(copy);
        if is_first {
            self.arm(cx);
        }
        Verdict::Forward
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        // What is due and exceeds a batch waits for the next call, which is armed for now.
        let (mut count, mut bytes) = (0, 0);
        while count < BATCH_PACKETS_MAX && bytes < BATCH_BYTES_MAX && self.is_due(cx) {
            let Some(copy) = self.waiting.pop() else { break };
            (count, bytes) = (count + 1, bytes + copy.view.payload_len());
            if let Some(copy) = self.send_again(cx, copy) {
                self.waiting.push(copy);
            }
        }
        self.arm(cx);
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        match parameter(&SPEC, message)? {
            (CONTROL_SET_COPIES, copies) => self.copies = copies,
            (_, gap) => self.gap = Duration::from_nanos(gap),
        }
        self.arm(cx);
        Ok(Vec::new())
    }

    /// The last copy is that much behind the packet.
    fn patience(&self) -> Duration {
        let copies = u32::try_from(self.copies).unwrap_or(u32::MAX);
        self.gap.saturating_mul(copies)
    }

    /// Sends everything that waits once more, now: several copies close together would be lost
    /// together.
    fn drain(&mut self, cx: &mut Cx<'_>) {
        while let Some(copy) = self.waiting.pop() {
            if let Some(copy) = self.send_again(cx, copy) {
                cx.pool.free(copy.view);
            }
        }
        self.arm(cx);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        while let Some(copy) = self.waiting.pop() {
            cx.discard(copy.view, DropReason::Shutdown);
        }
        self.arm(cx);
    }
}

impl Repeat {
    fn is_due(&self, cx: &Cx<'_>) -> bool {
        self.waiting.oldest().is_some_and(|sent| sent + self.gap <= cx.now())
    }

    /// Sends a packet once more; what is left of it, when it is to be sent yet again.
    fn send_again(&mut self, cx: &mut Cx<'_>, mut copy: Copy) -> Option<Copy> {
        if self.sent - copy.number > BEHIND_MAX {
            cx.discard(copy.view, DropReason::Stale);
            return None;
        }
        let Ok(packet) = self.copier.copy(cx.pool, &copy.view) else {
            cx.discard(copy.view, DropReason::NoMemory);
            return None;
        };
        down_or_drop(cx, packet);
        (copy.left, copy.sent) = (copy.left.saturating_sub(1), cx.now());
        if copy.left > 0 {
            return Some(copy);
        }
        cx.pool.free(copy.view);
        None
    }

    fn arm(&mut self, cx: &mut Cx<'_>) {
        match self.waiting.oldest() {
            Some(sent) => cx.arm(GAP_TIMER, sent + self.gap),
            None => cx.disarm(GAP_TIMER),
        }
    }
}
