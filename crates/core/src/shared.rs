//! [`Shared`]: what the owners of a core share.
//!
//! Memory, randomness, and the tables from which they are given numbers. It is handed to each call.

use crate::channel::Channels;
use crate::config::Controllers;
use crate::flow::Context;
use crate::graphs::Graphs;
use crate::groups::Groups;
use crate::ids::PeerId;
use crate::labels::{Labels, Target};
use crate::queues::Queues;
use crate::transmit::ListenerId;
use dacapo_base::{Address, Random, Time};
use dacapo_packet::Pool;
use dacapo_wire::limits::FURTHER_MAX;
use std::net::{IpAddr, SocketAddr};

pub(crate) struct Shared {
    pub pool: Pool,
    pub random: Random,
    pub labels: Labels,
    pub channels: Channels,
    pub groups: Groups,
    pub graphs: Graphs,
    pub queues: Queues,
    /// What controls a path of datagrams.
    pub controllers: Controllers,
    /// The places at which this end listens, and their addresses.
    pub listening: Vec<(ListenerId, Address)>,
    /// Changes that the other end has proposed and that were refused.
    pub changes_refused: u64,
    ids: u64,
}

impl Shared {
    pub fn new(
        pool: Pool,
        random: Random,
        graphs: Graphs,
        queues: Queues,
        controllers: Controllers,
    ) -> Self {
        Self {
            pool,
            random,
            labels: Labels::default(),
            channels: Channels::default(),
            groups: Groups::default(),
            graphs,
            queues,
            controllers,
            listening: Vec::new(),
            changes_refused: 0,
            ids: 1,
        }
    }

    /// Where this end is reached besides by a peer that has come in at `local`, as far as its
    /// addresses tell: not what means any address, or needs the name of an interface.
    pub fn further_for(&self, local: Option<ListenerId>, remote: &Address) -> Vec<SocketAddr> {
        let others = self.listening.iter().filter(|(place, _)| local != Some(*place));
        let is_told = |address: &&Address| address.is_loopback() == remote.is_loopback();
        let told = others.map(|(_, address)| address).filter(is_told);
        let told = told.filter_map(|address| address.ip().filter(is_of_any_link));
        told.take(FURTHER_MAX).collect()
    }

    /// A number that nothing else in the core has.
    pub fn fresh_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// A label for a flow with this peer; `None` when there are too many.
    pub fn allot(&mut self, now: Time, target: Target, owner: PeerId) -> Option<u32> {
        self.labels.allot(now, &mut self.random, target, owner)
    }

    /// What a call into a flow is given.
    pub fn flow(&mut self, now: Time) -> Context<'_> {
        Context { now, pool: &mut self.pool, random: &mut self.random }
    }
}

/// Whether an address means the same host wherever it is read.
fn is_of_any_link(address: &SocketAddr) -> bool {
    let is_of_link = matches!(address.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local());
    !address.ip().is_unspecified() && !is_of_link && address.port() > 0
}
