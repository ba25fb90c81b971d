//! Module `arq-nak`: the receiver asks for what is missing, while it can still come in time.
//!
//! ```text
//!   down    1  2  3  4              3'
//!   wire    1  x  3  4      asked 2
//!   up      1     3  4                 2      at once, by the deadline; or told as lost
//! ```
//!
//! Packets go up as they come, those that were asked for later; or, where they are to be in order
//! (`ordered`), each once all before it have come or are given up, which this module knows to the
//! millisecond: no packet waits longer for others than it would be asked for itself. No packet goes
//! up twice.
//!
//! A packet that others overtook shows that it is missing; at the end of a burst the sender says
//! how far it is; and where packets come evenly, that none comes shows it. The receiver asks for it
//! (once it is clear that it was not only overtaken), and again when an answer is overdue, as long
//! as one can come within `deadline` after the packet itself should have. What is given up is told.
//! The sender keeps what it sent for as long, and nothing longer.
//!
//! Sources: RFC 4585 (feedback that asks for packets), RFC 3758 (what is given up is told: here
//! each end knows by its own clock), RFC 6298 (when an answer is overdue). Header and asking are
//! our own (`dacapo_wire::retransmission`).
//!
//! Invariants: a packet is never held or delayed, unless packets are to be in order: then at most
//! 8,192 wait, each no longer than `deadline` after it should have come; at most 4,096 trains and
//! 8 MiB are kept, and 4,096 numbers are missing, at a time; a packet is asked for at most 15
//! times; no more packets are sent again than were sent.

use super::profile::AskedFor;
use super::receiving::Receiving;
use super::sending::Sending;
use crate::control::parameter;
use crate::copying::Copier;
use crate::runs::{consecutive, in_parts, in_runs};
use dacapo_base::Time;
use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params,
    Property, Setup, Stratum, TimerId, Verdict,
};
use dacapo_packet::Packet;
use dacapo_wire::retransmission::{
    Header, Kind, LEN, RANGE_LEN, RANGES_MAX, newest_age_us, ranges,
};
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "arq-nak",
    id: 0x0006,
    function: "retransmission",
    mechanism: "negative acknowledgements within a deadline (RFC 4585, 3758)",
    summary: "what is missing is asked for and sent again, while it can come in time",
    stratum: Stratum::Repair,
    head: LEN as u16,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: false,
    segments: false,
    acknowledges: false,
    orders: Some(ORDERED),
    requires: &[Property::Boundaries, Property::WayBack],
    provides: &[Property::NoDuplicates],
    takes: &[Property::Order],
    beneath: &["ordering"],
    notes: &["packets_repaired", "packets_needless"],
    profile: &AskedFor,
    params: &[
        ParamSpec {
            name: "deadline",
            unit: ParamUnit::Nanoseconds,
            default: 200_000_000,
            min: 1_000_000,
            max: 10_000_000_000,
            summary: "how long after it should have come a packet is of use",
            control: Some(CONTROL_SET_DEADLINE),
        },
        ParamSpec {
            name: "ordered",
            unit: ParamUnit::Count,
            default: 0,
            min: 0,
            max: 1,
            summary: "1: a packet waits until those before it have come, or are given up",
            control: None,
        },
        ParamSpec {
            name: "spare_milli",
            unit: ParamUnit::Count,
            default: SPARE_MAX,
            min: 0,
            max: SPARE_MAX,
            summary: "how many more for 1,000 may be sent: room for what is asked for twice",
            control: None,
        },
    ],
};

/// The numbers of the parameters.
pub(super) const DEADLINE: u16 = 0;
pub(super) const ORDERED: u16 = 1;
pub(super) const SPARE: u16 = 2;

/// As many again: nobody bounds what may be sent.
pub(super) const SPARE_MAX: u64 = 1_000;

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Out-of-band message: set `deadline` at this end, for what is missed from now on; nanoseconds as
/// a u64.
pub const CONTROL_SET_DEADLINE: u8 = 1;

/// The code of the note that says how many packets came because they were asked for.
pub const NOTE_REPAIRED: u16 = 1;

/// The code of the note that says how many were asked for and came twice.
pub const NOTE_NEEDLESS: u16 = 2;

/// It is to be said how far the sender is.
const TAIL_TIMER: TimerId = 0;
/// Something that is kept is of no use any more.
const KEPT_TIMER: TimerId = 1;
/// A gap is to be looked at.
const GAP_TIMER: TimerId = 2;
/// Nothing may have come for long.
const SILENCE_TIMER: TimerId = 3;

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    Box::new(Nak {
        deadline: Duration::from_nanos(params.value(&SPEC, "deadline")),
        sending: Sending::default(),
        receiving: Receiving::new(
            params.value(&SPEC, "ordered") != 0,
            params.value(&SPEC, "spare_milli"),
        ),
        copier: Copier::new(setup),
        kept_armed: false,
        tail_armed: false,
        gap_armed_for: None,
        silence_armed: false,
    })
}

struct Nak {
    deadline: Duration,
    sending: Sending,
    receiving: Receiving,
    copier: Copier,
    /// The timer of what is kept is armed.
    kept_armed: bool,
    /// The timer that says how far the sender is, is armed.
    tail_armed: bool,
    /// When the timer of gaps fires.
    gap_armed_for: Option<Time>,
    /// The timer of silence is armed.
    silence_armed: bool,
}

impl Module for Nak {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.sending.let_go(cx, self.deadline);
        if let Err(reason) = self.sending.down(cx, slot) {
            return Verdict::Drop(reason);
        }
        self.arm_sender(cx);
        Verdict::Forward
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        in_runs(cx, slot, run_of, |cx, run| self.up_run(cx, run))
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        match timer {
            TAIL_TIMER => {
                self.tail_armed = false;
                if self.sending.tail(self.deadline).is_some_and(|at| at <= cx.now()) {
                    self.sending.announce(cx, &self.copier);
                }
                self.arm_sender(cx);
            }
            KEPT_TIMER => {
                self.kept_armed = false;
                self.sending.let_go(cx, self.deadline);
                self.arm_sender(cx);
            }
            SILENCE_TIMER => {
                self.silence_armed = false;
                self.receiving.look_into_silence(cx, &self.copier, self.deadline);
                self.arm_silence(cx);
            }
            _ => {
                self.gap_armed_for = None;
                self.receiving.look(cx, &self.copier, self.deadline);
                self.arm_receiver(cx);
            }
        }
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        let (_, value) = parameter(&SPEC, message)?;
        self.deadline = Duration::from_nanos(value);
        (self.kept_armed, self.tail_armed) = (false, false);
        self.arm_sender(cx);
        Ok(Vec::new())
    }

    fn patience(&self) -> Duration {
        self.deadline
    }

    fn join(&mut self) {
        self.receiving.join();
    }

    /// Says how far this end is: nothing will follow that would show it. What waits for others
    /// waits no longer.
    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.receiving.drain(cx);
        self.arm_receiver(cx);
        if self.sending.tail(self.deadline).is_some() {
            self.sending.announce(cx, &self.copier);
        }
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.sending.flush(cx);
        self.receiving.flush(cx);
        (self.kept_armed, self.tail_armed) = (false, false);
        (self.gap_armed_for, self.silence_armed) = (None, false);
        let timers = [TAIL_TIMER, KEPT_TIMER, GAP_TIMER, SILENCE_TIMER];
        timers.into_iter().for_each(|timer| cx.disarm(timer));
    }
}

/// How many packets of one kind, which follow each other, a packet begins with.
fn run_of(cx: &Cx<'_>, packet: &Packet) -> usize {
    let is_told = |kind: Kind| matches!(kind, Kind::Newest | Kind::Asked);
    consecutive(cx, packet, |bytes| {
        let header = Header::parse(bytes).ok().filter(|header| !is_told(header.kind))?;
        Some((header.number, header.kind))
    })
}

impl Nak {
    /// Takes a run that fills its slot.
    fn up_run(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let Ok(header) = Header::parse(cx.pool.segment(slot, 0)) else {
            return Verdict::Drop(DropReason::Malformed);
        };
        if matches!(header.kind, Kind::Newest | Kind::Asked) {
            let is_understood = self.hear(cx, &header, slot);
            cx.pool.free(slot.take());
            if !is_understood {
                cx.not_made(1, DropReason::Malformed);
            }
            return Verdict::Held;
        }
        let before = (self.receiving.repaired, self.receiving.needless);
        let taken = self.receiving.take(cx, &header, slot.segment_count(), self.deadline);
        self.arm_receiver(cx);
        self.arm_silence(cx);
        self.note(cx, before);
        match taken {
            Ok(Some(number)) => match cx.pool.pull_head(slot, LEN) {
                Ok(()) => self.receiving.pass(cx, number, slot),
                Err(_) => Verdict::Drop(DropReason::Malformed),
            },
            Ok(None) => in_parts(cx, slot, |_, _| 1, |cx, part| self.up_run(cx, part)),
            Err(reason) => Verdict::Drop(reason),
        }
    }

    /// Takes what the peer's module says; false where nobody says such a thing.
    fn hear(&mut self, cx: &mut Cx<'_>, header: &Header, slot: &Packet) -> bool {
        let said = cx.pool.segment(slot, 0).get(LEN..).unwrap_or_default();
        if header.kind == Kind::Newest {
            let Ok(age) = newest_age_us(said) else { return false };
            let age = Duration::from_micros(age.into());
            self.receiving.hear(cx, header.number, age, self.deadline);
            self.arm_receiver(cx);
            return true;
        }
        // Answers take memory of the pool in which the ranges lie.
        let mut copied = [0; RANGES_MAX * RANGE_LEN];
        let Some(room) = copied.get_mut(..said.len()) else { return false };
        room.copy_from_slice(said);
        let Ok(asked) = ranges(room) else { return false };
        self.sending.let_go(cx, self.deadline);
        let ago = Duration::from_micros(header.number.into());
        self.sending.answer(cx, &mut self.copier, asked, ago);
        true
    }

    /// Shows what has changed.
    fn note(&self, cx: &mut Cx<'_>, (repaired, needless): (i64, i64)) {
        if self.receiving.repaired != repaired {
            cx.note(NOTE_REPAIRED, self.receiving.repaired);
        }
        if self.receiving.needless != needless {
            cx.note(NOTE_NEEDLESS, self.receiving.needless);
        }
    }

    /// Arms what is not armed: each of these timers looks again when it was too early.
    fn arm_sender(&mut self, cx: &mut Cx<'_>) {
        if !self.tail_armed
            && let Some(tail) = self.sending.tail(self.deadline)
        {
            cx.arm(TAIL_TIMER, tail);
            self.tail_armed = true;
        }
        if !self.kept_armed
            && let Some(due) = self.sending.due(self.deadline)
        {
            // Nothing of it is sent any more by then: what came together goes together.
            cx.arm(KEPT_TIMER, due + self.deadline / 8);
            self.kept_armed = true;
        }
    }

    /// Looks again where it was too early, as packets come all the time.
    fn arm_silence(&mut self, cx: &mut Cx<'_>) {
        if !self.silence_armed
            && let Some(due) = self.receiving.silence_due(self.deadline)
        {
            cx.arm(SILENCE_TIMER, due);
            self.silence_armed = true;
        }
    }

    fn arm_receiver(&mut self, cx: &mut Cx<'_>) {
        let due = self.receiving.due();
        if due == self.gap_armed_for {
            return;
        }
        match due {
            Some(due) => cx.arm(GAP_TIMER, due),
            None => cx.disarm(GAP_TIMER),
        }
        self.gap_armed_for = due;
    }
}
