//! What `arq-nak` does to what is predicted: fewer losses, some of them later.

use super::gap::{REPEATED_SPARE, repeated};
use super::kept::{BYTES_MAX, TRAINS_MAX};
use super::nak::{DEADLINE, ORDERED, SPARE, SPARE_MAX, SPEC};
use super::tries::{GRAIN, Tries, back};
use crate::arithmetic::{
    MILLISECOND, apart_ns, both, part, ratio, room_for, unit_bytes, whole_milliseconds,
};
use crate::window::WINDOW;
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Service, Setting};
use std::time::Duration;

/// Default, measured by `dacapo bench cost` on Intel Xeon.
const COST: Cost = Cost { train_ps: 25_700, packet_ps: 4_510, byte_ps: 1, wire_milli: 0 };

/// How many tries the points that are proposed have.
const TRIES: [u64; 3] = [1, 2, 4];

/// How much of the rate can be used beside what is sent again when it is asked for, in per cent.
const EVENLY: u64 = 98;

/// How many mean runs of losses a point allows for before its last try.
const RUNS_PASSED: u64 = 3;

#[derive(Debug)]
pub(super) struct AskedFor;

impl Profile for AskedFor {
    /// A deadline for one, two and four tries, and for the runs of losses to be over; and as much
    /// room for what is asked for twice as what the flow may send leaves.
    fn points(&self, setting: &Setting, _: &Service) -> Vec<Params> {
        let bounds = &SPEC.params[usize::from(DEADLINE)];
        let (seen, round) = (setting.path.jitter_ns, back(setting).saturating_mul(2));
        let run = apart_ns(setting).saturating_mul(setting.path.burst_milli.max(1_000)) / 1_000;
        let spare_milli = room_for(1_000, setting);
        let point = |tries: &u64| {
            let asking = seen.saturating_add(round.saturating_add(GRAIN).saturating_mul(*tries));
            let rest = run.saturating_mul(RUNS_PASSED).min(asking / 3);
            let deadline = whole_milliseconds(asking.saturating_add(rest));
            let spare = setting.spare_after_path_ns() / MILLISECOND * MILLISECOND;
            let deadline = deadline.min(spare);
            let mut params = Params::new();
            params.set(DEADLINE, deadline.clamp(bounds.min, bounds.max));
            if spare_milli < SPARE_MAX {
                params.set(SPARE, spare_milli);
            }
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
    /// - What is sent again takes its part of the rate, and not evenly.
    /// - In order, packets wait for those before them, and no more than there is room for: the
    ///   delay grows by the time after which fewer than 1 % wait or are missing.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let figures = below.figures;
        let deadline = params.value(&SPEC, "deadline");
        let loss = figures.loss_ppb.min(PPB);
        let is_ordered = SPEC.value_of(params.values(), ORDERED) != 0;
        let tries = Tries::of(setting, below, Again::of(params, setting).is_repeated());
        let kept = kept_ns(setting).min(if is_ordered { waiting_ns(setting) } else { u64::MAX });
        let in_time = deadline.min(setting.spare_ns(&figures)).min(kept);
        let left = tries.left(in_time);
        let jitter = if loss > 0 { deadline } else { 0 };
        let loss_left = both(loss, left);
        let later = match is_ordered {
            true => tries.delay_in_order_ns(loss, figures.loss_runs_ppb, deadline),
            false => tries.delay_ns(loss, deadline),
        };
        let rate = part(figures.rate_bps, 1_000, self.packets_milli(params, setting));
        Figures {
            loss_ppb: loss_left,
            loss_runs_ppb: both(figures.loss_runs_ppb, left).min(loss_left),
            delay_ns: figures.delay_ns.saturating_add(later),
            jitter_ns: figures.jitter_ns.saturating_add(jitter),
            rate_bps: if setting.path.loss_ppb > 0 { part(rate, EVENLY, 100) } else { rate },
        }
    }

    fn cost(&self, _: &Params) -> Cost {
        COST
    }

    /// Itself, three times more, and twice how far the sender is.
    fn copies(&self, _: &Params) -> u64 {
        6
    }

    /// What the path loses is sent again until it comes; and where packets are further apart than a
    /// quarter of the deadline, or half of it, the sender says once or twice after each how far it
    /// is.
    fn packets_milli(&self, params: &Params, setting: &Setting) -> u64 {
        let again = Again::of(params, setting);
        let silent = (params.value(&SPEC, "deadline") / 4).max(1);
        1_000 + again.total() + 1_000 * (apart_ns(setting) / silent).min(2)
    }
}

/// How many packets are sent again for every 1,000: once each, and because questions are repeated.
struct Again {
    once: u64,
    repeated: u64,
    /// How many there is room for.
    spare: u64,
}

impl Again {
    fn of(params: &Params, setting: &Setting) -> Self {
        let loss = setting.path.loss_ppb.min(PPB);
        let once = ratio(loss, 1_000, (PPB - loss).max(1)).min(1_000);
        let deadline = params.value(&SPEC, "deadline");
        // One is repeated, the first or another for what fails.
        let round = back(setting).saturating_mul(2).saturating_add(GRAIN).max(1);
        let seen = setting.path.jitter_ns.saturating_add(apart_ns(setting).min(deadline / 4));
        let asking = deadline.saturating_sub(seen);
        let rounds = (asking.saturating_sub(REPEATED_SPARE.as_nanos() as u64) / round).max(1);
        let to_spare = Duration::from_nanos(asking.saturating_sub(rounds.saturating_mul(round)));
        let fails = loss.saturating_mul(2).min(PPB);
        let of = if rounds == 1 { once } else { both(once, fails) };
        let repeated = of * repeated(to_spare).count() as u64;
        Self { once, repeated, spare: params.value(&SPEC, "spare_milli") }
    }

    /// Whether there is room for those.
    fn is_repeated(&self) -> bool {
        self.once.saturating_add(self.repeated) <= self.spare
    }

    /// The sender sends no more again than for the first time, and what is repeated has the room
    /// that there is.
    fn total(&self) -> u64 {
        let repeated = self.repeated.min(self.spare.saturating_sub(self.once));
        (self.once + repeated).min(1_000)
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
            Tries::of(&pictures, &service(), true).within(deadline).count()
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
        // There is time for two tries, and to repeat the first of them twice.
        assert_eq!(loss(180), 1);
        let fewer = AskedFor.figures(&within(95), &setting, &service());
        let below = service().figures;
        assert_eq!(fewer.delay_ns, below.delay_ns, "99 of 100 are not lost");
        assert_eq!(fewer.jitter_ns, below.jitter_ns + 95 * MILLISECOND);
        assert_eq!(fewer.rate_bps, part(part(below.rate_bps, 1_000, 1_006), EVENLY, 100));
    }

    #[test]
    fn a_run_that_outlasts_what_is_spare_takes_a_try() {
        let setting = internet(20_000, 60_000);
        // A round takes 80 ms, and it is seen after 11.4: 9.6 ms are spare, for the seventh packet.
        let left = Tries::of(&setting, &service(), true).left(101 * MILLISECOND);
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
        assert_eq!(AskedFor.packets_milli(&within(200), &sound), 1_008);
        assert_eq!(AskedFor.packets_milli(&within(79), &sound), 2_006);
        assert_eq!(AskedFor.packets_milli(&within(39), &sound), 3_006);
    }
}
