//! Connection ids from a seed.
//!
//! ```text
//!    0               4               8
//!   +---------------+---------------+
//!   | number ^ mask | check (keyed) |
//!   +---------------+---------------+
//! ```
//!
//! They have the length of quinn's default ids and are recognised without a table, as those are.
//! Invariant: the first 2^32 ids of a generator differ.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};

use super::mix::Mixer;

/// A [`ConnectionIdGenerator`] whose ids follow from its seed; for `EndpointConfig::cid_generator`.
#[derive(Clone, Debug)]
pub struct SeededCids {
    key: Mixer,
    number: u32,
}

impl SeededCids {
    /// A generator; endpoints of one world should have different seeds.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Self { key: Mixer::new("connection id").with(&seed), number: 0 }
    }

    fn check(&self, number: &[u8]) -> [u8; 4] {
        let mut check = [0; 4];
        self.key.clone().with(number).fill(&mut check);
        check
    }
}

impl ConnectionIdGenerator for SeededCids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut mask = [0; 4];
        self.key.fill(&mut mask);
        let number = (self.number ^ u32::from_be_bytes(mask)).to_be_bytes();
        self.number = self.number.wrapping_add(1);
        ConnectionId::new(&[number, self.check(&number)].concat())
    }

    fn validate(&self, cid: &ConnectionId) -> Result<(), InvalidCid> {
        let (number, check) = cid.split_first_chunk::<4>().ok_or(InvalidCid)?;
        if self.check(number) == *check { Ok(()) } else { Err(InvalidCid) }
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// What `ClientConfig::initial_dst_cid_provider` takes: the first destination ids of a client's
/// connections, 20 bytes each, in the order of the calls.
pub fn initial_dst_cids(seed: [u8; 32]) -> Arc<dyn Fn() -> ConnectionId + Send + Sync> {
    let key = Mixer::new("initial destination id").with(&seed);
    let calls = AtomicU64::new(0);
    Arc::new(move || {
        let mut id = [0; 20];
        key.clone().with_number(calls.fetch_add(1, Ordering::Relaxed)).fill(&mut id);
        ConnectionId::new(&id)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_repeat_with_the_seed_and_never_within_it() {
        let (mut one, mut again) = (SeededCids::new([1; 32]), SeededCids::new([1; 32]));
        let ids: Vec<_> = (0..10_000).map(|_| one.generate_cid()).collect();
        assert!(ids.iter().all(|id| *id == again.generate_cid()));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        assert_ne!(SeededCids::new([2; 32]).generate_cid(), ids[0]);
    }

    #[test]
    fn a_generator_knows_its_own_ids_and_no_others() {
        let (mut one, mut other) = (SeededCids::new([1; 32]), SeededCids::new([2; 32]));
        for _ in 0..1_000 {
            let id = one.generate_cid();
            assert_eq!(id.len(), one.cid_len());
            assert!(one.validate(&id).is_ok());
            assert!(one.validate(&other.generate_cid()).is_err());
        }
        assert!(one.validate(&ConnectionId::new(&[])).is_err());
    }

    #[test]
    fn first_destination_ids_repeat_with_the_seed() {
        let (one, again) = (initial_dst_cids([1; 32]), initial_dst_cids([1; 32]));
        let (first, second) = (one(), one());
        assert_ne!(first, second);
        assert_eq!((again(), again()), (first, second));
        assert_eq!(first.len(), 20);
    }
}
