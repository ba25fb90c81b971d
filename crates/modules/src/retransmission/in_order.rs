//! [`InOrder`]: packets that wait until those before them have come, or are given up.
//!
//! ```text
//!   come     1 2 . 4 5 . 7       4, 5 and 7 wait
//!   3 comes      3 4 5           or is given up: 4 and 5 go
//! ```
//!
//! Invariants: packets go up in the order of their numbers; those that wait are behind one that is
//! missing, at most [`WINDOW`](crate::window::WINDOW).

use crate::window::{Place, Window};
use dacapo_lift::{Cx, DropReason, Verdict};
use dacapo_packet::Packet;

#[derive(Debug)]
pub(super) struct InOrder(Window);

impl Default for InOrder {
    fn default() -> Self {
        Self(Window::new())
    }
}

impl InOrder {
    /// Begins anew with this number as the next; nothing waits.
    pub fn begin_at(&mut self, number: u64) {
        self.0.begin_at(number);
    }

    /// How many packets wait.
    pub fn held(&self) -> usize {
        self.0.held()
    }

    /// A packet or train that has not come before.
    pub fn take(&mut self, cx: &mut Cx<'_>, number: u64, slot: &mut Packet) -> Verdict {
        match self.0.place_run(number, slot.segment_count()) {
            Some(Place::Next) => self.0.pass(cx, slot),
            Some(Place::Ahead(ahead)) => {
                self.0.keep(cx, ahead, slot);
                Verdict::Held
            }
            // It came before, or is too far ahead: who calls takes such a packet for no new one.
            _ => Verdict::Drop(DropReason::Overflow),
        }
    }

    /// Whatever lies before `number` waits here, or is given up.
    pub fn pass_over(&mut self, cx: &mut Cx<'_>, number: u64) {
        self.0.release_all(cx);
        while self.0.held() > 0 && self.0.next() < number {
            self.0.skip_before(number);
            self.0.release_all(cx);
        }
        if self.0.held() == 0 {
            self.0.jump(number);
        }
    }

    /// Gives back what waits.
    pub fn flush(&mut self, cx: &mut Cx<'_>) {
        self.0.drain().for_each(|packet| cx.discard(packet, DropReason::Shutdown));
    }
}
