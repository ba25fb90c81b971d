//! A small generator (xorshift64*, Vigna 2016), so that this crate depends on nothing.

/// A seeded stream of random numbers.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // An odd multiple of the golden ratio: neighbouring seeds give unlike streams, none is 0.
        let mut random = Self((seed << 1 | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.u64();
        random
    }

    pub fn u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    pub fn u16(&mut self) -> u16 {
        (self.u64() >> 48) as u16
    }

    pub fn u8(&mut self) -> u8 {
        (self.u64() >> 56) as u8
    }

    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.u64()) * bound as u128) >> 64) as usize
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.u8())
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.u8()).collect()
    }

    /// A length up to `max`, more often a short one or exactly the longest.
    pub fn len(&mut self, max: usize) -> usize {
        match self.below(8) {
            0 => max,
            1 => self.below(max + 1),
            _ => self.below(max.min(6) + 1),
        }
    }
}
