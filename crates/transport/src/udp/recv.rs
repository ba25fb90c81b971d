//! Receiving: what the sockets hold becomes packets of the pool, control first.
//!
//! ```text
//!   socket --recvmsg--> body of the pool, 64 KiB --+-- large: as it lies ---------------> core
//!      | pool full: nothing is read                +-- small: copied to a small body --->
//! ```
//!
//! The copy makes a small datagram pin a small body instead of 64 KiB.
//!
//! Invariants: each lane reads a bounded number of arrivals per call, counting errors, so no remote
//! can keep the call busy; data sockets are read in turn; an arrival is either handed up or counted
//! as dropped.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::Udp;
use super::lanes::{Lanes, Place};
use crate::{
    Incoming, RECV_BYTES_MAX, RECV_PACKETS_MAX, RecvOutcome, TooLong, TrafficClass, TransportStats,
};
use dacapo_base::{Address, Time};
use dacapo_packet::{Packet, Pool, TRAIN_BYTES_MAX};
use dacapo_sys::udp::{Recv, RecvError};
use std::collections::VecDeque;

/// The sockets of one lane that may have something to read.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    ready: VecDeque<Place>,
}

impl Inbox {
    /// A socket that is closed is not asked any more.
    pub(super) fn forget(&mut self, place: Place) {
        self.ready.retain(|&queued| queued != place);
    }
}

/// What one attempt to read found.
enum Read {
    /// Something, and whether it is worth looking for more.
    Arrived(Incoming, bool),
    Nothing,
    /// An answer to something sent earlier, or nothing of use; there may be more to read.
    Answer,
}

/// How much one call may still hand up.
struct Budget {
    reads: usize,
    bytes: usize,
}

impl Budget {
    fn new() -> Self {
        Self { reads: RECV_PACKETS_MAX, bytes: RECV_BYTES_MAX }
    }

    fn is_spent(&self) -> bool {
        self.reads == 0 || self.bytes == 0
    }
}

/// What reading needs besides sockets.
struct Reading<'a> {
    lane: TrafficClass,
    now: Time,
    pool: &'a mut Pool,
    /// Where the next arrival is read to.
    arrival: Packet,
    /// What was said of datagrams that were sent.
    too_large: Option<TooLong>,
    refused: Option<Address>,
}

impl<'a> Reading<'a> {
    fn new(lane: TrafficClass, now: Time, pool: &'a mut Pool) -> Self {
        Self { lane, now, pool, arrival: Packet::EMPTY, too_large: None, refused: None }
    }

    /// Whether there is room for an arrival.
    fn has_capacity(&mut self) -> bool {
        if self.arrival.is_empty_slot()
            && let Ok(arrival) = self.pool.alloc_arrival()
        {
            self.arrival = arrival;
        }
        !self.arrival.is_empty_slot()
    }

    /// Reads the next arrival of a socket.
    fn read(&mut self, place: Place, lanes: &mut Lanes, stats: &mut TransportStats) -> Read {
        let Some(channel) = lanes.channel(place) else {
            return Read::Nothing;
        };
        let into = self.pool.segment_mut(&mut self.arrival, 0).unwrap_or_default();
        match channel.recv(into) {
            Ok(recv) if !channel.is_wanted(recv.from) => {
                stats.drops.foreign = stats.drops.foreign.saturating_add(1);
                return Read::Answer;
            }
            Ok(recv) => {
                let goes_on = channel.prediction.goes_on(recv.segment_size.is_some());
                channel.expect_trains();
                return self.arrived(&recv, goes_on, stats);
            }
            Err(RecvError::WouldBlock) => {
                channel.prediction.found_nothing();
                channel.is_drained = true;
            }
            Err(RecvError::Refused) => {
                self.refused = channel.remote.map(Address::from);
                stats.refused = stats.refused.saturating_add(1);
                return Read::Answer;
            }
            Err(RecvError::Unreachable) => {
                stats.unreachable = stats.unreachable.saturating_add(1);
                return Read::Answer;
            }
            Err(RecvError::TooLarge) => {
                self.too_large = channel.remote.map(|remote| channel.hint(remote));
                return Read::Answer;
            }
            Err(RecvError::Other(_)) => stats.errors = stats.errors.saturating_add(1),
        }
        channel.queued = false;
        Read::Nothing
    }

    fn arrived(&mut self, recv: &Recv, goes_on: bool, stats: &mut TransportStats) -> Read {
        let segment = recv.segment_size.map_or(recv.len, usize::from);
        if recv.truncated || segment > TRAIN_BYTES_MAX {
            stats.drops.too_long = stats.drops.too_long.saturating_add(1);
            return Read::Answer;
        }
        let mut packet = self.pool.cut(&mut self.arrival, recv.len, segment);
        packet.set_unit_ends(true, true);
        packet.time = self.now;
        packet.set_ecn(recv.ecn);
        Read::Arrived(Incoming { lane: self.lane, remote: recv.from.into(), packet }, goes_on)
    }
}

impl Udp {
    pub(super) fn recv_lanes(
        &mut self,
        now: Time,
        pool: &mut Pool,
        into: &mut Vec<Incoming>,
    ) -> RecvOutcome {
        let mut outcome = RecvOutcome::default();
        self.collect_ready(&mut outcome);
        let inboxes = [(TrafficClass::Control, &self.control), (TrafficClass::Data, &self.data)];
        for lane in inboxes.map(|(lane, inbox)| (!inbox.ready.is_empty()).then_some(lane)) {
            let Some(lane) = lane else { continue };
            self.recv_lane(lane, now, pool, into, &mut outcome);
        }
        if outcome.blocked {
            self.stats.pool_full = self.stats.pool_full.saturating_add(1);
        }
        outcome
    }

    /// Asks which sockets are ready and queues those that are not queued yet.
    fn collect_ready(&mut self, outcome: &mut RecvOutcome) {
        let mut events = std::mem::take(&mut self.events);
        if self.watching.take_ready(&mut events).is_err() {
            self.stats.errors = self.stats.errors.saturating_add(1);
        }
        for event in &events {
            let place = Place::of_token(event.token);
            if event.writable {
                self.watch_write(place, false);
                outcome.writable = true;
            }
            if event.readable && self.lanes.enqueue(place) {
                match place {
                    Place::Control(_) => self.control.ready.push_back(place),
                    Place::Data(_) => self.data.ready.push_back(place),
                }
            }
        }
        self.events = events;
    }

    fn recv_lane(
        &mut self,
        lane: TrafficClass,
        now: Time,
        pool: &mut Pool,
        into: &mut Vec<Incoming>,
        outcome: &mut RecvOutcome,
    ) {
        let inbox = match lane {
            TrafficClass::Control => &mut self.control,
            TrafficClass::Data => &mut self.data,
        };
        let (lanes, stats) = (&mut self.lanes, &mut self.stats);
        let mut budget = Budget::new();
        let mut reading = Reading::new(lane, now, pool);
        while let Some(place) = inbox.ready.pop_front() {
            if budget.is_spent() || !reading.has_capacity() {
                outcome.more |= budget.is_spent();
                outcome.blocked |= !budget.is_spent();
                inbox.ready.push_front(place);
                break;
            }
            budget.reads = budget.reads.saturating_sub(1);
            match reading.read(place, lanes, stats) {
                Read::Arrived(incoming, goes_on) => {
                    count_up(&incoming, outcome, stats, &mut budget);
                    into.push(incoming);
                    if goes_on {
                        inbox.ready.push_back(place);
                    } else if let Some(channel) = lanes.channel(place) {
                        channel.queued = false;
                    }
                }
                Read::Answer => inbox.ready.push_back(place),
                Read::Nothing => {}
            }
        }
        let Reading { pool, arrival, too_large, refused, .. } = reading;
        pool.free(arrival);
        self.too_large = too_large.or(self.too_large);
        self.refused = refused.or(self.refused);
    }
}

fn count_up(
    incoming: &Incoming,
    outcome: &mut RecvOutcome,
    stats: &mut TransportStats,
    budget: &mut Budget,
) {
    let len = incoming.packet.payload_len();
    stats.received.count(incoming.packet.segment_count(), len);
    outcome.packet_count = outcome.packet_count.saturating_add(1);
    outcome.bytes = outcome.bytes.saturating_add(len);
    budget.bytes = budget.bytes.saturating_sub(len);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What comes of `len` bytes in segments of `segment` that have just been read.
    fn arrive(pool: &mut Pool, len: usize, segment: Option<u16>) -> (Option<Packet>, u64) {
        let mut stats = TransportStats::default();
        let now = Time::from_millis(7);
        let mut reading = Reading::new(TrafficClass::Data, now, pool);
        assert!(reading.has_capacity());
        let recv = Recv {
            len,
            from: ([192, 0, 2, 1], 9).into(),
            segment_size: segment,
            ecn: dacapo_base::Ecn::NotEct,
            truncated: false,
            overflow_count: None,
        };
        let packet = match reading.arrived(&recv, false, &mut stats) {
            Read::Arrived(incoming, _) => Some(incoming.packet),
            _ => None,
        };
        reading.pool.free(reading.arrival);
        (packet, stats.drops.too_long)
    }

    // Linux joins no such trains today, and other senders than ours could make it do so.
    #[test]
    fn a_train_is_one_packet_however_long() {
        let mut pool = Pool::new(1 << 20);
        for (len, segment, count) in
            [(65_500, 40_000, 2), (65_507, 1_016, 65), (65_000, 1_300, 50), (900, 300, 3)]
        {
            let (packet, too_long) = arrive(&mut pool, len, Some(segment));
            let packet = packet.unwrap();
            assert_eq!((packet.segment_count(), too_long), (count, 0), "{len} in {segment}");
            assert_eq!((packet.payload_len(), packet.time), (len, Time::from_millis(7)));
            pool.free(packet);
        }
        assert_eq!(pool.live_views(), 0);
    }

    #[test]
    fn a_datagram_that_no_packet_holds_is_dropped_and_counted() {
        let mut pool = Pool::new(1 << 20);
        let (packet, too_long) = arrive(&mut pool, 65_527, None);
        assert!(packet.is_none());
        assert_eq!((too_long, pool.live_views()), (1, 0));
    }

    #[test]
    fn without_room_for_an_arrival_nothing_is_read() {
        let mut pool = Pool::new(65_536);
        let held = pool.alloc_arrival().unwrap();
        let mut reading = Reading::new(TrafficClass::Data, Time::ZERO, &mut pool);
        assert!(!reading.has_capacity());
        reading.pool.free(held);
        assert!(reading.has_capacity());
        reading.pool.free(reading.arrival);
    }
}
