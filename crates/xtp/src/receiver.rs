//! [`Receiver`]: the half of a context that takes the peer's stream.
//!
//! ```text
//!        read_at          rseq                                  alloc
//!   -------|===============|----[====]------[==]-----------------|---->  numbers of bytes
//!    read  | ready, in order | gap, held apart: `spans`          | not taken
//!          | holes: lengths that NOERR has given up
//! ```
//!
//! Invariants: at most `capacity` bytes are kept, which grows while it holds the peer up and
//! nothing lacks, at most as far as [`Growth`] lets it; when it shrinks, as many as the peer was
//! told of before, until it has sent them. In memory those apart take a quarter more
//! at most, and those in order what [`Ring`] says, at most twice their number. Of pieces apart
//! there are at most [`PIECES_MIN`], or one for each KiB of `capacity` up to [`PIECES_MAX`]; of
//! tags as many as take as much, of ends of messages one for each byte; a packet that would bring
//! one more is not taken, and comes again when the user has read. `rseq` and `alloc` never go
//! down; every byte is given to the user once, in order, or is part of a hole whose length the
//! user is told.

use crate::arrival::{Arrival, Outcome, Read};
use crate::growth::Growth;
use crate::ring::Ring;
use crate::wire::{Span, TAG_LEN};
use dacapo_base::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most pieces that wait behind gaps, of a small and of a large capacity: at 30 % loss there is
/// a gap for each 5 packets.
const PIECES_MIN: usize = 1_024;
const PIECES_MAX: usize = 8_192;
/// A piece that has so many bytes is not made longer: it may be moved when it grows.
const PIECE_LEN_MAX: usize = 64 << 10;

/// The half of a context that takes the peer's stream.
#[derive(Debug)]
pub struct Receiver {
    rseq: u64,
    read_at: u64,
    /// One past the highest byte that has come.
    highest: u64,
    ready: Ring,
    holes: VecDeque<Span>,
    held: BTreeMap<u64, Vec<u8>>,
    held_len: usize,
    ends: BTreeSet<u64>,
    tags: BTreeMap<u64, [u8; 8]>,
    capacity: usize,
    /// Where it may keep more than at first.
    growth: Option<Box<Growth>>,
    alloc: u64,
    told: u64,
    /// With reservation: one past the last byte for which the user has posted room.
    posted: Option<u64>,
    end: Option<u64>,
    is_selective: bool,
    is_gap_reported: bool,
    is_stopped: bool,
}

impl Receiver {
    /// Takes a stream whose first byte has the number `start`.
    #[must_use]
    pub fn new(start: u64, capacity: usize, is_selective: bool, is_reserved: bool) -> Self {
        let alloc = if is_reserved { start } else { start.saturating_add(capacity as u64) };
        Self {
            rseq: start,
            read_at: start,
            highest: start,
            ready: Ring::default(),
            holes: VecDeque::new(),
            held: BTreeMap::new(),
            held_len: 0,
            ends: BTreeSet::new(),
            tags: BTreeMap::new(),
            capacity,
            growth: None,
            alloc,
            told: alloc,
            posted: is_reserved.then_some(start),
            end: None,
            is_selective,
            is_gap_reported: false,
            is_stopped: false,
        }
    }

    /// It may keep up to so many bytes, once fewer hold the peer up.
    #[must_use]
    pub fn growing_to(self, capacity_max: usize) -> Self {
        let may_grow = capacity_max > self.capacity;
        Self {
            growth: may_grow.then(|| Box::new(Growth::new(self.capacity, capacity_max))),
            ..self
        }
    }

    /// Keeps more or less than now, where the peer has used all of the window. What all together
    /// may keep more is `left`, and changes by as much.
    pub fn adjust(&mut self, now: Time, left: &mut usize) {
        let kept_max = self.kept_max();
        let Some(growth) = &mut self.growth else { return };
        growth.take(kept_max, left);
        let capacity = growth.adjust(now, self.rseq, self.capacity, *left);
        if capacity == self.capacity {
            return;
        }
        self.capacity = capacity;
        self.widen();
        let kept_max = self.kept_max();
        self.growth.iter_mut().for_each(|growth| growth.take(kept_max, left));
    }

    /// How many bytes there may be at most, with those that the peer may send already.
    fn kept_max(&self) -> usize {
        let told = self.alloc.saturating_sub(self.read_at);
        usize::try_from(told).unwrap_or(usize::MAX).max(self.capacity)
    }

    /// How many bytes it takes of what all together may keep.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.growth.as_ref().map_or(self.capacity, |it| it.taken())
    }

    /// How many bytes may be kept once it has grown.
    #[must_use]
    pub fn capacity_max(&self) -> usize {
        self.growth.as_ref().map_or(self.capacity, |it| it.width_max())
    }

    /// How many bytes are kept at most.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Begins anew with another first byte, before anything has come.
    pub fn restart(&mut self, start: u64) {
        let posted = self.posted.map(|posted| posted.saturating_sub(self.read_at));
        let (is_stopped, capacity_max) = (self.is_stopped, self.capacity_max());
        *self = Self::new(start, self.capacity, self.is_selective, posted.is_some())
            .growing_to(capacity_max);
        self.is_stopped = is_stopped;
        self.post(posted.and_then(|len| usize::try_from(len).ok()).unwrap_or(0));
    }

    /// One past the last byte that is taken.
    #[must_use]
    pub const fn alloc(&self) -> u64 {
        self.alloc
    }

    /// The first byte that has not come in order.
    #[must_use]
    pub const fn rseq(&self) -> u64 {
        self.rseq
    }

    /// One past the last byte that is taken, as it is said to the peer from now on.
    pub fn tell_alloc(&mut self) -> u64 {
        if let Some(growth) = self.growth.as_mut().filter(|_| self.alloc > self.told) {
            growth.handle_told(self.alloc, self.capacity);
        }
        self.told = self.alloc;
        self.alloc
    }

    /// Whether the window that the peer knows is less than half of what it could be, and what it
    /// still has to send goes beyond: with NOFLOW the end of the stream comes before what lacks.
    #[must_use]
    pub fn has_news_of_window(&self) -> bool {
        let half = (self.capacity / 2) as u64;
        self.end.is_none_or(|end| end > self.told)
            && self.told.saturating_sub(self.rseq) < half
            && self.alloc.saturating_sub(self.told) >= half
    }

    /// Whether everything up to `place` is with the user.
    #[must_use]
    pub const fn is_delivered(&self, place: u64) -> bool {
        self.read_at >= place || self.is_stopped && self.rseq >= place
    }

    /// Whether the peer's stream has come to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.end == Some(self.rseq) || self.is_stopped && self.end.is_some()
    }

    /// Whether the user reads no more.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Whether bytes lack below those that have come.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.highest > self.rseq && !self.is_stopped || self.is_gap_reported
    }

    /// What has come beyond the first gap.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for (&left, piece) in &self.held {
            let right = left.saturating_add(piece.len() as u64);
            match spans.last_mut() {
                Some(last) if last.right == left => last.right = right,
                _ => spans.push(Span { left, right }),
            }
        }
        spans
    }

    /// The user reads no more: what is there is dropped, and what comes too.
    pub fn stop(&mut self) {
        self.is_stopped = true;
        self.forget();
    }

    /// Gives back all memory.
    pub fn forget(&mut self) {
        self.ready = Ring::default();
        self.holes.clear();
        self.held.clear();
        self.held_len = 0;
        self.ends.clear();
        self.tags.clear();
        self.read_at = self.rseq;
    }

    /// The user has room for `len` bytes more (reservation).
    pub fn post(&mut self, len: usize) {
        self.posted = self.posted.map(|posted| posted.saturating_add(len as u64));
        self.widen();
    }

    /// The peer says that its stream ends at `end`; false when it has said otherwise, or has sent
    /// bytes beyond it.
    pub fn set_end(&mut self, end: u64) -> bool {
        match self.end {
            Some(known) => known == end,
            None if end < self.highest => false,
            None => {
                self.end = Some(end);
                self.highest = end;
                true
            }
        }
    }

    /// Takes the data of a packet.
    pub fn accept(&mut self, arrival: &Arrival<'_>) -> Outcome {
        let Arrival { seq, data, tag, is_end, is_lossy, .. } = *arrival;
        let right = seq.saturating_add(data.len() as u64);
        let mut outcome = Outcome::default();
        if self.end.is_some_and(|end| right > end) {
            outcome.is_violation = true;
            return outcome;
        }
        if !self.has_capacity(arrival, right) || !self.has_mark_capacity(arrival, right) {
            outcome.is_refused = true;
            return outcome;
        }
        let (rseq, readable) = (self.rseq, self.is_readable());
        if seq > self.rseq && !self.is_selective && !is_lossy {
            outcome.is_gap_new = !std::mem::replace(&mut self.is_gap_reported, true);
            return outcome;
        }
        outcome.is_gap_new = seq > self.highest && !is_lossy;
        if !self.hold(seq, data) {
            return outcome;
        }
        self.mark(seq, right, tag, is_end);
        self.highest = self.highest.max(right);
        self.advance();
        if let Some(growth) = &mut self.growth {
            let is_read = self.ready.len() <= self.capacity / 4 && self.posted.is_none();
            growth.handle_end(right, self.highest > self.rseq, is_read);
        }
        if is_lossy {
            self.skip_to(right);
        }
        self.is_gap_reported &= self.rseq == rseq;
        outcome.is_readable = self.is_readable() && !readable || self.rseq > rseq;
        outcome
    }

    /// Of what heeds no window and is repaired as much is taken as fits behind what is read: more,
    /// kept behind a gap, would take the room of what fills it. Holes of what is not repaired take
    /// none.
    fn has_capacity(&self, arrival: &Arrival<'_>, right: u64) -> bool {
        if !arrival.is_unbounded {
            return right <= self.alloc;
        }
        if !arrival.is_lossy {
            return right <= self.read_at.saturating_add(self.capacity as u64);
        }
        let kept = self.ready.len().saturating_add(self.held_len);
        kept.saturating_add(arrival.data.len()) <= self.capacity
    }

    /// Whether the marks of a packet can be noted. Tags behind a gap take half of the room, so that
    /// what fills the gap can have its own.
    fn has_mark_capacity(&self, arrival: &Arrival<'_>, right: u64) -> bool {
        let Arrival { seq, tag, is_end, .. } = *arrival;
        let tags_max = (self.capacity / TAG_LEN).max(PIECES_MIN);
        let tags_max = if seq > self.rseq { tags_max / 2 } else { tags_max };
        let is_begin = tag.is_some() && self.may_begin(seq, right) && !self.tags.contains_key(&seq);
        let is_end = is_end && right > self.read_at && !self.ends.contains(&right);
        let lacks_capacity =
            is_begin && self.tags.len() >= tags_max || is_end && self.ends.len() >= self.capacity;
        self.is_stopped || !lacks_capacity
    }

    /// Whether the user can still be told that a message begins with the first byte.
    const fn may_begin(&self, seq: u64, right: u64) -> bool {
        seq >= self.read_at && right > seq
    }

    fn is_readable(&self) -> bool {
        self.read_at < self.rseq || !self.ends.is_empty()
    }

    /// Notes where messages begin and end, of what is kept.
    fn mark(&mut self, seq: u64, right: u64, tag: Option<[u8; 8]>, is_end: bool) {
        if self.is_stopped {
            return;
        }
        // Of an empty packet only when all before it is here: else marks without bytes pile up.
        let is_kept = right > seq || right <= self.rseq;
        if is_end && is_kept && right > self.read_at {
            self.ends.insert(right);
        }
        if let Some(tag) = tag.filter(|_| self.may_begin(seq, right)) {
            self.tags.insert(seq, tag);
        }
    }

    /// An empty message, which only the packet that opens an association can carry safely.
    pub fn mark_empty(&mut self, tag: Option<[u8; 8]>) {
        self.ends.insert(self.read_at);
        if let Some(tag) = tag {
            self.tags.insert(self.read_at, tag);
        }
    }

    /// Keeps what is new of `data`; false when there are too many pieces already.
    fn hold(&mut self, seq: u64, data: &[u8]) -> bool {
        let mut at = seq.max(self.rseq);
        let end = seq.saturating_add(data.len() as u64);
        while at < end {
            let before = self.held.range(..=at).next_back();
            let covered =
                before.map_or(at, |(left, piece)| left.saturating_add(piece.len() as u64));
            if covered > at {
                at = covered;
                continue;
            }
            let next = self.held.range(at..).next().map_or(end, |(left, _)| *left).min(end);
            let (from, to) = (at.saturating_sub(seq) as usize, next.saturating_sub(seq) as usize);
            let piece = data.get(from..to).unwrap_or_default();
            if at == self.rseq {
                self.append(piece);
            } else if !self.hold_apart(at, piece) {
                return false;
            }
            at = next;
        }
        true
    }

    /// Keeps a piece behind a gap, with the one that ends where it begins; false when there are too
    /// many.
    fn hold_apart(&mut self, at: u64, piece: &[u8]) -> bool {
        let ends_here = |(left, before): &(&u64, &mut Vec<u8>)| {
            left.saturating_add(before.len() as u64) == at && before.len() < PIECE_LEN_MAX
        };
        let count = self.held.len();
        match self.held.range_mut(..at).next_back().filter(ends_here) {
            Some((_, before)) => extend_tightly(before, piece),
            None if count >= (self.capacity >> 10).clamp(PIECES_MIN, PIECES_MAX) => return false,
            None => {
                self.held.insert(at, piece.to_vec());
            }
        }
        self.held_len = self.held_len.saturating_add(piece.len());
        true
    }

    fn append(&mut self, piece: &[u8]) {
        if !self.is_stopped {
            self.ready.push(piece);
        }
        self.rseq = self.rseq.saturating_add(piece.len() as u64);
        if self.is_stopped {
            self.read_at = self.rseq;
            self.widen();
        }
    }

    /// What was held and is in order now.
    fn advance(&mut self) {
        while let Some(entry) = self.held.first_entry() {
            if *entry.key() != self.rseq {
                break;
            }
            let piece = entry.remove();
            self.held_len = self.held_len.saturating_sub(piece.len());
            self.append(&piece);
        }
    }

    /// Gives up what lacks below `place`.
    pub fn skip_to(&mut self, place: u64) {
        let place = self.end.map_or(place, |end| place.min(end));
        while self.rseq < place {
            let next = self.held.keys().next().map_or(place, |left| (*left).min(place));
            let hole = Span { left: self.rseq, right: next };
            self.rseq = next;
            if self.is_stopped {
                self.read_at = next;
            } else {
                self.note_hole(hole);
            }
            self.advance();
        }
        self.highest = self.highest.max(self.rseq);
    }

    /// Holes without bytes between them are one.
    fn note_hole(&mut self, hole: Span) {
        match self.holes.back_mut() {
            _ if hole.left == hole.right => {}
            Some(last) if last.right == hole.left => last.right = hole.right,
            _ => self.holes.push_back(hole),
        }
    }

    /// Gives the user what is next, at most up to the end of a message.
    pub fn read(&mut self, into: &mut [u8]) -> Read {
        if let Some(hole) = self.holes.front().copied().filter(|hole| hole.left == self.read_at) {
            self.holes.pop_front();
            self.read_at = hole.right;
            // A message whose end lay in the hole has lost it; so have tags.
            self.ends = self.ends.split_off(&hole.right);
            self.tags = self.tags.split_off(&hole.right);
            self.widen();
            return Read::Hole { len: hole.right.saturating_sub(hole.left) };
        }
        let limits = [self.holes.front().map(|hole| hole.left), self.ends.first().copied()];
        let until = limits.into_iter().flatten().min().unwrap_or(self.rseq).min(self.rseq);
        let there = until.saturating_sub(self.read_at);
        let len = into.len().min(usize::try_from(there).unwrap_or(usize::MAX));
        if len == 0 && self.ends.first() != Some(&self.read_at) {
            let is_over = self.end == Some(self.read_at) || self.is_stopped;
            return if is_over { Read::Finished } else { Read::Nothing };
        }
        let tag = self.tags.remove(&self.read_at);
        let len = self.ready.take(into.get_mut(..len).unwrap_or_default());
        self.read_at = self.read_at.saturating_add(len as u64);
        // A tag inside what was read began no message.
        while self.tags.first_key_value().is_some_and(|(at, _)| *at < self.read_at) {
            self.tags.pop_first();
        }
        let is_end = self.ends.first() == Some(&self.read_at);
        if is_end {
            self.ends.pop_first();
        }
        self.widen();
        Read::Data { len, is_end, tag }
    }

    fn widen(&mut self) {
        let bound = self.read_at.saturating_add(self.capacity as u64);
        let alloc = self.posted.map_or(bound, |posted| posted.min(bound));
        self.alloc = self.alloc.max(alloc);
    }
}

/// Makes a piece longer: what it has in reserve, whose size a peer would choose by the lengths of
/// its packets if it doubled, is at most a quarter of it.
fn extend_tightly(piece: &mut Vec<u8>, bytes: &[u8]) {
    if piece.capacity().saturating_sub(piece.len()) < bytes.len() {
        piece.reserve_exact(bytes.len().max(piece.len() / 4));
    }
    piece.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1_000;

    /// The peer sends all that it may, and the user reads it as it comes.
    fn use_window(receiver: &mut Receiver, now: Time, left: &mut usize) {
        let end = receiver.tell_alloc();
        while receiver.rseq() < end {
            let len = (end - receiver.rseq()).min(LEN as u64 / 10) as usize;
            let data = [7; LEN];
            receiver.accept(&Arrival {
                seq: receiver.rseq(),
                data: &data[..len],
                tag: None,
                is_end: false,
                is_lossy: false,
                is_unbounded: false,
            });
            receiver.read(&mut [0; LEN]);
        }
        receiver.adjust(now, left);
    }

    #[test]
    fn what_the_peer_was_told_of_is_taken_when_the_window_shrinks_until_it_is_used() {
        let mut receiver = Receiver::new(0, LEN, true, false).growing_to(4 * LEN);
        let (mut now, left) = (Time::from_millis(1_000), &mut (4 * LEN));
        let mut widest = 0;
        // 10 bytes a millisecond, however wide the window is.
        while widest < 2 * LEN || receiver.capacity() > LEN {
            now += std::time::Duration::from_millis(receiver.capacity() as u64 / 10);
            use_window(&mut receiver, now, left);
            widest = widest.max(receiver.capacity());
            assert_eq!(receiver.taken() + *left, 5 * LEN);
            assert!(now < Time::from_millis(10_000), "it neither grew nor shrank: {widest}");
        }
        assert_eq!((receiver.capacity(), receiver.taken()), (LEN, 2 * LEN));
        use_window(&mut receiver, now, left);
        assert_eq!((receiver.taken(), *left), (LEN, 4 * LEN));
    }
}
