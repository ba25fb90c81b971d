//! Trains on their way up: what is the same for all their segments is done once, and where segments
//! differ they go one by one.
//!
//! Invariant: the slot is empty afterwards, and every segment was passed on, kept or counted.

use dacapo_lift::{Cx, DropReason, Verdict};
use dacapo_packet::Packet;

/// Cuts the train in the slot into parts of as many segments as `count` says, and gives each to
/// `part`; what that forwards goes up in order.
pub(crate) fn in_parts(
    cx: &mut Cx<'_>,
    slot: &mut Packet,
    mut count: impl FnMut(&Cx<'_>, &Packet) -> usize,
    mut part: impl FnMut(&mut Cx<'_>, &mut Packet) -> Verdict,
) -> Verdict {
    let mut rest = slot.take();
    while !rest.is_empty_slot() {
        let segments = count(cx, &rest).max(1);
        let mut first = match cx.pool.split_first(&mut rest, segments) {
            Some(first) => first,
            None => rest.take(),
        };
        match part(cx, &mut first) {
            Verdict::Forward => up_or_drop(cx, first),
            Verdict::Held => cx.pool.free(first),
            Verdict::Drop(reason) => cx.discard(first, reason),
        }
    }
    Verdict::Held
}

/// Emits a packet upwards; what exceeds the bound is counted.
pub(crate) fn up_or_drop(cx: &mut Cx<'_>, packet: Packet) {
    if let Err(packet) = cx.emit_up(packet) {
        cx.discard(packet, DropReason::Overflow);
    }
}
