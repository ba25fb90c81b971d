//! [`Reference`]: about how many bytes are to be in flight: less after losses, marks and delay,
//! once in a while, and all the time a little more.
//!
//! ```text
//!   window |          ......knee.......        near the knee, where it was too much last, slowly;
//!          |     .---'    |    .---'   |  .--  and after a hundred round trips without
//!          |  .-'         | .-'        |.-'    congestion by a share of itself
//!          |-'            |'           |'
//! ```
//!
//! Source: draft-ietf-ccwg-rfc8298bis-screamv2, "Reference Window Update". Bytes are fractions
//! here, and IEEE's basic operations give the same on every machine.

use dacapo_base::Time;
use std::time::Duration;

/// `VIRTUAL_RTT`: who is nearer grows and yields as if so far, and nobody yields less often.
pub(super) const ROUND: Duration = Duration::from_millis(25);

/// Who is further away grows as fast as if so far, which a step in each round trip would not give:
/// as TCP Hybla has it, of whom others at the same link are much nearer.
const AWAY: Duration = Duration::from_millis(100);

/// `BETA_LOSS`: what is left after a loss.
const LEFT_LOST: f64 = 0.7;

/// `MUL_INCREASE_FACTOR`: the share of itself by which it grows in a round trip.
const SHARE_MORE: f64 = 0.02;

/// `POST_CONGESTION_DELAY_RTT`: after so many round trips without congestion that is done fully.
const CALM_ROUNDS: u32 = 100;

/// `BYTES_IN_FLIGHT_HEAD_ROOM`: it is no more than so many times what was in flight.
const HEAD_ROOM: f64 = 1.5;

/// The knee is moved no more often than this many round trips.
const KNEE_ROUNDS: u32 = 10;

/// Near the knee it grows and yields by this share at least.
const NEAR_MIN: f64 = 0.25;

/// The smallest, in packets.
const PACKETS_MIN: f64 = 2.0;

/// Why it is to be less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sign {
    /// Packets are lost that left after the last time.
    Lost,
    /// So large a share of packets comes with a mark.
    Marked { share: f64, is_steady: bool },
    /// What waits is so far between half of the target and all of it, 0 to 1.
    Waits(f64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub bytes: f64,
    /// The longest packet.
    pub mss: f64,
    knee: f64,
    knee_at: Option<Time>,
    /// When a loss or mark was heard of last, and when it was made less.
    congested: Option<Time>,
    yielded: Option<Time>,
    /// The most in flight in this round trip, and in the one before.
    flight: f64,
    flight_before: f64,
    round_at: Time,
}

impl Reference {
    pub fn new(now: Time, mss: f64, bytes: f64) -> Self {
        Self {
            bytes,
            mss,
            knee: 1.0,
            knee_at: None,
            congested: None,
            yielded: None,
            flight: 0.0,
            flight_before: 0.0,
            round_at: now,
        }
    }

    fn least(&self) -> f64 {
        PACKETS_MIN * self.mss
    }

    /// Whether nothing was heard yet of what was too much.
    pub fn is_first(&self) -> bool {
        self.yielded.is_none()
    }

    /// So much is in flight.
    pub fn note_flight(&mut self, now: Time, bytes: u64, rtt: Duration) {
        if now >= self.round_at + rtt {
            (self.flight_before, self.flight, self.round_at) = (self.flight, 0.0, now);
        }
        self.flight = self.flight.max(bytes as f64);
    }

    /// A loss or a mark was heard of.
    pub fn note_congested(&mut self, now: Time) {
        self.congested = Some(now);
    }

    /// Whether it may be made less again.
    pub fn may_yield(&self, now: Time, rtt: Duration) -> bool {
        self.yielded.is_none_or(|at| now >= at + rtt.min(ROUND))
    }

    /// How far it is from the knee, 0.1 to 1.
    fn far(&self) -> f64 {
        let off = (self.bytes - self.knee) / self.knee * 8.0;
        (off * off).clamp(0.1, 1.0)
    }

    /// Makes it less.
    pub fn yield_to(&mut self, now: Time, sign: Sign, rtt: Duration) {
        if self.knee_at.is_none_or(|at| now >= at + rtt * KNEE_ROUNDS) {
            (self.knee, self.knee_at) = (self.bytes, Some(now));
        }
        let passed = self.yielded.map_or(rtt, |at| now.since(at)).clamp(ROUND.min(rtt), rtt);
        let part = passed.as_secs_f64() / rtt.as_secs_f64().max(1e-6);
        let left = match sign {
            Sign::Lost => LEFT_LOST,
            Sign::Marked { share, is_steady } => {
                self.forget_unused(now, rtt);
                let near = if is_steady { self.far().max(NEAR_MIN) } else { 1.0 };
                1.0 - share / 2.0 * part * near
            }
            Sign::Waits(share) => 1.0 - share / 2.0 * part,
        };
        self.bytes = (self.bytes * left).max(self.least());
        self.yielded = Some(now);
    }

    /// After a long time without congestion it may be more than is in flight by far.
    fn forget_unused(&mut self, now: Time, rtt: Duration) {
        let long = rtt.max(ROUND) * CALM_ROUNDS;
        if self.flight_before > 0.0 && self.yielded.is_none_or(|at| now > at + long) {
            self.bytes = self.bytes.min(self.flight_before.max(self.least()));
        }
    }

    /// So many bytes came without a mark; `base` is the round trip through empty queues.
    pub fn grow(&mut self, now: Time, bytes: u64, rtt: Duration, base: Duration) {
        let round = rtt.max(ROUND).as_secs_f64();
        let calm = self.congested.map_or(1.0, |at| {
            (now.since(at).as_secs_f64() / (round * f64::from(CALM_ROUNDS))).clamp(0.0, 1.0)
        });
        let far = self.far();
        let near = (rtt.as_secs_f64() / ROUND.as_secs_f64()).min(1.0);
        let away = (base.as_secs_f64() / AWAY.as_secs_f64()).max(1.0);
        let steps = 1.0 + SHARE_MORE * self.bytes / self.mss * calm * far;
        let ratio = (self.mss / self.bytes).min(1.0);
        let grown = self.bytes + bytes as f64 * ratio * near * away * far.max(NEAR_MIN) * steps;
        if grown <= self.mss + self.flight.max(self.flight_before) * HEAD_ROOM {
            self.bytes = grown;
        }
    }

    /// Begins again: with so many bytes at most, and nothing known of what was in flight.
    pub fn begin_again(&mut self, bytes: f64) {
        self.bytes = self.bytes.min(bytes).max(self.least());
        (self.flight, self.flight_before) = (0.0, 0.0);
    }

    /// Longer packets leave than before.
    pub fn note_len(&mut self, len: f64, packets_first: f64) {
        if len > self.mss {
            self.mss = len;
            let least = if self.is_first() { packets_first * len } else { self.least() };
            self.bytes = self.bytes.max(least);
        }
    }
}
