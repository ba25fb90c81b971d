//! Module `nak-group`: receivers of a group ask for what they miss, and parities repair it for all
//! of them at once.
//!
//! ```text
//!   sender     s0 s1 s2 s3 | s0 …             p            one parity is enough for both
//!   receiver   s0 x  s2 s3   waits .. asks 1  p  -> s1     some ms, at random
//!   receiver   s0 s1 x  s3   waits ..         p  -> s2     has not asked
//! ```
//!
//! Packets are numbered in blocks and go up as they come. Who misses some of a block waits a random
//! time and says how many it has; the sender makes as many parities as that one lacks and sends
//! them to the group. Every parity helps whoever misses any packet of the block, so what one has
//! asked for is mostly enough for all, and who has heard enough asks for nothing. What cannot come
//! within `deadline` of being missed is given up, and told.
//!
//! Sources: RFC 5740 (NORM: parities on demand, a random back-off by the size of the group) and RFC
//! 5401 (its building blocks). Unlike NORM a receiver says how much it has, not which it lacks, and
//! answers go to the sender alone; blocks and code are those of `fec-rs`.
//!
//! Invariants: a source is never held or delayed; at most 64 blocks are known at each end, with
//! 4 MiB at a receiver and 8 MiB at the sender; repairs are at most half of what is sent, and a
//! quarter for one receiver (`budgets.rs`); what a receiver asks takes its part of a twentieth of
//! what comes (`asking.rs`).

mod asking;
mod budgets;
mod profile;
mod sending;
mod sent;

use crate::blocks::receiving::Place;
pub use crate::blocks::recovering::NOTE_COMPUTED;
use crate::blocks::recovering::{Recovering, run_of};
use crate::control::parameter;
use crate::copying::Copier;
use crate::emitting::{behind, tell};
use crate::runs::{down_or_drop, in_runs};
use asking::Asking;
use dacapo_base::Time;
use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params,
    Property, Setup, TimerId, Verdict,
};
use dacapo_packet::{Kind, Packet};
use dacapo_wire::group_repair::{ASK_LEN, ASKS_MAX, Ask, SOURCES_MAX, Said, asks};
use dacapo_wire::parity::{Header, LEN};
use profile::Repaired;
use sending::Sending;
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "nak-group",
    id: 0x0016,
    function: "retransmission",
    mechanism: "parities on demand for a group (RFC 5740)",
    summary: "receivers of a group say what they lack, and parities make it good for all of them",
    head: LEN as u16,
    keeps_order: false,
    requires: &[Property::Boundaries, Property::Answers],
    takes: &[Property::Order],
    provides: &[Property::NoDuplicates],
    beneath: &["ordering"],
    notes: &["packets_computed", "parities"],
    profile: &Repaired,
    params: &[
        ParamSpec {
            name: "deadline",
            unit: ParamUnit::Nanoseconds,
            default: 1_000_000_000,
            min: 5_000_000,
            max: 10_000_000_000,
            summary: "how long after it is missed a packet is of use",
            control: Some(CONTROL_SET_DEADLINE),
        },
        ParamSpec {
            name: "sources",
            unit: ParamUnit::Count,
            default: 32,
            min: 1,
            max: SOURCES_MAX as u64,
            summary: "how many packets a block has at most",
            control: Some(CONTROL_SET_SOURCES),
        },
        ParamSpec {
            name: "span",
            unit: ParamUnit::Nanoseconds,
            default: 50_000_000,
            min: 1_000_000,
            max: 1_000_000_000,
            summary: "how long a block takes at most, and a quarter of the deadline at most",
            control: Some(CONTROL_SET_SPAN),
        },
        ParamSpec {
            name: "receivers",
            unit: ParamUnit::Count,
            default: 16,
            min: 1,
            max: 10_000,
            summary: "how many receivers there may be: the more, the longer one waits to ask",
            control: None,
        },
    ],
    ..ModuleSpec::plain("", 0)
};

/// The numbers of the parameters.
pub(super) const DEADLINE: u16 = 0;
pub(super) const SOURCES: u16 = 1;
pub(super) const SPAN: u16 = 2;
pub(super) const RECEIVERS: u16 = 3;

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Out-of-band message: set `deadline`; nanoseconds as a u64.
pub const CONTROL_SET_DEADLINE: u8 = 1;

/// Out-of-band message: set `sources` from the next block on; the new value follows as a u64.
pub const CONTROL_SET_SOURCES: u8 = 2;

/// Out-of-band message: set `span`; nanoseconds as a u64.
pub const CONTROL_SET_SPAN: u8 = 3;

/// The code of the note of a sender that says how many parities were made.
pub const NOTE_PARITIES: u16 = 2;

/// The block that is being sent has its age.
const SPAN_TIMER: TimerId = 0;
/// It is to be said how far the sender is.
const TAIL_TIMER: TimerId = 1;
/// Something that is kept is of no use any more.
const KEPT_TIMER: TimerId = 2;
/// Something is to be asked for, or given up.
const ASK_TIMER: TimerId = 3;

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    let value = |number| SPEC.value_of(params.values(), number);
    Box::new(NakGroup {
        deadline: Duration::from_nanos(value(DEADLINE)),
        most_span: Duration::from_nanos(value(SPAN)),
        sending: Sending::new(setup, value(SOURCES) as u8),
        receiver: 0,
        recovering: Recovering::default(),
        newest: None,
        asking: Asking::new(value(RECEIVERS)),
        copier: Copier::new(setup),
        tail_armed: false,
        kept_armed: false,
        ask_armed_for: None,
    })
}

struct NakGroup {
    deadline: Duration,
    most_span: Duration,
    sending: Sending,
    /// Of which receiver is what comes to the sender.
    receiver: u32,
    recovering: Recovering,
    /// The newest block when it was looked last what is missing.
    newest: Option<u64>,
    asking: Asking,
    copier: Copier,
    /// The timer that says how far the sender is, is armed.
    tail_armed: bool,
    /// The timer of what is kept is armed.
    kept_armed: bool,
    /// When the timer of what is asked fires.
    ask_armed_for: Option<Time>,
}

impl Module for NakGroup {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        if slot.kind() == Kind::Parity {
            // Of several receivers each says such things, and none of it is in a block.
            return behind(cx, slot, |_| Said::Beside.emit());
        }
        let begun = self.sending.begun();
        loop {
            let capacity = self.sending.capacity();
            let mut part = cx.pool.split_first(slot, capacity);
            let packet = part.as_mut().unwrap_or(&mut *slot);
            if !self.sending.add(cx, packet) {
                part.into_iter().for_each(|part| cx.discard(part, DropReason::TooLarge));
                return Verdict::Drop(DropReason::TooLarge);
            }
            let Some(part) = part else { break };
            down_or_drop(cx, part);
        }
        self.arm_span(cx, begun);
        self.arm_sender(cx);
        Verdict::Forward
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.asking.earn(slot.payload_len());
        let verdict = in_runs(cx, slot, run_of, |cx, run| self.up_run(cx, run));
        // In the middle of a block nothing is missed that was not before.
        let is_over = self.newest != self.recovering.receiving.newest();
        if self.recovering.take_has_parity() || is_over {
            self.look(cx);
        }
        verdict
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        match timer {
            SPAN_TIMER => {
                if self.sending.begun().is_some_and(|begun| begun + self.span() <= cx.now()) {
                    self.sending.announce(cx, &self.copier);
                }
                self.arm_span(cx, None);
            }
            TAIL_TIMER => {
                self.tail_armed = false;
                if self.sending.tail(self.span()).is_some_and(|at| at <= cx.now()) {
                    self.sending.announce(cx, &self.copier);
                }
                self.arm_sender(cx);
            }
            KEPT_TIMER => {
                self.kept_armed = false;
                self.sending.let_go(cx.pool, cx.now() - self.kept_for());
                self.arm_sender(cx);
            }
            _ => {
                self.ask_armed_for = None;
                self.give_up(cx);
                self.look(cx);
                self.ask(cx);
            }
        }
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        match parameter(&SPEC, message)? {
            (CONTROL_SET_SOURCES, count) => self.sending.set_size(count as u8),
            (CONTROL_SET_SPAN, span) => self.most_span = Duration::from_nanos(span),
            (_, deadline) => self.deadline = Duration::from_nanos(deadline),
        }
        (self.tail_armed, self.kept_armed) = (false, false);
        self.arm_span(cx, None);
        self.arm_sender(cx);
        Ok(Vec::new())
    }

    fn handle_receiver(&mut self, receiver: u32) {
        self.receiver = receiver;
    }

    /// What is missed last is noticed when the next block begins, or is said to have ended.
    fn patience(&self) -> Duration {
        self.deadline + self.span()
    }

    fn join(&mut self) {
        self.recovering.receiving.join();
    }

    /// Says how far this end is: nothing will follow that would show it.
    fn drain(&mut self, cx: &mut Cx<'_>) {
        if self.sending.tail(self.span()).is_some() {
            self.sending.announce(cx, &self.copier);
        }
        self.arm_span(cx, None);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.sending.flush(cx);
        self.recovering.receiving.forget(cx.pool);
        self.asking.forget();
        (self.tail_armed, self.kept_armed, self.ask_armed_for) = (false, false, None);
        let timers = [SPAN_TIMER, TAIL_TIMER, KEPT_TIMER, ASK_TIMER];
        timers.into_iter().for_each(|timer| cx.disarm(timer));
    }
}

impl NakGroup {
    /// Takes a run that fills its slot.
    fn up_run(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        if !Said::is(cx.pool.segment(slot, 0)) {
            return self.recovering.up_run(cx, slot);
        }
        let said = Said::parse(cx.pool.segment(slot, 0));
        if said == Ok(Said::Beside) {
            let pulled = cx.pool.pull_head(slot, LEN);
            return pulled.map_or(Verdict::Drop(DropReason::Malformed), |()| Verdict::Forward);
        }
        let is_understood = said.is_ok_and(|said| self.hear(cx, slot, said));
        cx.pool.free(slot.take());
        if !is_understood {
            cx.not_made(1, DropReason::Malformed);
        }
        Verdict::Held
    }

    /// Takes what the other end's module says; false where nobody says such a thing.
    fn hear(&mut self, cx: &mut Cx<'_>, slot: &Packet, said: Said) -> bool {
        match said {
            Said::Ended { block, sources } => {
                self.learn_end(cx, block, sources);
                true
            }
            Said::Heard { answer_ms, echo } => {
                self.asking.handle_heard(cx.now(), answer_ms, echo);
                true
            }
            Said::Asked { answer_ms, echo, .. } => {
                // Answers take memory of the pool in which the asks lie.
                let mut copied = [0; ASKS_MAX * ASK_LEN];
                let said = cx.pool.segment(slot, 0).get(LEN..).unwrap_or_default();
                let Some(room) = copied.get_mut(..said.len()) else { return false };
                room.copy_from_slice(said);
                let Ok(asks) = asks(room) else { return false };
                let answer = Duration::from_millis(answer_ms.into());
                let (before, from) = (self.sending.parities, (self.receiver, answer));
                self.sending.echo(cx, &self.copier, self.receiver, (answer_ms, echo));
                self.sending.answer(cx, &self.copier, from, asks);
                if self.sending.parities != before {
                    cx.note(NOTE_PARITIES, self.sending.parities);
                }
                true
            }
            Said::Beside => false,
        }
    }

    fn learn_end(&mut self, cx: &mut Cx<'_>, block: u32, sources: u8) {
        let header = Header { block, index: 0, sources, length: 0 };
        if let Place::In(number) = self.recovering.receiving.place(cx.pool, &header) {
            self.recovering.receiving.learn_end(cx, number, sources);
            self.recovering.compute(cx, number);
        }
        self.look(cx);
    }

    /// Looks what is missing.
    fn look(&mut self, cx: &mut Cx<'_>) {
        self.newest = self.recovering.receiving.newest();
        let now = cx.now();
        let missing = self.recovering.receiving.missing();
        self.asking.note(now, cx.random, missing, self.deadline);
        self.arm_ask(cx);
    }

    /// Gives up what cannot come in time any more, and tells it.
    fn give_up(&mut self, cx: &mut Cx<'_>) {
        for number in self.asking.expired(cx.now(), self.deadline) {
            let lost = self.recovering.receiving.give_up_one(cx.pool, number);
            if lost > 0 {
                cx.report_lost(lost);
            }
        }
    }

    /// Asks for what is to be asked for now.
    fn ask(&mut self, cx: &mut Cx<'_>) {
        let asks = self.asking.poll(cx.now(), cx.random, self.deadline);
        if !asks.is_empty() {
            let (answer_ms, echo) = self.asking.head(cx.now(), cx.random, self.deadline);
            let said = Said::Asked { answer_ms, echo, count: asks.len() as u8 };
            let body: Vec<u8> = asks.iter().flat_map(Ask::emit).collect();
            tell(cx, &self.copier, said.emit(), &body);
        }
        self.arm_ask(cx);
    }

    /// How long a block takes at most.
    fn span(&self) -> Duration {
        self.most_span.min(self.deadline / 4)
    }

    /// How long the sender keeps a block: what is missed of it may be noticed at its end, and is
    /// asked for within the deadline.
    fn kept_for(&self) -> Duration {
        self.deadline * 2 + self.span()
    }

    /// Arms the timer of the block that is open, unless that was begun before.
    fn arm_span(&mut self, cx: &mut Cx<'_>, before: Option<Time>) {
        match self.sending.begun() {
            Some(begun) if before == Some(begun) => {}
            Some(begun) => cx.arm(SPAN_TIMER, begun + self.span()),
            None => cx.disarm(SPAN_TIMER),
        }
    }

    /// Arms what is not armed: each of these timers looks again when it was too early.
    fn arm_sender(&mut self, cx: &mut Cx<'_>) {
        if !self.tail_armed
            && let Some(tail) = self.sending.tail(self.span())
        {
            cx.arm(TAIL_TIMER, tail);
            self.tail_armed = true;
        }
        if !self.kept_armed
            && let Some(oldest) = self.sending.oldest()
        {
            cx.arm(KEPT_TIMER, oldest + self.kept_for());
            self.kept_armed = true;
        }
    }

    fn arm_ask(&mut self, cx: &mut Cx<'_>) {
        let due = self.asking.due(self.deadline);
        if due == self.ask_armed_for {
            return;
        }
        match due {
            Some(due) => cx.arm(ASK_TIMER, due),
            None => cx.disarm(ASK_TIMER),
        }
        self.ask_armed_for = due;
    }
}
