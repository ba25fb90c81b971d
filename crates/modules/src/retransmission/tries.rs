//! [`Tries`]: how often what is missing can be asked for in some time, and what comes of it.
//!
//! ```text
//!   should come   |                                                  deadline |
//!   next one      |--seen-->| asked ---- round ----> asked ---- round ---->   |
//!                            1st try                 2nd try            spare |
//! ```
//!
//! A try fails when its question or its answer is lost. Of a run of losses the first is missed only
//! when the run is over, or, where packets come evenly, when none has come for a while: where that
//! takes longer than what is spare, a try fewer is left.

use super::gap::{REPEATED_MAX, REPEATED_SPARE, repeated};
use crate::arithmetic::{
    MILLISECOND, ONE_IN_HUNDRED, apart_ns, both, either, goes_on, packets_per_unit, part, running,
};
use dacapo_lift::{PPB, Service, Setting};
use dacapo_wire::retransmission::ATTEMPTS_MAX;
use std::time::Duration;

/// How much later than an answer could be there another question leaves.
pub(super) const GRAIN: u64 = MILLISECOND;

/// How often it is asked, beside what is repeated.
const TRIES_MAX: u64 = (ATTEMPTS_MAX - REPEATED_MAX) as u64;

/// Of how many parts of a deadline it is known how many packets wait longer.
const PARTS: u64 = 64;

/// How long the receiver waits for what was only overtaken.
fn overtaken(below: &Service) -> u64 {
    below.figures.jitter_ns
}

/// How long the way back takes.
pub(super) fn back(setting: &Setting) -> u64 {
    setting.path.delay_ns.saturating_add(setting.path.jitter_ns)
}

/// How much later than by the next packet one is asked for that does not come, where packets come
/// evenly: those that fill no more than one each, at a pace of their own.
fn quiet(setting: &Setting, below: &Service) -> Option<u64> {
    let is_even =
        setting.units.is_paced && packets_per_unit(&setting.units, setting.path.datagram_len) == 1;
    let differs = below.figures.jitter_ns.saturating_mul(2).saturating_sub(apart_ns(setting));
    is_even.then(|| differs.saturating_add(GRAIN))
}

/// The time from a question to its answer, or to the next question.
fn round(setting: &Setting, below: &Service) -> u64 {
    below.figures.delay_ns.saturating_add(back(setting))
}

/// The chance that a try fails after one that did, of which each fails with this: also where the
/// same run of losses goes on until then. By the path alone: what is sooner below must not be worse
/// for it.
fn fails_again(setting: &Setting, fails: u64) -> u64 {
    let apart = apart_ns(setting);
    let packets = back(setting).saturating_mul(2).saturating_add(apart / 2) / apart;
    either(fails, running(goes_on(&setting.path), packets))
}

/// The shares of what is lost, in ppb, that stay lost because every try failed, because a run of
/// losses took what was asked for before it was over, too, and because it was over too late.
struct Left {
    failed: u64,
    unanswered: u64,
    outlasted: u64,
}

impl Left {
    fn total(&self) -> u64 {
        let by_runs = self.unanswered.saturating_add(self.outlasted);
        self.failed.saturating_add(by_runs).min(PPB)
    }
}

/// What can be tried, and what comes of it.
pub(super) struct Tries {
    /// The chance that the first fails, in ppb, and that another does.
    fails: u64,
    fails_again: u64,
    /// The chance that a run of losses goes on with the next packet.
    goes_on: u64,
    overtaken: u64,
    apart: u64,
    round: u64,
    /// How much later than by the next packet one is asked for, where packets come evenly, though
    /// nothing shows that it is missing.
    quiet: Option<u64>,
    /// How many packets follow it until an answer to that, by the path alone.
    until_answer: u64,
    /// There is room for questions that are repeated.
    is_repeated: bool,
}

impl Tries {
    pub fn of(setting: &Setting, below: &Service, is_repeated: bool) -> Self {
        let fails = either(below.figures.loss_ppb, setting.path.loss_ppb);
        Self {
            fails,
            fails_again: fails_again(setting, fails),
            goes_on: goes_on(&setting.path),
            overtaken: overtaken(below),
            apart: apart_ns(setting),
            round: round(setting, below),
            quiet: quiet(setting, below),
            until_answer: (back(setting).saturating_mul(2).saturating_add(GRAIN))
                / apart_ns(setting)
                + 2,
            is_repeated,
        }
    }

    /// How many there is time for within `deadline`, and how much is spare then.
    pub fn within(&self, deadline: u64) -> impl Iterator<Item = u64> {
        self.by(deadline, deadline)
    }

    /// The same by some time before `deadline`.
    fn by(&self, after: u64, deadline: u64) -> impl Iterator<Item = u64> {
        let seen = self.seen(deadline);
        (1..=TRIES_MAX).map_while(move |tries| {
            let asked = self.round.saturating_add(GRAIN).saturating_mul(tries) - GRAIN;
            after.checked_sub(seen.saturating_add(asked))
        })
    }

    /// What is spare of the try that is repeated, and how many there are until then: the last that
    /// leaves time for that, or the first.
    fn repeated(&self, deadline: u64) -> (u64, u64) {
        let mut all = self.within(deadline);
        let first = all.next().unwrap_or_default();
        let others = all.take_while(|spare| *spare >= REPEATED_SPARE.as_nanos() as u64);
        others.fold((first, 1), |(_, count), spare| (spare, count + 1))
    }

    /// When it is seen that a packet is missing that is waited for so long.
    fn seen(&self, deadline: u64) -> u64 {
        self.overtaken.saturating_add(self.apart.min(deadline / 4))
    }

    /// The share of what is lost that stays lost, in ppb: the product of what each try leaves, and
    /// for each try that a run takes away what it would have saved, `left * (1 - f) *
    /// outlasts(spare)`. A try after one that failed also fails where the same run goes on until
    /// then. One is repeated.
    ///
    /// Where answers came so much sooner that there is just time to repeat the next one, that is
    /// repeated instead, at shorter intervals: what is sooner below must not be worse, so the share
    /// is at least that.
    pub fn left(&self, deadline: u64) -> u64 {
        let at_deadline = |it: &Self| it.left_by(deadline, deadline).total();
        let sooner = self.sooner(deadline).map_or(0, |it| at_deadline(&it));
        at_deadline(self).max(sooner)
    }

    /// The same with answers so much sooner that there is just time to repeat the next try.
    fn sooner(&self, deadline: u64) -> Option<Self> {
        let (_, tries) = self.repeated(deadline);
        let taken = self.seen(deadline).saturating_add(REPEATED_SPARE.as_nanos() as u64);
        let asked = deadline.checked_sub(taken)?.saturating_add(GRAIN);
        let round = (asked / (tries + 1)).checked_sub(GRAIN)?;
        Some(Self { round, ..*self }).filter(|_| tries < TRIES_MAX)
    }

    /// What is left so long after a packet should have come, of tries until a deadline, of which
    /// one is repeated.
    fn left_by(&self, after: u64, deadline: u64) -> Left {
        let (to_spare, repeated) = self.repeated(deadline);
        let (mut left, mut fails) = (PPB, self.fails);
        let (mut unanswered, mut outlasted) = (0_u64, 0_u64);
        for (spare, at) in self.by(after, deadline).zip(1..) {
            let is_repeated = self.is_repeated && at == repeated;
            let again = if is_repeated { self.fails_again_and_again(to_spare, spare) } else { PPB };
            // The run goes on with the next packet, and with each for which there is time then.
            let fail_still = both(left, both(fails, again));
            let (saved, count) = (left - fail_still, (spare / self.apart).saturating_add(1));
            if self.quiet.is_some_and(|quiet| spare >= quiet) {
                // Asked before it is over, its answer is lost, too, where it goes on until then.
                let runs = running(self.goes_on, count.max(self.until_answer));
                unanswered = unanswered.saturating_add(both(saved, runs));
            } else {
                outlasted = outlasted.saturating_add(both(saved, running(self.goes_on, count)));
            }
            (left, fails) = (fail_still, self.fails_again);
        }
        Left { failed: left, unanswered, outlasted }
    }

    /// The chance that all fail by which a try is repeated that has so much to spare, of those that
    /// are answered within `by` of the first.
    fn fails_again_and_again(&self, spare: u64, by: u64) -> u64 {
        let (mut fails, mut later) = (PPB, 0_u64);
        for apart in repeated(Duration::from_nanos(spare)) {
            let apart = apart.as_nanos() as u64;
            later = later.saturating_add(apart);
            if later <= by {
                let again = either(self.fails, running(self.goes_on, apart / self.apart));
                fails = both(fails, again);
            }
        }
        fails
    }

    /// How much later 99 of 100 come where so many are lost: the shortest deadline, in whole
    /// milliseconds, after which fewer than one of a hundred is missing; `deadline` where none is.
    pub fn delay_ns(&self, loss: u64, deadline: u64) -> u64 {
        if loss < ONE_IN_HUNDRED {
            return 0;
        }
        let missing_after =
            |ms: u64| both(loss, self.left_by(ms.saturating_mul(MILLISECOND), deadline).total());
        let (mut short, mut long) = (0, deadline / MILLISECOND);
        while long - short > 1 {
            let middle = short.midpoint(long);
            let is_missing = missing_after(middle) >= ONE_IN_HUNDRED;
            *(if is_missing { &mut short } else { &mut long }) = middle;
        }
        long.saturating_mul(MILLISECOND).min(deadline)
    }

    /// The same where packets wait for those before them, of which so many runs are lost: each run
    /// whose last packet is missing at some time holds up the packets until then. Of the deadline's
    /// [`PARTS`], the first after which fewer than one of a hundred waits or is missing. Silence
    /// is looked into at the last only, which saves losses, and hardly time.
    pub fn delay_in_order_ns(&self, loss: u64, runs: u64, deadline: u64) -> u64 {
        let it = Self { quiet: None, ..*self };
        let step = deadline / PARTS;
        let (mut held_up, mut later) = (0_u64, deadline);
        for at in (0..PARTS).rev().map(|it| it.saturating_mul(step)) {
            let left = it.left_by(at, deadline);
            let missing = both(loss, left.total());
            if held_up.saturating_add(missing) >= ONE_IN_HUNDRED {
                break;
            }
            held_up = held_up.saturating_add(part(both(runs, left.failed), step, it.apart));
            later = at;
        }
        later
    }
}
