//! [`Touch`]: the module that is measured.
//!
//! As little as a module that does something can do: it writes a header and reads it.

use crate::{Cx, DropReason, Module, ModuleSpec, Verdict};
use dacapo_packet::Packet;

/// Bytes of head room that [`Touch`] writes.
pub const TOUCHED: usize = 4;

static TOUCH: ModuleSpec = ModuleSpec {
    mechanism: "a measurement's",
    summary: "what a module costs",
    head: TOUCHED as u16,
    ..ModuleSpec::plain("touch", 0xF0F0)
};

/// Writes four bytes before every segment, the number of the segment; takes them off on the way up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Touch {
    sent: u32,
    /// What was taken off, all together: so that it has to be read.
    seen: u32,
}

impl Module for Touch {
    fn spec(&self) -> &'static ModuleSpec {
        &TOUCH
    }

    #[inline(always)]
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

    #[inline(always)]
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
