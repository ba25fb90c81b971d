//! [`Mixer`]: a 128-bit mixing hash, in place of every hash, MAC and key derivation of TLS.
//!
//! ```text
//!   word ----+------------------+
//!            v                  v
//!   a = rot((a ^ w) * A)   b = rot((b + w) * B) ^ a      A, B odd
//! ```
//!
//! Each step is a bijection of lane `a` for a given word, and of the word for a given `a`. So two
//! inputs of the same lengths that differ within one aligned word of 8 bytes always have different
//! results: every single flipped bit is found, not only nearly every. It resists accidents, not
//! attackers. The finishing step is that of MurmurHash3 (public domain), a bijection too.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

const A: u64 = 0x9e37_79b9_7f4a_7c15;
const B: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// A running hash; clones continue from the same point.
#[derive(Clone, Debug)]
pub(super) struct Mixer {
    a: u64,
    b: u64,
}

impl Mixer {
    /// A hash for one purpose, different from those for all others.
    pub(super) fn new(purpose: &str) -> Self {
        Self { a: A, b: B }.with(purpose.as_bytes())
    }

    /// This and `bytes`, with their length, so that neighbours cannot run into each other.
    pub(super) fn with(mut self, bytes: &[u8]) -> Self {
        self.add(bytes);
        self
    }

    /// This and a number.
    pub(super) fn with_number(mut self, number: u64) -> Self {
        self.word(number);
        self
    }

    /// Takes in `bytes` and their length.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        self.word(u64::from_le_bytes(last));
    }

    /// The hash so far.
    pub(super) fn tag(&self) -> [u8; 16] {
        let a = finish(self.a);
        let b = finish(self.b.wrapping_add(a));
        (u128::from(a) << 64 | u128::from(b)).to_be_bytes()
    }

    /// As many bytes as wanted that depend on everything so far.
    pub(super) fn fill(&self, out: &mut [u8]) {
        for (block, number) in out.chunks_mut(16).zip(0_u64..) {
            let tag = self.clone().with_number(number).tag();
            for (to, from) in block.iter_mut().zip(tag) {
                *to = from;
            }
        }
    }

    /// A secret that depends on everything so far.
    pub(super) fn secret(&self) -> [u8; 32] {
        let mut secret = [0; 32];
        self.fill(&mut secret);
        secret
    }

    fn word(&mut self, word: u64) {
        self.a = (self.a ^ word).wrapping_mul(A).rotate_left(29);
        self.b = self.b.wrapping_add(word).wrapping_mul(B).rotate_left(37) ^ self.a;
    }
}

fn finish(mut lane: u64) -> u64 {
    lane ^= lane >> 33;
    lane = lane.wrapping_mul(0xff51_afd7_ed55_8ccd);
    lane ^= lane >> 33;
    lane = lane.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    lane ^ (lane >> 33)
}

#[cfg(test)]
mod tests {
    use dacapo_base::Random;

    use super::*;

    #[test]
    fn every_change_within_a_word_changes_the_tag() {
        for seed in 0..300 {
            let mut random = Random::from_number(seed);
            let mut bytes = vec![0; 1 + random.below(64) as usize];
            random.fill(&mut bytes);
            let tag = Mixer::new("test").with(&bytes).tag();
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(Mixer::new("test").with(&bytes).tag(), tag, "seed {seed}, bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn lengths_and_purposes_are_part_of_the_input() {
        let tags = [
            Mixer::new("one").with(b"ab").with(b"c").tag(),
            Mixer::new("one").with(b"a").with(b"bc").tag(),
            Mixer::new("one").with(b"abc").tag(),
            Mixer::new("one").with(b"abc\0").tag(),
            Mixer::new("two").with(b"abc").tag(),
        ];
        for (at, tag) in tags.iter().enumerate() {
            assert!(!tags[at + 1..].contains(tag), "{at}");
        }
    }

    #[test]
    fn about_half_of_all_bits_follow_each_input_bit() {
        let tag = |bytes: &[u8]| u128::from_be_bytes(Mixer::new("test").with(bytes).tag());
        let mut total = 0;
        for bit in 0..1024 {
            let mut bytes = [0x5a; 128];
            bytes[bit / 8] ^= 1 << (bit % 8);
            let changed = (tag(&bytes) ^ tag(&[0x5a; 128])).count_ones();
            assert!((30..98).contains(&changed), "bit {bit}: {changed}");
            total += changed;
        }
        assert!((62..66).contains(&(total / 1024)), "{total}");
    }
}
