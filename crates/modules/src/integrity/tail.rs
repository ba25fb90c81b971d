//! [`Tail`]: a module that puts a check at the end of every packet, over all bytes before it.
//!
//! ```text
//!   down  | headers and payload |  ->  | headers and payload | check |
//!   up    the same, back; a packet whose check is another is dropped: `checksum`
//! ```
//!
//! Invariants: no state, so nothing is held and nothing is lost at a change; a train of which every
//! segment checks goes up whole, else its segments one by one.

use crate::runs::in_parts;
use dacapo_lift::{Cx, DropReason, Module, ModuleSpec, Verdict};
use dacapo_packet::Packet;

/// The module with these facts, and this check of `N` bytes.
pub(super) struct Tail<const N: usize, C> {
    pub spec: &'static ModuleSpec,
    pub check: C,
}

impl<const N: usize, C> Module for Tail<N, C>
where
    C: Fn(&[u8]) -> [u8; N] + Send,
{
    fn spec(&self) -> &'static ModuleSpec {
        self.spec
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match cx.pool.put_tail(slot, &self.check) {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::TooLarge),
        }
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        for at in 0..slot.segment_count() {
            if let Err(reason) = self.checks(cx.pool.segment(slot, at)) {
                return self.up_altered(cx, slot, reason);
            }
        }
        Self::take_off(cx, slot)
    }
}

impl<const N: usize, C> Tail<N, C>
where
    C: Fn(&[u8]) -> [u8; N] + Send,
{
    /// Of a train the others go up.
    #[cold]
    fn up_altered(&mut self, cx: &mut Cx<'_>, slot: &mut Packet, why: DropReason) -> Verdict {
        if slot.is_train() {
            return in_parts(cx, slot, |_, _| 1, |cx, one| self.up(cx, one));
        }
        Verdict::Drop(why)
    }

    /// Whether a packet ends with the check over the bytes before.
    #[inline]
    fn checks(&self, packet: &[u8]) -> Result<(), DropReason> {
        let Some((before, sent)) = packet.split_last_chunk::<N>() else {
            return Err(DropReason::Malformed);
        };
        if *sent == (self.check)(before) { Ok(()) } else { Err(DropReason::Checksum) }
    }

    #[inline]
    fn take_off(cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match cx.pool.pull_tail(slot, N) {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::Malformed),
        }
    }
}
