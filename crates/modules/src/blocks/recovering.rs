//! [`Recovering`]: packets of blocks on their way up, and those that are computed of them.
//!
//! ```text
//!   come   s0 . s2 p      up  s0   s2   s1     what comes at once, what is computed when it can be
//! ```

use super::receiving::{Place, Receiving};
use crate::runs::{consecutive, in_parts, up_or_drop};
use dacapo_lift::{Cx, DropReason, Verdict};
use dacapo_packet::Packet;
use dacapo_wire::parity::{Header, LEN};

/// The code of the note that says how many packets were computed.
pub const NOTE_COMPUTED: u16 = 1;

#[derive(Debug, Default)]
pub(crate) struct Recovering {
    pub receiving: Receiving,
    /// A parity has come since this was asked last.
    has_parity: bool,
    /// How many packets were computed.
    computed: i64,
}

/// How many sources of one block, which follow each other, a packet begins with; 1 for everything
/// else.
pub(crate) fn run_of(cx: &Cx<'_>, packet: &Packet) -> usize {
    consecutive(cx, packet, |bytes| {
        let header = Header::parse(bytes).ok().filter(|header| !header.is_parity())?;
        Some((header.index.into(), (header.block, header.sources)))
    })
}

impl Recovering {
    /// Takes a run that fills its slot.
    pub fn up_run(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let Ok(header) = Header::parse(cx.pool.segment(slot, 0)) else {
            return Verdict::Drop(DropReason::Malformed);
        };
        let number = match self.receiving.place(cx.pool, &header) {
            Place::In(number) => number,
            Place::Late => return Verdict::Drop(DropReason::Stale),
            Place::Beyond => return Verdict::Drop(DropReason::Overflow),
        };
        if header.is_parity() {
            return self.take_parity(cx, number, &header, slot);
        }
        let count = slot.segment_count();
        if count > 1 && !self.receiving.takes_run(number, header.index, count) {
            return in_parts(cx, slot, |_, _| 1, |cx, part| self.up_run(cx, part));
        }
        if self.receiving.has(number, header.index) {
            return Verdict::Drop(DropReason::Duplicate);
        }
        self.receiving.add_sources(cx, number, &header, slot);
        self.compute(cx, number);
        match cx.pool.pull_head(slot, LEN) {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::Malformed),
        }
    }

    fn take_parity(
        &mut self,
        cx: &mut Cx<'_>,
        number: u64,
        header: &Header,
        slot: &mut Packet,
    ) -> Verdict {
        self.has_parity = true;
        let rest = self.receiving.add_parity(cx, number, header, slot.take());
        rest.into_iter().for_each(|parity| cx.pool.free(parity));
        self.compute(cx, number);
        Verdict::Held
    }

    /// Whether a parity has come since this was asked last.
    pub fn take_has_parity(&mut self) -> bool {
        std::mem::take(&mut self.has_parity)
    }

    /// Sends what can be computed of a block upwards.
    pub fn compute(&mut self, cx: &mut Cx<'_>, number: u64) {
        let before = self.computed;
        let computed = &mut self.computed;
        self.receiving.solve(cx, number, |cx, bytes| {
            let Ok(mut packet) = cx.pool.packet_from(0, bytes, 0) else {
                return cx.not_made(1, DropReason::NoMemory);
            };
            packet.time = cx.now();
            *computed += 1;
            up_or_drop(cx, packet);
        });
        if self.computed != before {
            cx.note(NOTE_COMPUTED, self.computed);
        }
    }
}
