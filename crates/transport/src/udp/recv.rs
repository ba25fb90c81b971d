//! Receiving: what the sockets hold becomes packets of the pool, control first.
//!
//! What it is not: a parser; junk is handed up as it came.
//!
//! ```text
//!   socket --recvmsg--> Inbox (64 KiB, reused) --copy per run--> right-sized packet --> core
//!                          | pool full: the rest stays here, and nothing more is read
//! ```
//!
//! The one copy makes a small datagram pin a small body instead of 64 KiB.
//!
//! Invariants: each lane reads a bounded number of arrivals per call, counting errors, so no remote
//! can keep the call busy; data sockets are read in turn; an arrival is either handed up, kept, or
//! counted as dropped.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::Udp;
use super::lanes::{Lanes, Place};
use crate::{Incoming, Lane, RECV_BYTES_MAX, RECV_PACKETS_MAX, RecvOutcome, TransportStats};
use dacapo_base::Time;
use dacapo_packet::{Layout, Packet, Pool, PoolFull, TRAIN_BYTES_MAX};
use dacapo_sys::udp::{Recv, RecvError};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// Longer than every UDP datagram and every train that the kernel joins.
const BUFFER_BYTES: usize = 65_536;

/// The sockets of one lane that may have something to read, and the last arrival.
#[derive(Debug)]
pub(super) struct Inbox {
    buffer: Box<[u8]>,
    held: Option<Held>,
    ready: VecDeque<Place>,
}

/// The part of an arrival in the buffer that is not handed up yet.
#[derive(Clone, Copy, Debug)]
struct Held {
    from: SocketAddr,
    time: Time,
    start: usize,
    end: usize,
    segment: usize,
}

/// What one attempt to read found.
enum Read {
    Arrived,
    Nothing,
    /// An answer to something sent earlier; there may be more to read.
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

impl Inbox {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES].into(), held: None, ready: VecDeque::new() }
    }

    /// A socket that is closed is not asked any more.
    pub(super) fn forget(&mut self, place: Place) {
        self.ready.retain(|&queued| queued != place);
    }

    /// Reads the next arrival of a socket into the buffer.
    fn read(
        &mut self,
        place: Place,
        lanes: &mut Lanes,
        now: Time,
        stats: &mut TransportStats,
    ) -> Read {
        let Some(channel) = lanes.channel(place) else {
            return Read::Nothing;
        };
        match channel.socket.recv(&mut self.buffer) {
            Ok(recv) => {
                channel.refused = false;
                self.hold(&recv, now, stats);
                return Read::Arrived;
            }
            Err(RecvError::WouldBlock) => {}
            Err(RecvError::Refused) => {
                channel.refused = true;
                stats.refused = stats.refused.saturating_add(1);
                return Read::Answer;
            }
            Err(RecvError::Unreachable) => {
                stats.unreachable = stats.unreachable.saturating_add(1);
                return Read::Answer;
            }
            Err(RecvError::Other(_)) => stats.errors = stats.errors.saturating_add(1),
        }
        channel.queued = false;
        Read::Nothing
    }

    fn hold(&mut self, recv: &Recv, now: Time, stats: &mut TransportStats) {
        let segment = recv.segment_size.map_or(recv.len, usize::from);
        if recv.truncated || segment > TRAIN_BYTES_MAX {
            stats.drops.too_long = stats.drops.too_long.saturating_add(1);
            return;
        }
        let from = recv.from;
        self.held = Some(Held { from, time: now, start: 0, end: recv.len, segment });
    }

    /// Hands up what is held, as one packet or, when it is more than a body holds, as several.
    fn hand_up(
        &mut self,
        lane: Lane,
        pool: &mut Pool,
        mut hand: impl FnMut(Incoming),
    ) -> Result<(), PoolFull> {
        while let Some(held) = &mut self.held {
            let (packet, len) = packet_of(held, &self.buffer, pool)?;
            hand(Incoming { lane, remote: held.from, packet });
            held.start = held.start.saturating_add(len);
            if held.start >= held.end {
                self.held = None;
            }
        }
        Ok(())
    }
}

/// A packet with the first run of what is held, and the length of the run.
fn packet_of(held: &Held, buffer: &[u8], pool: &mut Pool) -> Result<(Packet, usize), PoolFull> {
    let rest = buffer.get(held.start..held.end).unwrap_or_default();
    let segment = held.segment.max(1);
    let layout = Layout { head: 0, tail: 0, segment, segmented: true };
    let run = rest.get(..layout.payload_per_train()).unwrap_or(rest);
    let mut packet = pool.alloc_train(&layout, run.len())?;
    pool.write_payload(&packet, 0, run);
    packet.set_unit_ends(true, true);
    packet.time = held.time;
    Ok((packet, run.len()))
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
        for lane in [Lane::Control, Lane::Data] {
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
        if self.poller.wait(Some(Duration::ZERO), &mut events).is_err() {
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
        lane: Lane,
        now: Time,
        pool: &mut Pool,
        into: &mut Vec<Incoming>,
        outcome: &mut RecvOutcome,
    ) {
        let inbox = match lane {
            Lane::Control => &mut self.control,
            Lane::Data => &mut self.data,
        };
        let (lanes, stats) = (&mut self.lanes, &mut self.stats);
        let mut budget = Budget::new();
        loop {
            let handed = inbox.hand_up(lane, pool, |incoming| {
                count_up(&incoming, outcome, stats, &mut budget);
                into.push(incoming);
            });
            if handed.is_err() {
                outcome.blocked = true;
                return;
            }
            if budget.is_spent() {
                outcome.more |= !inbox.ready.is_empty();
                return;
            }
            let Some(place) = inbox.ready.pop_front() else {
                return;
            };
            budget.reads = budget.reads.saturating_sub(1);
            match inbox.read(place, lanes, now, stats) {
                Read::Arrived | Read::Answer => inbox.ready.push_back(place),
                Read::Nothing => {}
            }
        }
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
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    /// An inbox that has just read `len` bytes in segments of `segment`.
    fn inbox(len: usize, segment: Option<u16>, stats: &mut TransportStats) -> Inbox {
        let mut inbox = Inbox::new();
        for (index, byte) in inbox.buffer.iter_mut().enumerate() {
            *byte = (index % 251) as u8;
        }
        let recv = Recv {
            len,
            from: ([192, 0, 2, 1], 9).into(),
            segment_size: segment,
            ecn: None,
            truncated: false,
            overflow_count: None,
        };
        inbox.hold(&recv, Time::from_millis(7), stats);
        inbox
    }

    fn hand_up(inbox: &mut Inbox, pool: &mut Pool) -> (Vec<Incoming>, bool) {
        let mut all = Vec::new();
        let done = inbox.hand_up(Lane::Data, pool, |incoming| all.push(incoming)).is_ok();
        (all, done)
    }

    /// Checks the bytes and lengths of the datagrams, and frees them.
    fn check(packets: Vec<Incoming>, inbox: &Inbox, from: usize, segment: usize, pool: &mut Pool) {
        let mut at = from;
        for Incoming { packet, .. } in packets {
            assert_eq!(packet.time, Time::from_millis(7));
            for index in 0..packet.segment_count() {
                let bytes = pool.segment(&packet, index);
                assert!(bytes.len() <= segment);
                assert_eq!(bytes, &inbox.buffer[at..at + bytes.len()]);
                at += bytes.len();
            }
            pool.free(packet);
        }
    }

    // Linux joins no such trains today, and other senders than ours could make it do so.
    #[test]
    fn a_train_that_no_body_holds_becomes_several_packets() {
        let mut pool = Pool::new(1 << 20);
        for (len, segment, counts) in [
            (65_500, 40_000, vec![1, 1]),
            (65_507, 1_016, vec![63, 2]),
            (65_507, 1_000, vec![64, 2]),
            (65_000, 1_300, vec![50]),
        ] {
            let mut inbox = inbox(len, Some(segment), &mut TransportStats::default());
            let (packets, done) = hand_up(&mut inbox, &mut pool);
            assert!(done && inbox.held.is_none());
            let got: Vec<_> = packets.iter().map(|one| one.packet.segment_count()).collect();
            assert_eq!(got, counts, "{len} in {segment}");
            assert_eq!(packets.iter().map(|one| one.packet.payload_len()).sum::<usize>(), len);
            check(packets, &inbox, 0, segment.into(), &mut pool);
        }
        assert_eq!(pool.live_views(), 0);
    }

    #[test]
    fn what_the_pool_takes_half_is_finished_later_without_loss() {
        let mut pool = Pool::new(65_536);
        let mut inbox = inbox(65_500, Some(40_000), &mut TransportStats::default());
        let (first, done) = hand_up(&mut inbox, &mut pool);
        assert!(!done);
        assert_eq!((first.len(), first[0].packet.payload_len()), (1, 40_000));
        check(first, &inbox, 0, 40_000, &mut pool);
        let (second, done) = hand_up(&mut inbox, &mut pool);
        assert!(done);
        assert_eq!((second.len(), second[0].packet.payload_len()), (1, 25_500));
        check(second, &inbox, 40_000, 40_000, &mut pool);
        assert_eq!(pool.live_views(), 0);
    }

    #[test]
    fn a_datagram_that_no_body_holds_is_dropped_and_counted_and_blocks_nothing() {
        let mut stats = TransportStats::default();
        let mut pool = Pool::new(1 << 20);
        let mut inbox = inbox(65_527, None, &mut stats);
        let (packets, done) = hand_up(&mut inbox, &mut pool);
        assert!(done && packets.is_empty());
        assert_eq!(stats.drops.too_long, 1);
    }
}
