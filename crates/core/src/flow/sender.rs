//! [`SenderFlow`]: a flow at the end that sends.
//!
//! What it is: the source, the splice, the running epochs, and the pace. What it is not: the
//! control connection; messages go out through [`FlowOut`].
//!
//! ```text
//!   change:  None --prepare--> Prepared --READY--> Draining --DONE--> None
//!                                 |  5 s, CANNOT: ABORT, None
//! ```
//!
//! Invariants: base(e) is the number of units fed before e; a unit is fed to one epoch; an epoch
//! number is never used again, not even after an abort; at most 64 KiB and one unit wait below the
//! graph; after the way is lost nothing waits at all.

mod handed;
mod pace;

pub(crate) use handed::DIRECT_HEAD_LEN;
pub(crate) use pace::Pace;

use pace::{take_paced, wanted};

use crate::error::{Code, Error};
use crate::flow::epoch::TxEpoch;
use crate::flow::member::Fed;
use crate::flow::slab::Slab;
use crate::flow::splice::Splice;
use crate::flow::{Around, Terms, earlier, hash_bytes};
use crate::ledger::{Ledger, UnitHash};
use crate::port::{Source, SourcePoll, UnitWriter, skip_bytes};
use crate::queues::Queues;
use dacapo_base::Time;
use dacapo_lift::{Built, DropReason};
use dacapo_packet::{BATCH_PACKETS_MAX, Packet, Pool, TRAIN_BYTES_MAX, TRAIN_SEGMENTS_MAX};
use dacapo_path::TokenBucket;
use dacapo_wire::data;
use dacapo_wire::message::Message;
use dacapo_wire::session::{CODE_SUCCESS, End, Report};
use dacapo_wire::unit::{self, Kind};
use std::collections::VecDeque;
use std::time::Duration;

/// How long what was fed may still go out after the flow was closed; well below what CLOSE waits.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// A change that is not ready by then is aborted.
const PREPARE_MAX: Duration = Duration::from_secs(5);

/// The last mark of an epoch: at once, and at most in all.
const ENDS_AT_ONCE: u8 = 3;
const ENDS_MAX: u8 = 12;
const END_EVERY_MIN: Duration = Duration::from_millis(5);

/// How long the sender waits for DONE before it gives an old epoch up on its own.
const DRAIN_MAX: Duration = Duration::from_secs(15);

/// What a flow tells the rest of the core.
#[derive(Debug, Default)]
pub(crate) struct FlowOut {
    pub messages: Vec<Message>,
    pub events: Vec<FlowEvent>,
}

/// What happened in a flow.
#[derive(Debug)]
pub(crate) enum FlowEvent {
    /// The flow ended and this is its account.
    Ended { ledger: Ledger, hash: Option<bool> },
    /// The flow runs in this epoch and the one before is gone.
    Changed { epoch: u64 },
    /// The flow goes on in its old epoch.
    ChangeFailed(Error),
    /// A label is no longer used.
    Retire(u32),
    /// The source failed.
    Failed(Error),
}

#[derive(Debug)]
enum Change {
    None,
    Prepared { epoch: Box<TxEpoch>, deadline: Time },
    Draining { old: Box<TxEpoch>, ends: u8, next_end: Time, deadline: Time },
}

pub(crate) struct SenderFlow {
    id: u16,
    source: Box<dyn Source>,
    unit_len_max: usize,
    splice: Splice,
    slab: Slab,
    current: TxEpoch,
    change: Change,
    next_epoch: u64,
    /// The session is active.
    running: bool,
    /// Contact is lost; nothing is asked of the source, and nothing is sent.
    suspended: bool,
    /// When the source is asked again; `None` until something wakes it.
    ask_at: Option<Time>,
    source_ended: bool,
    /// Why the source ended before its end.
    failure: Option<Error>,
    end_sent: bool,
    reported: bool,
    sent: u64,
    sent_bytes: u64,
    /// Where one was agreed.
    hash: Option<UnitHash>,
    /// The longest datagrams that the path takes now.
    datagram_len: usize,
    /// `None`: the transport keeps the pace.
    bucket: Option<TokenBucket>,
    queue: VecDeque<Packet>,
    queue_bytes: usize,
    queue_max: usize,
    /// The way to the receiver is gone; nothing is sent any more.
    way_lost: bool,
    /// The flow was closed; what was fed may still go out until then, before END is said.
    close_by: Option<Time>,
    /// Units given up before they were fed.
    pub not_sent: u64,
}

impl SenderFlow {
    pub fn new(
        now: Time,
        terms: Terms,
        source: Box<dyn Source>,
        epoch: TxEpoch,
        pace: Pace,
        queues: Queues,
    ) -> Self {
        let (bucket, queue_max) = (pace.bucket(now), pace.queue_max());
        Self {
            id: terms.id,
            source,
            unit_len_max: terms.unit_len_max,
            splice: Splice::new(queues.splice_units_max),
            slab: Slab::default(),
            next_epoch: epoch.number + 1,
            current: epoch,
            change: Change::None,
            running: false,
            suspended: false,
            ask_at: None,
            source_ended: false,
            failure: None,
            end_sent: false,
            reported: false,
            sent: 0,
            sent_bytes: 0,
            hash: terms.hash(),
            datagram_len: usize::MAX,
            bucket,
            queue: VecDeque::new(),
            queue_bytes: 0,
            queue_max: queue_max.min(queues.path_bytes_max),
            way_lost: false,
            close_by: None,
            not_sent: 0,
        }
    }

    pub fn current(&self) -> &TxEpoch {
        &self.current
    }

    pub fn set_label_tx(&mut self, label: u32) {
        self.current.label_tx = label;
    }

    /// The path takes datagrams of this length now: units that enter the graph from now on are cut
    /// so, those that wait are laid out anew when it is their turn. What the graph has already is
    /// sent as it is, and lost or not.
    pub fn set_datagram_len(&mut self, pool: &mut Pool, len: usize) {
        self.datagram_len = len;
        self.slab.end_row(pool);
        self.current.cut_to(len);
        if let Change::Prepared { epoch, .. } = &mut self.change {
            epoch.cut_to(len);
        }
    }

    /// The longest datagrams that the path takes now, as far as anybody has said.
    pub fn datagram_len(&self) -> usize {
        self.datagram_len
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What was fed so far.
    pub fn fed(&self) -> Fed {
        Fed { units: self.sent, bytes: self.sent_bytes, hash: self.hash }
    }

    pub fn is_reported(&self) -> bool {
        self.reported
    }

    /// True while units may still get to the receiver.
    pub fn is_live(&self) -> bool {
        !self.reported && !self.way_lost
    }

    /// True when the receiver's account is due: END was said and it has not come.
    pub fn awaits_report(&self) -> bool {
        self.end_sent && !self.reported
    }

    /// True when it does nothing unless something touches it, or its deadline comes.
    pub fn may_rest(&self) -> bool {
        let is_empty = self.splice.is_empty() && self.queue.is_empty();
        let ends = self.source_ended && !self.end_sent;
        is_empty && !ends && matches!(self.change, Change::None)
    }

    pub fn start(&mut self, now: Time) {
        if !self.end_sent {
            self.set_running(now, true, self.suspended);
        }
    }

    pub fn stop(&mut self, now: Time) {
        self.set_running(now, false, self.suspended);
    }

    /// Contact is lost, or back: the source is paused meanwhile, and what was fed waits.
    pub fn set_suspended(&mut self, now: Time, suspended: bool) {
        self.set_running(now, self.running, suspended);
    }

    fn set_running(&mut self, now: Time, running: bool, suspended: bool) {
        let was_fed = self.is_fed();
        (self.running, self.suspended) = (running, suspended);
        match (was_fed, self.is_fed()) {
            (false, true) => {
                self.ask_at = Some(now);
                self.source.start(now);
            }
            (true, false) => self.source.stop(now),
            _ => {}
        }
    }

    /// Whether the source is asked for units.
    fn is_fed(&self) -> bool {
        self.running && !self.suspended
    }

    /// Asks the source again, whatever it has answered.
    pub fn wake(&mut self, now: Time) {
        self.ask_at = Some(self.ask_at.map_or(now, |at| at.min(now)));
    }

    pub fn command(&mut self, now: Time, payload: &[u8]) -> Result<Vec<u8>, Error> {
        self.wake(now);
        self.source.command(now, payload).map_err(|error| Error::new(Code::Refused, error.0))
    }

    /// Whether [`SenderFlow::poll_packet`] has anything to do: a unit or a packet waits, or may be
    /// had from the source, the end is to be said, or memory given back.
    pub fn may_give(&self, now: Time) -> bool {
        let ends = self.source_ended && !self.end_sent;
        self.has_backlog()
            || (self.is_fed() && self.is_due(now))
            || ends
            || self.slab.holds_memory()
    }

    /// Whether it is time to ask the source.
    fn is_due(&self, now: Time) -> bool {
        self.ask_at.is_some_and(|at| at <= now)
    }

    /// Asks the source for everything that is due, feeds what credit and pace allow.
    fn pump(&mut self, around: &mut Around<'_>, out: &mut FlowOut) {
        loop {
            let mut asked = 0;
            while asked < BATCH_PACKETS_MAX
                && (asked == 0 || self.splice.bytes() < self.queue_max)
                && self.ask_source(around, out)
            {
                asked += 1;
            }
            let fed = self.feed(around);
            let is_spent = self.splice.is_empty() && !self.is_due(around.now);
            if (asked == 0 && !fed) || is_spent {
                break;
            }
        }
    }

    /// Whether there is room for another unit of the source.
    fn takes_another(&self) -> bool {
        let waits_long = self.splice.bytes() >= self.queue_max;
        self.splice.has_room() && !(waits_long && self.source.chooses_late())
    }

    fn ask_source(&mut self, around: &mut Around<'_>, out: &mut FlowOut) -> bool {
        if !self.is_fed() || self.source_ended {
            // Who is not asked gives nothing in a row: the rest of a body is not kept for it.
            self.slab.end_row(around.pool);
            return false;
        }
        if !self.is_due(around.now) || !self.takes_another() {
            if self.splice.is_empty() {
                self.slab.end_row(around.pool);
            }
            return false;
        }
        let chain = self.splice.spare_chain();
        let layout = self.current.layout;
        let mut writer =
            UnitWriter::new(around.pool, &mut self.slab, layout, self.unit_len_max, chain);
        let answer = self.source.poll_unit(around.now, &mut writer);
        let (chain, len) = writer.finish();
        match answer {
            SourcePoll::Unit if !chain.is_empty() => {
                self.splice.push(chain, len.unwrap_or(0), layout);
                return true;
            }
            SourcePoll::Unit => self.fail(out, "the source said a unit and wrote none"),
            // A source that answers a time that is past must not hold the core.
            SourcePoll::Wait(at) => {
                self.ask_at = Some(at.max(around.now + Duration::from_micros(10)));
            }
            SourcePoll::Idle => self.ask_at = None,
            SourcePoll::Blocked => self.ask_at = Some(around.now + Duration::from_millis(1)),
            SourcePoll::End => self.source_ended = true,
            SourcePoll::Failed(text) => self.fail(out, &text),
        }
        self.slab.end_row(around.pool);
        self.free_chain(around.pool, chain);
        false
    }

    fn free_chain(&mut self, pool: &mut Pool, mut chain: Vec<Packet>) {
        chain.drain(..).for_each(|packet| pool.free(packet));
        self.splice.give_chain_back(chain);
    }

    fn fail(&mut self, out: &mut FlowOut, text: &str) {
        self.source_ended = true;
        let error = Error::new(Code::AccessFailed, text);
        self.failure = Some(error.clone());
        out.events.push(FlowEvent::Failed(error));
    }

    /// Feeds a batch of units that wait, and takes what the graph makes of them.
    fn feed(&mut self, around: &mut Around<'_>) -> bool {
        if !self.is_fed() {
            return false;
        }
        let (mut credit, mut count) = (self.current.runner.credit(), 0);
        let mut bytes = self.queue_bytes;
        while credit > 0 && count < BATCH_PACKETS_MAX && bytes < self.queue_max {
            let Ok(Some(mut unit)) = self.splice.pop(around.pool, &self.current.layout) else {
                break;
            };
            if let Some(hash) = &mut self.hash {
                let pieces = unit.chain.iter().flat_map(|packet| {
                    (0..packet.segment_count()).map(|index| around.pool.segment(packet, index))
                });
                hash.add(self.sent, unit.len, skip_bytes(pieces, unit::LEN));
            }
            self.sent += 1;
            self.sent_bytes += unit.len as u64;
            let packets: usize = unit.chain.iter().map(Packet::segment_count).sum();
            (credit, count, bytes) = (credit.saturating_sub(packets), count + 1, bytes + unit.len);
            self.current.feed(around, &mut unit.chain);
            self.splice.give_chain_back(unit.chain);
        }
        if count > 0 {
            self.current.runner.run(&mut around.surroundings());
            take_down(around.pool, &mut self.current, &mut self.queue, &mut self.queue_bytes);
        }
        count > 0
    }

    /// The next packet for the network, with its label, as far as the pace allows.
    pub fn poll_packet(&mut self, around: &mut Around<'_>, out: &mut FlowOut) -> Option<Packet> {
        if self.suspended {
            self.slab.end_row(around.pool);
            return None;
        }
        // What was handed over has been through the graph.
        let is_ready = self.splice.is_empty() && !self.queue.is_empty() && !self.is_due(around.now);
        if !is_ready || self.source_ended {
            self.pump(around, out);
            self.end_if_done(around, out);
        }
        let packet = match &mut self.bucket {
            None => self.queue.pop_front()?,
            Some(bucket) => take_paced(around, bucket, &mut self.queue)?,
        };
        self.queue_bytes -= packet.payload_len();
        Some(packet)
    }

    /// Says END once, when the source has ended and all of it is on its way.
    fn end_if_done(&mut self, around: &mut Around<'_>, out: &mut FlowOut) {
        let over = self.close_by.is_some_and(|at| at <= around.now);
        let sent = self.splice.is_empty() && self.queue.is_empty();
        let done = self.source_ended && (sent || over);
        if done && !self.end_sent {
            self.current.runner.drain(&mut around.surroundings());
            take_down(around.pool, &mut self.current, &mut self.queue, &mut self.queue_bytes);
            self.abort(Error::new(Code::Closed, "the flow ended"), out);
            self.send_end(out);
        }
    }

    /// The way to the receiver is gone: what waits is not sent, what was fed is accounted for by
    /// the receiver, which is told over the control connection.
    pub fn lose_way(&mut self, around: &mut Around<'_>, error: &Error, out: &mut FlowOut) {
        self.way_lost = true;
        if !self.end_sent {
            self.stop(around.now);
            self.source_ended = true;
            self.not_sent += self.splice.flush(around.pool) as u64;
            // One cause is reported once: a source that failed before has been.
            if self.failure.is_none() {
                out.events.push(FlowEvent::Failed(error.clone()));
            }
            self.failure.get_or_insert_with(|| error.clone());
            self.drop_queue(around.pool);
            self.end_if_done(around, out);
        }
        self.drop_queue(around.pool);
    }

    fn drop_queue(&mut self, pool: &mut Pool) {
        self.queue.drain(..).for_each(|packet| pool.free(packet));
        self.queue_bytes = 0;
    }

    fn send_end(&mut self, out: &mut FlowOut) {
        self.end_sent = true;
        let failure = self.failure.take();
        out.messages.push(Message::End(End {
            flow: self.id,
            epoch: self.current.number,
            units: self.sent,
            bytes: self.sent_bytes,
            hash: hash_bytes(self.hash.as_ref()),
            code: failure.as_ref().map_or(CODE_SUCCESS, |error| error.code as u16),
            text: failure.map_or_else(String::new, |error| error.text),
        }));
    }

    /// Ends the flow now: what waits is not sent, what was fed is accounted for.
    pub fn close(&mut self, around: &mut Around<'_>, out: &mut FlowOut) {
        self.stop(around.now);
        self.source_ended = true;
        self.not_sent += self.splice.flush(around.pool) as u64;
        self.close_by.get_or_insert(around.now + CLOSE_MAX);
        // What waits for the pace has been counted as sent; END follows it.
        self.end_if_done(around, out);
    }

    /// The receiver's account has come; false, and nothing is taken, when it does not add up.
    #[must_use]
    pub fn handle_report(
        &mut self,
        around: &mut Around<'_>,
        report: &Report,
        out: &mut FlowOut,
    ) -> bool {
        let ledger = ledger_from(self.sent, report);
        if !ledger.closes() {
            return false;
        }
        // It covers every epoch: END may have overtaken the DONE of the last change.
        self.destroy_old(around, out);
        let hash = self.hash.filter(|_| ledger.delivered == self.sent);
        let hash = hash.map(|hash| report.hash == hash.to_bytes());
        self.reported = true;
        out.events.push(FlowEvent::Ended { ledger, hash });
        true
    }

    /// The session ended abnormally: nobody can say what became of the units.
    pub fn give_up(&mut self, out: &mut FlowOut) {
        if !self.reported {
            self.reported = true;
            let mut ledger = Ledger { sent: self.sent, ..Ledger::default() };
            ledger.give_up();
            out.events.push(FlowEvent::Ended { ledger, hash: None });
        }
    }

    /// The number that the next epoch gets.
    pub fn next_epoch(&self) -> u64 {
        self.next_epoch
    }

    /// True when no change is going on and the flow has not ended.
    pub fn may_change(&self) -> bool {
        matches!(self.change, Change::None) && !self.end_sent
    }

    /// A change to this epoch was proposed to the receiver.
    pub fn prepare(&mut self, now: Time, built: Built, label_rx: u32) {
        let mut epoch = Box::new(TxEpoch::new(self.next_epoch, built, label_rx));
        epoch.cut_to(self.datagram_len);
        self.next_epoch += 1;
        self.change = Change::Prepared { epoch, deadline: now + PREPARE_MAX };
    }

    /// The receiver is ready: the next unit enters the new epoch. Returns its base, to be told.
    pub fn handle_ready(
        &mut self,
        around: &mut Around<'_>,
        number: u64,
        label: u32,
        rtt: Duration,
    ) -> Option<u64> {
        match &self.change {
            Change::Prepared { epoch, .. } if epoch.number == number => {}
            _ => return None,
        }
        let Change::Prepared { epoch, .. } = std::mem::replace(&mut self.change, Change::None)
        else {
            return None;
        };
        let mut old = std::mem::replace(&mut self.current, *epoch);
        self.current.label_tx = label;
        self.current.base = self.sent;
        self.end_old(around, &mut old);
        self.current.mark(around, Kind::Begin);
        take_down(around.pool, &mut self.current, &mut self.queue, &mut self.queue_bytes);
        self.change = Change::Draining {
            old: Box::new(old),
            ends: ENDS_AT_ONCE,
            next_end: around.now + end_every(rtt),
            deadline: around.now + DRAIN_MAX,
        };
        Some(self.sent)
    }

    fn end_old(&mut self, around: &mut Around<'_>, old: &mut TxEpoch) {
        old.runner.drain(&mut around.surroundings());
        for _ in 0..ENDS_AT_ONCE {
            old.mark(around, Kind::End);
        }
        take_down(around.pool, old, &mut self.queue, &mut self.queue_bytes);
    }

    /// The receiver cannot: stay.
    pub fn handle_cannot(&mut self, number: u64, error: Error, out: &mut FlowOut) {
        if matches!(&self.change, Change::Prepared { epoch, .. } if epoch.number == number) {
            self.abort_quietly(error, out);
        }
    }

    /// The receiver has settled an old epoch.
    pub fn handle_done(&mut self, around: &mut Around<'_>, number: u64, out: &mut FlowOut) {
        if matches!(&self.change, Change::Draining { old, .. } if old.number == number) {
            self.destroy_old(around, out);
        }
    }

    fn destroy_old(&mut self, around: &mut Around<'_>, out: &mut FlowOut) {
        if let Change::Draining { mut old, .. } = std::mem::replace(&mut self.change, Change::None)
        {
            old.runner.flush(&mut around.surroundings());
            out.events.push(FlowEvent::Retire(old.label_rx));
            out.events.push(FlowEvent::Changed { epoch: self.current.number });
        }
    }

    /// Takes a proposed change back and tells the receiver.
    fn abort(&mut self, error: Error, out: &mut FlowOut) {
        if let Change::Prepared { epoch, .. } = &self.change {
            let abort = dacapo_wire::change::Abort { flow: self.id, epoch: epoch.number };
            out.messages.push(Message::Abort(abort));
            self.abort_quietly(error, out);
        }
    }

    fn abort_quietly(&mut self, error: Error, out: &mut FlowOut) {
        if let Change::Prepared { epoch, .. } = std::mem::replace(&mut self.change, Change::None) {
            out.events.push(FlowEvent::Retire(epoch.label_rx));
            out.events.push(FlowEvent::ChangeFailed(error));
        }
    }

    /// A packet that the receiver's modules sent back for one of our epochs.
    pub fn handle_packet(&mut self, around: &mut Around<'_>, number: u64, packet: Packet) {
        let epoch = match &mut self.change {
            Change::Draining { old, .. } if old.number == number => old,
            _ if self.current.number == number => &mut self.current,
            _ => return around.pool.free(packet),
        };
        epoch.runner.handle_up(&mut around.surroundings(), packet);
        epoch.runner.run(&mut around.surroundings());
        // Feedback ends at our modules; what still comes up is nobody's.
        let stray: Vec<Packet> = epoch.runner.take_up().drain().collect();
        stray.into_iter().for_each(|packet| around.pool.free(packet));
        take_down(around.pool, epoch, &mut self.queue, &mut self.queue_bytes);
        if self.way_lost {
            self.drop_queue(around.pool);
        }
    }

    pub fn control_module(
        &mut self,
        around: &mut Around<'_>,
        index: usize,
        message: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let answer = self.current.runner.control(&mut around.surroundings(), index, message);
        answer.map_err(|error| Error::new(Code::Refused, error.to_string()))
    }

    /// `may_send` is false while nobody knows where to: then nothing is asked of the source, and it
    /// must not wake anybody either.
    pub fn next_deadline(&self, now: Time, may_send: bool) -> Option<Time> {
        let may_send = may_send && !self.suspended;
        let mut next = self.current.runner.next_deadline();
        if may_send && self.running && !self.source_ended && self.takes_another() {
            next = earlier(next, self.ask_at);
        }
        if may_send && !self.queue.is_empty() {
            let ready_at = |it: &TokenBucket| it.ready_at(now, wanted(it, self.queue.front()));
            let ready_at = self.bucket.as_ref().map_or(now, ready_at);
            next = earlier(next, Some(ready_at));
        }
        if !self.end_sent {
            next = earlier(next, self.close_by);
        }
        match &self.change {
            Change::None => {}
            Change::Prepared { deadline, .. } => next = earlier(next, Some(*deadline)),
            Change::Draining { old, ends, next_end, deadline } => {
                next = earlier(next, old.runner.next_deadline());
                let end = if *ends < ENDS_MAX { *next_end } else { *deadline };
                next = earlier(next, Some(end));
            }
        }
        next
    }

    pub fn handle_timeout(&mut self, around: &mut Around<'_>, rtt: Duration, out: &mut FlowOut) {
        if self.close_by.is_some_and(|at| at <= around.now) {
            self.end_if_done(around, out);
        }
        self.current.runner.handle_timeout(&mut around.surroundings());
        take_down(around.pool, &mut self.current, &mut self.queue, &mut self.queue_bytes);
        match &mut self.change {
            Change::Prepared { deadline, .. } if *deadline <= around.now => {
                self.abort(Error::new(Code::NoAnswer, "the receiver was not ready in 5 s"), out);
            }
            Change::Draining { deadline, .. } if *deadline <= around.now => {
                self.destroy_old(around, out);
            }
            Change::Draining { old, ends, next_end, .. } => {
                old.runner.handle_timeout(&mut around.surroundings());
                if *ends < ENDS_MAX && *next_end <= around.now {
                    old.mark(around, Kind::End);
                    *ends += 1;
                    *next_end = around.now + end_every(rtt);
                }
                take_down(around.pool, old, &mut self.queue, &mut self.queue_bytes);
            }
            Change::None | Change::Prepared { .. } => {}
        }
        if self.way_lost {
            self.drop_queue(around.pool);
        }
    }

    /// This end did not run for so long: that does not count.
    pub fn shift(&mut self, by: Duration) {
        self.close_by.iter_mut().for_each(|at| *at += by);
        match &mut self.change {
            Change::None => {}
            Change::Prepared { deadline, .. } | Change::Draining { deadline, .. } => {
                *deadline += by;
            }
        }
    }

    /// The labels that this end gave out for the flow.
    pub fn labels(&self) -> Vec<u32> {
        let mut labels = vec![self.current.label_rx];
        match &self.change {
            Change::None => {}
            Change::Prepared { epoch, .. } => labels.push(epoch.label_rx),
            Change::Draining { old, .. } => labels.push(old.label_rx),
        }
        labels
    }

    /// Gives every view back.
    pub fn flush(&mut self, around: &mut Around<'_>) {
        self.slab.end_row(around.pool);
        self.not_sent += self.splice.flush(around.pool) as u64;
        self.current.runner.flush(&mut around.surroundings());
        if let Change::Draining { old, .. } = &mut self.change {
            old.runner.flush(&mut around.surroundings());
        }
        self.change = Change::None;
        self.drop_queue(around.pool);
    }
}

fn end_every(rtt: Duration) -> Duration {
    (rtt / 4).max(END_EVERY_MIN)
}

/// Moves what a graph has for the network to the queue, with the epoch's label in front. Below the
/// graph nobody looks at units: those that lie one behind the other become a train.
fn take_down(
    pool: &mut Pool,
    epoch: &mut TxEpoch,
    queue: &mut VecDeque<Packet>,
    bytes: &mut usize,
) {
    let header = data::Header { label: epoch.label_tx }.emit();
    for mut packet in epoch.runner.take_down().drain() {
        if pool.put_head(&mut packet, |_| header).is_err() {
            // Cannot be: the layout reserves these bytes. Better lost than a loop.
            pool.free(packet);
            continue;
        }
        *bytes += packet.payload_len();
        let packet = match queue.back_mut() {
            Some(last) if fit_one_train(last, &packet) => pool.join_any(last, packet).err(),
            _ => Some(packet),
        };
        queue.extend(packet);
    }
}

fn fit_one_train(one: &Packet, next: &Packet) -> bool {
    one.segment_count() + next.segment_count() <= TRAIN_SEGMENTS_MAX
        && one.payload_len() + next.payload_len() <= TRAIN_BYTES_MAX
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
