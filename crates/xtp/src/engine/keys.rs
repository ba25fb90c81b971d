//! [`ByKey`]: tables by keys that were drawn here.
//!
//! A key is random already, so it is its own hash: one is looked up for every packet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by keys that were drawn here.
pub type ByKey<T> = HashMap<u64, T, BuildHasherDefault<Drawn>>;

/// The hash of a key that was drawn here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drawn(u64);

impl Hasher for Drawn {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, key: u64) {
        // Tables look at the highest bits too, of which the first is 0 in every key.
        self.0 = key.rotate_left(1);
    }

    fn write(&mut self, bytes: &[u8]) {
        // Keys are numbers, and go the way above.
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
}
