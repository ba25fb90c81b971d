//! [`Came`]: which of the last sources have come, or were computed.
//!
//! ```text
//!             end - CAME                 end
//!   unknown   | 1 1 1 0 1 1 1 1 0 … 1 1 | nobody has heard of
//! ```
//!
//! Invariant: a bit is that of one number, of the last [`CAME`] before `end`.

/// Of how many numbers it is known.
pub(super) const CAME: u64 = 4_096;

const WORDS: usize = (CAME / 64) as usize;

#[derive(Debug)]
pub(super) struct Came {
    bits: [u64; WORDS],
    end: u64,
}

impl Default for Came {
    fn default() -> Self {
        Self { bits: [0; WORDS], end: 0 }
    }
}

impl Came {
    /// The number behind the last that anything was heard of.
    pub fn end(&self) -> u64 {
        self.end
    }

    fn place(number: u64) -> (usize, u64) {
        let at = number % CAME;
        ((at / 64) as usize, 1 << (at % 64))
    }

    /// Whether it has come, as far as that is known: what is ahead has not, what is too far behind
    /// counts as come.
    pub fn has(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        number < self.end && (number + CAME < self.end || self.bits[word] & bit != 0)
    }

    /// Says that one of the last has come.
    pub fn mark(&mut self, number: u64) {
        if (self.end.saturating_sub(CAME)..self.end).contains(&number) {
            let (word, bit) = Self::place(number);
            self.bits[word] |= bit;
        }
    }

    /// Numbers below `end` were heard of.
    pub fn reach(&mut self, end: u64) {
        for number in self.end.max(end.saturating_sub(CAME))..end {
            let (word, bit) = Self::place(number);
            self.bits[word] &= !bit;
        }
        self.end = self.end.max(end);
    }

    /// Begins anew with this number.
    pub fn restart(&mut self, first: u64) {
        *self = Self { end: first, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_come_when_it_was_marked_and_long_afterwards() {
        let mut came = Came::default();
        came.reach(3);
        came.mark(1);
        assert_eq!([0, 1, 2, 3].map(|it| came.has(it)), [false, true, false, false]);
        came.reach(CAME + 1);
        assert_eq!([0, 1, 2, CAME].map(|it| came.has(it)), [true, true, false, false]);
        came.mark(CAME);
        came.mark(CAME + 1);
        assert_eq!([CAME, CAME + 1].map(|it| came.has(it)), [true, false]);
        came.reach(50 * CAME);
        assert!((49 * CAME..50 * CAME).all(|it| !came.has(it)));
        came.reach(7);
        assert_eq!(came.end(), 50 * CAME);
        came.restart(9);
        assert!(!came.has(8) && came.end() == 9);
    }
}
