//! The conformance suite: what every transport does, as tests that take a maker of transports.
//!
//! What it is: one function per rule, and [`run_all`]. Each makes a fresh [`Pair`], and ends by
//! checking that no view of the pool is left over.
//!
//! What it is not: a test of a network's quality, or of time: every wait ends when what was sent is
//! there, and only a transport that lost something waits to the end.
//!
//! ```text
//!   make() -> Pair { client, server }     Side = transport + pool + what arrived
//!      client.send_all(..) ----> server.await_arrivals(n) -> [Arrival]
//! ```
//!
//! # Panics
//! Every function panics when a rule is broken; that is its answer.

use crate::{DATA_LANES_MAX, Incoming, Lane, Outgoing, RecvOutcome, SendError, Sent, Transport};
use dacapo_base::{Random, Time};
use dacapo_packet::Pool;
use dacapo_sys::poll::{Event, Interest, Poller};
use std::net::SocketAddr;
use std::time::Duration;

/// Slices of waiting in vain, 50 ms each, before a datagram counts as lost.
const WAITS_MAX: usize = 200;
const WAIT: Duration = Duration::from_millis(50);
const POOL_BYTES: usize = 16 * 1024 * 1024;

/// Two transports that reach each other, without data lanes.
pub struct Pair {
    /// The one that knows the other's address.
    pub client: Box<dyn Transport>,
    /// The one that listens.
    pub server: Box<dyn Transport>,
    /// Where the client reaches the server.
    pub server_addr: SocketAddr,
    /// Where the server reaches the client's control lane.
    pub client_addr: SocketAddr,
}

/// A maker of pairs.
pub type Make<'a> = &'a dyn Fn() -> Pair;

/// A datagram that arrived.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where it came from.
    pub remote: SocketAddr,
    /// True when it came by the data lane.
    pub by_data: bool,
}

/// A transport with its pool and what has arrived.
pub struct Side {
    /// The transport.
    pub transport: Box<dyn Transport>,
    /// Its pool.
    pub pool: Pool,
    arrivals: Vec<Arrival>,
    incoming: Vec<Incoming>,
    turns: u64,
}

impl Side {
    /// A transport with a large pool.
    #[must_use]
    pub fn new(transport: Box<dyn Transport>) -> Self {
        let pool = Pool::new(POOL_BYTES);
        Self { transport, pool, arrivals: Vec::new(), incoming: Vec::new(), turns: 0 }
    }

    /// Receives once, and takes the packets apart.
    pub fn turn(&mut self) -> RecvOutcome {
        self.turns += 1;
        let now = Time::from_millis(self.turns);
        let outcome = self.transport.recv(now, &mut self.pool, &mut self.incoming);
        assert_eq!(outcome.packet_count, self.incoming.len(), "the outcome counts what came");
        let mut bytes = 0;
        for Incoming { lane, remote, packet } in self.incoming.drain(..) {
            assert!(packet.time <= now && packet.time > Time::ZERO, "the time of the arrival");
            bytes += packet.payload_len();
            for index in 0..packet.segment_count() {
                let bytes = self.pool.segment(&packet, index).to_vec();
                self.arrivals.push(Arrival { bytes, remote, by_data: lane == Lane::Data });
            }
            self.pool.free(packet);
        }
        assert_eq!(outcome.bytes, bytes, "the outcome counts the bytes that came");
        outcome
    }

    /// Receives until nothing is there at once.
    pub fn drain(&mut self) {
        while self.turn().packet_count > 0 {}
    }

    /// Receives until `count` datagrams are there; takes all that are.
    pub fn await_arrivals(&mut self, count: usize) -> Vec<Arrival> {
        self.await_until(|side| side.arrivals.len() >= count);
        assert_eq!(self.arrivals.len(), count, "datagrams arrived, stats {:?}", self.stats());
        std::mem::take(&mut self.arrivals)
    }

    /// Receives until `done`, or until everything that can arrive must have.
    pub fn await_until(&mut self, done: impl Fn(&Self) -> bool) {
        let mut waits_in_vain = 0;
        loop {
            let before = self.arrivals.len();
            self.drain();
            if done(self) || waits_in_vain == WAITS_MAX {
                return;
            }
            waits_in_vain = if self.arrivals.len() > before { 0 } else { waits_in_vain + 1 };
            self.wait();
        }
    }

    /// How many datagrams are there.
    #[must_use]
    pub fn arrival_count(&self) -> usize {
        self.arrivals.len()
    }

    /// Takes the datagrams that are there.
    pub fn take_arrivals(&mut self) -> Vec<Arrival> {
        std::mem::take(&mut self.arrivals)
    }

    /// Waits a slice of time for the descriptor; true when it was readable.
    pub fn wait(&mut self) -> bool {
        let Some(fd) = self.transport.fd() else {
            return true;
        };
        let mut poller = Poller::new().expect("a descriptor is left");
        poller.add(fd, 0, Interest::Read).expect("the descriptor can be watched");
        let mut events: Vec<Event> = Vec::new();
        poller.wait(Some(WAIT), &mut events).expect("a wait works");
        events.iter().any(|event| event.readable)
    }

    /// Sends everything, waiting for room where the transport blocks.
    pub fn send_all(&mut self, outgoing: &Outgoing<'_>) {
        let mut rest = *outgoing;
        let mut waits_in_vain = 0;
        while waits_in_vain < WAITS_MAX {
            match self.transport.send(&rest).expect("the transport takes it") {
                Sent::All => return,
                Sent::Blocked { bytes_taken } => {
                    assert!(bytes_taken.is_multiple_of(rest.segment_len.max(1)));
                    waits_in_vain = if bytes_taken > 0 { 0 } else { waits_in_vain + 1 };
                    rest.bytes = &rest.bytes[bytes_taken..];
                    self.wait();
                    self.turn();
                }
            }
        }
        panic!("the transport takes nothing, stats {:?}", self.stats());
    }

    fn stats(&self) -> crate::TransportStats {
        self.transport.stats()
    }

    /// Ends a test: nothing of the pool is out.
    pub fn end(self) {
        assert_eq!(self.pool.live_views(), 0, "views are left over");
    }
}

/// Two sides with their addresses.
pub struct Ends {
    /// The client.
    pub client: Side,
    /// The server.
    pub server: Side,
    /// Where the client reaches the server.
    pub server_addr: SocketAddr,
    /// Where the server reaches the client's control lane.
    pub client_addr: SocketAddr,
    /// Where the server reaches the client's data lane, once it is open.
    pub client_data: SocketAddr,
}

impl Ends {
    /// Both ends of a pair, without data lanes.
    #[must_use]
    pub fn new(pair: Pair) -> Self {
        Self {
            client: Side::new(pair.client),
            server: Side::new(pair.server),
            server_addr: pair.server_addr,
            client_addr: pair.client_addr,
            client_data: pair.client_addr,
        }
    }

    /// Both ends of a pair, with data lanes to each other.
    #[must_use]
    pub fn with_data(pair: Pair) -> Self {
        let mut ends = Self::new(pair);
        ends.client_data = ends.client.transport.open_data(ends.server_addr).expect("a lane opens");
        ends.server.transport.open_data(ends.client_data).expect("a lane opens");
        ends
    }

    /// Ends a test.
    pub fn end(self) {
        self.client.end();
        self.server.end();
    }
}

/// Every rule that holds for any queue.
pub fn run_all(make: Make<'_>) {
    boundaries_are_kept_for_every_size(make);
    trains_arrive_as_the_datagrams_they_are_made_of(make);
    a_datagram_arrives_by_the_lane_it_was_sent_by(make);
    data_without_a_lane_goes_by_control(make);
    a_lane_can_be_closed_and_opened_again(make);
    sending_to_nobody_never_hangs(make);
    an_oversized_datagram_is_too_large(make);
    a_full_pool_leaves_the_data_for_later(make);
    one_call_reads_a_bounded_number(make);
    the_descriptor_is_readable_while_something_waits(make);
    data_lanes_are_idempotent_and_bounded(make);
}

fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::from_number(seed).fill(&mut bytes);
    bytes
}

/// Compares what arrived with what was sent, in order where the transport promises order.
fn assert_arrived(side: &mut Side, mut expected: Vec<Vec<u8>>, context: &str) {
    let arrivals = side.await_arrivals(expected.len());
    let mut arrived: Vec<_> = arrivals.into_iter().map(|arrival| arrival.bytes).collect();
    if !side.transport.capabilities().ordered {
        arrived.sort();
        expected.sort();
    }
    assert!(arrived == expected, "{context}: the datagrams differ from those sent");
}

/// Empty, small, typical and the longest datagrams arrive whole, in both lanes.
pub fn boundaries_are_kept_for_every_size(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let longest = ends.client.transport.capabilities().datagram_len_max;
    for lane in [Lane::Control, Lane::Data] {
        for len in [0, 1, 1_200, 1_452, longest] {
            let bytes = random_bytes(len as u64, len);
            ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, &bytes));
            assert_arrived(&mut ends.server, vec![bytes], &format!("{lane:?}, {len} bytes"));
        }
    }
    let sent = ends.client.stats().sent;
    assert_eq!(sent, ends.server.stats().received);
    assert_eq!((sent.datagrams, sent.trains), (10, 0));
    ends.end();
}

/// A train arrives as its datagrams, whatever is joined on the way: even and uneven, with short
/// ends and with segments so long that two of them hardly fit a buffer.
pub fn trains_arrive_as_the_datagrams_they_are_made_of(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let trains = [(1_200, 12_000), (1_200, 1_201), (1_452, 60_000), (1, 64), (100, 20_050)];
    let long = [(30_000, 65_000), (40_000, 64_000)];
    for (segment_len, len) in trains.into_iter().chain(long) {
        let bytes = random_bytes(len as u64, len);
        let lane = Lane::Data;
        let train = Outgoing { lane, remote: ends.server_addr, bytes: &bytes, segment_len };
        ends.client.send_all(&train);
        let expected: Vec<_> = bytes.chunks(segment_len).map(<[u8]>::to_vec).collect();
        assert_eq!(expected.len(), train.datagram_count());
        assert_arrived(&mut ends.server, expected, &format!("{len} in {segment_len}"));
    }
    assert_eq!(ends.client.stats().sent.datagrams, ends.server.stats().received.datagrams);
    assert_eq!(ends.client.stats().sent.bytes, ends.server.stats().received.bytes);
    ends.end();
}

/// With lanes open at both ends, control arrives as control and data as data, both ways, from the
/// addresses that the lanes have.
pub fn a_datagram_arrives_by_the_lane_it_was_sent_by(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    for lane in [Lane::Control, Lane::Data] {
        let by_data = lane == Lane::Data;
        let client_here = if by_data { ends.client_data } else { ends.client_addr };
        ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, b"there"));
        let there = Arrival { bytes: b"there".to_vec(), remote: client_here, by_data };
        assert_eq!(ends.server.await_arrivals(1), [there]);
        ends.server.send_all(&Outgoing::datagram(lane, client_here, b"back"));
        let back = Arrival { bytes: b"back".to_vec(), remote: ends.server_addr, by_data };
        assert_eq!(ends.client.await_arrivals(1), [back]);
    }
    ends.end();
}

/// Data sent before a lane is open goes by control; it is not lost.
pub fn data_without_a_lane_goes_by_control(make: Make<'_>) {
    let mut ends = Ends::new(make());
    ends.client.send_all(&Outgoing::datagram(Lane::Data, ends.server_addr, b"early"));
    let remote = ends.client_addr;
    let early = Arrival { bytes: b"early".to_vec(), remote, by_data: false };
    assert_eq!(ends.server.await_arrivals(1), [early]);
    ends.end();
}

/// After a close data arrives by control, after another open by data again.
pub fn a_lane_can_be_closed_and_opened_again(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    for open in [true, false, true] {
        if open {
            ends.server.transport.open_data(ends.client_data).expect("a lane opens");
        } else {
            ends.server.transport.close_data(ends.client_data);
            ends.server.transport.close_data(ends.client_data);
        }
        ends.client.send_all(&Outgoing::datagram(Lane::Data, ends.server_addr, b"data"));
        let arrivals = ends.server.await_arrivals(1);
        assert_eq!(arrivals[0].by_data, open);
        assert_eq!(arrivals[0].remote, ends.client_data);
    }
    ends.end();
}

/// Sending to somebody who has left is refused, or lost without a word, but never waits.
pub fn sending_to_nobody_never_hangs(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    ends.server.end();
    for lane in [Lane::Control, Lane::Data] {
        for _ in 0..6 {
            let outgoing = Outgoing::datagram(lane, ends.server_addr, b"anybody?");
            match ends.client.transport.send(&outgoing) {
                Ok(Sent::All) | Err(SendError::Refused) => {}
                other => panic!("{lane:?}: {other:?}"),
            }
            ends.client.drain();
        }
    }
    assert_eq!(ends.client.arrival_count(), 0);
    ends.client.end();
}

/// A datagram beyond the limit, alone or in a train, is refused whole, and the transport goes on.
pub fn an_oversized_datagram_is_too_large(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let longest = ends.client.transport.capabilities().datagram_len_max;
    let bytes = vec![0; 2 * longest + 2];
    for lane in [Lane::Control, Lane::Data] {
        for (bytes, segment_len) in [(&bytes[..=longest], longest + 1), (&bytes[..], longest + 1)] {
            let remote = ends.server_addr;
            let result = ends.client.transport.send(&Outgoing { lane, remote, bytes, segment_len });
            assert!(matches!(result, Err(SendError::TooLarge { .. })), "{result:?}");
        }
        ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, b"short"));
        assert_arrived(&mut ends.server, vec![b"short".to_vec()], "after a long one");
    }
    assert_eq!(ends.client.stats().too_large, 4);
    ends.end();
}

/// What the pool has no room for waits in the transport and comes when there is room.
pub fn a_full_pool_leaves_the_data_for_later(make: Make<'_>) {
    for lane in [Lane::Control, Lane::Data] {
        let mut ends = Ends::with_data(make());
        ends.server.pool = Pool::new(2_048);
        let hog = ends.server.pool.alloc(0, 2_000, 0).expect("room for one");
        let bytes = random_bytes(11, 600);
        let mut expected = Vec::new();
        for part in bytes.chunks(200) {
            ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, part));
            expected.push(part.to_vec());
        }
        ends.server.await_until(|side| side.stats().pool_full > 0);
        assert!(ends.server.turn().blocked);
        assert_eq!(ends.server.arrival_count(), 0);
        ends.server.pool.free(hog);
        assert_arrived(&mut ends.server, expected, "after the pool was full");
        assert!(!ends.server.turn().blocked);
        assert_eq!(ends.server.stats().drops.total(), 0);
        ends.end();
    }
}

/// One call of `recv` hands up a bounded number and says that there is more.
pub fn one_call_reads_a_bounded_number(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let count = 3 * crate::RECV_PACKETS_MAX;
    for index in 0..count {
        let bytes = [index as u8; 3];
        ends.client.send_all(&Outgoing::datagram(Lane::Data, ends.server_addr, &bytes));
    }
    let mut turns = 0;
    while ends.server.arrival_count() < count && turns < 10 * WAITS_MAX {
        let before = ends.server.arrival_count();
        let outcome = ends.server.turn();
        assert!(outcome.packet_count <= crate::RECV_PACKETS_MAX);
        assert_eq!(before + outcome.packet_count, ends.server.arrival_count());
        if ends.server.arrival_count() < count && outcome.packet_count > 0 {
            assert!(ends.server.wait(), "the rest waits");
        }
        turns += 1;
    }
    assert_eq!(ends.server.arrival_count(), count);
    assert!(turns >= 3);
    ends.end();
}

/// The descriptor is readable from the arrival until everything is read, and stays the same one.
pub fn the_descriptor_is_readable_while_something_waits(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    if ends.server.transport.fd().is_none() {
        ends.end();
        return;
    }
    assert!(!ends.server.wait(), "nothing was sent");
    for lane in [Lane::Control, Lane::Data] {
        ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, b"wake up"));
        ends.server.await_until(|side| side.arrival_count() == 1);
        assert!(!ends.server.wait(), "everything was read");
        ends.server.take_arrivals();
        ends.client.send_all(&Outgoing::datagram(lane, ends.server_addr, b"wake up"));
        assert!((0..WAITS_MAX).any(|_| ends.server.wait()), "{lane:?}: something waits");
        assert!(ends.server.wait(), "{lane:?}: it still does");
        ends.server.await_arrivals(1);
    }
    ends.end();
}

/// Opening twice is once, and there is a bound, which a close makes room below.
pub fn data_lanes_are_idempotent_and_bounded(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let server = &mut ends.server.transport;
    let first = server.open_data(ends.client_data).expect("it is open");
    assert_eq!(server.open_data(ends.client_data).expect("it is open"), first);
    let other = |index: usize| SocketAddr::new(ends.client_data.ip(), 10_000 + index as u16);
    let mut open = 1;
    let refused = loop {
        match server.open_data(other(open)) {
            Ok(_) => open += 1,
            Err(error) => break error,
        }
        assert!(open <= DATA_LANES_MAX, "{open} lanes");
    };
    assert_eq!(refused.kind(), std::io::ErrorKind::QuotaExceeded, "{refused}");
    assert_eq!(server.open_data(ends.client_data).expect("it is open"), first);
    server.close_data(other(1));
    server.open_data(other(open)).expect("there is room for one");
    ends.client.send_all(&Outgoing::datagram(Lane::Data, ends.server_addr, b"still here"));
    assert!(ends.server.await_arrivals(1)[0].by_data);
    ends.end();
}

/// With a queue that is too small, sending blocks or loses, and the counters of both ends close:
/// sent = received + dropped. The maker gives transports with small queues.
pub fn a_full_queue_blocks_or_counts(make_small: Make<'_>) {
    let mut ends = Ends::with_data(make_small());
    let reliable = ends.client.transport.capabilities().reliable;
    let mut blocked = 0;
    let mut taken = 0;
    for _ in 0..400 {
        let outgoing = Outgoing::datagram(Lane::Data, ends.server_addr, &[7; 500]);
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
    ends.server.await_until(|side| {
        let stats = side.stats();
        stats.received.datagrams + stats.drops.total() >= taken
    });
    let stats = ends.server.stats();
    assert_eq!(taken, stats.received.datagrams + stats.drops.total(), "{stats:?}");
    assert!(blocked > 0 || stats.drops.total() > 0, "the queue was never full: {stats:?}");
    assert!(!reliable || stats.drops.total() == 0, "{stats:?}");
    if blocked > 0 {
        ends.client.await_until(|_| true);
        ends.client.send_all(&Outgoing::datagram(Lane::Data, ends.server_addr, b"room again"));
    }
    ends.server.drain();
    ends.end();
}

/// A burst of data that fills its queue drops no control (D7). The maker gives transports with
/// small queues.
pub fn a_burst_of_data_never_drops_control(make_small: Make<'_>) {
    let mut ends = Ends::with_data(make_small());
    for index in 0..400_u64 {
        let data = Outgoing::datagram(Lane::Data, ends.server_addr, &[7; 500]);
        ends.client.transport.send(&data).expect("no error");
        if index.is_multiple_of(100) {
            let control = Outgoing::datagram(Lane::Control, ends.server_addr, b"control");
            assert_eq!(ends.client.transport.send(&control).expect("no error"), Sent::All);
        }
    }
    ends.server.await_until(|side| side.arrivals.iter().filter(|a| !a.by_data).count() == 4);
    let arrivals = ends.server.take_arrivals();
    assert_eq!(arrivals.iter().filter(|arrival| !arrival.by_data).count(), 4);
    assert!(!arrivals[0].by_data, "control comes first");
    ends.server.drain();
    ends.end();
}
