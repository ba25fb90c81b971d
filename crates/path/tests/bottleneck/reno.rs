//! TCP Reno, to be beside: a packet more in each round trip, and half after a loss (RFC 5681).

use dacapo_base::Time;
use dacapo_path::{Controller, ControllerCx, ControllerEntry, ControllerSpec, Delivered, Lost};

const MSS: u64 = crate::world::PACKET_LEN as u64;

struct Reno {
    window: u64,
    threshold: u64,
    halved: Option<Time>,
}

static SPEC: ControllerSpec =
    ControllerSpec { name: "reno", summary: "", source: "RFC 5681", datagrams: true, usual: None };

pub fn entry() -> ControllerEntry {
    ControllerEntry::new(&SPEC, |_, _| {
        Box::new(Reno { window: 10 * MSS, threshold: u64::MAX, halved: None })
    })
}

impl Controller for Reno {
    fn on_delivered(&mut self, _: &ControllerCx, delivered: &Delivered) {
        if delivered.sent_at <= self.halved {
            return;
        }
        let is_doubling = self.window < self.threshold;
        let step = if is_doubling { delivered.bytes } else { MSS * delivered.bytes / self.window };
        self.window += step;
    }

    fn on_lost(&mut self, cx: &ControllerCx, lost: &Lost) {
        if lost.sent_at <= self.halved {
            return;
        }
        self.window = (self.window / 2).max(2 * MSS);
        (self.threshold, self.halved) = (self.window, Some(cx.now));
    }

    fn window(&self) -> u64 {
        self.window
    }
}
