//! The byte streams of a world: connections between nodes that their cores ask for.
//!
//! ```text
//!   Core A -- StreamAsk::Dial ----> Connection <---- StreamAsk::Expect -- Core B
//!      |                         pipe A->B, pipe B->A                       |
//!      '-- Way::Stream --> records --> random pieces, delayed --> records --'
//! ```
//!
//! Invariant: everything random follows from the seed of the world, and worlds without streams draw
//! nothing for them.

mod connection;
mod pipe;

pub(crate) use pipe::Weather;

use crate::NodeId;
use connection::Connection;
use dacapo_base::{Random, Time};
use dacapo_core::{Core, StreamId};
use dacapo_transport::stream::Token;
use std::net::SocketAddr;
use std::time::Duration;

/// How many bytes one direction of a connection takes before it blocks.
const CAPACITY: usize = 64 * 1024;

/// What a connection asks of the network around it.
pub(crate) trait Network {
    /// Nothing gets from one node to the other now.
    fn is_cut(&self, from: NodeId, to: NodeId) -> bool;

    /// What happens to bytes on their way from one node to the other.
    fn weather(&self, from: NodeId, to: NodeId) -> Weather;

    /// What the clock of a node shows.
    fn local(&self, node: NodeId) -> Time;

    /// Whether a node accepts connections.
    fn listens(&self, node: NodeId) -> bool;

    /// The stream for which a node waits under this token; it waits no longer.
    fn claim(&mut self, node: NodeId, token: &Token) -> Option<StreamId>;

    /// The core of a node that lives.
    fn core(&mut self, node: NodeId) -> Option<&mut Core>;

    /// Bytes went out.
    fn sent(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]);
}

/// The connections of a world.
#[derive(Debug)]
pub(crate) struct Streams {
    connections: Vec<Connection>,
    random: Random,
    pub capacity: usize,
    dialed: u16,
}

impl Streams {
    pub fn new(random: Random) -> Self {
        Self { connections: Vec::new(), random, capacity: CAPACITY, dialed: 0 }
    }

    /// How many connections there are, those that are being made included.
    pub fn count(&self) -> usize {
        self.connections.len()
    }

    /// A core has closed its end of a stream.
    pub fn close(&mut self, node: NodeId, stream: StreamId, network: &mut dyn Network) {
        self.connections.iter_mut().for_each(|it| it.close(node, stream, network));
        self.forget_over();
    }

    /// Begins a connection; `at`: when the other end has answered.
    pub fn dial(
        &mut self,
        at: Time,
        dialer: (NodeId, SocketAddr, StreamId),
        listener: (NodeId, SocketAddr),
        token: &Token,
    ) {
        self.dialed = self.dialed.wrapping_add(1);
        let (node, mut address, stream) = dialer;
        address.set_port(50_000_u16.wrapping_add(self.dialed));
        let dialer = (node, address, stream);
        self.connections.push(Connection::new(at, dialer, listener, token, self.capacity));
    }

    /// A core waits for so long while nothing gets through.
    pub fn set_patience(&mut self, node: NodeId, stream: StreamId, patience: Duration) {
        for connection in &mut self.connections {
            connection.set_patience(node, stream, patience);
        }
    }

    /// Takes a datagram from a core; one of a stream that is over is gone.
    pub fn send(&mut self, node: NodeId, stream: StreamId, datagram: &[u8]) {
        let _ = self.connections.iter_mut().any(|it| it.send(node, stream, datagram));
    }

    /// Ends the connections between two nodes: a router died, a firewall woke up.
    pub fn break_between(&mut self, a: NodeId, b: NodeId, network: &mut dyn Network) {
        for connection in self.connections.iter_mut().filter(|it| it.joins(a, b)) {
            connection.end("the network broke it", network);
        }
        self.forget_over();
    }

    /// Does what is due now; true when something moved.
    pub fn step(&mut self, now: Time, network: &mut dyn Network) -> bool {
        let mut moved = false;
        for connection in &mut self.connections {
            moved |= connection.step(now, network, &mut self.random);
        }
        self.forget_over();
        moved
    }

    fn forget_over(&mut self) {
        self.connections.retain(|connection| !connection.is_over());
    }

    /// When [`Streams::step`] has something to do.
    pub fn next_due(&self, is_cut: &dyn Fn(NodeId, NodeId) -> bool) -> Option<Time> {
        self.connections.iter().filter_map(|it| it.next_due(is_cut)).min()
    }
}
