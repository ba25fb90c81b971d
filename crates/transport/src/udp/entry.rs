//! The entries of UDP: how it is opened on a host, which it carries control for too.

use super::{BindError, Config, GROUP_SPEC, SPEC, Udp};
use crate::Transport;
use crate::entry::{ControlCarrier, Opened, TransportEntry};
use dacapo_base::Address;
use dacapo_io::address::{ip, ips};
use std::io;

/// Datagrams to one and to a group, by the same sockets.
#[must_use]
pub fn entries() -> Vec<TransportEntry> {
    let one = TransportEntry::new(&SPEC, |setup| {
        Ok(Opened::Control(Box::new(Carrier { config: *setup.sockets })))
    });
    vec![one, TransportEntry::carried(&GROUP_SPEC)]
}

struct Carrier {
    config: Config,
}

impl ControlCarrier for Carrier {
    fn listen(&mut self, at: &[Address]) -> io::Result<Vec<Box<dyn Transport>>> {
        let at = ips(at)?;
        BindError::check_count(&at)?;
        at.iter().map(|at| Ok(Box::new(Udp::serve(&[*at], &self.config)?) as Box<_>)).collect()
    }

    fn dial(&mut self, remote: Address) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(Udp::dial(ip(remote)?, &self.config)?))
    }
}
