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

/// Gives the slot to `run` where it is one run, as `count` says, and else its runs one by one.
pub(crate) fn in_runs(
    cx: &mut Cx<'_>,
    slot: &mut Packet,
    count: impl Fn(&Cx<'_>, &Packet) -> usize,
    mut run: impl FnMut(&mut Cx<'_>, &mut Packet) -> Verdict,
) -> Verdict {
    if count(cx, slot) < slot.segment_count() {
        return in_parts(cx, slot, count, run);
    }
    run(cx, slot)
}

/// How many segments, from the first on, follow each other by `number`: the number of one and what
/// else they must have in common; none for what is no packet of the peer's application, which is
/// alone.
pub(crate) fn consecutive<K: PartialEq>(
    cx: &Cx<'_>,
    packet: &Packet,
    number: impl Fn(&[u8]) -> Option<(u32, K)>,
) -> usize {
    let count = packet.segment_count();
    if count == 1 {
        return 1;
    }
    let read = |at: usize| number(cx.pool.segment(packet, at));
    let Some((first, kind)) = read(0) else { return 1 };
    let follows = |at: &usize| {
        read(*at).is_some_and(|(it, other)| it == first.wrapping_add(*at as u32) && other == kind)
    };
    1 + (1..count).take_while(follows).count()
}

/// Emits a packet upwards; what exceeds the bound is counted.
pub(crate) fn up_or_drop(cx: &mut Cx<'_>, packet: Packet) {
    if let Err(packet) = cx.emit_up(packet) {
        cx.discard(packet, DropReason::Overflow);
    }
}

/// Emits a packet downwards; what exceeds the bound is counted.
pub(crate) fn down_or_drop(cx: &mut Cx<'_>, packet: Packet) {
    if let Err(packet) = cx.emit_down(packet) {
        cx.discard(packet, DropReason::Overflow);
    }
}
