//! Tests of the rings without processes: what goes in comes out, no order of steps loses a wake-up
//! ([`model`]), two threads ([`stress`]), and memory in which anything may stand.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod model;
mod stress;

use super::ring::{
    Broken, CAPACITY_MAX, CAPACITY_MIN, End, Memory, Moved, Rings, capacity_of, memory_len,
};
use dacapo_base::Random;
use dacapo_sys::memory::SharedMemory;
use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};

type Pair = [Rings<SharedMemory>; 2];

/// Both ends of rings of `capacity` bytes.
fn pair(capacity: usize) -> Pair {
    let len = memory_len(capacity);
    let (here, fd) = SharedMemory::create(len).unwrap();
    let there = SharedMemory::open(fd, len..=len).unwrap();
    [Rings::new(here, End::Dialer, capacity), Rings::new(there, End::Listener, capacity)]
}

fn write<M: Memory>(rings: &mut Rings<M>, bytes: &[u8]) -> Moved {
    rings.write(&[IoSlice::new(bytes)]).unwrap()
}

fn read<M: Memory>(rings: &mut Rings<M>, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let moved = rings.read(&mut [IoSliceMut::new(&mut bytes)]).unwrap();
    bytes.truncate(moved.len);
    bytes
}

#[test]
fn lengths_of_memory_and_of_rings_belong_to_each_other() {
    let mut capacity = CAPACITY_MIN;
    while capacity <= CAPACITY_MAX {
        let len = memory_len(capacity);
        assert_eq!(capacity_of(len), Some(capacity));
        for wrong in [len - 1, len + 1, len + 2, len - 4_096, len + 4_096] {
            assert_eq!(capacity_of(wrong), None, "{wrong} bytes");
        }
        capacity *= 2;
    }
    for capacity in [0, 1, CAPACITY_MIN / 2, CAPACITY_MAX * 2] {
        assert_eq!(capacity_of(memory_len(capacity)), None, "rings of {capacity} bytes");
    }
    assert_eq!((capacity_of(0), capacity_of(usize::MAX)), (None, None));
}

/// Parts of any length, both ways at once, again and again around the ring.
#[test]
fn what_is_written_is_read_in_order_both_ways() {
    for seed in 0..50 {
        let mut random = Random::from_number(seed);
        let mut ends = pair(CAPACITY_MIN);
        let (mut sent, mut received) = ([vec![], vec![]], [vec![], vec![]]);
        for _ in 0..300 {
            let from = random.below(2) as usize;
            let parts: Vec<Vec<u8>> = (0..random.below(4))
                .map(|_| {
                    let mut part = vec![0; random.below(3_000) as usize];
                    random.fill(&mut part);
                    part
                })
                .collect();
            let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
            let moved = ends[from].write(&slices).unwrap();
            sent[from].extend_from_slice(&parts.concat()[..moved.len]);
            let to = random.below(2) as usize;
            let (mut one, mut two) =
                (vec![0; random.below(2_000) as usize], vec![0; random.below(2_000) as usize]);
            let mut into = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
            let moved = ends[to].read(&mut into).unwrap();
            received[1 - to].extend_from_slice(&[one, two].concat()[..moved.len]);
        }
        for from in [0, 1] {
            received[from].extend(read(&mut ends[1 - from], 2 * CAPACITY_MIN));
            assert!(sent[from] == received[from], "seed {seed}");
        }
    }
}

#[test]
fn an_end_that_has_not_read_yet_is_woken_by_the_first_byte_and_once() {
    let [mut here, mut there] = pair(CAPACITY_MIN);
    assert!(write(&mut here, b"a").wakes);
    assert!(!write(&mut here, b"b").wakes, "it was woken");
    assert_eq!(read(&mut there, 9), b"ab");
    assert!(!write(&mut here, b"c").wakes, "it is awake");
    assert_eq!(read(&mut there, 9), b"c");
    there.await_data();
    there.await_data();
    assert!(write(&mut here, b"d").wakes, "it sleeps again");
    assert!(!write(&mut here, b"e").wakes);
}

#[test]
fn a_writer_that_waits_is_woken_when_half_is_free_and_once() {
    let [mut here, mut there] = pair(CAPACITY_MIN);
    let moved = write(&mut here, &[1; CAPACITY_MIN + 1]);
    assert_eq!((moved.len, here.has_capacity()), (CAPACITY_MIN, false));
    let mut bytes = vec![0; CAPACITY_MIN];
    let mut wakes = |len: usize| {
        let moved = there.read(&mut [IoSliceMut::new(&mut bytes[..len])]).unwrap();
        assert_eq!(moved.len, len);
        moved.wakes
    };
    assert!(!wakes(CAPACITY_MIN / 2 - 1));
    assert!(!here.has_capacity());
    assert!(wakes(1));
    assert!(here.has_capacity() && !wakes(1));
    assert_eq!(write(&mut here, b"more").len, 4);
    assert!(!wakes(CAPACITY_MIN / 2), "it does not wait");
}

#[test]
fn the_end_is_seen_with_everything_before_it() {
    let [mut here, mut there] = pair(CAPACITY_MIN);
    write(&mut here, b"last words");
    assert!(!there.is_closed_there());
    here.close();
    assert!(there.is_closed_there() && !here.is_closed_there());
    assert_eq!(read(&mut there, 99), b"last words");
}

/// Offsets of the words of the other end.
const TAIL: usize = 0;
const HEAD: usize = 128;

#[test]
fn a_place_that_cannot_be_is_told_and_one_that_can_is_some_bytes() {
    let capacity = CAPACITY_MIN as u64;
    for tail in [capacity + 1, u64::MAX, 1 << 63] {
        let [here, mut there] = pair(CAPACITY_MIN);
        here.memory().store(TAIL, tail);
        let mut byte = [0];
        assert_eq!(there.read(&mut [IoSliceMut::new(&mut byte)]), Err(Broken), "{tail}");
    }
    for head in [1, capacity, 1 << 63] {
        let [here, mut there] = pair(CAPACITY_MIN);
        here.memory().store(HEAD, head);
        let bytes = [1; CAPACITY_MIN + 1];
        assert_eq!(there.write(&[IoSlice::new(&bytes)]), Err(Broken), "{head}");
        assert!(there.has_capacity(), "the next write tells");
    }
    let [here, mut there] = pair(CAPACITY_MIN);
    here.memory().store(TAIL, capacity);
    assert_eq!(read(&mut there, 2 * CAPACITY_MIN), [0; CAPACITY_MIN]);
}

/// Memory in which every look finds something else, near to what was written or not.
struct Hostile {
    random: RefCell<Random>,
    last: RefCell<u64>,
    len: usize,
}

impl Hostile {
    fn check(&self, at: usize, len: usize) {
        assert!(at + len <= self.len, "{len} bytes at {at} of {}", self.len);
    }
}

impl Memory for Hostile {
    fn load(&self, at: usize) -> u64 {
        self.check(at, 8);
        let mut random = self.random.borrow_mut();
        match random.below(4) {
            0 => random.next_u64(),
            1 => *self.last.borrow(),
            _ => self.last.borrow().wrapping_add(random.below(CAPACITY_MIN as u64 + 2)),
        }
    }

    fn store(&self, at: usize, word: u64) {
        self.check(at, 8);
        *self.last.borrow_mut() = word;
    }

    fn fence(&self) {}

    fn copy_in(&self, at: usize, bytes: &[u8]) {
        self.check(at, bytes.len());
    }

    fn copy_out(&self, at: usize, into: &mut [u8]) {
        self.check(at, into.len());
        self.random.borrow_mut().fill(into);
    }
}

#[test]
fn memory_that_changes_at_every_look_is_survived_inside_its_bounds() {
    let (mut moves, mut ends) = (0, 0);
    for seed in 0..2_000 {
        let random = RefCell::new(Random::from_number(seed));
        let len = memory_len(CAPACITY_MIN);
        let memory = Hostile { random, last: RefCell::new(0), len };
        let end = if seed % 2 == 0 { End::Dialer } else { End::Listener };
        let mut rings = Rings::new(memory, end, CAPACITY_MIN);
        for step in 0..50_usize {
            let mut bytes = vec![0; step * 397 % 10_000];
            let moved = match step % 3 {
                0 => rings.write(&[IoSlice::new(&bytes), IoSlice::new(b"end")]),
                1 => rings.read(&mut [IoSliceMut::new(&mut bytes)]),
                _ => {
                    rings.await_data();
                    let _ = (rings.has_capacity(), rings.is_closed_there());
                    continue;
                }
            };
            match moved {
                Ok(moved) => moves += usize::from(moved.len > 0),
                Err(Broken) => ends += 1,
            }
        }
    }
    assert!(moves > 1_000 && ends > 1_000, "{moves} moves, {ends} ends");
}
