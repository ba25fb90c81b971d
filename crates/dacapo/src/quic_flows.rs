//! [`QuicFlows`]: the QUIC of flows on this host: its secrets, where it listens, to whom it dials.
//!
//! ```text
//!   control         :19980  the core's connection; says token and port
//!   quic            :29980  a connection per flow, records of its stream
//!   quic-datagram   :29981  a connection per flow, datagrams
//! ```
//!
//! Invariant: a stream is dialed to the peer of the control connection only: its key is asked for
//! in the handshake, before the token is shown.

use crate::flow_ports::listen_above;
use dacapo_base::Random;
use dacapo_core::EndpointKeys;
use dacapo_reactor::{Dial, Dialed, Reactor};
use dacapo_security::{Identity, flow_client_crypto, flow_server_crypto, peer_fingerprint};
use dacapo_transport::quic::{ClientCrypto, Common, Config, Mode, Quic, ServerCrypto};
use dacapo_transport::{StreamTransport, udp};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::time::Instant;

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

    fn dial(&mut self, mode: Mode, Dial { remote, token, identity, .. }: Dial) -> Dialed {
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
        listen_above(control, mode.spec().id, |at| Quic::serve(at, mode, &crypto, &self.config()))
    }
}
