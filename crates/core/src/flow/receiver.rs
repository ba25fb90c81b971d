//! [`ReceiverFlow`]: a flow at the end that receives.
//!
//! What it is: the epochs whose labels are out, the numbers of units over them, the sink, and the
//! ledger. What it is not: the control connection; messages go out through [`FlowOut`].
//!
//! An ordered flow holds the units of a new epoch until the one before is settled: all its units
//! passed on or booked lost. It is settled when nothing is missing, when its last mark came in
//! order, when the rest was waited for long enough ([`rest`](crate::flow::rest)), or when no more
//! can be held. Over a reliable transport what is missing is on its way: nothing is booked lost
//! while the way is there and something comes.
//!
//! Invariants: a unit number is passed on or booked lost, once; at most [`EPOCHS_MAX`] epochs live,
//! and `held_units_max` units are held with what a graph gives at once; at the end the ledger
//! closes.

use crate::error::{Error, Fault};
use crate::flow::epoch::{Arrived, RxEpoch, Up};
use crate::flow::intake::{Accept, Intake};
use crate::flow::rest::{Behind, end_wait};
use crate::flow::sender::{FlowEvent, FlowOut};
use crate::flow::{Around, Terms, earlier, hash_bytes};
use crate::ledger::{Ledger, UnitHash};
use crate::port::{Ending, Sink, Taken, UnitView};
use crate::queues::Queues;
use dacapo_base::Time;
use dacapo_packet::Packet;
use dacapo_path::ClockOffset;
use dacapo_wire::change::Done;
use dacapo_wire::data;
use dacapo_wire::message::Message;
use dacapo_wire::session::{CODE_SUCCESS, End, Report};
use dacapo_wire::unit::{Kind, Mark};
use std::collections::VecDeque;
use std::time::Duration;

/// The most epochs that live at a time: one that ends, one that runs, one that is prepared.
pub(crate) const EPOCHS_MAX: usize = 3;

/// The most units of a flow: what a peer says beyond is no number of a unit.
pub(crate) const UNITS_MAX: u64 = 1 << 56;

/// Over a reliable transport the rest is waited for until nothing has come for so long.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The same once the session closes: well below what CLOSE waits.
const CLOSE_MAX: Duration = Duration::from_secs(8);

/// How long END is waited for when the way is gone; a sender whose stream does not open says it
/// after 10 s.
const LOST_END_MAX: Duration = Duration::from_secs(15);

/// What the path knows of its times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTimes {
    pub rtt: Duration,
    /// By how much the round trips of the last while differed.
    pub variation: Duration,
    /// Contact is lost: what is on its way over a reliable transport cannot come now.
    pub is_lost: bool,
}

pub(crate) struct ReceiverFlow {
    id: u16,
    sink: Box<dyn Sink>,
    epochs: VecDeque<RxEpoch>,
    intake: Intake,
    ledger: Ledger,
    /// Where one was agreed.
    hash: Option<UnitHash>,
    end: Option<(End, Time)>,
    /// What is sent arrives, while the way is there.
    reliable: bool,
    /// The session closes; what is missing is waited for until then at most.
    close_by: Option<Time>,
    /// The way is gone, and why; END is waited for until then.
    way_lost: Option<(Error, Time)>,
    /// The application knows that the flow failed: one cause is reported once.
    failure_told: bool,
    finished: bool,
    reported: bool,
    sink_at: Option<Time>,
    feedback: VecDeque<Packet>,
    taken: VecDeque<Packet>,
    queues: Queues,
    /// The units before this one, of a flow that was joined while it ran, are not for this end;
    /// numbers count from here.
    first: u64,
}

impl ReceiverFlow {
    pub fn new(
        terms: Terms,
        sink: Box<dyn Sink>,
        mut epoch: RxEpoch,
        reliable: bool,
        now: Time,
        queues: Queues,
    ) -> Self {
        epoch.base = Some((0, now));
        Self {
            id: terms.id,
            sink,
            epochs: VecDeque::from([epoch]),
            intake: Intake::default(),
            ledger: Ledger::default(),
            hash: terms.hash(),
            end: None,
            reliable,
            close_by: None,
            way_lost: None,
            failure_told: false,
            finished: false,
            reported: false,
            sink_at: Some(now),
            feedback: VecDeque::new(),
            taken: VecDeque::new(),
            queues,
            first: 0,
        }
    }

    /// The flow runs already, and `first` units were fed before this end takes part: to be said
    /// before anything comes.
    pub fn join_at(&mut self, first: u64) {
        self.first = first;
        if let Some(epoch) = self.epochs.front_mut().filter(|_| first > 0) {
            epoch.join_at(first);
        }
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// True while units may still come.
    pub fn is_live(&self) -> bool {
        !self.finished && self.way_lost.is_none()
    }

    /// True when it does nothing unless something touches it, or its deadline comes.
    pub fn may_rest(&self) -> bool {
        let waits = self.end.is_some() || self.way_lost.is_some() || self.epochs.len() > 1;
        (self.finished || !waits) && self.feedback.is_empty() && self.taken.is_empty()
    }

    pub fn newest(&self) -> Option<&RxEpoch> {
        self.epochs.back()
    }

    pub fn set_label_tx(&mut self, label: u32) {
        if let Some(epoch) = self.epochs.back_mut() {
            epoch.label_tx = label;
        }
    }

    pub fn handle_clock(&mut self, offset: ClockOffset) {
        self.sink.handle_clock(offset);
    }

    /// True when another epoch may be prepared.
    pub fn may_prepare(&self, number: u64) -> bool {
        let after = self.epochs.back().is_none_or(|last| last.number < number);
        after && self.epochs.len() < EPOCHS_MAX && self.end.is_none() && !self.finished
    }

    pub fn prepare(&mut self, epoch: RxEpoch) {
        self.epochs.push_back(epoch);
    }

    /// The sender takes a prepared epoch back.
    pub fn handle_abort(&mut self, around: &mut Around<'_>, number: u64, out: &mut FlowOut) {
        let at = self.epochs.iter().position(|epoch| epoch.number == number);
        // Only one that has carried nothing can be taken back.
        let Some(at) = at.filter(|&at| at > 0 && self.epochs[at].base.is_none()) else { return };
        if let Some(mut epoch) = self.epochs.remove(at) {
            epoch.flush(around);
            out.events.push(FlowEvent::Retire(epoch.label_rx));
        }
    }

    /// The sender says where a new epoch begins.
    pub fn handle_switched(
        &mut self,
        around: &mut Around<'_>,
        number: u64,
        base: u64,
        path: PathTimes,
        out: &mut FlowOut,
    ) {
        self.learn_base(around.now, number, base);
        self.advance(around, path, out);
    }

    fn learn_base(&mut self, now: Time, number: u64, base: u64) {
        // Epochs begin in the order of their numbers.
        let known = |epoch: &RxEpoch| epoch.base.map(|(base, _)| base);
        let before = self.epochs.iter().filter(|epoch| epoch.number < number);
        let after = self.epochs.iter().filter(|epoch| epoch.number > number);
        let lowest = before.filter_map(known).max().unwrap_or(0);
        let highest = after.filter_map(known).min().unwrap_or(UNITS_MAX);
        if let Some(epoch) = self.epochs.iter_mut().find(|epoch| epoch.number == number)
            && epoch.base.is_none()
            && (lowest..=highest).contains(&base)
        {
            epoch.base = Some((base, now));
        }
    }

    /// A packet with one of our labels.
    pub fn handle_packet(
        &mut self,
        around: &mut Around<'_>,
        number: u64,
        mut packet: Packet,
        path: PathTimes,
        out: &mut FlowOut,
    ) {
        let at = self.epochs.iter().position(|epoch| epoch.number == number);
        let Some(at) = at.filter(|_| !self.finished) else { return around.pool.free(packet) };
        if let Some((_, deadline)) = self.end.as_mut().filter(|_| self.reliable) {
            *deadline = around.now + SILENCE_MAX;
        }
        packet.set_unit_ends(true, true);
        // What was sent before it has left the sender, too.
        self.epochs.iter_mut().take(at).for_each(|old| old.rest.note_left(around.now));
        let runner = &mut self.epochs[at].runner;
        runner.handle_up(&mut around.surroundings(), packet);
        runner.run(&mut around.surroundings());
        self.process(around, at);
        self.advance(around, path, out);
        self.ask_sink(around.now);
    }

    /// Asks the sink when it is due.
    fn ask_sink(&mut self, now: Time) {
        if !self.finished && self.sink_at.is_some_and(|at| at <= now) {
            // A sink that answers a time that is past must not hold the core.
            let soonest = now + Duration::from_micros(10);
            self.sink_at = self.sink.handle_timeout(now).map(|at| at.max(soonest));
        }
    }

    /// Passes on what an epoch's graph has for us, up and down.
    fn process(&mut self, around: &mut Around<'_>, at: usize) {
        let epoch = &mut self.epochs[at];
        self.taken.extend(epoch.runner.take_up().drain());
        if !epoch.runner.take_down().is_empty() {
            let header = data::Header { label: epoch.label_tx }.emit();
            let down: Vec<Packet> = epoch.runner.take_down().drain().collect();
            for packet in down {
                self.send_back(around, packet, header);
            }
        }
        while let Some(up) = self.epochs[at].poll_up(around, &mut self.taken) {
            match up {
                Up::Data(arrived) => self.handle_arrived(around, at, arrived),
                Up::Mark(kind, mark) => self.handle_mark(around.now, at, kind, mark),
            }
        }
    }

    fn send_back(&mut self, around: &mut Around<'_>, mut packet: Packet, header: [u8; data::LEN]) {
        let room = around.pool.push_head(&mut packet, data::LEN).is_ok();
        if !room || self.feedback.len() >= self.queues.feedback_packets_max {
            return around.pool.free(packet);
        }
        for index in 0..packet.segment_count() {
            around.pool.head_mut(&packet, index, data::LEN).copy_from_slice(&header);
        }
        self.feedback.push_back(packet);
    }

    /// Whether there is one.
    pub fn has_feedback(&self) -> bool {
        !self.feedback.is_empty()
    }

    /// The next packet for the sender's modules.
    pub fn poll_packet(&mut self) -> Option<Packet> {
        self.feedback.pop_front()
    }

    fn handle_mark(&mut self, now: Time, at: usize, kind: Kind, mark: Mark) {
        match kind {
            Kind::Begin => self.learn_base(now, mark.epoch, mark.number),
            _ => {
                self.epochs[at].ended = true;
                self.epochs[at].rest.note_left(now);
                let next = self.epochs.get(at + 1).map(|next| next.number);
                if let (Some((base, _)), Some(next)) = (self.epochs[at].base, next) {
                    self.learn_base(now, next, base.saturating_add(mark.number));
                }
            }
        }
    }

    fn handle_arrived(&mut self, around: &mut Around<'_>, at: usize, mut arrived: Arrived) {
        let may_come = self.rest_may_come();
        let epoch = &mut self.epochs[at];
        let may_pass = epoch.base.is_some() && (at == 0 || !epoch.ordered);
        if may_pass {
            return self.pass(around, at, arrived);
        }
        // What a graph gives at once has room: the epoch before is settled then.
        let is_settled_soon = at == 1 && epoch.base.is_some() && !may_come;
        if is_settled_soon || epoch.held.len() < self.queues.held_units_max {
            epoch.held.push_back(arrived);
        } else {
            // It will be booked lost when its turn comes.
            arrived.chain.free(around.pool);
        }
    }

    /// Gives a unit to the sink, if it is the first with its number.
    fn pass(&mut self, around: &mut Around<'_>, at: usize, mut arrived: Arrived) {
        let base = self.epochs[at].base.map_or(0, |(base, _)| base);
        let Some(place) = arrived.place.checked_sub(self.first) else {
            // Fed before this end took part.
            return arrived.chain.free(around.pool);
        };
        let number = base.saturating_add(place);
        if self.end.as_ref().is_some_and(|(end, _)| number >= end.units) {
            // The sender has said that there is no such unit.
            return arrived.chain.free(around.pool);
        }
        match self.intake.accept(number) {
            Accept::New => self.pass_new(around, at, number, &arrived),
            Accept::Duplicate => self.ledger.duplicates += 1,
            Accept::AfterLost => self.ledger.after_lost += 1,
            Accept::Absurd => {}
        }
        arrived.chain.free(around.pool);
    }

    fn pass_new(&mut self, around: &mut Around<'_>, at: usize, number: u64, arrived: &Arrived) {
        let mut lost = Vec::new();
        if self.epochs[at].ordered {
            self.intake.settle(number, &mut lost);
            self.book_lost(around.now, &mut lost);
        }
        let unit =
            UnitView { pool: around.pool, chain: &arrived.chain, number, arrived: arrived.time };
        let len = unit.len();
        match self.sink.handle_unit(around.now, &unit) {
            Taken::Delivered => {
                if let Some(hash) = &mut self.hash {
                    hash.add(self.first.saturating_add(number), len, unit.pieces());
                }
                self.ledger.delivered += 1;
                self.ledger.bytes += len as u64;
                self.epochs[at].delivered += 1;
            }
            Taken::Late => self.ledger.late += 1,
            Taken::Dropped(reason) => self.ledger.dropped[reason.index()] += 1,
        }
        self.sink_at = Some(around.now);
        if self.epochs.len() > 1 {
            self.epochs[at].rest.note_came(around.now);
        }
        self.intake.close(number, &mut lost);
        self.book_lost(around.now, &mut lost);
        self.ledger.sent = self.ledger.sent.max(self.intake.seen());
    }

    fn book_lost(&mut self, now: Time, lost: &mut Vec<std::ops::Range<u64>>) {
        for range in lost.drain(..) {
            let count = range.end - range.start;
            self.ledger.lost += count;
            self.sink.handle_lost(now, range.start, count);
            self.sink_at = Some(now);
        }
        self.ledger.sent = self.ledger.sent.max(self.intake.seen());
    }

    /// Settles old epochs as far as that can be done now, and ends the flow when all is accounted
    /// for.
    fn advance(&mut self, around: &mut Around<'_>, path: PathTimes, out: &mut FlowOut) {
        self.release(around);
        while let Some((base, _)) = self.epochs.get(1).and_then(|next| next.base) {
            let old = &self.epochs[0];
            let complete = self.intake.floor() >= base;
            let in_order = old.ordered && old.ended;
            if !complete && !in_order && !self.rest_is_over(around.now, path) {
                break;
            }
            self.settle_first(around, base, out);
        }
        let all = self.end.as_ref().is_some_and(|(end, _)| self.intake.floor() >= end.units);
        if all {
            self.finish(around, out);
        }
    }

    /// Whether what is missing of the first epoch is waited for no longer.
    fn rest_is_over(&self, now: Time, path: PathTimes) -> bool {
        if self.rest_may_come() {
            return false;
        }
        // Those that are held have come, and what they wait for may not: better that is lost than
        // they are.
        let full = self.queues.held_units_max;
        let is_full = self.epochs.get(1).is_some_and(|next| next.held.len() >= full);
        let is_over = self.rest_over_at(path).is_some_and(|at| at <= now);
        is_full || is_over || self.way_lost.is_some()
    }

    /// When that is, if only time passes.
    fn rest_over_at(&self, path: PathTimes) -> Option<Time> {
        let (old, next) = (self.epochs.front()?, self.epochs.get(1)?);
        let (_, base_at) = next.base.filter(|_| !self.rest_may_come())?;
        let (old_waits, next_waits) = (old.runner.patience(), next.runner.patience());
        let (behind, modules) = match next.ordered {
            // Who bears that its own modules wait so long bears it here.
            true => (Behind::Order, old_waits.max(next_waits)),
            false => (Behind::Nobody, old_waits),
        };
        old.rest.over_at(base_at, path, modules, behind)
    }

    /// Passes on what waits in epochs that need not wait any more.
    fn release(&mut self, around: &mut Around<'_>) {
        for at in 0..self.epochs.len() {
            let epoch = &mut self.epochs[at];
            if epoch.base.is_some() && (at == 0 || !epoch.ordered) && !epoch.held.is_empty() {
                for arrived in std::mem::take(&mut epoch.held) {
                    self.pass(around, at, arrived);
                }
            }
        }
    }

    /// The first epoch is over: what it still holds goes up, the rest of it is lost.
    fn settle_first(&mut self, around: &mut Around<'_>, base: u64, out: &mut FlowOut) {
        self.drain(around, 0);
        let mut lost = Vec::new();
        self.intake.settle(base, &mut lost);
        self.book_lost(around.now, &mut lost);
        let Some(mut old) = self.epochs.pop_front() else { return };
        old.flush(around);
        let first = old.base.map_or(0, |(base, _)| base);
        out.messages.push(Message::Done(Done {
            flow: self.id,
            epoch: old.number,
            delivered: old.delivered,
            lost: base.saturating_sub(first).saturating_sub(old.delivered),
        }));
        out.events.push(FlowEvent::Retire(old.label_rx));
        if let Some(current) = self.epochs.front() {
            out.events.push(FlowEvent::Changed { epoch: current.number });
        }
        self.release(around);
    }

    fn drain(&mut self, around: &mut Around<'_>, at: usize) {
        self.epochs[at].runner.drain(&mut around.surroundings());
        self.process(around, at);
    }

    /// Over a reliable transport what is missing is on its way, however late.
    fn rest_may_come(&self) -> bool {
        self.reliable && self.way_lost.is_none()
    }

    /// The sender says how much there was in all.
    pub fn handle_end(
        &mut self,
        around: &mut Around<'_>,
        end: End,
        path: PathTimes,
        out: &mut FlowOut,
    ) {
        if self.end.is_some() || self.reported {
            return;
        }
        if self.finished {
            // It was given up before; who sends it learns what came.
            return self.report(&end, out);
        }
        let patience: Duration = self.epochs.iter().map(|epoch| epoch.runner.patience()).sum();
        let wait = if self.rest_may_come() { SILENCE_MAX } else { end_wait(path, patience) };
        self.end = Some((end, around.now + wait));
        self.advance(around, path, out);
        if self.way_lost.is_some() {
            self.finish(around, out);
        }
    }

    /// The session closes: the rest is not waited for without end.
    pub fn close_soon(&mut self, now: Time) {
        self.close_by.get_or_insert(now + CLOSE_MAX);
    }

    /// Whether the sink takes more.
    pub fn has_room(&self) -> bool {
        self.sink.has_room()
    }

    /// The sink has room again, or contact is back: what is on its way has its time anew.
    pub fn go_on(&mut self, now: Time) {
        self.epochs.iter_mut().for_each(|epoch| epoch.rest.note_came(now));
        if let Some((_, deadline)) = &mut self.end {
            *deadline = (*deadline).max(now + SILENCE_MAX);
        }
    }

    /// This end did not run for so long: that does not count.
    pub fn shift(&mut self, by: Duration) {
        let end = self.end.as_mut().map(|(_, at)| at);
        let way_lost = self.way_lost.as_mut().map(|(_, at)| at);
        end.into_iter().chain(way_lost).chain(&mut self.close_by).for_each(|at| *at += by);
        self.epochs.iter_mut().for_each(|epoch| epoch.rest.shift(by));
    }

    /// When the flow is over whatever is missing, once the sender has said END.
    fn end_by(&self, path: PathTimes) -> Option<Time> {
        let (_, deadline) = self.end.as_ref()?;
        let close_by = self.close_by.filter(|_| self.reliable);
        if self.reliable && (path.is_lost || !self.sink.has_room()) {
            // It is this end that is waited for, or the way.
            return close_by;
        }
        Some(close_by.map_or(*deadline, |at| at.min(*deadline)))
    }

    /// The way from the sender is gone: what has not come will not.
    pub fn lose_way(&mut self, around: &mut Around<'_>, error: &Error, out: &mut FlowOut) {
        if self.finished || self.way_lost.is_some() {
            return;
        }
        self.way_lost = Some((error.clone(), around.now + LOST_END_MAX));
        // A sender that has lost the way has said so in its END.
        if self.end.as_ref().is_none_or(|(end, _)| end.code == CODE_SUCCESS) {
            self.failure_told = true;
            out.events.push(FlowEvent::Failed(error.clone()));
        }
        if self.end.is_some() {
            self.finish(around, out);
        }
    }

    /// Ends the flow: everything that is here goes up, the rest is booked, the sender gets the
    /// account.
    fn finish(&mut self, around: &mut Around<'_>, out: &mut FlowOut) {
        if self.finished {
            return;
        }
        let Some((end, _)) = self.end.clone() else { return };
        let failure = (end.code != CODE_SUCCESS).then(|| Error::from_peer(end.code, &end.text));
        let ending = match failure.as_ref().or(self.way_lost.as_ref().map(|(error, _)| error)) {
            None => Ending::Complete,
            Some(error) if error.fault() == Fault::Network => Ending::Abnormal(error.to_string()),
            Some(error) => Ending::SourceFailed(error.to_string()),
        };
        for at in 0..self.epochs.len() {
            self.drain(around, at);
            if self.epochs[at].base.is_some() {
                self.pass_held(around, at);
            }
        }
        let mut lost = Vec::new();
        self.intake.settle(end.units, &mut lost);
        self.book_lost(around.now, &mut lost);
        self.ledger.end(end.units);
        self.close(around, &ending, out);
        if !self.failure_told {
            out.events.extend(failure.map(FlowEvent::Failed));
        }
        self.report(&end, out);
    }

    /// Gives the sender the account.
    fn report(&mut self, end: &End, out: &mut FlowOut) {
        self.reported = true;
        // The sender's sum closes whatever has come here beyond what it says there was.
        let mut left = end.units;
        let mut take = |count: u64| {
            let taken = count.min(left);
            left -= taken;
            taken
        };
        let ledger = &self.ledger;
        let (delivered, late, lost) =
            (take(ledger.delivered), take(ledger.late), take(ledger.lost));
        let dropped = ledger.dropped.iter().enumerate().filter(|(_, count)| **count > 0);
        let dropped = dropped.map(|(code, count)| (code as u8, take(*count))).collect();
        out.messages.push(Message::Report(Report {
            flow: self.id,
            delivered,
            late,
            lost,
            dropped,
            duplicates: ledger.duplicates,
            // What was sent after this end had given up is unknown too.
            unknown: left,
            bytes: ledger.bytes,
            hash: hash_bytes(self.hash.as_ref()),
        }));
    }

    fn pass_held(&mut self, around: &mut Around<'_>, at: usize) {
        for arrived in std::mem::take(&mut self.epochs[at].held) {
            self.pass(around, at, arrived);
        }
    }

    /// The session ended without the sender's account: what is here goes up, the rest is unknown.
    pub fn give_up(&mut self, around: &mut Around<'_>, ending: &Ending, out: &mut FlowOut) {
        if self.finished {
            return;
        }
        for at in 0..self.epochs.len() {
            self.drain(around, at);
            if self.epochs[at].base.is_some() {
                self.pass_held(around, at);
            }
        }
        self.ledger.sent = self.ledger.sent.max(self.intake.seen());
        self.ledger.sent_at_least = self.end.is_none();
        self.ledger.give_up();
        self.close(around, ending, out);
    }

    fn close(&mut self, around: &mut Around<'_>, ending: &Ending, out: &mut FlowOut) {
        self.finished = true;
        self.sink.finish(around.now, ending, &self.ledger);
        let hash = self.end.as_ref().zip(self.hash).and_then(|((end, _), hash)| {
            (self.ledger.delivered == end.units).then(|| end.hash == hash.to_bytes())
        });
        out.events.push(FlowEvent::Ended { ledger: self.ledger.clone(), hash });
        self.flush(around);
    }

    pub fn next_deadline(&self, path: PathTimes) -> Option<Time> {
        let mut next = if self.finished { None } else { self.sink_at };
        for epoch in &self.epochs {
            next = earlier(next, epoch.runner.next_deadline());
        }
        next = earlier(next, self.rest_over_at(path));
        if self.finished {
            return next;
        }
        let give_up = self.way_lost.as_ref().map(|(_, at)| *at).filter(|_| self.end.is_none());
        earlier(next, earlier(self.end_by(path), give_up))
    }

    pub fn handle_timeout(&mut self, around: &mut Around<'_>, path: PathTimes, out: &mut FlowOut) {
        for at in 0..self.epochs.len() {
            self.epochs[at].runner.handle_timeout(&mut around.surroundings());
            self.process(around, at);
        }
        self.advance(around, path, out);
        if self.finished {
            return;
        }
        self.ask_sink(around.now);
        if self.end_by(path).is_some_and(|at| at <= around.now) {
            self.finish(around, out);
        }
        let lost = self.way_lost.as_ref().filter(|(_, at)| *at <= around.now);
        if let Some((error, _)) = lost.filter(|_| self.end.is_none()) {
            let ending = Ending::Abnormal(error.to_string());
            self.give_up(around, &ending, out);
        }
    }

    pub fn control_module(
        &mut self,
        around: &mut Around<'_>,
        index: usize,
        message: &[u8],
    ) -> Result<Vec<u8>, dacapo_lift::ControlError> {
        let Some(epoch) = self.epochs.back_mut() else {
            return Err(dacapo_lift::ControlError::Unknown);
        };
        epoch.runner.control(&mut around.surroundings(), index, message)
    }

    /// The labels that this end gave out for the flow.
    pub fn labels(&self) -> Vec<u32> {
        self.epochs.iter().map(|epoch| epoch.label_rx).collect()
    }

    /// Gives every view back.
    pub fn flush(&mut self, around: &mut Around<'_>) {
        self.epochs.iter_mut().for_each(|epoch| epoch.flush(around));
        for packet in self.feedback.drain(..).chain(self.taken.drain(..)) {
            around.pool.free(packet);
        }
    }
}
