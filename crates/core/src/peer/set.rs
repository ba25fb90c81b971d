//! [`Peers`]: the peers of a core, and which of them have to be looked at.
//!
//! A table in which whatever gets at a peer to change it wakes it (see [`ReadySet`]). Peers that
//! will be due soon are woken with the first that is: a process that sleeps is woken once for all
//! their probes, not for each.
//!
//! Invariants: a peer that is not awake has been found at rest since it was touched last; at most
//! [`TOGETHER_MAX`] are woken early at a time.

use super::{Peer, PeerId};
use crate::ready_set::ReadySet;
use dacapo_base::Time;
use dacapo_path::EARLY_MAX;
use std::collections::BTreeMap;

/// The most peers that are woken early with one that is due: a quarter of the probes that may wait.
const TOGETHER_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Peers {
    all: BTreeMap<PeerId, Peer>,
    ready: ReadySet<PeerId>,
}

impl Peers {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn get(&self, id: &PeerId) -> Option<&Peer> {
        self.all.get(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&PeerId, &Peer)> {
        self.all.iter()
    }

    /// A peer that something happens to: it is awake from now on.
    pub fn get_mut(&mut self, id: &PeerId) -> Option<&mut Peer> {
        let peer = self.all.get_mut(id)?;
        self.ready.wake(*id, &mut peer.idle);
        Some(peer)
    }

    /// A peer to which nothing happens that it would have to be looked at for.
    pub fn get_resting_mut(&mut self, id: &PeerId) -> Option<&mut Peer> {
        self.all.get_mut(id)
    }

    pub fn insert(&mut self, id: PeerId, mut peer: Peer) {
        self.ready.wake(id, &mut peer.idle);
        self.all.insert(id, peer);
    }

    pub fn remove(&mut self, id: &PeerId) -> Option<Peer> {
        let peer = self.all.remove(id)?;
        self.ready.remove(*id, peer.idle);
        Some(peer)
    }

    /// Those that are awake, in order.
    pub fn awake(&self) -> impl Iterator<Item = PeerId> {
        self.ready.awake()
    }

    /// Wakes those whose time has come, and with them some whose time will come soon.
    pub fn wake_due(&mut self, now: Time) {
        let mut is_any_due = false;
        while let Some(id) = self.ready.first_due(now) {
            self.get_mut(&id);
            is_any_due = true;
        }
        if !is_any_due {
            return;
        }
        for _ in 0..TOGETHER_MAX {
            let Some(id) = self.ready.first_due(now + EARLY_MAX) else { return };
            let peer = self.get_mut(&id);
            if let Some(prober) = peer.and_then(|peer| peer.prober.as_mut()) {
                prober.ask_early(now);
            }
        }
    }

    /// Wakes all, for tests.
    pub fn wake_all(&mut self) {
        let all: Vec<PeerId> = self.all.keys().copied().collect();
        all.iter().for_each(|id| _ = self.get_mut(id));
    }

    /// A peer rests until it is touched, or until a time.
    pub fn rest(&mut self, id: PeerId, until: Option<Time>) {
        if let Some(peer) = self.all.get_mut(&id) {
            self.ready.rest(id, &mut peer.idle, until);
        }
    }

    /// When the first that rests is due.
    pub fn next_due(&self) -> Option<Time> {
        self.ready.next_due()
    }
}
