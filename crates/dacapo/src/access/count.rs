//! [`CountSink`]: a sink that only counts, with the verdicts of a player.

use super::arrival::Arrivals;
use super::budget::Budget;
use super::progress::Progress;
use dacapo_base::Time;
use dacapo_core::{Ending, Ledger, Sink, Taken, UnitView};
use dacapo_lift::DropReason;
use dacapo_media::playout::Verdict;
use dacapo_path::ClockOffset;
use std::time::Duration;

/// A sink that only counts.
pub struct CountSink {
    arrivals: Arrivals,
}

impl CountSink {
    /// A sink for media whose units are shown `budget` after they were sent.
    #[must_use]
    pub fn new(progress: Progress, budget: Duration) -> Self {
        Self::of(progress, budget.into())
    }

    pub(crate) fn of(progress: Progress, budget: Budget) -> Self {
        Self { arrivals: Arrivals::new(progress, budget) }
    }

    /// The same for sound; without it pictures come.
    #[must_use]
    pub fn of_sound(self) -> Self {
        Self { arrivals: self.arrivals.of_sound() }
    }

    /// The same for a still, which is shown whenever it comes.
    #[must_use]
    pub fn never_late(self) -> Self {
        Self { arrivals: self.arrivals.never_late() }
    }
}

impl Sink for CountSink {
    fn handle_clock(&mut self, offset: ClockOffset) {
        self.arrivals.handle_clock(offset);
    }

    fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken {
        let arrived = match self.arrivals.handle_unit(now, unit) {
            Ok(arrived) => arrived,
            Err(taken) => return taken,
        };
        let taken = match arrived.verdict {
            Verdict::Show { .. } => {
                self.arrivals.taken(unit.len().saturating_sub(dacapo_wire::media::LEN))
            }
            Verdict::Late { .. } => self.arrivals.late(),
            Verdict::Early { .. } => self.arrivals.refuse(DropReason::Overflow),
            Verdict::Stale => self.arrivals.refuse(DropReason::OldGeneration),
            Verdict::Duplicate => self.arrivals.refuse(DropReason::Duplicate),
        };
        self.show_repeated();
        taken
    }

    fn handle_lost(&mut self, _now: Time, _first: u64, count: u64) {
        self.arrivals.lost(count);
        self.show_repeated();
    }

    fn finish(&mut self, _now: Time, ending: &Ending, _ledger: &Ledger) {
        self.arrivals.progress.ended(ending);
    }
}

impl CountSink {
    fn show_repeated(&self) {
        let repeated = self.arrivals.repeated();
        self.arrivals.progress.update(|now| now.repeated = repeated);
    }
}

/// A sink that only counts, for units of bytes: they have no header, and none is late.
pub struct RawCountSink {
    progress: Progress,
}

impl RawCountSink {
    /// A sink that shows its figures in `progress`.
    #[must_use]
    pub fn new(progress: Progress) -> Self {
        Self { progress }
    }
}

impl Sink for RawCountSink {
    fn handle_unit(&mut self, _now: Time, unit: &UnitView<'_>) -> Taken {
        self.progress.update(|now| {
            now.media_frames += 1;
            now.bytes += unit.len() as u64;
        });
        Taken::Delivered
    }

    fn handle_lost(&mut self, _now: Time, _first: u64, count: u64) {
        self.progress.update(|now| now.lost = now.lost.saturating_add(count));
    }

    fn finish(&mut self, _now: Time, ending: &Ending, _ledger: &Ledger) {
        self.progress.ended(ending);
    }
}
