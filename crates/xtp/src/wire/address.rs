//! Decoder: [`AddressSegment`], who opens an association with whom.
//!
//! ```text
//!   0       2         3         4
//!  +-------+---------+---------+--------------------------------------------+
//!  | alen  | adomain | aformat | null (0): 4 bytes of zero                  |
//!  +-------+---------+---------+ IPv4 (1): dst 4  src 4  dst port  src port |
//!                              | IPv6 (6): dst 16 src 16 dst port  src port |
//!                              +--------------------------------------------+
//! ```
//!
//! The ports are those of XTP; they have nothing to do with the ports of UDP below it. How IPv6
//! looks in format 6 is decided here, after format 1. What `adomain` means is not published; it is
//! kept as it came.

use super::Fault;
use dacapo_wire::Malformed;
use dacapo_wire::bytes::Reader;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const HEAD_LEN: usize = 4;
const NULL_LEN: usize = 8;
const V4_LEN: usize = 16;
const V6_LEN: usize = 40;
const V4: u8 = 1;
const V6: u8 = 6;

/// The two ends of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Not said; the network below knows.
    Null,
    /// Hosts and ports of XTP.
    Internet {
        /// Whom the association is opened with.
        destination: SocketAddr,
        /// Who opens it.
        source: SocketAddr,
    },
}

/// An address segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressSegment {
    /// Sent as 0; not looked at.
    pub domain: u8,
    /// The two ends.
    pub address: Address,
}

impl AddressSegment {
    /// Reads the segment at the front of `bytes`; gives what follows it too.
    ///
    /// # Errors
    /// [`Fault::AddressFormat`], or [`Fault::Address`] for a length that is not the format's.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Fault> {
        let mut reader = Reader(bytes);
        let len = usize::from(reader.u16().or(Err(Fault::Address))?);
        let [domain, format] = reader.array().or(Err(Fault::Address))?;
        let expected = match format {
            0 => NULL_LEN,
            V4 => V4_LEN,
            V6 => V6_LEN,
            _ => return Err(Fault::AddressFormat(format)),
        };
        if len != expected {
            return Err(Fault::Address);
        }
        let body = reader.take(len.saturating_sub(HEAD_LEN)).or(Err(Fault::Address))?;
        let address = match format {
            V4 => parse_ends(body, |reader| Ok(Ipv4Addr::from(reader.u32()?).into())),
            V6 => parse_ends(body, |reader| Ok(Ipv6Addr::from(reader.array::<16>()?).into())),
            _ => Ok(Address::Null),
        };
        let address = address.or(Err(Fault::Address))?;
        Ok((Self { domain, address }, reader.0))
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.address {
            Address::Null => NULL_LEN,
            Address::Internet { destination: SocketAddr::V4(_), .. } => V4_LEN,
            Address::Internet { destination: SocketAddr::V6(_), .. } => V6_LEN,
        }
    }

    /// Never true: a segment has at least 8 bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Appends the bytes. The source is written in the family of the destination; of another
    /// family it is written as unspecified, because the segment has one format for both.
    pub fn emit(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&(self.len() as u16).to_be_bytes());
        match self.address {
            Address::Null => into.extend_from_slice(&[self.domain, 0, 0, 0, 0, 0]),
            Address::Internet { destination, source } => {
                let format = if destination.is_ipv4() { V4 } else { V6 };
                into.extend_from_slice(&[self.domain, format]);
                emit_host(destination.ip(), into);
                emit_host(in_family_of(destination, source.ip()), into);
                into.extend_from_slice(&destination.port().to_be_bytes());
                into.extend_from_slice(&source.port().to_be_bytes());
            }
        }
    }
}

fn parse_ends(
    body: &[u8],
    host: impl Fn(&mut Reader<'_>) -> Result<IpAddr, Malformed>,
) -> Result<Address, Malformed> {
    let mut reader = Reader(body);
    let (destination, source) = (host(&mut reader)?, host(&mut reader)?);
    let destination = SocketAddr::new(destination, reader.u16()?);
    Ok(Address::Internet { destination, source: SocketAddr::new(source, reader.u16()?) })
}

fn in_family_of(destination: SocketAddr, source: IpAddr) -> IpAddr {
    match (destination, source) {
        (SocketAddr::V4(_), IpAddr::V6(_)) => Ipv4Addr::UNSPECIFIED.into(),
        (SocketAddr::V6(_), IpAddr::V4(_)) => Ipv6Addr::UNSPECIFIED.into(),
        _ => source,
    }
}

fn emit_host(host: IpAddr, into: &mut Vec<u8>) {
    match host {
        IpAddr::V4(host) => into.extend_from_slice(&host.octets()),
        IpAddr::V6(host) => into.extend_from_slice(&host.octets()),
    }
}
