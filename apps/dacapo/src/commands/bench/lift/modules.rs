//! The modules that are measured: one that touches a header, one that does nothing.
//!
//! What it is not: in a catalogue; no graph can be made of them.

use dacapo_lift::{Cx, DropReason, Module, ModuleSpec, Neutral, Stratum, Verdict};
use dacapo_packet::Packet;

/// Bytes of head room that [`Touch`] writes.
pub const TOUCHED: usize = 4;

static TOUCH: ModuleSpec = spec("touch", 0xF0F0, TOUCHED as u16);
static PASS: ModuleSpec = spec("pass", 0xF0F1, 0);

const fn spec(name: &'static str, id: u16, head: u16) -> ModuleSpec {
    ModuleSpec {
        name,
        id,
        function: name,
        mechanism: "a measurement's",
        summary: "what a module costs",
        stratum: Stratum::Repair,
        head,
        tail: 0,
        trains_down: true,
        trains_up: true,
        keeps_order: true,
        segments: false,
        requires: &[],
        provides: &[],
        takes: &[],
        beneath: &[],
        profile: &Neutral,
        params: &[],
    }
}

/// Writes four bytes before every segment, the number of the segment; takes them off on the way up.
#[derive(Default)]
pub struct Touch {
    sent: u32,
    /// What was taken off, all together: so that it has to be read.
    seen: u32,
}

impl Module for Touch {
    fn spec(&self) -> &'static ModuleSpec {
        &TOUCH
    }

    #[inline]
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let sent = &mut self.sent;
        let put = cx.pool.put_head(slot, |_| {
            *sent = sent.wrapping_add(1);
            sent.to_be_bytes()
        });
        match put {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::TooLarge),
        }
    }

    #[inline]
    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match cx.pool.take_head(slot) {
            Ok(bytes) => {
                self.seen = self.seen.wrapping_add(u32::from_be_bytes(bytes));
                Verdict::Forward
            }
            Err(_) => Verdict::Drop(DropReason::Malformed),
        }
    }
}

/// Forwards.
#[derive(Default)]
pub struct Pass;

impl Module for Pass {
    fn spec(&self) -> &'static ModuleSpec {
        &PASS
    }
}
