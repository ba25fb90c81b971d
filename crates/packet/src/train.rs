//! [`Layout`]: where the segments of a unit lie in a body.
//!
//! The arithmetic of strided trains.

/// The most segments of one train: what every kernel with UDP GSO takes.
pub const TRAIN_SEGMENTS_MAX: usize = 64;

/// The most bytes of one train on the wire: a UDP datagram's payload over IPv6 at most, less a
/// margin for options.
pub const TRAIN_BYTES_MAX: usize = 65_000;

/// How a unit is laid out for one epoch: fixed while the epoch lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes that the modules and the path put before every segment.
    pub head: usize,
    /// Bytes that the modules put after every segment.
    pub tail: usize,
    /// The most payload bytes of one segment.
    pub segment: usize,
    /// True when a unit may be cut into several segments.
    pub segmented: bool,
}

impl Layout {
    /// The distance from one segment to the next, in bytes.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.head + self.segment + self.tail
    }

    /// The most segments that one body of this layout holds; at least 1.
    #[must_use]
    pub fn segments_per_train(&self) -> usize {
        (TRAIN_BYTES_MAX / self.stride().max(1)).clamp(1, TRAIN_SEGMENTS_MAX)
    }

    /// The most payload bytes that one train of this layout carries.
    #[must_use]
    pub fn payload_per_train(&self) -> usize {
        self.segments_per_train() * self.segment
    }

    /// How many segments `len` payload bytes take: at least 1, also for an empty unit.
    #[must_use]
    pub fn segments_for(&self, len: usize) -> usize {
        len.div_ceil(self.segment.max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_of_full_segments_never_exceeds_a_datagram() {
        for segment in [1, 100, 1_200, 1_452, 9_000, 60_000] {
            let layout = Layout { head: 20, tail: 4, segment, segmented: true };
            let bytes = layout.segments_per_train() * layout.stride();
            assert!(bytes <= TRAIN_BYTES_MAX.max(layout.stride()), "{layout:?}");
            assert!(layout.segments_per_train() <= TRAIN_SEGMENTS_MAX);
        }
    }

    #[test]
    fn an_empty_unit_takes_one_segment() {
        let layout = Layout { head: 0, tail: 0, segment: 10, segmented: true };
        assert_eq!(layout.segments_for(0), 1);
        assert_eq!(layout.segments_for(10), 1);
        assert_eq!(layout.segments_for(11), 2);
    }
}
