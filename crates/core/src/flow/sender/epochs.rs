//! [`TxEpochs`]: the graphs through which a sender's units go: the running one, and beside it one
//! that is prepared or one that drains.
//!
//! ```text
//!   Alone --prepare--> Prepared --READY--> Draining --DONE--> Alone
//!                         |  5 s, CANNOT: ABORT, Alone
//! ```
//!
//! Invariants: base(e) is the number of units fed before e; a unit is fed to one epoch; an epoch
//! number is never used again, not even after an abort.

use super::egress::Egress;
use crate::error::{Code, Error};
use crate::flow::epoch::{End, TxEpoch, tell};
use crate::flow::splice::Waiting;
use crate::flow::{Context, FlowEvent, FlowOut};
use dacapo_base::{Time, earlier};
use dacapo_lift::{Built, Runner};
use dacapo_packet::{BATCH_PACKETS_MAX, Layout, Packet};
use dacapo_wire::change::Abort;
use dacapo_wire::message::Message;
use dacapo_wire::unit::Kind;
use std::time::Duration;

/// A change that is not ready by then is aborted.
const PREPARE_MAX: Duration = Duration::from_secs(5);

/// The last mark of an epoch: at once, and at most in all.
const ENDS_AT_ONCE: u8 = 3;
const ENDS_MAX: u8 = 12;
const END_EVERY_MIN: Duration = Duration::from_millis(5);

/// How long the sender waits for DONE before it gives an old epoch up on its own.
const DRAIN_MAX: Duration = Duration::from_secs(15);

#[derive(Debug)]
enum Change {
    None,
    Prepared { epoch: Box<TxEpoch>, deadline: Time },
    Draining { old: Box<TxEpoch>, ends: u8, next_end: Time, deadline: Time },
}

#[derive(Debug)]
pub(crate) struct TxEpochs {
    /// The flow's number, for its messages.
    flow: u16,
    current: TxEpoch,
    change: Change,
    next_number: u64,
    /// The longest datagrams that the path takes now.
    datagram_len: usize,
}

impl TxEpochs {
    pub fn new(flow: u16, epoch: TxEpoch) -> Self {
        let next_number = epoch.number + 1;
        Self { flow, current: epoch, change: Change::None, next_number, datagram_len: usize::MAX }
    }

    /// The one that runs.
    #[inline]
    pub fn current(&self) -> &TxEpoch {
        &self.current
    }

    /// How units that enter now are laid out.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.current.layout
    }

    pub fn set_label_tx(&mut self, label: u32) {
        self.current.label_tx = label;
    }

    /// The path takes datagrams of this length now: units that enter from now on are cut so. What a
    /// graph has already is sent as it is, and lost or not.
    pub fn set_datagram_len(&mut self, len: usize) {
        self.datagram_len = len;
        self.current.cut_to(len);
        if let Change::Prepared { epoch, .. } = &mut self.change {
            epoch.cut_to(len);
        }
    }

    /// The longest datagrams that the path takes now, as far as anybody has said.
    #[inline]
    pub fn datagram_len(&self) -> usize {
        self.datagram_len
    }

    /// How many packets the graph takes now.
    #[inline]
    pub fn credit(&self) -> usize {
        self.current.runner.credit()
    }

    /// A unit enters the graph; it goes through with [`TxEpochs::run`].
    #[inline]
    pub fn feed(&mut self, cx: &mut Context<'_>, unit: &mut Waiting) {
        self.current.feed(cx, &mut unit.chain);
    }

    /// A unit has left past the graph, and has its number.
    #[inline]
    pub fn note_fed(&mut self) {
        self.current.fed += 1;
    }

    /// Lets what was fed go through.
    #[inline]
    pub fn run(&mut self, cx: &mut Context<'_>, egress: &mut Egress) {
        self.current.runner.run(cx);
        egress.take_down(cx.pool, &mut self.current);
    }

    /// No unit follows: modules send what they can still send.
    pub fn drain(&mut self, cx: &mut Context<'_>, egress: &mut Egress) {
        self.current.runner.drain(cx);
        egress.take_down(cx.pool, &mut self.current);
    }

    /// The number that the next epoch gets.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Whether no change is going on.
    #[inline]
    pub fn is_alone(&self) -> bool {
        matches!(self.change, Change::None)
    }

    /// A change to this graph was proposed to the receiver.
    pub fn prepare(&mut self, now: Time, built: Built, label_rx: u32) {
        let mut epoch = Box::new(TxEpoch::new(self.next_number, built, label_rx));
        epoch.cut_to(self.datagram_len);
        self.next_number += 1;
        self.change = Change::Prepared { epoch, deadline: now + PREPARE_MAX };
    }

    /// The receiver is ready: the next unit enters the new epoch, whose base is `base`. False when
    /// no such epoch is prepared, and nothing has changed.
    pub fn handle_ready(
        &mut self,
        cx: &mut Context<'_>,
        (number, label): (u64, u32),
        base: u64,
        rtt: Duration,
        egress: &mut Egress,
    ) -> bool {
        let epoch = match std::mem::replace(&mut self.change, Change::None) {
            Change::Prepared { epoch, .. } if epoch.number == number => epoch,
            other => {
                self.change = other;
                return false;
            }
        };
        let mut old = std::mem::replace(&mut self.current, *epoch);
        (self.current.label_tx, self.current.base) = (label, base);
        old.runner.drain(cx);
        (0..ENDS_AT_ONCE).for_each(|_| old.mark(cx, Kind::End));
        egress.take_down(cx.pool, &mut old);
        self.current.mark(cx, Kind::Begin);
        egress.take_down(cx.pool, &mut self.current);
        self.change = Change::Draining {
            old: Box::new(old),
            ends: ENDS_AT_ONCE,
            next_end: cx.now + end_every(rtt),
            deadline: cx.now + DRAIN_MAX,
        };
        true
    }

    /// The receiver cannot: stay.
    pub fn handle_cannot(&mut self, number: u64, error: Error, out: &mut FlowOut) {
        if matches!(&self.change, Change::Prepared { epoch, .. } if epoch.number == number) {
            self.drop_prepared(error, out);
        }
    }

    /// The receiver has settled an old epoch.
    pub fn handle_done(&mut self, cx: &mut Context<'_>, number: u64, out: &mut FlowOut) {
        if matches!(&self.change, Change::Draining { old, .. } if old.number == number) {
            self.destroy_old(cx, out);
        }
    }

    /// The old epoch is over, if there is one.
    pub fn destroy_old(&mut self, cx: &mut Context<'_>, out: &mut FlowOut) {
        match std::mem::replace(&mut self.change, Change::None) {
            Change::Draining { mut old, .. } => {
                old.runner.flush(cx);
                tell(old.number, &mut old.runner, End::Sender, out);
                out.events.push(FlowEvent::Retire(old.label_rx));
                out.events.push(FlowEvent::Changed { epoch: self.current.number });
            }
            // A change that is only proposed goes on.
            other => self.change = other,
        }
    }

    /// Takes a proposed change back, if there is one, and tells the receiver.
    pub fn abort(&mut self, error: Error, out: &mut FlowOut) {
        if let Change::Prepared { epoch, .. } = &self.change {
            let (flow, epoch) = (self.flow, epoch.number);
            out.messages.push(Message::Abort(Abort { flow, epoch }));
            self.drop_prepared(error, out);
        }
    }

    fn drop_prepared(&mut self, error: Error, out: &mut FlowOut) {
        if let Change::Prepared { epoch, .. } = std::mem::replace(&mut self.change, Change::None) {
            out.events.push(FlowEvent::Retire(epoch.label_rx));
            out.events.push(FlowEvent::ChangeFailed(error));
        }
    }

    /// A packet that the receiver's modules sent back for one of the epochs.
    pub fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        packet: Packet,
        egress: &mut Egress,
    ) {
        let Some(epoch) = self.epoch(number) else { return cx.pool.free(packet) };
        epoch.runner.handle_up(cx, packet);
        epoch.runner.run(cx);
        // Feedback ends at our modules; what still comes up is nobody's.
        epoch.runner.take_up().drain().for_each(|packet| cx.pool.free(packet));
        egress.take_down(cx.pool, epoch);
    }

    /// The one with this number, if it runs or drains.
    fn epoch(&mut self, number: u64) -> Option<&mut TxEpoch> {
        match &mut self.change {
            Change::Draining { old, .. } if old.number == number => Some(old),
            _ => Some(&mut self.current).filter(|it| it.number == number),
        }
    }

    /// Runs `body` over the graph of an epoch, and takes what that has for the network; `None` when
    /// there is no such epoch.
    pub fn with<R>(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        egress: &mut Egress,
        body: impl FnOnce(&mut Runner, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let epoch = self.epoch(number)?;
        let result = body(&mut epoch.runner, cx);
        egress.take_down(cx.pool, epoch);
        Some(result)
    }

    /// Whether modules have something of their own to send when the path takes it.
    #[inline]
    pub fn wants_room(&self) -> bool {
        let of_old =
            matches!(&self.change, Change::Draining { old, .. } if old.runner.wants_room());
        of_old || self.current.runner.wants_room()
    }

    /// Lets modules send what they wanted to, as far as there is room.
    pub fn handle_room(&mut self, cx: &mut Context<'_>, egress: &mut Egress) {
        let old = match &mut self.change {
            Change::Draining { old, .. } => Some(&mut **old),
            Change::None | Change::Prepared { .. } => None,
        };
        for epoch in old.into_iter().chain([&mut self.current]) {
            let room = egress.room();
            if epoch.runner.wants_room() && room > 0 {
                epoch.runner.handle_room(cx, room);
                egress.take_down(cx.pool, epoch);
            }
        }
    }

    /// Whether modules told something beyond their packets.
    #[inline]
    pub fn has_told(&self) -> bool {
        let change = &self.change;
        let of_old = matches!(change, Change::Draining { old, .. } if old.runner.has_told());
        of_old || self.current.runner.has_told()
    }

    /// Passes on what they told.
    #[inline]
    pub fn tell(&mut self, out: &mut FlowOut) {
        tell(self.current.number, &mut self.current.runner, End::Sender, out);
        if let Change::Draining { old, .. } = &mut self.change {
            tell(old.number, &mut old.runner, End::Sender, out);
        }
    }

    pub fn due(&self) -> Option<Time> {
        let next = self.current.runner.next_deadline();
        match &self.change {
            Change::None => next,
            Change::Prepared { deadline, .. } => earlier(next, Some(*deadline)),
            Change::Draining { old, ends, next_end, deadline } => {
                let end = if *ends < ENDS_MAX { *next_end } else { *deadline };
                earlier(earlier(next, old.runner.next_deadline()), Some(end))
            }
        }
    }

    pub fn handle_timeout(
        &mut self,
        cx: &mut Context<'_>,
        rtt: Duration,
        egress: &mut Egress,
        out: &mut FlowOut,
    ) {
        self.current.runner.handle_timeout(cx);
        egress.take_down(cx.pool, &mut self.current);
        match &mut self.change {
            Change::Prepared { deadline, .. } if *deadline <= cx.now => {
                self.abort(Error::new(Code::NoAnswer, "the receiver was not ready in 5 s"), out);
            }
            Change::Draining { old, deadline, .. } if *deadline <= cx.now => {
                if old.keeps_all() {
                    // The receiver waits for all of it; DONE, or the end of the flow, is its end.
                    *deadline = cx.now + DRAIN_MAX;
                } else {
                    self.destroy_old(cx, out);
                }
            }
            Change::Draining { old, ends, next_end, .. } => {
                old.runner.handle_timeout(cx);
                if *ends < ENDS_MAX && *next_end <= cx.now {
                    old.mark(cx, Kind::End);
                    *ends += 1;
                    *next_end = cx.now + end_every(rtt);
                }
                egress.take_down(cx.pool, old);
            }
            Change::None | Change::Prepared { .. } => {}
        }
    }

    /// This end did not run for so long: that does not count.
    pub fn shift(&mut self, by: Duration) {
        match &mut self.change {
            Change::None => {}
            Change::Prepared { deadline, .. } | Change::Draining { deadline, .. } => {
                *deadline += by;
            }
        }
    }

    /// The labels that this end gave out for the epochs.
    pub fn labels(&self) -> Vec<u32> {
        let beside = match &self.change {
            Change::None => None,
            Change::Prepared { epoch: it, .. } | Change::Draining { old: it, .. } => Some(it),
        };
        std::iter::once(&self.current).chain(beside.map(|it| &**it)).map(|it| it.label_rx).collect()
    }

    /// Gives every view back.
    pub fn flush(&mut self, cx: &mut Context<'_>) {
        self.current.runner.flush(cx);
        if let Change::Draining { mut old, .. } = std::mem::replace(&mut self.change, Change::None)
        {
            old.runner.flush(cx);
        }
    }
}

/// The most units that enter at a time.
pub(super) const UNITS_AT_ONCE: usize = BATCH_PACKETS_MAX;

fn end_every(rtt: Duration) -> Duration {
    (rtt / 4).max(END_EVERY_MIN)
}
