//! Bytes from somebody who means no good: no panic, no memory beyond what came, no endless loop.

use super::*;
use crate::stream::RECORD_LEN_MAX;

/// What the pool may hold for a stream that has given `received` bytes and got nothing handed up.
fn bound(received: usize) -> usize {
    8 * received.max(1) + 256
}

/// Feeds bytes, a few at a time, and checks the memory after every read.
fn feed(end: &mut StreamEnd, bytes: &[u8], random: &mut Random, context: &str) -> Option<Ending> {
    let mut pool = Pool::new(1 << 20);
    let mut pieces = Pieces::random(bytes, random);
    let (mut left, mut got) = (bytes.len(), Got::default());
    let result = loop {
        let outcome = end.read(&mut pieces, &mut pool);
        let now: usize = pieces.pieces.iter().map(Vec::len).sum();
        match outcome {
            ReadOutcome::Bytes { .. } => assert!(now < left, "{context}: a read makes progress"),
            ReadOutcome::Claim(_) => end.accept(),
            ReadOutcome::Nothing | ReadOutcome::Opened => {}
            ReadOutcome::Ended(ending) => break Some(ending),
            ReadOutcome::Unpolled | ReadOutcome::PoolFull => panic!("{context}: {outcome:?}"),
        }
        left = now;
        if let Err(ending) = poll(end, &mut pool, &mut got) {
            break Some(ending);
        }
        let in_use = pool.bytes_in_use();
        assert!(in_use <= bound(bytes.len() - left), "{context}: {in_use} bytes in use");
    };
    end.release(&mut pool);
    assert_eq!(pool.live_views(), 0, "{context}");
    result
}

#[test]
fn junk_in_any_phase_ends_or_waits_and_is_bounded_in_memory() {
    for seed in 0..3_000 {
        let mut random = Random::from_number(seed);
        let mut pool = Pool::new(1 << 20);
        let mut junk = vec![0; random.below(3_000) as usize];
        random.fill(&mut junk);
        let mut end = match seed % 3 {
            0 => StreamEnd::listener(),
            1 => StreamEnd::dialer(&TOKEN),
            _ => open_end(&mut pool),
        };
        let ending = feed(&mut end, &junk, &mut random, &format!("seed {seed}"));
        assert!(ending.is_some(), "seed {seed}");
    }
}

#[test]
fn junk_that_looks_like_records_is_bounded_in_memory() {
    for seed in 0..3_000 {
        let mut random = Random::from_number(seed);
        let mut pool = Pool::new(1 << 20);
        let mut bytes = Vec::new();
        for _ in 0..random.below(20) {
            let len = [0, 1, 250, 3_000, 20_000, 65_535][random.below(6) as usize];
            bytes.extend_from_slice(&(len as u32).to_be_bytes());
            // Most of them are not whole, so the next length is found within.
            let given = random.below(len as u64 + 1) as usize;
            bytes.resize(bytes.len() + given, 0);
        }
        let mut end = open_end(&mut pool);
        let context = format!("seed {seed}");
        assert!(feed(&mut end, &bytes, &mut random, &context).is_some(), "{context}");
    }
}

#[test]
fn a_length_alone_gets_no_memory() {
    let mut pool = Pool::new(1 << 20);
    let mut end = open_end(&mut pool);
    let bytes = [&(RECORD_LEN_MAX as u32).to_be_bytes(), [0; 300].as_slice()].concat();
    let mut received = 0;
    let mut pieces = Pieces::of(bytes.chunks(1));
    pieces.is_ended = false;
    while received < bytes.len() {
        received +=
            usize::from(matches!(end.read(&mut pieces, &mut pool), ReadOutcome::Bytes { .. }));
        assert!(end.poll_datagram(Time::ZERO, &mut pool).unwrap().is_none());
        let most = if received <= 4 + 256 { 256 } else { 2_048 };
        assert!(pool.bytes_in_use() <= most, "{received} bytes: {}", pool.bytes_in_use());
    }
    end.release(&mut pool);
    assert_eq!(pool.live_views(), 0);
}

#[test]
fn a_record_that_is_too_long_ends_the_stream_after_those_before_it() {
    for len in [RECORD_LEN_MAX as u32 + 1, 1 << 24, u32::MAX] {
        let sent = datagrams(&[9, 9], 1);
        let bytes = [records(&sent), len.to_be_bytes().to_vec(), vec![1; 50]].concat();
        let mut pool = Pool::new(1 << 20);
        let mut end = open_end(&mut pool);
        let mut pieces = Pieces::of([bytes.as_slice()]);
        let (got, ending) = read_all(&mut end, &mut pieces, &mut pool, |_, _| {});
        assert!(matches!(ending, Ending::RecordTooLong { len: said } if said == len));
        assert!(ending.to_string().contains("65535 are the most"), "{ending}");
        assert!(got.datagrams == sent);
        let again = end.poll_datagram(Time::ZERO, &mut pool);
        assert!(matches!(again, Err(Ending::RecordTooLong { .. })), "it stays over");
        assert!(matches!(end.read(&mut pieces, &mut pool), ReadOutcome::Unpolled));
        end.release(&mut pool);
        assert_eq!(pool.live_views(), 0);
    }
}

#[test]
fn thousands_of_empty_records_in_one_read_are_handed_up_one_by_one() {
    let sent = vec![Vec::new(); 15_000];
    let mut pool = Pool::new(1 << 20);
    let mut end = open_end(&mut pool);
    let mut pieces = Pieces::of([records(&sent).as_slice()]);
    let (got, _) = read_all(&mut end, &mut pieces, &mut pool, |pool, _| {
        assert!(pool.bytes_in_use() <= 65_536);
    });
    assert_eq!(got.datagrams.len(), 15_000);
    assert_eq!(pool.live_views(), 0);
}
