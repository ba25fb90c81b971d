//! Records: whatever the pieces, the datagrams are those that were sent.

use super::*;
use crate::stream::RECORD_LEN_MAX;

/// Lengths that make every case: empty, equal ones with a shorter end, longer ones.
const LENS: [usize; 13] = [0, 1, 5, 5, 5, 3, 0, 0, 300, 40, 40, 40, 9];

fn check_pieces(pieces: Pieces, expected: &[Vec<u8>], context: &str) -> Got {
    let mut pool = Pool::new(1 << 20);
    let mut end = open_end(&mut pool);
    let mut pieces = pieces;
    let (got, ending) = read_all(&mut end, &mut pieces, &mut pool, |_, _| {});
    assert!(matches!(ending, Ending::Closed), "{context}: {ending}");
    assert!(got.datagrams == expected, "{context}: the datagrams differ");
    end.release(&mut pool);
    assert_eq!(pool.live_views(), 0, "{context}");
    got
}

#[test]
fn every_split_in_two_gives_the_same_datagrams() {
    let sent = datagrams(&LENS, 1);
    let bytes = records(&sent);
    for at in 0..=bytes.len() {
        let (first, second) = bytes.split_at(at);
        check_pieces(Pieces::of([first, second]), &sent, &format!("split at {at}"));
    }
}

#[test]
fn every_split_in_three_around_a_length_gives_the_same_datagrams() {
    let sent = datagrams(&[7, 7, 2], 2);
    let bytes = records(&sent);
    for from in 0..bytes.len() {
        for to in from..bytes.len() {
            let pieces = Pieces::of([&bytes[..from], &bytes[from..to], &bytes[to..]]);
            check_pieces(pieces, &sent, &format!("splits at {from} and {to}"));
        }
    }
}

#[test]
fn single_bytes_give_the_same_datagrams() {
    let sent = datagrams(&LENS, 3);
    let bytes = records(&sent);
    check_pieces(Pieces::of(bytes.chunks(1)), &sent, "single bytes");
}

#[test]
fn random_pieces_of_long_and_short_records_give_the_same_datagrams() {
    for seed in 0..300 {
        let mut random = Random::from_number(seed);
        let lens: Vec<usize> = (0..40)
            .map(|_| match random.below(6) {
                0 => 0,
                1 => random.below(RECORD_LEN_MAX as u64 + 1) as usize,
                2 => 1_400,
                3 => random.below(16_500) as usize,
                _ => random.below(300) as usize,
            })
            .collect();
        let sent = datagrams(&lens, seed);
        let bytes = records(&sent);
        check_pieces(Pieces::random(&bytes, &mut random), &sent, &format!("seed {seed}"));
    }
}

#[test]
fn equal_records_of_one_read_are_one_train_with_its_shorter_end() {
    let sent = datagrams(&[1_200, 1_200, 1_200, 500], 4);
    let bytes = records(&sent);
    let got = check_pieces(Pieces::of([bytes.as_slice()]), &sent, "a train");
    assert_eq!(got.packets, 1);
    let sent = datagrams(&[10, 20, 30, 30, 5, 5], 5);
    let bytes = records(&sent);
    let got = check_pieces(Pieces::of([bytes.as_slice()]), &sent, "three trains");
    assert_eq!(got.packets, 4, "10, 20, 30 30 5, 5");
}

#[test]
fn a_train_has_at_most_64_datagrams() {
    let sent = datagrams(&[9; 130], 6);
    let got = check_pieces(Pieces::of([records(&sent).as_slice()]), &sent, "130 equal ones");
    assert_eq!(got.packets, 3);
}

/// How many bytes of bodies were made for one record in one read, and whether it lies where it was
/// read to.
#[test]
fn a_record_of_the_full_size_in_one_read_is_not_copied() {
    let sent = datagrams(&[RECORD_LEN_MAX], 7);
    let mut pool = Pool::new(1 << 20);
    let mut end = open_end(&mut pool);
    let mut pieces = Pieces::of([records(&sent).as_slice()]);
    assert!(matches!(end.read(&mut pieces, &mut pool), ReadOutcome::Bytes { .. }));
    let packet = end.poll_datagram(Time::ZERO, &mut pool).unwrap().unwrap();
    assert_eq!(pool.segment(&packet, 0), sent[0]);
    assert_eq!(pool.stats().bodies_made, 1, "the body that it was read to");
    assert!(pool.is_exclusive(&packet), "nobody else has a view of it");
    assert!(end.poll_datagram(Time::ZERO, &mut pool).unwrap().is_none());
    pool.free(packet);
    assert_eq!(pool.live_views(), 0);
}

#[test]
fn who_gets_the_records_of_a_read_has_them_alone_though_the_next_one_was_begun() {
    let sent = datagrams(&[20_000, 20_000, 20_000], 8);
    let bytes = records(&sent);
    let mut pool = Pool::new(1 << 20);
    let mut end = open_end(&mut pool);
    let mut pieces = Pieces::of([&bytes[..50_000], &bytes[50_000..]]);
    assert!(matches!(end.read(&mut pieces, &mut pool), ReadOutcome::Bytes { .. }));
    let mut train = end.poll_datagram(Time::ZERO, &mut pool).unwrap().unwrap();
    assert_eq!(train.segment_count(), 2);
    assert!(end.poll_datagram(Time::ZERO, &mut pool).unwrap().is_none());
    assert!(pool.is_exclusive(&train));
    pool.segment_mut(&mut train, 1).unwrap().fill(0);
    let (rest, ending) = read_all(&mut end, &mut pieces, &mut pool, |_, _| {});
    assert!(matches!(ending, Ending::Closed));
    assert!(rest.datagrams == sent[2..]);
    pool.free(train);
    assert_eq!(pool.live_views(), 0);
}

#[test]
fn a_busy_stream_is_read_in_large_pieces_though_every_piece_ends_within_a_record() {
    let sent = datagrams(&[1_300; 2_000], 11);
    let bytes = records(&sent);
    let mut pool = Pool::new(1 << 20);
    let mut end = open_end(&mut pool);
    let mut reads = 0;
    let mut pieces = Pieces::of([bytes.as_slice()]);
    let (got, _) = read_all(&mut end, &mut pieces, &mut pool, |_, _| reads += 1);
    assert!(got.datagrams == sent);
    // 64 KiB are 50 records and a part; the part is moved to the front of the next body.
    let least = bytes.len().div_ceil(64 * 1024);
    assert!(reads <= least + least / 20 + 3, "{reads} reads, {least} at least");
    assert!(got.packets <= 2 * reads, "{} packets of {reads} reads", got.packets);
}

#[test]
fn a_small_datagram_does_not_pin_a_large_body() {
    let sent = datagrams(&[30], 9);
    let mut pool = Pool::new(1 << 20);
    let mut end = open_end(&mut pool);
    end.read(&mut Pieces::of([records(&sent).as_slice()]), &mut pool);
    let packet = end.poll_datagram(Time::ZERO, &mut pool).unwrap().unwrap();
    assert!(end.poll_datagram(Time::ZERO, &mut pool).unwrap().is_none());
    assert_eq!(pool.bytes_in_use(), 256);
    pool.free(packet);
}

#[test]
fn an_end_of_the_stream_says_where_it_was() {
    let sent = datagrams(&[100], 10);
    let bytes = records(&sent);
    for at in 0..=bytes.len() {
        let mut pool = Pool::new(1 << 20);
        let mut end = open_end(&mut pool);
        let (_, ending) = read_all(&mut end, &mut Pieces::of([&bytes[..at]]), &mut pool, |_, _| {});
        match (at, &ending) {
            (0 | 104, Ending::Closed) => {}
            (1..=3, Ending::WithinRecord { received: 0, len: None }) => {}
            (_, Ending::WithinRecord { received, len: Some(100) }) => {
                assert_eq!(*received, at - 4);
            }
            _ => panic!("{at} bytes: {ending}"),
        }
        end.release(&mut pool);
        assert_eq!(pool.live_views(), 0);
    }
}

#[test]
fn a_pool_that_is_full_stops_the_reading_and_loses_nothing() {
    for seed in 0..100 {
        let mut random = Random::from_number(seed);
        let lens: Vec<usize> = (0..30).map(|_| random.below(1_500) as usize).collect();
        let sent = datagrams(&lens, seed);
        let mut pieces = Pieces::random(&records(&sent), &mut random);
        let mut pool = Pool::new(4_096);
        let mut end = open_end(&mut pool);
        let (mut got, mut held, mut was_full) = (Got::default(), Vec::new(), false);
        loop {
            match end.read(&mut pieces, &mut pool) {
                ReadOutcome::PoolFull => {
                    was_full = true;
                    assert!(!held.is_empty(), "seed {seed}: somebody has the memory");
                    held.drain(..).for_each(|packet| pool.free(packet));
                }
                ReadOutcome::Ended(ending) => {
                    assert!(matches!(ending, Ending::Closed), "seed {seed}: {ending}");
                    break;
                }
                _ => {}
            }
            while let Some(packet) = end.poll_datagram(Time::ZERO, &mut pool).unwrap() {
                for index in 0..packet.segment_count() {
                    got.datagrams.push(pool.segment(&packet, index).to_vec());
                }
                held.push(packet);
            }
        }
        held.drain(..).for_each(|packet| pool.free(packet));
        assert!(got.datagrams == sent, "seed {seed}");
        assert!(was_full, "seed {seed}");
        assert_eq!(pool.stats().bytes_copied, 0, "seed {seed}: nothing was made exclusive");
        assert_eq!(pool.live_views(), 0, "seed {seed}");
    }
}
