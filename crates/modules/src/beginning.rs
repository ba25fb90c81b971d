//! [`Beginning`]: where a stream is that was joined in the middle.
//!
//! Who joins takes the first number that comes for the next one, and believes it when another
//! follows: until then one that is far away is taken instead, for the first may have been altered.
//!
//! ```text
//!   join    900 (altered)   7        8            9
//!           begin at 900    at 7     believed     behind 8: nothing changes any more
//! ```

/// Near this number lies every one that can come first: so each of 32 bits has one whole number.
pub(crate) const JOIN_NEAR: u64 = 1 << 32;

/// What is known of where a stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// It was there from its beginning, or is believed.
    #[default]
    Known,
    /// It was joined, and nothing came.
    Nothing,
    /// A packet came, and none has followed it yet.
    Begun,
}

impl Beginning {
    /// Where the stream begins, if `number` says so: it came while `next` was awaited, and what
    /// lies up to `behind` before that may have been overtaken.
    pub fn find(&mut self, number: u64, next: u64, behind: u64) -> Option<u64> {
        if *self == Self::Known {
            return None;
        }
        if *self == Self::Begun && number == next {
            *self = Self::Known;
            return None;
        }
        let was_overtaken = (next.saturating_sub(behind)..next).contains(&number);
        if *self == Self::Begun && was_overtaken {
            return None;
        }
        *self = Self::Begun;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_believed_when_another_follows() {
        let mut known = Beginning::default();
        assert_eq!(known.find(77, 3, 100), None, "from its beginning");
        let mut it = Beginning::Nothing;
        assert_eq!(it.find(900, JOIN_NEAR, 100), Some(900));
        assert_eq!(it.find(7, 901, 100), Some(7), "the first was altered");
        assert_eq!(it.find(5, 8, 100), None, "overtaken");
        assert_eq!(it.find(8, 8, 100), None);
        assert_eq!((it, it.find(500, 9, 100)), (Beginning::Known, None));
    }
}
