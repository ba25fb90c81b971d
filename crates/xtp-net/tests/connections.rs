//! Networks with connections: the table that keeps them, over a network of this test's own, and
//! whole associations over TCP.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{Echo, LONG, closes, host, random_bytes, send_and_read_back, transact};
use dacapo_base::{Random, Time, patience};
use dacapo_sys::poll::Registry;
use dacapo_xtp_net::{
    AddressError, Arrival, BindError, CacheConfig, Carriage, Connected, ConnectionEvent,
    ConnectionId, ConnectionOriented, Connectionless, Fault, Group, JoinError, Received, RecvError,
    SendError, Tcp,
};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What a network of this test was asked, and what it is to say.
#[derive(Debug, Default)]
struct Wires {
    dialed: Vec<SocketAddr>,
    closed: Vec<u64>,
    sent: Vec<(u64, Vec<u8>)>,
    events: VecDeque<ConnectionEvent>,
    come: VecDeque<(u64, Vec<u8>)>,
    /// Packets that there is room for.
    room: usize,
    refuses: Option<Fault>,
    /// Connections that are gone, which sending finds.
    broken: Vec<u64>,
}

/// Its wires, and the packet that came last.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Wires>>, Vec<u8>);

impl ConnectionOriented for Memory {
    fn local(&self) -> SocketAddr {
        peer(0)
    }

    fn packet_len_max(&self) -> usize {
        1_000
    }

    fn carriage(&self) -> Carriage {
        Carriage::Stream
    }

    fn address(&self, peer: SocketAddr) -> Result<SocketAddr, AddressError> {
        Ok(peer)
    }

    fn watch(&mut self, _registry: Registry) -> io::Result<()> {
        Ok(())
    }

    fn connect(&mut self, _now: Time, peer: SocketAddr) -> Result<ConnectionId, Fault> {
        let mut wires = self.0.lock().unwrap();
        wires.dialed.push(peer);
        let id = wires.dialed.len() as u64;
        wires.refuses.map_or(Ok(ConnectionId(id)), Err)
    }

    fn close(&mut self, id: ConnectionId) {
        self.0.lock().unwrap().closed.push(id.0);
    }

    fn send(&mut self, id: ConnectionId, train: &[u8], segment: usize) -> Result<usize, SendError> {
        let mut wires = self.0.lock().unwrap();
        if wires.broken.contains(&id.0) {
            wires.events.push_back(ConnectionEvent::Closed { id, fault: Some(Fault::Unreachable) });
            return Err(SendError::Fault(Fault::Unreachable));
        }
        let mut taken = 0;
        for packet in train.chunks(segment).take(wires.room) {
            wires.room -= 1;
            wires.sent.push((id.0, packet.to_vec()));
            taken += packet.len();
        }
        if taken == 0 { Err(SendError::WouldBlock) } else { Ok(taken) }
    }

    fn recv(&mut self) -> Option<ConnectionId> {
        let id;
        (id, self.1) = self.0.lock().unwrap().come.pop_front()?;
        Some(ConnectionId(id))
    }

    fn received(&self) -> Received<'_> {
        Received { train: &self.1, segment: self.1.len(), gap: 0 }
    }

    fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.0.lock().unwrap().events.pop_front()
    }

    fn deadline(&self) -> Time {
        Time::NEVER
    }

    fn handle_time(&mut self, _now: Time) {}
}

fn peer(number: u16) -> SocketAddr {
    ([192, 0, 2, 1], 1_000 + number).into()
}

fn at(seconds: u64) -> Time {
    Time::from_millis(seconds * 1_000)
}

/// A table over wires with room for everything.
fn table(config: CacheConfig) -> (Connected<Memory>, Memory) {
    let memory = Memory::default();
    memory.0.lock().unwrap().room = usize::MAX;
    (Connected::new(memory.clone(), config), memory)
}

impl Memory {
    fn tell(&self, event: ConnectionEvent) {
        self.0.lock().unwrap().events.push_back(event);
    }

    fn with<T>(&self, look: impl FnOnce(&mut Wires) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }
}

#[test]
fn packets_wait_for_their_connection_and_leave_in_order() {
    let (mut table, wires) = table(CacheConfig::default());
    assert_eq!(table.send(at(0), peer(1), b"aabbc", 2), Ok(5));
    assert_eq!(table.send(at(0), peer(1), b"d", 1), Ok(1));
    assert_eq!(wires.with(|it| (it.dialed.clone(), it.sent.len())), (vec![peer(1)], 0));
    wires.tell(ConnectionEvent::Open(ConnectionId(1)));
    table.handle_time(at(1));
    let sent =
        wires.with(|it| it.sent.iter().map(|(_, packet)| packet.clone()).collect::<Vec<_>>());
    assert_eq!(sent, [&b"aa"[..], b"bb", b"c", b"d"]);
    // Without room they wait again, and nobody is held up.
    wires.with(|it| it.room = 0);
    assert_eq!(table.send(at(1), peer(1), b"e", 1), Ok(1));
    wires.with(|it| it.room = 9);
    table.handle_time(at(2));
    assert_eq!(wires.with(|it| it.sent.last().unwrap().1.clone()), b"e");
}

#[test]
fn a_connection_that_rests_is_closed_and_made_again() {
    let (mut table, wires) = table(CacheConfig::default());
    table.send(at(0), peer(1), b"a", 1).unwrap();
    wires.tell(ConnectionEvent::Open(ConnectionId(1)));
    table.handle_time(at(1));
    assert_eq!(table.deadline(), at(61));
    wires.with(|it| it.come.push_back((1, b"word".to_vec())));
    let mut buffer = [0; 9];
    let arrival = table.recv(at(30), &mut buffer).unwrap();
    assert_eq!(arrival, Arrival { from: peer(1), train: b"word", segment: 4, gap: 0 });
    table.handle_time(at(89));
    assert_eq!(wires.with(|it| it.closed.clone()), []);
    table.handle_time(at(90));
    assert_eq!((wires.with(|it| it.closed.clone()), table.connection_count()), (vec![1], 0));
    table.send(at(100), peer(1), b"b", 1).unwrap();
    assert_eq!(wires.with(|it| it.dialed.len()), 2);
    assert_eq!((table.counters().idle_closed, table.counters().dialed), (1, 2));
}

#[test]
fn a_connection_that_fails_loses_what_waited_packet_by_packet_and_is_not_tried_at_once() {
    let (mut table, wires) = table(CacheConfig::default());
    table.send(at(0), peer(1), b"aabbc", 2).unwrap();
    let fault = Some(Fault::Refused);
    wires.tell(ConnectionEvent::Closed { id: ConnectionId(1), fault });
    table.handle_time(at(0));
    let told = RecvError::Fault { to: Some(peer(1)), fault: Fault::Refused };
    for _ in 0..3 {
        assert_eq!(table.recv(at(0), &mut [0; 9]), Err(told));
    }
    assert_eq!(table.recv(at(0), &mut [0; 9]), Err(RecvError::WouldBlock));
    let refused = Err(SendError::Fault(Fault::Refused));
    assert_eq!(table.send(at(0), peer(1), b"d", 1), refused);
    assert_eq!(wires.with(|it| it.dialed.len()), 1);
    assert_eq!(table.send(at(1), peer(1), b"d", 1), Ok(1));
    // What cannot even be begun is the same.
    wires.with(|it| it.refuses = Some(Fault::Unreachable));
    for _ in 0..100 {
        let sent = table.send(at(1), peer(2), b"d", 1);
        assert_eq!(sent, Err(SendError::Fault(Fault::Unreachable)));
    }
    assert_eq!(wires.with(|it| it.dialed.len()), 3);
}

#[test]
fn a_connection_that_the_peer_has_closed_costs_the_next_packet_nothing() {
    let (mut table, wires) = table(CacheConfig::default());
    let open = |table: &mut Connected<Memory>, id| {
        wires.tell(ConnectionEvent::Open(ConnectionId(id)));
        table.handle_time(at(id));
    };
    table.send(at(0), peer(1), b"a", 1).unwrap();
    open(&mut table, 1);
    // The network knows that it is gone: the packet goes to the next one.
    wires.tell(ConnectionEvent::Closed { id: ConnectionId(1), fault: None });
    assert_eq!(table.send(at(1), peer(1), b"b", 1), Ok(1));
    open(&mut table, 2);
    // Nobody knows: the packet finds it, and goes to the next one all the same.
    wires.with(|it| it.broken.push(2));
    assert_eq!(table.send(at(2), peer(1), b"c", 1), Ok(1));
    open(&mut table, 3);
    let sent = [(1, b"a".to_vec()), (2, b"b".to_vec()), (3, b"c".to_vec())];
    assert_eq!(wires.with(|it| it.sent.clone()), sent);
    assert_eq!((table.counters().dialed, table.connection_count()), (3, 1));
    assert_eq!(table.recv(at(3), &mut [0; 9]), Err(RecvError::WouldBlock), "nothing was lost");
}

#[test]
fn what_waited_for_a_connection_that_reading_found_closed_is_told_at_once() {
    let (mut table, wires) = table(CacheConfig::default());
    table.send(at(0), peer(1), b"a", 1).unwrap();
    let fault = Some(Fault::Refused);
    wires.tell(ConnectionEvent::Closed { id: ConnectionId(1), fault });
    let told = RecvError::Fault { to: Some(peer(1)), fault: Fault::Refused };
    assert_eq!(table.recv(at(0), &mut [0; 9]), Err(told));
    assert_eq!((table.connection_count(), table.deadline()), (0, Time::NEVER));
}

#[test]
fn what_waits_and_how_many_connections_there_are_is_bounded() {
    let config =
        CacheConfig { connections_max: 3, queue_bytes_max: 1_000, ..CacheConfig::default() };
    let (mut table, wires) = table(config);
    // As much as may wait of a train is taken, and then nothing.
    assert_eq!(table.send(at(0), peer(1), &[0; 1_500], 100), Ok(1_000));
    let overrun = Err(SendError::Fault(Fault::Overrun));
    assert_eq!(table.send(at(0), peer(1), &[0; 100], 100), overrun);
    for number in 2..=3 {
        table.send(at(0), peer(number), b"a", 1).unwrap();
    }
    // All wait for something, so none can go.
    assert_eq!(table.send(at(0), peer(4), b"a", 1), overrun);
    for id in 1..=3 {
        wires.tell(ConnectionEvent::Open(ConnectionId(id)));
    }
    table.handle_time(at(1));
    table.send(at(2), peer(1), b"a", 1).unwrap();
    table.send(at(3), peer(3), b"a", 1).unwrap();
    table.send(at(4), peer(4), b"a", 1).unwrap();
    assert_eq!(wires.with(|it| it.closed.clone()), [2], "the one that was used least recently");
    assert_eq!((table.connection_count(), table.counters().evicted), (3, 1));
}

#[test]
fn of_which_peer_packets_have_no_room_is_told_once_and_that_they_have_again() {
    let config = CacheConfig { queue_bytes_max: 1_000, ..CacheConfig::default() };
    let (mut table, wires) = table(config);
    // Half of what may wait for a connection that is dialed; the rest is for what was under way.
    assert_eq!(
        (table.send(at(0), peer(1), &[0; 400], 100), table.poll_capacity()),
        (Ok(400), None)
    );
    assert_eq!(table.send(at(0), peer(1), &[0; 300], 100), Ok(300));
    assert_eq!(table.send(at(0), peer(1), &[0; 100], 100), Ok(100));
    assert_eq!([table.poll_capacity(), table.poll_capacity()], [Some((peer(1), false)), None]);
    wires.tell(ConnectionEvent::Open(ConnectionId(1)));
    table.handle_time(at(1));
    assert_eq!([table.poll_capacity(), table.poll_capacity()], [Some((peer(1), true)), None]);
    // Of an open one anything that waits: packets go by the train, as far as there is room.
    wires.with(|it| it.room = 2);
    assert_eq!(table.send(at(1), peer(1), &[0; 350], 100), Ok(350));
    assert_eq!(
        (table.poll_capacity(), wires.with(|it| it.sent.len())),
        (Some((peer(1), false)), 10)
    );
    assert_eq!((table.send(at(1), peer(2), b"a", 1), table.poll_capacity()), (Ok(1), None));
    wires.with(|it| it.room = 1);
    table.handle_time(at(2));
    assert_eq!((table.poll_capacity(), wires.with(|it| it.sent.len())), (None, 11));
    // One that is gone holds up nobody.
    wires.tell(ConnectionEvent::Closed { id: ConnectionId(1), fault: None });
    table.handle_time(at(2));
    assert_eq!([table.poll_capacity(), table.poll_capacity()], [Some((peer(1), true)), None]);
}

#[test]
fn a_connection_of_the_peer_is_used_and_two_at_a_time_are_one_peer() {
    let (mut table, wires) = table(CacheConfig::default());
    wires.tell(ConnectionEvent::Incoming { id: ConnectionId(70), peer: peer(1) });
    wires.tell(ConnectionEvent::Incoming { id: ConnectionId(71), peer: peer(1) });
    table.handle_time(at(0));
    table.send(at(0), peer(1), b"a", 1).unwrap();
    assert_eq!(wires.with(|it| (it.dialed.len(), it.sent[0].0)), (0, 70));
    for id in [71, 70] {
        wires.with(|it| it.come.push_back((id, b"b".to_vec())));
        assert_eq!(table.recv(at(0), &mut [0; 9]).unwrap().from, peer(1));
    }
    wires.tell(ConnectionEvent::Closed { id: ConnectionId(70), fault: None });
    table.handle_time(at(0));
    table.send(at(0), peer(1), b"c", 1).unwrap();
    assert_eq!(wires.with(|it| (it.dialed.len(), it.sent[1].0)), (0, 71));
    // What a connection brings that is gone is nobody's.
    wires.with(|it| it.come.push_back((70, b"late".to_vec())));
    assert_eq!(table.recv(at(0), &mut [0; 9]), Err(RecvError::WouldBlock));
}

fn tcp(config: CacheConfig) -> Connected<Tcp> {
    let here = "127.0.0.1:0".parse().unwrap();
    Connected::new(Tcp::bind(here, None).unwrap(), config)
}

#[test]
fn streams_and_transactions_arrive_whole_over_connections() {
    let echo = Echo::new(host(tcp(CacheConfig::default())));
    let mut near = host(tcp(CacheConfig::default()));
    let bytes = random_bytes(1, 2_000_000);
    assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes);
    let request = random_bytes(2, 10_000);
    assert_eq!(transact(&mut near, echo.address, &request).unwrap(), request);
    closes(&near);
    // And the other way, over the connection that is there.
    let mut far = echo.stop();
    closes(&far);
    let echo = Echo::new(near);
    assert_eq!(transact(&mut far, echo.address, b"back").unwrap(), b"back");
    echo.stop();
}

#[test]
fn a_peer_that_comes_again_at_its_port_is_connected_to_again() {
    let echo = Echo::new(host(tcp(CacheConfig::default())));
    let address = echo.address;
    let mut near = host(tcp(CacheConfig::default()));
    for round in 0..3 {
        assert_eq!(transact(&mut near, address, b"before").unwrap(), b"before", "{round}");
    }
    drop(echo.stop());
    let again = Tcp::bind(address, None).unwrap();
    let echo = Echo::new(host(Connected::new(again, CacheConfig::default())));
    // This end has not turned meanwhile, and finds the end of the connection with its next packet.
    assert_eq!(transact(&mut near, address, b"after").unwrap(), b"after");
    closes(&near);
    closes(&echo.stop());
}

/// Turns both ends until the second has a packet.
fn carried(ends: &mut [Connected<Tcp>; 2], now: Time) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 16];
    let come = patience::until(Instant::now, LONG, || {
        ends.iter_mut().for_each(|end| end.handle_time(now));
        let arrival = ends[1].recv(now, &mut buffer).ok()?;
        Some(arrival.train.to_vec())
    });
    come.expect("nothing came")
}

#[test]
fn connections_of_tcp_that_rest_are_closed_at_both_ends_and_made_again() {
    let mut ends = [0, 1].map(|_| tcp(CacheConfig::default()));
    let to = ends[1].local();
    for round in 0..3_u64 {
        let packet = round.to_be_bytes();
        assert_eq!(ends[0].send(at(round * 100), to, &packet, 8), Ok(8));
        assert_eq!(carried(&mut ends, at(round * 100)), packet);
        assert_eq!(ends[0].connection_count(), 1);
        ends.iter_mut().for_each(|end| end.handle_time(at(round * 100 + 60)));
        assert_eq!(ends.each_ref().map(Connected::connection_count), [0, 0]);
    }
    assert_eq!((ends[0].counters().dialed, ends[1].counters().accepted), (3, 3));
}

#[test]
fn where_nobody_listens_the_connection_is_refused_and_the_host_says_so() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut near = host(tcp(CacheConfig::default()));
    let error = transact(&mut near, gone, b"anybody?").unwrap_err();
    assert!(error.to_string().contains("nobody takes XTP there"), "{error}");
    closes(&near);
}

#[test]
fn what_is_not_ours_is_let_go_and_harms_nobody() {
    let echo = Echo::new(host(tcp(CacheConfig::default())));
    let mut near = host(tcp(CacheConfig::default()));
    let preface = [&b"dXTP"[..], &1_u16.to_be_bytes(), &9_u16.to_be_bytes()].concat();
    let mut random = Random::from_number(5);
    for round in 0..30 {
        let mut hostile = TcpStream::connect(echo.address).unwrap();
        let mut junk = vec![0; 1 + random.below(500) as usize];
        random.fill(&mut junk);
        // Half of them begin as one does.
        let begins = if round % 2 == 0 { &preface[..] } else { &[] };
        // It may be let go before all is written.
        let _ = hostile.write_all(&[begins, &junk].concat());
        if round % 3 == 0 {
            drop(hostile);
        }
        assert_eq!(transact(&mut near, echo.address, b"still").unwrap(), b"still");
    }
    // More that say nothing than may wait: the oldest go.
    let mut silent: Vec<TcpStream> =
        (0..80).map(|_| TcpStream::connect(echo.address).unwrap()).collect();
    assert_eq!(transact(&mut near, echo.address, b"still").unwrap(), b"still");
    let oldest = &mut silent[0];
    oldest.set_read_timeout(Some(patience::STEP_MAX)).unwrap();
    let ended = patience::until(Instant::now, LONG, || match oldest.read(&mut [0; 1]) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        ended => Some(ended),
    });
    assert!(!matches!(ended, None | Some(Ok(1))), "{ended:?}");
    closes(&echo.stop());
}

#[test]
fn what_stands_in_the_way_is_said() {
    let here: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut first = tcp(CacheConfig::default());
    let again = Tcp::bind(first.local(), None).unwrap_err();
    assert!(matches!(again, BindError::InUse(_)), "{again}");
    let too_long = Tcp::bind(here, Some(65_536)).unwrap_err();
    assert!(too_long.to_string().contains("128 to 65535"), "{too_long}");
    assert!(first.address("[::1]:7".parse().unwrap()).is_err());
    assert!(first.address("127.0.0.1:0".parse().unwrap()).is_err());
    let group = Group { address: "239.1.1.1:7".parse().unwrap(), interface: 0 };
    assert!(matches!(first.join(group), Err(JoinError::Unsupported)));
}
