//! The entries of UDP: how it is opened on a host, which it carries control for too.

use super::{BindError, Config, GROUP_SPEC, SPEC, Udp};
use crate::Transport;
use crate::entry::{ControlCarrier, Opened, TransportEntry};
use std::io;
use std::net::SocketAddr;

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
    fn listen(&mut self, at: &[SocketAddr]) -> io::Result<Vec<Box<dyn Transport>>> {
        BindError::check_count(at)?;
        at.iter().map(|at| Ok(Box::new(Udp::serve(&[*at], &self.config)?) as Box<_>)).collect()
    }

    fn dial(&mut self, remote: SocketAddr) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(Udp::dial(remote, &self.config)?))
    }
}
