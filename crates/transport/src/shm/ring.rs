//! [`Rings`]: two byte rings in memory that two processes write, as one of the two ends sees them.
//!
//! ```text
//!   | words of the dialer | words of the listener | ring to the listener | ring to the dialer |
//!   |      a page         |      a page           |      capacity        |      capacity      |
//!
//!   tail: bytes written so far, head: bytes read so far; neither is ever taken back
//!
//!        head         tail
//!   ......|===========|..........    tail - head bytes wait, capacity - (tail - head) have room
//! ```
//!
//! Each end writes the words of its own page and no others: the tail of the ring that it fills, the
//! head of the ring that it empties, and what it waits for. What it wrote itself it never reads
//! from there.
//!
//! **Who sleeps is woken.** An end that finds nothing to read, or no room, says in a word that it
//! waits, *then* looks once more, and only then sleeps. The other end moves its tail or head,
//! *then* looks at that word. Each puts a sequentially consistent fence between its store and its
//! load, so of the two loads at least one sees the other end's store (without the fences each could
//! still be in its processor's store buffer): either who was to sleep finds what it waits for, or
//! the other end finds it waiting and wakes it. The word is a number that is new and odd for each
//! sleep, and who wakes remembers for which it did: nobody is woken twice for one sleep, and nobody
//! writes the other's word.
//!
//! Room is told late: a writer that waits is woken when half of the ring is free, so that it does
//! not run once for every byte that is read.
//!
//! Decoder: whatever the other end writes into the memory, whenever it does, each word of it is
//! loaded once, checked, and used from private memory. What cannot be is [`Broken`]; anything else
//! are some bytes. No loop is longer than the bytes that were asked for.
//!
//! Source: design D14; L. Lamport: Specifying Concurrent Program Modules, 1983 (one reader, one
//! writer); E. W. Dijkstra: Cooperating sequential processes, 1965 (store, then look).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::fmt;
use std::io::{IoSlice, IoSliceMut};

/// The fewest bytes of a ring.
pub const CAPACITY_MIN: usize = 4_096;

/// The most bytes of a ring: what a peer can make us map is twice as much, and the pages of words.
pub const CAPACITY_MAX: usize = 1 << 20;

/// The bytes of a page of words.
const PAGE_LEN: usize = 4_096;

/// Two lines of a cache apart, because processors fetch them in pairs.
const WORD_STEP: usize = 128;

/// Memory that another process writes, too. Offsets are in bytes; those of words are multiples of
/// 8.
pub trait Memory {
    /// A word; what the other end wrote before it is seen after it (acquire).
    fn load(&self, at: usize) -> u64;

    /// Sets a word; who sees it sees what was written before it (release).
    fn store(&self, at: usize, word: u64);

    /// What was stored before is seen by all before anything is loaded after (sequentially
    /// consistent).
    fn fence(&self);

    /// Copies bytes in.
    fn copy_in(&self, at: usize, bytes: &[u8]);

    /// Copies bytes out, as they are at some moment.
    fn copy_out(&self, at: usize, into: &mut [u8]);
}

/// The bytes of the memory for two rings of `capacity` bytes.
#[must_use]
pub fn memory_len(capacity: usize) -> usize {
    capacity.saturating_add(PAGE_LEN).saturating_mul(2)
}

/// The bytes of each ring in a memory of so many bytes; `None` when that is not a power of two
/// from [`CAPACITY_MIN`] to [`CAPACITY_MAX`].
#[must_use]
pub fn capacity_of(memory_len: usize) -> Option<usize> {
    let rings = memory_len.checked_sub(memory_len_of_words())?;
    let capacity = rings.checked_div(2).filter(|_| rings.is_multiple_of(2))?;
    let fits = capacity.is_power_of_two() && (CAPACITY_MIN..=CAPACITY_MAX).contains(&capacity);
    fits.then_some(capacity)
}

fn memory_len_of_words() -> usize {
    PAGE_LEN.saturating_mul(2)
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one that made the memory.
    Dialer,
    /// The one that was given it.
    Listener,
}

impl End {
    fn other(self) -> Self {
        match self {
            Self::Dialer => Self::Listener,
            Self::Listener => Self::Dialer,
        }
    }
}

/// What an end says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Bytes written to the other end so far.
    Tail,
    /// Bytes read from the other end so far.
    Head,
    /// Odd: it sleeps until there is something to read. Another number for each sleep.
    WaitsForData,
    /// The same, until there is room.
    WaitsForRoom,
    /// Not 0: it will write no more.
    Closed,
}

impl Word {
    /// Where the word of an end is.
    fn at(self, end: End) -> usize {
        let index: usize = match self {
            Self::Tail => 0,
            Self::Head => 1,
            Self::WaitsForData => 2,
            Self::WaitsForRoom => 3,
            Self::Closed => 4,
        };
        let page = match end {
            End::Dialer => 0,
            End::Listener => PAGE_LEN,
        };
        index.saturating_mul(WORD_STEP).saturating_add(page)
    }
}

/// The other end wrote what no correct one writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the remote wrote a place into the shared memory that cannot be")
    }
}

impl std::error::Error for Broken {}

/// What a call moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes.
    pub len: usize,
    /// The other end sleeps and now has what it waits for: wake it.
    pub wakes: bool,
}

/// One end's sleep: what it says of it, and no more.
#[derive(Debug, Default)]
struct Sleep(u64);

impl Sleep {
    /// The number of a new sleep.
    fn begin(&mut self) -> u64 {
        let step = if self.is_on() { 2 } else { 1 };
        self.0 = self.0.wrapping_add(step);
        self.0
    }

    fn is_on(&self) -> bool {
        self.0 & 1 == 1
    }

    fn end(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        self.0
    }
}

/// Both rings, as one end sees them.
#[derive(Debug)]
pub struct Rings<M> {
    memory: M,
    end: End,
    /// Bytes of a ring; a power of two.
    capacity: u64,
    /// Bytes written, and of those, how many the other end had read at the last look.
    tail: u64,
    tail_read: u64,
    /// Bytes read.
    head: u64,
    data_sleep: Sleep,
    room_sleep: Sleep,
    /// The sleeps of the other end from which it was woken last.
    data_woken: u64,
    room_woken: u64,
}

impl<M: Memory> Rings<M> {
    /// The rings in `memory`, of which each has `capacity` bytes; see [`capacity_of`]. Nothing was
    /// written or read yet, whatever stands in the memory. This end waits for the first byte.
    #[must_use]
    pub fn new(memory: M, end: End, capacity: usize) -> Self {
        let mut rings = Self {
            memory,
            end,
            capacity: capacity as u64,
            tail: 0,
            tail_read: 0,
            head: 0,
            data_sleep: Sleep::default(),
            room_sleep: Sleep::default(),
            data_woken: 0,
            room_woken: 0,
        };
        rings.await_data();
        rings
    }

    /// Writes what there is room for, from the front. When that is not all, this end is noted as
    /// waiting for room; call again when [`Rings::has_capacity`].
    ///
    /// # Errors
    /// [`Broken`]; nothing more can be written.
    pub fn write(&mut self, parts: &[IoSlice<'_>]) -> Result<Moved, Broken> {
        let wanted = parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len()));
        let mut len = self.put(parts, 0)?;
        // Each further round writes half a ring or all that is left; who takes its word back
        // meanwhile gets no further one.
        while len < wanted {
            self.say(Word::WaitsForRoom);
            if !self.room_is_half()? {
                break;
            }
            let more = self.put(parts, len)?;
            if more == 0 {
                break;
            }
            len = len.saturating_add(more);
        }
        if len == wanted && self.room_sleep.is_on() {
            let word = self.room_sleep.end();
            self.store(Word::WaitsForRoom, word);
        }
        Ok(Moved { len, wakes: len > 0 && self.wakes_reader() })
    }

    /// Reads what there is into the parts, in order. Nothing is an answer, too.
    ///
    /// # Errors
    /// [`Broken`]; nothing more can be read.
    pub fn read(&mut self, parts: &mut [IoSliceMut<'_>]) -> Result<Moved, Broken> {
        let mut waiting = self.waiting()?;
        let mut len: usize = 0;
        for part in parts {
            let count = part.len().min(waiting);
            let Some(into) = part.get_mut(..count) else { break };
            self.copy_out(self.head, into);
            self.head = self.head.wrapping_add(count as u64);
            waiting = waiting.saturating_sub(count);
            len = len.saturating_add(count);
        }
        if len == 0 {
            return Ok(Moved::default());
        }
        self.store(Word::Head, self.head);
        if self.data_sleep.is_on() {
            let word = self.data_sleep.end();
            self.store(Word::WaitsForData, word);
        }
        Ok(Moved { len, wakes: self.wakes_writer()? })
    }

    /// Notes that this end waits for something to read. Read once more afterwards, then sleep.
    pub fn await_data(&mut self) {
        self.say(Word::WaitsForData);
    }

    /// True when half of the ring has room, or the other end wrote what cannot be: then the next
    /// write tells.
    #[must_use]
    pub fn has_capacity(&self) -> bool {
        self.used(self.load(Word::Head)).is_none_or(|used| self.is_half_free(used))
    }

    /// Nothing more will be written by this end. Wake the other one.
    pub fn close(&mut self) {
        self.store(Word::Closed, 1);
    }

    /// The other end will write no more than can be read from now on.
    #[must_use]
    pub fn is_closed_there(&self) -> bool {
        self.load(Word::Closed) != 0
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Says that this end sleeps from now on. What it looks at next is as new as that.
    fn say(&mut self, word: Word) {
        let sleep = match word {
            Word::WaitsForRoom => &mut self.room_sleep,
            _ => &mut self.data_sleep,
        };
        let number = sleep.begin();
        self.store(word, number);
        self.memory.fence();
    }

    /// Whether the other end sleeps until there is something to read, which there is now.
    fn wakes_reader(&mut self) -> bool {
        self.memory.fence();
        let sleep = self.load(Word::WaitsForData);
        let wakes = sleep & 1 == 1 && sleep != self.data_woken;
        if wakes {
            self.data_woken = sleep;
        }
        wakes
    }

    /// Whether the other end sleeps until there is room, and there is.
    fn wakes_writer(&mut self) -> Result<bool, Broken> {
        self.memory.fence();
        let sleep = self.load(Word::WaitsForRoom);
        if sleep & 1 == 0 || sleep == self.room_woken {
            return Ok(false);
        }
        // Looked at after it slept, so that this is where its tail stays.
        let waiting = self.waiting()? as u64;
        let wakes = self.is_half_free(waiting);
        if wakes {
            self.room_woken = sleep;
        }
        Ok(wakes)
    }

    /// Copies what there is room for, of what is behind the first `skip` bytes.
    fn put(&mut self, parts: &[IoSlice<'_>], mut skip: usize) -> Result<usize, Broken> {
        let mut room = self.room(parts, skip)?;
        let mut len: usize = 0;
        for part in parts {
            let passed = skip.min(part.len());
            skip = skip.saturating_sub(passed);
            let rest = part.get(passed..).unwrap_or_default();
            let bytes = rest.get(..room.min(rest.len())).unwrap_or_default();
            self.copy_in(self.tail, bytes);
            self.tail = self.tail.wrapping_add(bytes.len() as u64);
            room = room.saturating_sub(bytes.len());
            len = len.saturating_add(bytes.len());
            if room == 0 {
                break;
            }
        }
        if len > 0 {
            self.store(Word::Tail, self.tail);
        }
        Ok(len)
    }

    /// How many bytes have room. The other end's word is looked at only when what was known of it
    /// is not enough for all of the parts.
    fn room(&mut self, parts: &[IoSlice<'_>], skip: usize) -> Result<usize, Broken> {
        let wanted = parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len()));
        let wanted = wanted.saturating_sub(skip) as u64;
        let known = self.used(self.tail_read).ok_or(Broken)?;
        let mut used = known;
        if self.capacity.saturating_sub(known) < wanted {
            let read = self.load(Word::Head);
            used = self.used(read).ok_or(Broken)?;
            self.tail_read = read;
        }
        Ok(usize::try_from(self.capacity.saturating_sub(used)).unwrap_or(0))
    }

    fn room_is_half(&mut self) -> Result<bool, Broken> {
        let read = self.load(Word::Head);
        let used = self.used(read).ok_or(Broken)?;
        self.tail_read = read;
        Ok(self.is_half_free(used))
    }

    /// How many bytes wait in the ring that this end fills, when the other has read so many.
    fn used(&self, read: u64) -> Option<u64> {
        Some(self.tail.wrapping_sub(read)).filter(|used| *used <= self.capacity)
    }

    fn is_half_free(&self, used: u64) -> bool {
        used <= self.capacity >> 1
    }

    /// How many bytes wait to be read.
    fn waiting(&self) -> Result<usize, Broken> {
        let waiting = self.load(Word::Tail).wrapping_sub(self.head);
        let waiting = Some(waiting).filter(|waiting| *waiting <= self.capacity).ok_or(Broken)?;
        usize::try_from(waiting).map_err(|_| Broken)
    }

    /// A word of the other end, as it is now.
    fn load(&self, word: Word) -> u64 {
        self.memory.load(word.at(self.end.other()))
    }

    fn store(&self, word: Word, value: u64) {
        self.memory.store(word.at(self.end), value);
    }

    /// Where in the memory a place of the ring that `filler` fills is, and how many bytes lie
    /// behind it before the ring begins anew.
    fn place(&self, filler: End, at: u64) -> (usize, usize) {
        let within = at & self.capacity.wrapping_sub(1);
        let base = match filler {
            End::Dialer => 0,
            End::Listener => self.capacity,
        };
        let offset = base.saturating_add(within).saturating_add(memory_len_of_words() as u64);
        let behind = self.capacity.saturating_sub(within);
        (usize::try_from(offset).unwrap_or(0), usize::try_from(behind).unwrap_or(0))
    }

    /// At most a ring of bytes.
    fn copy_in(&self, at: u64, bytes: &[u8]) {
        let (offset, behind) = self.place(self.end, at);
        let (first, rest) = bytes.split_at_checked(behind).unwrap_or((bytes, &[]));
        self.memory.copy_in(offset, first);
        if !rest.is_empty() {
            self.memory.copy_in(self.place(self.end, 0).0, rest);
        }
    }

    /// At most a ring of bytes.
    fn copy_out(&self, at: u64, into: &mut [u8]) {
        let (offset, behind) = self.place(self.end.other(), at);
        let (first, rest) = into.split_at_mut(behind.min(into.len()));
        self.memory.copy_out(offset, first);
        if !rest.is_empty() {
            self.memory.copy_out(self.place(self.end.other(), 0).0, rest);
        }
    }
}
