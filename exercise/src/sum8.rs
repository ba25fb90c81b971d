//! C-module `sum8`: the sum of all bytes of a packet, modulo 256, behind it.
//!
//! ```text
//!   down  | headers and payload |  ->  | headers and payload | sum |
//!   up    the same, back; a packet whose sum is another is dropped: `checksum`
//! ```
//!
//! A toy: every 256th alteration passes, and so does any exchange of bytes. `checksum` is for use.

use dacapo_lift::{
    Cost, Cx, DropReason, Entry, Module, ModuleSpec, Params, Profile, Setup, Stratum, Verdict,
};
use dacapo_packet::Packet;

/// What the catalogue is told: name, number, place in a graph, bytes that it adds.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "sum8",
    id: 0xF0E8,
    function: "integrity",
    mechanism: "sum of bytes",
    summary: "the sum of all bytes behind every packet; a toy",
    stratum: Stratum::Protect,
    head: 0,
    tail: 1,
    trains_down: false,
    trains_up: false,
    keeps_order: true,
    segments: false,
    acknowledges: false,
    orders: None,
    requires: &[],
    provides: &[],
    takes: &[],
    beneath: &[],
    notes: &[],
    profile: &Price,
    params: &[],
};

/// The catalogue's entry, for [`dacapo::Builder::module`].
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

#[derive(Debug)]
struct Price;

impl Profile for Price {
    fn cost(&self, _: &Params) -> Cost {
        Cost { train_ps: 0, packet_ps: 20_000, byte_ps: 100, wire_milli: 0 }
    }
}

fn build(_: &Params, _: &Setup) -> Box<dyn Module> {
    Box::new(Sum8)
}

struct Sum8;

impl Module for Sum8 {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match cx.pool.put_tail(slot, |before| [sum(before)]) {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::TooLarge),
        }
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let is_right = match cx.pool.segment(slot, 0).split_last() {
            None => return Verdict::Drop(DropReason::Malformed),
            Some((sent, before)) => *sent == sum(before),
        };
        match cx.pool.pull_tail(slot, 1) {
            Ok(()) if is_right => Verdict::Forward,
            Ok(()) => Verdict::Drop(DropReason::Checksum),
            Err(_) => Verdict::Drop(DropReason::Malformed),
        }
    }
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}
