//! Receiving: streams in turn, one read each, until nothing is there or the call has its share.
//!
//! Decoder: what a stream says moves its own slot only; a fault ends that stream and no other.
//!
//! Invariants: one call hands up at most [`RECV_PACKETS_MAX`] packets and reads about
//! [`RECV_BYTES_MAX`] bytes, whole records or not, in at most [`RECV_PACKETS_MAX`] reads, so no
//! remote can keep it busy; a stream that waits for room in the pool holds no other up.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::{Connection, Phase, Slot, Streams};
use crate::stream::{Ending, ReadOutcome, StreamEvent, Token};
use crate::{
    Incoming, RECV_BYTES_MAX, RECV_PACKETS_MAX, RecvOutcome, TrafficClass, TransportStats,
};
use dacapo_base::{Address, Time};
use dacapo_packet::{Packet, Pool};

/// Where the packets of one call go, and how much it may still do.
pub(crate) struct Intake<'a> {
    pub(crate) now: Time,
    pub(crate) pool: &'a mut Pool,
    pub(crate) into: &'a mut Vec<Incoming>,
    pub(crate) outcome: RecvOutcome,
    reads: usize,
    packets: usize,
    bytes: usize,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(now: Time, pool: &'a mut Pool, into: &'a mut Vec<Incoming>) -> Self {
        Self {
            now,
            pool,
            into,
            outcome: RecvOutcome::default(),
            reads: RECV_PACKETS_MAX,
            packets: RECV_PACKETS_MAX,
            bytes: RECV_BYTES_MAX,
        }
    }

    /// True while the call may hand up more.
    pub(crate) fn has_share(&self) -> bool {
        self.packets > 0 && self.bytes > 0
    }

    /// Hands up what came by the way to `remote` and was read elsewhere than from a stream.
    pub(crate) fn hand_up(&mut self, remote: Address, packet: Packet) {
        self.bytes = self.bytes.saturating_sub(packet.payload_len());
        self.push(remote, packet);
    }

    fn push(&mut self, remote: Address, packet: Packet) {
        self.packets = self.packets.saturating_sub(1);
        self.outcome.packet_count = self.outcome.packet_count.saturating_add(1);
        self.outcome.bytes = self.outcome.bytes.saturating_add(packet.payload_len());
        self.into.push(Incoming { lane: TrafficClass::Data, remote, packet });
    }

    fn is_spent(&self) -> bool {
        self.reads == 0 || self.packets == 0 || self.bytes == 0
    }
}

/// What one turn of a stream came to.
enum Turn {
    /// There may be more.
    More,
    /// Nothing is there now.
    Idle,
    /// It waits for room in the pool.
    Starved,
    /// It is over.
    Ended(Ending),
}

impl<C: Connection> Streams<C> {
    /// Reads the streams that were said to have something, in turn.
    pub(crate) fn recv(&mut self, intake: &mut Intake<'_>) {
        self.now = intake.now;
        let mut starved = Vec::new();
        while !intake.is_spent() {
            let Some(index) = self.ready.pop_front() else { break };
            intake.reads = intake.reads.saturating_sub(1);
            match self.turn_of(index, intake) {
                Turn::More => self.ready.push_back(index),
                Turn::Idle => {
                    if let Some(slot) = self.slot(index) {
                        slot.is_queued = false;
                    }
                }
                Turn::Starved => starved.push(index),
                Turn::Ended(ending) => self.end(index, &ending, intake.pool),
            }
        }
        intake.outcome.more = !self.ready.is_empty();
        if !starved.is_empty() {
            intake.outcome.blocked = true;
            self.stats.pool_full = self.stats.pool_full.saturating_add(1);
        }
        self.ready.extend(starved);
        self.expire(intake.now, intake.pool);
    }

    fn turn_of(&mut self, index: usize, intake: &mut Intake<'_>) -> Turn {
        let slot = self.slots.get_mut(index).and_then(Option::as_mut);
        let Some(slot) = slot.filter(|slot| !slot.is_paused) else { return Turn::Idle };
        // What an earlier call had no share left for comes first.
        if let Err(turn) = slot.hand_up(intake, &mut self.stats) {
            return turn;
        }
        match slot.end.read(&mut slot.connection, intake.pool) {
            ReadOutcome::Bytes { len, is_all } => {
                intake.bytes = intake.bytes.saturating_sub(len);
                if let Err(turn) = slot.hand_up(intake, &mut self.stats) {
                    return turn;
                }
                // After a failure the end is read, too, so that nothing before it is lost.
                let is_all = is_all && C::SHORT_READ_IS_ALL && slot.failure.is_none();
                if is_all { Turn::Idle } else { Turn::More }
            }
            ReadOutcome::Unpolled => Turn::More,
            ReadOutcome::Nothing => slot.failure.take().map_or(Turn::Idle, Turn::Ended),
            ReadOutcome::PoolFull => Turn::Starved,
            ReadOutcome::Claim(token) => self.claim(index, token),
            ReadOutcome::Opened => {
                self.open(index);
                intake.outcome.writable = true;
                Turn::More
            }
            ReadOutcome::Ended(ending) => Turn::Ended(slot.failure.take().unwrap_or(ending)),
        }
    }

    /// Decides on a stream that has said its token.
    fn claim(&mut self, index: usize, token: Token) -> Turn {
        if !self.tokens.take(&token, self.now) {
            return Turn::Ended(Ending::UnknownToken);
        }
        let limit = self.streams_max;
        let is_full = self.by_remote.len() >= limit;
        let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut) else {
            return Turn::Idle;
        };
        slot.token = Some(token);
        if self.by_remote.contains_key(&slot.remote) {
            return Turn::Ended(Ending::SameRemote);
        }
        if is_full {
            return Turn::Ended(Ending::TooManyStreams { limit });
        }
        slot.end.accept();
        self.by_remote.insert(slot.remote, index);
        self.unclaimed.retain(|&one| one != index);
        let flushed = slot.end.flush(&mut slot.connection);
        self.changed.push(index);
        self.open(index);
        if let Err(error) = flushed {
            self.fail(index, Ending::of(error));
        }
        Turn::More
    }

    /// Tells that a stream is open.
    fn open(&mut self, index: usize) {
        let Some(slot) = self.slot(index) else { return };
        slot.phase = Phase::Open;
        slot.is_blocked = false;
        let remote = slot.remote;
        let token = slot.token.unwrap_or_default();
        self.stats.streams.opened = self.stats.streams.opened.saturating_add(1);
        self.changed.push(index);
        self.events.push_back(StreamEvent::Open { token, remote });
    }

    /// Takes a stream out and tells those who know its token.
    fn end(&mut self, index: usize, ending: &Ending, pool: &mut Pool) {
        let Some(mut slot) = self.take_out(index) else { return };
        slot.end.release(pool);
        self.count_ending(&slot, ending);
        match slot.token {
            Some(token) if slot.phase != Phase::Closing => {
                self.tell_closed(slot.remote, token, ending);
            }
            _ => {}
        }
    }

    fn count_ending(&mut self, slot: &Slot<C>, ending: &Ending) {
        let counts = &mut self.stats.streams;
        let refused = &mut self.stats.refused;
        let unreachable = &mut self.stats.unreachable;
        let counter = match ending {
            Ending::UnknownToken => &mut counts.unknown,
            Ending::Late => &mut counts.late,
            Ending::SameRemote | Ending::TooManyStreams { .. } => &mut counts.over_limit,
            Ending::WithinRecord { .. } | Ending::RecordTooLong { .. } => &mut counts.faults,
            Ending::Refused => refused,
            Ending::Unreachable => unreachable,
            _ if slot.phase == Phase::Unclaimed => &mut counts.malformed,
            _ => return,
        };
        *counter = counter.saturating_add(1);
    }

    /// Ends the streams that are late, and looks up when the next one will be.
    fn expire(&mut self, now: Time, pool: &mut Pool) {
        if now < self.deadline {
            return;
        }
        self.deadline = Time::NEVER;
        let mut late = Vec::new();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let Some(slot) = slot else { continue };
            let Some(wait) = slot.phase.wait() else { continue };
            let until = *slot.until.get_or_insert(in_time(now, wait));
            if until <= now {
                late.push((index, slot.phase.late()));
            } else {
                self.deadline = self.deadline.min(until);
            }
        }
        for (index, ending) in late {
            self.end(index, &ending, pool);
        }
    }
}

/// Time adds without overflow.
#[allow(clippy::arithmetic_side_effects)]
fn in_time(now: Time, wait: std::time::Duration) -> Time {
    now + wait
}

impl<C: Connection> Slot<C> {
    /// Hands up what was read; an error when the stream's turn ends by that.
    fn hand_up(&mut self, intake: &mut Intake<'_>, stats: &mut TransportStats) -> Result<(), Turn> {
        while intake.packets > 0 {
            match self.end.poll_datagram(intake.now, intake.pool) {
                Ok(Some(packet)) => self.take(packet, intake, stats),
                Ok(None) => return Ok(()),
                Err(ending) => return Err(Turn::Ended(ending)),
            }
        }
        Err(Turn::More)
    }

    fn take(&self, packet: Packet, intake: &mut Intake<'_>, stats: &mut TransportStats) {
        let (count, len) = (packet.segment_count(), packet.payload_len());
        if self.phase == Phase::Closing {
            intake.packets = intake.packets.saturating_sub(1);
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            stats.drops.closed = stats.drops.closed.saturating_add(count);
            intake.pool.free(packet);
            return;
        }
        stats.received.count(count, len);
        intake.push(self.remote, packet);
    }
}
