//! [`RoundTrips`]: how long messages take to the other end and back, reported as one way.
//!
//! One way is half of the round trip: both directions are the same program, so nothing else can be
//! said without a common clock. Invariant: what the warm-up saw is not in the figures.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{cpu_s, histogram, percentile};

/// Measured round trips.
#[derive(Debug)]
pub struct RoundTrips {
    started: Instant,
    until: Duration,
    warm_up: Duration,
    cpu_s_before: Option<f64>,
    one_way_us: Vec<f64>,
}

impl RoundTrips {
    /// Measures for `window`, a fifth of which is the warm-up before it.
    #[must_use]
    pub fn new(window: Duration) -> Self {
        let warm_up = window / 5;
        Self {
            started: Instant::now(),
            until: warm_up + window,
            warm_up,
            cpu_s_before: None,
            one_way_us: Vec::with_capacity(1 << 16),
        }
    }

    /// Books a message that left at `sent` and is back now; true while there is more to measure.
    pub fn book(&mut self, sent: Instant) -> bool {
        let now = Instant::now();
        let since = now - self.started;
        if since >= self.warm_up {
            self.cpu_s_before.get_or_insert_with(cpu_s);
            self.one_way_us.push((now - sent).as_nanos() as f64 / 2000.0);
        }
        since < self.until
    }

    /// The figures, in microseconds one way.
    #[must_use]
    pub fn report(&mut self, is_spinning: bool) -> Value {
        self.one_way_us.sort_by(f64::total_cmp);
        let at = |share| percentile(&self.one_way_us, share);
        json!({
            "role": "ping",
            "wait": if is_spinning { "spin" } else { "block" },
            "count": self.one_way_us.len(),
            "p50_us": at(0.5),
            "p99_us": at(0.99),
            "p999_us": at(0.999),
            "max_us": at(1.0),
            "over_5_ms": self.one_way_us.iter().filter(|us| **us > 2_500.0).count(),
            "one_way_us": histogram(&self.one_way_us),
            "cpu_s": cpu_s() - self.cpu_s_before.unwrap_or(0.0),
        })
    }
}
