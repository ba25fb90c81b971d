//! [`Ecn`]: the congestion codepoint of an item (RFC 3168, 9331), two bits of its traffic class.

/// What an item says of explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// Its sender does not hear marks: who is congested drops.
    #[default]
    NotEct,
    /// ECN-capable, of a scalable congestion control (L4S).
    Ect1,
    /// ECN-capable.
    Ect0,
    /// A hop on the way was congested.
    Ce,
}

impl Ecn {
    /// What the last two bits of a traffic class say.
    #[must_use]
    pub const fn from_bits(traffic_class: u8) -> Self {
        match traffic_class & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    /// Whether it belongs into the queue of low latency: ECT(1), and CE, which may have been one.
    #[must_use]
    pub const fn is_l4s(self) -> bool {
        matches!(self, Self::Ect1 | Self::Ce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_a_codepoint_are_read_back_from_any_traffic_class() {
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            assert_eq!(Ecn::from_bits(0b1011_1000 | ecn.bits()), ecn);
        }
        assert_eq!([1, 2, 3].map(|bits| Ecn::from_bits(bits).is_l4s()), [true, false, true]);
    }
}
