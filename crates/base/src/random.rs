//! [`Random`]: a seeded generator, the only source of randomness below the edges.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A seeded stream of random numbers (ChaCha with 8 rounds).
///
/// With a seed from the system it is unpredictable to others, which labels and tokens need; with a
/// fixed seed it is the same on every machine and in every release, which repeatable worlds need.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// A generator from 32 bytes, which the edge takes from the system.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ChaCha8Rng::from_seed(seed))
    }

    /// A generator from a small number, for worlds and tests.
    #[must_use]
    pub fn from_number(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A generator of its own for a part of the whole, so that what one part draws does not shift
    /// what another one gets.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        let mut seed = [0; 32];
        self.fill(&mut seed);
        Self::from_seed(seed)
    }

    /// 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// A whole number below `bound`, all equally likely; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's multiply-shift; the bias is below bound / 2^64.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with probability `p`; never for `p <= 0` or not a number, always for `p >= 1`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream_on_every_machine() {
        let mut random = Random::from_number(1998);
        let first: Vec<u64> = (0..4).map(|_| random.next_u64()).collect();
        let mut again = Random::from_number(1998);
        assert_eq!(first, (0..4).map(|_| again.next_u64()).collect::<Vec<_>>());
        assert_ne!(first[0], Random::from_number(1999).next_u64());
    }

    #[test]
    fn below_stays_below_and_covers() {
        let mut random = Random::from_number(7);
        let mut seen = [0_u32; 6];
        for _ in 0..6_000 {
            seen[random.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1_200).contains(&n)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn chance_respects_its_ends() {
        let mut random = Random::from_number(7);
        assert!((0..1_000).all(|_| !random.chance(0.0)));
        assert!((0..1_000).all(|_| random.chance(1.0)));
        assert!(!random.chance(f64::NAN));
    }
}
