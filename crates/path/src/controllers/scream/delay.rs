//! [`Delay`]: how long packets wait on the way, by what their trips take longer than the shortest.
//!
//! ```text
//!   trip   |      .-.   .--.
//!          |  .--'   `-'    `--.     waits: the least of what a question took longer there, by
//!   base   |_'_________________ `_   both clocks, and of what question and answer took longer
//! ```
//!
//! The way there alone tells nothing of a queue on the way back, and the round trip nothing of
//! clocks that drift: what both show waits. The way back is empty now and then; where it never
//! seems to be, or seems emptier than that, the clocks have drifted, and the base of the way there
//! is mended. Where the base is no longer true, because the way got longer, less is sent for a
//! while, and it is measured anew.
//!
//! Sources: draft-ietf-ccwg-rfc8298bis-screamv2, sections on queue delay and on clock drift; RFC
//! 6817, section 2. That the round trip is looked at too is our own.

use dacapo_base::Time;
use std::time::Duration;

/// A sample more than the average counts so much (`QDELAY_AVG_G`); one that is less counts at once.
const AVERAGE_GAIN: f64 = 0.25;
const AVERAGE_GAIN_MAX: f64 = 0.5;

/// As of a smoothed round trip (RFC 6298).
const SLOW_GAIN: f64 = 0.125;

/// Within this time the way back is empty once.
const BACK_SPAN: Duration = Duration::from_secs(10);

/// By so much clocks drift apart in that at most, in nanoseconds: 1,000 ppm. What seems to wait on
/// the way back beyond that does.
const DRIFT_NS_MAX: i64 = 10_000_000;

/// A base that has not shown for so long is looked for.
const LOOK_AFTER: Duration = Duration::from_secs(10);

/// What waits no longer than this shows the base.
const SHOWS: Duration = Duration::from_millis(5);

/// How long less is sent while the base is looked for, and three round trips at least.
const ANEW_MIN: Duration = Duration::from_millis(200);
const ANEW_ROUNDS: u32 = 3;

/// See the module. Times are in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delay {
    base_one_way_ns: Option<i64>,
    base_rtt: Option<Duration>,
    /// What the newest packets waited, and what they do on average.
    pub queue_s: f64,
    pub average_s: f64,
    average_at: Time,
    /// The same on average, up and down.
    slow_s: f64,
    /// The least that seemed to wait on the way back since then.
    back_ns: Option<i64>,
    back_at: Time,
    /// When the base has shown last.
    shown_at: Time,
    /// Until when less is sent, so that it may.
    anew: Option<Time>,
}

impl Delay {
    /// A question took so long there and back, and so long there by two clocks, where that is
    /// known. `every` is how often the average is taken.
    pub fn handle(&mut self, now: Time, rtt: Duration, one_way_ns: Option<i64>, every: Duration) {
        let base_rtt = self.base_rtt.map_or(rtt, |base| base.min(rtt));
        let mut queue = rtt - base_rtt;
        self.base_rtt = Some(base_rtt);
        if let Some(there) = one_way_ns {
            queue = queue.min(self.wait_there(now, queue, there));
        }
        if queue <= SHOWS {
            self.shown_at = now;
        }
        self.queue_s = queue.as_secs_f64();
        self.slow_s += (self.queue_s - self.slow_s) * SLOW_GAIN;
        if now >= self.average_at + every {
            // As if it were taken that often, where answers come less often.
            let times = now.since(self.average_at).as_secs_f64() / every.as_secs_f64().max(1e-6);
            let gain = (times * AVERAGE_GAIN).min(AVERAGE_GAIN_MAX);
            self.average_at = now;
            let more = self.queue_s - self.average_s;
            self.average_s += if more > 0.0 { more * gain } else { more };
        }
    }

    /// How long packets wait on the way there, by two clocks.
    fn wait_there(&mut self, now: Time, queue: Duration, there_ns: i64) -> Duration {
        let base = self.base_one_way_ns.map_or(there_ns, |base| base.min(there_ns));
        let waited = there_ns.saturating_sub(base);
        let queue = i64::try_from(queue.as_nanos()).unwrap_or(i64::MAX);
        let back = queue.saturating_sub(waited);
        let least = self.back_ns.map_or(back, |least| least.min(back));
        self.back_ns = Some(least);
        self.base_one_way_ns = Some(base);
        if now >= self.back_at + BACK_SPAN {
            self.base_one_way_ns = Some(base.saturating_sub(least.min(DRIFT_NS_MAX)));
            (self.back_ns, self.back_at) = (None, now);
        }
        Duration::from_nanos(waited.unsigned_abs())
    }

    /// The base is measured anew from now on.
    pub fn begin_anew(&mut self, now: Time, round: Duration) {
        *self = Self { average_at: now, back_at: now, ..Self::default() };
        self.look(now, round);
    }

    /// Whether the base has not shown for long, because own packets or those of others like us hide
    /// it: who came when something waited already has one that is too long.
    pub fn is_hidden(&self, now: Time) -> bool {
        now >= self.shown_at + LOOK_AFTER
    }

    /// Less is sent for a while.
    pub fn look(&mut self, now: Time, round: Duration) {
        self.shown_at = now;
        self.anew = Some(now + ANEW_MIN.max(round * ANEW_ROUNDS));
    }

    /// The shortest round trip.
    pub fn base_rtt(&self) -> Duration {
        self.base_rtt.unwrap_or_default()
    }

    /// A round trip of which nothing waits on the way back. What waits is felt at once, and
    /// forgotten slowly.
    pub fn way(&self) -> Option<Duration> {
        let waits = self.slow_s.max(self.queue_s);
        Some(self.base_rtt? + Duration::try_from_secs_f64(waits).unwrap_or_default())
    }

    /// Whether less is sent, so that the base shows.
    pub fn is_anew(&self, now: Time) -> bool {
        self.anew.is_some_and(|until| now < until)
    }

    /// Until when that is.
    pub fn anew_until(&self) -> Option<Time> {
        self.anew
    }

    /// Nothing has left for long: what waited then waits no more.
    pub fn handle_idle(&mut self) {
        (self.queue_s, self.average_s, self.slow_s) = (0.0, 0.0, 0.0);
    }
}
