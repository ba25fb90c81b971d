//! [`Controlled`]: the module that `window` and `credit` are.
//!
//! ```text
//!   down      1 2 3 4 | waits before the graph       1 2 3 4 5 6
//!   up                  1 2 3 4, as they come
//!   back                    6: two were taken
//! ```
//!
//! Both ends begin with the room that the graph says. It stands above what cuts units and loses
//! none: what comes up is whole, and waits for the application behind it.
//!
//! Invariants: nothing is kept, dropped on its way down or reordered; a packet that no sender was
//! to send is a counted drop, and so is what no receiver grants.

use super::counted::Counted;
use super::granting::Granting;
use super::receivers::Slow;
use super::spending::Spending;
use crate::copying::Copier;
use crate::emitting::{behind, tell};
use crate::runs::in_runs;
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason, Module, ModuleSpec, Setup, TimerId, Unread, Verdict};
use dacapo_packet::Packet;
use dacapo_wire::flow_control::{Header, Kind, LEN};

/// The code of the note that says how often the sender had to wait.
pub(super) const NOTE_WAITED: u16 = 1;

const ASK_TIMER: TimerId = 0;

pub(super) struct Controlled {
    spec: &'static ModuleSpec,
    counted: Counted,
    spending: Spending,
    granting: Granting,
    copier: Copier,
    /// For when the timer is armed: it looks again when it was too early.
    armed: Option<Time>,
}

impl Controlled {
    /// A module that counts so, with room for so much at each receiver.
    pub fn new(
        spec: &'static ModuleSpec,
        counted: Counted,
        (room, slow): (u64, Slow),
        setup: &Setup,
    ) -> Self {
        let packet_len_max = setup.layout.segment + setup.added_above();
        Self {
            spec,
            counted,
            spending: Spending::new(counted, room, slow, packet_len_max),
            granting: Granting::new(counted, room, setup.unit_len_max_here()),
            copier: Copier::new(setup),
            armed: None,
        }
    }

    /// Packets of one kind, of which the last says how far they reach.
    fn up_run(&mut self, cx: &mut Cx<'_>, run: &mut Packet) -> Verdict {
        let last = cx.pool.segment(run, run.segment_count() - 1);
        let (header, len) = (Header::parse(last), last.len().saturating_sub(LEN));
        match header {
            Ok(Header { place, kind: Kind::Counted }) if !self.granting.take(place, len) => {
                Verdict::Drop(DropReason::Overflow)
            }
            Ok(Header { kind: Kind::Counted | Kind::Beside, .. }) => {
                match cx.pool.pull_head(run, LEN) {
                    Ok(()) => Verdict::Forward,
                    Err(_) => Verdict::Drop(DropReason::Malformed),
                }
            }
            Ok(Header { place, kind: Kind::Blocked }) if self.granting.hear(place) => {
                consume(cx, run)
            }
            Ok(Header { place, kind: Kind::Granted }) => match self.spending.hear(place) {
                Ok(()) => consume(cx, run),
                Err(reason) => Verdict::Drop(reason),
            },
            _ => Verdict::Drop(DropReason::Malformed),
        }
    }

    fn arm(&mut self, cx: &mut Cx<'_>) {
        if let Some(due) = self.spending.due()
            && self.armed.is_none_or(|at| at > due)
        {
            cx.arm(ASK_TIMER, due);
            self.armed = Some(due);
        }
    }
}

impl Module for Controlled {
    fn spec(&self) -> &'static ModuleSpec {
        self.spec
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let mut header = self.spending.headers(slot);
        let before = self.spending.times_waited;
        self.spending.note(cx.now(), slot);
        if self.spending.times_waited != before {
            cx.note(NOTE_WAITED, self.spending.times_waited);
            self.arm(cx);
        }
        behind(cx, slot, |at| header(at).emit())
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let counted = self.counted;
        let count = |cx: &Cx<'_>, packet: &Packet| run_of(cx, packet, counted);
        let verdict = in_runs(cx, slot, count, |cx, run| self.up_run(cx, run));
        if self.granting.wants_unread() {
            cx.want_unread();
        }
        verdict
    }

    fn handle_unread(&mut self, cx: &mut Cx<'_>, unread: Unread) {
        if let Some(grant) = self.granting.grant(unread) {
            tell(cx, &self.copier, grant.emit(), &[]);
        }
        if self.granting.wants_unread() {
            cx.want_unread();
        }
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        self.armed = None;
        if let Some(ask) = self.spending.ask(cx.now()) {
            tell(cx, &self.copier, ask.emit(), &[]);
        }
        self.arm(cx);
    }

    fn handle_receiver(&mut self, receiver: u32) {
        self.spending.turn_to(receiver);
    }

    fn join(&mut self) {
        self.granting.join();
    }

    fn credit(&self) -> usize {
        self.spending.credit()
    }

    /// No unit follows: nobody waits, and marks pass.
    fn drain(&mut self, _: &mut Cx<'_>) {
        self.spending.is_drained = true;
        self.spending.rest();
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.spending.is_drained = false;
        self.spending.rest();
        self.granting.rest();
        self.armed = None;
        cx.disarm(ASK_TIMER);
    }
}

/// Takes what the modules tell each other.
fn consume(cx: &mut Cx<'_>, run: &mut Packet) -> Verdict {
    cx.pool.free(run.take());
    Verdict::Held
}

/// How many segments from the first on are packets of units, or are not, and follow each other;
/// what modules tell each other is alone.
fn run_of(cx: &Cx<'_>, packet: &Packet, counted: Counted) -> usize {
    let header = |at: usize| Header::parse(cx.pool.segment(packet, at)).ok();
    let is_carried = |it: &Header| matches!(it.kind, Kind::Counted | Kind::Beside);
    let Some(mut last) = header(0).filter(is_carried) else { return 1 };
    let follows = |at: &usize| {
        let len = packet.segment_len(at - 1).saturating_sub(LEN);
        let next = header(*at).filter(|next| counted.follows(&last, next, len));
        next.map(|next| last = next).is_some()
    };
    1 + (1..packet.segment_count()).take_while(follows).count()
}
