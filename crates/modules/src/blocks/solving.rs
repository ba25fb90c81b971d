//! [`Solving`]: the missing sources of a block, computed from what has come of it.
//!
//! ```text
//!   came       s0 . s2 .  p p          a sum for each parity: it, less what s0 and s2 make of it
//!   sums       + +                     is what the missing ones make of it: two of two unknown
//!   missing    s1 s3
//! ```
//!
//! Invariant: memory is used again; nothing is allocated for a block that is no larger than those
//! before it.

use super::block::Block;
use super::code::{add_known, solve};
use dacapo_packet::Pool;
use dacapo_wire::parity::{CODED_AT, LEN};

#[derive(Debug, Default)]
pub(super) struct Solving {
    missing: Vec<u8>,
    /// As many as sources are missing.
    parities: Vec<u8>,
    sums: Vec<Vec<u8>>,
    /// The missing sources.
    found: Vec<Vec<u8>>,
    /// How much of each packet is coded.
    coded_len: usize,
}

impl Solving {
    /// Begins a block that is solvable; how many sources are missing.
    pub fn begin(&mut self, pool: &Pool, block: &Block) -> usize {
        self.coded_len = block.parity_len.saturating_sub(CODED_AT);
        self.missing.clear();
        self.missing.extend(block.missing());
        self.parities.clear();
        let parities = block.kept.iter().map(|kept| kept.index).filter(|it| *it >= block.sources);
        self.parities.extend(parities.take(self.missing.len()));
        if self.sums.len() < self.missing.len() {
            self.sums.resize_with(self.missing.len(), Vec::new);
            self.found.resize_with(self.missing.len(), Vec::new);
        }
        self.sum(pool, block);
        self.find();
        self.missing.len()
    }

    /// Makes the sums of what the chosen parities say of the missing sources alone.
    fn sum(&mut self, pool: &Pool, block: &Block) {
        let sums = self.sums.get_mut(..self.parities.len()).unwrap_or_default();
        for (sum, index) in sums.iter_mut().zip(&self.parities) {
            sum.clear();
            let parity = block.kept.iter().find(|kept| kept.index == *index);
            let bytes = parity.map_or(&[][..], |it| pool.segment(&it.view, 0));
            sum.extend_from_slice(bytes.get(CODED_AT..).unwrap_or_default());
            sum.resize(self.coded_len, 0);
        }
        let kept = block.kept.iter().filter(|kept| kept.index < block.sources);
        add_known(sums, &self.parities, kept.flat_map(|kept| kept.coded(pool)));
    }

    /// Computes the missing sources of the sums.
    fn find(&mut self) {
        let count = self.missing.len();
        let found = self.found.get_mut(..count).unwrap_or_default();
        found.iter_mut().for_each(|bytes| bytes.resize(self.coded_len, 0));
        let sums = self.sums.get(..count).unwrap_or_default();
        solve(found, &self.missing, sums, &self.parities);
    }

    /// A missing source by its place among them: its index, and its bytes as its peer was handed
    /// them; no bytes where they are not what a peer codes.
    pub fn source(&self, place: usize) -> (u8, Option<&[u8]>) {
        let coded = self.found.get(place).and_then(|it| it.split_first_chunk());
        let source = coded.and_then(|(len, bytes): (&[u8; LEN - CODED_AT], _)| {
            bytes.get(..u16::from_be_bytes(*len).into())
        });
        (self.missing.get(place).copied().unwrap_or_default(), source)
    }
}
