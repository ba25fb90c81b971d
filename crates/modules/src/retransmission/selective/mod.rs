//! Module `arq-sr`: everything arrives; what is lost is sent again, and nothing else.
//!
//! ```text
//!   down    1  2  3  4       2'
//!   wire    1  x  3  4       2'
//!   up      1                2 3 4            in order, or 1 3 4 2 as they come
//!   back                1, 3..4     ..4       everything before this, and these ranges
//! ```
//!
//! The sender keeps what is not acknowledged, and takes no more when that is too much: who feeds it
//! waits. The receiver holds what came out of order, unless it is to go up as it comes, and says
//! what has come. What others have
//! overtaken for too long is sent again; where nothing is heard at all, something is, to ask.
//!
//! Sources: RFC 2018 (selective acknowledgement), RFC 8985 (what is lost, by time), RFC 6298 (round
//! trips), RFC 9002 section 6.2 (probes), RFC 2883 (duplicates). Header and form are our own
//! (`dacapo_wire::acknowledgement`).
//!
//! Invariants: what is taken goes up at the peer, once, as long as there is a way; at
//! most 8,192 packets and about 8 MiB are kept at the sender, and 8,192 packets held at the
//! receiver.

mod profile;
mod receiving;

use super::acknowledged::sending::Again;
use super::acknowledged::{self, Acknowledged};
use dacapo_lift::{
    Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params, Property, Setup, Stratum,
};
use dacapo_wire::acknowledgement::LEN;
use profile::Selected;
use receiving::Receiving;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "arq-sr",
    id: 0x0007,
    function: "retransmission",
    mechanism: "selective acknowledgement (RFC 2018, 8985)",
    summary: "everything arrives: what is lost is sent again until it is acknowledged",
    stratum: Stratum::Repair,
    head: LEN as u16,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: false,
    segments: false,
    acknowledges: true,
    orders: Some(ORDERED),
    requires: &[Property::Boundaries, Property::WayBack],
    provides: &[Property::NoDuplicates, Property::NoLoss],
    takes: &[Property::Order],
    beneath: &["ordering"],
    notes: &["packets_repaired"],
    profile: &Selected,
    params: &[ParamSpec {
        name: "ordered",
        unit: ParamUnit::Count,
        default: 1,
        min: 0,
        max: 1,
        summary: "1: a packet waits until those before it have come",
        control: None,
    }],
};

/// The number of the parameter.
const ORDERED: u16 = 0;

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// The code of the note that says how many packets were sent again.
pub const NOTE_REPAIRED: u16 = acknowledged::NOTE_REPAIRED;

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    let receiving = Receiving::new(params.value(&SPEC, "ordered") != 0);
    Box::new(Acknowledged::new(&SPEC, Again::Lost, receiving, setup))
}
