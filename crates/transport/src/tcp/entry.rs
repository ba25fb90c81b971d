//! The entries of TCP: how it is opened on a host, served beside control, and dialed.

use super::{Config, GROUP_SPEC, SPEC, Tcp};
use crate::entry::{Dial, Dialed, Opened, StreamCarrier, StreamListener, TransportEntry};
use dacapo_base::Address;
use dacapo_io::address::{ip, ips};
use std::io;

/// Streams to one, and to several from one sender, which the same listener takes.
#[must_use]
pub fn entries() -> Vec<TransportEntry> {
    let one = TransportEntry::new(&SPEC, |_| {
        Ok(Opened::Streams(Box::new(Carrier { config: Config::default() })))
    });
    vec![one, TransportEntry::carried(&GROUP_SPEC)]
}

struct Carrier {
    config: Config,
}

impl StreamCarrier for Carrier {
    fn listen(&mut self, control: &[Address]) -> io::Result<StreamListener> {
        let transport = Box::new(Tcp::serve(&ips(control)?, &self.config)?);
        Ok(StreamListener { transport, port: None })
    }

    fn dial(&mut self, Dial { remote, token, .. }: Dial) -> Dialed {
        Ok(Box::new(Tcp::dial(ip(remote)?, token, &self.config)?))
    }
}
