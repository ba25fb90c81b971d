//! [`XtpFlows`]: the XTP of flows on this host: where it listens, to whom it dials.

use crate::flow_ports::listen_above;
use dacapo_base::Random;
use dacapo_reactor::{Dial, Dialed, Reactor};
use dacapo_transport::xtp::{Config, Mode, Xtp};
use dacapo_transport::{StreamTransport, udp};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;

/// Both modes.
pub(crate) const MODES: [Mode; 2] = [Mode::Streams, Mode::Datagrams];

/// What is needed to serve and dial.
#[derive(Clone)]
pub(crate) struct XtpFlows {
    pub(crate) random: Random,
    pub(crate) udp: udp::Config,
}

impl XtpFlows {
    fn config(&self) -> Config {
        Config { udp: self.udp, ..Config::default() }
    }

    /// Lets a reactor dial streams of both modes.
    pub(crate) fn set_dialers(&mut self, reactor: &mut Reactor) {
        for mode in MODES {
            let mut flows = Self { random: self.random.fork(), udp: self.udp };
            reactor.set_stream_dialer(mode.spec().id, move |dial| flows.dial(mode, &dial));
        }
    }

    fn dial(&mut self, mode: Mode, Dial { remote, token, terms, .. }: &Dial) -> Dialed {
        let random = self.random.fork();
        let xtp = Xtp::dial(*remote, *token, mode, terms, random, &self.config())?;
        Ok(Box::new(xtp) as Box<dyn StreamTransport>)
    }

    /// Listens at the addresses of control, at one port of its own.
    ///
    /// # Errors
    /// What the system says, when no port can be had.
    pub(crate) fn listen(
        &mut self,
        mode: Mode,
        control: &[SocketAddr],
    ) -> io::Result<(Xtp, NonZeroU16)> {
        listen_above(control, mode.spec().id, |at| {
            Xtp::serve(at, mode, self.random.fork(), &self.config())
        })
    }
}
