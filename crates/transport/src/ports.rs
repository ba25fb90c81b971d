//! [`listen_above`]: where transports wait for flows that do not go by the port of control.
//!
//! ```text
//!   control         :19980
//!   the first       :29980      as far above as its spec says, and where that is taken
//!   the second      :29981      at another one; the ACCEPT says which
//! ```

use crate::Transport;
use dacapo_base::Address;
use dacapo_lift::TransportSpec;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;

/// How often a port is tried that is free at every address.
const PORT_TRIES: usize = 16;

/// Listens at the addresses of control, at one port of its own; where the usual one is taken, at
/// another, which the ACCEPT says.
///
/// # Errors
/// What the system says, when no port can be had.
pub(crate) fn listen_above<T: Transport>(
    control: &[SocketAddr],
    spec: &TransportSpec,
    mut serve: impl FnMut(&[SocketAddr]) -> io::Result<T>,
) -> io::Result<(T, NonZeroU16)> {
    let usual = control.first().and_then(|at| spec.port?.beside(at.port())).unwrap_or(0);
    let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
    for attempt in 0..PORT_TRIES {
        result = listen_at(control, if attempt == 0 { usual } else { 0 }, &mut serve);
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
        let mut at = control.to_vec();
        // An address of one link keeps its interface.
        at.iter_mut().for_each(|at| at.set_port(port));
        serve(&at)
    };
    // The system chooses for the first address, and the others follow.
    let first = serve(control.get(..1).unwrap_or_default(), port)?;
    let port = first.local_addrs().first().and_then(Address::port).unwrap_or(0);
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
        let mut serve = |at: &[SocketAddr]| -> io::Result<crate::sim::Sim> {
            asked.extend_from_slice(at);
            Err(io::ErrorKind::AddrInUse.into())
        };
        assert!(listen_at(&[control], 29_982, &mut serve).is_err());
        assert_eq!(asked, ["[fe80::1%7]:29982".parse().unwrap()]);
    }
}
