//! [`Target`]: how long packets may wait before that counts as too much: 60 ms, and more beside
//! others that fill the queue and yield to losses alone.
//!
//! Who yields to 60 ms beside them gets nothing. They are there when packets are lost, or when
//! what waits varies: then the target follows what waits, up to 400 ms, and falls back when that
//! does.
//!
//! Source: draft-ietf-ccwg-rfc8298bis-screamv2, "Competing Flows Compensation"; means and variances
//! are moving ones here, instead of histories of 50 and 200 samples. Our own: a queue that goes
//! when less is sent was our own, whatever was lost in it; so the target rises only when what waits
//! has been above it for five seconds, in which all like us yield by halves. What waits so long,
//! whatever is yielded, and neither varies nor loses is no queue: the way got longer.

use dacapo_base::Time;
use std::time::Duration;

/// `QDELAY_TARGET_LO` and `QDELAY_TARGET_HI`, in seconds.
const LOW_S: f64 = 0.06;
const HIGH_S: f64 = 0.4;

/// How often it is looked at.
const EVERY: Duration = Duration::from_millis(50);

/// Of 50 and of 200 samples.
const MEAN_GAIN: f64 = 1.0 / 25.0;
const VARIANCE_GAIN: f64 = 1.0 / 100.0;

/// The share of round trips in which something was lost: the gain, and what shows others.
const LOSS_GAIN: f64 = 0.01;
const LOSSES_MIN: f64 = 0.002;

/// A queue that has been there for so long, whatever was done, is that of others.
const STANDS: Duration = Duration::from_secs(5);

/// What varies by more than this, in squares of the low target, is the queue of who yields to
/// losses alone, by halves. One that own windows of a few packets make varies by 0.1.
const VARIES: f64 = 0.5;

/// And what varies by less is no queue.
const STEADY: f64 = 0.05;

#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub target_s: f64,
    /// Of what waits, in low targets.
    mean: f64,
    slow_mean: f64,
    variance: f64,
    at: Time,
    /// When less than the low target waited last.
    low_at: Time,
    /// When less than half of it did, and the reference window of then.
    short_at: Time,
    short_bytes: f64,
    losses: f64,
    is_lost: bool,
    round_at: Time,
}

impl Target {
    pub fn new(now: Time) -> Self {
        Self {
            target_s: LOW_S,
            mean: 0.0,
            slow_mean: 0.0,
            variance: 0.0,
            at: now,
            low_at: now,
            short_at: now,
            short_bytes: 0.0,
            losses: 0.0,
            is_lost: false,
            round_at: now,
        }
    }

    /// From what on it is yielded to what waits: half of the target, and beside others, whom that
    /// does not move, all of it.
    pub fn least_s(&self) -> f64 {
        if self.is_raised() { self.target_s } else { LOW_S / 2.0 }
    }

    /// Whether others are there who yield to losses alone.
    pub fn is_raised(&self) -> bool {
        self.target_s > LOW_S
    }

    /// Something was lost.
    pub fn handle_lost(&mut self) {
        self.is_lost = true;
    }

    /// Whether something was lost in the last hundred round trips or so.
    fn has_losses(&self) -> bool {
        self.losses > LOSSES_MIN
    }

    /// Whether what seems to wait is neither own, as it does not go though half of the window has,
    /// nor that of others, so that the way got longer; once.
    pub fn poll_untrue(&mut self, now: Time, bytes: f64) -> bool {
        let stands = now >= self.short_at + STANDS && bytes <= self.short_bytes / 2.0;
        let is_untrue = stands && !self.has_losses() && self.variance < STEADY;
        if is_untrue {
            (self.short_at, self.short_bytes) = (now, bytes);
        }
        is_untrue
    }

    /// So much waits now, with such a reference window.
    pub fn handle(&mut self, now: Time, queue_s: f64, bytes: f64, round: Duration) {
        if now >= self.round_at + round {
            let lost = if self.is_lost { 1.0 } else { 0.0 };
            self.losses += (lost - self.losses) * LOSS_GAIN;
            (self.is_lost, self.round_at) = (false, now);
        }
        if now < self.at + EVERY {
            return;
        }
        self.at = now;
        let sample = queue_s / LOW_S;
        self.mean += (sample - self.mean) * MEAN_GAIN;
        let off = sample - self.slow_mean;
        self.slow_mean += off * VARIANCE_GAIN;
        self.variance += (off * off - self.variance) * VARIANCE_GAIN;
        if sample < 1.0 {
            self.low_at = now;
        }
        if sample < 0.5 {
            (self.short_at, self.short_bytes) = (now, bytes);
        }
        let is_others = self.has_losses() || self.variance > VARIES;
        self.adjust(now >= self.low_at + STANDS && is_others);
    }

    fn adjust(&mut self, is_others: bool) {
        let fitting_s = (self.mean + self.variance.sqrt()) * LOW_S;
        let target_s = match (is_others, self.has_losses()) {
            (true, true) => 1.5 * fitting_s,
            (true, false) => fitting_s,
            (false, _) => self.target_s * 0.9,
        };
        self.target_s = target_s.clamp(LOW_S, HIGH_S);
    }
}
