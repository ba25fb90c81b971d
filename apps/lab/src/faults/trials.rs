//! Rows whose run is a trial per seed: run, check, sum up, say.

use crate::fault::{Scale, Seen};
use crate::sweep::{Sum, sweep};
use dacapo_link::LinkConfig;
use dacapo_netlab::trial::{EachWay, Outcome, Trial, check, run};
use serde_json::{Value, json};
use std::time::Duration;

/// The reference: a round trip of 20 ms, nothing else.
pub const DELAY: Duration = Duration::from_millis(10);

/// A short name for durations.
pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A trial of one flow of 1,000 units over the reference with changes, which must complete, and in
/// which lost is exactly what the link took.
pub fn exact(seed: u64, change: impl FnOnce(&mut LinkConfig)) -> Trial {
    let mut link = LinkConfig { delay: DELAY, ..LinkConfig::default() };
    change(&mut link);
    Trial { exact: true, ..Trial::new(seed, EachWay::both(link)) }
}

/// What trials came to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Trials.
    pub trials: u64,
    /// Sessions that ended as usual.
    pub complete: u64,
    /// Units that were sent.
    pub sent: u64,
    /// Units that were delivered.
    pub delivered: u64,
    /// Units that were booked lost.
    pub lost: u64,
    /// Units that came again, and packets that modules dropped as repeated.
    pub repeated: u64,
    /// Packets that modules dropped as altered.
    pub altered: u64,
    /// Datagrams that came out of order.
    pub reordered: u64,
    /// Datagrams that came altered.
    pub corrupted: u64,
    /// Changes of epoch.
    pub changes: u64,
    /// Flows that failed with a reason.
    pub failed: u64,
    /// The slowest set-up.
    pub slowest: Duration,
    /// The most bytes out per byte in before an address was proved.
    pub amplification: f64,
    /// When the last end of a session that failed was told, from `connect` on.
    pub told: Duration,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        self.trials += 1;
        self.complete += u64::from(outcome.settled && outcome.error().is_none());
        for flow in &outcome.flows {
            let ledger = flow.received.clone().unwrap_or_default();
            self.sent += ledger.sent;
            self.delivered += ledger.delivered;
            self.lost += ledger.lost;
            self.repeated += ledger.duplicates;
            self.failed += u64::from(flow.failures > 0);
        }
        self.altered += outcome.dropped.0;
        self.repeated += outcome.dropped.1;
        for link in [&outcome.links.to_participant, &outcome.links.to_creator] {
            self.reordered += link.reordered;
            self.corrupted += link.corrupted_undetected;
        }
        self.changes += u64::from(outcome.changes.1);
        self.slowest = self.slowest.max(outcome.stages.ready.unwrap_or_default());
        self.told = self.told.max(outcome.stages.failed.unwrap_or_default());
        self.amplification = self.amplification.max(outcome.amplification);
    }

    /// What every row says first.
    #[must_use]
    pub fn head(&self) -> String {
        let share = self.lost as f64 * 100.0 / self.sent.max(1) as f64;
        format!(
            "{} of {} sessions ended as usual, {} of {} units delivered, {} reported lost \
             ({share:.2} %)",
            self.complete, self.trials, self.delivered, self.sent, self.lost
        )
    }

    /// The figures for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "trials": self.trials,
            "complete": self.complete,
            "units": { "sent": self.sent, "delivered": self.delivered, "lost": self.lost },
            "repeated_dropped": self.repeated,
            "altered_dropped": self.altered,
            "datagrams": { "reordered": self.reordered, "altered": self.corrupted },
            "changes": self.changes,
            "flows_failed": self.failed,
            "setup_slowest_s": self.slowest.as_secs_f64(),
            "amplification": self.amplification,
        })
    }

    /// The head, and what a row says besides.
    #[must_use]
    pub fn seen(&self, besides: &str) -> Seen {
        Seen::new(format!("{}; {besides}", self.head()), self.json())
    }
}

impl Sum for Tally {
    fn merge(&mut self, other: Self) {
        self.trials += other.trials;
        self.complete += other.complete;
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.lost += other.lost;
        self.repeated += other.repeated;
        self.altered += other.altered;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
        self.changes += other.changes;
        self.failed += other.failed;
        self.slowest = self.slowest.max(other.slowest);
        self.told = self.told.max(other.told);
        self.amplification = self.amplification.max(other.amplification);
    }
}

/// Runs and checks a trial for each seed.
pub fn trials(
    scale: &Scale,
    (short, full): (u64, u64),
    id: &str,
    trial: impl Fn(u64) -> Trial + Sync,
) -> Result<Tally, String> {
    sweep(scale, scale.seeds(short, full), id, |seed, tally: &mut Tally| {
        let trial = trial(seed);
        let outcome = run(&trial);
        tally.add(&outcome);
        check(&trial, &outcome)
    })
}
