//! The inbox of messages over a flow of bytes: heads that lie, units in any order, a user that
//! takes parts or does not.

use crate::input::Input;
use crate::oracle;
use dacapo::access::messages::{
    Ending, HEAD_LEN, Head, Inbox, OPEN_MAX, PART_LEN_MAX, READY_MAX, UNIT_LEN_MAX,
};
use std::collections::{BTreeMap, BTreeSet};

/// The byte of every message at this place: what is given is compared with it.
fn pattern(number: u64, at: u64) -> u8 {
    (at.wrapping_mul(31) ^ at.wrapping_shr(8)).wrapping_add(number) as u8
}

#[derive(Default)]
struct Stage {
    inbox: Inbox,
    /// How much of each message was given, where some was.
    given: BTreeMap<u64, u64>,
    seen: BTreeSet<&'static str>,
    /// Bytes of units that came, and those of them that the user has: what lies between is held,
    /// and moves when its message grows.
    came: usize,
    taken: usize,
}

impl Stage {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() {
            kind @ 0x00..=0xBF => {
                let unit = unit(kind, input);
                self.handle(&unit);
            }
            0xC0..=0xCF => self.handle(input.piece()),
            0xD0..=0xFE => self.take(),
            0xFF => self.finish(),
        }
        let sums = self.inbox.sums();
        assert!(sums.closes(), "{sums:?}");
        assert!(sums.open <= (2 * OPEN_MAX + READY_MAX) as u64, "{sums:?}");
    }

    fn handle(&mut self, unit: &[u8]) {
        if !self.inbox.has_capacity() {
            assert!(self.inbox.has_part(), "it waits for nothing");
            self.seen.insert("full");
            return;
        }
        self.came += unit.len();
        let held = self.came.saturating_sub(self.taken);
        oracle::bounded("an inbox of messages", held, || self.inbox.handle_unit(unit));
    }

    fn take(&mut self) {
        let part =
            oracle::bounded("the reader of an inbox", PART_LEN_MAX, || self.inbox.get_message());
        let Some(part) = part else { return };
        let so_far = self.given.remove(&part.number).unwrap_or(0);
        assert!(part.offset == so_far && part.data.len() <= PART_LEN_MAX, "{}", part.offset);
        let places = part.data.iter().zip(part.offset..);
        for (byte, at) in places {
            assert_eq!(*byte, pattern(part.number, at), "{} at {at}", part.number);
        }
        self.taken += part.data.len();
        let end = so_far + part.data.len() as u64;
        assert!(end <= part.len);
        match part.ending {
            Ending::More => {
                self.given.insert(part.number, end);
            }
            Ending::Last => assert_eq!(end, part.len),
            Ending::Broken => assert!(part.data.is_empty() && end < part.len),
        }
        self.seen.insert(match part.ending {
            Ending::More => "part",
            Ending::Last => "whole",
            Ending::Broken => "broken",
        });
    }

    fn finish(&mut self) {
        oracle::bounded("the end of an inbox", 0, || self.inbox.finish());
    }

    /// The flow ends; everything is given or broken.
    fn close(&mut self) {
        self.finish();
        while self.inbox.has_part() {
            self.take();
        }
        assert_eq!(self.inbox.sums().open, 0);
        let counters = self.inbox.counters();
        let counted = [
            ("malformed", counters.malformed),
            ("duplicate", counters.duplicates),
            ("old", counters.old),
            ("missed", counters.missed),
        ];
        self.seen.extend(counted.iter().filter(|(_, count)| *count > 0).map(|(name, _)| *name));
    }
}

/// A unit with a head that fits its bytes, which are those of the message at their place; or, by
/// `kind`, with one that lies.
fn unit(kind: u8, input: &mut Input<'_>) -> Vec<u8> {
    let (priority, number) = (u16::from(kind % 4), input.number());
    let (len, offset) = (input.number(), input.number());
    let bytes = match kind % 16 {
        15 => input.number(),
        14 => len,
        _ => len.saturating_sub(offset).min(u64::from(input.u8()) * 64),
    };
    let bytes = bytes.min((UNIT_LEN_MAX - HEAD_LEN) as u64);
    let head = Head { priority, number, len, offset }.emit();
    let places = (0..bytes).map(|at| pattern(number, offset.wrapping_add(at)));
    head.into_iter().chain(places).collect()
}

/// A script: units and a user.
pub fn inbox(data: &[u8]) {
    run(data);
}

/// Plays a script; what became of messages.
pub fn play(data: &[u8]) -> BTreeSet<&'static str> {
    run(data).seen
}

fn run(data: &[u8]) -> Stage {
    let (mut stage, mut input) = (Stage::default(), Input(data));
    while !input.is_empty() {
        stage.step(&mut input);
    }
    stage.close();
    stage
}

/// Scripts that lead through messages of every length, gaps and ends.
pub fn inbox_seeds() -> Vec<Vec<u8>> {
    const GET: [u8; 2] = [0xD0; 2];
    // Kind; number, length and place in two bytes each; bytes in pieces of 64.
    let unit = |kind: u8, number: u8, len: u16, at: u16, pieces: u8| {
        let ([a, b], [c, d]) = (len.to_be_bytes(), at.to_be_bytes());
        vec![kind, 0xC0, 0, number, 0xC0, a, b, 0xC0, c, d, pieces]
    };
    // The same with a length and a place of 32 bits.
    let far = |kind: u8, number: u8, len: u32, at: u32, pieces: u8| {
        let (len, at) = (len.to_be_bytes(), at.to_be_bytes());
        [&[kind, 0xC0, 0, number, 0xE0][..], &len, &[0xE0], &at, &[pieces]].concat()
    };
    let whole = |number: u8| unit(1, number, 100, 0, 255);
    let simple = [whole(0), unit(0, 1, 0, 0, 0), unit(2, 2, 40, 0, 1), GET.repeat(2)].concat();
    let late = [unit(1, 0, 300, 128, 2), unit(1, 0, 300, 256, 2), unit(1, 0, 300, 0, 2)].concat();
    let late = [late.clone(), GET.to_vec(), late].concat();
    let steps = (0..24).map(|at| far(1, 0, 390_000, at * 16_320, 255));
    let long = [steps.collect::<Vec<_>>().concat(), GET.to_vec()].concat();
    let gap = [unit(1, 0, 200, 0, 1), (1..70).map(whole).collect::<Vec<_>>().concat()].concat();
    let many = (0..70).map(|number| unit(1, number, 900, 0, 1));
    let many = [many.collect::<Vec<_>>().concat(), GET.to_vec(), vec![0xFF], whole(90)].concat();
    let lies = [unit(15, 0, 5, 9, 0), unit(1, 1, 9, 3, 1), unit(1, 1, 8, 3, 1), vec![0xC0, 1, 1]];
    let ahead = [far(1, 3, u32::MAX, 0, 1), far(1, 3, u32::MAX, 1 << 30, 1), whole(200)].concat();
    let full = (0..255).map(|number| unit(0, number, 0, 0, 0)).collect::<Vec<_>>().concat();
    let full = [full, vec![0, 0xC0, 1, 0, 0, 0, 0], vec![0, 0xC0, 1, 1, 0, 0, 0]].concat();
    vec![simple, late, long, gap, many, lies.concat(), ahead, full]
}
