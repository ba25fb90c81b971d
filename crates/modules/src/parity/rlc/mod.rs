//! Module `fec-rlc`: now and then a packet that is computed of those that were sent last, from
//! which lost ones are computed.
//!
//! ```text
//!   down   s0 s1 s2 s3 r s4 s5 s6 s7 r s8 …    a repair for every 4 sources, of all in its window
//!   wire   s0 x  s2 s3 r s4 x  s6 s7 r s8
//!   up     s0    s2 s3 1 s4    s6 s7 5 s8      what comes goes up at once, what is computed when
//!                                              as many repairs have come as sources are missing
//! ```
//!
//! Where a block must be whole before any of it can be computed, here each source is in all repairs
//! that follow it within `span`: as long as a flow has time, and none of that is spent on waiting
//! for the end of a block. What is computed comes later than what followed it, so the order of what
//! is below is gone; no packet goes up twice. Each repair says of what it is made: the peer need
//! not be told what changes.
//!
//! Source: RFC 8681 (sliding window random linear codes, RLC), over the field of 256 elements, with
//! factors of its own (`code.rs` says which and why) and a header of its own
//! (`dacapo_wire::sliding`).
//!
//! Invariants: a source is never held or given up; what is kept is bounded as `sending.rs` and
//! `sliding/receiving.rs` say, and no longer than `span`, at a receiver [`HOLD`] more.

mod code;
mod elimination;
mod profile;
mod sending;
mod tail;
mod walk;

use crate::control::parameter;
pub use crate::parity::sliding::HOLD;
use crate::parity::sliding::{OVERTAKEN, Receiver, Uses};
use crate::runs::down_or_drop;
use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params, Setup,
    TimerId, Verdict,
};
use dacapo_packet::Packet;
use dacapo_wire::sliding::{LEN, SOURCES_MAX};
use elimination::Elimination;
use profile::Windows;
use sending::{Sending, Terms};
use std::time::Duration;
use tail::Tail;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "fec-rlc",
    id: 0x0009,
    mechanism: "random linear code over a sliding window (RFC 8681)",
    summary: "repairs of the packets that were sent last, from which lost ones are computed",
    head: LEN as u16,
    notes: &["packets_computed", "repairs"],
    params: &[
        ParamSpec {
            name: "percent",
            unit: ParamUnit::Count,
            default: 25,
            min: 1,
            max: 100,
            summary: "how many repairs there are for every 100 packets",
            control: Some(CONTROL_SET_PERCENT),
        },
        ParamSpec {
            name: "window",
            unit: ParamUnit::Count,
            default: 40,
            min: 1,
            max: SOURCES_MAX,
            summary: "how many packets a repair is computed of at most: the last",
            control: Some(CONTROL_SET_WINDOW),
        },
        ParamSpec {
            name: "span",
            unit: ParamUnit::Nanoseconds,
            default: 100_000_000,
            min: 1_000_000,
            max: 1_000_000_000,
            summary: "how old these are at most",
            control: Some(CONTROL_SET_SPAN),
        },
    ],
    ..super::common(&Windows)
};

/// The numbers of the parameters.
const PERCENT: u16 = 0;
const WINDOW: u16 = 1;
const SPAN: u16 = 2;

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Out-of-band message: set `percent` from the next packet on; the new value follows as a u64.
pub const CONTROL_SET_PERCENT: u8 = 1;

/// Out-of-band message: set `window` from the next repair on; the new value follows as a u64.
pub const CONTROL_SET_WINDOW: u8 = 2;

/// Out-of-band message: set `span`; nanoseconds as a u64.
pub const CONTROL_SET_SPAN: u8 = 3;

/// The code of the note that says how many packets were computed.
pub const NOTE_COMPUTED: u16 = 1;

/// The code of the note that says how many repairs were sent.
pub const NOTE_REPAIRS: u16 = 2;

/// Repairs wait to be sent.
const SEND_TIMER: TimerId = 0;
/// The flow may have paused, or repairs of its last sources are due.
const TAIL_TIMER: TimerId = 1;
/// What has come has its age.
const HOLD_TIMER: TimerId = 2;

/// How far back a receiver keeps sources: a window, and as many as may be overtaken.
const RANGE: u64 = SOURCES_MAX + 1 + OVERTAKEN;

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    let span = Duration::from_nanos(params.value(&SPEC, "span"));
    let uses = Uses { timer: HOLD_TIMER, note: NOTE_COMPUTED };
    Box::new(Sliding {
        terms: Terms {
            percent: params.value(&SPEC, "percent"),
            window: params.value(&SPEC, "window") as usize,
            span,
        },
        sending: Sending::new(setup),
        tail: Tail::default(),
        receiver: Receiver::new(uses, Elimination::default(), RANGE, span + HOLD),
        repairs: 0,
    })
}

struct Sliding {
    terms: Terms,
    sending: Sending,
    tail: Tail,
    receiver: Receiver<Elimination>,
    /// How many repairs were sent.
    repairs: i64,
}

impl Module for Sliding {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let Some(due) = self.sending.add(cx, slot, &self.terms) else {
            return Verdict::Drop(DropReason::TooLarge);
        };
        if let Some(at) = self.tail.arm(&self.sending, &self.terms) {
            cx.arm(TAIL_TIMER, at);
        }
        if due > 0 {
            self.sending.repair(cx, due, &self.terms);
            cx.arm(SEND_TIMER, cx.now());
        }
        Verdict::Forward
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.receiver.up(cx, slot)
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        match timer {
            SEND_TIMER => self.send(cx),
            TAIL_TIMER => self.look_at_tail(cx),
            _ => self.receiver.timeout(cx),
        }
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        match parameter(&SPEC, message)? {
            (CONTROL_SET_PERCENT, percent) => self.terms.percent = percent,
            (CONTROL_SET_WINDOW, window) => self.terms.window = window as usize,
            (_, span) => self.terms.span = Duration::from_nanos(span),
        }
        self.receiver.set(RANGE, self.terms.span + HOLD);
        if let Some(at) = self.tail.arm_again(cx.now(), &self.sending, &self.terms) {
            cx.arm(TAIL_TIMER, at);
        }
        Ok(Vec::new())
    }

    /// The last repair of a source comes that much behind it.
    fn patience(&self) -> Duration {
        self.terms.span
    }

    fn join(&mut self) {
        self.receiver.join();
    }

    /// Sends the repairs that the last sources have claim to.
    fn drain(&mut self, cx: &mut Cx<'_>) {
        let due = self.tail.end(&mut self.sending, &self.terms);
        self.sending.repair(cx, due, &self.terms);
        self.send(cx);
        self.sending.forget(cx.pool);
        [SEND_TIMER, TAIL_TIMER].into_iter().for_each(|timer| cx.disarm(timer));
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.tail = Tail::default();
        self.sending.forget(cx.pool);
        self.sending.leaving().flush(cx);
        self.receiver.flush(cx);
        [SEND_TIMER, TAIL_TIMER].into_iter().for_each(|timer| cx.disarm(timer));
    }
}

impl Sliding {
    /// Sends the repairs that wait.
    fn send(&mut self, cx: &mut Cx<'_>) {
        let before = self.repairs;
        while let Some(repairs) = self.sending.leaving().poll(cx.now()) {
            self.repairs += repairs.segment_count() as i64;
            down_or_drop(cx, repairs);
        }
        if self.repairs != before {
            cx.note(NOTE_REPAIRS, self.repairs);
        }
    }

    /// Sends what the last sources have claim to, if the flow has paused.
    fn look_at_tail(&mut self, cx: &mut Cx<'_>) {
        let due = self.tail.due(cx.now(), &mut self.sending, &self.terms);
        self.sending.forget_old(cx.pool, cx.now(), &self.terms);
        self.sending.repair(cx, due, &self.terms);
        self.send(cx);
        match self.tail.arm_again(cx.now(), &self.sending, &self.terms) {
            Some(at) => cx.arm(TAIL_TIMER, at),
            None => cx.disarm(TAIL_TIMER),
        }
    }
}
