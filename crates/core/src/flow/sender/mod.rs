//! [`Sender`]: a flow at the end that sends.
//!
//! ```text
//!   Feed: source, splice --> TxEpochs: graphs --> Egress: queue, pace --> the way
//!                              TxAccount: what was fed, END, REPORT
//! ```
//!
//! What it tells goes out through [`FlowOut`].
//!
//! Invariants: at most 64 KiB and one unit wait below the graph; after the way is lost nothing
//! waits at all; nothing overtakes: a unit that is handed over leaves from where it lies only when
//! nothing waits anywhere.

mod account;
mod egress;
mod epochs;
mod feed;
#[cfg(test)]
mod tests;

pub(crate) use account::ledger_from;
pub(crate) use egress::Pace;

use crate::error::{Code, Error};
use crate::fanout::Fed;
use crate::flow::epoch::TxEpoch;
use crate::flow::{Context, FlowOut, FlowParams, Lost};
use crate::ids::StreamId;
use crate::port::Source;
use crate::queues::Queues;
use crate::transmit::{Offered, StreamWriter};
use account::TxAccount;
use dacapo_base::{Time, earlier};
use dacapo_lift::{Built, Runner};
use dacapo_packet::{Packet, Pool};
use dacapo_wire::data;
use dacapo_wire::session::Report;
use dacapo_wire::unit::{self, Kind};
use egress::Egress;
use epochs::{TxEpochs, UNITS_AT_ONCE};
use feed::Feed;
use std::time::Duration;

/// The length of what goes before a unit that leaves from where it lies.
const DIRECT_HEAD_LEN: usize = data::LEN + unit::LEN;

pub(crate) struct Sender {
    feed: Feed,
    epochs: TxEpochs,
    egress: Egress,
    account: TxAccount,
}

impl Sender {
    pub fn new(
        now: Time,
        params: FlowParams,
        source: Box<dyn Source>,
        epoch: TxEpoch,
        pace: Pace,
        queues: Queues,
    ) -> Self {
        let egress = Egress::new(now, pace, queues.path_bytes_max);
        let units_max = queues.splice_units_max;
        Self {
            feed: Feed::new(source, params.unit_len_max, units_max, egress.bytes_max()),
            epochs: TxEpochs::new(params.id, epoch),
            egress,
            account: TxAccount::new(&params),
        }
    }

    /// The epoch that runs.
    pub fn current(&self) -> &TxEpoch {
        self.epochs.current()
    }

    pub fn set_label_tx(&mut self, label: u32) {
        self.epochs.set_label_tx(label);
    }

    /// The path takes datagrams of this length now. Units that wait are laid out anew when it is
    /// their turn.
    pub fn set_datagram_len(&mut self, pool: &mut Pool, len: usize) {
        self.feed.end_row(pool);
        self.epochs.set_datagram_len(len);
    }

    /// The longest datagrams that the path takes now, as far as anybody has said.
    pub fn datagram_len(&self) -> usize {
        self.epochs.datagram_len()
    }

    /// Units that were fed.
    pub fn sent(&self) -> u64 {
        self.account.units()
    }

    /// What was fed so far.
    pub fn fed(&self) -> Fed {
        self.account.fed()
    }

    pub fn is_reported(&self) -> bool {
        self.account.is_reported()
    }

    /// True while units may still get to the receiver.
    pub fn is_live(&self) -> bool {
        !self.account.is_reported() && !self.egress.is_cut()
    }

    /// True when the receiver's account is due: END was said and it has not come.
    pub fn awaits_report(&self) -> bool {
        self.account.awaits_report()
    }

    /// True when it does nothing unless something touches it, or its deadline comes.
    pub fn may_rest(&self) -> bool {
        let is_done = !self.has_backlog()
            && !self.account.is_to_end(self.feed.has_ended())
            && self.epochs.is_alone();
        is_done && !self.epochs.wants_room()
    }

    pub fn start(&mut self, now: Time) {
        if !self.account.has_ended() {
            self.feed.set_running(now, true);
        }
    }

    pub fn stop(&mut self, now: Time) {
        self.feed.set_running(now, false);
    }

    /// Contact is lost, or back: the source is paused meanwhile, and what was fed waits.
    pub fn set_suspended(&mut self, now: Time, suspended: bool) {
        self.feed.set_suspended(now, suspended);
    }

    /// Asks the source again, whatever it has answered.
    pub fn wake(&mut self, now: Time) {
        self.feed.wake(now);
    }

    pub fn command(&mut self, now: Time, payload: &[u8]) -> Result<Vec<u8>, Error> {
        let answer = self.feed.command(now, payload);
        answer.map_err(|error| Error::new(Code::Refused, error.0))
    }

    /// Whether [`Sender::poll_packet`] has anything to do: a unit or a packet waits, or may be had
    /// from the source, the end is to be said, or memory given back.
    pub fn may_give(&self, now: Time) -> bool {
        !self.egress.is_empty()
            || self.feed.may_give(now)
            || self.account.is_to_end(self.feed.has_ended())
            || self.feed.holds_memory()
            || self.epochs.has_told()
            || self.epochs.wants_room()
    }

    /// Since when what [`Sender::poll_packet`] would give next has waited; `None` when there is
    /// nothing to do.
    pub fn waits_since(&self, now: Time) -> Option<Time> {
        let since = || self.egress.since().or_else(|| self.feed.since());
        self.may_give(now).then(|| since().map_or(now, |since| since.min(now)))
    }

    /// Units that were taken from the source and are not in the graph yet.
    pub fn waiting(&self) -> u64 {
        self.feed.len() as u64
    }

    /// Whether something of the flow waits that may be sent.
    pub fn has_backlog(&self) -> bool {
        !self.feed.is_empty() || !self.egress.is_empty()
    }

    /// Takes a unit that the application hands over, past the source. Over a `stream`, when nothing
    /// must see it on its way and nothing waits, it leaves from where it lies; else it is copied.
    pub fn offer(
        &mut self,
        cx: &mut Context<'_>,
        unit: &[u8],
        stream: Option<(StreamId, &mut dyn StreamWriter)>,
    ) -> Offered {
        if let Some((stream, writer)) = stream
            && let Some(head) = self.head_of_direct(cx.now, unit.len())
            && writer.write_split(cx.now, stream, &head, unit)
        {
            self.egress.note_passed(cx.now, head.len() + unit.len());
            self.epochs.note_fed();
            self.account.note_sent(unit.len());
            return Offered::Sent;
        }
        let is_alone = !self.has_backlog();
        if !self.feed.push(cx, *self.epochs.layout(), unit, is_alone) {
            return Offered::NotNow;
        }
        if self.egress.is_empty() {
            // It goes through the graph at once, so that who asks for packets next finds it there.
            self.feed_epoch(cx);
        }
        Offered::Taken
    }

    /// What goes before a unit of `len` bytes that leaves from where it lies: when there is nothing
    /// in the graph that must see it, nothing that hashes it, the pace lets it out, and nothing
    /// waits.
    fn head_of_direct(&mut self, now: Time, len: usize) -> Option<[u8; DIRECT_HEAD_LEN]> {
        let epoch = self.epochs.current();
        let is_lean = epoch.runner.modules().next().is_none()
            && !self.account.has_hash()
            && self.epochs.is_alone();
        let fits = len <= self.feed.unit_len_max() && len + unit::LEN <= epoch.layout.segment;
        let is_next = self.feed.is_open() && !self.feed.has_ended() && !self.has_backlog();
        let is_direct = is_lean && fits && is_next;
        if !(is_direct && self.egress.lets_pass(now, DIRECT_HEAD_LEN + len)) {
            return None;
        }
        let mut head = [0; DIRECT_HEAD_LEN];
        let (label, number) = head.split_at_mut(data::LEN);
        label.copy_from_slice(&data::Header { label: epoch.label_tx }.emit());
        number.copy_from_slice(&unit::Header::new(Kind::Data, epoch.fed).emit());
        Some(head)
    }

    /// Asks the source for everything that is due, feeds what credit and pace allow.
    fn pump(&mut self, cx: &mut Context<'_>, out: &mut FlowOut) {
        loop {
            let mut asked = 0;
            while asked < UNITS_AT_ONCE
                && (asked == 0 || self.feed.is_wanted())
                && self.ask_source(cx, out)
            {
                asked += 1;
            }
            let fed = self.feed_epoch(cx);
            let is_spent = self.feed.is_empty() && !self.feed.is_due(cx.now);
            if (asked == 0 && !fed) || is_spent {
                break;
            }
        }
    }

    fn ask_source(&mut self, cx: &mut Context<'_>, out: &mut FlowOut) -> bool {
        if self.feed.ask(cx, *self.epochs.layout()) {
            return true;
        }
        if let Some(text) = self.feed.take_failure() {
            self.account.fail(&Error::new(Code::AccessFailed, text), out);
        }
        false
    }

    /// Feeds a batch of units that wait, and takes what the graph makes of them.
    fn feed_epoch(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.feed.is_open() {
            return false;
        }
        let (mut credit, mut count) = (self.epochs.credit(), 0);
        let mut room = self.egress.room();
        while credit > 0 && count < UNITS_AT_ONCE && room > 0 {
            let Ok(Some(mut unit)) = self.feed.pop(cx.pool, self.epochs.layout()) else { break };
            self.account.note_fed(cx.pool, &unit.chain, unit.len);
            let packets: usize = unit.chain.iter().map(Packet::segment_count).sum();
            (credit, count) = (credit.saturating_sub(packets), count + 1);
            room = room.saturating_sub(unit.len);
            self.epochs.feed(cx, &mut unit);
            self.feed.reuse(unit.chain);
        }
        if count > 0 {
            self.epochs.run(cx, &mut self.egress);
        }
        count > 0
    }

    /// The next packet for the network, with its label, as far as the pace allows, and the path
    /// `allowed` bytes.
    pub fn poll_packet(
        &mut self,
        cx: &mut Context<'_>,
        allowed: usize,
        out: &mut FlowOut,
    ) -> Option<Packet> {
        if self.feed.is_suspended() {
            self.feed.end_row(cx.pool);
            self.epochs.tell(out);
            return None;
        }
        self.egress.allow(allowed);
        if allowed > 0 && self.epochs.wants_room() {
            self.epochs.handle_room(cx, &mut self.egress);
        }
        // What was handed over has been through the graph.
        let is_ready = self.feed.is_empty() && !self.egress.is_empty() && !self.feed.is_due(cx.now);
        if !is_ready || self.feed.has_ended() {
            self.pump(cx, out);
            self.end_if_done(cx, out);
        }
        self.epochs.tell(out);
        let packet = self.egress.pop(cx, allowed);
        out.is_held = self.egress.is_held() || allowed == 0 && self.epochs.wants_room();
        packet
    }

    /// Says END once, when the source has ended and all of it is on its way.
    fn end_if_done(&mut self, cx: &mut Context<'_>, out: &mut FlowOut) {
        if self.account.is_to_end(self.feed.has_ended())
            && (!self.has_backlog() || self.account.is_overdue(cx.now))
        {
            self.epochs.drain(cx, &mut self.egress);
            if let Some(said) = self.epochs.current().runner.failure() {
                self.account.fail(&Error::new(Code::ModuleFailed, said), out);
            }
            self.epochs.abort(Error::new(Code::Closed, "the flow ended"), out);
            self.account.end(self.epochs.current().number, out);
        }
    }

    /// The way to the receiver is gone, or a graph: what waits is not sent, what was fed is
    /// accounted for by the receiver, which is told over the control connection. What has left a
    /// graph that is gone still goes out.
    pub fn lose(&mut self, cx: &mut Context<'_>, what: Lost, error: &Error, out: &mut FlowOut) {
        if what == Lost::Way {
            self.egress.cut(cx.pool);
        }
        if !self.account.has_ended() {
            self.stop(cx.now);
            self.feed.end();
            self.feed.drop_waiting(cx.pool);
            self.account.fail(error, out);
            self.end_if_done(cx, out);
        }
    }

    /// Ends the flow now: what waits is not sent, what was fed is accounted for.
    pub fn close(&mut self, cx: &mut Context<'_>, out: &mut FlowOut) {
        self.stop(cx.now);
        self.feed.end();
        self.feed.drop_waiting(cx.pool);
        self.account.close(cx.now);
        // What waits for the pace has been counted as sent; END follows it.
        self.end_if_done(cx, out);
    }

    /// The receiver's account has come; false, and nothing is taken, when it does not add up.
    #[must_use]
    pub fn handle_report(
        &mut self,
        cx: &mut Context<'_>,
        report: &Report,
        out: &mut FlowOut,
    ) -> bool {
        let Some(ledger) = self.account.check(report) else { return false };
        // It covers every epoch: END may have overtaken the DONE of the last change.
        self.epochs.destroy_old(cx, out);
        // Modules have nothing more to keep for it, nor to ask.
        self.epochs.flush(cx);
        self.account.settle(ledger, report, out);
        true
    }

    /// The session ended abnormally: nobody can say what became of the units.
    pub fn give_up(&mut self, out: &mut FlowOut) {
        self.account.give_up(out);
    }

    /// The number that the next epoch gets.
    pub fn next_epoch(&self) -> u64 {
        self.epochs.next_number()
    }

    /// True when no change is going on and the flow has not ended.
    pub fn may_change(&self) -> bool {
        self.epochs.is_alone() && !self.account.has_ended()
    }

    /// A change to the next epoch was proposed to the receiver.
    pub fn prepare(&mut self, now: Time, built: Built, label_rx: u32) {
        self.epochs.prepare(now, built, label_rx);
    }

    /// The receiver is ready: the next unit enters the new epoch. Returns its base, to be told.
    pub fn handle_ready(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        label: u32,
        rtt: Duration,
    ) -> Option<u64> {
        let base = self.account.units();
        let epoch = (number, label);
        self.epochs.handle_ready(cx, epoch, base, rtt, &mut self.egress).then_some(base)
    }

    /// The receiver cannot: stay.
    pub fn handle_cannot(&mut self, number: u64, error: Error, out: &mut FlowOut) {
        self.epochs.handle_cannot(number, error, out);
    }

    /// The receiver has settled an old epoch.
    pub fn handle_done(&mut self, cx: &mut Context<'_>, number: u64, out: &mut FlowOut) {
        self.epochs.handle_done(cx, number, out);
    }

    /// A packet that the receiver's modules sent back for one of our epochs.
    pub fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        packet: Packet,
        out: &mut FlowOut,
    ) {
        self.epochs.handle_packet(cx, number, packet, &mut self.egress);
        self.epochs.tell(out);
    }

    /// Runs `body` over the graph of an epoch that runs or drains; `None` when there is no such.
    pub fn with_epoch<R>(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        out: &mut FlowOut,
        body: impl FnOnce(&mut Runner, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let result = self.epochs.with(cx, number, &mut self.egress, body);
        self.epochs.tell(out);
        result
    }

    /// `may_send` is false while nobody knows where to: then nothing is asked of the source, and it
    /// must not wake anybody either.
    pub fn next_deadline(&self, now: Time, may_send: bool) -> Option<Time> {
        let mut next = earlier(self.epochs.due(), self.account.due());
        if may_send && !self.feed.is_suspended() {
            next = earlier(next, earlier(self.feed.due(), self.egress.due(now)));
        }
        next
    }

    pub fn handle_timeout(&mut self, cx: &mut Context<'_>, rtt: Duration, out: &mut FlowOut) {
        if self.account.is_overdue(cx.now) {
            self.end_if_done(cx, out);
        }
        self.epochs.handle_timeout(cx, rtt, &mut self.egress, out);
        self.epochs.tell(out);
    }

    /// This end did not run for so long: that does not count.
    pub fn shift(&mut self, by: Duration) {
        self.account.shift(by);
        self.epochs.shift(by);
    }

    /// The labels that this end gave out for the flow.
    pub fn labels(&self) -> Vec<u32> {
        self.epochs.labels()
    }

    /// Gives every view back.
    pub fn flush(&mut self, cx: &mut Context<'_>) {
        self.feed.end_row(cx.pool);
        self.feed.drop_waiting(cx.pool);
        self.epochs.flush(cx);
        self.egress.clear(cx.pool);
    }
}
