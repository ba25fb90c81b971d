//! [`Aliases`]: addresses of IP for those that are none, for `quinn-proto`, which knows no others.
//!
//! ```text
//!   toy-unix:movie  <-->  [100::7]:1       only between here and quinn-proto, never on a wire
//! ```
//!
//! Invariants: an address of IP is its own alias, and costs nothing here, but for those that could
//! be somebody's alias; who is in use keeps its alias; at most `ALIASES_MAX` are kept.
//!
//! Source: RFC 6666 (100::/64, which no network routes).

use dacapo_base::Address;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The prefix of every alias.
const PREFIX: u128 = 0x0100 << 112;

/// The port of every alias: `quinn-proto` dials none at port 0.
const PORT: u16 = 1;

/// The most aliases: those of all connections, and as many of strangers.
const ALIASES_MAX: usize = 2 * super::CONNECTIONS_MAX;

#[derive(Debug, Default)]
pub(super) struct Aliases {
    of: BTreeMap<Address, SocketAddr>,
    back: BTreeMap<SocketAddr, Address>,
    made: u64,
}

impl Aliases {
    /// What `quinn-proto` calls an address. Where there are too many, those go that are not in use.
    pub fn alias(
        &mut self,
        address: Address,
        used: impl FnOnce() -> BTreeSet<SocketAddr>,
    ) -> SocketAddr {
        if let Some(ip) = address.ip().filter(|ip| !may_be_alias(ip)) {
            return ip;
        }
        if let Some(alias) = self.of.get(&address) {
            return *alias;
        }
        if self.back.len() >= ALIASES_MAX {
            let used = used();
            self.back.retain(|alias, _| used.contains(alias));
            self.of.retain(|_, alias| used.contains(alias));
        }
        self.made += 1;
        let ip = Ipv6Addr::from_bits(PREFIX | u128::from(self.made));
        let alias = SocketAddr::new(IpAddr::V6(ip), PORT);
        self.of.insert(address, alias);
        self.back.insert(alias, address);
        alias
    }

    /// The address that `quinn-proto` means.
    pub fn address(&self, alias: SocketAddr) -> Address {
        self.back.get(&alias).copied().unwrap_or(Address::Ip(alias))
    }
}

/// Whether an alias may be the same as this address: anybody can write such a one into a datagram.
fn may_be_alias(address: &SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.to_bits() >> 64 == PREFIX >> 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toy(number: usize) -> Address {
        Address::other("toy", &number.to_be_bytes()).unwrap()
    }

    #[test]
    fn an_address_of_ip_is_its_own_alias() {
        let mut aliases = Aliases::default();
        let ip: SocketAddr = "192.0.2.7:1".parse().unwrap();
        assert_eq!(aliases.alias(ip.into(), BTreeSet::new), ip);
        assert_eq!(aliases.address(ip), ip.into());
        assert!(aliases.of.is_empty());
    }

    // A source that is forged must not pass for whom its alias stands.
    #[test]
    fn an_address_of_the_prefix_is_never_taken_for_an_alias() {
        let mut aliases = Aliases::default();
        let alias = aliases.alias(toy(1), BTreeSet::new);
        let forged = aliases.alias(alias.into(), BTreeSet::new);
        assert_ne!(forged, alias);
        assert_eq!((aliases.address(alias), aliases.address(forged)), (toy(1), alias.into()));
    }

    #[test]
    fn who_is_in_use_keeps_its_alias() {
        let mut aliases = Aliases::default();
        let used = aliases.alias(toy(0), BTreeSet::new);
        let other = aliases.alias(toy(1), BTreeSet::new);
        for number in 2..3 * ALIASES_MAX {
            let alias = aliases.alias(toy(number), || BTreeSet::from([used]));
            assert_eq!(aliases.address(alias), toy(number));
            assert!(aliases.back.len() <= ALIASES_MAX && aliases.of.len() == aliases.back.len());
        }
        assert_eq!((aliases.alias(toy(0), BTreeSet::new), aliases.address(used)), (used, toy(0)));
        assert_ne!(aliases.alias(toy(1), BTreeSet::new), other);
    }
}
