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
//! `receiving.rs` say, and no longer than `span`, at a receiver [`HOLD`] more.

mod came;
mod code;
mod elimination;
mod profile;
mod receiving;
mod sending;
mod tail;
mod walk;

use crate::control::parameter;
use crate::runs::{consecutive, in_parts, in_runs, up_or_drop};
use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params,
    Property, Setup, Stratum, TimerId, Verdict,
};
use dacapo_packet::Packet;
use dacapo_wire::sliding::{Header, LEN, SOURCES_MAX};
use profile::Windows;
use receiving::{Place, Receiving};
use sending::{Sending, Terms};
use std::time::Duration;
use tail::Tail;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "fec-rlc",
    id: 0x0009,
    function: "parity",
    mechanism: "random linear code over a sliding window (RFC 8681)",
    summary: "repairs of the packets that were sent last, from which lost ones are computed",
    stratum: Stratum::Repair,
    head: LEN as u16,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: false,
    segments: false,
    acknowledges: false,
    orders: None,
    requires: &[Property::Boundaries],
    provides: &[],
    takes: &[Property::Order],
    beneath: &["ordering", "duplicates", "redundancy"],
    notes: &["packets_computed", "repairs"],
    profile: &Windows,
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

/// How much longer than `span` a receiver keeps what has come.
pub const HOLD: Duration = Duration::from_millis(500);

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

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    Box::new(Sliding {
        terms: Terms {
            percent: params.value(&SPEC, "percent"),
            window: params.value(&SPEC, "window") as usize,
            span: Duration::from_nanos(params.value(&SPEC, "span")),
        },
        sending: Sending::new(setup),
        tail: Tail::default(),
        receiving: Receiving::default(),
        computed: 0,
        repairs: 0,
        is_holding: false,
    })
}

struct Sliding {
    terms: Terms,
    sending: Sending,
    tail: Tail,
    receiving: Receiving,
    /// How many packets were computed.
    computed: i64,
    /// How many repairs were sent.
    repairs: i64,
    /// The timer of what has come is armed.
    is_holding: bool,
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
        in_runs(cx, slot, run_of, |cx, run| self.up_run(cx, run))
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        match timer {
            SEND_TIMER => self.send(cx),
            TAIL_TIMER => self.look_at_tail(cx),
            _ => {
                self.receiving.give_up(cx.pool, cx.now() - self.hold());
                self.is_holding = false;
                self.arm_hold(cx);
            }
        }
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        match parameter(&SPEC, message)? {
            (CONTROL_SET_PERCENT, percent) => self.terms.percent = percent,
            (CONTROL_SET_WINDOW, window) => self.terms.window = window as usize,
            (_, span) => self.terms.span = Duration::from_nanos(span),
        }
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
        self.receiving.join();
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
        while let Some(repairs) = self.sending.poll() {
            cx.discard(repairs, DropReason::Shutdown);
        }
        self.receiving.forget(cx.pool);
        self.is_holding = false;
        [SEND_TIMER, TAIL_TIMER, HOLD_TIMER].into_iter().for_each(|timer| cx.disarm(timer));
    }
}

/// How many sources that follow each other a packet begins with; 1 for everything else.
fn run_of(cx: &Cx<'_>, packet: &Packet) -> usize {
    consecutive(cx, packet, |bytes| {
        let header = Header::parse(bytes).ok().filter(|header| !header.is_repair())?;
        Some((header.number, ()))
    })
}

impl Sliding {
    /// Sends the repairs that wait.
    fn send(&mut self, cx: &mut Cx<'_>) {
        let before = self.repairs;
        while let Some(repairs) = self.sending.poll() {
            self.repairs += repairs.segment_count() as i64;
            if let Err(repairs) = cx.emit_down(repairs) {
                cx.discard(repairs, DropReason::Overflow);
            }
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

    /// Takes a run that fills its slot.
    fn up_run(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let Ok(header) = Header::parse(cx.pool.segment(slot, 0)) else {
            return Verdict::Drop(DropReason::Malformed);
        };
        let number = match self.receiving.place(cx.pool, &header) {
            Place::At(number) => number,
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
        self.arm_hold(cx);
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
            self.arm_hold(cx);
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
            cx.note(NOTE_COMPUTED, self.computed);
        }
    }

    /// How long a receiver keeps what has come.
    fn hold(&self) -> Duration {
        self.terms.span + HOLD
    }

    /// Arms the timer of what has come, unless it is; it need not be exact.
    fn arm_hold(&mut self, cx: &mut Cx<'_>) {
        if self.is_holding {
            return;
        }
        if let Some(oldest) = self.receiving.oldest() {
            cx.arm(HOLD_TIMER, (oldest + self.hold()).max(cx.now() + self.hold() / 4));
            self.is_holding = true;
        }
    }
}
