//! The simulated transport: the conformance suite with every kind of pipe, cuts at every byte, and
//! the same seed giving the same run.

#![allow(clippy::unwrap_used)]

mod plain;

use dacapo_base::{Address, Random, Time};
use dacapo_packet::Pool;
use dacapo_transport::conformance::{self, Bare, Ends, Side, StreamNet};
use dacapo_transport::sim::{self, Config, Net, Pipe, Sim};
use dacapo_transport::stream::{ReadOutcome, StreamEnd, Token};
use dacapo_transport::{
    Outgoing, Sent, StreamEvent, StreamTransport, TrafficClass, Transport, TransportStats,
};
use plain::Plain;
use std::cell::{Cell, RefCell};
use std::time::Duration;

const TOKEN: Token = [7; 16];

/// Simulated worlds as the suite wants them: each listener has one of its own, which begins at time
/// zero as the clocks of the suite do.
struct World {
    net: RefCell<Net>,
    config: Config,
    seed: Cell<u64>,
}

impl World {
    fn new(config: Config, seed: u64) -> Self {
        let net = RefCell::new(Net::new(&config, seed));
        Self { net, config, seed: Cell::new(seed) }
    }
}

impl StreamNet for World {
    fn serve(&self) -> (Box<dyn StreamTransport>, Address) {
        self.seed.set(self.seed.get().wrapping_add(1_000));
        self.net.replace(Net::new(&self.config, self.seed.get()));
        let server = self.net.borrow().serve();
        let address = server.local_addrs()[0];
        (Box::new(server), address)
    }

    fn dial(&self, remote: Address, token: Token) -> Box<dyn StreamTransport> {
        Box::new(self.net.borrow().dial(remote, token))
    }

    fn connect(&self, remote: Address, _token: &Token) -> Box<dyn Bare> {
        let wire = self.net.borrow().connect(remote);
        let local = wire.local_addr();
        Box::new(Plain(wire, local.ip().unwrap()))
    }

    fn nobody(&self) -> Address {
        "[100::dead]:19980".parse().unwrap()
    }

    fn streams_max(&self) -> usize {
        self.config.streams_max
    }
}

fn slow() -> Config {
    Config {
        delay: Duration::from_millis(3),
        jitter: Duration::from_millis(4),
        ..Config::default()
    }
}

#[test]
fn sim_conforms_whole_in_pieces_and_with_delay() {
    let whole = Config { is_split: false, ..Config::default() };
    for (config, seeds) in [(whole, 1), (Config::default(), 8), (slow(), 8)] {
        for seed in 0..seeds {
            println!("seed {seed} of {config:?}");
            let world = World::new(config, seed);
            conformance::run_all(&|| conformance::open_pair(&world));
            conformance::run_streams(&world);
        }
    }
}

#[test]
fn sim_with_small_buffers_conforms() {
    for buffer_bytes in [200, 700, 5_000] {
        for seed in 0..4 {
            println!("seed {seed} with {buffer_bytes} bytes");
            let world = World::new(Config { buffer_bytes, ..Config::default() }, seed);
            conformance::run_small_streams(&world);
        }
    }
}

fn ends(config: Config, seed: u64) -> (Net, Ends<Sim>) {
    let net = Net::new(&config, seed);
    let mut server = net.serve();
    server.expect(TOKEN, Time::NEVER);
    let server_addr = server.local_addrs()[0];
    let client = net.dial(server_addr, TOKEN);
    let client_addr = client.local_addrs()[0];
    let (client, server) = (Side::new(Box::new(client)), Side::new(Box::new(server)));
    (net, Ends { client, server, server_addr, client_addr, client_data: client_addr })
}

/// Sends numbered datagrams until the stream ends; returns what arrived, both reasons, and both
/// counters.
fn run_until_the_end(
    ends: &mut Ends<Sim>,
    count: u32,
) -> (Vec<u32>, [Option<String>; 2], [TransportStats; 2]) {
    let (mut number, mut reasons) = (0_u32, [None, None]);
    for _ in 0..2_000 {
        let bytes = [number.to_be_bytes().as_slice(), &[9; 90]].concat();
        let outgoing = Outgoing::datagram(TrafficClass::Data, ends.server_addr, &bytes);
        if number < count && matches!(ends.client.transport.send(&outgoing), Ok(Sent::All)) {
            number += 1;
        }
        ends.client.turn();
        ends.server.turn();
        for (reason, side) in reasons.iter_mut().zip([&mut ends.client, &mut ends.server]) {
            while let Some(event) = side.transport.poll_stream() {
                if let StreamEvent::Closed { reason: text, .. } = event {
                    assert!(reason.is_none(), "one end, one event");
                    *reason = Some(text);
                }
            }
        }
        if reasons.iter().all(Option::is_some) {
            break;
        }
    }
    let arrivals = ends.server.take_arrivals();
    let number_of = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let got = arrivals.iter().map(|arrival| number_of(&arrival.bytes)).collect();
    (got, reasons, [ends.client.transport.stats(), ends.server.transport.stats()])
}

#[test]
fn a_cut_at_any_byte_is_told_at_both_ends_after_the_whole_datagrams_before_it() {
    // 24 bytes of preface, then records of 98.
    for at in 0..320_u64 {
        let (net, mut ends) = ends(slow(), at);
        assert!(net.cut_after(ends.client_addr, sim::Side::Dialer, at));
        let (got, reasons, _) = run_until_the_end(&mut ends, 50);
        let whole = at.saturating_sub(24) / 98;
        assert!(got.iter().copied().eq(0..whole as u32), "cut at {at}: {got:?}");
        let [client, server] = reasons;
        assert!(client.is_some(), "cut at {at}: the client is told");
        assert_eq!(server.is_some(), at >= 24, "cut at {at}: who has no token is not told");
        ends.end();
    }
}

#[test]
fn a_cut_now_is_told_at_both_ends() {
    for seed in 0..50 {
        let (net, mut ends) = ends(slow(), seed);
        for _ in 0..20 + seed {
            ends.client.turn();
            ends.server.turn();
        }
        assert!(net.cut(ends.client_addr));
        let (_, reasons, _) = run_until_the_end(&mut ends, 10);
        for reason in reasons {
            let reason = reason.unwrap_or_else(|| panic!("seed {seed}: both are told"));
            assert!(reason.contains("broke the stream off"), "seed {seed}: {reason}");
        }
        assert!(!net.cut(ends.client_addr), "seed {seed}: nothing is left");
        ends.end();
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..20 {
        let run = || {
            let (net, mut ends) = ends(Config { buffer_bytes: 2_000, ..slow() }, seed);
            net.cut_after(ends.client_addr, sim::Side::Dialer, 3_000);
            let result = run_until_the_end(&mut ends, 50);
            (result, ends.client.now(), ends.server.now())
        };
        assert_eq!(run(), run(), "seed {seed}");
    }
}

#[test]
fn a_turn_that_says_there_is_no_more_has_handed_up_all_that_has_arrived() {
    for seed in 0..50 {
        let (_net, mut ends) = ends(Config::default(), seed);
        ends.await_until(|ends| ends.client.transport.stats().streams.opened == 1);
        for len in [10, 3_000, 40_000] {
            let bytes = vec![5; len];
            ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, ends.server_addr, &bytes));
            // The rest of a record that was begun goes out in the client's turns.
            for _ in 0..3 {
                ends.client.turn();
            }
            while ends.server.turn().more {}
            assert_eq!(ends.server.take_arrivals().len(), 1, "seed {seed}, {len} bytes");
        }
        ends.end();
    }
}

#[test]
fn a_transport_says_when_something_will_arrive() {
    let (_net, mut ends) = ends(Config { jitter: Duration::ZERO, ..slow() }, 1);
    ends.client.turn();
    let sent_at = ends.client.now();
    assert_eq!(ends.server.transport.next_deadline(), Some(sent_at + Duration::from_millis(3)));
}

/// How a world of whole cores carries a stream: a pipe, an engine at each end, and its own clock
/// that jumps to the next arrival.
#[test]
fn a_pipe_with_an_engine_at_each_end_carries_datagrams_in_virtual_time() {
    for seed in 0..50 {
        let mut random = Random::from_number(seed);
        let config = Config { buffer_bytes: 3_000, ..slow() };
        let mut pipe = Pipe::new(&config, random.fork());
        let (mut dialer, mut listener) = (StreamEnd::dialer(&TOKEN), StreamEnd::listener());
        let mut pool = Pool::new(1 << 20);
        let lens: Vec<usize> = (0..60).map(|_| random.below(1_500) as usize).collect();
        let (mut sent, mut got, mut now) = (0, Vec::new(), Time::ZERO);
        while got.len() < lens.len() {
            pipe.advance(now);
            let mut end = pipe.end(sim::Side::Listener);
            loop {
                match listener.read(&mut end, &mut pool) {
                    ReadOutcome::Claim(token) => {
                        assert_eq!(token, TOKEN);
                        listener.accept();
                    }
                    ReadOutcome::Bytes { .. } => {}
                    ReadOutcome::Nothing => break,
                    other => panic!("seed {seed}: {other:?}"),
                }
                while let Some(packet) = listener.poll_datagram(now, &mut pool).unwrap() {
                    for index in 0..packet.segment_count() {
                        got.push(pool.segment(&packet, index).len());
                    }
                    pool.free(packet);
                }
            }
            listener.flush(&mut end).unwrap();
            let mut end = pipe.end(sim::Side::Dialer);
            dialer.flush(&mut end).unwrap();
            while !matches!(dialer.read(&mut end, &mut pool), ReadOutcome::Nothing) {}
            while sent < lens.len() && !dialer.has_backlog() {
                let taken = dialer.write(&vec![1; lens[sent]], lens[sent], &mut end).unwrap();
                if taken.datagrams == 0 {
                    break;
                }
                sent += 1;
            }
            // With room left there is no arrival to wait for.
            let has_capacity = dialer.has_backlog() && pipe.end(sim::Side::Dialer).is_writable();
            if !has_capacity && let Some(at) = pipe.next_arrival() {
                now = at;
            }
        }
        assert_eq!(got, lens, "seed {seed}");
        dialer.release(&mut pool);
        listener.release(&mut pool);
        assert_eq!(pool.live_views(), 0, "seed {seed}");
    }
}
