//! [`Budgets`]: how many packets may be sent to repair, in all and for one receiver.
//!
//! ```text
//!   sent      s s s s s s s s      earns half a packet each for all, a quarter for each receiver
//!   asked        - -               what somebody asks for is taken from both
//! ```
//!
//! A receiver that loses most of what comes, or says so, holds nobody else up.
//!
//! Invariants: what is saved is [`SAVED_MAX`] packets at most; of [`RECEIVERS_MAX`] receivers it is
//! known what each has taken: of more, that is forgotten of the one that came first.

use std::collections::BTreeMap;

/// How many packets may be saved.
const SAVED_MAX: u64 = 128;

/// Of how many receivers it is known what each has taken.
const RECEIVERS_MAX: usize = 1_024;

/// What each packet that is sent earns, in thousandths.
const ALL_MILLI: u64 = 500;
const EACH_MILLI: u64 = 250;

/// What may be taken.
#[derive(Clone, Copy, Debug)]
struct Saved {
    milli: u64,
    /// How many packets had been sent when it was reckoned.
    sent: u64,
}

impl Saved {
    fn new(sent: u64) -> Self {
        Self { milli: SAVED_MAX * 1_000, sent }
    }

    /// How many packets may be taken, now that so many have been sent, each of which earns so much.
    fn packets(&mut self, sent: u64, milli: u64) -> u64 {
        let earned = sent.saturating_sub(self.sent).saturating_mul(milli);
        self.milli = self.milli.saturating_add(earned).min(SAVED_MAX * 1_000);
        self.sent = sent;
        self.milli / 1_000
    }

    fn take(&mut self, packets: u64) {
        self.milli = self.milli.saturating_sub(packets.saturating_mul(1_000));
    }
}

#[derive(Debug)]
pub(super) struct Budgets {
    sent: u64,
    all: Saved,
    each: BTreeMap<u32, Saved>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { sent: 0, all: Saved::new(0), each: BTreeMap::new() }
    }
}

impl Budgets {
    /// So many packets were sent.
    pub fn earn(&mut self, packets: u64) {
        self.sent = self.sent.saturating_add(packets);
    }

    /// Takes as many as there are of so many packets, for this receiver.
    pub fn take(&mut self, receiver: u32, wanted: u8) -> u8 {
        if self.each.len() == RECEIVERS_MAX && !self.each.contains_key(&receiver) {
            self.each.pop_first();
        }
        let each = self.each.entry(receiver).or_insert_with(|| Saved::new(self.sent));
        let most = each.packets(self.sent, EACH_MILLI).min(self.all.packets(self.sent, ALL_MILLI));
        let taken = u64::from(wanted).min(most);
        each.take(taken);
        self.all.take(taken);
        u8::try_from(taken).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_receiver_takes_a_quarter_and_all_take_half() {
        let mut budgets = Budgets::default();
        assert_eq!(budgets.take(1, 100), 100);
        assert_eq!(budgets.take(1, 100), 28, "no more are saved");
        assert_eq!(budgets.take(2, 100), 0, "for all together");
        budgets.earn(40);
        assert_eq!([1, 2, 3].map(|receiver| budgets.take(receiver, 100)), [10, 10, 0]);
        budgets.earn(40);
        assert_eq!(budgets.take(3, 15), 15);
        assert_eq!(budgets.take(1, 100), 5);
    }

    #[test]
    fn what_is_known_of_receivers_is_bounded() {
        let mut budgets = Budgets::default();
        for receiver in 0..100_000 {
            budgets.earn(1_000);
            budgets.take(receiver, 1);
        }
        assert_eq!(budgets.each.len(), RECEIVERS_MAX);
        assert!(budgets.each.contains_key(&99_999) && !budgets.each.contains_key(&0));
    }
}
