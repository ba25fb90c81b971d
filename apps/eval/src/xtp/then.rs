//! What the paper of 1995 printed.
//!
//! Figures of G. Mapp, "Preliminary Performance Evaluation of SandiaXTP on ATM at ORL", PROMS '95:
//! SandiaXTP as a process of its own (xtpd) on ATMos devices with an ARM processor, ATM of 100
//! Mbit/s, no losses. All are from its text; the curves of its Figures 2 to 5 (throughput and
//! processor time over the send buffer) have no numbers, and none was read off them.

/// The best throughput with network buffers of one length, Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The network buffer, bytes.
    pub packet_len: u32,
    /// ACK-Rel.
    pub ack_rel: f64,
    /// ACK-Un.
    pub ack_un: f64,
    /// Blast_Mode_Un.
    pub blast: f64,
}

/// Section "Results".
pub const BEST: [Best; 2] = [
    Best { packet_len: 2_048, ack_rel: 13.97, ack_un: 15.4, blast: 16.45 },
    Best { packet_len: 4_096, ack_rel: 17.37, ack_un: 19.59, blast: 21.5 },
];

/// The cost of waiting with network buffers of 2 KiB, Mbit/s, by bytes of a send: "about", "around"
/// and "to" in the text.
pub const WAITING: [(u32, f64); 4] = [(512, 2.45), (1_024, 4.3), (4_096, 4.3), (65_536, 1.05)];

/// What it is from, in a line for people.
pub const SOURCE: &str = "G. Mapp, \"Preliminary Performance Evaluation of SandiaXTP on ATM at \
                          ORL\" (1995), section Results";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_and_the_costs_agree() {
        for best in BEST {
            assert!(best.ack_rel < best.ack_un && best.ack_un < best.blast, "{best:?}");
        }
        // The longest sends were the best ones, so the cost that the text says of them is theirs.
        let (len, waiting) = WAITING[3];
        assert_eq!(len, 64 << 10);
        assert!((BEST[0].blast - BEST[0].ack_un - waiting).abs() < 0.005);
        assert!(WAITING.iter().all(|(_, cost)| *cost >= waiting));
    }
}
