//! [`RxEpochs`]: the graphs through which a receiver's units come: one that ends, one that runs,
//! one that is prepared.
//!
//! ```text
//!   label -> epoch -> graph --> units of the first, or of one that need not wait: passed on
//!                          '--> units of a later, ordered one: held until it is the first
//! ```
//!
//! Invariants: at most [`EPOCHS_MAX`] live, in the order of their numbers and bases; `held_max`
//! units are held, with what a graph gives at once; so many packets at most wait to be sent back.

use super::Keeping;
use super::feedback::Feedback;
use super::settling::Boundary;
use crate::flow::epoch::{Arrived, RxEpoch, Up};
use crate::flow::{Context, FlowOut};
use crate::queues::Queues;
use dacapo_base::{Time, earlier};
use dacapo_lift::{Runner, Unread};
use dacapo_packet::Packet;
use dacapo_path::ClockOffset;
use dacapo_wire::unit::{Kind, Mark};
use std::collections::VecDeque;
use std::time::Duration;

/// The most epochs that live at a time: one that ends, one that runs, one that is prepared.
const EPOCHS_MAX: usize = 3;

/// The most units of a flow: what a peer says beyond is no number of a unit.
pub(crate) const UNITS_MAX: u64 = 1 << 56;

#[derive(Debug)]
pub(crate) struct RxEpochs {
    epochs: VecDeque<RxEpoch>,
    /// For the sender's modules.
    feedback: Feedback,
    /// What a graph has passed up and nobody has looked at.
    taken: VecDeque<Packet>,
    held_max: usize,
    /// A module sees to it that everything comes: no unit that has come is let go.
    keeps_all: bool,
    /// The units before this one, of a flow that was joined while it ran, are not for this end;
    /// numbers count from here.
    first: u64,
    clock: ClockOffset,
}

impl RxEpochs {
    /// The first epoch, whose units begin at 0.
    pub fn new(mut epoch: RxEpoch, now: Time, queues: &Queues, keeping: Keeping) -> Self {
        epoch.base = Some((0, now));
        Self {
            epochs: VecDeque::from([epoch]),
            feedback: Feedback::new(queues.feedback_packets_max),
            taken: VecDeque::new(),
            held_max: queues.held_units_max,
            keeps_all: keeping == Keeping::Graph,
            first: 0,
            clock: ClockOffset::default(),
        }
    }

    /// The flow runs already, and `first` units were fed before this end takes part: to be said
    /// before anything comes.
    pub fn join_at(&mut self, first: u64) {
        self.first = first;
        if let Some(epoch) = self.epochs.front_mut() {
            epoch.join_at(first);
        }
    }

    /// How far the sender's clock is ahead, for the graphs that live and those that will.
    pub fn handle_clock(&mut self, offset: ClockOffset) {
        self.clock = offset;
        self.epochs.iter_mut().for_each(|epoch| epoch.runner.handle_clock(offset));
    }

    /// How many units were fed before this end takes part.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.epochs.len()
    }

    pub fn newest(&self) -> Option<&RxEpoch> {
        self.epochs.back()
    }

    /// The place among the epochs of the one with this number.
    #[inline]
    pub fn position(&self, number: u64) -> Option<usize> {
        self.epochs.iter().position(|epoch| epoch.number == number)
    }

    /// As many units of the epoch at this place are held as may be, and none is let go.
    #[inline]
    pub fn holds_enough(&self, at: usize) -> bool {
        self.keeps_all && self.epochs.get(at).is_some_and(|epoch| epoch.held.len() >= self.held_max)
    }

    pub fn set_label_tx(&mut self, label: u32) {
        if let Some(epoch) = self.epochs.back_mut() {
            epoch.label_tx = label;
        }
    }

    /// Whether one with this number may be prepared.
    pub fn may_prepare(&self, number: u64) -> bool {
        let is_after = self.epochs.back().is_none_or(|last| last.number < number);
        is_after && self.epochs.len() < EPOCHS_MAX
    }

    pub fn prepare(&mut self, mut epoch: RxEpoch) {
        epoch.runner.handle_clock(self.clock);
        self.epochs.push_back(epoch);
    }

    /// The sender takes a prepared epoch back: its label. Only one that has carried nothing can be
    /// taken back.
    pub fn abort(&mut self, cx: &mut Context<'_>, number: u64) -> Option<u32> {
        let at = self.position(number)?;
        // The first has a base from its beginning.
        if self.epochs.get(at)?.base.is_some() {
            return None;
        }
        let mut epoch = self.epochs.remove(at)?;
        epoch.flush(cx);
        Some(epoch.label_rx)
    }

    /// An epoch begins at this unit. Epochs begin in the order of their numbers, and once.
    pub fn learn_base(&mut self, now: Time, number: u64, base: u64) {
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

    /// A packet with the label of the epoch at this place.
    #[inline]
    pub fn handle_packet(&mut self, cx: &mut Context<'_>, at: usize, mut packet: Packet) {
        packet.set_unit_ends(true, true);
        // What was sent before it has left the sender, too.
        self.epochs.iter_mut().take(at).for_each(|old| old.tail.note_left(cx.now));
        let runner = &mut self.epochs[at].runner;
        runner.handle_up(cx, packet);
        runner.run(cx);
        self.collect(cx, at);
    }

    /// Runs `body` over the graph at this place, and takes what that has.
    pub fn with<R>(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        body: impl FnOnce(&mut Runner, &mut Context<'_>) -> R,
    ) -> R {
        let result = body(&mut self.epochs[at].runner, cx);
        self.collect(cx, at);
        result
    }

    /// Takes what a graph has, up and down.
    fn collect(&mut self, cx: &mut Context<'_>, at: usize) {
        let epoch = &mut self.epochs[at];
        // What answers is not held back.
        if epoch.runner.wants_room() {
            epoch.runner.handle_room(cx, usize::MAX);
        }
        self.taken.extend(epoch.runner.take_up().drain());
        if !epoch.runner.take_down().is_empty() {
            let label = epoch.label_tx;
            let down = epoch.runner.take_down().drain();
            down.for_each(|packet| self.feedback.push(cx.pool, packet, label));
        }
    }

    /// Whether something waits for the sender's modules.
    #[inline]
    pub fn has_feedback(&self) -> bool {
        !self.feedback.is_empty()
    }

    /// The next packet for them.
    #[inline]
    pub fn poll_feedback(&mut self) -> Option<Packet> {
        self.feedback.pop()
    }

    /// The next unit that has come in the epoch at this place and may be passed on; the others are
    /// held. `may_come`: what is missing of the epoch before still comes.
    #[inline]
    pub fn poll_unit(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        may_come: bool,
    ) -> Option<Arrived> {
        while let Some(up) = self.epochs[at].poll_up(cx, &mut self.taken) {
            match up {
                Up::Data(arrived) if self.is_released(at) => return Some(arrived),
                Up::Data(arrived) => self.hold(cx, at, arrived, may_come),
                Up::Mark(kind, mark) => self.handle_mark(cx.now, at, kind, mark),
            }
        }
        None
    }

    /// Whether units of the epoch at this place need not wait.
    #[inline]
    pub fn is_released(&self, at: usize) -> bool {
        self.epochs.get(at).is_some_and(|it| it.base.is_some() && (at == 0 || !it.ordered))
    }

    fn hold(&mut self, cx: &mut Context<'_>, at: usize, mut arrived: Arrived, may_come: bool) {
        let epoch = &mut self.epochs[at];
        // What a graph gives at once has room: the epoch before is settled then.
        let is_settled_soon = at == 1 && epoch.base.is_some() && !may_come;
        if is_settled_soon || self.keeps_all || epoch.held.len() < self.held_max {
            epoch.held.push_back(arrived);
        } else {
            // It will be booked lost when its turn comes.
            arrived.chain.free(cx.pool);
        }
    }

    fn handle_mark(&mut self, now: Time, at: usize, kind: Kind, mark: Mark) {
        if kind == Kind::Begin {
            return self.learn_base(now, mark.epoch, mark.number);
        }
        self.epochs[at].ended = true;
        self.epochs[at].tail.note_left(now);
        let next = self.epochs.get(at + 1).map(|next| next.number);
        if let (Some((base, _)), Some(next)) = (self.epochs[at].base, next) {
            self.learn_base(now, next, base.saturating_add(mark.number));
        }
    }

    /// Whether units of the epoch at this place are held that need not wait.
    #[inline]
    pub fn has_released(&self, at: usize) -> bool {
        self.epochs.get(at).is_some_and(|it| !it.held.is_empty()) && self.is_released(at)
    }

    /// Takes what was held in the epoch at this place.
    pub fn take_held(&mut self, at: usize) -> VecDeque<Arrived> {
        self.epochs.get_mut(at).map(|epoch| std::mem::take(&mut epoch.held)).unwrap_or_default()
    }

    /// Whether it is known where the epoch at this place begins.
    pub fn has_base(&self, at: usize) -> bool {
        self.epochs.get(at).is_some_and(|epoch| epoch.base.is_some())
    }

    /// The number in the flow of the unit at `place` in the epoch at `at`, and whether its graph
    /// gives units in order; `None` for one that was fed before this end takes part.
    #[inline]
    pub fn number(&self, at: usize, place: u64) -> Option<(u64, bool)> {
        let epoch = self.epochs.get(at)?;
        let base = epoch.base.map_or(0, |(base, _)| base);
        Some((base.saturating_add(place.checked_sub(self.first)?), epoch.ordered))
    }

    /// A unit of the epoch at this place was new; it was taken in time, or not.
    #[inline]
    pub fn note_passed(&mut self, now: Time, at: usize, is_delivered: bool) {
        let is_old = self.epochs.len() > 1;
        let Some(epoch) = self.epochs.get_mut(at) else { return };
        epoch.delivered += u64::from(is_delivered);
        if is_old {
            epoch.tail.note_came(now);
        }
    }

    /// The sink has room again, or contact is back.
    pub fn go_on(&mut self, now: Time) {
        self.epochs.iter_mut().for_each(|epoch| epoch.tail.note_came(now));
    }

    /// Where the first epoch ends, once the base of the next is known.
    #[inline]
    pub fn boundary(&self) -> Option<Boundary> {
        let (next, old) = (self.epochs.get(1)?, self.epochs.front()?);
        let (base, base_at) = next.base?;
        Some(Boundary {
            base,
            base_at,
            tail: old.tail,
            is_next_ordered: next.ordered,
            is_full: next.held.len() >= self.held_max,
            waits: (old.runner.patience(), next.runner.patience()),
        })
    }

    /// Whether the first epoch has given all it can: in order, to its END.
    pub fn has_first_ended(&self) -> bool {
        self.epochs.front().is_some_and(|old| old.ordered && old.ended)
    }

    /// The first epoch is over.
    pub fn remove_first(&mut self, cx: &mut Context<'_>) -> Option<RxEpoch> {
        let mut old = self.epochs.pop_front()?;
        old.flush(cx);
        Some(old)
    }

    /// The number of the first epoch.
    pub fn first_number(&self) -> Option<u64> {
        Some(self.epochs.front()?.number)
    }

    /// How long all modules wait themselves.
    pub fn patience(&self) -> Duration {
        self.epochs.iter().map(|epoch| epoch.runner.patience()).sum()
    }

    /// Whether nothing waits but in modules.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.feedback.is_empty() && self.taken.is_empty()
    }

    /// Passes on what modules told beyond their packets, and tells those that want to know what
    /// waits: so much for the application, of all epochs, and what is held of their own.
    #[inline]
    pub fn tell(&mut self, cx: &mut Context<'_>, unread: Option<Unread>, out: &mut FlowOut) {
        for at in 0..self.epochs.len() {
            let epoch = &mut self.epochs[at];
            epoch.tell(out);
            if let Some(waiting) = unread.filter(|_| epoch.runner.wants_unread()) {
                let unread = epoch.unread(waiting);
                self.with(cx, at, |runner, cx| runner.handle_unread(cx, unread));
            }
        }
    }

    /// Which module has panicked, and what it said.
    pub fn failure(&self) -> Option<String> {
        self.epochs.iter().find_map(|it| it.runner.failure()).map(str::to_owned)
    }

    #[inline]
    pub fn due(&self) -> Option<Time> {
        self.epochs.iter().fold(None, |next, epoch| earlier(next, epoch.runner.next_deadline()))
    }

    /// This end did not run for so long: that does not count.
    pub fn shift(&mut self, by: Duration) {
        self.epochs.iter_mut().for_each(|epoch| epoch.tail.shift(by));
    }

    /// The labels that this end gave out for the epochs.
    pub fn labels(&self) -> Vec<u32> {
        self.epochs.iter().map(|epoch| epoch.label_rx).collect()
    }

    /// Gives every view back.
    pub fn flush(&mut self, cx: &mut Context<'_>) {
        self.epochs.iter_mut().for_each(|epoch| epoch.flush(cx));
        self.feedback.flush(cx.pool);
        self.taken.drain(..).for_each(|packet| cx.pool.free(packet));
    }
}
