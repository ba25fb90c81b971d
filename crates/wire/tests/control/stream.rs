//! A stream delivers the same bytes in other pieces than they were written in.

use dacapo_wire::message::Message;
use dacapo_wire::record::{LEN_MAX, Reader};

use crate::random::Random;
use crate::sample::{Sample, Taste};

/// Some messages, and their bytes with records in between that nobody knows.
fn conversation(random: &mut Random) -> (Vec<Message>, Vec<u8>) {
    let (mut messages, mut bytes) = (Vec::new(), Vec::new());
    while messages.len() < 12 {
        let message = Sample { random, taste: Taste::LARGE }.any();
        if message.encode(&mut bytes).is_ok() {
            messages.push(message);
        }
        if random.chance(4) {
            let len = random.len(3_000);
            bytes.extend_from_slice(&(random.u16() | 0x8000).to_be_bytes());
            bytes.extend_from_slice(&(len as u32).to_be_bytes());
            bytes.extend(random.bytes(len));
        }
    }
    (messages, bytes)
}

/// What comes out when `bytes` go in by pieces of the lengths that `piece_len` says.
fn poured(bytes: &[u8], mut piece_len: impl FnMut() -> usize) -> Vec<Message> {
    let (mut reader, mut messages, mut rest) = (Reader::default(), Vec::new(), bytes);
    while !rest.is_empty() {
        let len = piece_len().clamp(1, reader.room()).min(rest.len());
        let (piece, after) = rest.split_at(len);
        reader.push(piece).expect("room");
        rest = after;
        while let Some(message) = reader.next().expect("legal records") {
            messages.push(message);
        }
    }
    assert!(reader.is_between_records());
    messages
}

#[test]
fn any_pieces_give_the_same_messages() {
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let (messages, bytes) = conversation(random);
        assert_eq!(poured(&bytes, || LEN_MAX), messages, "seed {seed}, as long as there is room");
        assert_eq!(poured(&bytes, || 1 + random.below(3_000)), messages, "seed {seed}, random");
        assert_eq!(poured(&bytes, || 1 + random.below(9)), messages, "seed {seed}, short");
        if seed < 5 {
            assert_eq!(poured(&bytes, || 1), messages, "seed {seed}, single bytes");
        }
    }
}

#[test]
fn records_may_be_read_later_than_they_come() {
    for seed in 100..160 {
        let random = &mut Random::new(seed);
        let (messages, bytes) = conversation(random);
        let (mut reader, mut read, mut rest) = (Reader::default(), Vec::new(), bytes.as_slice());
        while read.len() < messages.len() {
            let len = random.below(900).min(reader.room()).min(rest.len());
            let (piece, after) = rest.split_at(len);
            reader.push(piece).expect("room");
            rest = after;
            if random.chance(3) || rest.is_empty() || reader.room() == 0 {
                read.extend(reader.next().expect("legal records"));
            }
        }
        assert_eq!(read, messages, "seed {seed}");
    }
}
