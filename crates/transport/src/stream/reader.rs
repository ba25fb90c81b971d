//! [`Reader`]: the bytes of a stream become datagrams in packets of the pool.
//!
//! ```text
//!   header, 4 bytes      chunk: a body of the pool
//!   | length |        | datagram 0 | length | datagram 1 | length | part of 2 |
//!     one vectored read fills both     ^ views of the body, equal ones joined to a train
//!                                                                   ^ moved to a body of its own
//! ```
//!
//! The length before a chunk has a place of its own, so a datagram of the full size, which fills a
//! body, arrives in one read without being copied. Copied are: what is small, out of a body that is
//! much larger, and the part of a record at the end of a body whose other records are handed up.
//!
//! Decoder: any bytes end as datagrams, a wait for more, or [`Ending::RecordTooLong`].
//!
//! Invariants
//! - A body that was handed up is not written to while a view of it lives.
//! - Between two reads a body for a record that is not whole has at most eight times the bytes that
//!   have come, or the smallest size: a length alone gets no memory.
//! - Every call makes progress or says that there is none to make.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::{Ending, RECORD_LEN_MAX};
use dacapo_base::Time;
use dacapo_packet::{Packet, Pool, PoolFull, TRAIN_BYTES_MAX, TRAIN_SEGMENTS_MAX};
use std::io::{self, IoSliceMut, Read};

/// The sizes of bodies, as the pool has them: another size costs the next larger one.
const SIZES: [usize; 4] = [256, 2_048, 16_384, 65_536];

/// How many times the bytes that have come a body may have for bytes that have not.
const TRUST: usize = 8;

/// A chunk that is filled to less than this part moves into a smaller body.
const SPARSE: usize = 4;

/// What one read found.
#[derive(Debug)]
pub(super) enum Found {
    /// So many bytes; `is_all` when fewer came than there was room for.
    Bytes { len: usize, is_all: bool },
    /// Nothing is there now.
    Nothing,
    /// The pool has no room.
    PoolFull,
    /// The stream is over.
    Ended(Ending),
}

/// The way in of one end.
#[derive(Debug, Default)]
pub(super) struct Reader {
    header: Header,
    /// The length of the record whose header was taken.
    wanted: Option<usize>,
    chunk: Option<Chunk>,
    /// There may be a whole record in the chunk.
    unpolled: bool,
}

/// The length of the next record, as far as it has come.
#[derive(Debug, Default)]
struct Header {
    bytes: [u8; 4],
    received: usize,
}

impl Header {
    fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.received..).unwrap_or_default()
    }

    fn handle_received(&mut self, count: usize) {
        self.received = self.received.saturating_add(count).min(self.bytes.len());
    }

    /// Copies what it lacks from the front of `bytes`; returns how much that was.
    fn fill(&mut self, bytes: &[u8]) -> usize {
        let room = self.room();
        let count = room.len().min(bytes.len());
        room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        self.handle_received(count);
        count
    }

    /// The length, once; `None` while it is not whole.
    fn take(&mut self) -> Option<u32> {
        if self.received < self.bytes.len() {
            return None;
        }
        self.received = 0;
        Some(u32::from_be_bytes(self.bytes))
    }
}

/// A body of the pool and what of it is what.
#[derive(Debug)]
struct Chunk {
    body: Packet,
    size: usize,
    filled: usize,
    parsed: usize,
}

impl Chunk {
    /// An empty chunk of at least `size` bytes.
    fn new(size: usize, pool: &mut Pool) -> Result<Self, PoolFull> {
        let size = SIZES.into_iter().find(|&one| one >= size).ok_or(PoolFull)?;
        // What a pool gives as payload is a little less than its largest body; the rest is head.
        let head = size.saturating_sub(TRAIN_BYTES_MAX);
        let mut body = pool.alloc(head, size.saturating_sub(head), 0)?;
        if pool.push_head(&mut body, head).is_err() {
            pool.free(body);
            return Err(PoolFull);
        }
        Ok(Self { body, size, filled: 0, parsed: 0 })
    }

    /// An empty chunk, as large as the pool can give.
    fn largest(pool: &mut Pool) -> Result<Self, PoolFull> {
        let chunks = SIZES.into_iter().rev().map(|size| Self::new(size, pool));
        chunks.into_iter().find_map(Result::ok).ok_or(PoolFull)
    }

    /// How many bytes have come that are not handed up.
    fn unparsed_len(&self) -> usize {
        self.filled.saturating_sub(self.parsed)
    }

    fn unparsed<'a>(&self, pool: &'a Pool) -> &'a [u8] {
        pool.segment(&self.body, 0).get(self.parsed..self.filled).unwrap_or_default()
    }

    fn handle_parsed(&mut self, count: usize) {
        self.parsed = self.parsed.saturating_add(count).min(self.filled);
    }

    /// True when more can come here, because nobody who got a part of it has it any more.
    fn can_go_on(&self, pool: &Pool) -> bool {
        self.filled < self.size && pool.is_exclusive(&self.body)
    }

    /// A view of the next `len` bytes.
    fn view(&mut self, len: usize, pool: &mut Pool) -> Option<Packet> {
        let tail = self.size.checked_sub(self.parsed.checked_add(len)?)?;
        let mut view = pool.share(&mut self.body);
        let cut = pool.pull_head(&mut view, self.parsed).and(pool.pull_tail(&mut view, tail));
        if cut.is_err() {
            pool.free(view);
            return None;
        }
        Some(view)
    }

    /// Moves what is not handed up to the front of a body of at least `size` bytes.
    fn moved(self, size: usize, pool: &mut Pool) -> Result<Self, Self> {
        let len = self.unparsed_len();
        let Ok(mut to) = Self::new(size.max(len), pool) else {
            return Err(self);
        };
        let mut buffer = [0; 2_048];
        while to.filled < len {
            let from = self.unparsed(pool).get(to.filled..).unwrap_or_default();
            let count = from.len().min(buffer.len());
            buffer.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            let part = buffer.get(..count).unwrap_or_default();
            if count == 0 || pool.write_payload(&to.body, to.filled, part) < count {
                pool.free(to.body);
                return Err(self);
            }
            to.filled = to.filled.saturating_add(count);
        }
        pool.free(self.body);
        Ok(to)
    }
}

impl Reader {
    /// True while there may be a datagram to poll, without which nothing more is read.
    pub(super) fn is_unpolled(&self) -> bool {
        self.unpolled
    }

    /// Reads once.
    pub(super) fn read(&mut self, from: &mut impl Read, pool: &mut Pool) -> Found {
        let Ok(mut chunk) = self.take_chunk(pool) else {
            return Found::PoolFull;
        };
        let is_fresh = chunk.filled == 0;
        let header = if self.wanted.is_none() { self.header.room() } else { &mut [] };
        let Ok(body) = pool.segment_mut(&mut chunk.body, 0) else {
            self.chunk = Some(chunk);
            return Found::PoolFull;
        };
        let body = body.get_mut(chunk.filled..).unwrap_or_default();
        let (header_room, room) = (header.len(), header.len().saturating_add(body.len()));
        let found = read_some(from, header, body);
        let count = found.as_ref().map_or(0, |&count| count.min(room));
        self.header.handle_received(count.min(header_room));
        chunk.filled = chunk.filled.saturating_add(count.saturating_sub(header_room));
        if count == 0 && is_fresh {
            pool.free(chunk.body);
        } else {
            self.chunk = Some(if chunk.parsed == 0 { chunk.right_sized(pool) } else { chunk });
        }
        match found {
            Ok(0) => Found::Ended(self.ending()),
            Ok(_) => {
                self.unpolled = true;
                Found::Bytes { len: count, is_all: count < room }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Found::Nothing,
            Err(error) => Found::Ended(Ending::of(error)),
        }
    }

    /// Where the next bytes go.
    fn take_chunk(&mut self, pool: &mut Pool) -> Result<Chunk, PoolFull> {
        let Some(chunk) = self.chunk.take() else {
            return Chunk::largest(pool);
        };
        if chunk.can_go_on(pool) {
            return Ok(chunk);
        }
        // As large as the record may become for the time of the read; see what becomes of it there.
        chunk.moved(self.wanted.unwrap_or(RECORD_LEN_MAX), pool).map_err(|chunk| {
            self.chunk = Some(chunk);
            PoolFull
        })
    }

    /// The next datagram, or the next train of equal ones of which the last may be shorter.
    ///
    /// # Errors
    /// [`Ending::RecordTooLong`].
    pub(super) fn poll(&mut self, now: Time, pool: &mut Pool) -> Result<Option<Packet>, Ending> {
        let Some(len) = self.whole_record(pool)? else {
            self.unpolled = false;
            self.settle(pool);
            return Ok(None);
        };
        let Some(mut packet) = self.take_record(len, pool) else {
            return Ok(None);
        };
        while let Ok(Some(next_len)) = self.whole_record(pool) {
            if !suits(&packet, len, next_len) {
                break;
            }
            let Some(next) = self.take_record(next_len, pool) else { break };
            if let Err(stray) = pool.join(&mut packet, next) {
                // Out of reach: what suits lies one stride further in the same body.
                pool.free(stray);
                break;
            }
        }
        packet.set_unit_ends(true, true);
        packet.time = now;
        let is_done = self.chunk.as_ref().is_some_and(|chunk| chunk.unparsed_len() == 0);
        // A length of 0 that was looked at is an empty datagram for the next call.
        if is_done && self.wanted != Some(0) {
            self.unpolled = false;
            self.release(pool);
        }
        Ok(Some(packet))
    }

    /// The length of the next record when all of it is there.
    fn whole_record(&mut self, pool: &Pool) -> Result<Option<usize>, Ending> {
        let Some(chunk) = &mut self.chunk else {
            return Ok(None);
        };
        if self.wanted.is_none() {
            let count = self.header.fill(chunk.unparsed(pool));
            chunk.handle_parsed(count);
            self.wanted = self.header.take().map(|len| usize::try_from(len).unwrap_or(usize::MAX));
        }
        match self.wanted {
            Some(len) if len > RECORD_LEN_MAX => {
                Err(Ending::RecordTooLong { len: u32::try_from(len).unwrap_or(u32::MAX) })
            }
            wanted => Ok(wanted.filter(|&len| len <= chunk.unparsed_len())),
        }
    }

    fn take_record(&mut self, len: usize, pool: &mut Pool) -> Option<Packet> {
        let chunk = self.chunk.as_mut()?;
        let view = chunk.view(len, pool)?;
        chunk.handle_parsed(len);
        self.wanted = None;
        Some(view)
    }

    /// Lets go of the body when all of it is handed up, and takes the part of a record at its end
    /// out of it, so that those who got the rest have it for themselves.
    fn settle(&mut self, pool: &mut Pool) {
        let Some(chunk) = self.chunk.take() else { return };
        if chunk.unparsed_len() == 0 {
            pool.free(chunk.body);
        } else if chunk.parsed == 0 {
            self.chunk = Some(chunk);
        } else {
            // Much has come at once, so there is room for much again: not a read per record.
            let size = affordable(chunk.filled);
            // Without memory it stays where it is until there is some.
            self.chunk = Some(chunk.moved(size, pool).unwrap_or_else(|chunk| chunk));
        }
    }

    /// What an end of the stream means here.
    fn ending(&self) -> Ending {
        let received = self.chunk.as_ref().map_or(0, Chunk::unparsed_len);
        match self.wanted {
            None if self.header.received == 0 => Ending::Closed,
            len => Ending::WithinRecord { received, len },
        }
    }

    /// Gives back what is held of the pool.
    pub(super) fn release(&mut self, pool: &mut Pool) {
        if let Some(chunk) = self.chunk.take() {
            pool.free(chunk.body);
        }
    }
}

impl Chunk {
    /// Moves into a smaller body when this one is nearly empty, where the pool has one.
    fn right_sized(self, pool: &mut Pool) -> Self {
        if self.filled > self.size.checked_div(SPARSE).unwrap_or(0) {
            return self;
        }
        let filled = self.filled;
        if SIZES.into_iter().find(|&one| one >= filled).is_none_or(|size| size >= self.size) {
            return self;
        }
        self.moved(filled, pool).unwrap_or_else(|chunk| chunk)
    }
}

/// The largest size of a body when `received` bytes have come; 0 when any is too large.
fn affordable(received: usize) -> usize {
    let most = received.saturating_mul(TRUST);
    SIZES.into_iter().rev().find(|&size| size <= most).unwrap_or(0)
}

/// True when a datagram of `next_len` bytes can follow in a train of datagrams of `len` bytes.
fn suits(train: &Packet, len: usize, next_len: usize) -> bool {
    let count = train.segment_count();
    let bytes = train.payload_len().saturating_add(next_len);
    let is_full = train.segment_len(count.saturating_sub(1)) == len;
    (1..=len).contains(&next_len)
        && is_full
        && count < TRAIN_SEGMENTS_MAX
        && bytes <= TRAIN_BYTES_MAX
}

/// One read into both parts.
fn read_some(from: &mut impl Read, header: &mut [u8], body: &mut [u8]) -> io::Result<usize> {
    loop {
        let mut parts = [IoSliceMut::new(&mut *header), IoSliceMut::new(&mut *body)];
        match from.read_vectored(&mut parts) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
