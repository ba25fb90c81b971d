//! [`Ring`]: bytes of a stream that wait, in their order.
//!
//! ```text
//!   push ->  | last … | full | full | … first |  -> take, drop_front
//!               `-- copy: a stretch of them, to be sent, and again
//!            spare: | chunk | chunk |   the last that was emptied is filled first
//! ```
//!
//! Memory is not gone round: however wide the window, what is written is
//! written where something was just read, while a cache still has it.
//!
//! Invariants: all chunks but the last have [`CHUNK_LEN`] bytes, so a place is found by division;
//! memory is at most twice what waits, or what waits and two chunks, and [`SPARES_MAX`] spare ones,
//! and never more than what once waited needed; bytes are never copied one by one.

use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a chunk.
const CHUNK_LEN: usize = 32 << 10;
/// The most chunks that are kept for use again: what a stream without losses has under way at once.
const SPARES_MAX: usize = 8;

/// Bytes that wait.
#[derive(Debug, Default)]
pub struct Ring {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that are gone.
    start: usize,
    len: usize,
    spares: Vec<Vec<u8>>,
}

impl Ring {
    /// How many bytes wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Puts bytes behind the others.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.chunks.back().is_none_or(|last| last.len() >= CHUNK_LEN) {
                // Whoever has little under way has one chunk at a time.
                self.chunks.reserve_exact(usize::from(self.chunks.is_empty()));
                self.chunks.push_back(self.spares.pop().unwrap_or_default());
            }
            let Some(last) = self.chunks.back_mut() else { return };
            let tailroom = CHUNK_LEN.saturating_sub(last.len()).min(rest.len());
            let (now, later) = rest.split_at(tailroom);
            reserve(last, tailroom);
            last.extend_from_slice(now);
            rest = later;
        }
        self.len = self.len.saturating_add(bytes.len());
    }

    /// Forgets so many bytes at the front, or all.
    pub fn drop_front(&mut self, len: usize) {
        let len = len.min(self.len);
        self.len = self.len.saturating_sub(len);
        self.start = self.start.saturating_add(len);
        while self.start >= CHUNK_LEN {
            self.start = self.start.saturating_sub(CHUNK_LEN);
            self.empty_first();
        }
        if self.len == 0 {
            // The chunk that is left, if one is, is filled anew where it lies.
            self.start = 0;
            self.chunks.iter_mut().for_each(Vec::clear);
        }
    }

    fn empty_first(&mut self) {
        let Some(mut chunk) = self.chunks.pop_front() else { return };
        if self.spares.len() < SPARES_MAX {
            chunk.clear();
            self.spares.push(chunk);
        }
    }

    /// Appends a stretch, counted from the front; what of it is not there is left out.
    pub fn copy(&self, stretch: Range<usize>, into: &mut Vec<u8>) {
        self.pieces(stretch).for_each(|piece| into.extend_from_slice(piece));
    }

    /// Takes bytes from the front, as many as there is room for; gives how many.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        let len = into.len().min(self.len);
        let mut left = into;
        for piece in self.pieces(0..len) {
            let (now, later) = std::mem::take(&mut left).split_at_mut(piece.len());
            now.copy_from_slice(piece);
            left = later;
        }
        self.drop_front(len);
        len
    }

    /// The bytes of a stretch, chunk by chunk.
    fn pieces(&self, stretch: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let at = |place: usize| self.start.saturating_add(place.min(self.len));
        let (start, end) = (at(stretch.start), at(stretch.end));
        let first = start / CHUNK_LEN;
        let chunks = self.chunks.range(first.min(self.chunks.len())..);
        let mut base = first.saturating_mul(CHUNK_LEN);
        chunks.map_while(move |chunk| {
            let (from, to) = (start.saturating_sub(base), end.saturating_sub(base));
            base = base.saturating_add(CHUNK_LEN);
            let piece = chunk.get(from..to.min(chunk.len())).unwrap_or_default();
            (to > from).then_some(piece)
        })
    }
}

/// Room for so many bytes more; of a chunk that is to become full at once exactly.
fn reserve(chunk: &mut Vec<u8>, len: usize) {
    let wanted = chunk.len().saturating_add(len);
    if wanted > chunk.capacity() {
        let capacity = wanted.max(chunk.capacity().saturating_mul(2)).min(CHUNK_LEN);
        chunk.reserve_exact(capacity.saturating_sub(chunk.len()));
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn what_is_put_in_comes_out_in_order_wherever_it_lies() {
        let random = &mut Random::from_number(1);
        let (mut ring, mut model, mut next) = (Ring::default(), Vec::new(), 0_u8);
        for _ in 0..20_000 {
            if random.chance(0.5) && model.len() < 150_000 {
                let bytes: Vec<u8> =
                    (0..random.below(40_000)).map(|_| next_of(&mut next)).collect();
                ring.push(&bytes);
                model.extend(bytes);
            } else if random.chance(0.5) {
                let mut into = vec![0; random.below(50_000) as usize];
                let len = ring.take(&mut into);
                assert_eq!(into[..len], *model.drain(..len).as_slice());
                assert!(len == into.len() || model.is_empty());
            } else {
                let len = random.below(20_000) as usize;
                ring.drop_front(len);
                model.drain(..len.min(model.len()));
            }
            let (one, other) = (random.below(160_000) as usize, random.below(160_000) as usize);
            let (start, end) = (one.min(other), one.max(other));
            let mut copy = vec![9];
            ring.copy(start..end, &mut copy);
            let there = &model[start.min(model.len())..end.min(model.len())];
            assert!((ring.len(), &copy[1..]) == (model.len(), there));
            let memory: usize = ring.chunks.iter().map(Vec::capacity).sum();
            assert!(memory <= (2 * ring.len()).max(ring.len() + 2 * CHUNK_LEN), "{memory}");
            assert!(ring.spares.len() <= SPARES_MAX);
        }
    }

    fn next_of(next: &mut u8) -> u8 {
        *next = next.wrapping_add(1);
        *next
    }
}
