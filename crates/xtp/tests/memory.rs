//! What associations take of memory: counted, and bounded.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::hand::{Hand, asks};
use common::uut::{Uut, first, packet};
use dacapo_heap::{Counting, is_counting, measure};
use dacapo_xtp::wire::{Body, Control, Format, Header, Key, Options, checksum, sum};
use dacapo_xtp::{Config, Event, GroupPolicy, Listen, Read};

#[global_allocator]
static HEAP: Counting = Counting;

const PORT: u16 = 5_000;

/// A FIRST under another key.
fn first_with_key(key: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = first(4, None, data, Options::SREQ);
    bytes[..8].copy_from_slice(&key.to_be_bytes());
    bytes[16..18].fill(0);
    let check = checksum(sum(&[&bytes]));
    bytes[16..18].copy_from_slice(&check.to_be_bytes());
    bytes
}

#[test]
fn ten_thousand_idle_associations_take_less_than_two_kilobytes_each() {
    assert!(is_counting());
    let count = 10_000;
    let mut uut = Uut::new(Config::default());
    uut.engine.listen(Listen { backlog_max: count, ..Listen::on(PORT) }).unwrap();
    let ((), used) = measure(|| {
        for key in 1..=count as u64 {
            uut.give(first_with_key(key, b""));
            uut.take();
            uut.events.clear();
        }
    });
    assert_eq!(uut.engine.context_count(), count);
    let each = used.live_bytes / count as i64;
    println!("{each} bytes for each of {count} idle associations");
    assert!(each < 2_048, "{each} bytes each");
}

#[test]
fn what_is_released_gives_its_memory_back() {
    let mut uut = Uut::new(Config { inactive_max: 16, ..Config::default() });
    uut.engine.listen(Listen::on(PORT)).unwrap();
    let round = |uut: &mut Uut, key: u64| {
        uut.give(first_with_key(key, &[7; 1_000]));
        uut.take();
        for event in std::mem::take(&mut uut.events) {
            if let Event::Incoming { id, .. } = event {
                uut.engine.release(uut.now, id).unwrap();
            }
        }
        uut.take();
    };
    (1..1_000).for_each(|key| round(&mut uut, key));
    let ((), used) = measure(|| (1_000..20_000).for_each(|key| round(&mut uut, key)));
    assert_eq!((uut.engine.context_count(), uut.engine.inactive_count()), (0, 16));
    assert!(used.live_bytes.abs() < 4_096, "{used:?}");
}

#[test]
fn a_peer_that_sends_pieces_apart_fills_no_more_than_the_window_and_its_pieces() {
    let mut uut = Uut::opened(Listen::on(PORT), None);
    let ((), used) = measure(|| {
        for place in 0..32_000 {
            uut.data(Options::NONE, 1 + 2 * place, b"x");
        }
    });
    assert!(used.live_bytes < 256 << 10, "{used:?}");
}

/// Pieces that grow by a byte after their first packet: what doubles has room for twice as much.
#[test]
fn pieces_that_grow_behind_gaps_take_a_quarter_more_than_their_bytes_at_most() {
    let buffer_len = 1 << 20;
    let config = Config { buffer_len, ..Config::default() };
    let mut uut = Uut::opened_in(config, Listen::on(PORT), None);
    let (len, gap) = (1_025, 1);
    let count = buffer_len as u64 / (len + gap);
    let ((), used) = measure(|| {
        for at in (0..count).map(|number| number * (len + gap) + gap) {
            uut.data(Options::NONE, at, &[7; 1_024]);
            uut.data(Options::NONE, at + 1_024, b"x");
        }
    });
    let kept = (count * len) as i64;
    println!("{} bytes for {kept} in {count} pieces", used.live_bytes);
    assert!(used.live_bytes > kept, "they were not kept: {used:?}");
    // Beside the bytes: where each piece is.
    assert!(used.live_bytes < kept * 5 / 4 + 64 * count as i64, "{used:?}");
}

/// So many packets of a byte with a tag each, from byte `from` on.
fn give_tagged(uut: &mut Uut, from: u64, count: u64) {
    for seq in from..from + count {
        uut.tagged(seq, b"x");
        uut.events.clear();
    }
}

/// How many of such packets are there to read.
fn read_after_tagged(uut: &mut Uut, from: u64, count: u64) -> u64 {
    give_tagged(uut, from, count);
    let mut place = from;
    while let Read::Data { len, tag, .. } = uut.read() {
        assert_eq!(tag, Some(place.to_be_bytes()));
        place += len as u64;
    }
    place - from
}

#[test]
fn tags_inside_what_was_read_are_forgotten() {
    let mut uut = Uut::opened(Listen::on(PORT), None);
    let ((), used) = measure(|| {
        for round in 0..100 {
            assert_eq!(read_after_tagged(&mut uut, round * 5_000, 5_000), 5_000);
        }
    });
    assert!(used.live_bytes < 32 << 10, "{used:?}");
}

#[test]
fn tags_that_wait_take_no_more_than_their_share_and_what_brings_more_can_come_again() {
    let mut uut = Uut::opened(Listen::on(PORT), None);
    let share = Config::default().buffer_len as u64 / 8;
    let ((), used) = measure(|| give_tagged(&mut uut, 0, 40_000));
    assert!(used.live_bytes < 512 << 10, "{used:?}");
    assert_eq!(read_after_tagged(&mut uut, 0, 0), share);
    assert_eq!(read_after_tagged(&mut uut, share, 100), 100);
}

#[test]
fn tags_behind_a_gap_leave_room_for_that_of_what_fills_it() {
    let mut uut = Uut::opened(Listen::on(PORT), None);
    uut.data(Options::NONE, 1, &[7; 40_000]);
    give_tagged(&mut uut, 1, 40_000);
    assert_eq!(uut.read(), Read::Nothing);
    uut.tagged(0, b"x");
    let read = Read::Data { len: 40_001, is_end: false, tag: Some([0; 8]) };
    assert_eq!(uut.read(), read);
}

/// Nothing, and the request of a peer that sends nothing again and has got this far.
fn skips_to(uut: &mut Uut, seq: u64) {
    let options = Options::NOERR | Options::SREQ;
    let header = Header {
        options,
        seq,
        sync: seq as u32,
        ..Header::new(Key::returned(uut.xkey), Format::Cntl)
    };
    let control = Control { rseq: 0, alloc: 1 << 20, echo: 0 };
    uut.give(packet(&header, &Body::Cntl(control)));
    uut.take();
    uut.events.clear();
}

#[test]
fn a_peer_that_gives_up_byte_after_byte_makes_one_hole() {
    let mut uut = Uut::opened(Listen::on(PORT), None);
    let ((), used) = measure(|| (1..=50_000).for_each(|seq| skips_to(&mut uut, seq)));
    assert!(used.live_bytes < 4_096, "{used:?}");
    assert_eq!((uut.read(), uut.read()), (Read::Hole { len: 50_000 }, Read::Nothing));
}

#[test]
fn ends_of_messages_in_what_was_given_up_are_bounded() {
    let mut uut = Uut::opened(Listen::on(PORT), None);
    skips_to(&mut uut, 1 << 20);
    let late = |seq: u64, uut: &mut Uut| {
        uut.data(Options::EOM | Options::NOFLOW, seq, b"x");
        uut.events.clear();
    };
    let ((), used) = measure(|| (0..400_000).for_each(|seq| late(seq, &mut uut)));
    assert!(used.live_bytes < 2 << 20, "{used:?}");
    assert_eq!(uut.read(), Read::Hole { len: 1 << 20 });
}

#[test]
fn a_flood_of_requests_to_join_takes_no_more_than_its_candidates() {
    let mut hand = Hand::opened(Config::default(), &GroupPolicy::default());
    let mut flood = |count: u32| {
        for number in 0..count {
            let from = ([203, 0, (number >> 8) as u8, number as u8], 4_040).into();
            let key = Key::returned(hand.key);
            hand.uut.give_from(from, &asks(key, u64::from(number) + 7, 1, from));
            hand.uut.take();
        }
    };
    flood(100);
    let ((), used) = measure(|| flood(20_000));
    assert!(used.live_bytes < 4_096, "{used:?}");
}

#[test]
fn a_member_takes_little() {
    let count = 1_000;
    let policy = GroupPolicy { members_max: count, ..GroupPolicy::default() };
    let mut hand = Hand::opened(Config::default(), &policy);
    let ((), used) = measure(|| {
        for number in 0..count {
            hand.join(number);
            hand.uut.events.clear();
        }
    });
    let each = used.live_bytes / count as i64;
    println!("{each} bytes for each of {count} members");
    assert!(each < 1_024, "{each} bytes each");
}
