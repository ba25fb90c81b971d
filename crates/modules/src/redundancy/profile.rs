//! What `repeat` does to what is predicted: fewer losses, later, at several times the packets.
//!
//! Losses are taken to come in runs whose lengths have no memory (Gilbert 1960), which is what a
//! mean length says and no more.
//!
//! ```text
//!   lost     x x x . . . . x .        a run that outlasts the gap takes the packet and its copy
//!   packet   1 2 3 4 5 6 7 8 9
//!   copy           1'2'3'4'5'6'       gap: three packets
//! ```

use super::repeat::{COPIES, GAP, SPEC};
use crate::arithmetic::{
    MILLISECOND, ONE_IN_HUNDRED, both, either, goes_on, packets_in, packets_per_unit, ratio,
    running, whole_milliseconds,
};
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Service, Setting};

/// Of one copy: default, measured by `dacapo bench cost` on AMD EPYC. What stands below is paid for
/// through `copies`.
const COST: Cost = Cost { train_ps: 97_400, packet_ps: 21_700, byte_ps: 35, wire_milli: 0 };

/// The gaps that are proposed lie between these: shorter ones let few runs pass, longer ones come
/// too late for whoever cannot wait for an answer instead.
const GAP_MIN: u64 = 10 * MILLISECOND;
const GAP_MAX: u64 = 100 * MILLISECOND;

/// How many mean runs the longer gap lets pass: one run in fifty is longer.
const RUNS_PASSED: u64 = 4;

#[derive(Debug)]
pub(super) struct SentAgain;

impl Profile for SentAgain {
    /// One copy and two copies, each after the time that a mean run of losses takes; and one copy
    /// after four times that, which is as good as two where runs are long, for half the price.
    /// Single losses have no runs to let pass.
    fn points(&self, setting: &Setting, _: &Service) -> Vec<Params> {
        let short = |copies| gap(setting, 1, copies);
        let long = gap(setting, RUNS_PASSED, 1);
        let mut points = vec![point(1, short(1)), point(2, short(2))];
        if long > short(1) && setting.path.burst_milli > 1_000 {
            points.push(point(1, long));
        }
        points
    }

    /// - A packet is lost when it and all its copies are that come while they are of use. A copy of
    ///   what was lost is lost when the same run goes on until then, or else by itself: `loss *
    ///   (outlasts or loss)` for one copy, and once more that for each further one, which follows
    ///   at the same distance.
    /// - A run of losses leaves a run behind when it outlasts the gap, or when its copies meet
    ///   another run, which does so wherever it begins in the length of both, twice the mean:
    ///   `runs * (outlasts or 2 * loss)`, since loss is runs times their length; and there are no
    ///   more runs than losses.
    /// - 99 of 100 come with the packet itself while fewer than 1 % are lost; else the delay grows
    ///   by the gaps up to the first copy behind which fewer than 1 % are still missing.
    /// - Who waits for a packet waits for its last copy, so the jitter grows by all gaps wherever
    ///   anything is lost.
    /// - Each packet is sent `1 + copies` times, so that part of the rate is left.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let copies = params.value(&SPEC, "copies");
        let gap = params.value(&SPEC, "gap");
        let outlasts = outlasts(setting, gap);
        let figures = below.figures;
        let (mut loss, mut runs) = (figures.loss_ppb.min(PPB), figures.loss_runs_ppb);
        let lost_too = either(loss, outlasts);
        let run_too = either(loss.saturating_mul(2), outlasts);
        let mut gaps = 0_u64;
        for copy in 1..=copies {
            gaps += u64::from(loss >= ONE_IN_HUNDRED);
            if copy.saturating_mul(gap) <= setting.spare_ns(&figures) {
                loss = both(loss, lost_too);
                runs = both(runs, run_too).min(loss);
            }
        }
        let jitter = if figures.loss_ppb > 0 { copies.saturating_mul(gap) } else { 0 };
        Figures {
            loss_ppb: loss,
            loss_runs_ppb: runs.min(loss),
            delay_ns: figures.delay_ns.saturating_add(gaps.saturating_mul(gap)),
            jitter_ns: figures.jitter_ns.saturating_add(jitter),
            rate_bps: figures.rate_bps / copies.saturating_add(1),
        }
    }

    /// Each copy costs the same.
    fn cost(&self, params: &Params) -> Cost {
        COST.times(params.value(&SPEC, "copies"))
    }

    fn copies(&self, params: &Params) -> u64 {
        params.value(&SPEC, "copies").saturating_add(1)
    }
}

fn point(copies: u64, gap: u64) -> Params {
    let mut params = Params::new();
    params.set(COPIES, copies);
    params.set(GAP, gap);
    params
}

/// The time in which the flow sends as many packets as are lost in `runs` mean runs, in whole
/// milliseconds and within the bounds of what is proposed, of which so many are of use.
fn gap(setting: &Setting, runs: u64, copies: u64) -> u64 {
    let packets = packets_per_unit(&setting.units, setting.path.datagram_len);
    let per_ks = setting.units.per_ks.saturating_mul(packets);
    // Thousandths of a packet over packets per 1,000 s: seconds.
    let lost = setting.path.burst_milli.max(1_000).saturating_mul(runs);
    let in_time = setting.spare_after_path_ns() / copies / MILLISECOND * MILLISECOND;
    whole_milliseconds(ratio(lost, 1_000_000_000, per_ks)).min(in_time).clamp(GAP_MIN, GAP_MAX)
}

/// The chance, in ppb, that a run of losses that took a packet still goes on when as many packets
/// followed as the flow sends in `gap`.
///
/// It is computed from the path alone and for datagrams that are full, the fewest that there can
/// be: computed from the room below, more room would make fewer packets, and a better service below
/// a worse one above.
fn outlasts(setting: &Setting, gap: u64) -> u64 {
    running(goes_on(&setting.path), packets_in(&setting.units, setting.path.datagram_len, gap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{internet, service};

    #[test]
    fn gaps_let_the_runs_of_the_path_pass_within_their_bounds() {
        // 700 packets per second: runs of three take 4.3 ms, four of them 17.2 ms.
        let pictures = internet(20_000, 60_000);
        let points = SentAgain.points(&pictures, &service());
        let (short, long) = (10 * MILLISECOND, 18 * MILLISECOND);
        assert_eq!(points, [point(1, short), point(2, short), point(1, long)]);
        // 50 packets per second: 60 ms, and 240 ms is too long.
        let sound = internet(500, 500);
        let points = SentAgain.points(&sound, &service());
        let (short, long) = (60 * MILLISECOND, 100 * MILLISECOND);
        assert_eq!(points, [point(1, short), point(2, short), point(1, long)]);
        let mut single = sound;
        single.path.burst_milli = 1_000;
        assert_eq!(SentAgain.points(&single, &service()).len(), 2);
    }

    #[test]
    fn single_losses_are_squared_by_one_copy_and_cubed_by_two() {
        let mut setting = internet(500, 500);
        setting.path.burst_milli = 1_000;
        let loss = |copies| SentAgain.figures(&point(copies, GAP_MIN), &setting, &service());
        assert_eq!(loss(1).loss_ppb, 25_000);
        assert_eq!(loss(2).loss_ppb, 125);
        assert_eq!(loss(1).rate_bps, service().figures.rate_bps / 2);
    }

    #[test]
    fn a_run_that_outlasts_the_gap_takes_the_copy_too() {
        // 7 packets in 10 ms: a run goes on so long with (2/3)^7.
        let setting = internet(20_000, 60_000);
        let goes_on = outlasts(&setting, GAP_MIN);
        assert!(goes_on.abs_diff(58_527_664) < 10, "{goes_on}");
        let figures = SentAgain.figures(&point(1, GAP_MIN), &setting, &service());
        assert!(figures.loss_ppb.abs_diff(5_000_000 / 1_000 * 63) < 5_000, "{figures:?}");
        // A third as many runs as losses, as below, and some more by two runs that meet.
        assert!(figures.loss_runs_ppb.abs_diff(1_666_667 / 1_000 * 68) < 2_000, "{figures:?}");
    }

    #[test]
    fn delay_grows_when_more_than_one_of_a_hundred_needs_a_copy() {
        let setting = internet(500, 500);
        let delay = |loss: u64, copies| {
            let mut below = service();
            below.figures.loss_ppb = loss;
            let figures = SentAgain.figures(&point(copies, GAP_MIN), &setting, &below);
            (figures.delay_ns - below.figures.delay_ns, figures.jitter_ns - below.figures.jitter_ns)
        };
        assert_eq!(delay(0, 2), (0, 0));
        assert_eq!(delay(9_999_999, 1), (0, GAP_MIN));
        assert_eq!(delay(10_000_000, 1), (GAP_MIN, GAP_MIN));
        assert_eq!(delay(10_000_000, 2), (GAP_MIN, 2 * GAP_MIN));
        assert_eq!(delay(100_000_000, 2), (2 * GAP_MIN, 2 * GAP_MIN));
    }
}
