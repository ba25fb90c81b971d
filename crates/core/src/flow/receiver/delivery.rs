//! [`Delivery`]: the sink of a receiver, and when it is asked again.
//!
//! Invariant: a sink is finished once, and nothing follows.

use crate::flow::Context;
use crate::flow::chain::Chain;
use crate::flow::epoch::Arrived;
use crate::guarded::GuardedSink;
use crate::ledger::Ledger;
use crate::port::{Ending, Sink, Taken, UnitView};
use dacapo_base::Time;
use dacapo_packet::Pool;
use dacapo_path::ClockOffset;
use dacapo_wire::unit;
use std::time::Duration;

/// A sink that answers a time that is past must not hold the core.
const ASK_EVERY_MIN: Duration = Duration::from_micros(10);

/// To copy a shorter unit costs less than to lend it.
const LOAN_BYTES_MIN: usize = 4 << 10;

pub(crate) struct Delivery {
    sink: GuardedSink,
    ask_at: Option<Time>,
    is_finished: bool,
}

impl Delivery {
    /// The sink is asked from `now` on.
    pub fn new(sink: Box<dyn Sink>, now: Time) -> Self {
        Self { sink: GuardedSink::new(sink), ask_at: Some(now), is_finished: false }
    }

    pub fn handle_clock(&mut self, offset: ClockOffset) {
        self.sink.handle_clock(offset);
    }

    /// Whether the sink takes more.
    #[inline]
    pub fn has_capacity(&self) -> bool {
        self.sink.has_capacity()
    }

    /// Gives it a unit, after which it is asked: lent where it wants that and `may_lend`, else
    /// shown, and `seen` too. What is no longer of use it hears of as of what does not come.
    pub fn pass(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        unit: &mut Arrived,
        may_lend: bool,
        seen: impl FnOnce(&UnitView<'_>, Taken),
    ) -> Taken {
        self.ask_at = Some(cx.now);
        if unit.use_by.is_some_and(|at| at < cx.now) {
            self.sink.handle_lost(cx.now, number, 1);
            return Taken::Late;
        }
        if may_lend && let Some(taken) = self.lend(cx.now, cx.pool, &mut unit.chain) {
            return taken;
        }
        let view = UnitView { pool: cx.pool, chain: &unit.chain, number, arrived: unit.time };
        let taken = self.sink.handle_unit(cx.now, &view);
        seen(&view, taken);
        taken
    }

    /// Lends it a unit when it wants that and it can be.
    fn lend(&mut self, now: Time, pool: &mut Pool, unit: &mut Chain) -> Option<Taken> {
        if unit.unit_len() < LOAN_BYTES_MIN || !self.sink.takes_loans() {
            return None;
        }
        let loan = unit.lend(pool, unit::LEN)?;
        Some(self.sink.handle_loan(now, loan))
    }

    /// These units will not come.
    pub fn handle_lost(&mut self, now: Time, first: u64, count: u64) {
        self.sink.handle_lost(now, first, count);
        self.ask_at = Some(now);
    }

    #[inline]
    pub fn due(&self) -> Option<Time> {
        self.ask_at.filter(|_| !self.is_finished)
    }

    /// Asks the sink when it is due.
    #[inline]
    pub fn handle_timeout(&mut self, now: Time) {
        if self.due().is_some_and(|at| at <= now) {
            let soonest = now + ASK_EVERY_MIN;
            self.ask_at = self.sink.handle_timeout(now).map(|at| at.max(soonest));
        }
    }

    /// Why the sink does not keep what came.
    pub fn failure(&self) -> Option<String> {
        self.sink.failure()
    }

    /// What the sink said when it panicked, if it has.
    pub fn panicked(&self) -> Option<&str> {
        self.sink.panicked()
    }

    /// The flow ended.
    pub fn finish(&mut self, now: Time, ending: &Ending, ledger: &Ledger) {
        if !std::mem::replace(&mut self.is_finished, true) {
            self.sink.finish(now, ending, ledger);
        }
    }
}
