//! What the SAFENET document printed.
//!
//! The fits and limits of "A Performance Evaluation of the SAFENET Lightweight System" (Dempsey,
//! Fenton, Michel, Waterman, Weaver, University of Virginia): Ada programs on DTC-2 hosts, XTP on a
//! processor board of its own (MVME 167), FDDI.

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
