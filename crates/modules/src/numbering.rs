//! Packets with their numbers in front (`dacapo_wire::sequence`), for the modules that only count
//! them.

use crate::runs::consecutive;
use dacapo_lift::{Cx, DropReason, Verdict};
use dacapo_packet::Packet;
use dacapo_wire::sequence::Header;

/// Puts a number before every segment on its way down, from `next` on, which moves behind them.
pub(crate) fn number(cx: &mut Cx<'_>, slot: &mut Packet, next: &mut u64) -> Verdict {
    let first = *next;
    let put = cx.pool.put_head(slot, |at| Header { number: (first + at as u64) as u32 }.emit());
    if put.is_err() {
        return Verdict::Drop(DropReason::TooLarge);
    }
    *next += slot.segment_count() as u64;
    Verdict::Forward
}

/// How many segments from the first on have numbers that follow each other.
pub(crate) fn run_of(cx: &Cx<'_>, packet: &Packet) -> usize {
    consecutive(cx, packet, |bytes| Some((Header::parse(bytes).ok()?.number, ())))
}
