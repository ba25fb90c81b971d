//! [`QuicFlows`]: the QUIC of flows on this host: its secrets, where it listens, to whom it dials.
//!
//! ```text
//!   control         :19980  the core's connection; says token and port
//!   quic            :29980  a connection per flow, records of its stream
//!   quic-datagram   :29981  a connection per flow, datagrams
//! ```
//!
//! What it is not: the control connection's QUIC, which is the core's.
//!
//! Invariant: a stream is dialed to the peer of the control connection only: its key is asked for
//! in the handshake, before the token is shown.

use dacapo_base::Random;
use dacapo_core::{Dial, Dialed, EndpointKeys, Reactor};
use dacapo_security::{Identity, flow_client_crypto, flow_server_crypto, peer_fingerprint};
use dacapo_transport::quic::{ClientCrypto, Common, Config, Mode, Quic, ServerCrypto};
use dacapo_transport::{StreamTransport, Transport, udp};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::time::Instant;

/// How far the ports lie above that of control, where they are free: far enough that a second host
/// on the next port is not in the way, and below those that systems give away by themselves.
const PORT_OFFSET: u16 = 10_000;

/// How often a port is tried that is free at every address.
const PORT_TRIES: usize = 16;

/// What is needed to serve and dial.
#[derive(Clone)]
pub(crate) struct QuicFlows {
    pub(crate) identity: Identity,
    pub(crate) keys: EndpointKeys,
    pub(crate) random: Random,
    /// Where zero of the host's clock lies for `quinn-proto`.
    pub(crate) origin: Instant,
    pub(crate) udp: udp::Config,
}

impl QuicFlows {
    fn common(&mut self) -> Common {
        let mut seed = [0; 32];
        self.random.fill(&mut seed);
        Common { reset: self.keys.reset.clone(), seed, origin: self.origin }
    }

    fn config(&self) -> Config {
        Config { udp: self.udp, ..Config::default() }
    }

    /// Lets a reactor dial streams of both modes.
    pub(crate) fn set_dialers(&self, reactor: &mut Reactor) {
        for mode in [Mode::Streams, Mode::Datagrams] {
            let mut flows = self.clone();
            reactor.set_stream_dialer(mode.spec().id, move |dial| flows.dial(mode, dial));
        }
    }

    fn dial(&mut self, mode: Mode, Dial { remote, token, identity }: Dial) -> Dialed {
        let nobody = || io::Error::other("the peer of the control connection has shown no key");
        let peer = identity.and_then(peer_fingerprint).ok_or_else(nobody)?;
        let tls = flow_client_crypto(&self.identity, peer).map_err(io::Error::other)?;
        let crypto = ClientCrypto { tls, common: self.common() };
        let quic = Quic::dial(remote, token, mode, &crypto, &self.config())?;
        Ok(Box::new(quic) as Box<dyn StreamTransport>)
    }

    /// Listens at the addresses of control, at one port of its own; where the usual one is taken,
    /// at another, which the ACCEPT says.
    ///
    /// # Errors
    /// What the system says, when no port can be had.
    pub(crate) fn listen(
        &mut self,
        mode: Mode,
        control: &[SocketAddr],
    ) -> io::Result<(Quic, NonZeroU16)> {
        let tls = flow_server_crypto(&self.identity).map_err(io::Error::other)?;
        let token = self.keys.token.clone();
        let crypto = ServerCrypto { tls, token, common: self.common() };
        let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
        for attempt in 0..PORT_TRIES {
            let port = if attempt == 0 { usual_port(mode, control) } else { 0 };
            result = self.listen_at(mode, control, port, &crypto);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn listen_at(
        &self,
        mode: Mode,
        control: &[SocketAddr],
        port: u16,
        crypto: &ServerCrypto,
    ) -> io::Result<(Quic, NonZeroU16)> {
        let serve = |ips: &[SocketAddr], port| {
            let at: Vec<_> = ips.iter().map(|it| SocketAddr::new(it.ip(), port)).collect();
            Quic::serve(&at, mode, crypto, &self.config())
        };
        // The system chooses for the first address, and the others follow.
        let first = serve(control.get(..1).unwrap_or_default(), port)?;
        let port = first.local_addrs().first().map_or(0, SocketAddr::port);
        let quic = match control.len() {
            0 | 1 => first,
            _ => {
                drop(first);
                serve(control, port)?
            }
        };
        let port = NonZeroU16::new(port).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((quic, port))
    }
}

/// The transports of QUIC, each with the UDP port where a host whose control port is this one waits
/// for its flows while that is free: `None` when there is none so far above.
#[must_use]
pub fn quic_ports(control: u16) -> [(&'static str, Option<u16>); 2] {
    [Mode::Streams, Mode::Datagrams].map(|mode| (mode.spec().name, port_above(mode, control)))
}

fn port_above(mode: Mode, control: u16) -> Option<u16> {
    let offset = match mode {
        Mode::Streams => PORT_OFFSET,
        Mode::Datagrams => PORT_OFFSET + 1,
    };
    control.checked_add(offset)
}

/// The port for a mode; 0 when there is none so far above that of control.
fn usual_port(mode: Mode, control: &[SocketAddr]) -> u16 {
    control.first().and_then(|at| port_above(mode, at.port())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_over_quic_are_waited_for_above_the_port_of_control() {
        assert_eq!(quic_ports(19_980), [("quic", Some(29_980)), ("quic-datagram", Some(29_981))]);
        assert_eq!(quic_ports(55_535), [("quic", Some(65_535)), ("quic-datagram", None)]);
    }
}
