//! What the tests of transports over loopback share: the addresses that a host has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

pub const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Not every host has it.
pub const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// An address with a port that the system chooses.
pub fn at(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 0)
}

/// The loopback addresses that this host has; that one lacks is counted.
#[track_caller]
pub fn hosts() -> Vec<IpAddr> {
    if UdpSocket::bind(at(V6)).is_ok() {
        return vec![V4, V6];
    }
    dacapo_base::skip("IPv6: this host has no ::1");
    vec![V4]
}
