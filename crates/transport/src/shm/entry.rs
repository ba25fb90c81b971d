//! The entry of shared memory: how it is opened on a host, served, found and dialed.

use super::{Config, SPEC, Shm};
use crate::entry::{Dial, Dialed, Opened, StreamCarrier, StreamListener, TransportEntry};
use dacapo_base::Address;
use dacapo_io::address::{ip, ips};
use std::io;

/// Memory that two processes share.
#[must_use]
pub fn entries() -> Vec<TransportEntry> {
    vec![TransportEntry::new(&SPEC, |_| {
        Ok(Opened::Streams(Box::new(Carrier { config: Config::default() })))
    })]
}

struct Carrier {
    config: Config,
}

impl StreamCarrier for Carrier {
    fn listen(&mut self, control: &[Address]) -> io::Result<StreamListener> {
        let transport = Box::new(Shm::serve(&ips(control)?, &self.config)?);
        Ok(StreamListener { transport, port: None })
    }

    fn dial(&mut self, Dial { remote, token, .. }: Dial) -> Dialed {
        Ok(Box::new(Shm::dial(ip(remote)?, token, &self.config)?))
    }

    /// Where no memory can be made (a limit of file sizes, a sandbox), nobody is found.
    fn find(&mut self, remote: Address) -> bool {
        ip(remote).and_then(|remote| Shm::look(remote, &self.config)).is_ok()
    }
}
