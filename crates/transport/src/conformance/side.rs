//! [`Side`] and [`Ends`]: transports with a pool, driven until what is awaited is there.

use crate::{Incoming, Outgoing, RecvOutcome, Sent, StreamTransport, TrafficClass, Transport};
use dacapo_base::{Address, Ecn, Random, Time};
use dacapo_lift::Property;
use dacapo_packet::Pool;
use dacapo_sys::poll::{Event, Interest, Poller};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Slices of waiting in vain, 50 ms each, before a datagram counts as lost.
pub(super) const WAITS_MAX: usize = 200;
const WAIT: Duration = Duration::from_millis(50);
const POOL_BYTES: usize = 16 * 1024 * 1024;

/// Two transports that reach each other, without data lanes. Streams are open.
pub struct Pair {
    /// The one that knows the other's address.
    pub client: Box<dyn Transport>,
    /// The one that listens.
    pub server: Box<dyn Transport>,
    /// Where the client reaches the server.
    pub server_addr: Address,
    /// Where the server reaches the client's control lane.
    pub client_addr: Address,
}

/// A maker of pairs.
pub type Make<'a> = &'a dyn Fn() -> Pair;

/// A datagram that arrived.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where it came from.
    pub remote: Address,
    /// True when it came by the data lane.
    pub by_data: bool,
}

/// A transport with its pool and what has arrived.
pub struct Side<T: Transport + ?Sized = dyn Transport> {
    /// The transport.
    pub transport: Box<T>,
    /// Its pool.
    pub pool: Pool,
    arrivals: Vec<Arrival>,
    incoming: Vec<Incoming>,
    now: Time,
    writable_count: usize,
    marked_count: usize,
}

impl<T: Transport + ?Sized> Side<T> {
    /// A transport with a large pool.
    #[must_use]
    pub fn new(transport: Box<T>) -> Self {
        let pool = Pool::new(POOL_BYTES);
        Self {
            transport,
            pool,
            arrivals: Vec::new(),
            incoming: Vec::new(),
            now: Time::ZERO,
            writable_count: 0,
            marked_count: 0,
        }
    }

    /// Whether its spec promises something.
    pub(super) fn has(&self, property: Property) -> bool {
        self.transport.spec().properties.contains(&property)
    }

    /// Receives once, a millisecond later, and takes the packets apart.
    pub fn turn(&mut self) -> RecvOutcome {
        self.now += Duration::from_millis(1);
        let now = self.now;
        let outcome = self.transport.recv(now, &mut self.pool, &mut self.incoming);
        assert_eq!(outcome.packet_count, self.incoming.len(), "the outcome counts what came");
        let mut bytes = 0;
        for Incoming { lane, remote, packet } in self.incoming.drain(..) {
            assert!(packet.time <= now && packet.time > Time::ZERO, "the time of the arrival");
            bytes += packet.payload_len();
            self.marked_count += if packet.ecn() == Ecn::Ce { packet.segment_count() } else { 0 };
            for index in 0..packet.segment_count() {
                let bytes = self.pool.segment(&packet, index).to_vec();
                self.arrivals.push(Arrival { bytes, remote, by_data: lane == TrafficClass::Data });
            }
            self.pool.free(packet);
        }
        assert_eq!(outcome.bytes, bytes, "the outcome counts the bytes that came");
        self.writable_count += usize::from(outcome.writable);
        outcome
    }

    /// The time of the latest turn.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many turns said that there is room again.
    #[must_use]
    pub fn writable_count(&self) -> usize {
        self.writable_count
    }

    /// How many datagrams came with a mark of congestion.
    #[must_use]
    pub fn marked_count(&self) -> usize {
        self.marked_count
    }

    /// Lets time pass without a turn.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// Receives until nothing is there at once.
    pub fn drain(&mut self) {
        while self.turn().packet_count > 0 {}
    }

    /// Receives until `count` datagrams are there; takes all that are.
    pub fn await_arrivals(&mut self, count: usize) -> Vec<Arrival> {
        self.await_until(|side| side.arrivals.len() >= count);
        self.take_exactly(count)
    }

    /// Takes the datagrams that are there, which are `count`.
    pub(super) fn take_exactly(&mut self, count: usize) -> Vec<Arrival> {
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

    /// The datagrams that are there.
    #[must_use]
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// Takes the datagrams that are there.
    pub fn take_arrivals(&mut self) -> Vec<Arrival> {
        std::mem::take(&mut self.arrivals)
    }

    /// Waits a slice of time for the descriptor; true when it was readable, or when there is none.
    pub fn wait(&mut self) -> bool {
        wait_for([self.transport.fd()])
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

    pub(super) fn stats(&self) -> crate::TransportStats {
        self.transport.stats()
    }

    /// Ends a test: nothing of the pool is out.
    pub fn end(self) {
        assert_eq!(self.pool.live_views(), 0, "views are left over");
    }
}

impl Side<dyn StreamTransport> {
    /// Ends a test in the middle of whatever there is: nothing of the pool is out.
    pub fn release(mut self) {
        self.transport.release(&mut self.pool);
        self.end();
    }
}

/// Waits a slice of time for one of the descriptors; true when one was readable, or when one is
/// missing, and then every turn counts.
pub(super) fn wait_for<'a>(fds: impl IntoIterator<Item = Option<BorrowedFd<'a>>>) -> bool {
    let mut poller = Poller::new().expect("a descriptor is left");
    for fd in fds {
        let Some(fd) = fd else { return true };
        poller.add(fd, 0, Interest::Read).expect("the descriptor can be watched");
    }
    let mut events: Vec<Event> = Vec::new();
    poller.wait(Some(WAIT), &mut events).expect("a wait works");
    events.iter().any(|event| event.readable)
}

/// Two sides with their addresses.
pub struct Ends<T: Transport + ?Sized = dyn Transport> {
    /// The client.
    pub client: Side<T>,
    /// The server.
    pub server: Side<T>,
    /// Where the client reaches the server.
    pub server_addr: Address,
    /// Where the server reaches the client's control lane.
    pub client_addr: Address,
    /// Where the server reaches the client's data lane, once it is open.
    pub client_data: Address,
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

    /// True when control and data have a way each.
    #[must_use]
    pub fn has_lanes(&self) -> bool {
        self.client.transport.spec().lanes
    }
}

impl<T: Transport + ?Sized> Ends<T> {
    /// Receives at both ends until `done`, or until everything that can arrive must have: what a
    /// transport keeps to send goes out in its own turns.
    pub fn await_until(&mut self, done: impl Fn(&Self) -> bool) {
        let mut waits_in_vain = 0;
        loop {
            let before = self.client.arrivals.len() + self.server.arrivals.len();
            self.client.drain();
            self.server.drain();
            if done(self) || waits_in_vain == WAITS_MAX {
                return;
            }
            let after = self.client.arrivals.len() + self.server.arrivals.len();
            waits_in_vain = if after > before { 0 } else { waits_in_vain + 1 };
            wait_for([self.client.transport.fd(), self.server.transport.fd()]);
        }
    }

    /// Receives until `count` datagrams are at the server; takes all that are.
    pub fn await_server(&mut self, count: usize) -> Vec<Arrival> {
        self.await_until(|ends| ends.server.arrivals.len() >= count);
        self.server.take_exactly(count)
    }

    /// Receives until `count` datagrams are at the client; takes all that are.
    pub fn await_client(&mut self, count: usize) -> Vec<Arrival> {
        self.await_until(|ends| ends.client.arrivals.len() >= count);
        self.client.take_exactly(count)
    }

    /// Ends a test.
    pub fn end(self) {
        self.client.end();
        self.server.end();
    }
}

pub(super) fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::from_number(seed).fill(&mut bytes);
    bytes
}

/// Compares what arrives at the server with what was sent, in order where the transport promises
/// order.
pub(super) fn assert_arrive(ends: &mut Ends, mut expected: Vec<Vec<u8>>, context: &str) {
    let arrivals = ends.await_server(expected.len());
    let mut arrived: Vec<_> = arrivals.into_iter().map(|arrival| arrival.bytes).collect();
    if !ends.server.has(Property::Order) {
        arrived.sort();
        expected.sort();
    }
    assert!(arrived == expected, "{context}: the datagrams differ from those sent");
}
