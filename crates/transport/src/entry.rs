//! [`TransportEntry`]: a transport as a catalogue has it: what is known of it, and what opens it.
//!
//! ```text
//!   TransportEntry { spec, open } --open(Setup)--> Control: listens at addresses, dials a host
//!                                            '---> Streams: listens beside control, dials a flow
//! ```
//!
//! What is opened belongs to one host, and has drawn from its [`Setup`] all that it needs to listen
//! and dial later. Nothing outside a transport's folder knows how it is opened.

use crate::stream::{StreamParams, StreamTransport, Token};
use crate::{Transport, sockets};
use dacapo_base::{Address, Random};
use dacapo_lift::TransportSpec;
use dacapo_security::{EndpointKeys, Identity};
use std::any::Any;
use std::fmt;
use std::io;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Instant;

/// What a host gives to a transport that is opened.
pub struct Setup<'a> {
    /// Who this host is.
    pub identity: &'a Identity,
    /// Secrets of this host that outlive no process.
    pub keys: &'a EndpointKeys,
    /// Randomness, of which a fork may be kept.
    pub random: &'a mut Random,
    /// Where zero of the host's clock lies.
    pub origin: Instant,
    /// How sockets are set that carry datagrams.
    pub sockets: &'a sockets::Config,
}

/// What opens a transport on a host.
///
/// # Errors
/// What the system says, where it cannot be used on this host at all.
pub type Open = dyn Fn(&mut Setup<'_>) -> io::Result<Opened> + Send + Sync;

/// A transport of a catalogue.
#[derive(Clone)]
pub struct TransportEntry {
    /// What is known of it. One that goes [over](TransportSpec::over) another is never opened
    /// itself.
    pub spec: &'static TransportSpec,
    /// What opens it.
    pub open: Arc<Open>,
}

impl TransportEntry {
    /// One that is opened so.
    pub fn new(
        spec: &'static TransportSpec,
        open: impl Fn(&mut Setup<'_>) -> io::Result<Opened> + Send + Sync + 'static,
    ) -> Self {
        Self { spec, open: Arc::new(open) }
    }

    /// One that another opens, over which it goes.
    #[must_use]
    pub fn carried(spec: &'static TransportSpec) -> Self {
        Self::new(spec, |_| Err(io::ErrorKind::Unsupported.into()))
    }
}

impl fmt::Debug for TransportEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TransportEntry").field(&self.spec.name).finish()
    }
}

/// A transport that was opened on a host.
pub enum Opened {
    /// It carries control, and the datagrams of flows beside that.
    Control(Box<dyn ControlCarrier>),
    /// It has a stream for each flow.
    Streams(Box<dyn StreamCarrier>),
}

/// What carries control connections, and the datagrams of flows beside them.
pub trait ControlCarrier: Send {
    /// Listens at each of these addresses, port 0 at one that is free; what comes to one is
    /// answered from there.
    ///
    /// # Errors
    /// What the system says, with the address and what to do.
    fn listen(&mut self, at: &[Address]) -> io::Result<Vec<Box<dyn Transport>>>;

    /// Makes the near end of a path to this address; nothing is sent yet.
    ///
    /// # Errors
    /// What the system says, when there is no way to it.
    fn dial(&mut self, remote: Address) -> io::Result<Box<dyn Transport>>;
}

/// What carries flows in a stream each.
pub trait StreamCarrier: Send {
    /// Listens beside control, which listens at these addresses: at [the
    /// port](TransportSpec::port) that its spec says, or at another, which is told.
    ///
    /// # Errors
    /// What the system says. `AddrInUse` where control at other ports may help.
    fn listen(&mut self, control: &[Address]) -> io::Result<StreamListener>;

    /// Begins to open a stream.
    ///
    /// # Errors
    /// What the system says, when it cannot be begun.
    fn dial(&mut self, dial: Dial) -> Dialed;

    /// Whether the host whose control listens at this address is this one, and a stream could be
    /// dialed to it now. Asked only of what is [for one host](TransportSpec::same_host).
    fn find(&mut self, remote: Address) -> bool {
        let _ = remote;
        false
    }
}

/// What listens for streams.
pub struct StreamListener {
    /// The transport that takes them.
    pub transport: Box<dyn StreamTransport>,
    /// The port that those who dial must be told; `None`: they know it from that of control.
    pub port: Option<NonZeroU16>,
}

/// What is dialed.
pub struct Dial {
    /// Where the peer listens.
    pub remote: Address,
    /// What opens the stream.
    pub token: Token,
    /// Who the peer showed itself to be in the control connection, as its cryptography says it. A
    /// transport that can is to make sure that it is the same.
    pub identity: Option<Box<dyn Any>>,
    /// What the flow of the stream is like.
    pub terms: StreamParams,
}

/// What dialing a stream gives: a transport that opens it, without waiting for that.
pub type Dialed = io::Result<Box<dyn StreamTransport>>;
