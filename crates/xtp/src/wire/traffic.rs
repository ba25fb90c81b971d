//! Decoder: [`Traffic`], what kind of association it is and how fast.
//!
//! ```text
//!   0       2         3         4
//!  +-------+---------+---------+----------------------------------------------------+
//!  | tlen  | service | tformat | 0: 4 bytes of zero                                 |
//!  +-------+---------+---------+ 1: maxdata | inrate | inburst | outrate | outburst |
//!                              +----------------------------------------------------+
//! ```
//!
//! "In" and "out" are seen from who sends the packet.

use super::Fault;
use dacapo_wire::Malformed;
use dacapo_wire::bytes::Reader;

const EMPTY_LEN: usize = 8;
const LIMITS_LEN: usize = 24;

/// The kind of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Not said.
    Unspecified = 0,
    /// A datagram, nothing comes back.
    Datagram = 1,
    /// A datagram whose arrival is acknowledged.
    AcknowledgedDatagram = 2,
    /// A request and its response.
    Transaction = 3,
    /// A stream each way, reliable.
    Stream = 4,
    /// A stream to a group, nothing comes back.
    Multicast = 5,
    /// A stream to a group, reliable.
    ReliableMulticast = 6,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 7] = [
        Self::Unspecified,
        Self::Datagram,
        Self::AcknowledgedDatagram,
        Self::Transaction,
        Self::Stream,
        Self::Multicast,
        Self::ReliableMulticast,
    ];

    /// Whether it is for a group.
    #[must_use]
    pub const fn is_to_group(self) -> bool {
        matches!(self, Self::Multicast | Self::ReliableMulticast)
    }

    /// The service of this number; `None` when it is not assigned.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|service| *service as u8 == number)
    }
}

/// How much and how fast. A rate of 0 or 2^32 - 1, and a burst of 0, say nothing (decided here).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Limits {
    /// The most bytes of data in a packet; 0 says nothing (decided here).
    pub data_len_max: u32,
    /// What the sender of this takes, bytes per second.
    pub in_rate: u32,
    /// What it takes at once, bytes.
    pub in_burst: u32,
    /// What it means to send, bytes per second.
    pub out_rate: u32,
    /// What it means to send at once, bytes.
    pub out_burst: u32,
}

/// A traffic specifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Traffic {
    /// The number of the [`Service`], which need not be one that is known here.
    pub service: u8,
    /// `None`: there is no description.
    pub limits: Option<Limits>,
}

impl Traffic {
    /// Reads the specifier at the front of `bytes`; gives what follows it too.
    ///
    /// # Errors
    /// [`Fault::TrafficFormat`], or [`Fault::Traffic`] for a length that is not the format's.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Fault> {
        let mut reader = Reader(bytes);
        let len = usize::from(reader.u16().or(Err(Fault::Traffic))?);
        let [service, format] = reader.array().or(Err(Fault::Traffic))?;
        let limits = match format {
            0 if len == EMPTY_LEN => reader.u32().map(|_| None),
            1 if len == LIMITS_LEN => parse_limits(&mut reader).map(Some),
            0 | 1 => Err(Malformed),
            _ => return Err(Fault::TrafficFormat(format)),
        };
        let limits = limits.or(Err(Fault::Traffic))?;
        Ok((Self { service, limits }, reader.0))
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        if self.limits.is_some() { LIMITS_LEN } else { EMPTY_LEN }
    }

    /// Never true: a specifier has at least 8 bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Appends the bytes.
    pub fn emit(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&(self.len() as u16).to_be_bytes());
        into.extend_from_slice(&[self.service, u8::from(self.limits.is_some())]);
        let Some(limits) = self.limits else {
            return into.extend_from_slice(&[0; 4]);
        };
        let Limits { data_len_max, in_rate, in_burst, out_rate, out_burst } = limits;
        for field in [data_len_max, in_rate, in_burst, out_rate, out_burst] {
            into.extend_from_slice(&field.to_be_bytes());
        }
    }
}

fn parse_limits(reader: &mut Reader<'_>) -> Result<Limits, Malformed> {
    Ok(Limits {
        data_len_max: reader.u32()?,
        in_rate: reader.u32()?,
        in_burst: reader.u32()?,
        out_rate: reader.u32()?,
        out_burst: reader.u32()?,
    })
}
