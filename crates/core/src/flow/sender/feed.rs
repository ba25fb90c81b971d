//! [`Feed`]: where the units of a sender come from, and where they wait.
//!
//! ```text
//!   source --ask----> splice --pop--> graph
//!   push   -----------^
//! ```
//!
//! Invariants: nothing overtakes: a unit that is handed over goes behind what waits; a source is
//! asked only while the flow runs and has contact, and never again after its end.

use crate::flow::Context;
use crate::flow::splice::{Splice, Waiting};
use crate::flow::unit_buffer::UnitBuffer;
use crate::guarded::GuardedSource;
use crate::port::{CommandError, Source, SourcePoll, UnitWriter};
use dacapo_base::Time;
use dacapo_packet::{Layout, Packet, Pool, PoolFull};
use std::time::Duration;

/// A source that answers a time that is past must not hold the core.
const ASK_EVERY_MIN: Duration = Duration::from_micros(10);

/// A source that had no memory is asked again after this time.
const BLOCKED_EVERY: Duration = Duration::from_millis(1);

pub(crate) struct Feed {
    source: GuardedSource,
    splice: Splice,
    buffer: UnitBuffer,
    unit_len_max: usize,
    /// With so many bytes waiting who chooses late is not asked, and nothing is handed over.
    bytes_max: usize,
    /// The session is active.
    is_running: bool,
    /// Contact is lost.
    is_suspended: bool,
    /// When the source is asked again; `None` until something wakes it.
    ask_at: Option<Time>,
    has_ended: bool,
    /// Why the source ended before its end, until somebody takes it.
    failure: Option<String>,
}

impl Feed {
    /// A feed that does not run yet.
    pub fn new(
        source: Box<dyn Source>,
        unit_len_max: usize,
        units_max: usize,
        bytes_max: usize,
    ) -> Self {
        Self {
            source: GuardedSource::new(source),
            splice: Splice::new(units_max),
            buffer: UnitBuffer::default(),
            unit_len_max,
            bytes_max,
            is_running: false,
            is_suspended: false,
            ask_at: None,
            has_ended: false,
            failure: None,
        }
    }

    /// The session is active, or pauses.
    pub fn set_running(&mut self, now: Time, is_running: bool) {
        self.set(now, is_running, self.is_suspended);
    }

    /// Contact is lost, or back: the source is paused meanwhile, and what was fed waits.
    pub fn set_suspended(&mut self, now: Time, is_suspended: bool) {
        self.set(now, self.is_running, is_suspended);
    }

    fn set(&mut self, now: Time, is_running: bool, is_suspended: bool) {
        let was_open = self.is_open();
        (self.is_running, self.is_suspended) = (is_running, is_suspended);
        match (was_open, self.is_open()) {
            (false, true) => {
                self.ask_at = Some(now);
                self.source.start(now);
            }
            (true, false) => self.source.stop(now),
            _ => {}
        }
    }

    /// Whether the source is asked for units, and units enter the graph.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.is_running && !self.is_suspended
    }

    #[inline]
    pub fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Whether nothing more comes of the source.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The source is not asked any more.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Asks the source again, whatever it has answered.
    #[inline]
    pub fn wake(&mut self, now: Time) {
        self.ask_at = Some(self.ask_at.map_or(now, |at| at.min(now)));
    }

    /// Gives the source a command, after which it is asked again.
    pub fn command(&mut self, now: Time, payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        self.wake(now);
        self.source.command(now, payload)
    }

    /// Whether it is time to ask the source.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.ask_at.is_some_and(|at| at <= now)
    }

    /// Whether the source is to be asked, or a unit waits that may enter the graph.
    #[inline]
    pub fn may_give(&self, now: Time) -> bool {
        !self.splice.is_empty() || (self.is_open() && self.is_due(now))
    }

    /// When the unit in front was handed over, or else when the source is asked for one.
    pub fn since(&self) -> Option<Time> {
        self.splice.since().or_else(|| self.due())
    }

    /// When the source is asked, as long as somebody knows where to send.
    #[inline]
    pub fn due(&self) -> Option<Time> {
        let is_asked = self.is_open() && !self.has_ended && self.takes_another();
        self.ask_at.filter(|_| is_asked)
    }

    /// Whether there is room for another unit of the source.
    #[inline]
    fn takes_another(&self) -> bool {
        let waits_long = !self.is_wanted();
        self.splice.has_capacity() && !(waits_long && self.source.chooses_late())
    }

    /// Whether less waits than goes out in a moment.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.splice.bytes() < self.bytes_max
    }

    /// Asks the source, if it is due, for a unit in this layout: true when one waits now. One that
    /// fails has ended ([`Feed::take_failure`]).
    #[inline]
    pub fn ask(&mut self, cx: &mut Context<'_>, layout: Layout) -> bool {
        if !self.is_open() || self.has_ended {
            // Who is not asked gives nothing in a row: the rest of a body is not kept for it.
            self.buffer.end_row(cx.pool);
            return false;
        }
        if !self.is_due(cx.now) || !self.takes_another() {
            if self.splice.is_empty() {
                self.buffer.end_row(cx.pool);
            }
            return false;
        }
        let chain = self.splice.spare_chain();
        let mut writer =
            UnitWriter::new(cx.pool, &mut self.buffer, layout, self.unit_len_max, chain);
        let answer = self.source.poll_unit(cx.now, &mut writer);
        let (chain, len) = writer.finish();
        match answer {
            SourcePoll::Unit if !chain.is_empty() => {
                self.splice.push(cx.now, chain, len.unwrap_or(0), layout);
                return true;
            }
            SourcePoll::Unit => self.fail("the source said a unit and wrote none".into()),
            SourcePoll::Wait(at) => self.ask_at = Some(at.max(cx.now + ASK_EVERY_MIN)),
            SourcePoll::Idle => self.ask_at = None,
            SourcePoll::Blocked => self.ask_at = Some(cx.now + BLOCKED_EVERY),
            SourcePoll::End => self.has_ended = true,
            SourcePoll::Failed(text) => self.fail(text),
        }
        self.buffer.end_row(cx.pool);
        self.give_back(cx.pool, chain);
        false
    }

    fn fail(&mut self, text: String) {
        self.has_ended = true;
        self.failure = Some(text);
    }

    /// Why the source ended before its end: once.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Takes a unit that the application hands over, past the source, which must have none that
    /// waits; `is_alone` when nothing of the flow waits anywhere. False when it cannot be taken
    /// now, and nothing has changed: while the flow does not run, or while so much waits that the
    /// source would not be asked either.
    pub fn push(
        &mut self,
        cx: &mut Context<'_>,
        layout: Layout,
        bytes: &[u8],
        is_alone: bool,
    ) -> bool {
        if !self.is_open() || self.has_ended || !self.splice.has_capacity() || !self.is_wanted() {
            return false;
        }
        if is_alone {
            // It goes at once and by itself: nothing is in a row with it.
            self.buffer.end_row(cx.pool);
        }
        let chain = self.splice.spare_chain();
        let mut writer =
            UnitWriter::new(cx.pool, &mut self.buffer, layout, self.unit_len_max, chain);
        if writer.begin(bytes.len()).is_ok() {
            writer.write(bytes);
        }
        let (chain, len) = writer.finish();
        if chain.is_empty() {
            self.splice.give_chain_back(chain);
            return false;
        }
        self.splice.push(cx.now, chain, len.unwrap_or(0), layout);
        true
    }

    /// Takes the next unit that waits, in the layout of the epoch that it enters.
    ///
    /// # Errors
    /// [`PoolFull`] when it must be laid out anew and there is no memory; it stays.
    #[inline]
    pub fn pop(&mut self, pool: &mut Pool, layout: &Layout) -> Result<Option<Waiting>, PoolFull> {
        self.splice.pop(pool, layout)
    }

    /// Units that wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.splice.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.splice.is_empty()
    }

    /// The longest unit, in bytes.
    #[inline]
    pub fn unit_len_max(&self) -> usize {
        self.unit_len_max
    }

    /// The memory of a chain whose views are in the graph is used again.
    #[inline]
    pub fn reuse(&mut self, chain: Vec<Packet>) {
        self.splice.give_chain_back(chain);
    }

    /// Gives views back; the memory of the chain is used again.
    pub fn give_back(&mut self, pool: &mut Pool, mut chain: Vec<Packet>) {
        chain.drain(..).for_each(|packet| pool.free(packet));
        self.splice.give_chain_back(chain);
    }

    /// Nothing is in a row with what comes next.
    #[inline]
    pub fn end_row(&mut self, pool: &mut Pool) {
        self.buffer.end_row(pool);
    }

    /// Whether the end of a row gives memory back.
    #[inline]
    pub fn holds_memory(&self) -> bool {
        self.buffer.holds_memory()
    }

    /// Gives up what waits.
    pub fn drop_waiting(&mut self, pool: &mut Pool) {
        self.splice.flush(pool);
    }
}
