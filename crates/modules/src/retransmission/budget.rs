//! [`Budget`]: whether a question may be repeated before its answer is overdue.
//!
//! ```text
//!   come      + + + + + + + +      each earns its share of a packet, 32 packets are saved at most
//!   asked         - - -            first of all what has not been asked for, or was in vain
//!   repeated              -        only with what is left of that
//! ```
//!
//! Where a flow may send a quarter more than its units, and all of that was sent again lately, one
//! more answer keeps the units that follow waiting, until all of them are late.
//!
//! Invariant: what is saved and what is owed are [`SAVED_MAX`] at most.

/// How many packets may be saved, and how many owed.
const SAVED_MAX: i64 = 32;

/// What may be asked for again before an answer is overdue.
#[derive(Debug)]
pub(super) struct Budget {
    /// How many thousandths of a packet each that comes earns.
    share_milli: i64,
    /// How many are left.
    left_milli: i64,
}

impl Budget {
    pub fn new(share_milli: u64) -> Self {
        Self { share_milli: i64::try_from(share_milli).unwrap_or(i64::MAX), left_milli: 0 }
    }

    /// So many have come for the first time.
    pub fn earn(&mut self, count: u64) {
        let earned = milli(count).saturating_mul(self.share_milli) / 1_000;
        self.left_milli = self.left_milli.saturating_add(earned).min(SAVED_MAX * 1_000);
    }

    /// Whether so many may be asked for that need not be.
    pub fn covers(&self, count: u64) -> bool {
        self.left_milli >= milli(count)
    }

    /// So many are asked for.
    pub fn take(&mut self, count: u64) {
        self.left_milli = self.left_milli.saturating_sub(milli(count)).max(-SAVED_MAX * 1_000);
    }
}

fn milli(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_that_comes_earns_its_share_and_what_is_asked_for_takes_it() {
        let mut budget = Budget::new(250);
        assert!(!budget.covers(1) && budget.covers(0));
        budget.earn(4);
        assert!(budget.covers(1) && !budget.covers(2));
        budget.take(2);
        budget.earn(7);
        assert!(!budget.covers(1), "one is owed");
        budget.earn(1);
        assert!(budget.covers(1));
    }

    #[test]
    fn what_is_saved_and_what_is_owed_are_bounded() {
        let mut budget = Budget::new(1_000);
        budget.earn(u64::MAX);
        assert!(budget.covers(32) && !budget.covers(33));
        budget.take(u64::MAX);
        budget.earn(31);
        assert!(!budget.covers(0));
        budget.earn(33);
        assert!(budget.covers(32));
    }
}
