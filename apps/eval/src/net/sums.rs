//! [`Sums`]: what became of units: sent = delivered + late + lost + dropped + unknown.

use dacapo::{Account, Direction};

/// What became of units: sent = delivered + late + lost + dropped + unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Handed over and sent.
    pub sent: u64,
    /// Received by the application.
    pub delivered: u64,
    /// Too late.
    pub late: u64,
    /// On the way.
    pub lost: u64,
    /// Given up by the receiver, such as for want of room.
    pub dropped: u64,
    /// Nobody can say.
    pub unknown: u64,
    /// Came twice.
    pub duplicates: u64,
    /// Handed over and not sent.
    pub not_sent: u64,
    /// There may be more.
    pub is_open: bool,
}

impl Sums {
    /// Of all flows of a session that go this way.
    pub fn of(account: &Account, direction: Direction) -> Self {
        let flows = account.flows.iter().filter(|flow| flow.direction == direction);
        let flows = flows.map(|flow| {
            let ledger = &flow.ledger;
            Self {
                sent: ledger.sent,
                delivered: ledger.delivered,
                late: ledger.late,
                lost: ledger.lost,
                dropped: ledger.dropped_count(),
                unknown: ledger.unknown,
                duplicates: ledger.duplicates,
                not_sent: flow.not_sent,
                is_open: ledger.sent_at_least || !flow.is_final,
            }
        });
        flows.fold(Self::default(), Self::plus)
    }

    /// Of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent.saturating_add(other.sent),
            delivered: self.delivered.saturating_add(other.delivered),
            late: self.late.saturating_add(other.late),
            lost: self.lost.saturating_add(other.lost),
            dropped: self.dropped.saturating_add(other.dropped),
            unknown: self.unknown.saturating_add(other.unknown),
            duplicates: self.duplicates.saturating_add(other.duplicates),
            not_sent: self.not_sent.saturating_add(other.not_sent),
            is_open: self.is_open || other.is_open,
        }
    }

    /// Everything that was sent is somewhere.
    pub fn closes(&self) -> bool {
        let parts = [self.late, self.lost, self.dropped, self.unknown];
        let sum = parts.into_iter().fold(self.delivered, u64::saturating_add);
        sum == self.sent && self.unknown == 0 && !self.is_open
    }

    /// The share that did not get to the application.
    pub fn loss(&self) -> f64 {
        let missing = self.sent.saturating_sub(self.delivered);
        if self.sent == 0 { 0.0 } else { missing as f64 / self.sent as f64 }
    }
}

/// The sum in words.
pub fn in_words(sums: &Sums) -> String {
    let Sums { sent, delivered, late, lost, dropped, unknown, duplicates, not_sent, .. } = sums;
    let verdict = if sums.closes() { "closes" } else { "DOES NOT CLOSE" };
    format!(
        "{sent} sent = {delivered} delivered + {late} late + {lost} lost + {dropped} dropped + \
         {unknown} unknown ({verdict}); {duplicates} duplicates, {not_sent} not sent"
    )
}
