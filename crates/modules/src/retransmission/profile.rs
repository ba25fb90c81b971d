//! What `arq-nak` does to what is predicted: fewer losses, some of them later.
//!
//! ```text
//!   should come   |                                                  deadline |
//!   next one      |--seen-->| asked ---- round ----> asked ---- round ---->   |
//!                            1st try                 2nd try            spare |
//! ```
//!
//! A try fails when its question or its answer is lost. Of a run of losses the first is missed only
//! when the run is over: where that takes longer than what is spare, a try fewer is left.

use super::gap::{APART_MAX, APART_MIN};
use super::kept::{BYTES_MAX, TRAINS_MAX};
use super::nak::{DEADLINE, ORDERED, SPEC};
use crate::arithmetic::{
    MILLISECOND, ONE_IN_HUNDRED, apart_ns, both, either, part, ratio, running, unit_bytes,
    whole_milliseconds,
};
use crate::window::WINDOW;
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Service, Setting};
use dacapo_wire::retransmission::ATTEMPTS_MAX;

/// Default, measured by `dacapo bench cost` on Intel Xeon.
const COST: Cost = Cost { train_ps: 25_700, packet_ps: 4_510, byte_ps: 1, wire_milli: 0 };

/// How much later than an answer could be there another question leaves.
const GRAIN: u64 = MILLISECOND;

/// How many tries the points that are proposed have.
const TRIES: [u64; 3] = [1, 2, 4];

/// Of how many parts of a deadline it is known how many packets wait longer.
const PARTS: u64 = 64;

/// How many mean runs of losses a point allows for before its last try.
const RUNS_PASSED: u64 = 3;

#[derive(Debug)]
pub(super) struct AskedFor;

impl Profile for AskedFor {
    /// A deadline for one, two and four tries, and for the runs of losses to be over.
    fn points(&self, setting: &Setting, _: &Service) -> Vec<Params> {
        let bounds = &SPEC.params[usize::from(DEADLINE)];
        let (seen, round) = (setting.path.jitter_ns, back(setting).saturating_mul(2));
        let run = apart_ns(setting).saturating_mul(setting.path.burst_milli.max(1_000)) / 1_000;
        let point = |tries: &u64| {
            let asking = seen.saturating_add(round.saturating_add(GRAIN).saturating_mul(*tries));
            let rest = run.saturating_mul(RUNS_PASSED).min(asking / 3);
            let deadline = whole_milliseconds(asking.saturating_add(rest));
            let spare = setting.spare_after_path_ns() / MILLISECOND * MILLISECOND;
            let deadline = deadline.min(spare);
            let mut params = Params::new();
            params.set(DEADLINE, deadline.clamp(bounds.min, bounds.max));
            params
        };
        let mut points: Vec<Params> = TRIES.iter().map(point).collect();
        points.dedup();
        points
    }

    /// - A packet stays lost when it is lost and every try fails for which there is time by the
    ///   deadline, while it is of use, and while the sender keeps it.
    /// - 99 of 100 come with the packet itself while fewer than 1 % are lost; else the delay grows
    ///   by the tries after which fewer are missing, and the deadline at most.
    /// - Who waits for a packet waits until its deadline, so the jitter grows by that wherever
    ///   anything is lost.
    /// - In order, packets wait for those before them, and no more than there is room for: the
    ///   delay grows by the time after which fewer than 1 % wait or are missing.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let figures = below.figures;
        let deadline = params.value(&SPEC, "deadline");
        let loss = figures.loss_ppb.min(PPB);
        let tries = Tries::of(setting, below);
        let is_ordered = params.value_at(&SPEC, ORDERED) != 0;
        let kept = kept_ns(setting).min(if is_ordered { waiting_ns(setting) } else { u64::MAX });
        let in_time = deadline.min(setting.spare_ns(&figures)).min(kept);
        let left = tries.left(in_time, true);
        let jitter = if loss > 0 { deadline } else { 0 };
        let loss_left = both(loss, left);
        let later = match is_ordered {
            true => tries.delay_in_order_ns(loss, figures.loss_runs_ppb, deadline),
            false => tries.delay_ns(loss, deadline),
        };
        Figures {
            loss_ppb: loss_left,
            loss_runs_ppb: both(figures.loss_runs_ppb, left).min(loss_left),
            delay_ns: figures.delay_ns.saturating_add(later),
            jitter_ns: figures.jitter_ns.saturating_add(jitter),
            rate_bps: part(figures.rate_bps, 1_000, self.packets_milli(params, setting)),
        }
    }

    fn cost(&self, _: &Params) -> Cost {
        COST
    }

    /// Itself, twice more for each that is sent, and twice how far the sender is.
    fn copies(&self, _: &Params) -> u64 {
        5
    }

    /// What the path loses is sent again until it comes; and where packets are further apart than a
    /// quarter of the deadline, or half of it, the sender says once or twice after each how far it
    /// is.
    fn packets_milli(&self, params: &Params, setting: &Setting) -> u64 {
        let loss = setting.path.loss_ppb.min(PPB);
        let again = ratio(loss, 1_000, (PPB - loss).max(1)).min(1_000);
        let deadline = params.value(&SPEC, "deadline");
        // The last time it is sent twice, and there is one only, or another for what fails.
        let is_once = deadline / back(setting).saturating_mul(2).max(1) <= 1;
        let twice = if is_once { again } else { both(again, loss.saturating_mul(2).min(PPB)) };
        let silent = (deadline / 4).max(1);
        1_000 + again + twice + 1_000 * (apart_ns(setting) / silent).min(2)
    }
}

/// How long the sender keeps what it has sent: units that are trains, within its bounds.
fn kept_ns(setting: &Setting) -> u64 {
    let per_ks = setting.units.per_ks.max(1);
    let bytes_per_ks = per_ks.saturating_mul(unit_bytes(&setting.units));
    // 1,000 s are 10^12 ns.
    let trains = part(TRAINS_MAX as u64, 1_000_000_000_000, per_ks);
    trains.min(part(BYTES_MAX as u64, 1_000_000_000_000, bytes_per_ks))
}

/// How long packets wait for others, of which so many can.
fn waiting_ns(setting: &Setting) -> u64 {
    apart_ns(setting).saturating_mul(WINDOW as u64)
}

/// How long the receiver waits for what was only overtaken.
fn overtaken(below: &Service) -> u64 {
    below.figures.jitter_ns
}

/// How long the way back takes.
fn back(setting: &Setting) -> u64 {
    setting.path.delay_ns.saturating_add(setting.path.jitter_ns)
}

/// The time from a question to its answer, or to the next question.
fn round(setting: &Setting, below: &Service) -> u64 {
    below.figures.delay_ns.saturating_add(back(setting))
}

/// The shares of what is lost, in ppb, that stay lost because every try failed, and because a run
/// of losses was over too late for one.
struct Left {
    failed: u64,
    outlasted: u64,
}

/// What can be tried, and what comes of it.
struct Tries {
    /// The chance that the first fails, in ppb, and that another does.
    fails: u64,
    fails_again: u64,
    /// The chance that a run of losses goes on with the next packet.
    goes_on: u64,
    overtaken: u64,
    apart: u64,
    round: u64,
}

impl Tries {
    fn of(setting: &Setting, below: &Service) -> Self {
        let path = &setting.path;
        let burst = path.burst_milli.max(1_000);
        let (goes_on, apart) = (ratio(PPB, burst - 1_000, burst), apart_ns(setting));
        let fails = either(below.figures.loss_ppb, path.loss_ppb);
        // By the path alone: what is sooner below must not be worse for it.
        let packets = (back(setting).saturating_mul(2).saturating_add(apart / 2)) / apart;
        Self {
            fails,
            fails_again: either(fails, running(goes_on, packets)),
            goes_on,
            overtaken: overtaken(below),
            apart,
            round: round(setting, below),
        }
    }

    /// How many there is time for within `deadline`, and how much is spare then.
    fn within(&self, deadline: u64) -> impl Iterator<Item = u64> {
        let seen = self.overtaken.saturating_add(self.apart.min(deadline / 4));
        (1..=u64::from(ATTEMPTS_MAX)).map_while(move |tries| {
            let asked = self.round.saturating_add(GRAIN).saturating_mul(tries) - GRAIN;
            deadline.checked_sub(seen.saturating_add(asked))
        })
    }

    /// The share of what is lost that stays lost, in ppb: `f^n`, and for each try that a run takes
    /// away what it would have saved, `(f^(k-1) - f^k) * outlasts(spare)`. A try after one that
    /// failed also fails where the same run goes on until then. The last one is made twice where
    /// this is the deadline, and not a time before it.
    fn left(&self, deadline: u64, is_deadline: bool) -> u64 {
        let Left { failed, outlasted } = self.left_by(deadline, is_deadline);
        failed.saturating_add(outlasted).min(PPB)
    }

    fn left_by(&self, deadline: u64, is_deadline: bool) -> Left {
        let (mut left, mut by_runs, mut fails) = (PPB, 0_u64, self.fails);
        let mut last = 0;
        for spare in self.within(deadline) {
            last = spare;
            // The run goes on with the next packet, and with each for which there is time then.
            let count = (spare / self.apart).saturating_add(1);
            let after = both(left, fails);
            by_runs = by_runs.saturating_add(both(left - after, running(self.goes_on, count)));
            (left, fails) = (after, self.fails_again);
        }
        if is_deadline && left < PPB {
            left = both(left, self.fails_twice(last));
        }
        Left { failed: left, outlasted: by_runs }
    }

    /// The chance that a last question fails that is asked again, with so much to spare.
    fn fails_twice(&self, spare: u64) -> u64 {
        let later = (spare / 2).min(APART_MAX.as_nanos() as u64);
        if later < APART_MIN.as_nanos() as u64 {
            return PPB;
        }
        either(self.fails, running(self.goes_on, later / self.apart))
    }

    /// How much later 99 of 100 come where so many are lost: the shortest deadline, in whole
    /// milliseconds, after which fewer than one of a hundred is missing; `deadline` where none is.
    fn delay_ns(&self, loss: u64, deadline: u64) -> u64 {
        if loss < ONE_IN_HUNDRED {
            return 0;
        }
        let missing_after = |ms: u64| both(loss, self.left(ms.saturating_mul(MILLISECOND), false));
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
    /// [`PARTS`], the first after which fewer than one of a hundred waits or is missing.
    fn delay_in_order_ns(&self, loss: u64, runs: u64, deadline: u64) -> u64 {
        let step = deadline / PARTS;
        let (mut held_up, mut later) = (0_u64, deadline);
        for at in (0..PARTS).rev().map(|it| it.saturating_mul(step)) {
            let Left { failed, outlasted } = self.left_by(at, false);
            let missing = both(loss, failed.saturating_add(outlasted).min(PPB));
            if held_up.saturating_add(missing) >= ONE_IN_HUNDRED {
                break;
            }
            held_up = held_up.saturating_add(part(both(runs, failed), step, self.apart));
            later = at;
        }
        later
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{internet, service};

    fn within(ms: u64) -> Params {
        let mut params = Params::new();
        params.set(DEADLINE, ms * MILLISECOND);
        params
    }

    #[test]
    fn points_have_time_for_one_two_and_four_tries() {
        // 700 packets per second: 1.4 ms apart. 81 ms a round, 10 ms of jitter.
        let pictures = internet(20_000, 60_000);
        let points = AskedFor.points(&pictures, &service());
        assert_eq!(points, [within(104), within(185), within(347)]);
        let tries = |params: &Params| {
            let deadline = params.value(&SPEC, "deadline");
            Tries::of(&pictures, &service()).within(deadline).count()
        };
        assert_eq!(points.iter().map(tries).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn single_losses_are_lost_once_more_for_each_try() {
        let mut setting = internet(20_000, 60_000);
        setting.path.burst_milli = 1_000;
        let loss = |ms| AskedFor.figures(&within(ms), &setting, &service()).loss_ppb;
        // A try fails in 1 % less a quarter of a percent of a percent.
        assert_eq!([loss(50), loss(95)], [5_000_000, 49_875]);
        // There is time to ask the second time twice, in 1 % of which it fails.
        assert_eq!(loss(180), 5);
        let fewer = AskedFor.figures(&within(95), &setting, &service());
        let below = service().figures;
        assert_eq!(fewer.delay_ns, below.delay_ns, "99 of 100 are not lost");
        assert_eq!(fewer.jitter_ns, below.jitter_ns + 95 * MILLISECOND);
        assert_eq!(fewer.rate_bps, part(below.rate_bps, 1_000, 1_012));
    }

    #[test]
    fn a_run_that_outlasts_what_is_spare_takes_a_try() {
        let setting = internet(20_000, 60_000);
        // A round takes 80 ms, and it is seen after 11.4: 9.6 ms are spare, for the seventh packet.
        let left = Tries::of(&setting, &service()).left(101 * MILLISECOND, true);
        let (fails, outlasts) = (0.009_975, (2_f64 / 3.0).powi(7));
        // It is asked again 4.8 ms later, three packets, where the run may still go on.
        let again = 1.0 - (1.0 - fails) * (1.0 - (2_f64 / 3.0).powi(3));
        let expected = PPB as f64 * (fails * again + (1.0 - fails) * outlasts);
        assert!((left as f64 - expected).abs() < 1e6, "{left}, {expected}");
    }

    #[test]
    fn delay_grows_where_more_than_one_of_a_hundred_is_asked_for() {
        let setting = internet(20_000, 60_000);
        let later = |loss: u64| {
            let mut below = service();
            below.figures.loss_ppb = loss;
            let figures = AskedFor.figures(&within(300), &setting, &below);
            (figures.delay_ns - below.figures.delay_ns) / MILLISECOND
        };
        assert_eq!(
            [later(0), later(9_999_999), later(10_000_000), later(100_000_000)],
            [0, 0, 92, 173]
        );
    }

    #[test]
    fn what_the_sender_no_longer_keeps_is_not_repaired() {
        let mut setting = internet(20_000, 60_000);
        setting.path.burst_milli = 1_000;
        let loss = |setting: &Setting| AskedFor.figures(&within(95), setting, &service()).loss_ppb;
        assert!(loss(&setting) < 50_000);
        // 5,000 units of 20 kB a second: 8 MiB are 84 ms, and an answer takes 91.
        setting.units.per_ks = 5_000_000;
        assert_eq!(loss(&setting), 5_000_000);
    }

    #[test]
    fn slow_flows_say_how_far_they_are() {
        let sound = internet(500, 500);
        assert_eq!(AskedFor.packets_milli(&within(200), &sound), 1_007);
        assert_eq!(AskedFor.packets_milli(&within(79), &sound), 2_012);
        assert_eq!(AskedFor.packets_milli(&within(39), &sound), 3_012);
    }
}
