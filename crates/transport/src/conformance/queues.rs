//! Rules about queues: a full pool, a full queue, one call's share, and the descriptor.

use super::side::{WAITS_MAX, assert_arrive, random_bytes};
use super::{Ends, Make};
use crate::{Outgoing, Sent, TrafficClass};
use dacapo_lift::Property;
use dacapo_packet::{ARRIVAL_BYTES_MAX, Pool};

/// What the pool has no room for waits in the transport and comes when there is room.
pub fn a_full_pool_leaves_the_data_for_later(make: Make<'_>) {
    for lane in [TrafficClass::Control, TrafficClass::Data] {
        let mut ends = Ends::with_data(make());
        ends.server.pool = Pool::new(ARRIVAL_BYTES_MAX);
        let hog = ends.server.pool.alloc_arrival().expect("room for one");
        let bytes = random_bytes(11, 600);
        let mut expected = Vec::new();
        for part in bytes.chunks(200) {
            ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, part));
            expected.push(part.to_vec());
        }
        ends.await_until(|ends| ends.server.stats().pool_full > 0);
        assert!(ends.server.turn().blocked);
        assert_eq!(ends.server.arrival_count(), 0);
        ends.server.pool.free(hog);
        assert_arrive(&mut ends, expected, "after the pool was full");
        assert!(!ends.server.turn().blocked);
        assert_eq!(ends.server.stats().drops.total(), 0);
        ends.end();
    }
}

/// One call of `recv` hands up a bounded number and says that there is more.
pub fn one_call_reads_a_bounded_number(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let count = 3 * crate::RECV_PACKETS_MAX;
    // Ever longer ones are no trains, so each is a packet of its own.
    let bytes = vec![3; count];
    for len in 1..=count {
        ends.client.send_all(&Outgoing::datagram(
            TrafficClass::Data,
            ends.server_addr,
            &bytes[..len],
        ));
    }
    let mut turns = 0;
    while ends.server.arrival_count() < count && turns < 10 * WAITS_MAX {
        let before = ends.server.arrival_count();
        let outcome = ends.server.turn();
        assert!(outcome.packet_count <= crate::RECV_PACKETS_MAX);
        assert_eq!(before + outcome.packet_count, ends.server.arrival_count());
        if ends.server.arrival_count() < count && outcome.packet_count > 0 {
            // It may also wait at the client, whose protocol lets it go bit by bit.
            let comes = |ends: &mut Ends| {
                ends.client.turn();
                ends.server.wait()
            };
            assert!(outcome.more || (0..WAITS_MAX).any(|_| comes(&mut ends)), "the rest waits");
        }
        turns += 1;
    }
    assert_eq!(ends.server.arrival_count(), count);
    assert!(turns >= 3);
    ends.server.drain();
    ends.end();
}

/// The descriptor is readable from the arrival until everything is read, and stays the same one. A
/// transport without one finds what has come in its turns alone.
pub fn the_descriptor_is_readable_while_something_waits(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    if ends.server.transport.fd().is_none() {
        ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"wake up"));
        let mut turns = 0;
        while ends.server.arrival_count() == 0 && turns < WAITS_MAX {
            ends.client.turn();
            ends.server.turn();
            turns += 1;
        }
        assert_eq!(ends.server.take_exactly(1)[0].bytes, b"wake up");
        assert_eq!(ends.server.turn(), crate::RecvOutcome::default(), "everything was read");
        return ends.end();
    }
    assert!(!ends.server.wait(), "nothing was sent");
    for lane in [TrafficClass::Control, TrafficClass::Data] {
        ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, b"wake up"));
        ends.await_until(|ends| ends.server.arrival_count() == 1);
        assert!(!ends.server.wait(), "everything was read");
        ends.server.take_arrivals();
        ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, b"wake up"));
        assert!((0..WAITS_MAX).any(|_| ends.server.wait()), "{lane:?}: something waits");
        assert!(ends.server.wait(), "{lane:?}: it still does");
        ends.await_server(1);
    }
    ends.end();
}

/// With a queue that is too small, sending blocks or loses, and the counters of both ends close:
/// sent = received + dropped. Who was blocked is told when there is room. The maker gives
/// transports with small queues.
pub fn a_full_queue_blocks_or_counts(make_small: Make<'_>) {
    let mut ends = Ends::with_data(make_small());
    let reliable = ends.client.has(Property::NoLoss);
    let mut blocked = 0;
    let mut taken = 0;
    for _ in 0..400 {
        let outgoing = Outgoing::datagram(TrafficClass::Data, ends.server_addr, &[7; 500]);
        match ends.client.transport.send(&outgoing).expect("no error") {
            Sent::All => taken += 1,
            Sent::Blocked { bytes_taken } => {
                assert_eq!(bytes_taken, 0);
                blocked += 1;
            }
        }
    }
    assert_eq!(ends.client.stats().sent.datagrams, taken);
    assert_eq!(ends.client.stats().would_blocks, blocked);
    let closes = |ends: &Ends| {
        let stats = ends.server.stats();
        stats.received.datagrams + stats.drops.total() >= taken
    };
    ends.await_until(closes);
    let stats = ends.server.stats();
    assert_eq!(taken, stats.received.datagrams + stats.drops.total(), "{stats:?}");
    assert!(blocked > 0 || stats.drops.total() > 0, "the queue was never full: {stats:?}");
    assert!(!reliable || stats.drops.total() == 0, "{stats:?}");
    if blocked > 0 {
        ends.await_until(|ends| ends.client.writable_count() > 0);
        assert!(ends.client.writable_count() > 0, "who was blocked is told that there is room");
        let before = ends.server.arrival_count();
        ends.client.send_all(&Outgoing::datagram(
            TrafficClass::Data,
            ends.server_addr,
            b"room again",
        ));
        ends.await_until(|ends| ends.server.arrival_count() > before);
        assert_eq!(ends.server.arrivals()[before].bytes, b"room again");
    }
    ends.server.drain();
    ends.end();
}
