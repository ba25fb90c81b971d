//! Whoever can send datagrams can do no more than that: what runs runs on, what is kept is bounded,
//! and nobody's address is flooded.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::raw::{RawPeer, initial};
use common::{Joined, Lab, code, ms, pattern, plain};
use dacapo_base::Random;
use dacapo_netlab::Datagram;
use dacapo_wire::probe::Probe;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// More than the half-open connections that the core admits, with and without a proof.
const CONNECTIONS_MAX: usize = 300;

fn somebody(random: &mut Random) -> SocketAddr {
    let [a, b, c, ..] = random.next_u64().to_be_bytes();
    SocketAddr::from(([198, a, b, c], 1_024 + random.below(60_000) as u16))
}

fn noise(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    random.fill(&mut bytes);
    bytes
}

/// What was sent to and received from each address that has proved nothing.
#[derive(Default)]
struct Balance(BTreeMap<IpAddr, (usize, usize)>);

impl Balance {
    fn inject(&mut self, lab: &mut Lab, from: SocketAddr, bytes: &[u8]) {
        self.0.entry(from.ip()).or_default().0 += bytes.len();
        lab.world.inject(lab.creator, from, bytes);
    }

    fn note(&mut self, strays: Vec<Datagram>) {
        for stray in strays {
            self.0.entry(stray.to.ip()).or_default().1 += stray.bytes.len();
        }
    }

    fn check(&self) {
        for (address, (received, sent)) in &self.0 {
            assert!(*sent <= 3 * received, "{sent} bytes to {address} for {received} from it");
        }
    }
}

/// A running flow, and how many views are out while it runs.
fn running() -> (Lab, Joined, usize) {
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(100_000);
    let joined = lab.start(plain());
    lab.run(ms(500));
    lab.world.keep_strays();
    let views = lab.world.core(lab.creator).pool().live_views();
    (lab, joined, views)
}

/// The flow has not noticed anything.
fn check_unaffected(lab: &mut Lab, joined: &Joined, views: usize) {
    lab.run(ms(200));
    assert_eq!(lab.world.core(lab.creator).pool().live_views(), views, "views are given back");
    assert_eq!(lab.ended(lab.participant, joined.here), None);
    lab.close(lab.participant, joined.here);
    let (here, there) = lab.ledgers(joined, 0, ms(2_000));
    assert!(here.closes() && there.closes(), "{here:?} {there:?}");
    assert_eq!((here.delivered, here.lost, here.duplicates), (here.sent, 0, 0), "{here:?}");
    assert_eq!((there.unknown, there.delivered), (0, here.delivered));
    let ran = lab.now().as_nanos() / 1_000_000;
    assert!(here.sent + 400 > ran, "{} units in {ran} ms", here.sent);
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(1_000))), None);
}

#[test]
fn twelve_thousand_datagrams_of_noise_change_nothing() {
    let (mut lab, joined, views) = running();
    let (mut random, mut balance) = (Random::from_number(1), Balance::default());
    for _ in 0..120 {
        for _ in 0..100 {
            let from = somebody(&mut random);
            let len = random.below(1_500) as usize;
            let bytes = noise(&mut random, len);
            balance.inject(&mut lab, from, &bytes);
        }
        lab.run(ms(5));
        balance.note(lab.world.take_strays());
        assert!(lab.world.core(lab.creator).connection_count() <= CONNECTIONS_MAX);
    }
    let counters = lab.world.core(lab.creator).counters();
    let a_quarter = 2_800..3_200;
    assert!(a_quarter.contains(&counters.reserved), "{counters:?}");
    assert!(a_quarter.contains(&counters.malformed), "{counters:?}");
    balance.check();
    check_unaffected(&mut lab, &joined, views);
}

#[test]
fn twelve_thousand_random_labels_are_counted_and_dropped() {
    let (mut lab, joined, views) = running();
    let (mut random, before) = (Random::from_number(2), lab.world.core(lab.creator).counters());
    for _ in 0..120 {
        for _ in 0..100 {
            let from = somebody(&mut random);
            let len = 5 + random.below(1_400) as usize;
            let mut bytes = noise(&mut random, len);
            bytes[0] = 0x80;
            lab.world.inject(lab.creator, from, &bytes);
        }
        lab.run(ms(5));
    }
    let after = lab.world.core(lab.creator).counters();
    assert_eq!(after.unknown_label - before.unknown_label, 12_000);
    assert_eq!(lab.world.take_strays().len(), 0, "nobody is answered");
    check_unaffected(&mut lab, &joined, views);
}

#[test]
fn thirteen_thousand_probes_with_wrong_tags_are_not_answered() {
    let (mut lab, joined, views) = running();
    let (mut random, before) = (Random::from_number(3), lab.world.core(lab.creator).counters());
    for _ in 0..130 {
        for _ in 0..100 {
            let probe = Probe {
                answer: random.chance(0.5),
                size: random.next_u32() as u16,
                connection: random.next_u64(),
                number: random.below(100),
                asked_ns: random.next_u64(),
                received_ns: random.next_u64(),
                answered_ns: random.next_u64(),
                tag: random.next_u64(),
                count: None,
            };
            let mut bytes = Vec::new();
            probe.emit(random.below(1_500) as usize, &mut bytes);
            let from = somebody(&mut random);
            lab.world.inject(lab.creator, from, &bytes);
        }
        lab.run(ms(5));
    }
    let after = lab.world.core(lab.creator).counters();
    assert_eq!(after.unknown_probe - before.unknown_probe, 13_000);
    assert_eq!(lab.world.take_strays().len(), 0, "nobody is answered");
    check_unaffected(&mut lab, &joined, views);
}

#[test]
fn thirteen_thousand_spoofed_beginnings_keep_nobody_out_and_flood_nobody() {
    let (mut lab, joined, views) = running();
    let (mut random, mut balance) = (Random::from_number(4), Balance::default());
    let address = lab.world.address(lab.creator);
    let firsts: Vec<Vec<u8>> = (0..500).map(|seed| initial(&lab.world, address, seed)).collect();
    let mut most = 0;
    for _ in 0..130 {
        for _ in 0..100 {
            let first = &firsts[random.below(500) as usize];
            let from = somebody(&mut random);
            balance.inject(&mut lab, from, first);
        }
        lab.run(ms(5));
        balance.note(lab.world.take_strays());
        most = lab.world.core(lab.creator).connection_count().max(most);
    }
    assert!((10..=CONNECTIONS_MAX).contains(&most), "{most} connections");
    // A newcomer comes through in the middle of it.
    let mut honest = RawPeer::new(&lab.world, address, 77, 1_000_000);
    for _ in 0..40 {
        for _ in 0..50 {
            let first = &firsts[random.below(500) as usize];
            let from = somebody(&mut random);
            balance.inject(&mut lab, from, first);
        }
        RawPeer::run(&mut [&mut honest], &mut lab.world, lab.creator, ms(5));
        if honest.connected {
            break;
        }
    }
    assert!(honest.connected, "{:?}", honest.lost);
    honest.greet(&mut lab.world, lab.creator);
    // What is half open is given up, and the last answers are short ones too.
    for _ in 0..120 {
        lab.run(ms(100));
        balance.note(lab.world.take_strays());
    }
    balance.0.remove(&honest.control.ip());
    balance.check();
    let left = lab.world.core(lab.creator).connection_count();
    assert!(left <= 3, "{left} connections are left");
    check_unaffected(&mut lab, &joined, views);
}

#[test]
fn every_first_byte_at_every_short_length_is_survived_before_and_after_a_peer() {
    for with_peer in [false, true] {
        let mut lab = Lab::new("delay=20ms");
        lab.world.keep_strays();
        if with_peer {
            lab.publish("test", plain());
            let peer = lab.dial();
            let joined = lab.set_up(peer, "test");
            lab.activate(joined.here);
        }
        let mut random = Random::from_number(5);
        let mut balance = Balance::default();
        let nobody = SocketAddr::from(([198, 51, 100, 1], 9));
        balance.inject(&mut lab, nobody, &[]);
        for first in 0..=255_u8 {
            for len in 1..=64 {
                let mut bytes = noise(&mut random, len);
                bytes[0] = first;
                balance.inject(&mut lab, nobody, &bytes);
                // Zeros and ones reach other places than noise does.
                bytes[1..].fill(if len % 2 == 0 { 0 } else { 255 });
                balance.inject(&mut lab, nobody, &bytes);
            }
            lab.run(ms(1));
            balance.note(lab.world.take_strays());
        }
        balance.check();
        let counters = lab.world.core(lab.creator).counters();
        assert_eq!(counters.reserved, 64 * 64 * 2 + 1, "0x00 to 0x3F, and the empty one");
        assert_eq!(counters.unknown_label, 2 * 60, "0x80 with 5 to 64 bytes");
        // 0x82 to 0xBF are unused; 0x80 below 5 bytes and 0x81 below 52 bytes are too short.
        assert_eq!(counters.malformed, 62 * 64 * 2 + 4 * 2 + 51 * 2);
        assert_eq!(counters.unknown_probe, 13 * 2);
        assert!(lab.world.core(lab.creator).connection_count() <= 1);
    }
}

#[test]
fn a_copy_of_an_old_question_from_elsewhere_moves_no_flow() {
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(100_000);
    lab.give_up_after = ms(0);
    let questions = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (seen, participant) = (questions.clone(), lab.participant);
    lab.world.observe(move |crossing| {
        let is_question = Probe::parse(crossing.bytes).is_ok_and(|probe| !probe.answer);
        if crossing.node == participant && is_question {
            seen.lock().unwrap().push(crossing.bytes.to_vec());
        }
    });
    let joined = lab.start(plain());
    lab.run(ms(1_000));
    lab.world.keep_strays();
    let victim = SocketAddr::from(([198, 51, 100, 7], 40_000));
    let copies = questions.lock().unwrap().clone();
    assert!(copies.len() > 3, "{} questions", copies.len());
    let bytes: usize = copies.iter().map(Vec::len).sum();
    copies.iter().for_each(|copy| lab.world.inject(lab.creator, victim, copy));
    lab.run(ms(2_000));
    let to_victim: usize = lab.world.take_strays().iter().map(|stray| stray.bytes.len()).sum();
    assert!(to_victim <= bytes, "{to_victim} bytes for {bytes}");
    assert_eq!(joined.seen[0].as_ref().unwrap().record().lost, [] as [u64; 0]);
    assert!(joined.numbers(0).len() > 2_900, "the flow stays where it was");
    // Nor do copies keep a dead peer alive.
    lab.world.kill(lab.participant);
    let end = lab.now() + ms(4_000);
    while lab.now() < end {
        copies.iter().for_each(|copy| lab.world.inject(lab.creator, victim, copy));
        lab.run(ms(200));
    }
    assert!(lab.ended(lab.creator, joined.there).is_some(), "contact is lost all the same");
}
