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
    /// Latency as a line over the length of a message.
    pub latency: Option<Line>,
    /// The limit of throughput.
    pub limit: Option<Limit>,
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The figure it is from.
    pub figure: u32,
    /// Per byte of a message, ns.
    pub slope_ns: f64,
    /// Of a message without bytes, µs.
    pub intercept_us: f64,
}

/// What throughput comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The figure it is from.
    pub figure: u32,
    /// Mbit/s.
    pub mbit_s: f64,
}

const fn line(figure: u32, slope_ns: f64, intercept_us: f64) -> Option<Line> {
    Some(Line { figure, slope_ns, intercept_us })
}

const fn limit(figure: u32, mbit_s: f64) -> Option<Limit> {
    Some(Limit { figure, mbit_s })
}

/// Users, to one host.
pub const UNICAST: Then = Then { latency: line(2, 1_299.0, 5_420.0), limit: limit(1, 12.0) };
/// Users, to a group of one, whose latency was measured.
pub const GROUP_OF_ONE: Then = Then { latency: line(4, 1_312.0, 6_645.0), limit: None };
/// Users, to a group of two, whose throughput was.
pub const GROUP_OF_TWO: Then = Then { latency: None, limit: limit(3, 12.0) };
/// Users of XTP.
pub const TRANSPORT: Then = Then { latency: line(6, 423.0, 3_150.0), limit: limit(5, 21.0) };
/// The network, FDDI.
pub const NETWORK: Then = Then { latency: line(8, 341.0, 91.5), limit: limit(7, 57.0) };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_is_faster_and_no_message_overtakes_the_limit() {
        let levels =
            [UNICAST, TRANSPORT, NETWORK].map(|it| (it.latency.unwrap(), it.limit.unwrap()));
        for pair in levels.windows(2) {
            assert!(pair[0].0.slope_ns > pair[1].0.slope_ns, "{pair:?}");
            assert!(pair[0].0.intercept_us > pair[1].0.intercept_us, "{pair:?}");
            assert!(pair[0].1.mbit_s < pair[1].1.mbit_s, "{pair:?}");
        }
        // A message alone goes through all levels in turn, so it is slower than a train of them.
        for (latency, limit) in levels {
            assert!(8e3 / latency.slope_ns < limit.mbit_s, "{latency:?} {limit:?}");
        }
        assert!(GROUP_OF_ONE.latency.unwrap().slope_ns > levels[0].0.slope_ns);
        // RATE was 1,500,000 bytes a second.
        assert_eq!(levels[0].1.mbit_s, 1_500_000.0 * 8e-6);
    }

    #[test]
    fn of_a_group_latency_was_measured_with_one_and_throughput_with_two() {
        assert!(GROUP_OF_ONE.limit.is_none() && GROUP_OF_TWO.latency.is_none());
        let all = [UNICAST, GROUP_OF_ONE, GROUP_OF_TWO, TRANSPORT, NETWORK];
        let mut figures: Vec<u32> =
            all.iter().filter_map(|it| it.latency.map(|it| it.figure)).collect();
        figures.extend(all.iter().filter_map(|it| it.limit.map(|it| it.figure)));
        figures.sort_unstable();
        assert_eq!(figures, [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
