//! [`Core`]: a whole core as one sans-IO engine: owners, and a router between them.
//!
//! Peers, sessions and flows behind inputs (`handle_*`), outputs (`poll_*`) and commands. It runs
//! on a host inside `dacapo-reactor`, and in virtual time inside `dacapo-netlab`.
//!
//! ```text
//!   datagrams, time --> handle_*  +---------------------------------+  poll_transmit --> network
//!   streams open, …               | control  peers  sessions served |  poll_request --> dial, …
//!   commands -------->            | labels -> flows   fan-outs      |  poll_event --> application
//!                                 +---------------------------------+  next_deadline --> clock
//!
//!   input -> owner(cx, input, out) -> effects -> route -> further owners, events, what goes out
//! ```
//!
//! Order of use: give it inputs and commands, then drain `poll_request`, `poll_transmit` and
//! `poll_event` until all are empty, then wait until `next_deadline` or the next input.
//!
//! [`Core`] is the face; `Router` has the owners and sees to their effects, `Outgoing` decides who
//! sends next.
//!
//! Invariants: an owner never holds another, and is changed through one door each
//! (`with_session`, `with_peers`, `FanOuts::with`), after which its effects are routed; all queues
//! are bounded; nothing allocates from unauthenticated input but what the bounds of the control
//! connections allow; the same inputs at the same times give the same outputs.

mod commands;
mod driving;
mod incoming;
mod outgoing;
mod router;

use crate::config::CoreConfig;
use crate::control::{Control, ControlCrypto};
use crate::events::CoreEvent;
use crate::graphs::Graphs;
use crate::ids::{PeerId, SessionId};
use crate::network::Request;
use crate::peer::Identity;
use crate::session::FlowEnd;
use crate::shared::Shared;
use crate::status::{CoreCounters, FlowStatus, PathStatus};
use crate::suspension::Suspension;
use crate::transmit::{Payload, Transmit};
use dacapo_base::{Address, Random};
use dacapo_packet::Pool;
use outgoing::Outgoing;
use router::Router;
use std::num::NonZeroU16;
use std::time::Instant;

/// A core without sockets and clock.
pub struct Core {
    router: Router,
    outgoing: Outgoing,
    suspension: Suspension,
}

/// For tests: the owner that says of none of its own when it is due.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgets {
    /// Control connections.
    Connections,
    /// Peers.
    Peers,
    /// Sessions.
    Sessions,
    /// Fan-outs.
    FanOuts,
}

impl Core {
    /// A core. `origin` is where `Time::ZERO` lies on the clock that `quinn-proto` counts with: any
    /// instant will do, and it is not read again.
    #[must_use]
    pub fn new(
        config: CoreConfig,
        crypto: ControlCrypto,
        mut random: Random,
        origin: Instant,
    ) -> Self {
        let mut instance = [0; 16];
        random.fill(&mut instance);
        let CoreConfig { catalogue, pool_bytes_max, boot, time_namespace, versions, .. } = config;
        let (queues, meter, controllers) = (config.queues, config.meter, config.controllers);
        let control = Control::new(crypto, &mut random, origin, queues.answers_max);
        let pool = Pool::new(pool_bytes_max);
        let identity = Identity { instance, boot, time_namespace, versions };
        let shared = Shared::new(pool, random, Graphs::new(catalogue, meter), queues, controllers);
        Self {
            router: Router::new(identity, shared, control),
            outgoing: Outgoing::default(),
            suspension: Suspension::default(),
        }
    }

    /// The packet memory, to bring datagrams in and to read what goes out.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.router.shared.pool
    }

    /// Counters of what belongs to no flow.
    #[must_use]
    pub fn counters(&self) -> CoreCounters {
        CoreCounters {
            changes_refused: self.router.shared.changes_refused,
            events_dropped: self.router.events.dropped(),
            connections_watched: self.router.control.watched(),
            ..self.router.counters
        }
    }

    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<CoreEvent> {
        self.router.events.poll()
    }

    /// True when events wait.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.router.events.is_empty()
    }

    /// What is asked of who drives the core, one by one, in order.
    pub fn poll_request(&mut self) -> Option<Request> {
        let shared = &mut self.router.shared;
        let stream = shared.channels.poll().map(Request::Stream);
        let of_shared = stream.or_else(|| shared.groups.poll().map(Request::Group));
        let lookup =
            of_shared.or_else(|| self.router.peers.poll_host_lookup().map(Request::Lookup));
        lookup.or_else(|| self.router.closed_data.pop_front().map(Request::CloseData))
    }

    /// Whether something is asked about streams or groups.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        !self.router.shared.channels.is_empty() || !self.router.shared.groups.is_empty()
    }

    /// Says at which port this end listens for the streams of a transport, for every ACCEPT from
    /// now on; without it a peer dials the port of the control connection.
    pub fn set_stream_port(&mut self, transport: u16, port: NonZeroU16) {
        self.router.shared.channels.set_port(transport, port);
    }

    /// The ids of all sessions, with the name and the peer of each.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &str, PeerId)> {
        self.router.sessions.iter().map(|(id, it)| (id, it.name(), it.peer()))
    }

    /// The address of a peer's control port.
    #[must_use]
    pub fn peer_address(&self, peer: PeerId) -> Option<Address> {
        self.router.peers.get(peer).map(crate::peer::Peer::remote)
    }

    /// What is known of the path to a peer.
    #[must_use]
    pub fn path(&self, peer: PeerId) -> Option<PathStatus> {
        let path = self.router.peers.get(peer)?.data().path();
        Some(PathStatus::of(path, self.router.path_known(peer)?))
    }

    /// The longest datagrams that the path of a session takes now, in bytes of UDP payload; `None`
    /// until that is known, and when there is no such session.
    #[must_use]
    pub fn path_mtu(&self, id: SessionId) -> Option<usize> {
        self.router.peers.get(self.router.sessions.get(id)?.peer())?.data().settled_len()
    }

    /// Who a peer says it is: what the handshake gave, to be interpreted by who made the crypto.
    #[must_use]
    pub fn peer_identity(&self, peer: PeerId) -> Option<Box<dyn std::any::Any>> {
        self.router.control.peer_identity(self.router.peers.get(peer)?.conn()?)
    }

    /// What the flows of a session are doing; one that is sent for several as all are sent.
    #[must_use]
    pub fn status(&self, id: SessionId) -> Vec<FlowStatus> {
        let flows = self.router.sessions.get(id).map(|session| session.flows()).unwrap_or_default();
        let of_one = |flow: &crate::session::Flow| {
            let mut status = flow.status();
            if let FlowEnd::Member(member) = &flow.end
                && let Some(all) = self.router.fan_outs.get(member.fan_out())
            {
                status.show_shared(all.sender(), member.base());
            }
            status
        };
        flows.iter().map(of_one).collect()
    }

    /// The control connections that exist, half-open ones included.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.router.control.connection_count()
    }

    /// The bytes of a transmit, and the length of its datagrams.
    #[must_use]
    pub fn bytes<'a>(&'a self, transmit: &'a Transmit) -> (&'a [u8], usize) {
        match &transmit.payload {
            Payload::Bytes(bytes) => (bytes, bytes.len()),
            // The layout leaves no gap in what goes out.
            Payload::Packet(packet) => {
                self.router.shared.pool.contiguous(packet).unwrap_or_default()
            }
        }
    }

    /// Gives back what was sent, or cannot be.
    pub fn transmitted(&mut self, transmit: Transmit) {
        if let Payload::Packet(packet) = transmit.payload {
            self.router.shared.pool.free(packet);
        }
    }
}
