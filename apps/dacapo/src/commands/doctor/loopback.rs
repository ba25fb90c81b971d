//! Whether datagrams pass from this host to itself, by IPv4 and by IPv6.

use super::finding::Finding;
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::udp::Ecn;
use dacapo_sys::udp::{Config, RecvError, Socket};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

/// A datagram that has not come by then does not come.
pub const ARRIVAL_MAX: Duration = Duration::from_secs(2);

const TEXT: &[u8] = b"dacapo doctor";

/// The findings.
pub fn examine() -> Vec<Finding> {
    let four = match pass(Ipv4Addr::LOCALHOST.into()) {
        Ok(()) => Finding::ok("loopback-ipv4", "datagrams pass"),
        Err(error) => Finding::fail(
            "loopback-ipv4",
            format!("datagrams do not pass: {error}"),
            "is the interface lo up (`ip link set lo up`), and does a firewall let UDP through it?",
        ),
    };
    let six = match pass(Ipv6Addr::LOCALHOST.into()) {
        Ok(()) => Finding::ok("loopback-ipv6", "datagrams pass"),
        Err(error) => Finding::warn(
            "loopback-ipv6",
            format!("datagrams do not pass: {error}"),
            "peers are reached by IPv4 only; `sysctl net.ipv6.conf.all.disable_ipv6` says whether \
             IPv6 is switched off",
        ),
    };
    vec![four, six]
}

fn pass(ip: IpAddr) -> io::Result<()> {
    let any = SocketAddr::new(ip, 0);
    let receiver = Socket::bind(any, &Config::default())?;
    let mut sender = Socket::bind(any, &Config::default())?;
    let sent = sender.send(Some(receiver.local_addr()?), TEXT, None, Ecn::NotEct);
    sent.map_err(|error| io::Error::other(error.to_string()))?;
    let mut poller = Poller::new()?;
    poller.add(receiver.as_fd(), 0, Interest::Read)?;
    poller.wait(Some(ARRIVAL_MAX), &mut Vec::new())?;
    let mut buffer = [0; 64];
    let received = receiver.recv(&mut buffer).map_err(refusal)?;
    let is_it = buffer.get(..received.len) == Some(TEXT) && received.from == sender.local_addr()?;
    if is_it { Ok(()) } else { Err(io::Error::other("something else came")) }
}

/// Why nothing was received, after [`ARRIVAL_MAX`].
pub fn refusal(error: RecvError) -> io::Error {
    match error {
        RecvError::WouldBlock => io::Error::other("nothing came within 2 s"),
        error => io::Error::other(error.to_string()),
    }
}
