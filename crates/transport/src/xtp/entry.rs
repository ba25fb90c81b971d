//! The entries of XTP: how it is opened on a host, served beside control, and dialed.

use super::spec::spec;
use super::{Config, Mode, Xtp};
use crate::entry::{Dial, Dialed, Opened, Setup, StreamCarrier, StreamListener, TransportEntry};
use crate::ports::listen_above;
use dacapo_base::{Address, Random};
use dacapo_io::address::{ip, ips};
use std::io;
use std::net::SocketAddr;

/// Both modes.
#[must_use]
pub fn entries() -> Vec<TransportEntry> {
    let entry = |mode| TransportEntry::new(spec(mode), move |setup| open(mode, setup));
    [Mode::Streams, Mode::Datagrams].map(entry).into()
}

fn open(mode: Mode, setup: &mut Setup<'_>) -> io::Result<Opened> {
    let config = Config { udp: *setup.sockets, ..Config::default() };
    Ok(Opened::Streams(Box::new(Carrier { mode, random: setup.random.fork(), config })))
}

/// What is needed to serve and dial.
struct Carrier {
    mode: Mode,
    random: Random,
    config: Config,
}

impl StreamCarrier for Carrier {
    fn listen(&mut self, control: &[Address]) -> io::Result<StreamListener> {
        let Self { mode, random, config } = self;
        let serve = |at: &[SocketAddr]| Xtp::serve(at, *mode, random.fork(), config);
        let (xtp, port) = listen_above(&ips(control)?, spec(*mode), serve)?;
        Ok(StreamListener { transport: Box::new(xtp), port: Some(port) })
    }

    fn dial(&mut self, Dial { remote, token, terms, .. }: Dial) -> Dialed {
        let random = self.random.fork();
        Ok(Box::new(Xtp::dial(ip(remote)?, token, self.mode, &terms, random, &self.config)?))
    }
}
