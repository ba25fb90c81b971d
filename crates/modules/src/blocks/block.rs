//! [`Block`]: what has come of a block.

use super::seen::Seen;
use dacapo_base::Time;
use dacapo_packet::{Packet, Pool};
use dacapo_wire::parity::CODED_AT;

/// Packets of a block that are kept: a view, and the index of its first segment.
#[derive(Debug)]
pub(crate) struct Kept {
    pub index: u8,
    pub view: Packet,
}

impl Kept {
    /// What is coded of each, by its index.
    pub fn coded<'a>(&'a self, pool: &'a Pool) -> impl Iterator<Item = (u8, &'a [u8])> {
        let coded = |at| pool.segment(&self.view, at).get(CODED_AT..).unwrap_or_default();
        (0..self.view.segment_count()).zip(self.index..).map(move |(at, it)| (it, coded(at)))
    }

    /// The index behind its last segment.
    pub fn end(&self) -> usize {
        usize::from(self.index) + self.view.segment_count()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Block {
    /// A bit for each index that has come, or was computed.
    came: [u64; 4],
    /// How many sources there are, once a parity has said it; until then at most.
    pub sources: u8,
    /// A parity has said how many sources there are.
    pub is_ended: bool,
    /// Nothing is missing, or will be made good: only what has come is still known.
    pub is_done: bool,
    /// When the first of it came.
    pub since: Option<Time>,
    /// Sources and parities, as long as they may be needed.
    pub kept: Vec<Kept>,
    /// The length of the parities; 0 while none has come.
    pub parity_len: usize,
    /// How many sources it is taken to have while nothing of it has come: those of the one before.
    pub expected: u8,
    /// It shows what is lost: it began after this end joined.
    pub counts: bool,
}

impl Block {
    /// Of which nothing has come; it keeps in this list, which is empty.
    pub fn new(kept: Vec<Kept>) -> Self {
        Self { kept, ..Self::default() }
    }

    fn place(index: u8) -> (usize, u64) {
        (usize::from(index >> 6), 1 << (index & 63))
    }

    pub fn has(&self, index: u8) -> bool {
        let (word, bit) = Self::place(index);
        self.came.get(word).is_some_and(|came| came & bit != 0)
    }

    /// Says that this one has come, or was computed.
    pub fn mark(&mut self, index: u8) {
        let (word, bit) = Self::place(index);
        if let Some(came) = self.came.get_mut(word) {
            *came |= bit;
        }
    }

    fn count_below(&self, end: u8) -> usize {
        (0..end).filter(|index| self.has(*index)).count()
    }

    /// How many of its sources have come.
    pub fn sources_came(&self) -> usize {
        self.count_below(self.sources)
    }

    /// How many of its parities have been made, as far as those show that have come.
    pub fn rows(&self) -> u8 {
        let lowest = (self.sources..=u8::MAX).find(|index| self.has(*index));
        lowest.map_or(0, |index| (u8::MAX - index).saturating_add(1))
    }

    /// How many of its parities have.
    pub fn parities_came(&self) -> usize {
        let all: u32 = self.came.iter().map(|came| came.count_ones()).sum();
        (all as usize).saturating_sub(self.sources_came())
    }

    /// Whether every source has come.
    pub fn is_whole(&self) -> bool {
        self.sources > 0 && self.sources_came() == usize::from(self.sources)
    }

    /// Whether what is missing can be computed.
    pub fn is_solvable(&self) -> bool {
        let came = self.sources_came();
        self.is_ended
            && came < usize::from(self.sources)
            && came + self.parities_came() >= usize::from(self.sources)
    }

    /// What it shows of losses when it is over: its missing sources. Where no parity has said how
    /// many there are, those behind the last that came are one run, with the parities.
    pub fn seen(&self) -> Seen {
        let missing = (0..self.size()).filter(|index| !self.has(*index));
        Seen::of(self.size(), missing)
    }

    /// How many of its sources are missing for sure: where nobody has said how many there are,
    /// those before the last that came, and of a block of which nothing came as many as expected.
    pub fn lost(&self) -> u64 {
        let last = (0..self.sources).rev().find(|index| self.has(*index));
        let end = match last {
            _ if self.is_ended => self.sources,
            Some(last) => last,
            None => self.size(),
        };
        (0..end).filter(|index| !self.has(*index)).count() as u64
    }

    /// How many sources it has, as far as is known.
    pub fn size(&self) -> u8 {
        if self.sources == 0 { self.expected } else { self.sources }
    }

    /// The indices of the sources that have not come.
    pub fn missing(&self) -> impl Iterator<Item = u8> + '_ {
        (0..self.sources).filter(|index| !self.has(*index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_which_nothing_came_is_lost_and_one_that_came_is_as_large_as_it_says() {
        let mut block = Block { expected: 9, ..Block::default() };
        assert_eq!(block.seen(), Seen { sources: 9, lost: 9, runs: 1 });
        block.sources = 3;
        [0, 2].into_iter().for_each(|index| block.mark(index));
        assert_eq!(block.seen(), Seen { sources: 3, lost: 1, runs: 1 });
        block.mark(1);
        assert!(block.is_whole());
    }

    #[test]
    fn a_block_is_solvable_when_as_many_parities_came_as_sources_are_missing() {
        let mut block = Block { sources: 4, ..Block::default() };
        [0, 2, 255].into_iter().for_each(|index| block.mark(index));
        assert_eq!((block.sources_came(), block.parities_came()), (2, 1));
        assert!(!block.is_whole() && !block.is_solvable());
        block.mark(254);
        assert!(!block.is_solvable(), "nobody has said how many sources there are");
        block.is_ended = true;
        assert!(block.is_solvable());
        assert_eq!(block.missing().collect::<Vec<_>>(), [1, 3]);
        block.sources = 3;
        assert!(block.is_solvable());
        block.mark(1);
        assert!(block.is_whole() && !block.is_solvable());
    }
}
