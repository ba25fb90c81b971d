//! Faults that a test puts into a [`World`] while it runs: cuts, kills, clocks, other links.

use super::{NodeId, World};
use dacapo_base::Time;
use dacapo_core::CoreConfig;
use dacapo_link::LinkConfig;
use dacapo_transport::TrafficClass;
use std::time::Duration;

impl World {
    /// From now on a node neither runs nor hears, as if it were killed.
    pub fn kill(&mut self, node: NodeId) {
        self.nodes[node.0].killed = true;
    }

    /// From now on everything that a node sends by this lane vanishes; `None` ends that.
    pub fn block(&mut self, node: NodeId, lane: Option<TrafficClass>) {
        self.nodes[node.0].blocked = lane;
    }

    /// Cuts the link from one node to another, or joins it again; the way back is a link of its
    /// own.
    pub fn cut(&mut self, from: NodeId, to: NodeId, cut: bool) {
        self.link(from, to).set_partitioned(cut);
    }

    /// The same in a further network.
    pub fn cut_in(&mut self, net: u8, from: NodeId, to: NodeId, cut: bool) {
        self.link_in(net, from, to).set_partitioned(cut);
    }

    /// While `frozen`, a node neither runs nor hears, as if it were stopped; then it goes on, and
    /// its clock has gone on meanwhile.
    pub fn freeze(&mut self, node: NodeId, frozen: bool) {
        self.nodes[node.0].killed = frozen;
    }

    /// Starts the program of a node anew: what it knew is gone, its addresses are the same.
    pub fn restart(&mut self, node: NodeId, config: CoreConfig) {
        let fresh = self.make_core(config);
        let node = &mut self.nodes[node.0];
        (node.core, node.killed) = (fresh, false);
    }

    /// From now on the link from one node to another is another one; what is on the way keeps its
    /// fate.
    ///
    /// # Panics
    /// When the configuration is not valid.
    pub fn relink(&mut self, from: NodeId, to: NodeId, config: LinkConfig) {
        self.relink_in(0, from, to, config);
    }

    /// The same in a further network.
    ///
    /// # Panics
    /// As [`World::relink`].
    pub fn relink_in(&mut self, net: u8, from: NodeId, to: NodeId, config: LinkConfig) {
        let now = self.now;
        let set = self.link_in(net, from, to).set_config(now, config);
        set.unwrap_or_else(|error| panic!("the new link is not valid: {error}"));
    }

    /// What the clock of a node shows now: what its core is to be called with.
    #[must_use]
    pub fn local(&self, node: NodeId) -> Time {
        self.nodes[node.0].clock.local(self.now)
    }

    /// The clock of a node shows so much more at once, as after a sleep of its host.
    pub fn jump(&mut self, node: NodeId, by: Duration) {
        let now = self.now;
        self.nodes[node.0].clock.jump(now, by);
    }

    /// From now on the clock of a node gains this many parts per million; negative: it loses.
    pub fn drift(&mut self, node: NodeId, ppm: i32) {
        let now = self.now;
        self.nodes[node.0].clock.drift(now, ppm);
    }

    /// Sets the calendar of all nodes ahead of the time of the world by this much: somebody sets
    /// the date. Cores date their address-validation tokens with it and nothing else.
    pub fn calendar(&mut self, ahead: Duration) {
        self.calendar_ahead_ns = u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX);
        self.clock.set(self.now + ahead);
    }

    /// The most bytes that a node has sent per byte received to another one that had not got
    /// anything yet, and so could not have proved its address; 0 when that never was.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        self.amplification
    }

    pub(super) fn note_amplification(&mut self, from: NodeId, to: NodeId) {
        let there = self.links.get(&(from, to, 0)).map(|link| link.stats());
        let back = self.links.get(&(to, from, 0)).map_or(0, |link| link.stats().delivered_bytes);
        if let Some(there) = there.filter(|there| there.delivered == 0 && back > 0) {
            self.amplification = self.amplification.max(there.sent_bytes as f64 / back as f64);
        }
    }
}
