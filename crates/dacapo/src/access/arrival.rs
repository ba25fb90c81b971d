//! [`Arrivals`]: what every sink of media does first with a unit.
//!
//! The medium header, the newest generation, the playout clock, and the figures.
//!
//! ```text
//!   unit -> header -> older generation?  dropped
//!                  -> delay, lateness    figures
//!                  -> verdict            show at …, late, …     up to the sink what that means
//! ```
//!
//! The playout clock is fed with the time at which the sender handed a unit over, not with its
//! place in the medium: so it needs not know at which speed the sender plays, steps or repeats, and
//! the budget is what the offer calls it: how long after it was sent a unit is shown.
//!
//! Invariants: no bytes of a peer panic; generations wrap at 24 bits.
//!
//! Decoder: of units from a peer.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::budget::{Budget, Together};
use super::pass::PassHash;
use super::progress::Progress;
use dacapo_base::Time;
use dacapo_core::{Taken, UnitView};
use dacapo_lift::DropReason;
use dacapo_media::playout::{Config, Playout, PlayoutStats, Verdict};
use dacapo_path::ClockOffset;
use dacapo_wire::media::{self, GENERATION_BITS, Header, is_newer};

/// What every sink of media does first with a unit.
pub(crate) struct Arrivals {
    pub progress: Progress,
    clock: ClockOffset,
    newest: Option<Newest>,
    playout: Playout,
    together: Together,
    is_never_late: bool,
    pass: PassHash,
}

/// The newest generation: as it is sent, and counted on where that wraps.
#[derive(Clone, Copy)]
struct Newest {
    sent: u32,
    counted: u32,
}

/// A unit that is of use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub header: Header,
    pub verdict: Verdict,
    /// It is the first of its generation.
    pub is_first: bool,
}

impl Arrivals {
    /// The arrivals of one flow, whose units are shown so long after they were sent.
    pub fn new(progress: Progress, budget: Budget) -> Self {
        let Budget { most, least, together } = budget;
        let config = Config { budget: most, budget_min: least, ..Config::default() };
        Self {
            progress,
            together,
            clock: ClockOffset::default(),
            newest: None,
            playout: Playout::new(config),
            is_never_late: false,
            pass: PassHash::default(),
        }
    }

    /// The same for what is of use whenever it comes.
    pub fn never_late(self) -> Self {
        Self { is_never_late: true, ..self }
    }

    /// The same for sound; without it pictures come.
    pub fn of_sound(self) -> Self {
        Self { pass: PassHash::of_sound(), ..self }
    }

    pub fn handle_clock(&mut self, offset: ClockOffset) {
        self.clock = offset;
    }

    /// Looks at a unit.
    ///
    /// # Errors
    /// What to answer for a unit that is of no use; it is booked.
    pub fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Result<Arrived, Taken> {
        let Some(header) = header_of(unit) else {
            return Err(self.refuse(DropReason::Malformed));
        };
        let Some((counted, is_first)) = self.count(header.generation) else {
            return Err(self.refuse(DropReason::OldGeneration));
        };
        self.note_pass(&header, unit);
        let index = u64::from(header.index);
        self.playout.set_together(self.together.tell(self.playout.wanted()));
        let verdict = match self.playout.handle_arrival(now, counted, header.sent_ns, index) {
            Verdict::Late { .. } if self.is_never_late => Verdict::Show { at: now },
            verdict => verdict,
        };
        let shown = if let Verdict::Show { at } = verdict { Some(at) } else { None };
        self.progress.arrived(unit.arrived, &header, &self.clock, shown);
        Ok(Arrived { header, verdict, is_first })
    }

    /// Hashes what is repeated, pass by pass.
    fn note_pass(&mut self, header: &Header, unit: &UnitView<'_>) {
        let len = unit.len().saturating_sub(media::LEN);
        let body = unit.pieces().scan(media::LEN, |left, piece| {
            let skip = piece.len().min(*left);
            *left = left.saturating_sub(skip);
            Some(piece.get(skip..).unwrap_or_default())
        });
        if let Some(sha256) = self.pass.handle_unit(header, len, body) {
            self.progress.pass(sha256);
        }
    }

    /// Puts a unit's generation in order; nothing when it is an old one.
    fn count(&mut self, sent: u32) -> Option<(u32, bool)> {
        let Some(newest) = self.newest else {
            self.newest = Some(Newest { sent, counted: sent });
            return Some((sent, true));
        };
        if sent == newest.sent {
            return Some((newest.counted, false));
        }
        if !is_newer(sent, newest.sent) {
            return None;
        }
        let ahead = sent.wrapping_sub(newest.sent) & (1_u32 << GENERATION_BITS).wrapping_sub(1);
        let counted = newest.counted.wrapping_add(ahead);
        self.newest = Some(Newest { sent, counted });
        Some((counted, true))
    }

    /// Books that a unit is refused.
    pub fn refuse(&mut self, reason: DropReason) -> Taken {
        self.progress.update(|now| {
            let count = match reason {
                DropReason::OldGeneration => &mut now.old_generation,
                _ => &mut now.refused,
            };
            *count = count.saturating_add(1);
        });
        Taken::Dropped(reason)
    }

    /// Books that a unit is too late.
    pub fn late(&mut self) -> Taken {
        self.progress.update(|now| now.late = now.late.saturating_add(1));
        Taken::Late
    }

    /// Books that a unit is taken.
    pub fn taken(&mut self, len: usize) -> Taken {
        let PlayoutStats { lateness, kept, .. } = self.playout.stats();
        self.progress.update(|now| {
            now.media_frames = now.media_frames.saturating_add(1);
            now.bytes = now.bytes.saturating_add(len as u64);
            now.playout_ns = u64::try_from(kept.as_nanos()).unwrap_or(u64::MAX);
            now.lateness.count = lateness.count;
            now.lateness.ns_min = lateness.ns_min;
            now.lateness.ns_p50 = lateness.ns_p50;
            now.lateness.ns_p99 = lateness.ns_p99;
            now.lateness.ns_max = lateness.ns_max;
        });
        Taken::Delivered
    }

    /// Books units that will not come.
    pub fn lost(&mut self, count: u64) {
        self.playout.handle_gap(count);
        self.progress.update(|now| now.lost = now.lost.saturating_add(count));
    }

    /// Times that the previous picture stayed instead of the next one.
    pub fn repeated(&self) -> u64 {
        self.playout.stats().repeated
    }
}

/// The medium header at the front of a unit, whose first bytes may lie in several pieces.
fn header_of(unit: &UnitView<'_>) -> Option<Header> {
    let mut bytes = [0; media::LEN];
    let mut filled = 0_usize;
    for (to, from) in bytes.iter_mut().zip(unit.pieces().flatten()) {
        *to = *from;
        filled = filled.saturating_add(1);
    }
    if filled == media::LEN { Header::parse(&bytes).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_counted_over_their_wrap_and_old_ones_are_none() {
        let mut arrivals = Arrivals::new(Progress::new("video"), Budget::default());
        let top = (1 << GENERATION_BITS) - 1;
        assert_eq!(arrivals.count(top), Some((top, true)));
        assert_eq!(arrivals.count(top), Some((top, false)));
        assert_eq!(arrivals.count(1), Some((top + 2, true)));
        assert_eq!(arrivals.count(top), None);
        assert_eq!(arrivals.count(0), None);
        assert_eq!(arrivals.count(1), Some((top + 2, false)));
    }
}
