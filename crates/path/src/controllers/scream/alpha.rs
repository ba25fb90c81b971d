//! [`Alpha`]: the share of packets that come with a mark, on average: quick up, and slowly down.
//!
//! Source: draft-ietf-ccwg-rfc8298bis-screamv2, "Receiving ECN-CE for L4S"; as in RFC 8257, section
//! 3.3, but for the two gains.

use dacapo_base::Time;
use std::time::Duration;

/// `L4S_AVG_G_UP` and `L4S_AVG_G_DOWN`.
const GAIN_UP: f64 = 1.0 / 8.0;
const GAIN_DOWN: f64 = 1.0 / 128.0;

/// A share is that of so much time, or of a round trip where that is shorter.
const EVERY: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alpha {
    /// 0 to 1.
    pub share: f64,
    packets: u64,
    marked: u64,
    at: Time,
}

impl Alpha {
    /// So many packets came, and so many of them with a mark.
    pub fn handle(&mut self, now: Time, packets: u64, marked: u64, rtt: Duration) {
        self.packets = self.packets.saturating_add(packets);
        self.marked = self.marked.saturating_add(marked.min(packets));
        if self.packets == 0 || now < self.at + EVERY.min(rtt) {
            return;
        }
        let share = self.marked as f64 / self.packets as f64;
        let is_more = share >= self.share;
        self.share = match is_more {
            true => self.share + (share - self.share) * GAIN_UP,
            false => self.share * (1.0 - GAIN_DOWN),
        };
        (self.packets, self.marked, self.at) = (0, 0, now);
    }
}
