//! Addresses as the system takes and gives them.

use dacapo_base::Address;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address of the Internet that this is.
///
/// # Errors
/// `InvalidInput` with the address, when it is of another scheme.
pub fn ip(address: Address) -> io::Result<SocketAddr> {
    let other = || format!("{address} is no address of IP: dial it by the transport of its scheme");
    address.ip().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, other()))
}

/// The same of several.
///
/// # Errors
/// As [`ip`], with the first that is of another scheme.
pub fn ips(addresses: &[Address]) -> io::Result<Vec<SocketAddr>> {
    addresses.iter().copied().map(ip).collect()
}

/// A free port of the family of `remote`, at whatever address the route gives.
#[must_use]
pub fn any_port(remote: SocketAddr) -> SocketAddr {
    let ip = if remote.is_ipv4() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    } else {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    };
    SocketAddr::new(ip, 0)
}

/// An address of a group that means one only on a link, with the number of the interface in it,
/// unless it has one.
#[must_use]
pub fn scoped(group: SocketAddr, interface: u32) -> SocketAddr {
    match group {
        SocketAddr::V6(mut group) if group.scope_id() == 0 && is_group_of_link(*group.ip()) => {
            group.set_scope_id(interface);
            group.into()
        }
        _ => group,
    }
}

/// An address in the one form that the system gives it, at the interface of `remote`: it names one
/// with addresses of a link only.
#[must_use]
pub fn one_form(address: SocketAddr, remote: SocketAddr) -> SocketAddr {
    let mut address = address;
    if let (SocketAddr::V6(address), SocketAddr::V6(remote)) = (&mut address, remote) {
        address.set_flowinfo(0);
        let ip = *address.ip();
        let is_of_link = ip.is_unicast_link_local() || is_group_of_link(ip);
        address.set_scope_id(if is_of_link { remote.scope_id() } else { 0 });
    }
    address
}

/// Interface-local and link-local scope (RFC 4291, section 2.7).
fn is_group_of_link(ip: Ipv6Addr) -> bool {
    matches!(ip.segments()[0] & 0xFF0F, 0xFF01 | 0xFF02)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_stands_in_addresses_of_a_link_only() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(scoped(at("[ff02::5]:7"), 3), at("[ff02::5%3]:7"));
        assert_eq!(scoped(at("[ff02::5%2]:7"), 3), at("[ff02::5%2]:7"));
        assert_eq!(scoped(at("[ff05::5]:7"), 3), at("[ff05::5]:7"));
        assert_eq!(scoped(at("239.1.1.1:7"), 3), at("239.1.1.1:7"));
        let remote = at("[fe80::1%4]:9");
        for of_link in ["fe80::2", "ff02::5", "ff01::5"] {
            let one = one_form(at(&format!("[{of_link}]:7")), remote);
            assert_eq!(one, at(&format!("[{of_link}%4]:7")));
        }
        assert_eq!(one_form(at("[2001:db8::1%4]:7"), remote), at("[2001:db8::1]:7"));
    }

    #[test]
    fn any_port_is_of_the_family() {
        assert_eq!(any_port("192.0.2.1:7".parse().unwrap()), "0.0.0.0:0".parse().unwrap());
        assert_eq!(any_port("[::1]:7".parse().unwrap()), "[::]:0".parse().unwrap());
    }
}
