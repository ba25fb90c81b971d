//! [`Acknowledged`]: the module that `arq-sr` and `arq-gbn` are, for they differ in what a receiver
//! keeps.
//!
//! ```text
//!   down --> Sending: keeps, numbers --> wire --> Receives: in order --> up
//!   again <-- what is lost <-- hear <-- wire <-- Saying: what has come
//! ```
//!
//! Invariants: what is taken goes up at the peer, once and in order, as long as there is a way; at
//! most 8,192 packets and about 8 MiB are kept at the sender.

mod outstanding;
mod overtaking;
mod resending;
pub(super) mod saying;
pub(super) mod sending;

use crate::copying::Copier;
use crate::runs::{consecutive, in_parts, in_runs};
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason, Module, ModuleSpec, Setup, TimerId, Verdict};
use dacapo_packet::Packet;
use dacapo_wire::acknowledgement::{Header, Kind, LEN, RANGE_LEN, RANGES_MAX, STATE_LEN, said};
use saying::Saying;
use sending::{Again, Sending};
use std::cell::Cell;
use std::time::Duration;

/// The code of the note that says how many packets were sent again.
pub(super) const NOTE_REPAIRED: u16 = 1;

/// For how long what is missing is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Something is to be sent again.
const AGAIN_TIMER: TimerId = 0;
/// Something is to be acknowledged.
const SAY_TIMER: TimerId = 1;

/// The part of a receiver: what it does with packets, and what it says of them.
pub(super) trait Receives: Send {
    /// Takes a run of packets that begins with this number (its low 32 bits) and was sent again so
    /// often; `None` where they are to be taken one by one.
    fn take(
        &mut self,
        cx: &mut Cx<'_>,
        copier: &Copier,
        sent: (u32, u8),
        slot: &mut Packet,
    ) -> Option<Verdict>;

    /// When it says what has come.
    fn saying(&self) -> &Saying;

    /// Says what has come, where anything has.
    fn acknowledge(&mut self, cx: &mut Cx<'_>, copier: &Copier);

    /// Gives back what waits.
    fn flush(&mut self, cx: &mut Cx<'_>);

    /// The peer asks what has come.
    fn answer(&mut self, cx: &mut Cx<'_>, copier: &Copier) {
        if self.saying().is_pending() {
            self.acknowledge(cx, copier);
        }
    }

    /// It may be time to say it.
    fn look(&mut self, cx: &mut Cx<'_>, copier: &Copier) {
        if self.saying().is_due(cx.now()) {
            self.acknowledge(cx, copier);
        }
    }
}

pub(super) struct Acknowledged<R> {
    spec: &'static ModuleSpec,
    sending: Sending,
    receiving: R,
    copier: Copier,
    /// For when the timers are armed: each looks again when it was too early.
    again_armed: Option<Time>,
    say_armed: Option<Time>,
}

impl<R: Receives> Acknowledged<R> {
    /// A module with this receiver, for which so much is sent again.
    pub fn new(spec: &'static ModuleSpec, again: Again, receiving: R, setup: &Setup) -> Self {
        Self {
            spec,
            sending: Sending::new(again),
            receiving,
            copier: Copier::new(setup),
            again_armed: None,
            say_armed: None,
        }
    }
}

impl<R: Receives> Module for Acknowledged<R> {
    fn spec(&self) -> &'static ModuleSpec {
        self.spec
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

impl<R: Receives> Acknowledged<R> {
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
        arm(cx, SAY_TIMER, self.receiving.saying().due(), &mut self.say_armed);
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
