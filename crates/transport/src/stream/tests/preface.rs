//! Prefaces: both roles, in pieces, altered, and ended early.

use super::*;
use crate::stream::MAGIC;

fn preface() -> Vec<u8> {
    [MAGIC.as_slice(), &TOKEN].concat()
}

#[test]
fn the_preface_is_what_the_protocol_says() {
    let mut out = Narrow { room: 1_000, ..Narrow::default() };
    StreamEnd::dialer(&TOKEN).flush(&mut out).unwrap();
    assert_eq!(out.bytes, b"dacapo\x00\x01sixteen bytes!!!");
}

#[test]
fn both_ends_open_whatever_the_pieces() {
    let mut pool = Pool::new(1 << 16);
    for at in 0..=24 {
        let whole = preface();
        let mut end = StreamEnd::listener();
        let mut pieces = Pieces::of([&whole[..at], &whole[at..]]);
        pieces.is_ended = false;
        let mut claimed = None;
        for _ in 0..4 {
            assert!(!end.is_open());
            if let ReadOutcome::Claim(token) = end.read(&mut pieces, &mut pool) {
                claimed = Some(token);
            }
        }
        assert_eq!(claimed, Some(TOKEN), "split at {at}");
        end.accept();
        assert!(end.is_open() && end.has_backlog());
        let mut out = Narrow { room: 100, ..Narrow::default() };
        end.flush(&mut out).unwrap();
        assert_eq!(out.bytes, MAGIC);
    }
    for at in 0..=8 {
        let mut end = StreamEnd::dialer(&TOKEN);
        let mut pieces = Pieces::of([&MAGIC[..at], &MAGIC[at..]]);
        pieces.is_ended = false;
        let opened =
            (0..4).any(|_| matches!(end.read(&mut pieces, &mut pool), ReadOutcome::Opened));
        assert!(opened && end.is_open(), "split at {at}");
    }
}

#[test]
fn a_byte_that_is_not_ours_ends_it_at_once() {
    let mut pool = Pool::new(1 << 16);
    for at in 0..8 {
        for mut end in [StreamEnd::listener(), StreamEnd::dialer(&TOKEN)] {
            let mut bytes = preface()[..=at].to_vec();
            bytes[at] ^= 1;
            let mut pieces = Pieces::of([bytes.as_slice()]);
            pieces.is_ended = false;
            let outcome = end.read(&mut pieces, &mut pool);
            assert!(matches!(outcome, ReadOutcome::Ended(Ending::WrongPreface)), "{outcome:?}");
        }
    }
}

#[test]
fn an_end_before_the_preface_is_whole_is_told() {
    let mut pool = Pool::new(1 << 16);
    for at in 0..24 {
        let whole = preface();
        let mut end = StreamEnd::listener();
        let mut pieces = Pieces::of([&whole[..at]]);
        let mut outcome = end.read(&mut pieces, &mut pool);
        if matches!(outcome, ReadOutcome::Nothing) {
            outcome = end.read(&mut pieces, &mut pool);
        }
        assert!(matches!(outcome, ReadOutcome::Ended(Ending::WithinPreface)), "{outcome:?}");
    }
}

#[test]
fn nothing_of_the_pool_is_taken_and_nothing_goes_out_before_the_stream_is_open() {
    let mut pool = Pool::new(1 << 16);
    let whole = preface();
    // Records straight behind the preface wait until somebody has accepted it.
    let bytes = [whole.as_slice(), &[0, 0, 0, 2, 7, 8]].concat();
    let mut end = StreamEnd::listener();
    let mut pieces = Pieces::of([bytes.as_slice()]);
    assert!(matches!(end.read(&mut pieces, &mut pool), ReadOutcome::Claim(TOKEN)));
    assert!(matches!(end.read(&mut pieces, &mut pool), ReadOutcome::Nothing));
    let mut out = Narrow { room: 100, ..Narrow::default() };
    let taken = end.write(b"early", 5, &mut out).unwrap();
    assert_eq!((taken.datagrams, out.bytes.len()), (0, 0));
    assert_eq!(pool.stats().bodies_made, 0);
    end.accept();
    let (got, _) = read_all(&mut end, &mut pieces, &mut pool, |_, _| {});
    assert_eq!(got.datagrams, [[7, 8]]);
}
