//! Ethernet addresses inside socket addresses: the link-local IPv6 address that belongs to a card.
//!
//! ```text
//!   02:11:22:33:44:55 at interface 3  <->  [fe80::11:22ff:fe33:4455%3]:0
//!   a group: 33:33:00:00:00:51        <-   ff02::51, or any address of a group of IPv6
//! ```
//!
//! An engine of XTP knows its peers by socket address. With this form no table is needed: each
//! Ethernet address, of cards and of groups, has exactly one, and back.
//!
//! Nothing below has an address of it.
//!
//! Source: RFC 4291 appendix A (the bit for "universal" is inverted); RFC 2464 section 7 (groups).

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

/// The address of a card, or of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddr(pub [u8; 6]);

/// The bit that tells addresses given by a maker from those given by hand.
const UNIVERSAL: u8 = 0x02;
/// The bit that tells groups.
const GROUP: u8 = 0x01;

impl MacAddr {
    /// Whether it is of a group.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & GROUP != 0
    }

    /// Its form as a socket address, at the interface of this number.
    #[must_use]
    pub const fn at(self, interface: u32) -> SocketAddr {
        let [a, b, c, d, e, f] = self.0;
        let host = [a ^ UNIVERSAL, b, c, 0xFF, 0xFE, d, e, f];
        let [h, i, j, k, l, m, n, o] = host;
        let ip = Ipv6Addr::from_octets([0xFE, 0x80, 0, 0, 0, 0, 0, 0, h, i, j, k, l, m, n, o]);
        SocketAddr::V6(SocketAddrV6::new(ip, 0, 0, interface))
    }

    /// The Ethernet address of a socket address, whatever its interface; `None` when it has none.
    #[must_use]
    pub const fn of(address: &SocketAddr) -> Option<Self> {
        let SocketAddr::V6(address) = address else { return None };
        match address.ip().octets() {
            [0xFE, 0x80, 0, 0, 0, 0, 0, 0, a, b, c, 0xFF, 0xFE, d, e, f] => {
                Some(Self([a ^ UNIVERSAL, b, c, d, e, f]))
            }
            [0xFF, _, _, _, _, _, _, _, _, _, _, _, c, d, e, f] => {
                Some(Self([0x33, 0x33, c, d, e, f]))
            }
            _ => None,
        }
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A text that is no Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotMac(String);

impl fmt::Display for NotMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no Ethernet address, such as 02:11:22:33:44:55", self.0)
    }
}

impl std::error::Error for NotMac {}

impl std::str::FromStr for MacAddr {
    type Err = NotMac;

    fn from_str(text: &str) -> Result<Self, NotMac> {
        let mut parts = text.split(':');
        let mut next = || {
            let part = parts.next()?;
            let is_hex = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
            u8::from_str_radix(part, 16).ok().filter(|_| is_hex)
        };
        let address = (|| Some([next()?, next()?, next()?, next()?, next()?, next()?]))();
        let is_over = parts.next().is_none();
        address.filter(|_| is_over).map(Self).ok_or_else(|| NotMac(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn every_address_has_one_form_and_back() {
        let mut random = Random::from_number(1);
        for _ in 0..10_000 {
            let mut octets = [0; 6];
            random.fill(&mut octets);
            let mac = MacAddr(octets);
            let address = mac.at(random.next_u32());
            assert_eq!(MacAddr::of(&address), Some(mac));
            assert_eq!(mac.to_string().parse(), Ok(mac));
        }
    }

    #[test]
    fn the_form_is_that_of_the_rfc() {
        // RFC 4291 appendix A: 34-56-78-9A-BC-DE becomes 36-56-78-FF-FE-9A-BC-DE.
        let mac: MacAddr = "34:56:78:9A:bc:de".parse().unwrap();
        assert_eq!(mac.at(3).to_string(), "[fe80::3656:78ff:fe9a:bcde%3]:0");
        assert!(!mac.is_group());
        let group = MacAddr::of(&"[ff02::1:51]:0".parse().unwrap()).unwrap();
        assert_eq!((group.to_string().as_str(), group.is_group()), ("33:33:00:01:00:51", true));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in
            ["", "02:11:22:33:44", "02:11:22:33:44:55:66", "2:11:22:33:44:555", "+2:1:2:3:4:5"]
        {
            assert!(text.parse::<MacAddr>().is_err(), "{text}");
        }
        for address in ["192.0.2.1:0", "[fd00::11:22ff:fe33:4455]:0", "[fe80::1]:0"] {
            assert_eq!(MacAddr::of(&address.parse().unwrap()), None, "{address}");
        }
    }
}
