//! [`Growth`]: whether a window that holds the peer up is to be wider, or was better narrower.
//!
//! ```text
//!   the peer has used all of it --measure--> wider --a quarter faster?--> wider again
//!                                                          | no
//!                                                          '--> as it was, for a while
//! ```
//!
//! Where the way is long a window twice as wide carries twice as much; where it is full, what is
//! more only waits on it longer. So a window gets to one and a half to three times what the way
//! holds (decided here: no published description grows one).

use dacapo_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// After a step in vain none is tried for so long.
const REST: Duration = Duration::from_secs(5);

/// A rate is measured over so many windows: what comes in bursts is off by one of them.
const WINDOWS: u64 = 4;

/// Of the ends of the window that were told so many are remembered: as many are under way at once.
const TOLD_MAX: usize = 16;

/// What is known of a window's use.
#[derive(Debug, Default)]
pub struct Growth {
    /// How wide it may become.
    width_max: usize,
    /// How much of what all windows together may keep is taken by this one.
    taken: usize,
    /// Where it ended that the peer was told of, since it grew last, as far as the peer has not
    /// sent beyond.
    told_ends: VecDeque<u64>,
    /// The peer has used all of the window that it knew, and the user had read what came.
    is_used_up: bool,
    /// How wide it was before the last step.
    before: Option<usize>,
    /// Since when it is measured, and from which byte on.
    since: Option<(Time, u64)>,
    /// What came in a second before the last step, bytes.
    rate: Option<u64>,
    rests_until: Time,
}

impl Growth {
    /// Of a window that is so wide, and may become as wide as that.
    pub fn new(width: usize, width_max: usize) -> Self {
        Self { width_max, taken: width, ..Self::default() }
    }

    /// How much is taken by it of what all windows together may keep.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// It takes so much from now on; what is left for all changes by as much.
    pub fn take(&mut self, kept_max: usize, left: &mut usize) {
        let before = std::mem::replace(&mut self.taken, kept_max);
        *left = left.saturating_add(before).saturating_sub(kept_max);
    }

    /// How wide it may become.
    pub const fn width_max(&self) -> usize {
        self.width_max
    }

    /// The peer is told that the window, which is so wide, ends here.
    pub fn handle_told(&mut self, end: u64, width: usize) {
        if width >= self.width_max && self.before.is_none() {
            return;
        }
        self.told_ends.truncate(TOLD_MAX - 1);
        self.told_ends.push_back(end);
    }

    /// A packet has come that ends here: one that ends where the window did was cut short by it.
    /// What was told while something lacked does not count: there the way was full, or bad.
    pub fn handle_end(&mut self, right: u64, lacks: bool, is_read: bool) {
        if lacks {
            return self.told_ends.clear();
        }
        while self.told_ends.front().is_some_and(|end| *end < right) {
            self.told_ends.pop_front();
        }
        self.is_used_up |= is_read && self.told_ends.front() == Some(&right);
    }

    /// How wide the window is to be that is `width` wide, where all before `rseq` has come: at most
    /// by `left` bytes wider.
    pub fn adjust(&mut self, now: Time, rseq: u64, width: usize, left: usize) -> usize {
        if !std::mem::take(&mut self.is_used_up) {
            return width;
        }
        let more = width.min(self.width_max.saturating_sub(width));
        match self.judge(now, rseq, width) {
            Verdict::Wider if 0 < more && more <= left => {
                self.before = Some(width);
                self.told_ends.clear();
                width.saturating_add(more)
            }
            // The last step was worth it, and a further one cannot be tried.
            Verdict::Wider => {
                self.before = None;
                width
            }
            Verdict::Back => self.before.take().unwrap_or(width),
            Verdict::Stay => width,
        }
    }

    /// All of a window of so many bytes was used.
    fn judge(&mut self, now: Time, rseq: u64, width: usize) -> Verdict {
        if now < self.rests_until {
            return Verdict::Stay;
        }
        let Some((since, from)) = self.since else {
            self.since = Some((now, rseq));
            return Verdict::Stay;
        };
        let bytes = rseq.saturating_sub(from);
        if bytes < WINDOWS.saturating_mul(width as u64) {
            return Verdict::Stay;
        }
        let nanos = now.since(since).as_nanos().max(1);
        let rate = u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX);
        // What comes right after a step says little of it: the peer learns of it a way later.
        self.since = None;
        match self.rate.replace(rate) {
            Some(before) if rate < before.saturating_add(before / 4) => {
                (self.rate, self.rests_until) = (None, now + REST);
                Verdict::Back
            }
            _ => Verdict::Wider,
        }
    }
}

/// What is to become of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is too early to say.
    Stay,
    /// Twice as wide.
    Wider,
    /// As it was before the last step.
    Back,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses windows of a way that takes `rtt_ms` there and back and so many bytes a millisecond;
    /// the width at the end.
    fn width(rtt_ms: u64, line: u64) -> u64 {
        let (mut growth, mut window, mut before) = (Growth::default(), 64_000, 64_000);
        let (mut ms, mut rseq) = (1_000, 0);
        for _ in 0..200 {
            (ms, rseq) = (ms + rtt_ms + window / line, rseq + window);
            match growth.judge(Time::from_millis(ms), rseq, window as usize) {
                Verdict::Stay => {}
                Verdict::Wider => (before, window) = (window, 2 * window),
                Verdict::Back => return before,
            }
        }
        window
    }

    #[test]
    fn a_window_grows_to_what_the_way_holds_and_not_much_further() {
        for (rtt_ms, line) in [(40, 125_000), (40, 12_500), (100, 12_500), (20, 62_500)] {
            let share = width(rtt_ms, line) as f64 / (rtt_ms * line) as f64;
            assert!((1.0..3.0).contains(&share), "{rtt_ms} ms, {line} a ms: {share}");
        }
        assert_eq!(width(1, 12_500), 64_000, "it is wide enough from the first");
    }

    #[test]
    fn after_a_step_in_vain_none_is_tried_for_a_while() {
        let mut growth = Growth::default();
        let mut at = |ms: u64| growth.judge(Time::from_millis(ms), ms * 1_000, 50_000);
        let said = [0, 200, 300, 400, 500, 5_000, 5_501, 5_701].map(&mut at);
        let (stay, wider) = (Verdict::Stay, Verdict::Wider);
        assert_eq!(said, [stay, wider, stay, stay, Verdict::Back, stay, stay, wider]);
    }
}
