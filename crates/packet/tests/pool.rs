//! Views, rooms, trains and the count of everything, through the public interface.

use dacapo_base::Random;
use dacapo_packet::{Kind, Layout, Packet, Pool, PoolFull};

const LAYOUT: Layout = Layout { head: 12, tail: 4, segment: 100, segmented: true };

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

#[test]
fn a_train_becomes_one_buffer_when_every_gap_is_filled() {
    let mut pool = Pool::new(1 << 20);
    let mut train = pool.alloc_train(&LAYOUT, 250).unwrap();
    assert_eq!((train.segment_count(), train.payload_len()), (3, 250));
    assert_eq!(pool.write_payload(&train, 0, &payload(250)), 250);
    assert!(pool.contiguous(&train).is_none());
    pool.push_tail(&mut train, 4).unwrap();
    pool.push_head(&mut train, 12).unwrap();
    for index in 0..3 {
        pool.head_mut(&train, index, 12).fill(0xAA);
        pool.tail_mut(&train, index, 4).fill(0xBB);
    }
    let (bytes, segment) = pool.contiguous(&train).unwrap();
    assert_eq!((bytes.len(), segment), (116 + 116 + 66, 116));
    assert_eq!(&bytes[116..128], &[0xAA; 12]);
    assert_eq!(&bytes[128..228], &payload(250)[100..200]);
    assert_eq!(&bytes[bytes.len() - 4..], &[0xBB; 4]);
    pool.free(train);
    assert_eq!(pool.live_views(), 0);
}

#[test]
fn what_push_adds_pull_removes() {
    let mut pool = Pool::new(1 << 20);
    let mut train = pool.alloc_train(&LAYOUT, 130).unwrap();
    pool.write_payload(&train, 0, &payload(130));
    pool.push_head(&mut train, 7).unwrap();
    pool.push_tail(&mut train, 3).unwrap();
    assert_eq!(train.payload_len(), 150);
    assert!(pool.push_head(&mut train, 6).is_err());
    pool.pull_tail(&mut train, 3).unwrap();
    pool.pull_head(&mut train, 7).unwrap();
    assert!(pool.pull_head(&mut train, 31).is_err(), "the last segment has 30 bytes");
    let mut got = Vec::new();
    pool.read_payload(&train, &mut got);
    assert_eq!(got, payload(130));
    pool.free(train);
}

#[test]
fn a_shared_view_is_read_only_until_the_other_is_gone() {
    let mut pool = Pool::new(1 << 20);
    let mut packet = pool.packet_from(8, b"hello", 8).unwrap();
    let kept = pool.share(&mut packet);
    assert_eq!(kept.head_room(), 0);
    assert!(!pool.is_exclusive(&packet));
    pool.segment_mut(&mut packet, 0).unwrap()[0] = b'J';
    assert_eq!(pool.segment(&packet, 0), b"Jello");
    assert_eq!(pool.segment(&kept, 0), b"hello");
    assert_eq!(packet.head_room(), 8, "the copy keeps the room");
    pool.free(packet);
    pool.free(kept);
    assert_eq!(pool.live_views(), 0);
}

#[test]
fn split_and_join_are_inverse() {
    let mut random = Random::from_number(3);
    for _ in 0..500 {
        let mut pool = Pool::new(1 << 20);
        let len = 1 + random.below(900) as usize;
        let mut rest = pool.alloc_train(&LAYOUT, len).unwrap();
        rest.set_unit_ends(true, true);
        pool.write_payload(&rest, 0, &payload(len));
        let mut parts = Vec::new();
        while let Some(first) = pool.split_first(&mut rest, 1) {
            parts.push(first);
        }
        parts.push(rest);
        assert_eq!(parts.len(), len.div_ceil(100));
        let mut parts = parts.into_iter();
        let mut whole = parts.next().unwrap();
        for part in parts {
            assert!(pool.join(&mut whole, part).is_ok());
        }
        let mut got = Vec::new();
        pool.read_payload(&whole, &mut got);
        assert_eq!(got, payload(len));
        assert!(whole.is_unit_first() && whole.is_unit_last());
        pool.free(whole);
        assert_eq!(pool.live_views(), 0);
    }
}

#[test]
fn trains_join_trains_wherever_they_were_cut() {
    let mut random = Random::from_number(4);
    for round in 0..500 {
        let mut pool = Pool::new(1 << 20);
        let len = 1 + random.below(6_000) as usize;
        let mut rest = pool.alloc_train(&LAYOUT, len).unwrap();
        let whole = format!("{rest:?}");
        pool.write_payload(&rest, 0, &payload(len));
        let mut parts = Vec::new();
        while let Some(first) = pool.split_first(&mut rest, 1 + random.below(9) as usize) {
            parts.push(first);
        }
        parts.push(rest);
        // Neighbours are joined in any order.
        while parts.len() > 1 {
            let at = random.below(parts.len() as u64 - 1) as usize;
            let next = parts.remove(at + 1);
            assert!(pool.join(&mut parts[at], next).is_ok(), "round {round}");
        }
        let joined = parts.pop().unwrap();
        assert_eq!(format!("{joined:?}"), whole, "round {round}");
        let mut got = Vec::new();
        pool.read_payload(&joined, &mut got);
        assert_eq!(got, payload(len));
        pool.free(joined);
        assert_eq!(pool.live_views(), 0);
    }
}

#[test]
fn what_lies_one_segment_further_is_not_joined() {
    let mut pool = Pool::new(1 << 20);
    let mut rest = pool.alloc_train(&LAYOUT, 400).unwrap();
    let mut first = pool.split_first(&mut rest, 1).unwrap();
    let gap = pool.split_first(&mut rest, 1).unwrap();
    let last = pool.split_first(&mut rest, 1).unwrap();
    let rest = pool.join(&mut first, rest).unwrap_err();
    let last = pool.join(&mut first, last).unwrap_err();
    pool.join(&mut first, gap).unwrap();
    pool.join(&mut first, last).unwrap();
    pool.join(&mut first, rest).unwrap();
    assert_eq!((first.segment_count(), first.payload_len()), (4, 400));
    pool.free(first);
    assert_eq!(pool.live_views(), 0);
}

#[test]
fn headers_and_trailers_are_put_and_taken_segment_by_segment() {
    let mut pool = Pool::new(1 << 20);
    let mut train = pool.alloc_train(&LAYOUT, 250).unwrap();
    pool.write_payload(&train, 0, &payload(250));
    pool.put_head(&mut train, |index| [index as u8, 7]).unwrap();
    pool.put_tail(&mut train, |before| [before.len() as u8]).unwrap();
    let ends: Vec<(u8, u8, u8)> = (0..3)
        .map(|index| pool.segment(&train, index))
        .map(|segment| (segment[0], segment[1], *segment.last().unwrap()))
        .collect();
    assert_eq!(ends, [(0, 7, 102), (1, 7, 102), (2, 7, 52)]);
    assert!(pool.put_head(&mut train, |_| [0; 11]).is_err(), "ten bytes are left");
    assert!(pool.put_tail(&mut train, |_| [0; 4]).is_err(), "three bytes are left");
    assert!(pool.take_head::<2>(&mut train).is_err(), "of several segments there are several");
    let mut first = pool.split_first(&mut train, 1).unwrap();
    assert_eq!(pool.take_head(&mut first), Ok([0, 7]));
    assert!(pool.take_head::<102>(&mut first).is_err());
    assert_eq!(pool.segment(&first, 0)[..100], payload(100));
    let mut empty = Packet::EMPTY;
    assert!(pool.put_head(&mut empty, |_| [0]).is_err());
    assert!(pool.take_head::<1>(&mut empty).is_err());
    pool.free(first);
    pool.free(train);
}

#[test]
fn packets_of_other_bodies_kinds_or_places_are_not_joined() {
    let mut pool = Pool::new(1 << 20);
    let mut a = pool.packet_from(0, &payload(10), 0).unwrap();
    let b = pool.packet_from(0, &payload(10), 0).unwrap();
    let b = pool.join(&mut a, b).unwrap_err();
    let mut train = pool.alloc_train(&LAYOUT, 200).unwrap();
    let mut first = pool.split_first(&mut train, 1).unwrap();
    train.set_kind(Kind::Parity);
    let train = pool.join(&mut first, train).unwrap_err();
    for packet in [a, b, first, train] {
        pool.free(packet);
    }
    assert_eq!(pool.live_views(), 0);
}

#[test]
fn memory_is_bounded_and_reused() {
    let mut pool = Pool::new(200_000);
    let mut held: Vec<Packet> = Vec::new();
    while let Ok(packet) = pool.alloc(0, 2_000, 0) {
        held.push(packet);
    }
    assert!(pool.stats().bytes <= 200_000);
    assert_eq!(pool.alloc(0, 2_000, 0).unwrap_err(), PoolFull);
    held.drain(..).for_each(|packet| pool.free(packet));
    let made = pool.stats().bodies_made;
    for _ in 0..1_000 {
        let packet = pool.alloc(10, 1_500, 10).unwrap();
        pool.free(packet);
    }
    assert_eq!(pool.stats().bodies_made, made, "steady state makes no body");
    // Free bodies of one class give way to another.
    let large = pool.alloc(0, 60_000, 0).unwrap();
    assert!(pool.stats().bytes <= 200_000);
    pool.free(large);
    assert_eq!(pool.bytes_in_use(), 0);
}

#[test]
fn a_small_view_leaves_a_large_body() {
    let mut pool = Pool::new(1 << 20);
    let mut train = pool.alloc_train(&LAYOUT, 5_000).unwrap();
    pool.write_payload(&train, 0, &payload(5_000));
    let mut first = pool.split_first(&mut train, 1).unwrap();
    pool.free(train);
    assert_eq!(pool.bytes_in_use(), 16_384);
    pool.settle(&mut first).unwrap();
    assert_eq!(pool.bytes_in_use(), 256);
    assert_eq!(pool.segment(&first, 0), &payload(100));
    pool.free(first);
}

#[test]
fn an_oversized_request_is_refused_not_panicked_on() {
    let mut pool = Pool::new(1 << 20);
    assert_eq!(pool.alloc(0, 70_000, 0).unwrap_err(), PoolFull);
    assert!(pool.alloc(0, 65_000, 500).is_ok());
    assert!(pool.alloc(0, 0, 0).is_ok());
}
