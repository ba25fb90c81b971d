//! [`GuardedSource`] and [`GuardedSink`]: access modules that may panic, which ends their flow and
//! nothing else.
//!
//! Invariant: what has panicked is not called again, but to be dropped.

use crate::ledger::Ledger;
use crate::port::{CommandError, Ending, Sink, Source, SourcePoll, Taken, UnitView, UnitWriter};
use dacapo_base::{Time, panic};
use dacapo_lift::DropReason;
use dacapo_packet::Loan;
use dacapo_path::ClockOffset;
use std::any::Any;
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A part of somebody else's, and what it said when it panicked.
struct Guarded<T> {
    part: T,
    panicked: OnceCell<String>,
}

impl<T> Guarded<T> {
    fn new(part: T) -> Self {
        Self { part, panicked: OnceCell::new() }
    }

    /// Calls the part; `None` when that panics, or something did before.
    #[inline]
    fn call<R>(&mut self, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.panicked.get().is_some() {
            return None;
        }
        // It is never looked into again, so nobody sees what it has left half done.
        let called = catch_unwind(AssertUnwindSafe(|| body(&mut self.part)));
        called.map_err(|why| self.note(&*why)).ok()
    }

    /// The same, for what it only says.
    #[inline]
    fn ask<R>(&self, body: impl FnOnce(&T) -> R) -> Option<R> {
        if self.panicked.get().is_some() {
            return None;
        }
        let asked = catch_unwind(AssertUnwindSafe(|| body(&self.part)));
        asked.map_err(|why| self.note(&*why)).ok()
    }

    #[cold]
    fn note(&self, why: &(dyn Any + Send)) {
        self.panicked.get_or_init(|| format!("it panicked: {}", panic::said(why)));
    }

    /// What it said when it panicked.
    fn said(&self) -> String {
        self.panicked.get().cloned().unwrap_or_default()
    }
}

/// A source that may panic: it has failed then.
pub(crate) struct GuardedSource(Guarded<Box<dyn Source>>);

impl GuardedSource {
    pub fn new(source: Box<dyn Source>) -> Self {
        Self(Guarded::new(source))
    }

    pub fn start(&mut self, now: Time) {
        self.0.call(|source| source.start(now));
    }

    pub fn stop(&mut self, now: Time) {
        self.0.call(|source| source.stop(now));
    }

    #[inline]
    pub fn chooses_late(&self) -> bool {
        self.0.ask(|source| source.chooses_late()).unwrap_or(false)
    }

    #[inline]
    pub fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        let answer = self.0.call(|source| source.poll_unit(now, unit));
        answer.unwrap_or_else(|| SourcePoll::Failed(self.0.said()))
    }

    pub fn command(&mut self, now: Time, payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        let answer = self.0.call(|source| source.command(now, payload));
        answer.unwrap_or_else(|| Err(CommandError(self.0.said())))
    }
}

/// A sink that may panic: it takes nothing more then, and its flow goes to its end.
pub(crate) struct GuardedSink(Guarded<Box<dyn Sink>>);

impl GuardedSink {
    pub fn new(sink: Box<dyn Sink>) -> Self {
        Self(Guarded::new(sink))
    }

    pub fn handle_clock(&mut self, offset: ClockOffset) {
        self.0.call(|sink| sink.handle_clock(offset));
    }

    /// As the sink says; who takes nothing has room for it.
    #[inline]
    pub fn has_capacity(&self) -> bool {
        self.0.ask(|sink| sink.has_capacity()).unwrap_or(true)
    }

    #[inline]
    pub fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken {
        let taken = self.0.call(|sink| sink.handle_unit(now, unit));
        taken.unwrap_or(Taken::Dropped(DropReason::Refused))
    }

    #[inline]
    pub fn takes_loans(&self) -> bool {
        self.0.ask(|sink| sink.takes_loans()).unwrap_or(false)
    }

    pub fn handle_loan(&mut self, now: Time, unit: Loan) -> Taken {
        let taken = self.0.call(|sink| sink.handle_loan(now, unit));
        taken.unwrap_or(Taken::Dropped(DropReason::Refused))
    }

    pub fn handle_lost(&mut self, now: Time, first: u64, count: u64) {
        self.0.call(|sink| sink.handle_lost(now, first, count));
    }

    #[inline]
    pub fn handle_timeout(&mut self, now: Time) -> Option<Time> {
        self.0.call(|sink| sink.handle_timeout(now)).flatten()
    }

    pub fn failure(&self) -> Option<String> {
        self.0.ask(|sink| sink.failure()).flatten()
    }

    /// What it said when it panicked, if it has.
    pub fn panicked(&self) -> Option<&str> {
        self.0.panicked.get().map(String::as_str)
    }

    pub fn finish(&mut self, now: Time, ending: &Ending, ledger: &Ledger) {
        self.0.call(|sink| sink.finish(now, ending, ledger));
    }
}
