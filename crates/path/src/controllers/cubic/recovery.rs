//! [`Recovery`]: how much may leave while a loss is made good (proportional rate reduction, RFC
//! 9937).
//!
//! ```text
//!   in flight  1.0 |\
//!                  |  \            as much leaves as comes, times 0.7: no pause, and no burst
//!              0.7 |    `--------
//!                  loss       a round trip later
//! ```

use dacapo_base::Time;

/// From the loss until something has come that left after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    pub since: Time,
    /// What was in flight, what came since, and what left.
    flight: u64,
    delivered: u64,
    out: u64,
    /// What may be in flight now.
    pub window: u64,
    /// Nothing more was lost lately.
    is_safe: bool,
}

impl Recovery {
    /// `in_flight` bytes are left of `flight`; a packet may leave at once.
    pub fn new(since: Time, flight: u64, in_flight: u64, mss: u64) -> Self {
        let window = in_flight.saturating_add(mss);
        Self { since, flight: flight.max(1), delivered: 0, out: 0, window, is_safe: true }
    }

    /// So many bytes have left.
    pub fn handle_sent(&mut self, bytes: u64) {
        self.out = self.out.saturating_add(bytes);
    }

    /// More was lost.
    pub fn handle_lost(&mut self) {
        self.is_safe = false;
    }

    /// So many bytes have come, and `in_flight` are left, which are to become `target`.
    pub fn handle_delivered(&mut self, delivered: u64, in_flight: u64, target: u64, mss: u64) {
        self.delivered = self.delivered.saturating_add(delivered);
        let may_leave = if in_flight > target {
            let part = u128::from(self.delivered) * u128::from(target);
            let part = part.div_ceil(u128::from(self.flight));
            u64::try_from(part).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            let more = if self.is_safe { mss } else { 0 };
            let came = self.delivered.saturating_sub(self.out).max(delivered);
            came.saturating_add(more).min(target - in_flight)
        };
        // Where nothing is in flight nothing would come, and nothing leave any more.
        self.window = in_flight.saturating_add(may_leave).max(mss);
        self.is_safe = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    #[test]
    fn a_window_shrinks_over_a_round_trip_and_something_leaves_all_the_while() {
        // Of 100 packets in flight one is lost; the others come one by one.
        let mut in_flight = 99 * MSS;
        let mut it = Recovery::new(Time::ZERO, 100 * MSS, in_flight, MSS);
        let (mut left, mut quiet) = (0, 0);
        for _ in 0..99 {
            while in_flight < it.window {
                (in_flight, left, quiet) = (in_flight + MSS, left + 1, 0);
                it.handle_sent(MSS);
            }
            in_flight -= MSS;
            it.handle_delivered(MSS, in_flight, 70 * MSS, MSS);
            quiet += 1;
            assert!(quiet <= 4, "nothing left for {quiet} packets that came");
        }
        assert!((69..=71).contains(&left) && in_flight.abs_diff(70 * MSS) <= 2 * MSS, "{left}");
    }

    #[test]
    fn where_nothing_is_in_flight_a_packet_may_leave() {
        let mut it = Recovery::new(Time::ZERO, 3 * MSS, 0, MSS);
        it.handle_sent(MSS);
        it.handle_lost();
        // What came was in flight no longer.
        it.handle_delivered(0, 0, 2 * MSS, MSS);
        assert!(it.window >= MSS);
    }

    #[test]
    fn where_most_was_lost_it_does_not_burst() {
        // Of 100 packets 80 are lost: what comes makes room for itself, and a packet more.
        let mut in_flight = 20 * MSS;
        let mut it = Recovery::new(Time::ZERO, 100 * MSS, in_flight, MSS);
        for _ in 0..20 {
            let mut burst = 0;
            while in_flight < it.window {
                (in_flight, burst) = (in_flight + MSS, burst + 1);
                it.handle_sent(MSS);
            }
            assert!(burst <= 2, "{burst}");
            in_flight -= MSS;
            it.handle_delivered(MSS, in_flight, 70 * MSS, MSS);
        }
        it.handle_lost();
        let before = in_flight;
        it.handle_delivered(0, in_flight, 70 * MSS, MSS);
        assert_eq!(it.window, before, "nothing came, and more was lost");
    }
}
