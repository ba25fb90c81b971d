//! [`Receiver`]: a flow at the end that receives.
//!
//! ```text
//!   label --> RxEpochs: graphs --> UnitTracker: numbers --> Delivery: sink
//!                |                                            RxAccount: what became of each
//!             Settling: how long what is missing is waited for
//! ```
//!
//! Over a reliable transport what is sent arrives, however late: nothing is booked lost while the
//! way is there and something comes. What comes so and finds no room at the sink waits here; once
//! enough units do, packets are passed over before the graph, and so sent again.
//!
//! Invariants: a unit number is passed on or booked lost, once; at the end the ledger closes.

mod account;
mod delivery;
mod epochs;
mod feedback;
mod settling;
#[cfg(test)]
mod tests;
mod tracker;
mod waiting;

pub(crate) use epochs::UNITS_MAX;

use crate::error::{Code, Error};
use crate::flow::epoch::{Arrived, RxEpoch};
use crate::flow::{Context, FlowEvent, FlowOut, FlowParams, Lost, PathTimes};
use crate::ledger::Ledger;
use crate::port::{Ending, Sink, Taken};
use crate::queues::Queues;
use account::RxAccount;
use dacapo_base::{Time, earlier};
use dacapo_lift::Runner;
use dacapo_packet::Packet;
use dacapo_path::ClockOffset;
use dacapo_wire::change::Done;
use dacapo_wire::message::Message;
use dacapo_wire::session::End;
use delivery::Delivery;
use epochs::RxEpochs;
use settling::Settling;
use std::ops::Range;
use std::time::Duration;
use tracker::{Accept, UnitTracker};
use waiting::Waiting;

/// What becomes of what is sent, while the way is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// It may be lost.
    Nothing,
    /// It arrives: the transport sees to that, and is held up where the sink has no room.
    Transport,
    /// It arrives: a module sees to that, and sends again what is passed over for want of room.
    Graph,
}

pub(crate) struct Receiver {
    delivery: Delivery,
    waiting: Waiting,
    epochs: RxEpochs,
    tracker: UnitTracker,
    settling: Settling,
    account: RxAccount,
}

impl Receiver {
    pub fn new(
        params: FlowParams,
        sink: Box<dyn Sink>,
        epoch: RxEpoch,
        keeping: Keeping,
        now: Time,
        queues: Queues,
    ) -> Self {
        Self {
            delivery: Delivery::new(sink, now),
            waiting: Waiting::default(),
            epochs: RxEpochs::new(epoch, now, &queues, keeping),
            tracker: UnitTracker::default(),
            settling: Settling::new(keeping != Keeping::Nothing),
            account: RxAccount::new(&params),
        }
    }

    /// The flow runs already, and `first` units were fed before this end takes part: to be said
    /// before anything comes.
    pub fn join_at(&mut self, first: u64) {
        self.epochs.join_at(first);
    }

    pub fn ledger(&self) -> &Ledger {
        self.account.ledger()
    }

    pub fn is_finished(&self) -> bool {
        self.account.is_finished()
    }

    /// True while units may still come.
    pub fn is_live(&self) -> bool {
        !self.account.is_finished() && self.settling.way_lost().is_none()
    }

    /// True when it does nothing unless something touches it, or its deadline comes.
    pub fn may_rest(&self) -> bool {
        let has_way = self.settling.way_lost().is_none();
        let waits = self.account.has_end() || !has_way || self.epochs.len() > 1;
        (self.account.is_finished() || !waits) && self.epochs.is_quiet()
    }

    pub fn newest(&self) -> Option<&RxEpoch> {
        self.epochs.newest()
    }

    pub fn set_label_tx(&mut self, label: u32) {
        self.epochs.set_label_tx(label);
    }

    pub fn handle_clock(&mut self, offset: ClockOffset) {
        self.delivery.handle_clock(offset);
        self.epochs.handle_clock(offset);
    }

    /// True when another epoch may be prepared.
    pub fn may_prepare(&self, number: u64) -> bool {
        let is_open = !self.account.has_end() && !self.account.is_finished();
        is_open && !self.settling.is_graph_lost() && self.epochs.may_prepare(number)
    }

    pub fn prepare(&mut self, epoch: RxEpoch) {
        self.epochs.prepare(epoch);
    }

    /// The sender takes a prepared epoch back.
    pub fn handle_abort(&mut self, cx: &mut Context<'_>, number: u64, out: &mut FlowOut) {
        let label = self.epochs.abort(cx, number);
        out.events.extend(label.map(FlowEvent::Retire));
    }

    /// The sender says where a new epoch begins.
    pub fn handle_switched(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        base: u64,
        path: PathTimes,
        out: &mut FlowOut,
    ) {
        self.epochs.learn_base(cx.now, number, base);
        self.advance(cx, path, out);
    }

    /// A packet with one of our labels.
    pub fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        packet: Packet,
        path: PathTimes,
        out: &mut FlowOut,
    ) {
        let at = self.epochs.position(number).filter(|_| !self.account.is_finished());
        let Some(at) = at else { return cx.pool.free(packet) };
        self.settling.handle_packet(cx.now);
        if self.waiting.is_enough() || self.epochs.holds_enough(at) {
            // What finds no place is as good as lost, and so sent again where nothing is to be.
            return cx.pool.free(packet);
        }
        self.epochs.handle_packet(cx, at, packet);
        self.pass_up(cx, at);
        self.epochs.tell(cx, Some(self.waiting.unread()), out);
        self.advance(cx, path, out);
        self.delivery.handle_timeout(cx.now);
    }

    /// Passes on what has come in the epoch at this place.
    fn pass_up(&mut self, cx: &mut Context<'_>, at: usize) {
        let may_come = self.settling.may_come();
        while let Some(mut arrived) = self.epochs.poll_unit(cx, at, may_come) {
            if self.waiting.must_wait(arrived.waits_for_room, || self.delivery.has_capacity()) {
                self.waiting.push(arrived);
                continue;
            }
            self.pass(cx, at, &mut arrived);
            arrived.chain.free(cx.pool);
        }
    }

    /// Whether there is a packet for the sender's modules.
    pub fn has_feedback(&self) -> bool {
        self.epochs.has_feedback()
    }

    /// The next packet for the sender's modules.
    pub fn poll_packet(&mut self) -> Option<Packet> {
        self.epochs.poll_feedback()
    }

    /// Gives a unit to the sink, if it is the first with its number.
    fn pass(&mut self, cx: &mut Context<'_>, at: usize, arrived: &mut Arrived) {
        let Some((number, is_ordered)) = self.epochs.number(at, arrived.place) else { return };
        if self.account.units_said().is_some_and(|units| number >= units) {
            // The sender has said that there is no such unit.
            return;
        }
        match self.tracker.accept(number) {
            Accept::New => {
                if is_ordered {
                    self.lose_below(cx.now, number);
                }
                self.pass_new(cx, at, number, arrived);
            }
            Accept::Duplicate => self.account.note_duplicate(),
            Accept::AfterLost => self.account.note_after_lost(),
            Accept::Absurd => {}
        }
    }

    fn pass_new(&mut self, cx: &mut Context<'_>, at: usize, number: u64, arrived: &mut Arrived) {
        let len = arrived.chain.unit_len();
        let (account, first) = (&mut self.account, self.epochs.first());
        let may_lend = !account.has_hash();
        let taken = self.delivery.pass(cx, number, arrived, may_lend, |unit, taken| {
            account.hash(first.saturating_add(number), unit, taken);
        });
        self.account.note_taken(len, taken);
        self.epochs.note_passed(cx.now, at, taken == Taken::Delivered);
        let mut lost = Vec::new();
        self.tracker.close(number, &mut lost);
        self.book_lost(cx.now, &mut lost);
    }

    fn book_lost(&mut self, now: Time, lost: &mut Vec<Range<u64>>) {
        for range in lost.drain(..) {
            let count = range.end - range.start;
            self.account.note_lost(count);
            self.delivery.handle_lost(now, range.start, count);
        }
        self.account.note_seen(self.tracker.seen());
    }

    /// Everything that is open below `to` is lost.
    #[inline]
    fn lose_below(&mut self, now: Time, to: u64) {
        if self.tracker.floor() >= to {
            return;
        }
        let mut lost = Vec::new();
        self.tracker.settle(to, &mut lost);
        self.book_lost(now, &mut lost);
    }

    /// Settles old epochs as far as that can be done now, and ends the flow when all is accounted
    /// for.
    fn advance(&mut self, cx: &mut Context<'_>, path: PathTimes, out: &mut FlowOut) {
        self.release(cx, false);
        // What waits for room has come, and is of the first epoch.
        while self.waiting.is_empty()
            && let Some(between) = self.epochs.boundary()
        {
            let is_complete = self.tracker.floor() >= between.base;
            let is_over = is_complete || self.epochs.has_first_ended();
            if !is_over && !self.settling.is_over(cx.now, &between, path) {
                break;
            }
            self.settle_first(cx, between.base, out);
        }
        if self.account.units_said().is_some_and(|units| self.tracker.floor() >= units) {
            self.finish(cx, out);
        }
    }

    /// Passes on what waits for room (`is_all`: whether that is there or not), and what waits in
    /// epochs that need not wait any more.
    fn release(&mut self, cx: &mut Context<'_>, is_all: bool) {
        while let Some(mut arrived) = self.waiting.pop(|| is_all || self.delivery.has_capacity()) {
            if let Some(at) = self.epochs.position(arrived.epoch) {
                self.pass(cx, at, &mut arrived);
            }
            arrived.chain.free(cx.pool);
        }
        for at in 0..self.epochs.len() {
            if self.epochs.has_released(at) {
                self.pass_held(cx, at);
            }
        }
    }

    fn pass_held(&mut self, cx: &mut Context<'_>, at: usize) {
        for mut arrived in self.epochs.take_held(at) {
            self.pass(cx, at, &mut arrived);
            arrived.chain.free(cx.pool);
        }
    }

    /// The first epoch is over: what it still holds goes up, the rest of it is lost.
    fn settle_first(&mut self, cx: &mut Context<'_>, base: u64, out: &mut FlowOut) {
        self.drain(cx, 0);
        self.release(cx, true);
        self.lose_below(cx.now, base);
        let Some(mut old) = self.epochs.remove_first(cx) else { return };
        old.tell(out);
        let first = old.base.map_or(0, |(base, _)| base);
        out.messages.push(Message::Done(Done {
            flow: self.account.id(),
            epoch: old.number,
            delivered: old.delivered,
            lost: base.saturating_sub(first).saturating_sub(old.delivered),
        }));
        out.events.push(FlowEvent::Retire(old.label_rx));
        out.events.extend(self.epochs.first_number().map(|epoch| FlowEvent::Changed { epoch }));
        self.release(cx, false);
    }

    fn drain(&mut self, cx: &mut Context<'_>, at: usize) {
        self.epochs.with(cx, at, Runner::drain);
        self.pass_up(cx, at);
    }

    /// Everything that is here goes up; a module that panics meanwhile is told before the account.
    fn drain_all(&mut self, cx: &mut Context<'_>, out: &mut FlowOut) {
        self.waiting.end();
        self.release(cx, true);
        for at in 0..self.epochs.len() {
            self.drain(cx, at);
            if self.epochs.has_base(at) {
                self.pass_held(cx, at);
            }
        }
        if let Some(said) = self.epochs.failure() {
            self.lose(cx, Lost::Graph, &Error::new(Code::ModuleFailed, said), out);
        }
    }

    /// The sender says how much there was in all.
    pub fn handle_end(
        &mut self,
        cx: &mut Context<'_>,
        end: End,
        path: PathTimes,
        out: &mut FlowOut,
    ) {
        if !self.account.handle_end(end, out) {
            return;
        }
        self.settling.handle_end(cx.now, path, self.epochs.patience());
        self.advance(cx, path, out);
        if self.settling.way_lost().is_some() {
            self.finish(cx, out);
        }
    }

    /// The session closes: the rest is not waited for without end.
    pub fn close_soon(&mut self, now: Time) {
        self.settling.close_soon(now);
    }

    /// Whether the sink takes more.
    pub fn has_capacity(&self) -> bool {
        self.delivery.has_capacity()
    }

    /// The sink has room again, or contact is back: what is on its way has its time anew.
    pub fn go_on(&mut self, now: Time) {
        self.epochs.go_on(now);
        self.settling.go_on(now);
    }

    /// This end did not run for so long: that does not count.
    pub fn shift(&mut self, by: Duration) {
        self.settling.shift(by);
        self.epochs.shift(by);
    }

    /// The way from the sender is gone, or a graph: what has not come up will not.
    pub fn lose(&mut self, cx: &mut Context<'_>, what: Lost, error: &Error, out: &mut FlowOut) {
        if self.account.is_finished() || !self.settling.lose(cx.now, what, error) {
            return;
        }
        self.account.note_failed(error, out);
        if what == Lost::Way && self.account.has_end() {
            self.finish(cx, out);
        }
    }

    /// Ends the flow: everything that is here goes up, the rest is booked, the sender gets the
    /// account.
    fn finish(&mut self, cx: &mut Context<'_>, out: &mut FlowOut) {
        let Some(units) = self.account.units_said().filter(|_| !self.account.is_finished()) else {
            return;
        };
        self.drain_all(cx, out);
        let ending = self.account.ending(self.settling.reason());
        self.lose_below(cx.now, units);
        // Old epochs are over with it: nothing is due later that would say so.
        while let Some(between) = self.epochs.boundary()
            && self.tracker.floor() >= between.base
        {
            self.settle_first(cx, between.base, out);
        }
        self.account.settle();
        self.close(cx, &ending, out);
        self.account.answer(out);
    }

    /// The session ended without the sender's account: what is here goes up, the rest is unknown.
    pub fn give_up(&mut self, cx: &mut Context<'_>, ending: &Ending, out: &mut FlowOut) {
        if self.account.is_finished() {
            return;
        }
        self.drain_all(cx, out);
        self.account.note_seen(self.tracker.seen());
        self.account.give_up();
        self.close(cx, ending, out);
    }

    fn close(&mut self, cx: &mut Context<'_>, ending: &Ending, out: &mut FlowOut) {
        self.delivery.finish(cx.now, ending, self.account.ledger());
        if let Some(said) = self.delivery.panicked() {
            self.account.note_failed(&Error::new(Code::AccessFailed, said), out);
        }
        self.account.finish(self.delivery.failure(), out);
        self.flush(cx);
    }

    pub fn next_deadline(&self, path: PathTimes) -> Option<Time> {
        let between = self.epochs.boundary();
        let between = between.filter(|_| self.waiting.is_empty());
        let over_at = between.and_then(|between| self.settling.over_at(&between, path));
        let next = earlier(earlier(self.delivery.due(), self.epochs.due()), over_at);
        // Woken because there is room again: at once.
        let has_room = !self.waiting.is_empty() && self.delivery.has_capacity();
        let next = if has_room { Some(Time::ZERO) } else { next };
        if self.account.is_finished() {
            return next;
        }
        let waits = !self.waiting.is_empty();
        let end_by = self.settling.end_by(path, waits, || self.delivery.has_capacity());
        earlier(next, earlier(end_by, self.settling.give_up_at()))
    }

    pub fn handle_timeout(&mut self, cx: &mut Context<'_>, path: PathTimes, out: &mut FlowOut) {
        for at in 0..self.epochs.len() {
            self.epochs.with(cx, at, Runner::handle_timeout);
            self.pass_up(cx, at);
        }
        self.advance(cx, path, out);
        let unread = (!self.account.is_finished()).then(|| self.waiting.unread());
        self.epochs.tell(cx, unread, out);
        if self.account.is_finished() {
            return;
        }
        self.delivery.handle_timeout(cx.now);
        let waits = !self.waiting.is_empty();
        let end_by = self.settling.end_by(path, waits, || self.delivery.has_capacity());
        if end_by.is_some_and(|at| at <= cx.now) {
            self.finish(cx, out);
        }
        if self.settling.give_up_at().is_some_and(|at| at <= cx.now) {
            let reason = self.settling.way_lost().map(Error::to_string);
            self.give_up(cx, &Ending::Abnormal(reason.unwrap_or_default()), out);
        }
    }

    /// Runs `body` over the graph of an epoch that lives; `None` when there is no such.
    pub fn with_epoch<R>(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        out: &mut FlowOut,
        body: impl FnOnce(&mut Runner, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let at = self.epochs.position(number)?;
        let result = self.epochs.with(cx, at, body);
        self.pass_up(cx, at);
        self.epochs.tell(cx, None, out);
        Some(result)
    }

    /// The labels that this end gave out for the flow.
    pub fn labels(&self) -> Vec<u32> {
        self.epochs.labels()
    }

    /// Gives every view back.
    pub fn flush(&mut self, cx: &mut Context<'_>) {
        self.waiting.flush(cx.pool);
        self.epochs.flush(cx);
    }
}
