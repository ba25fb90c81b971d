//! [`PathSeen`]: what modules have seen of a path.

use dacapo_base::Time;
use std::time::Duration;

/// What modules have seen of the path since they were asked last: sums, because what is told with
/// every packet must neither queue nor be dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSeen {
    /// Packets that the other end has said it got.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// When the newest of those was sent.
    pub sent_at: Option<Time>,
    /// Packets that were given up.
    pub lost_packets: u64,
    /// When the newest of those was sent, where that is known.
    pub lost_sent_at: Option<Time>,
    /// Packets that were given up, and had come or were only late.
    pub spurious_packets: u64,
    /// Packets that came with a mark of congestion (ECN; RFC 3168).
    pub marked_packets: u64,
    /// Runs of packets that did not come, between packets that did.
    pub lost_runs: u64,
    /// The packets of those runs.
    pub lost_in_runs: u64,
    /// The newest round trip, without the time that the other end held it.
    pub rtt: Option<Duration>,
}

impl PathSeen {
    /// Whether nothing was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes in what was seen later.
    pub fn add(&mut self, later: &Self) {
        // What modules say is theirs to say.
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.delivered_packets, later.delivered_packets);
        add(&mut self.delivered_bytes, later.delivered_bytes);
        self.sent_at = self.sent_at.max(later.sent_at);
        add(&mut self.lost_packets, later.lost_packets);
        self.lost_sent_at = self.lost_sent_at.max(later.lost_sent_at);
        add(&mut self.spurious_packets, later.spurious_packets);
        add(&mut self.marked_packets, later.marked_packets);
        add(&mut self.lost_runs, later.lost_runs);
        add(&mut self.lost_in_runs, later.lost_in_runs);
        self.rtt = later.rtt.or(self.rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_adds_up_and_the_newest_round_trip_stays() {
        let ms = Time::from_millis;
        let mut all = PathSeen { rtt: Some(Duration::from_millis(4)), ..PathSeen::default() };
        all.add(&PathSeen { delivered_packets: 2, delivered_bytes: 9, ..PathSeen::default() });
        all.add(&PathSeen { lost_packets: 1, sent_at: Some(ms(3)), ..PathSeen::default() });
        all.add(&PathSeen { marked_packets: 5, sent_at: Some(ms(2)), ..PathSeen::default() });
        assert_eq!((all.delivered_packets, all.delivered_bytes, all.lost_packets), (2, 9, 1));
        assert_eq!((all.marked_packets, all.sent_at), (5, Some(ms(3))));
        assert_eq!(all.rtt, Some(Duration::from_millis(4)));
        let most = PathSeen { lost_packets: u64::MAX, ..PathSeen::default() };
        (0..2).for_each(|_| all.add(&most));
        assert_eq!(all.lost_packets, u64::MAX);
        assert!(!all.is_empty() && PathSeen::default().is_empty());
    }
}
