//! What `window` and `credit` do to what is predicted: no more leaves in a round trip than there is
//! room for.
//!
//! ```text
//!   rate  <=  room / (there + back)          where the application takes all at once
//! ```

use super::counted::Counted;
use super::{credit, window};
use crate::arithmetic::{ratio, unit_bytes};
use dacapo_lift::{Cost, Figures, ModuleSpec, Params, Profile, Service, Setting};

/// Default, reckoned from `dedup`, which puts as much before each packet; not measured.
const COST: Cost = Cost { train_ps: 10_000, packet_ps: 2_600, byte_ps: 0, wire_milli: 0 };

#[derive(Debug)]
pub(super) struct Limits(pub Counted);

impl Limits {
    /// The spec that this is the profile of: looked up, for a value that held it would show itself
    /// without end.
    fn spec(&self) -> &'static ModuleSpec {
        match self.0 {
            Counted::Bytes => &window::SPEC,
            Counted::Units => &credit::SPEC,
        }
    }
}

impl Profile for Limits {
    /// How fast an application reads is nothing that a flow is asked for: only by name.
    fn suits(&self, _: &Setting) -> bool {
        false
    }

    /// How slow a reader is nobody knows, so it changes nothing else. Room is told again when a
    /// quarter of it is taken, so three quarters are there for a round trip.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let room = self.spec().value_of(params.values(), 0);
        let bytes = match self.0 {
            Counted::Bytes => room,
            Counted::Units => room.saturating_mul(unit_bytes(&setting.units)),
        };
        let figures = below.figures;
        let trip = figures.delay_ns.saturating_add(setting.path.delay_ns).max(1);
        let bits = bytes.saturating_mul(8).saturating_mul(3) / 4;
        let rate = ratio(bits, 1_000_000_000, trip);
        Figures { rate_bps: figures.rate_bps.min(rate), ..figures }
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
    fn no_more_is_predicted_than_there_is_room_for_in_a_round_trip() {
        let (setting, mut below) = (internet(20_000, 60_000), service());
        below.figures.rate_bps = u64::MAX;
        let rate = |spec: &ModuleSpec, room| {
            let mut params = Params::new();
            params.set(0, room);
            spec.profile.figures(&params, &setting, &below).rate_bps
        };
        let trip_ns = below.figures.delay_ns + setting.path.delay_ns;
        let most = |bytes: u64| (bytes * 6 * 1_000_000_000).div_ceil(trip_ns);
        assert_eq!(rate(&window::SPEC, 1_000_000), most(1_000_000));
        assert_eq!(rate(&credit::SPEC, 10), most(10 * unit_bytes(&setting.units)));
        below.figures.rate_bps = 9;
        let params = Params::new();
        assert_eq!(window::SPEC.profile.figures(&params, &setting, &below), below.figures);
        assert!(!window::SPEC.profile.suits(&setting) && !credit::SPEC.profile.suits(&setting));
    }
}
