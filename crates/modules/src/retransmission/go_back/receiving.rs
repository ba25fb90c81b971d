//! [`Receiving`]: the number that is expected, and no packets.
//!
//! ```text
//!   come    1 2 . 4 5 . 3'      up: 1 2 3      4 and 5 are dropped, and come again
//!   back           3!           expected, though 4 came: 3 is missing
//! ```
//!
//! Invariant: numbers go up in order, each once; nothing is kept.

use super::super::acknowledged::Receives;
use super::super::acknowledged::saying::Saying;
use crate::copying::Copier;
use crate::emitting::tell;
use crate::window::WINDOW;
use dacapo_lift::{Cx, DropReason, Verdict};
use dacapo_packet::Packet;
use dacapo_wire::acknowledgement::{Header, Kind, LEN, extend};

#[derive(Debug, Default)]
pub(super) struct Receiving {
    expected: u64,
    saying: Saying,
    /// Something came behind what is expected, and it was said.
    is_told: bool,
}

impl Receives for Receiving {
    fn take(
        &mut self,
        cx: &mut Cx<'_>,
        copier: &Copier,
        (low, attempt): (u32, u8),
        slot: &mut Packet,
    ) -> Option<Verdict> {
        let count = slot.segment_count();
        let number = extend(low, self.expected);
        let most = self.expected + WINDOW as u64;
        let Some(number) = number.filter(|number| number + count as u64 <= most) else {
            return Some(Verdict::Drop(DropReason::Malformed));
        };
        let is_partly_new = number < self.expected && number + count as u64 > self.expected;
        if is_partly_new {
            return None;
        }
        self.saying.note(cx.now(), (low, attempt), count);
        let is_ahead = number > self.expected;
        let verdict = if number == self.expected {
            match cx.pool.pull_head(slot, LEN) {
                Ok(()) => {
                    (self.expected, self.is_told) = (number + count as u64, false);
                    Verdict::Forward
                }
                Err(_) => Verdict::Drop(DropReason::Malformed),
            }
        } else if is_ahead {
            Verdict::Drop(DropReason::Overflow)
        } else {
            self.saying.note_duplicate(cx.now());
            Verdict::Drop(DropReason::Duplicate)
        };
        // The first that is missing is told at once (XTP 4.0, FASTNAK).
        let is_news = is_ahead && !std::mem::replace(&mut self.is_told, is_ahead);
        if self.saying.is_enough(cx.now(), is_ahead) || is_news {
            self.acknowledge(cx, copier);
        }
        Some(verdict)
    }

    fn saying(&self) -> &Saying {
        &self.saying
    }

    /// Says what is expected, and of the packet that came last: where that is behind it,
    /// something is missing.
    fn acknowledge(&mut self, cx: &mut Cx<'_>, copier: &Copier) {
        let Some(state) = self.saying.say(cx.now()) else { return };
        let header = Header { number: self.expected as u32, kind: Kind::Acknowledged };
        tell(cx, copier, header.emit(), &state.emit());
    }

    fn flush(&mut self, _: &mut Cx<'_>) {
        self.saying.rest();
        self.is_told = false;
    }
}
