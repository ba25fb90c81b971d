//! Set-ups by the hundred thousand: from `connect` to both ends ready, and which stage took long.
//!
//! ```text
//!   connect -open-> PeerOpen -offer-> Offered -path, answer-> creator ready -accept-> ready
//! ```

use crate::sweep::Sum;
use dacapo_base::Random;
use dacapo_link::{LinkConfig, Loss};
use dacapo_netlab::trial::{EachWay, Stages, Trial, set_up};
use serde_json::{Value, json};
use std::time::Duration;

/// A set-up that takes longer has failed.
pub const LIMIT: Duration = Duration::from_secs(10);

/// How long it is watched for, to tell late from never.
const WATCHED: Duration = Duration::from_secs(40);

/// What the links of a set-up do: loss both ways, a round trip of 1 to 300 ms, all equally likely.
#[must_use]
pub fn link(seed: u64, loss: Loss) -> LinkConfig {
    let mut random = Random::from_number(seed ^ 0x5E7);
    let rtt = Duration::from_micros(1_000 + random.below(299_001));
    LinkConfig { delay: rtt / 2, loss, ..LinkConfig::default() }
}

/// One set-up of a session of one flow over datagrams.
#[must_use]
pub fn one(seed: u64, link: LinkConfig) -> Stages {
    let mut trial = Trial::new(seed, EachWay::both(link));
    trial.time_max = WATCHED;
    set_up(&trial)
}

/// How long many things took; what never came is counted apart.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Sorted by [`Times::seal`].
    came: Vec<Duration>,
    /// How many never came.
    pub never: u64,
}

impl Times {
    /// Adds one.
    pub fn add(&mut self, time: Option<Duration>) {
        match time {
            Some(time) => self.came.push(time),
            None => self.never += 1,
        }
    }

    /// Adds others.
    pub fn merge(&mut self, other: Self) {
        self.came.extend(other.came);
        self.never += other.never;
    }

    /// Makes quantiles readable.
    pub fn seal(&mut self) {
        self.came.sort_unstable();
    }

    /// How many were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.came.len() as u64 + self.never
    }

    /// How many came within a time.
    #[must_use]
    pub fn within(&self, limit: Duration) -> u64 {
        self.came.partition_point(|time| *time <= limit) as u64
    }

    /// The share that came within a time, per cent.
    #[must_use]
    pub fn share(&self, limit: Duration) -> f64 {
        self.within(limit) as f64 * 100.0 / self.count().max(1) as f64
    }

    /// The time within which this share of all came; `None` when so many never came.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let place = (self.count() as f64 * share).ceil() as usize;
        self.came.get(place.max(1) - 1).copied()
    }

    /// p50, p99 and p99.99 in words.
    #[must_use]
    pub fn told(&self) -> String {
        let told = |share| match self.quantile(share) {
            Some(time) => format!("{:.2} s", time.as_secs_f64()),
            None => "never".to_owned(),
        };
        format!("p50 {}, p99 {}, p99.99 {}", told(0.5), told(0.99), told(0.9999))
    }

    /// The same for programs, seconds.
    #[must_use]
    pub fn json(&self) -> Value {
        let at = |share| self.quantile(share).map(|time| time.as_secs_f64());
        json!({
            "count": self.count(),
            "within_10_s": self.within(LIMIT),
            "never": self.never,
            "p50_s": at(0.5), "p90_s": at(0.9), "p99_s": at(0.99), "p99_9_s": at(0.999),
            "p99_99_s": at(0.9999),
        })
    }
}

/// What many set-ups took, stage by stage.
#[derive(Clone, Debug, Default)]
pub struct SetUps {
    /// From `connect` to both ends ready.
    pub ready: Times,
    /// From `connect` to the connection.
    pub open: Times,
    /// From there to the offer.
    pub offer: Times,
    /// From there to the answer at the creator, which waits for the data path.
    pub answer: Times,
    /// From there until the participant is ready too.
    pub accept: Times,
}

impl SetUps {
    /// Adds a set-up.
    pub fn add(&mut self, stages: &Stages) {
        let between =
            |from: Option<Duration>, to: Option<Duration>| Some(to?.saturating_sub(from?));
        self.ready.add(stages.ready);
        self.open.add(stages.open);
        self.offer.add(between(stages.open, stages.offered));
        self.answer.add(between(stages.offered, stages.creator_ready));
        self.accept.add(between(stages.creator_ready, stages.ready));
    }

    /// Makes quantiles readable.
    pub fn seal(&mut self) {
        let all = [&mut self.ready, &mut self.open, &mut self.offer, &mut self.answer];
        all.into_iter().chain([&mut self.accept]).for_each(Times::seal);
    }

    /// Stages for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "ready": self.ready.json(),
            "open": self.open.json(),
            "stages": {
                "offer": self.offer.json(),
                "answer": self.answer.json(),
                "accept": self.accept.json(),
            },
        })
    }
}

impl Sum for SetUps {
    fn merge(&mut self, other: Self) {
        self.ready.merge(other.ready);
        self.open.merge(other.open);
        self.offer.merge(other.offer);
        self.answer.merge(other.answer);
        self.accept.merge(other.accept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_count_what_never_came() {
        let mut times = Times::default();
        (1..=98).for_each(|s| times.add(Some(Duration::from_secs(s))));
        (0..2).for_each(|_| times.add(None));
        times.seal();
        assert_eq!(times.quantile(0.5), Some(Duration::from_secs(50)));
        assert_eq!(times.quantile(0.98), Some(Duration::from_secs(98)));
        assert_eq!(times.quantile(0.99), None);
        assert_eq!(times.within(LIMIT), 10);
        assert!((times.share(LIMIT) - 10.0).abs() < 1e-9);
        assert_eq!(times.told(), "p50 50.00 s, p99 never, p99.99 never");
    }
}
