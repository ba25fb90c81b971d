//! What `use-by` does to what is predicted: nothing is handed over later than its deadline.
//!
//! No figure changes: what is late is booked as late, and a choice is made so that it is little
//! (see the demand `deadline` in `dacapo_qos`).

use super::use_by::{AGE, SPEC};
use dacapo_lift::{Cost, Params, Profile, Service, Setting};

/// Default, measured by `dacapo bench cost` on a loaded Intel Xeon: the mean of 10.4 and 38.7 ns a
/// train, and of 1.5 and 3.8 a packet.
const COST: Cost = Cost { train_ps: 24_600, packet_ps: 2_640, byte_ps: 0, wire_milli: 0 };

#[derive(Debug)]
pub(super) struct Stamps;

impl Profile for Stamps {
    /// Where there is a deadline.
    fn suits(&self, setting: &Setting) -> bool {
        setting.deadline_ns != u64::MAX
    }

    /// The deadline that there is.
    fn points(&self, setting: &Setting, _: &Service) -> Vec<Params> {
        let bounds = &SPEC.params[usize::from(AGE)];
        let mut params = Params::new();
        params.set(AGE, setting.deadline_ns.clamp(bounds.min, bounds.max));
        vec![params]
    }

    fn age_ns_max(&self, params: &Params) -> u64 {
        params.value(&SPEC, "age")
    }

    fn cost(&self, _: &Params) -> Cost {
        COST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{internet, service};

    #[test]
    fn it_is_proposed_for_a_deadline_and_with_that() {
        let free = internet(1_000, 1_000);
        assert!(!Stamps.suits(&free));
        for (asked, taken) in
            [(150_000_000, 150_000_000), (1, 1_000), (u64::MAX - 1, 1_800_000_000_000)]
        {
            let setting = Setting { deadline_ns: asked, ..free };
            assert!(Stamps.suits(&setting));
            let points = Stamps.points(&setting, &service());
            let values: Vec<u64> = points.iter().map(|it| it.value(&SPEC, "age")).collect();
            assert_eq!(values, [taken]);
        }
    }
}
