//! [`Drift`]: follows a sender's clock that goes faster or slower than ours.
//!
//! ```text
//!   transit    .      '  .      .  '     arrival less the time by the map, as if nothing drifted
//!            .   .  '      . '   .
//!            ________.____________.__    the least of the last 10 s: what only the clocks make
//!   shown    ----------------------/     follows it, by 1 ms in a second at most
//! ```
//!
//! Jitter only adds to what a media frame takes, so the least of many is what the clocks make of it
//! and not the network (Fober, Orlarey, Letz, "Real time clock skew estimation over network
//! delays", 2005). A way that becomes longer for good looks the same, and is followed the same way.
//!
//! Invariants: between two arrivals what is shown moves by a thousandth of the time between them at
//! most, and by 1 ms; less than [`Drift::STILL`] is left alone; memory does not grow.

use dacapo_base::Time;
use std::time::Duration;

/// Of so many windows the least counts.
const WINDOWS: usize = 10;
const WINDOW_NS: u64 = 1_000_000_000;

/// With fewer media frames in them it is jitter that one would follow.
const ARRIVALS_MIN: u32 = 50;

/// What is shown moves by one of so many parts of the time: 0.1 %, which nobody hears.
const SLOW: i64 = 1_000;

/// It has caught up when so little is missing.
const CLOSE_NS: i64 = 500_000;

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    least_ns: i64,
    arrivals: u32,
}

/// By how much what is shown has moved.
#[derive(Clone, Debug, Default)]
pub(super) struct Drift {
    windows: [Window; WINDOWS],
    /// Which second of our clock the newest window is.
    second: u64,
    /// When it was looked at last.
    seen: Option<Time>,
    moved_ns: i64,
    is_moving: bool,
}

impl Drift {
    /// Less than this is left alone; and less than an eighth of the budget.
    const STILL: Duration = Duration::from_millis(5);

    /// How much later things are shown than by the map, in nanoseconds; negative for earlier.
    pub fn moved_ns(&self) -> i64 {
        self.moved_ns
    }

    /// A media frame has come, so many nanoseconds after its time by the map less `budget`.
    pub fn handle_arrival(&mut self, now: Time, transit_ns: i64, budget: Duration) {
        self.record(now, transit_ns);
        let passed = self.seen.map_or(0, |seen| now.since(seen).as_nanos());
        self.seen = Some(now);
        let Some(least_ns) = self.least_ns() else { return };
        let missing = least_ns.saturating_sub(self.moved_ns);
        let still = Self::STILL.min(budget.checked_div(8).unwrap_or_default());
        let still = i64::try_from(still.as_nanos()).unwrap_or(0);
        let bound = if self.is_moving { CLOSE_NS.min(still) } else { still };
        self.is_moving = missing.saturating_abs() > bound;
        if self.is_moving {
            let passed = i64::try_from(passed).unwrap_or(i64::MAX).min(WINDOW_NS.cast_signed());
            let most = passed.checked_div(SLOW).unwrap_or(0);
            self.moved_ns =
                self.moved_ns.saturating_add(missing.clamp(most.saturating_neg(), most));
        }
    }

    fn record(&mut self, now: Time, transit_ns: i64) {
        let second = now.as_nanos().checked_div(WINDOW_NS).unwrap_or(0);
        let passed = second.saturating_sub(self.second).min(WINDOWS as u64) as usize;
        if passed > 0 {
            self.windows.rotate_right(passed % WINDOWS);
            self.windows.iter_mut().take(passed).for_each(|window| *window = Window::default());
            self.second = second;
        }
        let Some(newest) = self.windows.first_mut() else { return };
        let is_first = newest.arrivals == 0;
        newest.least_ns = if is_first { transit_ns } else { newest.least_ns.min(transit_ns) };
        newest.arrivals = newest.arrivals.saturating_add(1);
    }

    /// The least of all windows, when enough has come.
    fn least_ns(&self) -> Option<i64> {
        let used = self.windows.iter().filter(|window| window.arrivals > 0);
        let arrivals = used.clone().fold(0_u32, |sum, it| sum.saturating_add(it.arrivals));
        let least = used.map(|window| window.least_ns).min();
        least.filter(|_| arrivals >= ARRIVALS_MIN)
    }
}
