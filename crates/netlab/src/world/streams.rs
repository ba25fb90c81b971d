//! The streams of a [`World`]: what its cores ask for, and what the links do to them.

use super::World;
use crate::NodeId;
use crate::stream::{Network, Streams, Weather};
use crate::trace::Trace;
use crate::world::{Datagram, Node};
use dacapo_base::Time;
use dacapo_core::{ChannelEvent, Core, StreamAsk, StreamId};
use dacapo_link::{Link, LinkConfig};
use dacapo_transport::stream::{PATIENCE, Token};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Which ways carry nothing now.
struct Cuts<'a> {
    now: Time,
    links: &'a BTreeMap<(NodeId, NodeId, u8), Link<Datagram>>,
    default_link: &'a LinkConfig,
    held: bool,
}

impl Cuts<'_> {
    fn is_cut(&self, nodes: &[Node], from: NodeId, to: NodeId) -> bool {
        let is_killed = |node: NodeId| nodes.get(node.0).is_none_or(|node| node.killed);
        let in_window = || self.default_link.partitions.iter().any(|it| it.contains(self.now));
        let link = self.links.get(&(from, to, 0));
        let partitioned = link.map_or_else(in_window, |link| link.is_partitioned(self.now));
        self.held || partitioned || is_killed(from) || is_killed(to)
    }
}

/// What connections see of a world.
struct Surface<'a> {
    cuts: Cuts<'a>,
    nodes: &'a mut [Node],
    expected: &'a mut BTreeMap<(NodeId, Token), StreamId>,
    trace: &'a mut Trace,
}

impl Network for Surface<'_> {
    fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cuts.is_cut(self.nodes, from, to)
    }

    fn weather(&self, from: NodeId, to: NodeId) -> Weather {
        let link = self.cuts.links.get(&(from, to, 0));
        let LinkConfig { delay, jitter, loss, .. } =
            link.map_or(self.cuts.default_link, Link::config);
        Weather { delay: *delay, jitter: *jitter, loss: loss.mean_loss() }
    }

    fn local(&self, node: NodeId) -> Time {
        self.nodes.get(node.0).map_or(self.cuts.now, |it| it.clock.local(self.cuts.now))
    }

    fn listens(&self, node: NodeId) -> bool {
        self.nodes.get(node.0).is_some_and(|node| node.listens)
    }

    fn claim(&mut self, node: NodeId, token: &Token) -> Option<StreamId> {
        self.expected.remove(&(node, *token))
    }

    fn core(&mut self, node: NodeId) -> Option<&mut Core> {
        self.nodes.get_mut(node.0).filter(|node| !node.killed).map(|node| &mut node.core)
    }

    fn sent(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.trace.record(self.cuts.now, from, to, bytes);
    }
}

impl World {
    /// From now on a new connection takes this many bytes each way before it blocks.
    pub fn stream_capacity(&mut self, bytes: usize) {
        self.streams.capacity = bytes;
    }

    /// While `held`, no byte of a stream gets through and no connection is made, as if a firewall
    /// dropped TCP; datagrams pass. After 30 s of it connections end.
    pub fn hold_streams(&mut self, held: bool) {
        self.held = held;
    }

    /// Ends every connection between two nodes at once, at both ends.
    pub fn break_streams(&mut self, a: NodeId, b: NodeId) {
        self.with_streams(|streams, surface| streams.break_between(a, b, surface));
    }

    /// How many connections there are, those that are being made included.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.streams.count()
    }

    /// Does what a core asks about streams.
    pub(super) fn ask(&mut self, node: NodeId, ask: StreamAsk) {
        match ask {
            StreamAsk::Expect { stream, token, .. } => {
                self.expected.insert((node, token), stream);
            }
            // What comes to a world's sinks is taken.
            StreamAsk::Read { .. } => {}
            StreamAsk::Wait { stream, longer } => {
                self.streams.set_patience(node, stream, PATIENCE.saturating_add(longer));
            }
            StreamAsk::Close { stream } => {
                self.expected.retain(|(at, _), known| (*at, *known) != (node, stream));
                self.with_streams(|streams, surface| streams.close(node, stream, surface));
            }
            StreamAsk::Dial { stream, remote, token, .. } => {
                let at = |remote| self.nodes.iter().position(|it| it.control == remote);
                let there = remote.ip().and_then(|remote| Some((NodeId(at(remote)?), remote)));
                let Some((there, remote)) = there else {
                    let local = self.local(node);
                    let core = &mut self.nodes[node.0].core;
                    return core.handle_channel(
                        local,
                        stream,
                        ChannelEvent::closed("nobody at the address"),
                    );
                };
                let there_delay = self.link(node, there).config().delay;
                let at = self.now + there_delay + self.link(there, node).config().delay;
                let from = self.nodes[node.0].control;
                self.streams.dial(at, (node, from, stream), (there, remote), &token);
            }
        }
    }

    /// Moves what is due on streams; true when something moved.
    pub(super) fn step_streams(&mut self) -> bool {
        let now = self.now;
        self.streams.count() > 0 && self.with_streams(|streams, surface| streams.step(now, surface))
    }

    /// When something is due on a stream.
    pub(super) fn next_stream(&self) -> Option<Time> {
        let (now, links, held) = (self.now, &self.links, self.held);
        let cuts = Cuts { now, links, default_link: &self.default_link, held };
        self.streams.next_due(&|from, to| cuts.is_cut(&self.nodes, from, to))
    }

    fn with_streams<R>(&mut self, body: impl FnOnce(&mut Streams, &mut Surface<'_>) -> R) -> R {
        let (now, links, held) = (self.now, &self.links, self.held);
        let mut surface = Surface {
            cuts: Cuts { now, links, default_link: &self.default_link, held },
            nodes: &mut self.nodes,
            expected: &mut self.expected,
            trace: &mut self.trace,
        };
        body(&mut self.streams, &mut surface)
    }
}
