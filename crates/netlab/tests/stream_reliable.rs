//! A flow over a stream delivers every unit as it was, in order, whatever the links do to
//! datagrams.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, config, ms, offer_tcp};
use dacapo_core::{CoreEvent, Ending};
use dacapo_netlab::Trace;
use dacapo_netlab::traffic::Record;
use dacapo_wire::session::{Direction, FlowOffer};
use std::time::Duration;

const LINK: &str = "loss=5%,delay=15ms,jitter=5ms,dup=2%,reorder=2%";
const UNITS: u64 = 400;

/// One flow each way, of units below and above the length of a datagram.
fn flows() -> Vec<FlowOffer> {
    let large = |name: &str, direction| FlowOffer {
        direction,
        unit_len_max: 150_016,
        ..offer_tcp(name, &["segment"])
    };
    vec![large("down", Direction::ToParticipant), large("up", Direction::ToCreator)]
}

fn lab(seed: u64) -> Lab {
    let mut lab = Lab::with(seed, LINK, config(), config());
    lab.pattern.count = UNITS;
    lab.pattern.seed = seed;
    lab.pattern.every = ms(2);
    lab.pattern.len_max = 3_000;
    if seed.is_multiple_of(5) {
        // More at once than the stream takes: it blocks.
        (lab.pattern.count, lab.pattern.every) = (40, Duration::ZERO);
        (lab.pattern.len_min, lab.pattern.len_max) = (1, 150_000);
    }
    lab
}

fn records(lab: &Lab, joined: &Joined) -> [Record; 2] {
    let down = joined.seen[0].as_ref().unwrap().record().clone();
    let up = lab.sinks.lock().unwrap()[0].record().clone();
    [down, up]
}

fn check(seed: u64) -> Trace {
    let mut lab = lab(seed);
    let count = lab.pattern.count;
    let joined = lab.start(flows());
    for flow in 0..2 {
        let (here, there) = lab.ledgers(&joined, flow, ms(60_000));
        assert!(here.closes() && there.closes(), "seed {seed}, {flow}: {here:?} {there:?}");
        for ledger in [here, there] {
            let booked = (ledger.sent, ledger.delivered, ledger.lost, ledger.unknown);
            assert_eq!(booked, (count, count, 0, 0), "seed {seed}, {flow}: {ledger:?}");
        }
        let hash = lab.find(lab.participant, |event| match event {
            CoreEvent::FlowEnded { flow: at, hash, .. } if *at == flow => Some(*hash),
            _ => None,
        });
        assert_eq!(hash.unwrap().1, Some(true), "seed {seed}: both ends saw the same bytes");
    }
    for record in records(&lab, &joined) {
        assert_eq!(record.numbers, (0..count).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!((record.altered, record.misnumbered), (0, 0), "seed {seed}");
        assert_eq!(record.ending, Some(Ending::Complete), "seed {seed}");
    }
    assert_eq!(lab.count(lab.creator, |it| matches!(it, CoreEvent::FlowFailed { .. })), 0);
    lab.run(ms(500));
    assert_eq!(lab.world.stream_count(), 0, "seed {seed}: a stream goes with its flow");
    lab.close(lab.participant, joined.here);
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(10_000))), None, "seed {seed}");
    lab.end_of(lab.creator, joined.there, ms(10_000));
    lab.check_empty();
    lab.world.trace()
}

#[test]
fn fifty_seeds_over_links_that_lose_five_percent_deliver_every_byte() {
    for seed in 0..50 {
        check(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_with_streams_too() {
    for seed in [5, 7] {
        let first = check(seed);
        assert_eq!(check(seed), first, "seed {seed}");
    }
    assert_ne!(check(7).digest, check(8).digest);
}

#[test]
fn the_participant_hears_that_it_is_ready_when_the_streams_are_open() {
    let mut lab = lab(1);
    lab.publish("test", flows());
    let peer = lab.dial();
    let joined = lab.set_up(peer, "test");
    assert_eq!(lab.world.stream_count(), 2, "one for each flow");
    let ready = |event: &CoreEvent| matches!(event, CoreEvent::Ready { .. }).then_some(());
    let there = lab.find(lab.creator, ready).unwrap().0;
    let here = lab.find(lab.participant, ready).unwrap().0;
    // ACCEPT there, then TCP's round trip and that of the preface.
    assert!(here.since(there) >= ms(15 + 30 + 20), "{here:?} after {there:?}");
    lab.close(lab.creator, joined.there);
    lab.end_of(lab.participant, joined.here, ms(10_000));
    lab.check_empty();
}

#[test]
fn a_session_on_streams_needs_no_data_path() {
    let mut lab = Lab::new("delay=15ms");
    lab.pattern.count = 100;
    // Datagrams of the participant's data port are filtered, as probes are.
    lab.world.block(lab.participant, Some(dacapo_transport::TrafficClass::Data));
    let joined = lab.start(flows());
    for flow in 0..2 {
        let (here, there) = lab.ledgers(&joined, flow, ms(10_000));
        assert_eq!((here.delivered, there.delivered), (100, 100), "flow {flow}");
    }
}

#[test]
fn a_bound_holds_on_a_stream_too() {
    let mut lab = Lab::new("delay=15ms");
    (lab.pattern.count, lab.pattern.every, lab.pattern.len_min) = (1_000, ms(0), 300);
    let mut flow = offer_tcp("slow", &[]);
    flow.bound_bps = 200_000;
    let joined = lab.start(vec![flow]);
    let begun = lab.now();
    let (here, _) = lab.ledgers(&joined, 0, ms(60_000));
    assert_eq!(here.delivered, 1_000);
    // 309 bytes each, at 200 kbit/s.
    assert!(lab.now().since(begun) >= ms(11_900), "{:?}", lab.now().since(begun));
}

#[test]
fn datagrams_on_a_stream_are_as_long_as_it_takes_whatever_the_path() {
    let mut lab = Lab::new("delay=15ms,mtu=1300");
    lab.pattern.count = 50;
    (lab.pattern.len_min, lab.pattern.len_max) = (50_000, 60_000);
    // No module cuts these: each is one datagram.
    let flow = FlowOffer { unit_len_max: 60_016, ..offer_tcp("long", &["checksum"]) };
    let joined = lab.start(vec![flow]);
    let (here, there) = lab.ledgers(&joined, 0, ms(10_000));
    assert_eq!((here.delivered, there.delivered), (50, 50));
}

#[test]
fn datagrams_of_one_length_that_come_at_once_are_units_each() {
    for modules in [&[][..], &["checksum"], &["sequence"]] {
        let mut lab = Lab::new("delay=15ms");
        (lab.pattern.count, lab.pattern.every) = (2_000, Duration::ZERO);
        (lab.pattern.len_min, lab.pattern.len_max) = (300, 300);
        let joined = lab.start(vec![offer_tcp("equal", modules)]);
        let (here, there) = lab.ledgers(&joined, 0, ms(10_000));
        assert_eq!((here.delivered, there.delivered), (2_000, 2_000), "{modules:?}");
        assert_eq!(joined.numbers(0), (0..2_000).collect::<Vec<_>>(), "{modules:?}");
        let record = joined.seen[0].as_ref().unwrap().record().clone();
        assert_eq!((record.altered, record.misnumbered), (0, 0), "{modules:?}");
    }
}
