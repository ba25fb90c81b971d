//! The engine of streams, tried with every split of its bytes, with junk, and with streams that
//! take little: nothing here is a socket.

mod hostile;
mod preface;
mod records;
mod writing;

use super::{Ending, ReadOutcome, StreamEnd, Token};
use dacapo_base::{Random, Time};
use dacapo_packet::Pool;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};

const TOKEN: Token = *b"sixteen bytes!!!";

/// What comes from the other side, in pieces: a read gets at most one, and between two pieces there
/// is nothing once.
#[derive(Default)]
struct Pieces {
    pieces: VecDeque<Vec<u8>>,
    is_pause: bool,
    is_ended: bool,
}

impl Pieces {
    fn of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
        Self { pieces: pieces.map(<[u8]>::to_vec).collect(), is_pause: false, is_ended: true }
    }

    /// Cuts `bytes` at random.
    fn random(bytes: &[u8], random: &mut Random) -> Self {
        let mut rest = bytes;
        let mut all = Vec::new();
        while !rest.is_empty() {
            let most = [1, 5, 300, 5_000, rest.len()][random.below(5) as usize].min(rest.len());
            let (piece, after) = rest.split_at(1 + random.below(most as u64) as usize);
            all.push(piece);
            rest = after;
        }
        Self::of(all)
    }
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if std::mem::take(&mut self.is_pause) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Some(piece) = self.pieces.front_mut() else {
            let end = if self.is_ended { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
            return end;
        };
        let room: usize = into.iter().map(|part| part.len()).sum();
        assert!(room > 0, "a read without room says nothing");
        let taken: Vec<u8> = piece.drain(..room.min(piece.len())).collect();
        if piece.is_empty() {
            self.pieces.pop_front();
            self.is_pause = true;
        }
        into.iter_mut().flat_map(|part| part.iter_mut()).zip(&taken).for_each(|(to, it)| *to = *it);
        Ok(taken.len())
    }
}

/// Takes at most so many bytes, then nothing until there is more room.
#[derive(Default)]
struct Narrow {
    bytes: Vec<u8>,
    room: usize,
}

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let before = self.bytes.len();
        let bytes = parts.iter().flat_map(|part| part.iter()).take(self.room);
        self.bytes.extend(bytes);
        let count = self.bytes.len() - before;
        self.room -= count;
        if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn datagrams(lens: &[usize], seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random::from_number(seed);
    let fill = |&len: &usize| {
        let mut bytes = vec![0; len];
        random.fill(&mut bytes);
        bytes
    };
    lens.iter().map(fill).collect()
}

/// The records of these datagrams.
fn records(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let record = |one: &Vec<u8>| [&(one.len() as u32).to_be_bytes(), one.as_slice()].concat();
    datagrams.iter().flat_map(record).collect()
}

/// A listener's end that is open.
fn open_end(pool: &mut Pool) -> StreamEnd {
    let mut end = StreamEnd::listener();
    let preface = [super::MAGIC.as_slice(), &TOKEN].concat();
    let outcome = end.read(&mut Pieces::of([preface.as_slice()]), pool);
    assert!(matches!(outcome, ReadOutcome::Claim(TOKEN)), "{outcome:?}");
    end.accept();
    end.flush(&mut Narrow { room: 8, ..Narrow::default() }).unwrap();
    end
}

/// What an end made of what came.
#[derive(Default)]
struct Got {
    datagrams: Vec<Vec<u8>>,
    packets: usize,
}

/// Polls all there is.
fn poll(end: &mut StreamEnd, pool: &mut Pool, got: &mut Got) -> Result<(), Ending> {
    let now = Time::from_millis(7);
    while let Some(packet) = end.poll_datagram(now, pool)? {
        assert_eq!(packet.time, now);
        assert!(packet.is_unit_first() && packet.is_unit_last());
        got.packets += 1;
        for index in 0..packet.segment_count() {
            got.datagrams.push(pool.segment(&packet, index).to_vec());
        }
        pool.free(packet);
    }
    Ok(())
}

/// Reads to the end of the stream; calls `check` after every read.
fn read_all(
    end: &mut StreamEnd,
    from: &mut impl Read,
    pool: &mut Pool,
    mut check: impl FnMut(&Pool, &Got),
) -> (Got, Ending) {
    let mut got = Got::default();
    let mut idle = 0;
    loop {
        match end.read(from, pool) {
            ReadOutcome::Bytes { .. } => idle = 0,
            ReadOutcome::Nothing => idle += 1,
            ReadOutcome::Ended(ending) => return (got, ending),
            other => panic!("{other:?}"),
        }
        assert!(idle < 3, "no progress");
        if let Err(ending) = poll(end, pool, &mut got) {
            return (got, ending);
        }
        check(pool, &got);
    }
}
