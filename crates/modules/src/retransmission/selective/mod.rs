//! Module `arq-sr`: everything arrives, in order; what is lost is sent again, and nothing else.
//!
//! ```text
//!   down    1  2  3  4       2'
//!   wire    1  x  3  4       2'
//!   up      1                2 3 4            in order
//!   back                1, 3..4     ..4       everything before this, and these ranges
//! ```
//!
//! The sender keeps what is not acknowledged, and takes no more when that is too much: who feeds it
//! waits. The receiver holds what came out of order, and says what has come. What others have
//! overtaken for too long is sent again; where nothing is heard at all, something is, to ask.
//!
//! Sources: RFC 2018 (selective acknowledgement), RFC 8985 (what is lost, by time), RFC 6298 (round
//! trips), RFC 9002 section 6.2 (probes), RFC 2883 (duplicates). Header and form are our own
//! (`dacapo_wire::acknowledgement`).
//!
//! Invariants: what is taken goes up at the peer, once and in order, as long as there is a way; at
//! most 8,192 packets and about 8 MiB are kept at the sender, and 8,192 packets held at the
//! receiver.

mod outstanding;
mod overtaking;
mod profile;
mod receiving;
mod resending;
mod sending;

use crate::copying::Copier;
use crate::runs::{consecutive, in_parts, in_runs};
use dacapo_base::Time;
use dacapo_lift::{
    Cx, DropReason, Entry, Module, ModuleSpec, Params, Property, Setup, Stratum, TimerId, Verdict,
};
use dacapo_packet::Packet;
use dacapo_wire::acknowledgement::{Header, Kind, LEN, RANGE_LEN, RANGES_MAX, STATE_LEN, said};
use profile::Acknowledged;
use receiving::Receiving;
use sending::Sending;
use std::cell::Cell;
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "arq-sr",
    id: 0x0007,
    function: "retransmission",
    mechanism: "selective acknowledgement (RFC 2018, 8985)",
    summary: "everything arrives, in order: what is lost is sent again until it is acknowledged",
    stratum: Stratum::Repair,
    head: LEN as u16,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: false,
    segments: false,
    acknowledges: true,
    orders: None,
    requires: &[Property::Boundaries, Property::WayBack],
    provides: &[Property::Order, Property::NoDuplicates, Property::NoLoss],
    takes: &[],
    beneath: &["ordering"],
    notes: &["packets_repaired"],
    profile: &Acknowledged,
    params: &[],
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// The code of the note that says how many packets were sent again.
pub const NOTE_REPAIRED: u16 = 1;

/// For how long what is missing is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Something is to be sent again.
const AGAIN_TIMER: TimerId = 0;
/// Something is to be acknowledged.
const SAY_TIMER: TimerId = 1;

fn build(_: &Params, setup: &Setup) -> Box<dyn Module> {
    Box::new(Selective {
        sending: Sending::default(),
        receiving: Receiving::new(),
        copier: Copier::new(setup),
        again_armed: None,
        say_armed: None,
    })
}

struct Selective {
    sending: Sending,
    receiving: Receiving,
    copier: Copier,
    /// For when the timers are armed: each looks again when it was too early.
    again_armed: Option<Time>,
    say_armed: Option<Time>,
}

impl Module for Selective {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        if let Err(reason) = self.sending.down(cx, slot) {
            return Verdict::Drop(reason);
        }
        self.arm(cx);
        Verdict::Forward
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let asks = Cell::new(false);
        let count = |cx: &Cx<'_>, packet: &Packet| run_of(cx, packet, &asks);
        let verdict = in_runs(cx, slot, count, |cx, run| self.up_run(cx, run, &asks));
        if asks.get() {
            self.receiving.answer(cx, &self.copier);
            self.arm(cx);
        }
        verdict
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        if timer == AGAIN_TIMER {
            self.again_armed = None;
            self.sending.look(cx);
        } else {
            self.say_armed = None;
            self.receiving.look(cx, &self.copier);
        }
        self.arm(cx);
    }

    fn handle_room(&mut self, cx: &mut Cx<'_>, bytes: usize) {
        let before = self.sending.repaired;
        self.sending.handle_room(cx, &mut self.copier, bytes);
        if self.sending.repaired != before {
            cx.note(NOTE_REPAIRED, self.sending.repaired);
        }
        self.arm(cx);
    }

    fn credit(&self) -> usize {
        self.sending.credit()
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.sending.flush(cx);
        self.receiving.flush(cx);
        (self.again_armed, self.say_armed) = (None, None);
        [AGAIN_TIMER, SAY_TIMER].into_iter().for_each(|timer| cx.disarm(timer));
    }
}

/// How many packets, sent equally often, which follow each other, a packet begins with; `does_ask`
/// is set where one asks to be acknowledged.
fn run_of(cx: &Cx<'_>, packet: &Packet, does_ask: &Cell<bool>) -> usize {
    consecutive(cx, packet, |bytes| {
        let header = Header::parse(bytes).ok()?;
        let Kind::Sent { attempt, asks } = header.kind else { return None };
        does_ask.set(does_ask.get() || asks);
        Some((header.number, attempt))
    })
}

impl Selective {
    /// Takes a run that fills its slot.
    fn up_run(&mut self, cx: &mut Cx<'_>, slot: &mut Packet, does_ask: &Cell<bool>) -> Verdict {
        let verdict = match Header::parse(cx.pool.segment(slot, 0)) {
            Err(_) => Verdict::Drop(DropReason::Malformed),
            Ok(Header { number, kind: Kind::Acknowledged }) => self.hear(cx, number, slot),
            Ok(Header { number, kind: Kind::Sent { attempt, asks } }) => {
                does_ask.set(does_ask.get() || asks);
                let taken = self.receiving.take(cx, &self.copier, (number, attempt), slot);
                match taken {
                    Some(verdict) => verdict,
                    None => {
                        in_parts(cx, slot, |_, _| 1, |cx, part| self.up_run(cx, part, does_ask))
                    }
                }
            }
        };
        self.arm(cx);
        verdict
    }

    /// Takes what the peer's module says.
    fn hear(&mut self, cx: &mut Cx<'_>, number: u32, slot: &mut Packet) -> Verdict {
        // What is sent again takes memory of the pool in which the ranges lie.
        let mut copied = [0; STATE_LEN + RANGES_MAX * RANGE_LEN];
        let bytes = cx.pool.segment(slot, 0).get(LEN..).unwrap_or_default();
        let Some(room) = copied.get_mut(..bytes.len()) else {
            return Verdict::Drop(DropReason::Malformed);
        };
        room.copy_from_slice(bytes);
        let Ok(heard) = said(room) else { return Verdict::Drop(DropReason::Malformed) };
        if !self.sending.hear(cx, number, heard) {
            return Verdict::Drop(DropReason::Malformed);
        }
        cx.pool.free(slot.take());
        Verdict::Held
    }

    fn arm(&mut self, cx: &mut Cx<'_>) {
        arm(cx, AGAIN_TIMER, self.sending.due(), &mut self.again_armed);
        arm(cx, SAY_TIMER, self.receiving.due(), &mut self.say_armed);
    }
}

/// Arms a timer that is not armed for so early.
fn arm(cx: &mut Cx<'_>, timer: TimerId, due: Option<Time>, armed: &mut Option<Time>) {
    if let Some(due) = due
        && armed.is_none_or(|at| at > due)
    {
        cx.arm(timer, due);
        *armed = Some(due);
    }
}
