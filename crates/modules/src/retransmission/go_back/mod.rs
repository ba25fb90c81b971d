//! Module `arq-gbn`: everything arrives, in order, and the receiver keeps no packets.
//!
//! ```text
//!   down    1  2  3  4       2' 3' 4'          goes back to 2
//!   wire    1  x  3  4       2' 3' 4'
//!   up      1                2  3  4           3 and 4 were dropped
//!   back           2!                  5       2 is expected, though 3 came
//! ```
//!
//! Go-back-N as XTP 4.0 has it: what comes out of order is discarded, an acknowledgement says the
//! number that is expected, and one is sent at once when something comes behind that (FASTNAK). The
//! sender goes back to it when the packet that came had left after it: what was under way before it
//! went back is no reason to do so again (RFC 8985). For the rest it is `arq-sr`, with the same
//! header, of which it says no ranges: `acknowledged`.
//!
//! Invariants: what is taken goes up at the peer, once and in order, as long as there is a way; at
//! most 8,192 packets and about 8 MiB are kept at the sender, and none at the receiver.

mod profile;
mod receiving;

use super::acknowledged::sending::Again;
use super::acknowledged::{self, Acknowledged};
use dacapo_lift::{Entry, Module, ModuleSpec, Params, Property, Setup, Stratum};
use dacapo_wire::acknowledgement::LEN;
use profile::GoneBack;
use receiving::Receiving;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "arq-gbn",
    id: 0x0015,
    function: "retransmission",
    mechanism: "go-back-N (XTP 4.0)",
    summary: "everything arrives, in order, and the receiver keeps nothing: what is behind a loss \
              is sent again, too",
    stratum: Stratum::Repair,
    head: LEN as u16,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: false,
    segments: false,
    acknowledges: true,
    orders: None,
    requires: &[Property::Boundaries, Property::WayBack],
    provides: &[Property::Order, Property::NoDuplicates, Property::NoLoss],
    takes: &[],
    beneath: &["ordering"],
    notes: &["packets_repaired"],
    profile: &GoneBack,
    params: &[],
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// The code of the note that says how many packets were sent again.
pub const NOTE_REPAIRED: u16 = acknowledged::NOTE_REPAIRED;

fn build(_: &Params, setup: &Setup) -> Box<dyn Module> {
    Box::new(Acknowledged::new(&SPEC, Again::AllBehind, Receiving::default(), setup))
}
