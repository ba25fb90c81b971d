//! Parity: some packets more, from which as many that are lost can be computed: for every block of
//! packets, of those that were sent last, or of rows and columns of them.

pub mod rlc;
pub mod rs;
pub mod xor;

mod chain;
mod profile;
mod proposing;
mod report;
mod sending;
mod sliding;
mod strength;
mod turns;

use dacapo_lift::{ModuleSpec, Profile, Property};

/// What all of them have in common; name, number, head and parameters are each one's own.
const fn common(profile: &'static dyn Profile) -> ModuleSpec {
    ModuleSpec {
        function: "parity",
        keeps_order: false,
        requires: &[Property::Boundaries],
        takes: &[Property::Order, Property::Answers],
        beneath: &["ordering", "duplicates", "redundancy"],
        profile,
        ..ModuleSpec::plain("", 0)
    }
}
