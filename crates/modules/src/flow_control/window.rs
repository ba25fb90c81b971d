//! Module `window`: no more bytes are sent than the receiving application has room for.
//!
//! RFC 9000, section 4, of one stream: limits are absolute and only grow. How it works:
//! `controlled.rs`. A unit that has begun goes to its end, so one that is longer than the
//! window goes alone. Where something is lost, places say what no longer comes.

use super::Controlled;
use super::counted::Counted;
use super::profile::Limits;
use super::receivers::Slow;
use dacapo_lift::{
    Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params, Property, Setup, Stratum,
};
use dacapo_wire::flow_control::LEN;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "window",
    id: 0x0013,
    function: "flow control",
    mechanism: "a window of bytes (RFC 9000, section 4)",
    summary: "who sends waits for who reads, by bytes: nothing is sent that has no room",
    stratum: Stratum::Shape,
    head: LEN as u16,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: true,
    segments: false,
    acknowledges: false,
    orders: None,
    requires: &[Property::Boundaries, Property::Answers],
    provides: &[Property::FlowControl],
    takes: &[],
    beneath: &[],
    notes: &["times_waited"],
    profile: &Limits(Counted::Bytes),
    params: &[
        ParamSpec {
            name: "bytes",
            unit: ParamUnit::Bytes,
            default: 1 << 20,
            min: 2_000,
            max: 3 << 20,
            summary: "how many bytes may be under way, or wait for the application",
            control: None,
        },
        SLOW,
    ],
};

/// The parameter by which it is said what becomes of who is slower than others of a group.
pub(super) const SLOW: ParamSpec = ParamSpec {
    name: "slow",
    unit: ParamUnit::Count,
    default: 1,
    min: 1,
    max: 3,
    summary: "in a group: 1 all wait for who is slow, 2 it loses, 3 it does after two seconds",
    control: None,
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// The code of the note that says how often the sender had to wait.
pub const NOTE_WAITED: u16 = super::controlled::NOTE_WAITED;

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    let room = params.value(&SPEC, "bytes");
    let slow = Slow::of(params.value(&SPEC, "slow"));
    Box::new(Controlled::new(&SPEC, Counted::Bytes, (room, slow), setup))
}
