//! [`Link`]: the engine. Items go in with `handle_send` and come out of `poll_deliver`.
//!
//! The picture is in the crate's documentation.
//!
//! Invariants: see the crate's documentation; [`Link::closes`] holds after every call. Time that
//! runs backwards is treated as standing still.

use crate::carry::{Carry, Corruption};
use crate::config::{ConfigError, LinkConfig, QueueLimit};
use crate::dice::{Dice, PassageThrow};
use crate::fate::{Delivery, DropReason, Fate, Passage};
use crate::fifo::{Entry, Ticket};
use crate::loss::LossChain;
use crate::managed::Managed;
use crate::queue::{Moved, Transmitter};
use crate::stats::LinkStats;
use crate::trace::TraceSource;
use dacapo_base::Ecn;
use dacapo_base::{Random, Time, earlier};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

/// One direction of a network link.
#[derive(Clone, Debug)]
pub struct Link<T> {
    config: LinkConfig,
    dice: Dice,
    chain: LossChain,
    transmitter: Transmitter,
    /// What waits for the transmitter where it is managed; else that is in flight already.
    managed: Option<Box<Managed<T>>>,
    /// Whether more than the transmitter is on the way of what enters ([`is_special`]).
    is_special: bool,
    flight: BinaryHeap<Reverse<Flying<T>>>,
    /// The latest time that an input carried.
    now: Time,
    /// The latest due time among what keeps its order.
    order_floor: Time,
    /// Counts passages: items and copies that got as far as the transmitter.
    sequence_next: u64,
    /// The latest item delivered, by its place among all sent.
    index_delivered_max: u64,
    partitioned: bool,
    stats: LinkStats,
}

impl<T: Carry> Link<T> {
    /// A link that does what `config` says, with the chances that `random` holds.
    ///
    /// # Errors
    /// When the configuration is not valid ([`LinkConfig::validate`]).
    pub fn new(config: LinkConfig, random: Random) -> Result<Self, ConfigError> {
        config.validate()?;
        let transmitter = Transmitter::new(config.trace.as_ref().map(TraceSource::trace));
        let managed = config.aqm.map(|aqm| Box::new(Managed::new(aqm, Time::ZERO)));
        let is_special = is_special(&config);
        Ok(Self {
            config,
            dice: Dice::new(random),
            chain: LossChain::default(),
            transmitter,
            managed,
            is_special,
            flight: BinaryHeap::new(),
            now: Time::ZERO,
            order_floor: Time::ZERO,
            sequence_next: 0,
            index_delivered_max: 0,
            partitioned: false,
            stats: LinkStats::default(),
        })
    }

    /// Puts `item` on the link at `now`. What it returns is the emulator's record, not something
    /// that a sender may know.
    pub fn handle_send(&mut self, now: Time, item: T) -> Fate {
        self.now = self.now.max(now);
        self.stats.sent += 1;
        self.stats.sent_bytes += item.len() as u64;
        // Everything is drawn, and the loss model steps, before anything is decided.
        let throw = self.dice.throw(&self.config);
        let lost = self.chain.step(&self.config.loss, throw.loss, self.now);
        if let Some(reason) = self.refusal(item.len()).or(lost) {
            self.stats.count_drop(reason);
            return Fate { item: Passage::Dropped(reason), copy: None };
        }
        let copy = throw.duplicate.then(|| item.duplicate());
        let item = self.pass(item, throw.item, false);
        let copy = copy.map(|copy| {
            self.stats.duplicated += 1;
            self.pass(copy, throw.copy, true)
        });
        Fate { item, copy }
    }

    /// Hands out the next item that is due by `now`, in the order of due time, then of entry.
    pub fn poll_deliver(&mut self, now: Time) -> Option<Delivery<T>> {
        if self.managed.is_some() {
            self.advance(now);
        }
        if self.flight.peek()?.0.due > now {
            return None;
        }
        let Reverse(flying) = self.flight.pop()?;
        self.stats.delivered += 1;
        self.stats.delivered_bytes += flying.item.len() as u64;
        self.stats.delay.record(flying.due.since(flying.sent));
        if !flying.copy && flying.index < self.index_delivered_max {
            self.stats.reordered += 1;
        }
        self.index_delivered_max = self.index_delivered_max.max(flying.index);
        let Flying { item, sent, due: delivered, copy, corrupted, .. } = flying;
        Some(Delivery { item, sent, delivered, copy, corrupted })
    }

    /// Replaces the configuration from `now` on. What is on the way keeps its fate; what waits for
    /// the transmitter goes on at the new rate, or by the new trace. The burst loss model starts
    /// afresh if it changed, and so does an active queue management, with what waits; where there
    /// is none any more, all that waits is sent.
    ///
    /// # Errors
    /// When the configuration is not valid; the link then goes on with the old one.
    pub fn set_config(&mut self, now: Time, config: LinkConfig) -> Result<(), ConfigError> {
        config.validate()?;
        self.now = self.now.max(now);
        self.advance(self.now);
        let has_new_trace = config.trace != self.config.trace;
        if has_new_trace {
            self.transmitter.set_trace(config.trace.as_ref().map(TraceSource::trace));
        }
        if has_new_trace || config.rate_bits_per_s != self.config.rate_bits_per_s {
            let moved = self.transmitter.retime(self.now, config.rate_bits_per_s);
            self.move_flight(&moved);
        }
        if config.loss != self.config.loss {
            self.chain = LossChain::default();
        }
        let has_new_aqm = config.aqm != self.config.aqm;
        self.is_special = is_special(&config);
        self.config = config;
        if has_new_aqm {
            self.change_queue();
        }
        Ok(())
    }
}

/// Whether a link with this configuration manages its queue, or clears codepoints.
const fn is_special(config: &LinkConfig) -> bool {
    config.aqm.is_some() || config.ecn_clear
}

impl<T> Link<T> {
    /// Cuts the link (`true`) or heals it (`false`), beside the configured windows. What is on the
    /// way still arrives.
    pub fn set_partitioned(&mut self, partitioned: bool) {
        self.partitioned = partitioned;
    }

    /// Whether nothing enters the link at `now`: cut by hand or by a configured window.
    #[must_use]
    pub fn is_partitioned(&self, now: Time) -> bool {
        self.partitioned || self.config.partitions.iter().any(|window| window.contains(now))
    }

    /// When the next item is due, or the transmitter takes one out of a managed queue, which may
    /// then be due later; `None` when nothing is in flight.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let due = self.flight.peek().map(|Reverse(flying)| flying.due);
        match &self.managed {
            None => due,
            Some(managed) => {
                let taken = managed.oldest().map(|since| self.transmitter.next_take(since));
                earlier(due, taken)
            }
        }
    }

    /// How many items are on the way, copies and queued ones included.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flight.len() + self.managed.as_ref().map_or(0, |managed| managed.live())
    }

    /// What the link does.
    #[must_use]
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// What the link has done.
    #[must_use]
    pub const fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Whether every item is accounted for: sent + duplicated = delivered + dropped + in flight.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.stats.closes(self.in_flight())
    }
}

impl<T: Carry> Link<T> {
    /// Why an item of `len` bytes cannot enter, apart from loss.
    fn refusal(&self, len: usize) -> Option<DropReason> {
        if self.is_partitioned(self.now) {
            return Some(DropReason::Partition);
        }
        let too_large = self.config.mtu.is_some_and(|mtu| !mtu.passes(self.now, len));
        too_large.then_some(DropReason::Mtu)
    }

    /// One passage: through the transmitter and onto the way, or into the queue before it.
    fn pass(&mut self, item: T, throw: PassageThrow, copy: bool) -> Passage {
        let ticket = Ticket { throw, index: self.stats.sent, sent: self.now, copy };
        if self.is_special { self.pass_special(item, ticket) } else { self.cross(item, &ticket) }
    }

    // Apart: it costs all other links a branch, and no call.
    #[inline(never)]
    fn pass_special(&mut self, mut item: T, ticket: Ticket) -> Passage {
        if self.config.ecn_clear {
            item.set_ecn(Ecn::NotEct);
        }
        if self.managed.is_none() {
            return self.cross(item, &ticket);
        }
        self.advance(self.now);
        let passage = self.wait(item, ticket);
        if let Passage::Dropped(reason) = passage {
            self.stats.count_drop(reason);
        }
        self.advance(self.now);
        passage
    }

    /// Through the transmitter at once.
    #[inline]
    fn cross(&mut self, item: T, ticket: &Ticket) -> Passage {
        match self.depart(item.len(), ticket.throw.corruption) {
            Ok(departs) => self.launch(item, ticket, departs),
            Err(reason) => {
                self.stats.count_drop(reason);
                Passage::Dropped(reason)
            }
        }
    }

    /// Into the queue, if it has room. What is corrupted and never arrives takes its place there.
    fn wait(&mut self, item: T, ticket: Ticket) -> Passage {
        let corruption = ticket.throw.corruption;
        let (len, eaten) = (item.len(), is_eaten::<T>(corruption));
        if !eaten && self.in_flight() >= self.config.in_flight_max {
            return Passage::Dropped(DropReason::Overflow);
        }
        // There is one where this is called.
        let Some(managed) = &mut self.managed else { return Passage::Dropped(DropReason::Queue) };
        let is_next = managed.oldest().is_none() && self.transmitter.is_idle(self.now);
        if !is_next && !managed.has_capacity(len, self.config.queue) {
            return Passage::Dropped(DropReason::Queue);
        }
        let corrupted = corruption.is_some() && !item.is_empty();
        let ecn = item.ecn();
        let item = (!eaten).then_some(item);
        managed.push(self.now, Entry { item, len, ecn, ticket });
        if eaten {
            return Passage::Dropped(DropReason::Corrupted);
        }
        let held_back = ticket.throw.hold.unwrap_or(Duration::ZERO);
        Passage::Waits { held_back, corrupted }
    }

    /// Lets the transmitter take everything that is its turn by `now`.
    fn advance(&mut self, now: Time) {
        while let Some(managed) = &mut self.managed
            && let Some(since) = managed.oldest()
            && let at = self.transmitter.next_take(since)
            && at <= now
        {
            // Without one, all that waited was dropped.
            if let Some(Entry { item, len, ticket, .. }) = managed.take(at, since, &mut self.stats)
            {
                let departs = self.transmitter.take(since, len, self.config.rate_bits_per_s);
                if let Some(item) = item {
                    let _ = self.launch(item, &ticket, departs);
                }
            }
        }
    }

    /// What waits goes on in a queue that is managed as the configuration says, or is sent.
    fn change_queue(&mut self) {
        let managed = self.managed.take();
        let waiting = managed.map(|managed| managed.into_entries()).unwrap_or_default();
        if let Some(aqm) = self.config.aqm {
            let mut managed = Box::new(Managed::new(aqm, self.now));
            waiting.into_iter().for_each(|entry| managed.push(self.now, entry));
            self.managed = Some(managed);
            return self.advance(self.now);
        }
        // They had room before, so they have it now.
        let limit = QueueLimit { packets: usize::MAX, bytes: usize::MAX };
        let rate = self.config.rate_bits_per_s;
        for Entry { item, len, ticket, .. } in waiting {
            let place = (self.sequence_next, len);
            let departs = self.transmitter.admit(self.now, place, rate, limit);
            match (departs, item) {
                (Some(departs), Some(item)) => {
                    let _ = self.launch(item, &ticket, departs);
                }
                _ => self.sequence_next += 1,
            }
        }
    }

    /// Onto the way, from when its last bit has left the transmitter.
    // A call, with all that it is told, would be 27 instructions of each item.
    #[inline(always)]
    fn launch(&mut self, mut item: T, ticket: &Ticket, departs: Time) -> Passage {
        let &Ticket { throw, index, sent, copy } = ticket;
        let corruption = throw.corruption.filter(|_| !item.is_empty());
        if let Some(kind) = corruption {
            match kind {
                Corruption::Detected => self.stats.corrupted_sent_on += 1,
                Corruption::Undetected => self.stats.corrupted_undetected += 1,
            }
            item.corrupt(&mut self.dice.damage(), kind);
        }
        let corrupted = corruption.is_some();
        let held_back = throw.hold.unwrap_or(Duration::ZERO);
        self.stats.held_back += u64::from(throw.hold.is_some());
        let mut flying = Flying {
            due: Time::ZERO,
            sequence: self.sequence_next,
            index,
            sent,
            propagation: throw.delay + held_back,
            ordered: self.config.keep_order && throw.hold.is_none(),
            copy,
            corrupted,
            item,
        };
        self.sequence_next += 1;
        let due = flying.plan(departs, &mut self.order_floor);
        self.flight.push(Reverse(flying));
        Passage::Arrives { due, held_back, corrupted }
    }

    /// When the last bit of the next passage leaves the transmitter, or why the passage ends.
    fn depart(&mut self, len: usize, kind: Option<Corruption>) -> Result<Time, DropReason> {
        let eaten = is_eaten::<T>(kind);
        if !eaten && self.flight.len() >= self.config.in_flight_max {
            return Err(DropReason::Overflow);
        }
        let (rate, limit) = (self.config.rate_bits_per_s, self.config.queue);
        let sequence = self.sequence_next;
        match self.transmitter.admit(self.now, (sequence, len), rate, limit) {
            None => Err(DropReason::Queue),
            // It used the link; only the far end throws it away.
            Some(_) if eaten => {
                self.sequence_next += 1;
                Err(DropReason::Corrupted)
            }
            Some(departs) => Ok(departs),
        }
    }

    /// Gives what waited for the transmitter its new due time. Those are the latest to enter, so
    /// what stays as it was comes before them.
    fn move_flight(&mut self, moved: &[Moved]) {
        let Some(first) = moved.first() else { return };
        let mut flight = std::mem::take(&mut self.flight).into_vec();
        flight.sort_unstable_by_key(|Reverse(flying)| flying.sequence);
        let mut moved = moved.iter().peekable();
        self.order_floor = self.now;
        for Reverse(flying) in &mut flight {
            if flying.sequence < first.sequence {
                if flying.ordered {
                    self.order_floor = self.order_floor.max(flying.due);
                }
                continue;
            }
            // Those between are corrupted ones: they wait, but are not in flight.
            while moved.next_if(|moved| moved.sequence < flying.sequence).is_some() {}
            if let Some(moved) = moved.next_if(|moved| moved.sequence == flying.sequence) {
                flying.plan(moved.departs, &mut self.order_floor);
            }
        }
        self.flight = flight.into();
    }
}

/// Whether an item with this corruption never arrives: somebody below the receiver throws it away.
fn is_eaten<T: Carry>(kind: Option<Corruption>) -> bool {
    kind == Some(Corruption::Detected) && !T::CHECKED
}

/// An item on the way.
#[derive(Clone, Debug)]
struct Flying<T> {
    due: Time,
    sequence: u64,
    /// Its place among all sent; a copy has that of its original.
    index: u64,
    sent: Time,
    /// Delay after the transmitter.
    propagation: Duration,
    /// Whether it may not overtake those before it that may not be overtaken.
    ordered: bool,
    copy: bool,
    corrupted: bool,
    item: T,
}

impl<T> Flying<T> {
    /// Sets the due time for a departure.
    fn plan(&mut self, departs: Time, order_floor: &mut Time) -> Time {
        self.due = departs + self.propagation;
        if self.ordered {
            self.due = self.due.max(*order_floor);
            *order_floor = self.due;
        }
        self.due
    }

    const fn key(&self) -> (Time, u64) {
        (self.due, self.sequence)
    }
}

impl<T> Ord for Flying<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> PartialOrd for Flying<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Flying<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Flying<T> {}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
