//! What `sequence` does to what is predicted: packets wait for those before them.
//!
//! ```text
//!   lost or late   x
//!   come             1  2  3  4  |  5         1 to 4 wait up to `hold` for x, 5 does not:
//!                  |<-- hold --->|            x is given up by then
//! ```

use super::sequence::{HOLD, SPEC};
use crate::arithmetic::{
    MILLISECOND, ONE_IN_HUNDRED, loss_runs, packets_in, ratio, whole_milliseconds,
};
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Property, Service, Setting};

/// Default, measured by `dacapo bench cost` on AMD EPYC.
const COST: Cost = Cost { train_ps: 5_740, packet_ps: 3_580, byte_ps: 1, wire_milli: 0 };

#[derive(Debug)]
pub(super) struct Waiting;

impl Profile for Waiting {
    /// One: `hold` as long as the jitter below, in whole milliseconds, because a packet that took
    /// another way is there by then, and a longer wait brings nothing but delay.
    fn points(&self, _: &Setting, below: &Service) -> Vec<Params> {
        let bounds = &SPEC.params[usize::from(HOLD)];
        let hold = whole_milliseconds(below.figures.jitter_ns);
        let mut params = Params::new();
        params.set(HOLD, hold.clamp(MILLISECOND.max(bounds.min), bounds.max));
        vec![params]
    }

    /// Above what is in order already nothing waits, and nothing changes. Else:
    /// - One run of losses holds up the packets of the next `hold`, at least one:
    ///   `runs * max(1, packets in hold)` of all. Are these 1 % or more, then 99 of 100 do not wait
    ///   longer than `hold` after they came by themselves, which those do that wait: what comes
    ///   later, because it was made good, was waited for itself. The same for the jitter.
    /// - A loss of the path that something below repairs holds them up until the repair is there:
    ///   the jitter below, and no longer than `hold`, after the shortest delay of the path.
    /// - `hold` below the jitter, which nobody proposes, gives up what comes later than that: of
    ///   the 1 % that exceed the jitter anyhow a share as large as what `hold` leaves uncovered.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let figures = below.figures;
        if below.properties.contains(Property::Order) {
            return figures;
        }
        let hold = params.value(&SPEC, "hold");
        let room = below.payload_len_max.saturating_sub(u32::from(SPEC.head));
        let waiting = packets_in(&setting.units, room, hold);
        let held_up = |runs: u64| runs.saturating_mul(waiting) >= ONE_IN_HUNDRED;

        let is_held_up = held_up(figures.loss_runs_ppb);
        let by_itself = setting.path.delay_ns.saturating_add(setting.path.jitter_ns);
        let held = if is_held_up { by_itself.saturating_add(hold) } else { 0 };
        let held_jitter = if is_held_up { setting.path.jitter_ns.saturating_add(hold) } else { 0 };
        let repaired = setting.path.delay_ns.saturating_add(figures.jitter_ns.min(hold));
        let repaired = if held_up(loss_runs(&setting.path)) { repaired } else { 0 };
        let late = late(hold, figures.jitter_ns);
        let loss = figures.loss_ppb.saturating_add(late).min(PPB);
        Figures {
            loss_ppb: loss,
            loss_runs_ppb: figures.loss_runs_ppb.saturating_add(late).min(loss),
            delay_ns: figures.delay_ns.max(held).max(repaired),
            jitter_ns: figures.jitter_ns.max(held_jitter),
            rate_bps: figures.rate_bps,
        }
    }

    fn cost(&self, _: &Params) -> Cost {
        COST
    }
}

/// The share of packets, in ppb, that come later than `hold` and are not waited for.
fn late(hold: u64, jitter: u64) -> u64 {
    ratio(ONE_IN_HUNDRED, jitter.saturating_sub(hold), jitter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{internet, service};
    use dacapo_lift::Properties;

    fn held(ms: u64) -> Params {
        let mut params = Params::new();
        params.set(HOLD, ms * MILLISECOND);
        params
    }

    #[test]
    fn hold_is_the_jitter_in_whole_milliseconds_within_its_bounds() {
        let mut below = service();
        for (jitter, hold) in [(0, 1), (1, 1), (10_000_001, 11), (u64::MAX, 10_000)] {
            below.figures.jitter_ns = jitter;
            let points = Waiting.points(&internet(500, 500), &below);
            assert_eq!(points, [held(hold)], "{jitter} ns");
        }
    }

    #[test]
    fn above_order_nothing_changes() {
        let mut below = service();
        below.properties = Properties::of(&[Property::Boundaries, Property::Order]);
        let figures = Waiting.figures(&held(0), &internet(500, 500), &below);
        assert_eq!(figures, below.figures);
    }

    #[test]
    fn losses_that_hold_up_less_than_one_of_a_hundred_do_not_show() {
        // 50 packets per second, a sixth of a percent of runs: one packet each is held up.
        let (setting, below) = (internet(500, 500), service());
        assert_eq!(Waiting.figures(&held(10), &setting, &below), below.figures);
        // 700 packets per second: seven each in 10 ms, 1.2 % in all.
        let pictures = internet(20_000, 60_000);
        let figures = Waiting.figures(&held(10), &pictures, &below);
        assert_eq!(figures.delay_ns, below.figures.delay_ns + 10 * MILLISECOND);
        assert_eq!(figures.jitter_ns, below.figures.jitter_ns + 10 * MILLISECOND);
        assert_eq!(figures.loss_ppb, below.figures.loss_ppb);
    }

    #[test]
    fn repaired_losses_hold_up_what_is_behind_them_too() {
        let mut below = service();
        below.figures.loss_ppb = 0;
        below.figures.loss_runs_ppb = 0;
        below.figures.jitter_ns = 30 * MILLISECOND;
        let figures = Waiting.figures(&held(30), &internet(20_000, 60_000), &below);
        assert_eq!(figures.delay_ns, 60 * MILLISECOND);
        assert_eq!(figures.jitter_ns, below.figures.jitter_ns);
    }

    #[test]
    fn what_was_made_good_later_is_not_waited_for_once_more() {
        let mut below = service();
        // Repairs take up to 120 ms, and 2 % stay lost.
        (below.figures.loss_ppb, below.figures.loss_runs_ppb) = (20_000_000, 20_000_000);
        (below.figures.delay_ns, below.figures.jitter_ns) = (150_000_000, 130_000_000);
        let figures = Waiting.figures(&held(130), &internet(20_000, 60_000), &below);
        assert_eq!(figures.delay_ns, 170 * MILLISECOND, "30 ms, 10 of jitter, and 130");
        assert_eq!(figures.jitter_ns, 140 * MILLISECOND);
    }

    #[test]
    fn a_hold_below_the_jitter_loses_up_to_one_of_a_hundred() {
        let (setting, below) = (internet(500, 500), service());
        let lost = |ms| Waiting.figures(&held(ms), &setting, &below).loss_ppb;
        let before = below.figures.loss_ppb;
        assert_eq!([lost(0), lost(5)], [before + PPB / 100, before + PPB / 200]);
        assert_eq!([lost(10), lost(11)], [before; 2]);
    }
}
