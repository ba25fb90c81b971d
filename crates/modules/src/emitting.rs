//! What modules send of their own: packets again, and what they tell each other.

use crate::copying::Copier;
use dacapo_lift::{Cx, DropReason, Verdict};
use dacapo_packet::{Kind, Packet};

/// What goes on behind its header, each segment behind that of its place.
#[inline]
pub(crate) fn behind<const LEN: usize>(
    cx: &mut Cx<'_>,
    slot: &mut Packet,
    header: impl FnMut(usize) -> [u8; LEN],
) -> Verdict {
    match cx.pool.put_head(slot, header) {
        Ok(()) => Verdict::Forward,
        Err(_) => Verdict::Drop(DropReason::TooLarge),
    }
}

/// Sends the packet or train that the view shows again, each with the header of its place in it.
/// False where that cannot be, which is counted.
pub(crate) fn send_again<const LEN: usize>(
    cx: &mut Cx<'_>,
    copier: &mut Copier,
    view: &Packet,
    header: impl FnMut(usize) -> [u8; LEN],
) -> bool {
    let Ok(packet) = copier.copy(cx.pool, view) else {
        cx.not_made(view.segment_count() as u64, DropReason::NoMemory);
        return false;
    };
    emit(cx, packet, header)
}

/// Sends a packet of the module's own: a header, and what follows it.
pub(crate) fn tell<const LEN: usize>(
    cx: &mut Cx<'_>,
    copier: &Copier,
    header: [u8; LEN],
    body: &[u8],
) {
    let Ok(mut packet) = copier.make(cx.pool, body) else {
        return cx.not_made(1, DropReason::NoMemory);
    };
    packet.set_kind(Kind::Parity);
    packet.time = cx.now();
    emit(cx, packet, |_| header);
}

fn emit<const LEN: usize>(
    cx: &mut Cx<'_>,
    mut packet: Packet,
    header: impl FnMut(usize) -> [u8; LEN],
) -> bool {
    if cx.pool.put_head(&mut packet, header).is_err() {
        cx.discard(packet, DropReason::TooLarge);
        return false;
    }
    match cx.emit_down(packet) {
        Ok(()) => true,
        Err(packet) => {
            cx.discard(packet, DropReason::Overflow);
            false
        }
    }
}
