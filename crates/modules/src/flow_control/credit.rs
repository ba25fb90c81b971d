//! Module `credit`: no more units are sent than the receiving application has room for.
//!
//! The same as `window`, counted in units: for a reader that has so many places, or units of which
//! a window of bytes would hold too many. How it works: `controlled.rs`.

use super::Controlled;
use super::counted::Counted;
use super::profile::Limits;
use super::receivers::Slow;
use super::window;
use dacapo_lift::{Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params, Setup};

pub use super::window::NOTE_WAITED;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "credit",
    id: 0x0014,
    mechanism: "a credit of units (limits as in RFC 9000, section 4)",
    summary: "who sends waits for who reads, by units: none is sent that has no room",
    profile: &Limits(Counted::Units),
    params: &[
        ParamSpec {
            name: "units",
            unit: ParamUnit::Count,
            default: 512,
            min: 1,
            max: 1_000,
            summary: "how many units may be under way, or wait for the application",
            control: None,
        },
        window::SLOW,
    ],
    ..window::SPEC
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    let room = params.value(&SPEC, "units");
    let slow = Slow::of(params.value(&SPEC, "slow"));
    Box::new(Controlled::new(&SPEC, Counted::Units, (room, slow), setup))
}
