//! Rings in memory that somebody else writes, with a stream over them: whatever stands in a word at
//! whatever look, it ends the stream or is some bytes.

use crate::input::Input;
use crate::oracle;
use dacapo_base::Time;
use dacapo_heap::measure;
use dacapo_packet::Pool;
use dacapo_transport::shm::ring::{CAPACITY_MIN, End, Memory, Rings, memory_len};
use dacapo_transport::stream::{MAGIC, ReadOutcome, StreamEnd, TOKEN_LEN, Token};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::rc::Rc;

/// The most steps of a script, so that a long one ends.
const STEPS_MAX: usize = 400;

/// What both see; what the other end does to it between two looks is a queue of words.
#[derive(Clone)]
struct Shared(Rc<RefCell<State>>);

struct State {
    bytes: Vec<u8>,
    sudden: VecDeque<u64>,
}

impl State {
    fn word(&self, at: usize) -> u64 {
        let bytes = self.bytes[at..at + 8].try_into().expect("eight bytes");
        u64::from_ne_bytes(bytes)
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

impl Memory for Shared {
    fn load(&self, at: usize) -> u64 {
        let mut state = self.0.borrow_mut();
        let sudden = state.sudden.pop_front();
        sudden.unwrap_or_else(|| state.word(at))
    }

    fn store(&self, at: usize, word: u64) {
        self.0.borrow_mut().set(at, &word.to_ne_bytes());
    }

    fn fence(&self) {}

    fn copy_in(&self, at: usize, bytes: &[u8]) {
        self.0.borrow_mut().set(at, bytes);
    }

    fn copy_out(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.0.borrow().bytes[at..at + into.len()]);
    }
}

/// The rings as a stream, as a link has them, without its bell.
struct Wire {
    rings: Rings<Shared>,
    received: usize,
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let room: usize = parts.iter().map(|part| part.len()).sum();
        let moved = self.rings.read(parts).map_err(io::Error::other)?;
        assert!(moved.len <= room.min(CAPACITY_MIN), "{} bytes of {room}", moved.len);
        self.received += moved.len;
        match moved.len {
            0 if self.rings.is_closed_there() => Ok(0),
            0 => {
                self.rings.await_data();
                Err(io::ErrorKind::WouldBlock.into())
            }
            len => Ok(len),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let given: usize = parts.iter().map(|part| part.len()).sum();
        let moved = self.rings.write(parts).map_err(io::Error::other)?;
        assert!(moved.len <= given, "{} bytes of {given}", moved.len);
        if moved.len == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(moved.len) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Our end, and the other one's hands.
struct Play {
    end: StreamEnd,
    wire: Wire,
    pool: Pool,
    /// Where the other end's words and ring are.
    words: usize,
    ring: usize,
}

impl Play {
    fn new(is_listener: bool) -> (Self, Shared) {
        let bytes = vec![0; memory_len(CAPACITY_MIN)];
        let memory = Shared(Rc::new(RefCell::new(State { bytes, sudden: VecDeque::new() })));
        let (end, side) = match is_listener {
            true => (StreamEnd::listener(), End::Listener),
            false => (StreamEnd::dialer(&[7; TOKEN_LEN]), End::Dialer),
        };
        let rings = Rings::new(memory.clone(), side, CAPACITY_MIN);
        let (words, ring) = if is_listener { (0, 8_192) } else { (4_096, 8_192 + CAPACITY_MIN) };
        let wire = Wire { rings, received: 0 };
        (Self { end, wire, pool: Pool::new(4 << 20), words, ring }, memory)
    }

    /// One step of the other end, or of ours; false when the stream is over.
    fn step(&mut self, input: &mut Input<'_>, memory: &Shared) -> bool {
        let state = || memory.0.borrow_mut();
        match input.u8() % 6 {
            0 => self.append(input.piece(), memory),
            1 => {
                let at = self.words + 128 * usize::from(input.u8() % 5);
                state().set(at, &input.number().to_ne_bytes());
            }
            2 => {
                let (at, piece) = (usize::from(input.u16()), input.piece());
                let at = self.ring + at % (CAPACITY_MIN - piece.len());
                state().set(at, piece);
            }
            3 => (0..input.u8() % 8).for_each(|_| state().sudden.push_back(input.number())),
            4 => {
                let bytes = vec![5; usize::from(input.u16()) % 10_000];
                let Self { end, wire, .. } = self;
                return oracle::bounded("a write to rings", bytes.len(), || {
                    end.write(&bytes, 1_000, wire).is_ok() && end.flush(wire).is_ok()
                });
            }
            _ => return self.read(),
        }
        true
    }

    /// What a correct end does: bytes, then the tail.
    fn append(&self, bytes: &[u8], memory: &Shared) {
        let mut state = memory.0.borrow_mut();
        let tail = state.word(self.words);
        for (count, byte) in (0..).zip(bytes) {
            let at = tail.wrapping_add(count) % CAPACITY_MIN as u64;
            state.set(self.ring + usize::try_from(at).unwrap_or(0), &[*byte]);
        }
        state.set(self.words, &tail.wrapping_add(bytes.len() as u64).to_ne_bytes());
    }

    /// Reads once, and takes what came.
    fn read(&mut self) -> bool {
        let Self { end, wire, pool, .. } = self;
        let before = wire.received;
        let (outcome, used) = measure(|| end.read(wire, pool));
        oracle::check("a read from rings", wire.received - before, used);
        match outcome {
            ReadOutcome::Ended(_) => return false,
            ReadOutcome::Claim(_) => end.accept(),
            _ => {}
        }
        let now = Time::from_millis(1);
        while let Ok(Some(packet)) =
            oracle::bounded("a datagram of rings", 0, || end.poll_datagram(now, pool))
        {
            pool.free(packet);
        }
        let most = (8 * wire.received).max(256);
        assert!(pool.bytes_in_use() <= most, "{} > {most}", pool.bytes_in_use());
        true
    }
}

/// One byte chooses the side; the rest is a script of what both ends do.
pub fn rings(data: &[u8]) {
    let mut input = Input(data);
    let (mut play, memory) = Play::new(input.u8().is_multiple_of(2));
    // What a pool gives is counted by the pool; its bodies are made before anything is measured.
    for len in [200, 2_000, 16_000, 60_000] {
        let packets: Vec<_> = (0..8).filter_map(|_| play.pool.alloc(0, len, 0).ok()).collect();
        packets.into_iter().for_each(|packet| play.pool.free(packet));
    }
    for _ in 0..STEPS_MAX {
        if input.is_empty() || !play.step(&mut input, &memory) {
            break;
        }
    }
    play.end.release(&mut play.pool);
    assert_eq!(play.pool.live_views(), 0, "a stream keeps views");
}

/// A preface and records, honestly; then words that jump.
#[must_use]
pub fn rings_seeds() -> Vec<Vec<u8>> {
    let token: Token = [7; TOKEN_LEN];
    let preface = [MAGIC.as_slice(), &token].concat();
    let said = |bytes: &[u8]| [&[0, bytes.len() as u8], bytes, &[5, 5]].concat();
    let record = said(&[0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0]);
    let listener = [vec![0], said(&preface), record.clone(), record.clone()].concat();
    let dialer = [vec![1], said(&MAGIC), record.clone(), vec![4, 9, 9, 4, 9, 9, 4, 9, 9]].concat();
    let closed = [&listener[..], &[1, 4, 1, 5, 5, 5]].concat();
    let jump = [&listener[..], &[1, 0, 0xFF, 5, 5]].concat();
    let sudden = [&dialer[..], &[3, 3, 9, 0xF9, 0, 4, 9, 9, 5, 3, 2, 200, 0, 5]].concat();
    let torn = [&listener[..], &[2, 0, 28, 4, 0, 0, 0xFF, 0xFF, 1, 0, 0xC9, 0, 5, 5, 5]].concat();
    vec![listener, dialer, closed, jump, sudden, torn]
}
