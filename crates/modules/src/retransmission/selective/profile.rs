//! What `arq-sr` does to what is predicted: no losses; what was lost, and waits for it, is later.
//!
//! ```text
//!   sent     1 x . . . . . 2'          2 is lost: it comes a round later, and so does
//!   up       1             2 3 4 5 6 7   what came behind it meanwhile, where order is kept
//!                |<-round->|
//! ```

use super::super::acknowledged::saying::{ACK_AFTER, ACK_PACKETS};
use super::super::acknowledged::sending::{ASKED_MIN, ASKED_PARTS};
use super::{ORDERED, SPEC};
use crate::arithmetic::{
    MILLISECOND, ONE_IN_HUNDRED, apart_ns, both, part, ratio, running, unit_bytes,
};
use dacapo_lift::shares::Holes;
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Service, Setting};

/// Default, measured by `dacapo bench cost` on Intel Xeon.
const COST: Cost = Cost { train_ps: 41_000, packet_ps: 20_200, byte_ps: 1, wire_milli: 0 };

/// How much later than a round trip a probe leaves.
const PROBED: u64 = MILLISECOND + ACK_AFTER.as_nanos() as u64;

/// How often a packet leaves, at the most that costs are reckoned with: three in four are lost.
const COPIES_MAX: u64 = 4;

/// How often one is sent again at the most that delays are reckoned with.
const AGAIN_MAX: u64 = 64;

#[derive(Debug)]
pub(super) struct Selected;

impl Profile for Selected {
    /// It is for flows with units of their own pace: not where these fill half of what the flow may
    /// send or the path takes. How much of a path a controller gets is not predicted yet.
    fn suits(&self, setting: &Setting) -> bool {
        let load = setting.units.per_ks.saturating_mul(unit_bytes(&setting.units));
        let most = [setting.bound_bps, setting.path.rate_bps].into_iter().filter(|bps| *bps > 0);
        let half = most.min().unwrap_or(u64::MAX) / 2;
        setting.units.is_paced && ratio(load, 8, 1_000) < half
    }

    /// As they come; the same in order is tried as well ([`ModuleSpec::points`]).
    ///
    /// [`ModuleSpec::points`]: dacapo_lift::ModuleSpec::points
    fn points(&self, _: &Setting, _: &Service) -> Vec<Params> {
        let mut params = Params::new();
        params.set(ORDERED, 0);
        vec![params]
    }

    /// Nothing is lost, but what comes when it is of no use any more.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let figures = below.figures;
        let repair = Repair::of(setting, below);
        let spare = setting.spare_ns(&figures);
        let (loss, delay) = match SPEC.value_of(params.values(), ORDERED) {
            0 => (repair.share_alone(spare), repair.alone_later_than_one_in_hundred()),
            _ => (repair.share_later(spare), repair.later_than_one_in_hundred()),
        };
        let jitter = if figures.loss_ppb > 0 { repair.trip.saturating_mul(2) } else { 0 };
        Figures {
            loss_ppb: loss,
            loss_runs_ppb: figures.loss_runs_ppb.min(loss),
            delay_ns: figures.delay_ns.saturating_add(delay),
            jitter_ns: figures.jitter_ns.saturating_add(jitter.max(delay)),
            rate_bps: part(figures.rate_bps, 1_000, again_milli(figures.loss_ppb)),
        }
    }

    fn cost(&self, _: &Params) -> Cost {
        COST
    }

    /// Itself, and as often again as is reckoned with.
    fn copies(&self, _: &Params) -> u64 {
        COPIES_MAX
    }

    /// Acknowledgements cost as much as other packets: one as often as it is asked for, or its time
    /// is over.
    fn packets_milli(&self, _: &Params, setting: &Setting) -> u64 {
        let apart = apart_ns(setting);
        let under_way = setting.path.delay_ns.saturating_mul(2) / apart / ASKED_PARTS as u64;
        let asked = under_way.clamp(ASKED_MIN as u64, ACK_PACKETS as u64);
        let after = ratio(apart, 1_000, ACK_AFTER.as_nanos() as u64).min(1_000);
        let said = after.max(1_000 / asked);
        (again_milli(setting.path.loss_ppb) + said).min(COPIES_MAX * 1_000)
    }
}

/// How many packets leave for a thousand, where so many are lost: no more than [`COPIES_MAX`]
/// times as many are reckoned with.
fn again_milli(loss_ppb: u64) -> u64 {
    let loss = loss_ppb.min(PPB);
    let again = ratio(loss, 1_000, (PPB - loss).max(1));
    again.saturating_add(1_000).min(COPIES_MAX * 1_000)
}

/// What repairing takes.
struct Repair {
    /// The share of packets that are lost, in ppb; a packet that is sent again is, too.
    loss: u64,
    /// The mean length of a run, in thousandths of packets.
    burst_milli: u64,
    apart: u64,
    /// A round trip.
    trip: u64,
    /// Nothing else leaves for so long that it is probed for first.
    is_silent: bool,
}

impl Repair {
    fn of(setting: &Setting, below: &Service) -> Self {
        let path = &setting.path;
        let apart = apart_ns(setting);
        let figures = &below.figures;
        let trip = figures.delay_ns.saturating_add(path.delay_ns).saturating_add(figures.jitter_ns);
        let loss = figures.loss_ppb.min(PPB);
        let burst_milli = path.burst_milli.max(1_000);
        Self { loss, burst_milli, apart, trip, is_silent: apart > trip.saturating_add(PROBED) }
    }

    /// How long after the first of a run of losses left its last one leaves again: when one behind
    /// it is acknowledged, and a quarter of a round trip is over.
    fn seen(&self, run_milli: u64) -> u64 {
        if self.is_silent {
            return self.trip.saturating_add(PROBED);
        }
        let run = ratio(self.apart, run_milli, 1_000);
        let overdue = run.saturating_add(self.trip / 4).saturating_sub(self.apart);
        self.trip.saturating_add(overdue.max(run.saturating_add(MILLISECOND)))
    }

    /// The share of packets that come more than `late` later, in ppb.
    fn share_later(&self, late: u64) -> u64 {
        self.holes().share_later(late, |run_milli| self.seen(run_milli))
    }

    /// How much later 99 of 100 come.
    fn later_than_one_in_hundred(&self) -> u64 {
        self.holes().later_than_all_but(ONE_IN_HUNDRED, |run_milli| self.seen(run_milli))
    }

    /// The share of packets that come more than `late` later where none waits for others: lost so
    /// often, and for the last time in a run that goes on behind it.
    fn share_alone(&self, late: u64) -> u64 {
        let (mut share, mut lost) = (0_u64, self.loss);
        for again in 0..AGAIN_MAX {
            let Some(left) = late.checked_sub(self.again_ns().saturating_mul(again)) else {
                return share.saturating_add(lost);
            };
            // The parts add up to what is lost, however they are rounded.
            let again = both(lost, self.loss).min(lost);
            share = share.saturating_add(both(lost - again, self.seen_later_than(left)));
            lost = again;
        }
        share.saturating_add(lost)
    }

    /// The chance that it takes longer than `late` until one that is lost comes again, by the
    /// length of the run from it on.
    fn seen_later_than(&self, late: u64) -> u64 {
        let Some(spare) = late.checked_sub(self.seen(1_000)) else { return PPB };
        if self.is_silent {
            return 0;
        }
        let goes_on = ratio(PPB, self.burst_milli - 1_000, self.burst_milli);
        running(goes_on, spare / self.apart + 1)
    }

    /// How much later 99 of 100 come where none waits for others, to the millisecond above.
    fn alone_later_than_one_in_hundred(&self) -> u64 {
        if self.loss < ONE_IN_HUNDRED {
            return 0;
        }
        let (mut short, mut long) = (0, self.again_ns().saturating_mul(AGAIN_MAX) / MILLISECOND);
        while long - short > 1 {
            let middle = short.midpoint(long);
            let is_late = self.share_alone(middle.saturating_mul(MILLISECOND)) >= ONE_IN_HUNDRED;
            *(if is_late { &mut short } else { &mut long }) = middle;
        }
        long.saturating_mul(MILLISECOND)
    }

    /// How much later than it should have one comes that is sent again.
    fn again_ns(&self) -> u64 {
        (if self.is_silent { self.trip } else { self.seen(self.burst_milli) }).max(MILLISECOND)
    }

    /// What is sent again leaves at once, and is lost again as one.
    fn holes(&self) -> Holes {
        let again_ns = self.again_ns();
        let (loss_ppb, burst_milli, apart_ns) = (self.loss, self.burst_milli, self.apart);
        Holes { loss_ppb, burst_milli, apart_ns, again_ns }
    }
}
