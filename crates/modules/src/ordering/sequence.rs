//! Module `sequence`: numbers packets, puts them in order, drops repeated ones, counts missing
//! ones.
//!
//! On the way down a number per packet; on the way up a window in which packets wait for those
//! before them, at most `hold` long and at most a window's length. What is missing then is reported
//! lost, and dropped as `stale` should it come later.
//!
//! ```text
//!   wire   0 1 3 2 2 5          (4 is lost)
//!   up     0 1 . 2,3 x . [hold] 5    x: duplicate
//! ```
//!
//! A train whose numbers follow each other waits, and goes up, as a train.
//!
//! Invariants: packets go up in the order of their numbers, each at most once; packets that wait
//! are at most 8,192 and never wait longer than `hold` after they came.

use super::profile::Waiting;
use crate::beginning::{Beginning, JOIN_NEAR};
use crate::control::parameter;
use crate::numbering::{number, run_of};
use crate::outliers::Outliers;
use crate::runs::{in_parts, up_or_drop};
use crate::window::{Place, WINDOW, Window};
use dacapo_base::Time;
use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params,
    Property, Setup, Stratum, TimerId, Verdict,
};
use dacapo_packet::Packet;
use dacapo_wire::sequence::{Header, LEN, extend};
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "sequence",
    id: 0x0002,
    function: "ordering",
    mechanism: "sequence numbers and a reordering window",
    summary: "packets in order, each once; what stays missing is reported lost",
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
    provides: &[Property::Order, Property::NoDuplicates],
    takes: &[Property::Answers],
    beneath: &[],
    notes: &[],
    profile: &Waiting,
    params: &[ParamSpec {
        name: "hold",
        unit: ParamUnit::Nanoseconds,
        default: 40_000_000,
        min: 0,
        max: 10_000_000_000,
        summary: "how long a packet waits for those before it",
        control: Some(CONTROL_SET_HOLD),
    }],
};

/// The number of the parameter `hold`.
pub(super) const HOLD: u16 = 0;

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Out-of-band message: set `hold`; the new value in nanoseconds follows as a u64.
pub const CONTROL_SET_HOLD: u8 = 1;

const HOLD_TIMER: TimerId = 0;

fn build(params: &Params, _: &Setup) -> Box<dyn Module> {
    Box::new(Sequence {
        sent: 0,
        window: Window::new(),
        hold: Duration::from_nanos(params.value(&SPEC, "hold")),
        outliers: Outliers::default(),
        oldest: None,
        beginning: Beginning::default(),
    })
}

struct Sequence {
    /// The number of the next packet down.
    sent: u64,
    window: Window,
    hold: Duration,
    /// Numbers beyond the window that another packet may confirm.
    outliers: Outliers,
    /// The packet that has waited longest, and when it came.
    oldest: Option<(u64, Time)>,
    beginning: Beginning,
}

impl Module for Sequence {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        number(cx, slot, &mut self.sent)
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let count = slot.segment_count();
        if run_of(cx, slot) < count {
            return in_parts(cx, slot, run_of, |cx, part| self.up(cx, part));
        }
        let Some(number) = self.number(cx, slot) else {
            return Verdict::Drop(DropReason::Malformed);
        };
        if let Some(first) = self.beginning.find(number, self.window.next(), WINDOW as u64) {
            self.window.begin_at(first);
        }
        let place = self.window.place_run(number, count);
        if place.is_none() && count > 1 {
            return in_parts(cx, slot, |_, _| 1, |cx, part| self.up(cx, part));
        }
        if cx.pool.pull_head(slot, LEN).is_err() {
            return Verdict::Drop(DropReason::Malformed);
        }
        match place.unwrap_or_else(|| self.window.place(number)) {
            Place::Next => self.pass(cx, slot),
            Place::Ahead(ahead) => self.keep(cx, ahead, slot),
            Place::Repeated => Verdict::Drop(DropReason::Duplicate),
            Place::Late => Verdict::Drop(DropReason::Stale),
            Place::Beyond => self.beyond(cx, number, slot),
        }
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        while let Some((number, _)) = self.oldest.filter(|(_, came)| *came + self.hold <= cx.now())
        {
            while self.window.next() <= number {
                cx.report_lost(self.window.skip());
                self.release(cx);
            }
        }
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        let (_, value) = parameter(&SPEC, message)?;
        self.hold = Duration::from_nanos(value);
        self.arm(cx);
        Ok(Vec::new())
    }

    fn patience(&self) -> Duration {
        self.hold
    }

    fn join(&mut self) {
        self.beginning = Beginning::Nothing;
        self.window.begin_at(JOIN_NEAR);
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        while self.window.held() > 0 {
            cx.report_lost(self.window.skip());
            self.release(cx);
        }
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        for packet in self.window.drain() {
            cx.discard(packet, DropReason::Shutdown);
        }
        self.oldest = None;
        self.arm(cx);
    }
}

impl Sequence {
    /// The whole number of the first segment.
    fn number(&self, cx: &Cx<'_>, packet: &Packet) -> Option<u64> {
        let header = Header::parse(cx.pool.segment(packet, 0));
        header.ok().and_then(|header| extend(header.number, self.window.next()))
    }

    /// The packet or train that was waited for, and those that waited for it.
    fn pass(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.outliers.clear();
        let verdict = self.window.pass(cx, slot);
        self.note_oldest(cx);
        verdict
    }

    fn keep(&mut self, cx: &mut Cx<'_>, ahead: usize, slot: &mut Packet) -> Verdict {
        let came = self.window.keep(cx, ahead, slot);
        if self.oldest.is_none() {
            self.oldest = Some((self.window.next() + ahead as u64, came));
            self.arm(cx);
        }
        Verdict::Held
    }

    /// A number beyond the window is believed when another one near it comes: one altered packet
    /// must not empty the window.
    fn beyond(&mut self, cx: &mut Cx<'_>, number: u64, slot: &mut Packet) -> Verdict {
        if !self.outliers.confirm(number) {
            return Verdict::Drop(DropReason::Overflow);
        }
        while self.window.held() > 0 {
            cx.report_lost(self.window.skip());
            self.release(cx);
        }
        cx.report_lost(self.window.jump(number));
        up_or_drop(cx, slot.take());
        self.window.advance();
        Verdict::Held
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.window.release_all(cx);
        self.note_oldest(cx);
    }

    /// What has waited longest is another where that has gone up.
    fn note_oldest(&mut self, cx: &mut Cx<'_>) {
        if self.oldest.is_some_and(|(number, _)| number < self.window.next()) {
            self.oldest = self.window.oldest();
            self.arm(cx);
        }
    }

    fn arm(&mut self, cx: &mut Cx<'_>) {
        match self.oldest {
            Some((_, came)) => cx.arm(HOLD_TIMER, came + self.hold),
            None => cx.disarm(HOLD_TIMER),
        }
    }
}
