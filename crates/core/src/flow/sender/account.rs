//! [`TxAccount`]: what a sender has fed, and what became of it.
//!
//! ```text
//!   Runs --END said--> Ended --REPORT--> Reported
//!     '----------- given up -----------------^
//! ```
//!
//! Invariants: END is said once; the account is told once; what a report adds up to is what was
//! fed.

use crate::error::Error;
use crate::fanout::Fed;
use crate::flow::{FlowEvent, FlowOut, FlowParams, hash_bytes};
use crate::ledger::{Ledger, UnitHash};
use dacapo_base::Time;
use dacapo_lift::DropReason;
use dacapo_packet::{Packet, Pool, skip_bytes};
use dacapo_wire::message::Message;
use dacapo_wire::session::{CODE_SUCCESS, End, Report};
use dacapo_wire::unit;
use std::time::Duration;

/// How long what was fed may still go out after the flow was closed; well below what CLOSE waits.
const CLOSE_MAX: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs,
    /// END was said.
    Ended,
    /// The receiver's account has come, or never will.
    Reported,
}

#[derive(Debug)]
pub(crate) struct TxAccount {
    id: u16,
    units: u64,
    bytes: u64,
    /// Where one was agreed.
    hash: Option<UnitHash>,
    state: State,
    /// Why the flow ends before its end.
    failure: Option<Error>,
    /// The flow was closed; what was fed may still go out until then, before END is said.
    close_by: Option<Time>,
}

impl TxAccount {
    pub fn new(params: &FlowParams) -> Self {
        Self {
            id: params.id,
            units: 0,
            bytes: 0,
            hash: params.hash(),
            state: State::Runs,
            failure: None,
            close_by: None,
        }
    }

    /// Units that were fed.
    #[inline]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// What was fed so far.
    #[inline]
    pub fn fed(&self) -> Fed {
        Fed { units: self.units, bytes: self.bytes, hash: self.hash }
    }

    /// Whether units are hashed, so that something must see each of them.
    #[inline]
    pub fn has_hash(&self) -> bool {
        self.hash.is_some()
    }

    /// A unit of `len` bytes enters the graph, head included in its chain.
    #[inline]
    pub fn note_fed(&mut self, pool: &Pool, chain: &[Packet], len: usize) {
        if let Some(hash) = &mut self.hash {
            let pieces = chain.iter().flat_map(|packet| {
                (0..packet.segment_count()).map(|index| pool.segment(packet, index))
            });
            hash.add(self.units, len, skip_bytes(pieces, unit::LEN));
        }
        self.note_sent(len);
    }

    /// A unit of `len` bytes has left past the graph.
    #[inline]
    pub fn note_sent(&mut self, len: usize) {
        self.units += 1;
        self.bytes += len as u64;
    }

    /// Whether END is to be said, when all of it is on its way: the source has ended or not.
    #[inline]
    pub fn is_to_end(&self, has_source_ended: bool) -> bool {
        has_source_ended && !self.has_ended()
    }

    #[inline]
    pub fn has_ended(&self) -> bool {
        self.state != State::Runs
    }

    /// The receiver's account is due: END was said and it has not come.
    #[inline]
    pub fn awaits_report(&self) -> bool {
        self.state == State::Ended
    }

    #[inline]
    pub fn is_reported(&self) -> bool {
        self.state == State::Reported
    }

    /// The flow ends before its end, for this reason: the first is told, once.
    pub fn fail(&mut self, error: &Error, out: &mut FlowOut) {
        if self.failure.is_none() {
            out.events.push(FlowEvent::Failed(error.clone()));
            self.failure = Some(error.clone());
        }
    }

    /// The flow was closed: what was fed may still go out for a while.
    pub fn close(&mut self, now: Time) {
        self.close_by.get_or_insert(now + CLOSE_MAX);
    }

    /// Whether what was fed is waited for no longer.
    #[inline]
    pub fn is_overdue(&self, now: Time) -> bool {
        self.close_by.is_some_and(|at| at <= now)
    }

    /// When that is, while END was not said.
    #[inline]
    pub fn due(&self) -> Option<Time> {
        self.close_by.filter(|_| self.state == State::Runs)
    }

    /// This end did not run for so long: that does not count.
    pub fn shift(&mut self, by: Duration) {
        self.close_by.iter_mut().for_each(|at| *at += by);
    }

    /// Says END, once.
    pub fn end(&mut self, epoch: u64, out: &mut FlowOut) {
        if self.has_ended() {
            return;
        }
        self.state = State::Ended;
        let failure = self.failure.as_ref();
        out.messages.push(Message::End(End {
            flow: self.id,
            epoch,
            units: self.units,
            bytes: self.bytes,
            hash: hash_bytes(self.hash.as_ref()),
            code: failure.map_or(CODE_SUCCESS, |error| error.code as u16),
            text: failure.map_or_else(String::new, |error| error.text.clone()),
        }));
    }

    /// The receiver's account, where it adds up.
    pub fn check(&self, report: &Report) -> Option<Ledger> {
        Some(ledger_from(self.units, report)).filter(Ledger::closes)
    }

    /// It is taken, and told.
    pub fn settle(&mut self, ledger: Ledger, report: &Report, out: &mut FlowOut) {
        let hash = self.hash.filter(|_| ledger.delivered == self.units);
        let hash = hash.map(|hash| report.hash == hash.to_bytes());
        self.state = State::Reported;
        out.events.push(FlowEvent::Ended { ledger: Box::new(ledger), hash, failure: None });
    }

    /// The session ended abnormally: nobody can say what became of the units.
    pub fn give_up(&mut self, out: &mut FlowOut) {
        if self.is_reported() {
            return;
        }
        self.state = State::Reported;
        let mut ledger = Ledger { sent: self.units, ..Ledger::default() };
        ledger.give_up();
        out.events.push(FlowEvent::Ended { ledger: Box::new(ledger), hash: None, failure: None });
    }
}

/// The sender's ledger from the receiver's report.
pub(crate) fn ledger_from(sent: u64, report: &Report) -> Ledger {
    let mut ledger = Ledger {
        sent,
        delivered: report.delivered,
        late: report.late,
        lost: report.lost,
        unknown: report.unknown,
        duplicates: report.duplicates,
        bytes: report.bytes,
        ..Ledger::default()
    };
    for &(code, count) in &report.dropped {
        let reason = DropReason::from_code(code).unwrap_or(DropReason::Refused);
        let dropped = &mut ledger.dropped[reason.index()];
        *dropped = dropped.saturating_add(count);
    }
    ledger
}
