//! Module `fec-rs`: after every block of packets some more, from which lost ones are computed.
//!
//! ```text
//!   down   s0 s1 s2 s3 p p | s0 …     4 sources, 2 parities: whichever 4 of the 6 come give all 4
//!   wire   s0 x  s2 x  p p
//!   up     s0    s2      s1 s3        what comes goes up at once, what is computed when it can be
//! ```
//!
//! A block ends with its last source, or `span` after its first: then with the sources that it has.
//! What is computed comes later than what followed it, so the order of what is below is gone; no
//! packet goes up twice. Each packet carries its place in its block, and each parity how large the
//! block is: sizes change from one block to the next, and the peer need not be told.
//!
//! Where it is said how much may stay lost (`left_ppm`), receivers report what they lose, and
//! blocks get as few parities as that takes (`strength.rs`).
//!
//! Source: RFC 5510 (Reed-Solomon forward error correction), with a matrix of its own kind
//! (`blocks/code.rs` says which and why) and a header of its own (`dacapo_wire::parity`).
//!
//! Invariants: a source is never held, delayed or given up for its block; at most 64 blocks and
//! 4 MiB are kept, each at most [`HOLD`] longer than its last parity
//! should take; at most 1,024 trains of parities wait.

pub use super::report::CONTROL_REPORT;
use super::report::{Reports, parse};
use super::sending::{Sending, Size};
use super::strength::{Aim, Strength};
pub use crate::blocks::recovering::NOTE_COMPUTED;
use crate::blocks::recovering::{Recovering, run_of};
use crate::blocks::seen::Seen;
use crate::control::parameter;
use crate::parity::profile::Blocks;
use crate::runs::{down_or_drop, in_runs};
use dacapo_base::Time;
use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params, Setup,
    TimerId, Verdict,
};
use dacapo_packet::Packet;
use dacapo_wire::parity::LEN;
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "fec-rs",
    id: 0x0005,
    mechanism: "Reed-Solomon parity over blocks (RFC 5510)",
    summary: "parities after every block, from which as many lost packets are computed",
    head: LEN as u16,
    notes: &["packets_computed", "parities"],
    params: &[
        ParamSpec {
            name: "sources",
            unit: ParamUnit::Count,
            default: 10,
            min: 1,
            max: 127,
            summary: "how many packets a block has at most",
            control: Some(CONTROL_SET_SOURCES),
        },
        ParamSpec {
            name: "parities",
            unit: ParamUnit::Count,
            default: 3,
            min: 0,
            max: 128,
            summary: "how many lost packets of a block can be computed",
            control: Some(CONTROL_SET_PARITIES),
        },
        ParamSpec {
            name: "span",
            unit: ParamUnit::Nanoseconds,
            default: 50_000_000,
            min: 1_000_000,
            max: 1_000_000_000,
            summary: "how long a block takes at most, from its first packet to its parities",
            control: Some(CONTROL_SET_SPAN),
        },
        ParamSpec {
            name: "left_ppm",
            unit: ParamUnit::Count,
            default: 0,
            min: 0,
            max: 1_000_000,
            summary: "how many of a million packets may stay lost where fewer parities do; 0: none",
            control: Some(CONTROL_SET_LEFT),
        },
    ],
    ..super::common(&Blocks)
};

/// The numbers of the parameters.
pub(super) const SOURCES: u16 = 0;
pub(super) const PARITIES: u16 = 1;
pub(super) const SPAN: u16 = 2;
pub(super) const LEFT: u16 = 3;

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Out-of-band message: set `sources` from the next block on; the new value follows as a u64.
pub const CONTROL_SET_SOURCES: u8 = 1;

/// Out-of-band message: set `parities` from the next block on; the new value follows as a u64.
pub const CONTROL_SET_PARITIES: u8 = 2;

/// Out-of-band message: set `span`, for the block that is begun too; nanoseconds as a u64.
pub const CONTROL_SET_SPAN: u8 = 3;

/// Out-of-band message: set `left_ppm`, at a sender for the next report, at a receiver whether it
/// reports; the new value follows as a u64.
pub const CONTROL_SET_LEFT: u8 = 4;

/// How long a receiver waits for what is missing of a block, once its last parity should be there.
pub const HOLD: Duration = Duration::from_millis(500);

/// The code of the note of a sender that says how many parities blocks get now.
pub const NOTE_PARITIES: u16 = 2;

/// Parities are due.
const SEND_TIMER: TimerId = 0;
/// The block that is being sent has its age.
const SPAN_TIMER: TimerId = 1;
/// A block that came in part has its age.
const HOLD_TIMER: TimerId = 2;

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    let count = |name| params.value(&SPEC, name) as u8;
    let size = Size { sources: count("sources"), parities: count("parities") };
    Box::new(ReedSolomon {
        size,
        next: size,
        span: Duration::from_nanos(params.value(&SPEC, "span")),
        left_ppm: params.value(&SPEC, "left_ppm"),
        strength: Strength::default(),
        filled: 0,
        reports: Reports::default(),
        sending: Sending::new(setup),
        recovering: Recovering::default(),
        is_holding: false,
    })
}

struct ReedSolomon {
    /// What was agreed.
    size: Size,
    /// Of the next block: fewer parities are enough, when receivers say so.
    next: Size,
    span: Duration,
    left_ppm: u64,
    /// What receivers have reported.
    strength: Strength,
    /// The most sources that a block had since a report came.
    filled: u8,
    reports: Reports,
    sending: Sending,
    recovering: Recovering,
    /// The timer for blocks that came in part is armed.
    is_holding: bool,
}

impl Module for ReedSolomon {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let due = self.sending.due();
        loop {
            let was_begun = self.sending.begun().is_some();
            let capacity = self.sending.capacity(self.next);
            let mut part = cx.pool.split_first(slot, capacity);
            let packet = part.as_mut().unwrap_or(&mut *slot);
            if !self.sending.add(cx, packet) {
                part.into_iter().for_each(|part| cx.discard(part, DropReason::TooLarge));
                return Verdict::Drop(DropReason::TooLarge);
            }
            if self.sending.is_full() {
                self.end_block(cx);
            }
            self.arm_span(cx, was_begun);
            let Some(part) = part else { break };
            down_or_drop(cx, part);
        }
        if self.sending.due() != due {
            self.arm_send(cx);
        }
        Verdict::Forward
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let verdict = in_runs(cx, slot, run_of, |cx, run| self.recovering.up_run(cx, run));
        self.report(cx);
        self.arm_hold(cx);
        verdict
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        if timer == HOLD_TIMER {
            self.recovering.receiving.give_up(cx.pool, cx.now() - self.hold());
            self.report(cx);
            self.is_holding = false;
            return self.arm_hold(cx);
        }
        if self.sending.begun().is_some_and(|begun| begun + self.span <= cx.now()) {
            self.end_block(cx);
        }
        self.send(cx, cx.now());
        self.arm_span(cx, false);
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        if let Some((&CONTROL_REPORT, report)) = message.split_first() {
            let (id, seen) = parse(report).map_err(|_| ControlError::Malformed)?;
            self.hear(cx, id, &seen);
            return Ok(Vec::new());
        }
        match parameter(&SPEC, message)? {
            (CONTROL_SET_SOURCES, count) => self.size.sources = count as u8,
            (CONTROL_SET_PARITIES, count) => self.size.parities = count as u8,
            (CONTROL_SET_LEFT, ppm) => self.left_ppm = ppm,
            (_, span) => self.span = Duration::from_nanos(span),
        }
        // What was reported was looked at for something else.
        self.strength.forget();
        self.set_parities(cx, self.size.parities);
        self.arm_span(cx, false);
        Ok(Vec::new())
    }

    fn answered(&mut self, _: &mut Cx<'_>, answer: Result<&[u8], &str>) {
        self.reports.answered(answer.is_ok(), self.recovering.receiving.seen());
    }

    /// The last parity of a block comes that much behind its first source: a span for the sources,
    /// and one for the parities.
    fn patience(&self) -> Duration {
        self.span * 2
    }

    fn join(&mut self) {
        self.recovering.receiving.join();
    }

    /// Ends the block, with the sources that it has, and sends all that waits.
    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.sending.end(cx, self.span);
        self.send(cx, Time::NEVER);
        self.arm_span(cx, false);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.sending.forget();
        self.sending.leaving().flush(cx);
        self.recovering.receiving.forget(cx.pool);
        self.arm_send(cx);
        self.arm_span(cx, false);
        self.arm_hold(cx);
    }
}

impl ReedSolomon {
    fn end_block(&mut self, cx: &mut Cx<'_>) {
        self.sending.end(cx, self.span);
        self.filled = self.filled.max(self.sending.filled().unwrap_or(0));
    }

    /// A receiver has reported.
    fn hear(&mut self, cx: &mut Cx<'_>, id: u32, seen: &Seen) {
        let filled = std::mem::take(&mut self.filled);
        let sources = if filled == 0 { self.size.sources } else { filled };
        let (most, left_ppb) = (self.size.parities, self.left_ppm * 1_000);
        self.strength.hear(cx.now(), id, seen, Aim { sources, most, left_ppb });
        if self.left_ppm > 0 {
            self.set_parities(cx, self.strength.parities(most));
        }
    }

    /// Blocks have so many parities from the next on.
    fn set_parities(&mut self, cx: &mut Cx<'_>, parities: u8) {
        let next = Size { parities, ..self.size };
        if self.next != next {
            self.next = next;
            cx.note(NOTE_PARITIES, parities.into());
        }
    }

    /// Tells the sender what was lost, where it wants to know and it is time.
    fn report(&mut self, cx: &mut Cx<'_>) {
        let seen = self.recovering.receiving.seen();
        match self.left_ppm {
            0 => *seen = Seen::default(),
            _ if seen.sources == 0 => {}
            _ => self.reports.send(cx, seen),
        }
    }

    /// Sends the parities that are due by `now`.
    fn send(&mut self, cx: &mut Cx<'_>, now: Time) {
        while let Some(parities) = self.sending.leaving().poll(now) {
            down_or_drop(cx, parities);
        }
        self.arm_send(cx);
    }

    fn arm_send(&mut self, cx: &mut Cx<'_>) {
        match self.sending.due() {
            Some(due) => cx.arm(SEND_TIMER, due),
            None => cx.disarm(SEND_TIMER),
        }
    }

    /// How long the packets of a block are kept.
    fn hold(&self) -> Duration {
        self.patience() + HOLD
    }

    /// Arms the timer of the block that is being sent, unless it was begun before and its timer is
    /// armed already.
    fn arm_span(&mut self, cx: &mut Cx<'_>, was_begun: bool) {
        match self.sending.begun() {
            Some(_) if was_begun => {}
            Some(begun) => cx.arm(SPAN_TIMER, begun + self.span),
            None => cx.disarm(SPAN_TIMER),
        }
    }

    fn arm_hold(&mut self, cx: &mut Cx<'_>) {
        if self.is_holding {
            return;
        }
        if let Some(since) = self.recovering.receiving.oldest() {
            cx.arm(HOLD_TIMER, since + self.hold());
            self.is_holding = true;
        }
    }
}
