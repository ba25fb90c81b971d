//! Floods of beginnings, in virtual time: spoofed first packets, handshakes that are left, peers
//! that greet and stay silent. What is kept is bounded, nobody's address is flooded, and an honest
//! peer still gets in.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::raw::{RawPeer, hello, initials};
use common::{Joined, Lab, ms, pattern, plain};
use dacapo_base::Random;
use dacapo_core::{Code, Command, CoreEvent, DialParams, Done, PEERS_MAX};
use dacapo_netlab::traffic::Pattern;
use dacapo_netlab::{Datagram, NodeId};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// More than the half-open connections that the core admits, with and without a proof.
const CONNECTIONS_MAX: usize = 300;

/// Half-open connections, those that were given up and are not forgotten yet, and others.
const LEFT_MAX: usize = 600;

/// How long an honest peer may take to get in, and how long it should, in ms.
const GET_IN_MAX: u64 = 10_000;
const GET_IN_SOON: u64 = 1_000;

/// What was sent to and received from each address that has proved nothing.
#[derive(Default)]
struct Balance(BTreeMap<IpAddr, (usize, usize)>);

impl Balance {
    fn note_in(&mut self, from: SocketAddr, len: usize) {
        self.0.entry(from.ip()).or_default().0 += len;
    }

    fn note_out(&mut self, strays: &[Datagram]) {
        for stray in strays {
            self.0.entry(stray.to.ip()).or_default().1 += stray.bytes.len();
        }
    }

    /// Nobody got more than three times what came in his name; bytes in and out of all.
    fn check(&self) -> (usize, usize) {
        for (address, (received, sent)) in &self.0 {
            assert!(*sent <= 3 * received, "{sent} bytes to {address} for {received} from it");
        }
        self.0.values().fold((0, 0), |(ins, outs), (it, out)| (ins + it, outs + out))
    }
}

/// A creator with a running honest flow, and another honest core that has not begun.
struct Flooded {
    lab: Lab,
    honest: Joined,
    newcomer: NodeId,
    begun_ms: u64,
    /// The most connections that the creator had.
    most: usize,
}

impl Flooded {
    fn new() -> Self {
        let mut lab = Lab::new("delay=20ms");
        lab.pattern = Pattern { every: ms(5), ..pattern(1_000_000) };
        let newcomer = lab.add_participant();
        let honest = lab.start(plain());
        lab.world.keep_strays();
        let begun_ms = lab.now().as_nanos() / 1_000_000;
        Self { lab, honest, newcomer, begun_ms, most: 0 }
    }

    fn run(&mut self, time: u64) -> Vec<Datagram> {
        self.lab.run(ms(time));
        let count = self.lab.world.core(self.lab.creator).connection_count();
        self.most = self.most.max(count);
        self.lab.world.take_strays()
    }

    fn begin_to_dial(&mut self) {
        let (now, address) = (self.lab.now(), self.lab.world.address(self.lab.creator));
        self.lab
            .world
            .core(self.newcomer)
            .handle_command(
                now,
                Command::Connect { remote: address.into(), params: DialParams::default() },
            )
            .and_then(Done::peer)
            .expect("room");
    }

    fn got_in(&self) -> bool {
        let is_open = |event: &CoreEvent| matches!(event, CoreEvent::PeerOpen { .. });
        self.lab.count(self.newcomer, is_open) > 0
    }

    /// Nothing is left of the flood, and the honest flow has not noticed.
    fn finish(mut self, connections: usize) {
        let (lab, honest) = (&mut self.lab, &self.honest);
        let left = lab.world.core(lab.creator).connection_count();
        assert!(left <= connections, "{left} connections are left");
        assert_eq!(lab.ended(lab.participant, honest.here), None);
        lab.close(lab.participant, honest.here);
        let (here, there) = lab.ledgers(honest, 0, ms(2_000));
        assert!(here.closes() && there.closes(), "{here:?} {there:?}");
        assert_eq!((here.delivered, here.lost, there.unknown), (here.sent, 0, 0), "{here:?}");
        let ran = lab.now().as_nanos() / 1_000_000 - self.begun_ms;
        assert!(5 * here.sent + 400 > ran, "{} units in {ran} ms", here.sent);
        lab.check_empty();
    }
}

#[test]
fn a_hundred_thousand_spoofed_beginnings_keep_nobody_out_and_flood_nobody() {
    let mut flooded = Flooded::new();
    let (mut random, mut balance) = (Random::from_number(1), Balance::default());
    let address = flooded.lab.world.address(flooded.lab.creator);
    for batch in 0..100 {
        if batch == 50 {
            flooded.begin_to_dial();
        }
        for first in initials(&flooded.lab.world, address, batch, 1_000).chunks(10) {
            for bytes in first {
                let [a, b, c, ..] = random.next_u64().to_be_bytes();
                let from = SocketAddr::from(([198, a, b, c], 1_024 + u16::from(a)));
                balance.note_in(from, bytes.len());
                flooded.lab.world.inject(flooded.lab.creator, from, bytes);
            }
            let strays = flooded.run(1);
            balance.note_out(&strays);
        }
    }
    assert!(flooded.got_in(), "the newcomer got in while it went on");
    assert!((10..=CONNECTIONS_MAX).contains(&flooded.most), "{} connections", flooded.most);
    for _ in 0..120 {
        let strays = flooded.run(100);
        balance.note_out(&strays);
    }
    let (received, sent) = balance.check();
    println!("{received} bytes in, {sent} out, {} connections at most", flooded.most);
    flooded.finish(2);
}

/// 10,000 clients in 12 s prove their address and go no further; `address_of` says where each comes
/// from. How long a newcomer took that dials in the midst of it, in ms.
fn leave_handshakes(flooded: &mut Flooded, address_of: impl Fn(u32) -> SocketAddr) -> Option<u64> {
    let to = flooded.lab.world.address(flooded.lab.creator);
    let mut got_in = None;
    for at in 0..12_000_u64 {
        if at == 1_500 {
            flooded.begin_to_dial();
        }
        let mut client = RawPeer::new(&flooded.lab.world, to, 1, at);
        client.control = address_of(at as u32);
        if at % 6 != 0 {
            client.send(&mut flooded.lab.world, flooded.lab.creator);
        }
        let answers = flooded.run(1);
        let is_retry = |it: &&Datagram| it.to == client.control && it.bytes[0] & 0xF0 == 0xF0;
        if let Some(retry) = answers.iter().find(is_retry) {
            // It comes again with the token, and that is all.
            client.handle(flooded.lab.now(), retry.from, retry.to, &retry.bytes);
            client.send(&mut flooded.lab.world, flooded.lab.creator);
        }
        if at >= 1_500 && got_in.is_none() && flooded.got_in() {
            got_in = Some(at - 1_500);
        }
    }
    got_in
}

/// What is half open is bounded while handshakes are left, and given up afterwards.
fn check_left_handshakes(address_of: impl Fn(u32) -> SocketAddr) -> Option<u64> {
    let mut flooded = Flooded::new();
    let got_in = leave_handshakes(&mut flooded, address_of);
    println!("got in after {got_in:?} ms; {} connections at most", flooded.most);
    assert!((200..=LEFT_MAX).contains(&flooded.most), "{} connections", flooded.most);
    // Nothing of it is left but the newcomer.
    flooded.run(16_000);
    flooded.finish(2);
    got_in
}

fn one_address(at: u32) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], 1_024 + (at % 60_000) as u16))
}

fn many_addresses(at: u32) -> SocketAddr {
    let [_, a, b, c] = at.to_be_bytes();
    SocketAddr::from(([100, a, b, c], 40_000))
}

#[test]
fn ten_thousand_handshakes_that_are_left_are_bounded_and_given_up() {
    for got_in in [check_left_handshakes(one_address), check_left_handshakes(many_addresses)] {
        assert!(got_in.is_some_and(|it| it <= GET_IN_MAX), "{got_in:?} ms");
    }
}

#[test]
fn ten_thousand_handshakes_of_one_address_hold_nobody_up() {
    let got_in = check_left_handshakes(one_address).expect("the newcomer did not get in");
    assert!(got_in <= GET_IN_SOON, "{got_in} ms");
}

#[test]
fn ten_thousand_handshakes_of_as_many_addresses_hold_nobody_up() {
    let got_in = check_left_handshakes(many_addresses).expect("the newcomer did not get in");
    assert!(got_in <= GET_IN_SOON, "{got_in} ms");
}

/// So many raw peers greet; they are returned as they are then.
fn greet_all(flooded: &mut Flooded, count: usize) -> Vec<RawPeer> {
    let to = flooded.lab.world.address(flooded.lab.creator);
    let mut all = Vec::new();
    for batch in 0..count.div_ceil(64) {
        let mut peers: BTreeMap<SocketAddr, RawPeer> = BTreeMap::new();
        for at in (batch * 64..count).take(64) {
            let mut peer = RawPeer::new(&flooded.lab.world, to, 1, at as u64);
            peer.control = many_addresses(at as u32);
            peers.insert(peer.control, peer);
        }
        for step in 0..16 {
            for peer in peers.values_mut() {
                if step == 8
                    && peer.connected
                    && let Some(hub) = peer.open()
                {
                    peer.say(hub, hello());
                }
                peer.send(&mut flooded.lab.world, flooded.lab.creator);
            }
            for stray in flooded.run(1) {
                if let Some(peer) = peers.get_mut(&stray.to) {
                    peer.handle(flooded.lab.now(), stray.from, stray.to, &stray.bytes);
                }
            }
        }
        all.extend(peers.into_values());
    }
    all
}

#[test]
fn more_peers_than_there_may_be_are_not_kept_and_leave_room_when_they_go() {
    let mut flooded = Flooded::new();
    let mut peers = greet_all(&mut flooded, PEERS_MAX + 100);
    let creator = flooded.lab.creator;
    let open = |event: &CoreEvent| matches!(event, CoreEvent::PeerOpen { .. });
    let lost = |event: &CoreEvent| matches!(event, CoreEvent::PeerLost { .. });
    let kept = flooded.lab.count(creator, open) - flooded.lab.count(creator, lost);
    let told = peers.iter().filter(|it| it.closed_with() == Some(Code::TooMany)).count();
    println!("{kept} peers, {told} told that they are too many, {} connections", flooded.most);
    assert!((1_000..=PEERS_MAX).contains(&kept), "{kept} peers");
    assert!(flooded.most <= PEERS_MAX + 200, "{} connections", flooded.most);
    for peer in &mut peers {
        peer.close(flooded.lab.now());
        peer.send(&mut flooded.lab.world, flooded.lab.creator);
    }
    flooded.run(3_000);
    assert!(flooded.lab.world.core(flooded.lab.creator).connection_count() <= 1);
    flooded.begin_to_dial();
    flooded.run(500);
    assert!(flooded.got_in(), "there is room again");
    flooded.finish(2);
}

#[test]
fn a_thousand_peers_that_greet_and_stay_silent_keep_nobody_out() {
    let mut flooded = Flooded::new();
    greet_all(&mut flooded, PEERS_MAX);
    flooded.begin_to_dial();
    let mut waited = 0;
    while !flooded.got_in() && waited < GET_IN_MAX {
        flooded.run(100);
        waited += 100;
    }
    assert!(flooded.got_in(), "the newcomer did not get in");
    flooded.finish(PEERS_MAX + 1);
}
