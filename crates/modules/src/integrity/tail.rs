//! A check at the end of every packet, over all bytes before it.
//!
//! ```text
//!   down  | headers and payload |  ->  | headers and payload | check |
//!   up    the same, back; a packet whose check is another is dropped: `checksum`
//! ```
//!
//! Invariant: a train of which every segment checks goes up whole, else its segments one by one.

use crate::runs::in_parts;
use dacapo_lift::{Cx, DropReason, Verdict};
use dacapo_packet::Packet;

/// Puts the check behind every segment.
#[inline]
pub(super) fn put<const N: usize>(
    cx: &mut Cx<'_>,
    slot: &mut Packet,
    check: impl Fn(&[u8]) -> [u8; N],
) -> Verdict {
    match cx.pool.put_tail(slot, check) {
        Ok(()) => Verdict::Forward,
        Err(_) => Verdict::Drop(DropReason::TooLarge),
    }
}

/// Takes it off again, where it is right.
#[inline]
pub(super) fn take<const N: usize>(
    cx: &mut Cx<'_>,
    slot: &mut Packet,
    check: impl Fn(&[u8]) -> [u8; N] + Copy,
) -> Verdict {
    let checks = |at| checks(cx.pool.segment(slot, at), check);
    match (0..slot.segment_count()).try_for_each(checks) {
        Ok(()) => {}
        Err(_) if slot.is_train() => {
            return in_parts(cx, slot, |_, _| 1, |cx, part| take_one(cx, part, check));
        }
        Err(reason) => return Verdict::Drop(reason),
    }
    off::<N>(cx, slot)
}

fn take_one<const N: usize>(
    cx: &mut Cx<'_>,
    one: &mut Packet,
    check: impl Fn(&[u8]) -> [u8; N],
) -> Verdict {
    match checks(cx.pool.segment(one, 0), check) {
        Ok(()) => off::<N>(cx, one),
        Err(reason) => Verdict::Drop(reason),
    }
}

fn off<const N: usize>(cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
    match cx.pool.pull_tail(slot, N) {
        Ok(()) => Verdict::Forward,
        Err(_) => Verdict::Drop(DropReason::Malformed),
    }
}

/// Whether a packet ends with the check over the bytes before.
#[inline]
fn checks<const N: usize>(
    packet: &[u8],
    check: impl Fn(&[u8]) -> [u8; N],
) -> Result<(), DropReason> {
    let Some((before, sent)) = packet.split_last_chunk::<N>() else {
        return Err(DropReason::Malformed);
    };
    if *sent == check(before) { Ok(()) } else { Err(DropReason::Checksum) }
}
