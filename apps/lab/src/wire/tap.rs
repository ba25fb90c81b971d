//! [`Tap`]: a transport that is listened to: what goes in and out, and a few datagrams of flows.

use dacapo_base::{Address, Time};
use dacapo_packet::Pool;
use dacapo_transport::{
    Incoming, Outgoing, RecvOutcome, SendError, Sent, Transport, TransportStats, pass_on,
};
use dacapo_wire::data::TYPE_DATA;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// So many datagrams of flows are kept.
const SAMPLES: usize = 16;

/// What a tap has heard.
#[derive(Debug, Default)]
pub struct Heard {
    /// Datagrams that came from strangers.
    pub strange_datagrams: AtomicU64,
    /// Bytes of them.
    pub strange_bytes_in: AtomicU64,
    /// Bytes that went to strangers.
    pub strange_bytes_out: AtomicU64,
    samples: Mutex<Vec<Vec<u8>>>,
    stats: Mutex<TransportStats>,
}

impl Heard {
    /// The first datagrams of flows that went out.
    #[must_use]
    pub fn samples(&self) -> Vec<Vec<u8>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The transport's own counters, as they were not long ago.
    #[must_use]
    pub fn stats(&self) -> TransportStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, outgoing: &Outgoing<'_>) {
        let datagram = outgoing.bytes.get(..outgoing.datagram_len()).unwrap_or_default();
        if datagram.first() == Some(&TYPE_DATA) {
            let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            if samples.len() < SAMPLES {
                samples.push(datagram.to_vec());
            }
        }
    }
}

/// True for the addresses that junk comes from: of loopback, but not 127.0.0.x.
#[must_use]
pub fn is_strange(remote: Address) -> bool {
    match remote.ip().map(|at| at.ip()) {
        Some(IpAddr::V4(ip)) => ip.is_loopback() && ip.octets()[1] != 0,
        _ => false,
    }
}

/// The address of the stranger of this number, up to 16 million of them.
#[must_use]
pub fn stranger(number: usize) -> SocketAddr {
    let (b, c, d) = (1 + number / 62_500, number / 250 % 250, 1 + number % 250);
    let ip = Ipv4Addr::new(127, (b % 255).max(1) as u8, c as u8, d as u8);
    SocketAddr::from((ip, 0))
}

/// A transport that is listened to.
pub struct Tap<T> {
    inner: T,
    heard: Arc<Heard>,
    calls: u32,
    reads: u32,
}

impl<T> Tap<T> {
    /// Listens to a transport.
    #[must_use]
    pub fn new(inner: T, heard: &Arc<Heard>) -> Self {
        Self { inner, heard: Arc::clone(heard), calls: 0, reads: 0 }
    }
}

#[deny(clippy::missing_trait_methods)]
impl<T: Transport> Transport for Tap<T> {
    pass_on!(
        inner: spec, datagram_len_max, local_addrs, open_data, close_data, join, leave,
        poll_too_large, poll_refused, fd, watch_in, handle_ready, stats
    );

    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let sent = self.inner.send(outgoing);
        if is_strange(outgoing.remote) && matches!(sent, Ok(Sent::All)) {
            self.heard.strange_bytes_out.fetch_add(outgoing.bytes.len() as u64, Relaxed);
        }
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(16) {
            self.heard.keep(outgoing);
        }
        sent
    }

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        let before = into.len();
        let outcome = self.inner.recv(now, pool, into);
        let came = into.get(before..).unwrap_or_default();
        let strange = came.iter().filter(|it| is_strange(it.remote));
        let (mut datagrams, mut bytes) = (0, 0);
        for incoming in strange {
            datagrams += incoming.packet.segment_count() as u64;
            bytes += incoming.packet.payload_len() as u64;
        }
        self.heard.strange_datagrams.fetch_add(datagrams, Relaxed);
        self.heard.strange_bytes_in.fetch_add(bytes, Relaxed);
        self.reads = self.reads.wrapping_add(1);
        if self.reads.is_multiple_of(64) {
            *self.heard.stats.lock().unwrap_or_else(PoisonError::into_inner) = self.inner.stats();
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_sys::poll::{Event, Poller, Registry};
    use dacapo_transport::{JoinError, Membership, TooLong, TrafficClass, TransportSpec};
    use std::collections::BTreeSet;
    use std::io;
    use std::os::fd::BorrowedFd;

    /// Answers as no transport does that leaves a method out, and notes what it was asked.
    #[derive(Default)]
    struct Scripted {
        asked: Vec<&'static str>,
    }

    static SCRIPTED: TransportSpec =
        TransportSpec { name: "scripted", ..dacapo_transport::udp::SPEC };

    fn somebody() -> Address {
        Address::from(([192, 0, 2, 1], 7))
    }

    impl Transport for Scripted {
        fn spec(&self) -> &'static TransportSpec {
            &SCRIPTED
        }

        fn datagram_len_max(&self) -> usize {
            1_200
        }

        fn local_addrs(&self) -> &[Address] {
            &[]
        }

        fn open_data(&mut self, remote: Address) -> io::Result<Address> {
            self.asked.push("open_data");
            Ok(remote)
        }

        fn close_data(&mut self, _: Address) {
            self.asked.push("close_data");
        }

        fn join(&mut self, _: &Membership) -> Result<(), JoinError> {
            self.asked.push("join");
            Ok(())
        }

        fn leave(&mut self, _: &Membership) {
            self.asked.push("leave");
        }

        fn send(&mut self, _: &Outgoing<'_>) -> Result<Sent, SendError> {
            self.asked.push("send");
            Ok(Sent::All)
        }

        fn recv(&mut self, _: Time, _: &mut Pool, _: &mut Vec<Incoming>) -> RecvOutcome {
            self.asked.push("recv");
            RecvOutcome { more: true, ..RecvOutcome::default() }
        }

        fn poll_too_large(&mut self) -> Option<TooLong> {
            Some(TooLong { remote: somebody(), datagram_len: Some(1_200) })
        }

        fn poll_refused(&mut self) -> Option<Address> {
            Some(somebody())
        }

        fn fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn watch_in(&mut self, _: Registry) -> io::Result<bool> {
            self.asked.push("watch_in");
            Ok(true)
        }

        fn handle_ready(&mut self, event: Event) {
            assert_eq!(event.token, 77);
            self.asked.push("handle_ready");
        }

        fn stats(&self) -> TransportStats {
            TransportStats { errors: 7, ..TransportStats::default() }
        }
    }

    #[test]
    fn everything_that_a_turn_loop_asks_gets_through_a_tap() {
        let mut tap = Tap::new(Scripted::default(), &Arc::default());
        let transport: &mut dyn Transport = &mut tap;
        let group = ([239, 1, 2, 3], 5_004).into();
        let wanted = Membership { group, source: somebody().ip().unwrap(), source_specific: true };
        let poller = Poller::new().unwrap();
        assert_eq!((transport.spec().name, transport.datagram_len_max()), ("scripted", 1_200));
        assert!(
            transport.watch_in(poller.registry(1)).unwrap(),
            "it is watched where it is waited"
        );
        let event = Event { token: 77, readable: true, writable: false, closed: false };
        transport.handle_ready(event);
        assert_eq!(transport.open_data(somebody()).unwrap(), somebody());
        transport.join(&wanted).unwrap();
        let outgoing = Outgoing::datagram(TrafficClass::Data, somebody(), &[0; 1_400]);
        assert!(matches!(transport.send(&outgoing), Ok(Sent::All)));
        let too_long = transport.poll_too_large().expect("what the network said of lengths");
        assert_eq!((too_long.remote, too_long.datagram_len), (somebody(), Some(1_200)));
        assert_eq!(transport.poll_refused(), Some(somebody()));
        let mut pool = Pool::new(1 << 16);
        assert!(transport.recv(Time::ZERO, &mut pool, &mut Vec::new()).more);
        transport.leave(&wanted);
        transport.close_data(somebody());
        assert_eq!(transport.stats().errors, 7);
        let order = "watch_in handle_ready open_data join send recv leave close_data";
        assert_eq!(tap.inner.asked.join(" "), order);
    }

    #[test]
    fn strangers_are_all_different_and_known_as_such() {
        let all: BTreeSet<SocketAddr> = (0..100_000).map(stranger).collect();
        assert_eq!(all.len(), 100_000);
        assert!(all.iter().all(|address| is_strange((*address).into())));
        assert!(!is_strange(Address::from(([127, 0, 0, 1], 9))));
        assert!(!is_strange(Address::from(([10, 77, 0, 1], 9))));
    }
}
