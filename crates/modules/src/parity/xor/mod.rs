//! Module `fec-xor`: sums of packets that lie in a row or in a column, from which a lost one of
//! each is computed.
//!
//! ```text
//!              columns                  down   s0 s1 s2 s3 s4 r s5 s6 s7 s8 s9 r s10 c s11 …
//!            s0  s1  s2  s3  s4 | r     wire   s0 x  s2 s3 s4 r s5 x  x  s8 s9 r s10 c …
//!   rows     s5  s6  s7  s8  s9 | r     up     s0    s2 s3 s4 1 s5       s8 s9   s10 …
//!            s10 s11 s12 s13 s14| r                                       6, then 7 by its row
//!            -------------------
//!            c   c   c   c   c
//! ```
//!
//! A row gives back one packet that is lost alone, a row after it was sent. A column gives back one
//! of packets that are far apart, so a run of as many losses as there are columns, after as many
//! rows. Both together give back most of what one cannot: what a column gave may be all that a row
//! lacked. What is computed comes later than what followed it, so the order of what is below is
//! gone; no packet goes up twice. Each sum says of what it is made: the peer need not be told what
//! changes.
//!
//! Columns begin one after the other (a staircase), so that their sums leave evenly, and fewer
//! losses lie where two rows and two columns meet, which is what nothing gives back. The sum of a
//! column leaves behind the packet with which the next column in its place begins: a run of losses
//! as long as a row takes no sum with what it is made of.
//!
//! Source: SMPTE ST 2022-1 (Pro-MPEG Code of Practice 3), RFC 8627 (FlexFEC), both for RTP; the
//! header is `dacapo_wire::sliding`.
//!
//! Invariants: a source is never held or given up; a sender keeps no source, but a sum for each
//! column and one for the row; what a receiver keeps is bounded by rows times columns, as
//! `sliding/receiving.rs` says, and kept no longer than `span` and [`HOLD`].

mod chances;
mod peeling;
mod profile;
mod sending;

pub use crate::parity::sliding::HOLD;

use crate::control::parameter;
use crate::parity::sliding::{OVERTAKEN, Receiver, Uses};
use crate::runs::down_or_drop;
use dacapo_base::Time;
use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params, Setup,
    TimerId, Verdict,
};
use dacapo_packet::Packet;
use dacapo_wire::sliding::LEN;
use peeling::Peeling;
use profile::Grids;
use sending::{Sending, Terms};
use std::time::Duration;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "fec-xor",
    id: 0x000E,
    mechanism: "sums of rows and columns (SMPTE ST 2022-1)",
    summary: "sums of rows and columns of packets, from which a lost one of each is computed",
    head: LEN as u16,
    notes: &["packets_computed", "sums"],
    params: &[
        ParamSpec {
            name: "arrangement",
            unit: ParamUnit::Count,
            default: BOTH,
            min: ROWS_ONLY,
            max: BOTH,
            summary: "what has a sum: 1 rows, 2 columns, 3 both",
            control: Some(CONTROL_SET_ARRANGEMENT),
        },
        ParamSpec {
            name: "columns",
            unit: ParamUnit::Count,
            default: 10,
            min: 1,
            max: COLUMNS_MAX,
            summary: "how many packets a row has, and how far apart those of a column are",
            control: Some(CONTROL_SET_COLUMNS),
        },
        ParamSpec {
            name: "rows",
            unit: ParamUnit::Count,
            default: 5,
            min: 1,
            max: ROWS_MAX,
            summary: "how many packets a column has",
            control: Some(CONTROL_SET_ROWS),
        },
        ParamSpec {
            name: "span",
            unit: ParamUnit::Nanoseconds,
            default: 100_000_000,
            min: 1_000_000,
            max: 1_000_000_000,
            summary: "how long after its first packet the sum of a row or a column leaves at most",
            control: Some(CONTROL_SET_SPAN),
        },
    ],
    ..super::common(&Grids)
};

/// The numbers of the parameters.
const ARRANGEMENT: u16 = 0;
const COLUMNS: u16 = 1;
const ROWS: u16 = 2;
const SPAN: u16 = 3;

/// The values of `arrangement`: a bit each for rows and for columns.
const ROWS_ONLY: u64 = 1;
const COLUMNS_ONLY: u64 = 2;
const BOTH: u64 = 3;

/// The most columns, and rows: a grid of 2,048 packets, of which a receiver knows twice as many.
const COLUMNS_MAX: u64 = 64;
const ROWS_MAX: u64 = 32;

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Out-of-band message: set `arrangement` from the next packet on; the new value follows as a u64.
pub const CONTROL_SET_ARRANGEMENT: u8 = 1;

/// Out-of-band message: set `columns` from the next packet on; the new value follows as a u64.
pub const CONTROL_SET_COLUMNS: u8 = 2;

/// Out-of-band message: set `rows` from the next packet on; the new value follows as a u64.
pub const CONTROL_SET_ROWS: u8 = 3;

/// Out-of-band message: set `span`; nanoseconds as a u64.
pub const CONTROL_SET_SPAN: u8 = 4;

/// The code of the note that says how many packets were computed.
pub const NOTE_COMPUTED: u16 = 1;

/// The code of the note that says how many sums were sent.
pub const NOTE_SUMS: u16 = 2;

/// Sums wait to be sent.
const SEND_TIMER: TimerId = 0;
/// A row or a column has its age.
const SPAN_TIMER: TimerId = 1;
/// What has come has its age.
const HOLD_TIMER: TimerId = 2;

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    let [arrangement, columns, rows, span] =
        ["arrangement", "columns", "rows", "span"].map(|name| params.value(&SPEC, name));
    let terms = Terms { arrangement, columns, rows, span: Duration::from_nanos(span) };
    let uses = Uses { timer: HOLD_TIMER, note: NOTE_COMPUTED };
    Box::new(Grid {
        terms,
        sending: Sending::new(setup, terms),
        receiver: Receiver::new(uses, Peeling::default(), range(&terms), terms.span + HOLD),
        sums: 0,
        is_armed: false,
    })
}

/// How far back a receiver keeps sources: a grid, and as many as may be overtaken.
fn range(terms: &Terms) -> u64 {
    terms.columns * terms.rows + OVERTAKEN
}

struct Grid {
    terms: Terms,
    sending: Sending,
    receiver: Receiver<Peeling>,
    /// How many sums were sent.
    sums: i64,
    /// The timer of rows and columns is armed.
    is_armed: bool,
}

impl Module for Grid {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let Some(due) = self.sending.add(cx, slot, &self.terms) else {
            return Verdict::Drop(DropReason::TooLarge);
        };
        if due > 0 {
            cx.arm(SEND_TIMER, cx.now());
        }
        if !self.is_armed {
            self.arm_span(cx);
        }
        Verdict::Forward
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.receiver.up(cx, slot)
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        match timer {
            SEND_TIMER => self.send(cx),
            SPAN_TIMER => self.end_old(cx),
            _ => self.receiver.timeout(cx),
        }
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        match parameter(&SPEC, message)? {
            (CONTROL_SET_ARRANGEMENT, arrangement) => self.terms.arrangement = arrangement,
            (CONTROL_SET_COLUMNS, columns) => self.terms.columns = columns,
            (CONTROL_SET_ROWS, rows) => self.terms.rows = rows,
            (_, span) => self.terms.span = Duration::from_nanos(span),
        }
        self.receiver.set(range(&self.terms), self.terms.span + HOLD);
        self.arm_span(cx);
        Ok(Vec::new())
    }

    /// The last sum of a source comes that much behind it.
    fn patience(&self) -> Duration {
        self.terms.span
    }

    fn join(&mut self) {
        self.receiver.join();
    }

    /// Sends the sums of all rows and columns, as they are.
    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.sending.end_old(cx, Time::NEVER);
        self.send(cx);
        [SEND_TIMER, SPAN_TIMER].into_iter().for_each(|timer| cx.disarm(timer));
        self.is_armed = false;
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.sending.forget();
        self.sending.leaving().flush(cx);
        self.receiver.flush(cx);
        [SEND_TIMER, SPAN_TIMER].into_iter().for_each(|timer| cx.disarm(timer));
        self.is_armed = false;
    }
}

impl Grid {
    /// Sends the sums that wait.
    fn send(&mut self, cx: &mut Cx<'_>) {
        let before = self.sums;
        while let Some(sums) = self.sending.leaving().poll(cx.now()) {
            self.sums += sums.segment_count() as i64;
            down_or_drop(cx, sums);
        }
        if self.sums != before {
            cx.note(NOTE_SUMS, self.sums);
        }
    }

    /// Sends the sums of rows and columns that have their age.
    fn end_old(&mut self, cx: &mut Cx<'_>) {
        self.sending.end_old(cx, cx.now() - self.terms.span);
        self.send(cx);
        self.arm_span(cx);
    }

    /// Arms the timer of the row or column that was begun first.
    fn arm_span(&mut self, cx: &mut Cx<'_>) {
        let oldest = self.sending.oldest();
        match oldest {
            Some(begun) => cx.arm(SPAN_TIMER, begun + self.terms.span),
            None => cx.disarm(SPAN_TIMER),
        }
        self.is_armed = oldest.is_some();
    }
}
