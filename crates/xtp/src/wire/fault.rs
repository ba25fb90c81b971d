//! [`Fault`]: why bytes are not a packet.

use super::{Code, Reason};
use std::fmt;

/// Why bytes are not a packet that can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Fewer bytes than a header has.
    Short,
    /// Another version than 1, which is that of XTP 4.0.
    Version(u8),
    /// `dlen` is not the number of bytes after the header.
    Length,
    /// The checksum is wrong. Zero does not mean that there is none.
    Checksum,
    /// A packet format that is not assigned.
    Format(u8),
    /// The last byte would have a number beyond 2^64.
    Sequence,
    /// A tag is announced, and the data is shorter.
    Tag,
    /// A control segment of another length than it must have.
    Control,
    /// More or fewer spans than announced, or too many.
    Spans,
    /// An address format that is not known here.
    AddressFormat(u8),
    /// An address segment that is not what its format says.
    Address,
    /// A traffic format that is not known here.
    TrafficFormat(u8),
    /// A traffic specifier that is not what its format says.
    Traffic,
    /// A diagnostic segment of fewer than 8 bytes.
    Diagnostic,
}

impl Fault {
    /// How many kinds there are, for counters.
    pub const COUNT: usize = 14;

    /// A number below [`Fault::COUNT`] for each kind, for counters.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Short => 0,
            Self::Version(_) => 1,
            Self::Length => 2,
            Self::Checksum => 3,
            Self::Format(_) => 4,
            Self::Sequence => 5,
            Self::Tag => 6,
            Self::Control => 7,
            Self::Spans => 8,
            Self::AddressFormat(_) => 9,
            Self::Address => 10,
            Self::TrafficFormat(_) => 11,
            Self::Traffic => 12,
            Self::Diagnostic => 13,
        }
    }

    /// The diagnostic that fits. `None` where no packet is to be answered, because nothing in it
    /// can be believed (the first four), or because it is a diagnostic itself.
    #[must_use]
    pub const fn diagnostic(self) -> Option<(Code, Reason)> {
        match self {
            Self::Short | Self::Version(_) | Self::Length | Self::Checksum | Self::Diagnostic => {
                None
            }
            Self::Format(_) | Self::Sequence | Self::Tag | Self::Control => {
                Some((Code::PROTOCOL_ERROR, Reason::UNSPECIFIED))
            }
            Self::Spans => Some((Code::PROTOCOL_ERROR, Reason::RETRANSMISSION)),
            Self::AddressFormat(_) => Some((Code::CONTEXT_REFUSED, Reason::ADDRESS_FORMAT)),
            Self::Address => Some((Code::CONTEXT_REFUSED, Reason::ADDRESS_MALFORMED)),
            Self::TrafficFormat(_) => Some((Code::CONTEXT_REFUSED, Reason::TRAFFIC_FORMAT)),
            Self::Traffic => Some((Code::CONTEXT_REFUSED, Reason::TRAFFIC_MALFORMED)),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("shorter than a header, which has 32 bytes"),
            Self::Version(version) => write!(f, "version {version} in the header, expected 1"),
            Self::Length => f.write_str("dlen is not the length of what follows the header"),
            Self::Checksum => f.write_str("wrong checksum"),
            Self::Format(number) => write!(f, "packet format {number} is not assigned"),
            Self::Sequence => f.write_str("the data ends beyond sequence number 2^64"),
            Self::Tag => f.write_str("BTAG is set, and the data has fewer than 8 bytes"),
            Self::Control => f.write_str("a control segment of a wrong length"),
            Self::Spans => f.write_str("nspan is not the number of spans that follow"),
            Self::AddressFormat(format) => write!(f, "address format {format} is not known"),
            Self::Address => f.write_str("an address segment of a wrong length"),
            Self::TrafficFormat(format) => write!(f, "traffic format {format} is not known"),
            Self::Traffic => f.write_str("a traffic specifier of a wrong length"),
            Self::Diagnostic => f.write_str("a diagnostic segment of fewer than 8 bytes"),
        }
    }
}

impl std::error::Error for Fault {}
