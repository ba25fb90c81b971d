//! [`Pipe`]: a byte stream between two ends, in virtual time.
//!
//! ```text
//!   End(Dialer).write --> | on its way: (time, bytes) .. | arrived | --> End(Listener).read
//!               takes a random part      at most buffer_bytes            gives a random part
//! ```
//!
//! What kernel TCP looks like from above, with everything that a program must bear and seldom
//! meets: short reads and writes at any byte, a buffer that is full, an end at any byte.
//!
//! Whoever drives it calls [`Pipe::advance`] with the time, reads what [`End::is_readable`] says,
//! and writes again when [`End::is_writable`] says, which the other end's reads change.
//!
//! Invariants: bytes arrive once, whole and in order up to a cut; the same seed and the same calls
//! give the same results.

use super::Config;
use dacapo_base::{Random, Time};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::time::Duration;

/// Which end of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The one that opened it.
    Dialer,
    /// The one that it was opened to.
    Listener,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Dialer => Self::Listener,
            Self::Listener => Self::Dialer,
        }
    }

    pub(super) fn index(self) -> usize {
        match self {
            Self::Dialer => 0,
            Self::Listener => 1,
        }
    }
}

/// A byte stream between two ends.
#[derive(Debug)]
pub struct Pipe {
    config: Config,
    random: Random,
    now: Time,
    /// By who writes.
    ways: [Way; 2],
}

/// One direction.
#[derive(Debug, Default)]
struct Way {
    /// Bytes that were written and not read.
    bytes: VecDeque<u8>,
    /// How many of them have arrived.
    arrived: usize,
    /// When how many of the others will.
    flights: VecDeque<(Time, usize)>,
    written: u64,
    /// When the writer's end of writing arrives.
    ended_at: Option<Time>,
    /// No byte from this one on gets through.
    cut_at: Option<u64>,
    /// What breaks the stream once its bytes are read.
    broken: Option<io::ErrorKind>,
}

impl Pipe {
    /// An open pipe at time zero.
    #[must_use]
    pub fn new(config: &Config, random: Random) -> Self {
        let config = Config { buffer_bytes: config.buffer_bytes.max(1), ..*config };
        Self { config, random, now: Time::ZERO, ways: Default::default() }
    }

    /// A pipe to where nobody listens: its ends say `ConnectionRefused`.
    #[must_use]
    pub fn refused(config: &Config) -> Self {
        let mut pipe = Self::new(config, Random::from_number(0));
        pipe.break_off(io::ErrorKind::ConnectionRefused);
        pipe
    }

    /// One of its ends, to read and write.
    pub fn end(&mut self, side: Side) -> End<'_> {
        End { pipe: self, side }
    }

    /// Moves the time on; what is due arrives.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        for way in &mut self.ways {
            while let Some(&(at, count)) = way.flights.front() {
                if at > self.now {
                    break;
                }
                way.flights.pop_front();
                way.arrived += count;
            }
        }
    }

    /// When something arrives next, at either end; `None` while nothing is on its way.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        let sides = [Side::Dialer, Side::Listener];
        sides.into_iter().filter_map(|side| self.next_arrival_at(side)).min()
    }

    /// When something arrives next at this end; `None` while nothing is on its way there.
    #[must_use]
    pub fn next_arrival_at(&self, side: Side) -> Option<Time> {
        let way = &self.ways[side.other().index()];
        let bytes = way.flights.front().map(|&(at, _)| at);
        bytes.into_iter().chain(way.ended_at.filter(|&at| at > self.now)).min()
    }

    /// How many bytes this end has written since the start.
    #[must_use]
    pub fn written(&self, side: Side) -> u64 {
        self.ways[side.index()].written
    }

    /// Cuts the pipe now: what is on its way is lost, and both ends say `ConnectionReset`.
    pub fn cut(&mut self) {
        self.break_off(io::ErrorKind::ConnectionReset);
    }

    /// Cuts the pipe when `side` has written its first `bytes` bytes, counted from the start. They
    /// still arrive; the other way is cut at that moment.
    pub fn cut_after(&mut self, side: Side, bytes: u64) {
        self.ways[side.index()].cut_at = Some(bytes);
        self.cut_where_due(side);
    }

    fn break_off(&mut self, kind: io::ErrorKind) {
        for way in &mut self.ways {
            way.lose(kind);
        }
    }

    fn cut_where_due(&mut self, side: Side) {
        let reset = io::ErrorKind::ConnectionReset;
        let way = &mut self.ways[side.index()];
        if way.cut_at.is_some_and(|at| way.written >= at) {
            way.broken.get_or_insert(reset);
            self.ways[side.other().index()].lose(reset);
        }
    }

    /// A random part of `count`, of any size from a byte to all of it.
    fn part_of(&mut self, count: usize) -> usize {
        if !self.config.is_split || count < 2 {
            return count;
        }
        let most = match self.random.below(8) {
            0 => 1,
            1 | 2 => count.min(16),
            3 | 4 => count,
            _ => return count,
        };
        1 + self.random.below(most as u64) as usize
    }

    fn write_from(&mut self, side: Side, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let way = &self.ways[side.index()];
        if let Some(kind) = way.broken {
            return Err(kind.into());
        }
        if way.ended_at.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let given: usize = parts.iter().map(|part| part.len()).sum();
        let room = self.config.buffer_bytes.saturating_sub(way.bytes.len());
        let left = way.cut_at.map_or(u64::MAX, |at| at - way.written);
        let most = given.min(room).min(usize::try_from(left).unwrap_or(usize::MAX));
        if most == 0 && given > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = self.part_of(most);
        let bytes = parts.iter().flat_map(|part| part.iter());
        self.ways[side.index()].bytes.extend(bytes.take(count));
        self.ways[side.index()].written += count as u64;
        self.send_off(side, count);
        self.cut_where_due(side);
        Ok(count)
    }

    /// Puts the bytes that were just written on their way, in pieces.
    fn send_off(&mut self, side: Side, mut count: usize) {
        while count > 0 {
            let piece = self.part_of(count);
            let at = self.arrival(side);
            self.ways[side.index()].flights.push_back((at, piece));
            count -= piece;
        }
        self.advance(self.now);
    }

    /// When something that is written now arrives: never before what was written earlier.
    fn arrival(&mut self, side: Side) -> Time {
        let jitter_ns = u64::try_from(self.config.jitter.as_nanos()).unwrap_or(u64::MAX);
        let jitter = Duration::from_nanos(self.random.below(jitter_ns.saturating_add(1)));
        let last = self.ways[side.index()].flights.back().map_or(Time::ZERO, |&(at, _)| at);
        last.max(self.now + self.config.delay + jitter)
    }

    fn read_to(&mut self, side: Side, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let way = &self.ways[side.other().index()];
        let room: usize = into.iter().map(|part| part.len()).sum();
        let most = way.arrived.min(room);
        if most == 0 && room > 0 {
            return way.nothing(self.now);
        }
        let count = self.part_of(most);
        let way = &mut self.ways[side.other().index()];
        way.arrived -= count;
        let bytes = way.bytes.drain(..count);
        into.iter_mut().flat_map(|part| part.iter_mut()).zip(bytes).for_each(|(to, it)| *to = it);
        Ok(count)
    }

    fn end_writing(&mut self, side: Side) {
        if self.ways[side.index()].ended_at.is_none() {
            let at = self.arrival(side);
            self.ways[side.index()].ended_at = Some(at);
        }
    }

    /// Closes an end: what it wrote still arrives, what is on its way to it is lost.
    fn close(&mut self, side: Side) {
        self.end_writing(side);
        self.ways[side.other().index()].lose(io::ErrorKind::ConnectionReset);
    }
}

impl Way {
    fn lose(&mut self, kind: io::ErrorKind) {
        self.bytes.clear();
        self.flights.clear();
        self.arrived = 0;
        self.broken.get_or_insert(kind);
    }

    /// What a read finds when nothing has arrived.
    fn nothing(&self, now: Time) -> io::Result<usize> {
        if !self.bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if let Some(kind) = self.broken {
            return Err(kind.into());
        }
        match self.ended_at {
            Some(at) if at <= now => Ok(0),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// One end of a pipe. Reading and writing never wait; what is not possible now is `WouldBlock`.
#[derive(Debug)]
pub struct End<'a> {
    pipe: &'a mut Pipe,
    side: Side,
}

impl End<'_> {
    /// True when reading makes progress: bytes, the end, or an error.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        let way = &self.pipe.ways[self.side.other().index()];
        way.arrived > 0 || !matches!(way.nothing(self.pipe.now), Err(error) if is_block(&error))
    }

    /// True when writing makes progress: room, or an error.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        let way = &self.pipe.ways[self.side.index()];
        let has_capacity = way.bytes.len() < self.pipe.config.buffer_bytes;
        has_capacity || way.broken.is_some() || way.ended_at.is_some()
    }

    /// Says that nothing more will be written; what was written still arrives.
    pub fn end_writing(&mut self) {
        self.pipe.end_writing(self.side);
    }

    /// Closes this end: what it wrote still arrives, what is on its way to it is lost, and the
    /// other end's writes say `ConnectionReset`.
    pub fn close(&mut self) {
        self.pipe.close(self.side);
    }
}

fn is_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

impl Read for End<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.pipe.read_to(self.side, into)
    }
}

impl Write for End<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.pipe.write_from(self.side, parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config {
            buffer_bytes: 1_000,
            delay: Duration::from_millis(5),
            jitter: Duration::from_millis(4),
            ..Config::default()
        }
    }

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|index| (index % 251) as u8).collect()
    }

    /// Reads what has arrived.
    fn read_all(end: &mut End<'_>, into: &mut Vec<u8>) -> io::Result<()> {
        let mut buffer = [0; 300];
        loop {
            match end.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => into.extend_from_slice(&buffer[..count]),
                Err(error) if is_block(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Carries `sent` across; returns what arrived and how often writing blocked.
    fn carry(pipe: &mut Pipe, sent: &[u8]) -> (Vec<u8>, usize) {
        let (mut at, mut blocked, mut got) = (0, 0, Vec::new());
        while got.len() < sent.len() {
            match pipe.end(Side::Dialer).write(&sent[at..]) {
                Ok(count) => at += count,
                Err(error) => {
                    assert!(is_block(&error));
                    blocked += 1;
                    let now = pipe.next_arrival().unwrap();
                    pipe.advance(now);
                    read_all(&mut pipe.end(Side::Listener), &mut got).unwrap();
                }
            }
            if at == sent.len() {
                let now = pipe.next_arrival().unwrap_or(Time::NEVER);
                pipe.advance(now);
                read_all(&mut pipe.end(Side::Listener), &mut got).unwrap();
            }
        }
        (got, blocked)
    }

    #[test]
    fn every_byte_arrives_once_and_in_order_through_a_small_buffer() {
        for seed in 0..50 {
            let mut pipe = Pipe::new(&config(), Random::from_number(seed));
            let sent = bytes(20_000);
            let (got, blocked) = carry(&mut pipe, &sent);
            assert!(got == sent, "seed {seed}");
            assert!(blocked > 0, "seed {seed}");
            assert_eq!(pipe.written(Side::Dialer), 20_000);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_pieces() {
        let run = || {
            let mut pipe = Pipe::new(&config(), Random::from_number(7));
            let counts: Vec<_> =
                (0..9).map(|_| pipe.end(Side::Dialer).write(&[1; 100]).unwrap()).collect();
            (counts, pipe.next_arrival())
        };
        assert_eq!(run(), run());
        assert!(run().0.iter().any(|&count| count < 100), "some writes are short");
    }

    #[test]
    fn nothing_arrives_before_its_time() {
        let mut pipe = Pipe::new(&config(), Random::from_number(3));
        pipe.end(Side::Dialer).write_all(b"later").unwrap();
        assert!(!pipe.end(Side::Listener).is_readable());
        let at = pipe.next_arrival().unwrap();
        assert!(at >= Time::from_millis(5) && at <= Time::from_millis(9));
        pipe.advance(at);
        assert!(pipe.end(Side::Listener).is_readable());
    }

    #[test]
    fn an_end_of_writing_arrives_after_the_bytes_and_the_other_way_stays_open() {
        let mut pipe = Pipe::new(&config(), Random::from_number(4));
        pipe.end(Side::Dialer).write_all(b"bye").unwrap();
        pipe.end(Side::Dialer).end_writing();
        pipe.advance(Time::from_millis(100));
        let mut got = Vec::new();
        read_all(&mut pipe.end(Side::Listener), &mut got).unwrap();
        assert_eq!(got, b"bye");
        assert_eq!(pipe.end(Side::Listener).read(&mut [0]).unwrap(), 0);
        pipe.end(Side::Listener).write_all(b"heard").unwrap();
        pipe.advance(Time::from_millis(200));
        let mut back = Vec::new();
        read_all(&mut pipe.end(Side::Dialer), &mut back).unwrap();
        assert_eq!(back, b"heard");
    }

    #[test]
    fn a_cut_at_any_byte_lets_exactly_the_bytes_before_it_through() {
        for at in 0..60 {
            let mut pipe = Pipe::new(&config(), Random::from_number(at));
            pipe.cut_after(Side::Dialer, at);
            let sent = bytes(60);
            let mut written = 0;
            let error = loop {
                match pipe.end(Side::Dialer).write(&sent[written..]) {
                    Ok(count) => written += count,
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            assert_eq!(written as u64, at);
            pipe.advance(Time::from_millis(1_000));
            let mut got = Vec::new();
            let error = read_all(&mut pipe.end(Side::Listener), &mut got).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            assert_eq!(got, sent[..written], "cut at {at}");
        }
    }

    #[test]
    fn a_closed_end_resets_the_other_and_lets_its_own_bytes_through() {
        let mut pipe = Pipe::new(&config(), Random::from_number(5));
        pipe.end(Side::Dialer).write_all(b"gone").unwrap();
        pipe.end(Side::Dialer).close();
        let error = pipe.end(Side::Listener).write(b"late").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        pipe.advance(Time::from_millis(100));
        let mut got = Vec::new();
        read_all(&mut pipe.end(Side::Listener), &mut got).unwrap();
        assert_eq!(got, b"gone");
    }

    #[test]
    fn where_nobody_listens_both_ends_are_refused() {
        let mut pipe = Pipe::refused(&config());
        for side in [Side::Dialer, Side::Listener] {
            let kind = pipe.end(side).write(b"?").unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::ConnectionRefused);
            let kind = pipe.end(side).read(&mut [0]).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::ConnectionRefused);
        }
    }
}
