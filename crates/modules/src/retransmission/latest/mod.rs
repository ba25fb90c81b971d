//! Module `latest`: the newest unit arrives; those that it replaces need not.
//!
//! For what each unit says anew, such as where something is: one that is lost is sent again until
//! the peer has it, unless a newer one is there, which makes it of no use. So nothing waits, the
//! sender keeps one unit, and when the flow falls silent the peer knows the last.
//!
//! ```text
//!   down   1     2     3           3'
//!   wire   1     x     x           3'
//!   up     1                       3         2 is told as lost: a newer one came
//!   back      1                       3
//! ```
//!
//! Own mechanism; the wait before a unit is sent again follows RFC 6298 (without its minimum of a
//! second), its doubling included, up to a second. An answer says for which time the unit had been
//! sent that came, so that it measures a round trip also then.
//!
//! What says that an epoch ends waits until the newest unit before it has come, and then is that
//! itself.
//!
//! Invariants: units go up in order, each once; the newest one is kept, and no other; it is sent
//! again when the network takes it; what comes is answered every 2 ms at most.

mod profile;
mod receiving;
mod sending;

use crate::copying::Copier;
use crate::runs::in_runs;
use dacapo_lift::{
    Cx, DropReason, Entry, Module, ModuleSpec, Params, Property, Setup, Stratum, TimerId, Verdict,
};
use dacapo_packet::Packet;
use dacapo_wire::retransmission::{Header, Kind, LEN};
use profile::Newest;
use receiving::Receiving;
use sending::Sending;
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "latest",
    id: 0x000D,
    function: "retransmission",
    mechanism: "the newest unit again until it is acknowledged",
    summary: "the newest unit arrives; what it replaces is not sent again",
    stratum: Stratum::Shape,
    head: LEN as u16,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: false,
    segments: false,
    acknowledges: false,
    orders: None,
    requires: &[Property::Boundaries, Property::WayBack],
    provides: &[Property::Order, Property::NoDuplicates, Property::Newest],
    takes: &[],
    beneath: &[],
    notes: &["units_repaired"],
    profile: &Newest,
    params: &[],
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// The code of the note that says how many units came because they were sent again.
pub const NOTE_REPAIRED: u16 = 1;

/// For how long the last unit of an epoch is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The newest unit is to be sent again.
const AGAIN_TIMER: TimerId = 0;
/// What came is to be acknowledged.
const SAY_TIMER: TimerId = 1;

fn build(_: &Params, setup: &Setup) -> Box<dyn Module> {
    Box::new(Latest {
        sending: Sending::default(),
        receiving: Receiving::default(),
        copier: Copier::new(setup),
        is_segmented: setup.layout.segmented,
    })
}

struct Latest {
    sending: Sending,
    receiving: Receiving,
    copier: Copier,
    /// Units have several segments; else each segment is a unit, however many come at once.
    is_segmented: bool,
}

impl Module for Latest {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.sending.down(cx, slot)
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let is_segmented = self.is_segmented;
        let count = |cx: &Cx<'_>, packet: &Packet| {
            if is_segmented { of_one_unit(cx, packet) } else { 1 }
        };
        in_runs(cx, slot, count, |cx, run| self.up_run(cx, run))
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        match timer {
            AGAIN_TIMER => cx.want_room(),
            _ => self.receiving.say(cx, &self.copier),
        }
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn handle_room(&mut self, cx: &mut Cx<'_>, _: usize) {
        self.sending.send_again(cx, &mut self.copier);
    }

    fn join(&mut self) {
        self.receiving.join();
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.receiving.say(cx, &self.copier);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.sending.flush(cx.pool);
        self.receiving.flush();
        [AGAIN_TIMER, SAY_TIMER].into_iter().for_each(|timer| cx.disarm(timer));
    }
}

/// How many segments, from the first on, are of one unit.
fn of_one_unit(cx: &Cx<'_>, packet: &Packet) -> usize {
    let header = |at: usize| cx.pool.segment(packet, at).first_chunk::<LEN>();
    let first = header(0);
    1 + (1..packet.segment_count()).take_while(|at| header(*at) == first).count()
}

impl Latest {
    /// Segments of one unit, or what the peer's module says.
    fn up_run(&mut self, cx: &mut Cx<'_>, run: &mut Packet) -> Verdict {
        let Ok(header) = Header::parse(cx.pool.segment(run, 0)) else {
            return Verdict::Drop(DropReason::Malformed);
        };
        match header.kind {
            Kind::Asked => Verdict::Drop(DropReason::Malformed),
            Kind::Newest => {
                if self.sending.hear(cx, header.number, run).is_none() {
                    return Verdict::Drop(DropReason::Malformed);
                }
                cx.pool.free(run.take());
                Verdict::Held
            }
            kind => self.up_unit(cx, header.number, kind, run),
        }
    }

    fn up_unit(&mut self, cx: &mut Cx<'_>, number: u32, kind: Kind, run: &mut Packet) -> Verdict {
        let is_first = !self.is_segmented || run.is_unit_first();
        let is_last = !self.is_segmented || run.is_unit_last();
        let taken = self.receiving.take(cx, number, kind, is_first);
        if is_last && taken.is_ok() {
            self.receiving.end(cx);
        }
        let is_answered = matches!(taken, Ok(()) | Err(DropReason::Duplicate | DropReason::Stale));
        if is_last && is_answered {
            self.receiving.say_soon(cx, &self.copier);
        }
        match taken {
            Err(reason) => Verdict::Drop(reason),
            Ok(()) => match cx.pool.pull_head(run, LEN) {
                Ok(()) => Verdict::Forward,
                Err(_) => Verdict::Drop(DropReason::Malformed),
            },
        }
    }
}
