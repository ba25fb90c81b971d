//! What the SAFENET document printed.
//!
//! The fits and limits of "A Performance Evaluation of the SAFENET Lightweight System" (Dempsey,
//! Fenton, Michel, Waterman, Weaver, University of Virginia): Ada programs on DTC-2 hosts, XTP on a
//! processor board of its own, FDDI. The network alone was measured without those hosts: boards
//! (MVME 167) in chassis of their own, without an operating system. Limits are read off asymptotes,
//! the first three as "approximately".

/// A level as the document measured it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Then {
    /// The figures it is from: throughput, latency.
    pub figures: [u32; 2],
    /// Latency per byte of a message, ns.
    pub slope_ns: f64,
    /// Latency of a message without bytes, µs.
    pub intercept_us: f64,
    /// The limit of throughput, Mbit/s.
    pub limit_mbit_s: f64,
}

/// Users, to one host.
pub const UNICAST: Then =
    Then { figures: [1, 2], slope_ns: 1_299.0, intercept_us: 5_420.0, limit_mbit_s: 12.0 };
/// Users, to a group: latency with one receiver, throughput with two.
pub const MULTICAST: Then =
    Then { figures: [3, 4], slope_ns: 1_312.0, intercept_us: 6_645.0, limit_mbit_s: 12.0 };
/// Users of XTP.
pub const TRANSPORT: Then =
    Then { figures: [5, 6], slope_ns: 423.0, intercept_us: 3_150.0, limit_mbit_s: 21.0 };
/// The network, FDDI.
pub const NETWORK: Then =
    Then { figures: [7, 8], slope_ns: 341.0, intercept_us: 91.5, limit_mbit_s: 57.0 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_is_faster_and_no_message_overtakes_the_limit() {
        let levels = [UNICAST, TRANSPORT, NETWORK];
        for pair in levels.windows(2) {
            assert!(pair[0].slope_ns > pair[1].slope_ns, "{pair:?}");
            assert!(pair[0].intercept_us > pair[1].intercept_us, "{pair:?}");
            assert!(pair[0].limit_mbit_s < pair[1].limit_mbit_s, "{pair:?}");
        }
        // A message alone goes through all levels in turn, so it is slower than a train of them.
        for level in levels.into_iter().chain([MULTICAST]) {
            assert!(8e3 / level.slope_ns < level.limit_mbit_s, "{level:?}");
        }
        assert!(MULTICAST.slope_ns > levels[0].slope_ns);
        // RATE was 1,500,000 bytes a second.
        assert_eq!(UNICAST.limit_mbit_s, 1_500_000.0 * 8e-6);
    }
}
