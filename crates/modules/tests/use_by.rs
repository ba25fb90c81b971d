//! What `use-by` is for: what is too old when it comes is marked, whatever stands below, whatever
//! the clocks show; and everything else goes up as it came.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{MS, Place, dropped, end, ms, number, tell, unit};
use dacapo_base::{Random, Time};
use dacapo_lift::conformance::End;
use dacapo_lift::{ClockOffset, DropReason};
use dacapo_packet::{Layout, Packet};
use dacapo_wire::use_by::{Header, LEN};
use std::time::Duration;

const AGE: u16 = 0;

/// What a clock shows that is so far ahead of ours, as an exchange without delay tells it.
fn ahead(by: Duration) -> ClockOffset {
    let mut clock = ClockOffset::default();
    let now = by.as_nanos() as u64;
    clock.handle_exchange(0, now, now, 2);
    clock
}

/// The units that have come, with whether they are late.
fn came(end: &mut End) -> Vec<(u64, bool)> {
    let packets: Vec<Packet> = end.runner.take_up().drain().collect();
    let mut units: Vec<(u64, bool)> = Vec::new();
    let (mut bytes, mut is_late) = (Vec::new(), false);
    for packet in packets {
        if packet.is_unit_first() {
            (bytes, is_late) = (Vec::new(), false);
        }
        end.pool.read_payload(&packet, &mut bytes);
        is_late |= packet.use_by().is_some_and(|at| at < end.now);
        if packet.is_unit_last() {
            units.push((number(&bytes), is_late));
        }
        end.pool.free(packet);
    }
    units
}

#[test]
fn what_is_older_than_the_deadline_is_marked_whatever_the_clocks_show() {
    let graphs: [&[Place<'_>]; 3] = [
        &[("use-by", &[(AGE, 50 * MS)])],
        &[("use-by", &[(AGE, 50 * MS)]), ("segment", &[]), ("sequence", &[])],
        &[("use-by", &[(AGE, 50 * MS)]), ("segment", &[]), ("arq-sr", &[]), ("checksum", &[])],
    ];
    // The stamp turns over after 71 minutes of the sender's clock.
    let turn = Duration::from_micros(1 << 32);
    let begins = [ms(1), turn - ms(70), turn - ms(20), turn + ms(1), Duration::from_secs(1 << 30)];
    for graph in graphs {
        for begins in begins {
            let (mut a, mut b) = (end(graph, 20_000), end(graph, 20_000));
            a.now = Time::ZERO + begins;
            b.now = Time::from_millis(1);
            b.runner.handle_clock(ahead(begins - ms(1)));
            let ages = [0, 20, 50, 51, 49, 70, 3];
            for (at, age) in ages.into_iter().enumerate() {
                assert!(a.feed(&unit(at as u64, 4_000 * usize::from(graph.len() > 1) + 500)));
                b.now += ms(age);
                a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
                assert_eq!(came(&mut b), [(at as u64, age > 50)], "{graph:?} {begins:?}");
                (a.now, b.now) = (a.now + ms(age + 10), b.now + ms(10));
            }
        }
    }
}

#[test]
fn until_the_clocks_are_compared_nothing_is_late() {
    let graph: &[Place<'_>] = &[("use-by", &[(AGE, MS)])];
    let (mut a, mut b) = (end(graph, 1_000), end(graph, 1_000));
    b.now = Time::from_millis(90_000);
    for at in 0..10 {
        assert!(a.feed(&unit(at, 100)));
    }
    a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
    assert!(came(&mut b).iter().all(|(_, is_late)| !is_late));
}

#[test]
fn a_train_goes_up_in_order_and_only_what_is_late_is_marked() {
    let graph: &[Place<'_>] = &[("use-by", &[(AGE, 20 * MS)])];
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let mut b = end(graph, 1_000);
        b.now = Time::from_millis(1_000);
        b.runner.handle_clock(ClockOffset::exact());
        let count = 1 + random.below(45);
        let ages: Vec<u64> = (0..count).map(|_| random.below(40)).collect();
        let segment = LEN + 16;
        let layout = Layout { head: 0, tail: 0, segment, segmented: true };
        let mut train = b.pool.alloc_train(&layout, segment * ages.len()).unwrap();
        for (at, age) in ages.iter().enumerate() {
            let stamp = Header::at((1_000 - age) * MS).emit();
            let bytes = [&stamp[..], &unit(at as u64, 16)].concat();
            b.pool.write_payload(&train, at * segment, &bytes);
        }
        train.set_unit_ends(true, true);
        b.handle(train);
        let mut got = Vec::new();
        let packets: Vec<Packet> = b.runner.take_up().drain().collect();
        for packet in packets {
            for at in 0..packet.segment_count() {
                got.push((number(b.pool.segment(&packet, at)), packet.use_by().unwrap() < b.now));
            }
            b.pool.free(packet);
        }
        let expected: Vec<(u64, bool)> =
            ages.iter().enumerate().map(|(at, age)| (at as u64, *age > 20)).collect();
        assert_eq!(got, expected, "seed {seed}");
        assert_eq!(b.pool.live_views(), 0);
    }
}

#[test]
fn a_message_sets_the_deadline_within_its_bounds() {
    let graph: &[Place<'_>] = &[("use-by", &[(AGE, 20 * MS)])];
    let (mut a, mut b) = (end(graph, 1_000), end(graph, 1_000));
    b.runner.handle_clock(ClockOffset::exact());
    tell(&mut b, 1, 90 * MS);
    assert!(a.feed(&unit(1, 100)));
    b.now = a.now + ms(60);
    a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
    assert_eq!(came(&mut b), [(1, false)]);
    let message = [&[1][..], &0_u64.to_be_bytes()].concat();
    let refused = b.with(|runner, around| runner.control(around, 0, &message));
    assert_eq!(refused.unwrap_err().to_string(), "age: 0 ns is outside 1000 to 1800000000000");
}

#[test]
fn whatever_comes_is_passed_on_or_counted() {
    let graph: &[Place<'_>] = &[("use-by", &[])];
    let mut random = Random::from_number(7);
    let mut b = end(graph, 2_000);
    let mut short = 0;
    for _ in 0..20_000 {
        let mut bytes = vec![0; random.below(40) as usize];
        random.fill(&mut bytes);
        b.now = Time::from_nanos(random.next_u64() >> random.below(64));
        let far = random.next_u64() as i64;
        let mut clock = ClockOffset::default();
        clock.handle_exchange(0, far.unsigned_abs(), far.unsigned_abs(), 2);
        b.runner.handle_clock(clock);
        short += u64::from(bytes.len() < LEN);
        assert!(bytes.is_empty() || b.handle_bytes(&bytes));
        short -= u64::from(bytes.is_empty());
        let packets: Vec<Packet> = b.runner.take_up().drain().collect();
        packets.into_iter().for_each(|packet| b.pool.free(packet));
    }
    assert_eq!(dropped(&b, DropReason::Malformed), short);
    assert_eq!(b.pool.live_views(), 0);
}

#[test]
fn the_longest_unit_of_a_flow_comes_in_whatever_segments_the_path_takes() {
    let graph: &[Place<'_>] = &[("use-by", &[]), ("segment", &[])];
    for segment in [64, 100, 1_433] {
        let (mut a, mut b) = (end(graph, 20_000), end(graph, 20_000));
        a.layout.segment = segment;
        for chunk in 0..2 {
            common::feed_chain(&mut a, &unit(chunk, 20_000));
            a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
            assert_eq!(came(&mut b).len(), 1, "segments of {segment} bytes");
        }
        common::feed_chain(&mut a, &unit(2, 30_000));
        a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
        assert!(came(&mut b).is_empty(), "a longer one in segments of {segment} bytes");
    }
}
