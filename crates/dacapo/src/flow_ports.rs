//! [`flow_ports`]: where a host waits for flows over UDP that do not go by the port of control.
//!
//! ```text
//!   control         :19980
//!   quic            :29980      xtp             :29982
//!   quic-datagram   :29981      xtp-datagram    :29983
//! ```
//!
//! Where the usual port is taken it is another one; the ACCEPT says which.

use crate::place::at_port;
use dacapo_transport::{Transport, quic, xtp};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;

/// How far the ports lie above that of control, where they are free: far enough that a second host
/// on the next port is not in the way, and below those that systems give away by themselves.
const OFFSETS: [(&str, u16, u16); 4] = [
    (quic::SPEC.name, quic::SPEC.id, 10_000),
    (quic::SPEC_DATAGRAM.name, quic::SPEC_DATAGRAM.id, 10_001),
    (xtp::SPEC.name, xtp::SPEC.id, 10_002),
    (xtp::SPEC_DATAGRAM.name, xtp::SPEC_DATAGRAM.id, 10_003),
];

/// How often a port is tried that is free at every address.
const PORT_TRIES: usize = 16;

/// The transports with ports of their own, each with the UDP port where a host whose control port
/// is this one waits for its flows while that is free: `None` when there is none so far above.
#[must_use]
pub fn flow_ports(control: u16) -> [(&'static str, Option<u16>); 4] {
    OFFSETS.map(|(name, _, offset)| (name, control.checked_add(offset)))
}

/// The port of a transport above that of control; 0 when there is none so far above.
fn usual_port(transport: u16, control: &[SocketAddr]) -> u16 {
    let offset = OFFSETS.iter().find(|(_, id, _)| *id == transport).map_or(0, |it| it.2);
    control.first().and_then(|at| at.port().checked_add(offset)).unwrap_or(0)
}

/// Listens at the addresses of control, at one port of its own; where the usual one is taken, at
/// another, which the ACCEPT says.
///
/// # Errors
/// What the system says, when no port can be had.
pub(crate) fn listen_above<T: Transport>(
    control: &[SocketAddr],
    transport: u16,
    mut serve: impl FnMut(&[SocketAddr]) -> io::Result<T>,
) -> io::Result<(T, NonZeroU16)> {
    let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
    for attempt in 0..PORT_TRIES {
        let port = if attempt == 0 { usual_port(transport, control) } else { 0 };
        result = listen_at(control, port, &mut serve);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn listen_at<T: Transport>(
    control: &[SocketAddr],
    port: u16,
    serve: &mut impl FnMut(&[SocketAddr]) -> io::Result<T>,
) -> io::Result<(T, NonZeroU16)> {
    let mut serve = |control: &[SocketAddr], port| {
        let at: Vec<SocketAddr> = control.iter().map(|at| at_port(*at, port)).collect();
        serve(&at)
    };
    // The system chooses for the first address, and the others follow.
    let first = serve(control.get(..1).unwrap_or_default(), port)?;
    let port = first.local_addrs().first().map_or(0, SocketAddr::port);
    let transport = match control.len() {
        0 | 1 => first,
        _ => {
            drop(first);
            serve(control, port)?
        }
    };
    let port = NonZeroU16::new(port).ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok((transport, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_keeps_its_interface() {
        let control: SocketAddr = "[fe80::1%7]:19980".parse().unwrap();
        let mut asked = Vec::new();
        let mut serve = |at: &[SocketAddr]| -> io::Result<dacapo_transport::xtp::Xtp> {
            asked.extend_from_slice(at);
            Err(io::ErrorKind::AddrInUse.into())
        };
        assert!(listen_at(&[control], 29_982, &mut serve).is_err());
        assert_eq!(asked, ["[fe80::1%7]:29982".parse().unwrap()]);
    }

    #[test]
    fn flows_are_waited_for_above_the_port_of_control() {
        let ports = [29_980, 29_981, 29_982, 29_983].map(Some);
        let names = ["quic", "quic-datagram", "xtp", "xtp-datagram"];
        assert_eq!(flow_ports(19_980).map(|it| it.0), names);
        assert_eq!(flow_ports(19_980).map(|it| it.1), ports);
        assert_eq!(flow_ports(55_535).map(|it| it.1), [Some(65_535), None, None, None]);
    }
}
