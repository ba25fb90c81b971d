//! Bytes of the application: [`RawSender`] feeds a flow, [`RawReceiver`] reads one.
//!
//! ```text
//!   RawSender::send --> queue --> source … flow … sink --> queue --> RawReceiver::try_recv
//!                      bounded                             bounded
//! ```
//!
//! Instead of units a sender can feed a flow with messages ([`RawSender::begin_messages`]): these
//! become units only when the flow takes one.
//!
//! A sender whose queue is full gets its unit back. A receiver that does not read loses units,
//! which the ledger books as `overflow`, unless it has promised to wake the core
//! ([`RawReceiver::promise_wake`]): then its flow, which must go over a stream, is held up. Of a
//! flow whose newest unit is to arrive those that wait longest make room for it.
//!
//! An empty source is asked again after [`ASK_EVERY`], or, when its sender has promised that
//! somebody calls `Core::wake` after every unit and at the end ([`RawSender::promise_wake`]), only
//! then.
//!
//! Invariants: at most [`UNITS_MAX`] units wait to be sent and [`UNREAD_MAX`] to be read, each at
//! most [`BYTES_MAX`] bytes, or one unit if it is larger; of the memory of units that are gone at
//! most as much is kept; a long unit is not copied where the core can lend its packets; units keep
//! their boundaries; the flow ends when its senders are gone and the queue is empty; what has
//! arrived can be read after the end.

mod messages;
mod queue;
mod unit;

use super::entry::{AccessEntry, AccessSpec, Carries};
use super::found::Found;
use super::progress::Progress;
use crate::command::{Answer, MediaCommand, State};
use dacapo_base::Time;
use dacapo_core::{
    BeginError, CommandError, Ending, Ledger, Sink, Source, SourcePoll, Taken, UnitView, UnitWriter,
};
use dacapo_lift::DropReason;
use dacapo_packet::Loan;
use dacapo_sys::process::Birth;
use dacapo_wire::attribute::{AttributeForm, key};
use dacapo_wire::session::FlowOffer;
use queue::{Queue, lock};
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

pub use messages::{MessageError, SendMessageError};
pub use unit::RawUnit;

/// What the catalogue is told.
pub static SPEC: AccessSpec = AccessSpec {
    name: "raw",
    id: 0x0003,
    summary: "bytes that the application sends and receives itself",
    sends: true,
    takes: true,
    carries: &[Carries::Bytes],
    params: &[],
};

/// The catalogue's entry.
#[must_use]
pub fn entries() -> Vec<AccessEntry> {
    vec![AccessEntry::new(&SPEC, |_| Ok(Found::raw()))]
}

/// The most units that wait to be sent.
pub const UNITS_MAX: usize = 256;

/// The most units that wait to be read: more than one turn of the loop brings, which is 1,024
/// packets of each socket.
pub const UNREAD_MAX: usize = 4_096;

/// The most bytes that wait, but for a single larger unit.
pub const BYTES_MAX: usize = 4 << 20;

/// How often an empty source is asked again, when nobody has promised to wake it.
pub const ASK_EVERY: Duration = Duration::from_millis(1);

/// A unit that was not taken, given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawSendError {
    /// The queue is full: try again later.
    Full(Vec<u8>),
    /// The flow has ended.
    Closed(Vec<u8>),
}

impl fmt::Display for RawSendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("the flow takes no more units now; try again later"),
            Self::Closed(_) => f.write_str("the flow has ended"),
        }
    }
}

impl std::error::Error for RawSendError {}

/// Feeds a flow with units, alone or with others; the flow ends when all of them are dropped, or
/// have left or finished. Those who wait to be taken in hold it open only while nobody has finished
/// it.
#[derive(Debug)]
pub struct RawSender {
    queue: Arc<Mutex<Queue>>,
    part: Part,
}

/// The part that a sender has in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// It is counted among the senders.
    Sends,
    /// It is counted among those who wait.
    Waits,
    /// It puts nothing in any more, and is not counted.
    Finished,
}

/// Finds the queue of a [`RawSender`] again; it does not keep the flow from ending.
#[derive(Clone, Debug)]
pub struct RawShare(Weak<Mutex<Queue>>);

impl RawShare {
    /// One more sender that feeds the flow, which has finished if the flow has; `None` when nothing
    /// is left of the flow.
    #[must_use]
    pub fn sender(&self) -> Option<RawSender> {
        let queue = self.0.upgrade()?;
        let mut its = lock(&queue);
        let part = if its.is_finished { Part::Finished } else { Part::Sends };
        its.senders += usize::from(part == Part::Sends);
        its.is_shared = true;
        drop(its);
        Some(RawSender { queue, part })
    }

    /// Whether nothing is left of the flow.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl RawSender {
    /// A sender and the source that it feeds.
    #[must_use]
    pub fn pair() -> (Self, RawSource) {
        let queue = Arc::new(Mutex::new(Queue::of_a_sender()));
        (Self { queue: Arc::clone(&queue), part: Part::Sends }, RawSource { queue })
    }

    /// What finds the queue again, for a further sender.
    #[must_use]
    pub fn share(&self) -> RawShare {
        RawShare(Arc::downgrade(&self.queue))
    }

    /// Puts nothing in any more, and the flow is to end; it still tells how the queue is.
    pub fn finish(&mut self) {
        lock(&self.queue).is_ending |= self.part == Part::Sends;
        self.leave();
    }

    /// Puts nothing in any more, as if it was dropped; it still tells how the queue is.
    pub fn leave(&mut self) {
        self.play(Part::Finished);
    }

    /// Puts nothing in until it is taken in, and holds nobody up meanwhile who ends the flow.
    pub fn wait(&mut self) {
        if self.part == Part::Sends {
            self.play(Part::Waits);
        }
    }

    /// Is taken in: it has finished, if the flow has.
    pub fn take_in(&mut self) {
        if self.part == Part::Waits {
            self.play(Part::Sends);
        }
    }

    /// Has another part from now on.
    fn play(&mut self, part: Part) {
        let mut queue = lock(&self.queue);
        match self.part {
            Part::Sends => queue.senders = queue.senders.saturating_sub(1),
            Part::Waits => queue.waiting = queue.waiting.saturating_sub(1),
            Part::Finished => return,
        }
        self.part = if queue.is_finished { Part::Finished } else { part };
        match self.part {
            Part::Sends => queue.senders += 1,
            Part::Waits => queue.waiting += 1,
            Part::Finished => queue.check_finished(),
        }
    }

    /// Whether it puts nothing in any more.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.part == Part::Finished
    }

    /// Whether no other has ever fed the flow.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        !lock(&self.queue).is_shared
    }

    /// Whether both feed, or have fed, the same flow.
    #[must_use]
    pub fn feeds_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }

    /// Whether others still feed the flow, or may once they are taken in.
    #[must_use]
    pub fn has_others(&self) -> bool {
        let queue = lock(&self.queue);
        let all = queue.senders + queue.waiting;
        !queue.is_finished && all > usize::from(!self.is_finished())
    }

    /// Units that wait for the flow to take them, those of messages included.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        lock(&self.queue).waiting()
    }

    /// Hands over a unit.
    ///
    /// # Errors
    /// The unit, when the queue is full, the flow has ended or carries messages, or this sender has
    /// finished or waits.
    pub fn send(&self, unit: Vec<u8>) -> Result<(), RawSendError> {
        let mut queue = lock(&self.queue);
        if queue.is_closed || self.part != Part::Sends || queue.outbox.is_some() {
            return Err(RawSendError::Closed(unit));
        }
        if !queue.has_capacity(unit.len(), UNITS_MAX) {
            return Err(RawSendError::Full(unit));
        }
        queue.push(RawUnit::Bytes(unit));
        Ok(())
    }

    /// Memory for a unit, of one that has been sent where there is one; empty.
    #[must_use]
    pub fn spare(&self) -> Vec<u8> {
        lock(&self.queue).spare()
    }

    /// Promises that `Core::wake` is called for this flow after every unit that was handed over and
    /// after this sender is dropped: an empty source then costs nothing.
    pub fn promise_wake(&self) {
        lock(&self.queue).is_woken = true;
    }

    /// Whether the flow still takes units.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !lock(&self.queue).is_closed
    }

    /// Whether the flow takes units, which messages are not, and none waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let queue = lock(&self.queue);
        !queue.is_closed && queue.units.is_empty() && queue.outbox.is_none()
    }

    /// Whether the queue takes a unit of `len` bytes now.
    #[must_use]
    pub fn has_capacity(&self, len: usize) -> bool {
        lock(&self.queue).has_capacity(len, UNITS_MAX)
    }
}

impl Drop for RawSender {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The source that a [`RawSender`] feeds.
#[derive(Debug)]
pub struct RawSource {
    queue: Arc<Mutex<Queue>>,
}

impl Source for RawSource {
    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        let mut queue = lock(&self.queue);
        let Some(next) = queue.next_unit() else {
            return match (queue.is_finished, queue.is_woken) {
                (true, _) => SourcePoll::End,
                (false, true) => SourcePoll::Idle,
                (false, false) => SourcePoll::Wait(now + ASK_EVERY),
            };
        };
        match unit.begin(next.total_len()) {
            Ok(()) => {
                next.head.iter().for_each(|head| unit.write(head));
                unit.write(next.bytes);
            }
            Err(BeginError::NoMemory) => return SourcePoll::Blocked,
            Err(BeginError::TooLarge) => {
                let len = next.total_len();
                let text = format!("a unit of {len} bytes is more than this flow takes");
                return SourcePoll::Failed(text);
            }
        }
        queue.advance();
        SourcePoll::Unit
    }

    /// Messages are chosen by how urgent they are.
    fn chooses_late(&self) -> bool {
        lock(&self.queue).outbox.is_some()
    }

    /// Bytes have no position: commands are answered, so that those for all flows of a session do
    /// not fail because of this one, and change nothing.
    fn command(&mut self, _now: Time, payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        MediaCommand::decode(payload).map_err(|fault| CommandError(fault.to_string()))?;
        let answer = Answer { state: State::Playing, speed_permille: 1_000, ..Answer::default() };
        Ok(answer.encode())
    }
}

impl Drop for RawSource {
    fn drop(&mut self) {
        lock(&self.queue).close();
    }
}

/// Reads the units of a flow.
#[derive(Debug)]
pub struct RawReceiver(Arc<Mutex<Queue>>);

impl RawReceiver {
    /// A receiver and the sink that fills it, which shows its figures in `progress`.
    #[must_use]
    pub fn pair(progress: Progress) -> (Self, RawSink) {
        let queue = Arc::<Mutex<Queue>>::default();
        (Self(Arc::clone(&queue)), RawSink { queue, progress })
    }

    /// The same for a flow that is offered.
    pub(crate) fn of(offer: &FlowOffer) -> (Self, RawSink) {
        let (receiver, sink) = Self::pair(Progress::new(&offer.name));
        let is_newest = |asked: &AttributeForm| asked.key == key::NEWEST && asked.min >= Some(1);
        lock(&sink.queue).keeps_newest = offer.attributes.iter().any(is_newest);
        (receiver, sink)
    }

    /// For a flow over a stream: promises that `Core::wake` is called for the flow after units were
    /// taken. A full queue then holds the flow up, instead of losing what does not fit.
    pub fn promise_wake(&self) {
        lock(&self.0).is_woken = true;
    }

    /// The next unit, if one waits, in one piece.
    #[must_use]
    pub fn try_recv(&self) -> Option<Vec<u8>> {
        let unit = lock(&self.0).pop()?;
        Some(unit.into_bytes(|| lock(&self.0).spare()))
    }

    /// The next unit as it lies, unless it is longer than so many bytes.
    ///
    /// # Errors
    /// Its length; it stays.
    pub fn try_take_up_to(&self, len_max: usize) -> Result<Option<RawUnit>, usize> {
        let mut queue = lock(&self.0);
        match queue.units.front().map(RawUnit::len) {
            Some(len) if len > len_max => Err(len),
            _ => Ok(queue.pop()),
        }
    }

    /// Gives the memory of a unit back, for one that comes.
    pub fn give_back(&self, unit: Vec<u8>) {
        lock(&self.0).give_back(unit);
    }

    /// What takes memory back, for who has a unit and not the receiver.
    #[must_use]
    pub fn memory(&self) -> RawMemory {
        RawMemory { queue: Arc::downgrade(&self.0), birth: Birth::now() }
    }

    /// Whether a unit waits.
    #[must_use]
    pub fn has_unit(&self) -> bool {
        !lock(&self.0).units.is_empty()
    }

    /// Whether nothing waits and nothing will come.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let queue = lock(&self.0);
        queue.is_finished && queue.units.is_empty()
    }

    /// How the flow ended; `None` while it runs.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        lock(&self.0).ending.clone()
    }
}

impl Drop for RawReceiver {
    fn drop(&mut self) {
        lock(&self.0).is_closed = true;
    }
}

/// Takes the memory of units back that a [`RawReceiver`] gave; it does not keep the flow. In a fork
/// of its process nothing is left of that.
#[derive(Clone, Debug, Default)]
pub struct RawMemory {
    queue: Weak<Mutex<Queue>>,
    birth: Birth,
}

impl RawMemory {
    /// Memory for a unit, of one that was given back where there is one; empty.
    #[must_use]
    pub fn spare(&self) -> Vec<u8> {
        self.find().map(|queue| lock(&queue).spare()).unwrap_or_default()
    }

    /// Gives the memory of a unit back, for one that comes. Of a flow that is gone it is freed.
    pub fn give_back(&self, unit: Vec<u8>) {
        if let Some(queue) = self.find() {
            lock(&queue).give_back(unit);
        }
    }

    fn find(&self) -> Option<Arc<Mutex<Queue>>> {
        self.queue.upgrade().filter(|_| self.birth.is_here())
    }

    /// How long the unit is that comes next, in bytes, when one waits.
    #[must_use]
    pub fn next_len(&self) -> Option<usize> {
        lock(&*self.find()?).units.front().map(RawUnit::len)
    }
}

/// The sink that fills a [`RawReceiver`].
#[derive(Debug)]
pub struct RawSink {
    queue: Arc<Mutex<Queue>>,
    progress: Progress,
}

impl RawSink {
    /// Puts a unit of `len` bytes into the queue, if that takes it.
    fn put(&self, len: usize, make: impl FnOnce(&mut Queue) -> RawUnit) -> Taken {
        let mut queue = lock(&self.queue);
        let replaced = queue.replace_by(len, UNREAD_MAX);
        let reason = match queue.is_closed {
            true => Some(DropReason::Refused),
            // A flow that is held up may have a little on its way.
            false if !queue.is_woken && !queue.has_capacity(len, UNREAD_MAX) => {
                Some(DropReason::Overflow)
            }
            false => None,
        };
        if replaced > 0 {
            self.progress.update(|now| now.refused += replaced);
        }
        if let Some(reason) = reason {
            self.progress.update(|now| now.refused += 1);
            return Taken::Dropped(reason);
        }
        let unit = make(&mut queue);
        self.progress.update(|now| {
            now.media_frames += 1;
            now.bytes += len as u64;
        });
        queue.push(unit);
        Taken::Delivered
    }
}

impl Sink for RawSink {
    fn handle_unit(&mut self, _now: Time, unit: &UnitView<'_>) -> Taken {
        self.put(unit.len(), |queue| {
            let mut bytes = queue.spare();
            unit.copy_to(&mut bytes);
            RawUnit::Bytes(bytes)
        })
    }

    fn takes_loans(&self) -> bool {
        true
    }

    fn handle_loan(&mut self, _now: Time, unit: Loan) -> Taken {
        self.put(unit.len(), |_| RawUnit::Loan(unit))
    }

    fn has_capacity(&self) -> bool {
        let queue = lock(&self.queue);
        !queue.is_woken || queue.is_closed || queue.has_capacity(1, UNREAD_MAX)
    }

    fn handle_lost(&mut self, _now: Time, _first: u64, count: u64) {
        self.progress.update(|now| now.lost = now.lost.saturating_add(count));
    }

    fn finish(&mut self, _now: Time, ending: &Ending, _ledger: &Ledger) {
        self.progress.ended(ending);
        let mut queue = lock(&self.queue);
        queue.ending = Some(ending.clone());
        queue.is_finished = true;
    }
}

impl Drop for RawSink {
    fn drop(&mut self) {
        lock(&self.queue).is_finished = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_gives_the_unit_back_and_a_closed_one_says_so() {
        let (sender, source) = RawSender::pair();
        for _ in 0..UNITS_MAX {
            assert!(sender.has_capacity(1));
            sender.send(vec![7]).unwrap();
        }
        assert!(!sender.has_capacity(1));
        assert_eq!(sender.send(vec![8]), Err(RawSendError::Full(vec![8])));
        drop(source);
        assert!(!sender.is_open());
        assert_eq!(sender.send(vec![8]), Err(RawSendError::Closed(vec![8])));
        let (sender, _source) = RawSender::pair();
        sender.send(vec![0; BYTES_MAX + 1]).unwrap();
        assert!(matches!(sender.send(vec![0]), Err(RawSendError::Full(_))));
    }

    #[test]
    fn a_flow_with_several_senders_ends_with_the_last_and_a_late_one_has_finished() {
        let (mut first, source) = RawSender::pair();
        assert!(first.is_alone() && !first.has_others());
        let second = first.share().sender().unwrap();
        assert!(!first.is_alone() && first.has_others() && second.has_others());
        first.finish();
        first.finish();
        assert!(first.has_others() && !second.has_others() && !lock(&source.queue).is_finished);
        assert_eq!(first.send(vec![1]), Err(RawSendError::Closed(vec![1])));
        second.send(vec![2]).unwrap();
        assert_eq!(first.waiting(), 1);
        let share = first.share();
        drop(second);
        assert!(lock(&source.queue).is_finished && !share.is_gone());
        assert!(share.sender().unwrap().is_finished() && lock(&source.queue).is_finished);
        drop((first, source));
        assert!(share.is_gone() && share.sender().is_none());
    }

    #[test]
    fn who_waits_to_be_taken_in_holds_a_flow_open_until_somebody_ends_it() {
        let is_finished = |source: &RawSource| lock(&source.queue).is_finished;
        let (mut first, source) = RawSender::pair();
        let mut late = first.share().sender().unwrap();
        late.wait();
        assert!(first.has_others(), "it may come");
        assert_eq!(late.send(vec![1]), Err(RawSendError::Closed(vec![1])));
        let mut second = first.share().sender().unwrap();
        first.leave();
        second.leave();
        assert!(!is_finished(&source), "nobody has ended it");
        late.take_in();
        late.send(vec![2]).unwrap();
        let mut last = late.share().sender().unwrap();
        last.wait();
        last.wait();
        late.finish();
        assert!(is_finished(&source) && !late.has_others());
        last.take_in();
        assert!(last.is_finished() && is_finished(&source));
        // Where all wait and go there is nobody left.
        let (mut only, source) = RawSender::pair();
        only.wait();
        assert!(!is_finished(&source));
        drop(only);
        assert!(is_finished(&source));
    }

    #[test]
    fn who_does_not_read_finds_the_newest_where_that_was_asked_for_and_else_the_first() {
        for (newest, (first, last)) in [(1, (1, 4_096)), (0, (0, 4_095))] {
            let asked =
                AttributeForm { key: key::NEWEST, min: Some(newest), ..AttributeForm::default() };
            let offer = FlowOffer { attributes: vec![asked], ..FlowOffer::default() };
            let (receiver, sink) = RawReceiver::of(&offer);
            let put = |number: usize| {
                sink.put(2, |_| RawUnit::Bytes((number as u16).to_be_bytes().to_vec()))
            };
            let taken = (0..=UNREAD_MAX).map(put).filter(|it| *it == Taken::Delivered).count();
            assert_eq!(taken, UNREAD_MAX + newest as usize);
            assert_eq!(sink.progress.snapshot().refused, 1);
            let read: Vec<u16> = std::iter::from_fn(|| receiver.try_recv())
                .map(|unit| u16::from_be_bytes([unit[0], unit[1]]))
                .collect();
            assert_eq!((read.len(), read.first(), read.last()), (4_096, Some(&first), Some(&last)));
        }
    }

    #[test]
    fn a_flow_that_ended_says_how_and_what_arrived_can_still_be_read() {
        let (receiver, mut sink) = RawReceiver::pair(Progress::new("text"));
        lock(&sink.queue).push(RawUnit::Bytes(vec![1]));
        assert!(receiver.has_unit() && receiver.ending().is_none());
        sink.finish(Time::ZERO, &Ending::Complete, &Ledger::default());
        assert!(!receiver.is_finished(), "a unit waits");
        assert_eq!(receiver.try_recv(), Some(vec![1]));
        assert!(receiver.is_finished() && !receiver.has_unit());
        assert_eq!(receiver.ending(), Some(Ending::Complete));
    }
}
