//! [`Address`]: where somebody is reached, in the words of one transport.
//!
//! ```text
//!   Ip      192.0.2.7:19980   [fe80::7%2]:19980      interface and port among it
//!   Other   SCHEME:BYTES      toy-unix:movie%2F1     what its transport alone reads
//! ```
//!
//! Everybody else compares addresses, keeps them and prints them. An `Address` is copied, holds
//! nothing on the heap, and is as large as a `SocketAddr`, because every datagram has one.
//!
//! Invariant: what `Display` writes of another scheme than IP, [`Address::read`] reads back to the
//! same.
//!
//! Decoder: of text from a user or from a page.
//!
//! Source: RFC 3986, sections 2.1 and 2.3 (how bytes are written that are no letters).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::error::Error;
use std::fmt;
use std::net::{AddrParseError, IpAddr, SocketAddr};
use std::str::FromStr;

/// The scheme of addresses of IP.
pub const IP: &str = "ip";

/// The most bytes of an address that is none of IP, together with those of its scheme's name; the
/// longest of ATM has 20.
pub const ADDRESS_LEN_MAX: usize = 26;

/// Where somebody is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// By IP; of one link with its interface.
    Ip(SocketAddr),
    /// By a transport with a scheme of its own.
    Other(Other),
}

/// An address of a scheme that is not IP's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Other {
    scheme_len: u8,
    /// Of the address.
    len: u8,
    /// The scheme's name, then the address; then zeros.
    bytes: [u8; ADDRESS_LEN_MAX],
}

impl Address {
    /// An address of another scheme, of which these are the bytes.
    ///
    /// # Errors
    /// [`AddressError::Empty`], or [`AddressError::TooLong`] beyond [`ADDRESS_LEN_MAX`].
    pub fn other(scheme: &str, bytes: &[u8]) -> Result<Self, AddressError> {
        let most = ADDRESS_LEN_MAX.saturating_sub(scheme.len());
        let too_long = AddressError::TooLong { len: bytes.len(), most };
        if bytes.is_empty() {
            return Err(AddressError::Empty);
        }
        let mut kept = [0; ADDRESS_LEN_MAX];
        let (name, address) = kept.split_at_mut_checked(scheme.len()).ok_or(too_long)?;
        name.copy_from_slice(scheme.as_bytes());
        address.get_mut(..bytes.len()).ok_or(too_long)?.copy_from_slice(bytes);
        let len_of = |len: usize| u8::try_from(len).map_err(|_| too_long);
        let (scheme_len, len) = (len_of(scheme.len())?, len_of(bytes.len())?);
        Ok(Self::Other(Other { scheme_len, len, bytes: kept }))
    }

    /// The address of another scheme that a text means, as `Display` writes it behind the colon.
    ///
    /// # Errors
    /// As [`Address::other`]; [`AddressError::Text`] where it is not written so.
    pub fn read(scheme: &str, text: &str) -> Result<Self, AddressError> {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&first, behind)) = rest.split_first() {
            let (byte, behind) = match (first, behind) {
                (b'%', [high, low, behind @ ..]) => (hex(*high, *low)?, behind),
                (byte, behind) if is_plain(byte) => (byte, behind),
                _ => return Err(AddressError::Text),
            };
            if bytes.len() > ADDRESS_LEN_MAX {
                break;
            }
            bytes.push(byte);
            rest = behind;
        }
        Self::other(scheme, &bytes)
    }

    /// The name of its scheme.
    #[must_use]
    pub fn scheme(&self) -> &str {
        match self {
            Self::Ip(_) => IP,
            Self::Other(other) => other.parts().0,
        }
    }

    /// The address of the Internet that it is.
    #[must_use]
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Other(_) => None,
        }
    }

    /// The bytes of an address of this scheme; `None` where it is of another.
    #[must_use]
    pub fn bytes_of(&self, scheme: &str) -> Option<&[u8]> {
        match self {
            Self::Other(other) => {
                let (its, bytes) = other.parts();
                (its == scheme).then_some(bytes)
            }
            Self::Ip(_) => None,
        }
    }

    /// The port of an address of the Internet.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.ip().map(|address| address.port())
    }

    /// The same at another port; a link-local one keeps its interface, and one of another scheme
    /// has no ports.
    #[must_use]
    pub fn at_port(mut self, port: u16) -> Self {
        if let Self::Ip(address) = &mut self {
            address.set_port(port);
        }
        self
    }

    /// Whether what is sent there never leaves this host, as far as the address says.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.ip().is_some_and(|address| address.ip().to_canonical().is_loopback())
    }

    /// Whether it is a group's.
    #[must_use]
    pub fn is_group(&self) -> bool {
        self.ip().is_some_and(|address| address.ip().is_multicast())
    }

    /// Whether what is here reaches that: they are of one scheme, and one family of IP.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ip(here), Self::Ip(there)) => here.is_ipv4() == there.is_ipv4(),
            _ => self.scheme() == other.scheme(),
        }
    }
}

impl Other {
    /// The scheme's name, and the bytes of the address.
    fn parts(&self) -> (&str, &[u8]) {
        let (name, rest) = self.bytes.split_at_checked(self.scheme_len.into()).unwrap_or_default();
        let address = rest.get(..self.len.into()).unwrap_or_default();
        (str::from_utf8(name).unwrap_or_default(), address)
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl<I: Into<IpAddr>> From<(I, u16)> for Address {
    fn from(ip_and_port: (I, u16)) -> Self {
        Self::Ip(ip_and_port.into())
    }
}

/// An address of IP with its port. Of other schemes only a transport knows which there are.
impl FromStr for Address {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        text.parse().map(Self::Ip)
    }
}

/// Whether a byte stands for itself in a text.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn hex(high: u8, low: u8) -> Result<u8, AddressError> {
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(AddressError::Text);
    let byte = digit(high)?.wrapping_mul(16).wrapping_add(digit(low)?);
    u8::try_from(byte).map_err(|_| AddressError::Text)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Other(other) => {
                let (scheme, address) = other.parts();
                write!(f, "{scheme}:")?;
                address.iter().try_for_each(|byte| match is_plain(*byte) {
                    true => write!(f, "{}", char::from(*byte)),
                    false => write!(f, "%{byte:02X}"),
                })
            }
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Address::Other(*self), f)
    }
}

/// Why something is no [`Address`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// It has no bytes.
    Empty,
    /// With the name of its scheme it has more than [`ADDRESS_LEN_MAX`].
    TooLong {
        /// Its own bytes, as many as were read.
        len: usize,
        /// The most of this scheme.
        most: usize,
    },
    /// Something stands in it that is neither a letter, a digit, one of `-._~`, nor `%` with two
    /// hexadecimal digits.
    Text,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an address is missing"),
            Self::TooLong { most, .. } => {
                write!(f, "an address of this scheme has at most {most} bytes")
            }
            Self::Text => f.write_str(
                "an address is written in letters, digits and -._~, other bytes as % and two \
                 hexadecimal digits",
            ),
        }
    }
}

impl Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn what_is_written_is_read_back() {
        let mut random = Random::from_seed([7; 32]);
        for _ in 0..2_000 {
            let mut bytes = vec![0; 1 + random.below(ADDRESS_LEN_MAX as u64 - 3) as usize];
            random.fill(&mut bytes);
            let address = Address::other("toy", &bytes).unwrap();
            let text = address.to_string();
            let (scheme, rest) = text.split_once(':').unwrap();
            assert_eq!((scheme, address.scheme()), ("toy", "toy"));
            assert_eq!(Address::read("toy", rest), Ok(address), "{text}");
            assert_eq!(address.bytes_of("toy"), Some(&*bytes));
            assert_eq!((address.bytes_of("ip"), address.ip(), address.port()), (None, None, None));
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        let read = |text: &str| Address::read("toy", text);
        assert_eq!(read(""), Err(AddressError::Empty));
        for wrong in ["a b", "a/b", "a:b", "%", "%4", "%zz", "%-1", "ä", "%+1"] {
            assert_eq!(read(wrong), Err(AddressError::Text), "{wrong}");
        }
        let most = ADDRESS_LEN_MAX - 3;
        let too_long = |len| Err(AddressError::TooLong { len, most });
        assert_eq!(read(&"x".repeat(most + 1)), too_long(most + 1));
        assert_eq!(read(&"x".repeat(10_000)), too_long(ADDRESS_LEN_MAX + 1));
        assert!(read(&"%41".repeat(most)).is_ok());
        assert_eq!(Address::other("toy", &[]), Err(AddressError::Empty));
        assert_eq!(Address::other("toy", &[1; 300]), too_long(300));
        let none = AddressError::TooLong { len: 1, most: 0 };
        for scheme_len in [ADDRESS_LEN_MAX, ADDRESS_LEN_MAX + 1, 300] {
            assert_eq!(Address::other(&"a".repeat(scheme_len), b"x"), Err(none));
        }
    }

    #[test]
    fn who_is_alike_can_reach_each_other() {
        let ip = |text: &str| text.parse::<Address>().unwrap();
        let (four, six) = (ip("192.0.2.7:1"), ip("[::1]:1"));
        let (a, b) = (Address::other("a", b"x").unwrap(), Address::other("b", b"x").unwrap());
        assert!(four.is_like(&ip("127.0.0.1:2")) && six.is_like(&ip("[fe80::1%2]:9")));
        assert!(a.is_like(&Address::other("a", b"y").unwrap()));
        for (here, there) in [(four, six), (a, b), (a, four), (six, b)] {
            assert!(!here.is_like(&there) && here != there, "{here} {there}");
        }
        assert_eq!(size_of::<Address>(), size_of::<SocketAddr>());
        assert_eq!((four.to_string(), four.port()), ("192.0.2.7:1".to_owned(), Some(1)));
    }
}
