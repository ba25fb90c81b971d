//! [`Ledger`]: what became of every unit of a flow, per receiver; and [`UnitHash`].
//!
//! The sum that closes: sent = delivered + late + lost + dropped by reason + unknown, where unknown
//! is 0 unless the session ended abnormally. Duplicates are counted apart, because they are not
//! units that were sent.

use dacapo_lift::DropReason;
use sha2::{Digest, Sha256};

/// What became of every unit of one flow at one receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Units fed into the flow's graphs by the sender, as far as this end knows.
    pub sent: u64,
    /// Handed to the receiving application in time.
    pub delivered: u64,
    /// Arrived whole, too late for the application.
    pub late: u64,
    /// Did not arrive whole.
    pub lost: u64,
    /// Arrived and given up, by reason.
    pub dropped: [u64; DropReason::COUNT],
    /// Nobody can say: only after an abnormal end.
    pub unknown: u64,
    /// Arrived more than once; not part of the sum.
    pub duplicates: u64,
    /// Arrived after they had been counted as lost; not part of the sum.
    pub after_lost: u64,
    /// The sender never said how many units there were: `sent` is what is known of, and there may
    /// be more.
    pub sent_at_least: bool,
    /// Bytes of the units delivered.
    pub bytes: u64,
}

impl Ledger {
    /// Units given up for any reason.
    #[must_use]
    pub fn dropped_count(&self) -> u64 {
        // A peer may report any numbers.
        self.dropped.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Units of which it is known what became of them.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        [self.late, self.lost, self.dropped_count()]
            .into_iter()
            .fold(self.delivered, u64::saturating_add)
    }

    /// True when the sum closes.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.accounted().checked_add(self.unknown) == Some(self.sent)
    }

    /// The sender has said how many units there were. Without a check a number may have been
    /// altered on its way: what was booked beyond the sender's count was never sent.
    pub fn end(&mut self, units: u64) {
        let came = self.accounted().saturating_sub(self.lost);
        let beyond = came.saturating_sub(units).min(self.delivered);
        self.delivered -= beyond;
        self.duplicates = self.duplicates.saturating_add(beyond);
        self.lost = units.saturating_sub(came);
        self.sent = units;
    }

    /// Books what is not accounted for as unknown: the session ended abnormally.
    pub fn give_up(&mut self) {
        self.unknown = self.sent.saturating_sub(self.accounted());
    }
}

/// A hash over a set of units that does not depend on the order in which they are added: the sum,
/// in four 64-bit lanes, of SHA-256 over each unit's number, length and bytes.
///
/// It compares what two ends saw; it is no protection against somebody who chooses units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitHash([u64; 4]);

impl UnitHash {
    /// Adds the unit with this number, whose bytes are the pieces in order.
    pub fn add<'a>(&mut self, number: u64, len: usize, pieces: impl Iterator<Item = &'a [u8]>) {
        let mut hash = Sha256::new();
        hash.update(number.to_be_bytes());
        hash.update((len as u64).to_be_bytes());
        for piece in pieces {
            hash.update(piece);
        }
        let digest = hash.finalize();
        for (lane, bytes) in self.0.iter_mut().zip(digest.chunks_exact(8)) {
            let word = bytes.iter().fold(0, |word: u64, &byte| (word << 8) | u64::from(byte));
            *lane = lane.wrapping_add(word);
        }
    }

    /// The hash over the units that were added since `before`.
    pub(crate) fn minus(self, before: Self) -> Self {
        let mut lanes = self.0;
        lanes.iter_mut().zip(before.0).for_each(|(lane, it)| *lane = lane.wrapping_sub(it));
        Self(lanes)
    }

    /// The hash as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (to, lane) in bytes.chunks_exact_mut(8).zip(self.0) {
            to.copy_from_slice(&lane.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_number_and_bytes_and_not_on_order_or_pieces() {
        let hash = |units: &[(u64, &[&[u8]])]| {
            let mut hash = UnitHash::default();
            for (number, pieces) in units {
                let len = pieces.iter().map(|piece| piece.len()).sum();
                hash.add(*number, len, pieces.iter().copied());
            }
            hash.to_bytes()
        };
        let reference = hash(&[(0, &[b"ab"]), (1, &[b"c"])]);
        assert_eq!(hash(&[(1, &[b"c"]), (0, &[b"a", b"b"])]), reference);
        assert_ne!(hash(&[(0, &[b"ab"]), (2, &[b"c"])]), reference);
        assert_ne!(hash(&[(0, &[b"ab"]), (1, &[b"d"])]), reference);
        assert_ne!(hash(&[(0, &[b"ab"])]), reference);
    }

    #[test]
    fn what_was_added_later_has_the_hash_of_itself() {
        let (mut all, mut later) = (UnitHash::default(), UnitHash::default());
        all.add(0, 1, [&b"a"[..]].into_iter());
        let before = all;
        for hash in [&mut all, &mut later] {
            hash.add(1, 1, [&b"b"[..]].into_iter());
        }
        assert_eq!(all.minus(before).to_bytes(), later.to_bytes());
    }

    #[test]
    fn numbers_that_a_peer_makes_up_do_not_overflow() {
        let ledger = Ledger {
            sent: u64::MAX,
            delivered: u64::MAX,
            late: u64::MAX,
            lost: 1,
            unknown: u64::MAX,
            dropped: [u64::MAX; DropReason::COUNT],
            ..Ledger::default()
        };
        assert_eq!((ledger.dropped_count(), ledger.accounted()), (u64::MAX, u64::MAX));
        assert!(!ledger.closes());
    }

    #[test]
    fn an_abnormal_end_closes_with_unknown() {
        let mut ledger = Ledger { sent: 10, delivered: 6, lost: 1, ..Ledger::default() };
        assert!(!ledger.closes());
        ledger.give_up();
        assert_eq!(ledger.unknown, 3);
        assert!(ledger.closes());
    }
}
