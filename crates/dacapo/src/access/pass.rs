//! [`PassHash`]: the hash of each pass of a medium that is repeated, as `dacapo inspect` has it of
//! the file.
//!
//! ```text
//!   0 1 2 … last | 0 1 2 . 4 … last | 0 1 2 … last |
//!   a hash         one is missing     a hash
//! ```
//!
//! Invariant: a pass has a hash when each of its units came, once and in order, from the first to
//! the one that says that it is the last.
//!
//! Decoder: of media headers from a peer.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use dacapo_wire::media::{FLAG_LAST, FLAG_LOOP, FLAG_REPEAT, FLAG_TRICK, Header};
use sha2::{Digest, Sha256};

/// The hash of a pass that is under way.
#[derive(Debug, Default)]
pub(crate) struct PassHash {
    is_sound: bool,
    /// None when something of the pass is missing.
    hash: Option<Sha256>,
    /// The index of the unit that comes next.
    next: u32,
}

impl PassHash {
    /// That of sound, whose pieces are hashed as one; pictures are hashed with their lengths.
    pub fn of_sound() -> Self {
        Self { is_sound: true, ..Self::default() }
    }

    /// Takes the unit that came: the hash of the pass when it was its last.
    pub fn handle_unit<'a>(
        &mut self,
        header: &Header,
        len: usize,
        body: impl Iterator<Item = &'a [u8]>,
    ) -> Option<String> {
        let has = |flag| header.flags & flag != 0;
        if !has(FLAG_LOOP) {
            return None;
        }
        if has(FLAG_TRICK) {
            self.hash = None;
            return None;
        }
        if header.index == 0 {
            (self.hash, self.next) = (Some(Sha256::new()), 0);
        }
        let mut hash = self.hash.take().filter(|_| header.index == self.next)?;
        self.next = self.next.wrapping_add(1);
        let is_repeat = has(FLAG_REPEAT);
        if !self.is_sound {
            hash.update((if is_repeat { 0 } else { len as u64 }).to_be_bytes());
        }
        if !is_repeat {
            body.for_each(|piece| hash.update(piece));
        }
        if has(FLAG_LAST) {
            return Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        self.hash = Some(hash);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the units with these indexes give, of a medium of three.
    fn hashes(indexes: &[u32], flags: u8) -> Vec<String> {
        let mut pass = PassHash::of_sound();
        let mut unit = |index: u32| {
            let last = if index == 2 { FLAG_LAST } else { 0 };
            let header = Header { flags: flags | last, index, ..Header::default() };
            pass.handle_unit(&header, 2, [&[index as u8][..], &[9]].into_iter())
        };
        indexes.iter().filter_map(|index| unit(*index)).collect()
    }

    fn sha256(bytes: &[u8]) -> String {
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn every_whole_pass_has_the_hash_of_its_bytes() {
        let whole = sha256(&[0, 9, 1, 9, 2, 9]);
        let whole = [&whole[..]];
        assert_eq!(hashes(&[0, 1, 2, 0, 1, 2], FLAG_LOOP), whole.repeat(2));
        assert_eq!(hashes(&[1, 2, 0, 1, 2, 0, 1], FLAG_LOOP), whole, "joined late");
        assert_eq!(hashes(&[0, 1, 0, 1, 2], FLAG_LOOP), whole, "began again in the middle");
    }

    #[test]
    fn a_pass_that_lacks_a_unit_has_none() {
        for indexes in [&[0, 2][..], &[0, 1, 1, 2], &[0, 2, 1], &[2], &[1, 2]] {
            assert_eq!(hashes(indexes, FLAG_LOOP), [""; 0], "{indexes:?}");
        }
        assert_eq!(hashes(&[0, 1, 2], 0), [""; 0], "it is not repeated");
        assert_eq!(hashes(&[0, 1, 2], FLAG_LOOP | FLAG_TRICK), [""; 0], "FF");
    }

    #[test]
    fn pictures_are_hashed_with_their_lengths_and_a_repeat_has_none() {
        let mut pass = PassHash::default();
        let mut unit = |index, flags, body: &'static [u8]| {
            let header = Header { flags: flags | FLAG_LOOP, index, ..Header::default() };
            pass.handle_unit(&header, body.len(), std::iter::once(body))
        };
        assert_eq!(unit(0, 0, b"ab"), None);
        let expected = sha256(b"\0\0\0\0\0\0\0\x02ab\0\0\0\0\0\0\0\0");
        assert_eq!(unit(1, FLAG_REPEAT | FLAG_LAST, b""), Some(expected));
    }
}
