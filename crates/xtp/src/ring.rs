//! [`Ring`]: bytes of a stream that wait, in their order.
//!
//! ```text
//!   push ->  | … last | free | first … |  -> take, drop_front
//!                               `-- copy: a stretch of them, to be sent, and again
//! ```
//!
//! What it is not: bounded, which sender and receiver are; or memory while nothing was put in.
//!
//! Invariant: bytes are copied in at most two pieces, never one by one.

use std::collections::VecDeque;
use std::ops::Range;

/// Bytes that wait.
#[derive(Debug, Default)]
pub struct Ring(VecDeque<u8>);

impl Ring {
    /// How many bytes wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Puts bytes behind the others.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Forgets so many bytes at the front, or all.
    pub fn drop_front(&mut self, len: usize) {
        self.0.drain(..len.min(self.0.len()));
    }

    /// Appends a stretch, counted from the front; what of it is not there is left out.
    pub fn copy(&self, stretch: Range<usize>, into: &mut Vec<u8>) {
        let [front, back] = self.pieces(stretch);
        into.extend_from_slice(front);
        into.extend_from_slice(back);
    }

    /// Takes bytes from the front, as many as there is room for; gives how many.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        let len = into.len().min(self.0.len());
        let [front, back] = self.pieces(0..len);
        let (to_front, rest) = into.split_at_mut(front.len());
        let (to_back, _) = rest.split_at_mut(back.len());
        to_front.copy_from_slice(front);
        to_back.copy_from_slice(back);
        self.drop_front(len);
        len
    }

    fn pieces(&self, Range { start, end }: Range<usize>) -> [&[u8]; 2] {
        let (front, back) = self.0.as_slices();
        let len = front.len();
        let behind = start.saturating_sub(len)..end.saturating_sub(len);
        [part(front, start..end), part(back, behind)]
    }
}

fn part(bytes: &[u8], Range { start, end }: Range<usize>) -> &[u8] {
    let len = bytes.len();
    bytes.get(start.min(len)..end.min(len)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn what_is_put_in_comes_out_in_order_wherever_it_lies() {
        let random = &mut Random::from_number(1);
        let (mut ring, mut model, mut next) = (Ring::default(), Vec::new(), 0_u8);
        for _ in 0..5_000 {
            if random.chance(0.5) && model.len() < 3_000 {
                let bytes: Vec<u8> = (0..random.below(400)).map(|_| next_of(&mut next)).collect();
                ring.push(&bytes);
                model.extend(bytes);
            } else if random.chance(0.5) {
                let mut into = vec![0; random.below(500) as usize];
                let len = ring.take(&mut into);
                assert_eq!(into[..len], *model.drain(..len).as_slice());
                assert!(len == into.len() || model.is_empty());
            } else {
                let len = random.below(200) as usize;
                ring.drop_front(len);
                model.drain(..len.min(model.len()));
            }
            let (one, other) = (random.below(4_000) as usize, random.below(4_000) as usize);
            let (start, end) = (one.min(other), one.max(other));
            let mut copy = vec![9];
            ring.copy(start..end, &mut copy);
            let there = &model[start.min(model.len())..end.min(model.len())];
            assert_eq!((ring.len(), &copy[1..]), (model.len(), there));
        }
    }

    fn next_of(next: &mut u8) -> u8 {
        *next = next.wrapping_add(1);
        *next
    }
}
