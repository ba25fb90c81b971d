//! The playout clock: when a media frame that arrived is to be shown.
//!
//! A map from media time to local time, fixed by the first arrival of a *generation* (a stretch of
//! continuous play; every jump or change of speed by command begins a new one) plus a start delay,
//! the jitter budget. The caller keeps the media frame until the time that it is given; no clock is
//! read here.
//!
//! ```text
//!   media time   m0     m1     m2     m3        speed s: 1 media second takes 1/s seconds
//!   arrival      |  .   |    . |.     |       . (each '.' an arrival)
//!   shown           |<budget>m0     m1     m2     m3
//!                            ^ at(m) = at(m0) + (m - m0) / s            m3 arrived late: skipped
//! ```
//!
//! A sender's clock that goes up to 1,000 ppm faster or slower is followed without a jump: what is
//! shown moves by 1 ms in a second at most. Where the budget has a least, as much of it is kept as
//! arrivals use (`adapting.rs`).
//!
//! Verdicts: [`Verdict::Show`] at a time, [`Verdict::Late`] (its time is over, the previous
//! picture stayed), [`Verdict::Early`] (further ahead than anybody should send),
//! [`Verdict::Stale`] (of a generation before the newest one), [`Verdict::Duplicate`].
//!
//! Invariants: nothing of a generation before the newest one is ever shown; memory is bounded and
//! does not grow; generations, indexes and media time wrap around; when arrivals do not fit the
//! map any more (the sender paused, the delay of the network changed), the map is made anew after
//! a bounded number of them.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

mod adapting;
mod drift;
mod lateness;

pub use lateness::{Lateness, LatenessStats};

use adapting::Adapting;
use dacapo_base::Time;
use drift::Drift;
use std::time::Duration;

/// How fast media time goes, and in which direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speed {
    permille: i32,
}

impl Speed {
    /// Real time.
    pub const NORMAL: Self = Self { permille: 1_000 };
    /// The highest speed in thousandths, forward or backward.
    pub const PERMILLE_MAX: i32 = 1_000_000;

    /// A speed in thousandths of real time, negative for backward; nothing for 0, which never
    /// shows anything, and beyond [`Speed::PERMILLE_MAX`].
    #[must_use]
    pub fn from_permille(permille: i32) -> Option<Self> {
        let magnitude = permille.unsigned_abs();
        (1..=Self::PERMILLE_MAX.unsigned_abs()).contains(&magnitude).then_some(Self { permille })
    }

    /// The speed in thousandths of real time.
    #[must_use]
    pub const fn permille(self) -> i32 {
        self.permille
    }

    /// Local nanoseconds in which `media_ns` pass.
    fn local_ns(self, media_ns: i64) -> i128 {
        let scaled = i128::from(media_ns).saturating_mul(1_000);
        scaled.checked_div(i128::from(self.permille)).unwrap_or(0)
    }

    /// Media nanoseconds that pass in `local_ns`.
    fn media_ns(self, local_ns: i64) -> i64 {
        let scaled = i128::from(local_ns).saturating_mul(i128::from(self.permille));
        clamp(scaled.checked_div(1_000).unwrap_or(0))
    }
}

/// What the application wants of the playout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Delay between the first arrival of a generation and its showing: what jitter may use up.
    pub budget: Duration,
    /// The least of the budget, where no more of it is to be kept than arrivals use.
    pub budget_min: Option<Duration>,
    /// How much further ahead than the budget a media frame may be, before it is refused.
    pub ahead_max: Duration,
    /// Media frames in a row, late or early, after which the map is made anew; 0 for never.
    pub resync_count: u32,
    /// The speed to begin with.
    pub speed: Speed,
}

impl Default for Config {
    /// 100 ms of budget, all of it, 10 s ahead, anew after 25, real time.
    fn default() -> Self {
        Self {
            budget: Duration::from_millis(100),
            budget_min: None,
            ahead_max: Duration::from_secs(10),
            resync_count: 25,
            speed: Speed::NORMAL,
        }
    }
}

/// What to do with a media frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Show it at that time, which is not before now.
    Show {
        /// When.
        at: Time,
    },
    /// Drop it: its time is over.
    Late {
        /// Since how long.
        by: Duration,
    },
    /// Drop it: its time is further away than the limit.
    Early {
        /// By how much it is beyond the limit.
        by: Duration,
    },
    /// Drop it: it belongs to before the last jump.
    Stale,
    /// Drop it: it has been here.
    Duplicate,
}

/// What happened so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlayoutStats {
    /// Media frames that came in time.
    pub shown: u64,
    /// Media frames that came too late and were not shown.
    pub late: u64,
    /// Media frames that were too far ahead and were not shown.
    pub early: u64,
    /// Media frames that were reported lost.
    pub lost: u64,
    /// Times that the previous picture stayed instead of the next one: lost and late ones.
    pub repeated: u64,
    /// Media frames of a generation before the newest one.
    pub stale: u64,
    /// Media frames that came again.
    pub duplicates: u64,
    /// Times that the map was made anew because arrivals did not fit it.
    pub resyncs: u64,
    /// How much later media frames are shown than when the generation began, because the sender's
    /// clock is slower or the way has become longer; negative for earlier. In nanoseconds.
    pub moved_ns: i64,
    /// How much of the budget is kept.
    pub kept: Duration,
    /// Arrival minus time of showing, of those in time (negative) and late (positive).
    pub lateness: LatenessStats,
}

/// Where media time meets local time.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    at: Time,
    media_ns: u64,
}

/// The clock of one stream at its receiver.
///
/// ```
/// use dacapo_base::Time;
/// use dacapo_media::playout::{Config, Playout, Verdict};
/// let mut playout = Playout::new(Config::default());
/// let first = playout.handle_arrival(Time::from_millis(500), 0, 0, 0);
/// assert_eq!(first, Verdict::Show { at: Time::from_millis(600) });
/// let second = playout.handle_arrival(Time::from_millis(610), 0, 40_000_000, 1);
/// assert_eq!(second, Verdict::Show { at: Time::from_millis(640) });
/// ```
#[derive(Clone, Debug)]
pub struct Playout {
    config: Config,
    speed: Speed,
    generation: Option<u32>,
    anchor: Option<Anchor>,
    drift: Drift,
    adapting: Adapting,
    /// How much of the budget flows want that are shown together with this one.
    together: Duration,
    misfit_count: u32,
    /// The index that was last seen in each place, by its lowest bits.
    seen: [Option<u64>; Self::SEEN_COUNT],
    stats: PlayoutStats,
    lateness: Lateness,
}

impl Playout {
    /// Media frames among which duplicates are found; a power of two.
    const SEEN_COUNT: usize = 64;

    /// A clock that starts with the first arrival.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            speed: config.speed,
            adapting: Adapting::new(config.budget_min, config.budget),
            together: Duration::ZERO,
            config,
            generation: None,
            anchor: None,
            drift: Drift::default(),
            misfit_count: 0,
            seen: [None; Self::SEEN_COUNT],
            stats: PlayoutStats::default(),
            lateness: Lateness::default(),
        }
    }

    /// Says what to do with a media frame that arrived `now`. One of a newer generation begins
    /// that generation, as [`Playout::jump`] does.
    ///
    /// `media_time_ns` and `index` are its place in the media, both may wrap around.
    pub fn handle_arrival(
        &mut self,
        now: Time,
        generation: u32,
        media_time_ns: u64,
        index: u64,
    ) -> Verdict {
        match self.generation.map(|newest| generation.wrapping_sub(newest).cast_signed()) {
            Some(age) if age < 0 => {
                self.stats.stale = self.stats.stale.saturating_add(1);
                return Verdict::Stale;
            }
            Some(0) => {}
            _ => self.jump(generation),
        }
        if self.is_seen(index) {
            self.stats.duplicates = self.stats.duplicates.saturating_add(1);
            return Verdict::Duplicate;
        }
        let at = self.time_of(now, media_time_ns);
        self.judge(now, at, media_time_ns)
    }

    /// Books `count` media frames that will not come; the previous picture stays for each.
    pub fn handle_gap(&mut self, count: u64) {
        self.stats.lost = self.stats.lost.saturating_add(count);
        self.stats.repeated = self.stats.repeated.saturating_add(count);
    }

    /// Begins a generation: everything of earlier ones is stale from now on, and the next arrival
    /// is shown one budget later. Does nothing for the present generation and earlier ones.
    pub fn jump(&mut self, generation: u32) {
        let is_newer =
            self.generation.is_none_or(|newest| generation.wrapping_sub(newest).cast_signed() > 0);
        if is_newer {
            self.generation = Some(generation);
            self.anchor = None;
            self.drift = Drift::default();
            self.misfit_count = 0;
            self.seen = [None; Self::SEEN_COUNT];
        }
    }

    /// Changes the speed from `now` on, without a jump: what is shown now stays where it is.
    pub fn set_speed(&mut self, now: Time, speed: Speed) {
        let by = self.moved_ns().saturating_neg();
        if let Some(anchor) = &mut self.anchor {
            // By the map, which knows nothing of drift, and of the budget that is kept.
            let at = moved(now, by);
            let passed = self.speed.media_ns(anchor.at.nanos_until(at));
            *anchor = Anchor { at, media_ns: anchor.media_ns.wrapping_add_signed(passed) };
        }
        self.speed = speed;
    }

    /// When the media frame of that media time is shown; nothing before the first arrival.
    #[must_use]
    pub fn show_time(&self, media_time_ns: u64) -> Option<Time> {
        let at = self.by_map(media_time_ns)?.saturating_add(i128::from(self.moved_ns()));
        Some(Time::from_nanos(u64::try_from(at.max(0)).unwrap_or(u64::MAX)))
    }

    /// How much later than by the map.
    fn moved_ns(&self) -> i64 {
        self.drift.moved_ns().saturating_add(self.adapting.moved_ns())
    }

    /// How much of the budget there should be, by what has come: to be told to those that are shown
    /// together with it.
    #[must_use]
    pub fn wanted(&self) -> Duration {
        self.adapting.wanted()
    }

    /// Flows that are shown together with this one want so much of the budget.
    pub fn set_together(&mut self, wanted: Duration) {
        self.together = wanted;
    }

    /// When it is shown as far as no clock drifts and all of the budget is kept, in nanoseconds.
    fn by_map(&self, media_time_ns: u64) -> Option<i128> {
        let anchor = self.anchor?;
        let media_ns = media_time_ns.wrapping_sub(anchor.media_ns).cast_signed();
        let local_ns = self.speed.local_ns(media_ns);
        Some(i128::from(anchor.at.as_nanos()).saturating_add(local_ns))
    }

    /// The newest generation; nothing before the first arrival or jump.
    #[must_use]
    pub fn generation(&self) -> Option<u32> {
        self.generation
    }

    /// What happened so far, over all generations.
    #[must_use]
    pub fn stats(&self) -> PlayoutStats {
        let (moved_ns, kept) = (self.drift.moved_ns(), self.adapting.kept());
        PlayoutStats { moved_ns, kept, lateness: self.lateness.stats(), ..self.stats.clone() }
    }

    fn is_seen(&mut self, index: u64) -> bool {
        let place = (index as usize) & const { Self::SEEN_COUNT - 1 };
        self.seen.get_mut(place).is_some_and(|seen| seen.replace(index) == Some(index))
    }

    /// When to show it, by the map that there is or that it begins.
    fn time_of(&mut self, now: Time, media_ns: u64) -> Time {
        if self.anchor.is_none() {
            self.anchor_at(now, media_ns);
        }
        let by_map = self.by_map(media_ns).unwrap_or_default();
        let budget = self.config.budget;
        let transit = i128::from(after(now, budget).as_nanos()).saturating_sub(by_map);
        self.drift.handle_arrival(now, clamp(transit), budget);
        // What the clocks make of it is no use of the budget.
        let used = transit.saturating_sub(i128::from(self.drift.moved_ns()));
        self.adapting.handle_arrival(now, clamp(used), self.together);
        self.show_time(media_ns).unwrap_or(now)
    }

    fn anchor_at(&mut self, now: Time, media_ns: u64) -> Time {
        let at = after(now, self.config.budget);
        self.anchor = Some(Anchor { at, media_ns });
        self.drift = Drift::default();
        self.misfit_count = 0;
        moved(at, self.adapting.moved_ns())
    }

    fn judge(&mut self, now: Time, at: Time, media_ns: u64) -> Verdict {
        let limit = after(after(now, self.config.budget), self.config.ahead_max);
        let misfit = if now > at {
            Some(Verdict::Late { by: now.since(at) })
        } else if at > limit {
            Some(Verdict::Early { by: at.since(limit) })
        } else {
            None
        };
        let Some(misfit) = misfit else {
            self.misfit_count = 0;
            return self.show(now, at);
        };
        self.misfit_count = self.misfit_count.saturating_add(1);
        if self.config.resync_count > 0 && self.misfit_count >= self.config.resync_count {
            self.stats.resyncs = self.stats.resyncs.saturating_add(1);
            self.adapting.begin_anew();
            let at = self.anchor_at(now, media_ns);
            return self.show(now, at);
        }
        self.book_misfit(misfit, now, at);
        misfit
    }

    fn show(&mut self, now: Time, at: Time) -> Verdict {
        self.stats.shown = self.stats.shown.saturating_add(1);
        self.lateness.record(at.nanos_until(now));
        Verdict::Show { at }
    }

    fn book_misfit(&mut self, misfit: Verdict, now: Time, at: Time) {
        if matches!(misfit, Verdict::Early { .. }) {
            self.stats.early = self.stats.early.saturating_add(1);
            return;
        }
        self.stats.late = self.stats.late.saturating_add(1);
        self.stats.repeated = self.stats.repeated.saturating_add(1);
        self.lateness.record(at.nanos_until(now));
    }
}

/// `wait` after `now`, saturating as `Time` does.
#[allow(clippy::arithmetic_side_effects)]
fn after(now: Time, wait: Duration) -> Time {
    now + wait
}

/// So many nanoseconds later, or earlier.
fn moved(at: Time, by_ns: i64) -> Time {
    Time::from_nanos(at.as_nanos().saturating_add_signed(by_ns))
}

fn clamp(value: i128) -> i64 {
    let bounds = (i128::from(i64::MIN), i128::from(i64::MAX));
    i64::try_from(value.clamp(bounds.0, bounds.1)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
