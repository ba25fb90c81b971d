//! The entries of QUIC: how it is opened on a host, served beside control, and dialed.
//!
//! Invariant: a stream is dialed to the peer of the control connection only: its key is asked for
//! in the handshake, before the token is shown.

use super::spec::spec;
use super::{ClientCrypto, Common, Config, Mode, Quic, ServerCrypto};
use crate::entry::{Dial, Dialed, Opened, Setup, StreamCarrier, StreamListener, TransportEntry};
use crate::ports::listen_above;
use dacapo_base::{Address, Random};
use dacapo_io::address::{ip, ips};
use dacapo_security::{EndpointKeys, Identity};
use dacapo_security::{flow_client_crypto, flow_server_crypto, peer_fingerprint};
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// Both modes.
#[must_use]
pub fn entries() -> Vec<TransportEntry> {
    let entry = |mode| TransportEntry::new(spec(mode), move |setup| open(mode, setup));
    [Mode::Streams, Mode::Datagrams].map(entry).into()
}

fn open(mode: Mode, setup: &mut Setup<'_>) -> io::Result<Opened> {
    Ok(Opened::Streams(Box::new(Carrier {
        mode,
        identity: setup.identity.clone(),
        keys: setup.keys.clone(),
        random: setup.random.fork(),
        origin: setup.origin,
        config: Config { udp: *setup.sockets, ..Config::default() },
    })))
}

/// What is needed to serve and dial.
struct Carrier {
    mode: Mode,
    identity: Identity,
    keys: EndpointKeys,
    random: Random,
    /// Where zero of the host's clock lies for `quinn-proto`.
    origin: Instant,
    config: Config,
}

impl Carrier {
    fn common(&mut self) -> Common {
        let mut seed = [0; 32];
        self.random.fill(&mut seed);
        Common { reset: self.keys.reset.clone(), seed, origin: self.origin }
    }
}

impl StreamCarrier for Carrier {
    fn listen(&mut self, control: &[Address]) -> io::Result<StreamListener> {
        let tls = flow_server_crypto(&self.identity).map_err(io::Error::other)?;
        let token = self.keys.token.clone();
        let crypto = ServerCrypto { tls, token, common: self.common() };
        let mode = self.mode;
        let serve = |at: &[SocketAddr]| Quic::serve(at, mode, &crypto, &self.config);
        let (quic, port) = listen_above(&ips(control)?, spec(mode), serve)?;
        Ok(StreamListener { transport: Box::new(quic), port: Some(port) })
    }

    fn dial(&mut self, Dial { remote, token, identity, .. }: Dial) -> Dialed {
        let nobody = || io::Error::other("the peer of the control connection has shown no key");
        let peer = identity.and_then(peer_fingerprint).ok_or_else(nobody)?;
        let tls = flow_client_crypto(&self.identity, peer).map_err(io::Error::other)?;
        let crypto = ClientCrypto { tls, common: self.common() };
        Ok(Box::new(Quic::dial(ip(remote)?, token, self.mode, &crypto, &self.config)?))
    }
}
