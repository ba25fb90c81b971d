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
use dacapo_base::{Random, Time};
use dacapo_packet::Pool;

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
            changes_refused: 0,
            ids: 1,
        }
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
