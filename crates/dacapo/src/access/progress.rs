//! [`Progress`]: what a sink shows of itself while it works.
//!
//! A handle that the sink and whoever displays it share.
//!
//! ```text
//!   sent (sender's clock) --offset--> our clock       delay = arrived - sent   the network's part
//!   arrived -> shown at                               lateness = arrived - shown at, < 0: in time
//! ```
//!
//! Invariants: bounded memory; a poisoned lock is used all the same, for nothing in it can be half
//! done that matters.

use super::histogram::{Histogram, Summary};
use dacapo_base::Time;
use dacapo_core::Ending;
use dacapo_path::ClockOffset;
use dacapo_wire::media::{FLAG_TRICK, Header};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most errors that are kept.
const ERRORS_MAX: usize = 8;

/// The most runs of passes that are kept; a medium that does not change has one.
const PASSES_MAX: usize = 64;

/// What a sink shows of itself; copies share it.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    now: Snapshot,
    delay_all: Histogram,
    delay_interval: Histogram,
}

/// Passes of a medium one after the other that were the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Passes {
    /// How many.
    pub count: u64,
    /// The hash of each, as `dacapo inspect` has it of the stream.
    pub sha256: String,
}

/// Where the newest unit of a medium is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Newest {
    /// Its generation.
    pub generation: u32,
    /// It is of FF or FR.
    pub stepping: bool,
    /// Its index.
    pub index: u32,
    /// Its place in the medium, in nanoseconds.
    pub position_ns: u64,
    /// From when it was sent, by the sender's clock, to when it is shown, by ours, in nanoseconds;
    /// of that which clocks drift it has what was followed.
    pub shown_after_ns: i64,
}

/// The figures of a sink at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// The flow's name.
    pub flow: String,
    /// Media frames that were taken: pictures, pieces of sound, or units of bytes.
    pub media_frames: u64,
    /// Their bytes, without the medium header.
    pub bytes: u64,
    /// Units that did not come.
    pub lost: u64,
    /// Units that came too late to be used.
    pub late: u64,
    /// Times that the previous picture, or silence, stood in for a unit.
    pub repeated: u64,
    /// Units of before a jump, which are not used.
    pub old_generation: u64,
    /// Units that were refused for another reason: malformed, no room, no file.
    pub refused: u64,
    /// Media frames that a player did not take in time and that were replaced.
    pub player_dropped: u64,
    /// One-way delay of the network, of all units; nothing until the clocks are compared.
    pub delay: Option<Summary>,
    /// The same, since the last [`Progress::interval`].
    pub delay_interval: Option<Summary>,
    /// The most by which the delays may be wrong, in nanoseconds; 0 when both ends read one clock.
    pub delay_error_ns: u64,
    /// Arrival minus time of showing; negative is in time.
    pub lateness: Summary,
    /// How long units are held at present, from the shortest delay on, in nanoseconds.
    pub playout_ns: u64,
    /// The newest unit.
    pub newest: Newest,
    /// Of a medium that is repeated, the passes that came whole and in order; at most 64 that
    /// differ.
    pub passes: Vec<Passes>,
    /// What went wrong, at most 8 different things.
    pub errors: Vec<String>,
    /// The file that is written.
    pub saved: Option<PathBuf>,
    /// The flow has ended.
    pub ended: bool,
}

impl Snapshot {
    /// How much later this flow is shown than another of the same sender, in nanoseconds, negative
    /// for earlier; nothing before both have shown something.
    #[must_use]
    pub fn skew_ns(&self, other: &Self) -> Option<i64> {
        let have_both = self.lateness.count > 0 && other.lateness.count > 0;
        let (own, its) = (self.newest.shown_after_ns, other.newest.shown_after_ns);
        have_both.then(|| own.wrapping_sub(its))
    }
}

impl Progress {
    /// The figures of a flow of this name, all 0.
    #[must_use]
    pub fn new(flow: &str) -> Self {
        let progress = Self::default();
        progress.update(|now| flow.clone_into(&mut now.flow));
        progress
    }

    /// The figures now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let counts = self.lock();
        snapshot(&counts)
    }

    /// The figures now; the next interval begins.
    #[must_use]
    pub fn interval(&self) -> Snapshot {
        let mut counts = self.lock();
        let found = snapshot(&counts);
        counts.delay_interval.take();
        found
    }

    /// Changes the figures.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Snapshot)) {
        change(&mut self.lock().now);
    }

    /// Books that a pass has come whole.
    pub(crate) fn pass(&self, sha256: String) {
        self.update(|now| {
            let has_capacity = now.passes.len() < PASSES_MAX;
            match now.passes.last_mut() {
                Some(last) if last.sha256 == sha256 => last.count = last.count.saturating_add(1),
                _ if has_capacity => now.passes.push(Passes { count: 1, sha256 }),
                _ => {}
            }
        });
    }

    /// Keeps an error, once.
    pub(crate) fn error(&self, text: &str) {
        self.update(|now| {
            if now.errors.len() < ERRORS_MAX && !now.errors.iter().any(|known| known == text) {
                now.errors.push(text.to_owned());
            }
        });
    }

    /// Books that the flow has ended, and why if that is not as it should be.
    pub(crate) fn ended(&self, ending: &Ending) {
        self.update(|now| now.ended = true);
        if let Ending::SourceFailed(text) | Ending::Abnormal(text) = ending {
            self.error(text);
        }
    }

    /// Books where a unit is in the medium, how long it was on its way, and when it is shown, if it
    /// is.
    pub(crate) fn arrived(
        &self,
        at: Time,
        header: &Header,
        clock: &ClockOffset,
        shown: Option<Time>,
    ) {
        let mut counts = self.lock();
        let after = |shown: Time| shown.as_nanos().wrapping_sub(header.sent_ns).cast_signed();
        counts.now.newest = Newest {
            shown_after_ns: shown.map_or(counts.now.newest.shown_after_ns, after),
            generation: header.generation,
            stepping: header.flags & FLAG_TRICK != 0,
            index: header.index,
            position_ns: header.media_ns,
        };
        if !clock.is_known() {
            return;
        }
        let delay = i128::from(at.as_nanos()) - clock.to_local(header.sent_ns);
        let delay = delay.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        counts.now.delay_error_ns = clock.error_ns;
        counts.delay_all.record(delay);
        counts.delay_interval.record(delay);
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn snapshot(counts: &Counts) -> Snapshot {
    let summary = |histogram: &Histogram| {
        let summary = histogram.summary();
        (summary.count > 0).then_some(summary)
    };
    Snapshot {
        delay: summary(&counts.delay_all),
        delay_interval: summary(&counts.delay_interval),
        ..counts.now.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_is_mapped_to_our_clock_and_unknown_before_the_clocks_are_compared() {
        let progress = Progress::new("video");
        let header = Header { sent_ns: 5_000_000, ..Header::default() };
        progress.arrived(Time::from_millis(7), &header, &ClockOffset::default(), None);
        assert_eq!(progress.snapshot().delay, None);
        progress.arrived(Time::from_millis(7), &header, &ClockOffset::exact(), None);
        let mut ahead = ClockOffset::default();
        ahead.handle_exchange(1_000, 4_001_100, 4_001_100, 1_200);
        let header = Header { sent_ns: 9_000_000, ..Header::default() };
        progress.arrived(Time::from_millis(9), &header, &ahead, None);
        let seen = progress.interval();
        let delay = seen.delay.unwrap();
        assert_eq!((delay.count, delay.ns_min, delay.ns_max), (2, 2_000_000, 4_000_000));
        assert_eq!((seen.delay_interval, seen.delay_error_ns), (Some(delay), 100));
        assert_eq!(progress.snapshot().delay_interval, None);
    }

    #[test]
    fn what_is_shown_later_than_another_flow_of_its_sender_is_skew() {
        let shown = |ms: u64, sent_ns| {
            let progress = Progress::new("flow");
            let header = Header { sent_ns, ..Header::default() };
            let shown = Some(Time::from_millis(ms));
            progress.arrived(Time::ZERO, &header, &ClockOffset::default(), shown);
            progress.update(|now| now.lateness.count = 1);
            progress.snapshot()
        };
        // The sender's clock is far ahead, and wraps.
        let (sound, picture) = (shown(140, u64::MAX - 9), shown(200, 20_000_000));
        assert_eq!(picture.skew_ns(&sound), Some(40_000_000 - 10));
        assert_eq!(sound.skew_ns(&picture), Some(10 - 40_000_000));
        assert_eq!(sound.skew_ns(&Snapshot::default()), None, "nothing is shown of it");
    }

    #[test]
    fn passes_are_counted_by_their_hash_and_are_bounded() {
        let progress = Progress::new("video");
        for hash in ["a", "a", "b", "a"] {
            progress.pass(hash.to_owned());
        }
        let runs: Vec<_> = progress.snapshot().passes;
        let runs: Vec<_> = runs.iter().map(|it| (it.count, it.sha256.as_str())).collect();
        assert_eq!(runs, [(2, "a"), (1, "b"), (1, "a")]);
        (0..100).for_each(|number| progress.pass(number.to_string()));
        assert_eq!(progress.snapshot().passes.len(), PASSES_MAX);
    }

    #[test]
    fn errors_are_kept_once_and_are_bounded() {
        let progress = Progress::new("video");
        for number in 0..40 {
            progress.error(&format!("error {}", number / 2));
        }
        assert_eq!(progress.snapshot().errors.len(), ERRORS_MAX);
    }
}
