//! [`Outbox`]: records that wait to be written to a stream.
//!
//! ```text
//!   push -> [ record | record ] rest -> first -> front, take
//!                                       ^ taken
//! ```
//!
//! Invariants: a record lies where it was encoded until it is written, so what waits is never
//! copied to make room for more; one that waits alone needs no queue.

use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct Outbox {
    first: Vec<u8>,
    /// How many bytes of it were taken.
    taken: usize,
    rest: VecDeque<Vec<u8>>,
    len: usize,
}

impl Outbox {
    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a record behind the others.
    pub fn push(&mut self, record: Vec<u8>) {
        if record.is_empty() {
            return;
        }
        self.len += record.len();
        match self.first.is_empty() {
            true => self.first = record,
            false => self.rest.push_back(record),
        }
    }

    /// Bytes that are next, at least one when any wait.
    pub fn front(&self) -> &[u8] {
        self.first.get(self.taken..).unwrap_or_default()
    }

    /// Removes the first `count` bytes.
    pub fn take(&mut self, count: usize) {
        let count = count.min(self.len);
        self.len -= count;
        self.taken += count;
        while !self.first.is_empty() && self.first.len() <= self.taken {
            self.taken -= self.first.len();
            self.first = self.rest.pop_front().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_comes_out_once_and_in_order_however_it_is_taken() {
        for step in 1..9 {
            let mut out = Outbox::default();
            let mut came = Vec::new();
            for record in [&b"abc"[..], b"", b"d", b"efghij"] {
                out.push(record.to_vec());
            }
            while out.len() > 0 {
                let some = out.front().len().min(step);
                came.extend_from_slice(&out.front()[..some]);
                out.take(some);
            }
            assert_eq!((came.as_slice(), out.front()), (&b"abcdefghij"[..], &b""[..]), "{step}");
        }
    }
}
