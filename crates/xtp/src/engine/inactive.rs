//! [`Inactive`]: associations that are over, for as long as the peer may not know it.
//!
//! Copies of a FIRST are late packets too, so a request is never carried out twice.
//!
//! Invariant: at most as many as it was made for; of more the oldest goes.

use super::keys::ByKey;
use crate::context::Context;
use crate::event::End;
use crate::group::Leaving;
use crate::members::Parted;
use crate::wire::{Body, Control, Format, Header, Key, Options, Writer};
use dacapo_base::Time;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

/// What is kept of a context that is over.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    pub peer: SocketAddr,
    pub own_key: u64,
    pub known_as: Option<u64>,
    /// What stands in the header of answers.
    pub key: Key,
    pub seq: u64,
    pub rseq: u64,
    /// Whether both streams came to their end.
    pub is_complete: bool,
}

/// Associations that are over.
#[derive(Debug)]
pub struct Inactive {
    count_max: usize,
    by_key: ByKey<(Time, Gone)>,
    by_peer: HashMap<(SocketAddr, u64), u64>,
    order: BTreeSet<(Time, u64)>,
}

impl Inactive {
    pub fn new(count_max: usize) -> Self {
        let (by_key, by_peer) = (ByKey::default(), HashMap::new());
        Self { count_max, by_key, by_peer, order: BTreeSet::new() }
    }

    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Keeps one until `until`.
    pub fn insert(&mut self, until: Time, gone: Gone) {
        if self.count_max == 0 {
            return;
        }
        if self.by_key.len() >= self.count_max {
            self.remove_first();
        }
        if let Some(key) = gone.known_as {
            self.by_peer.insert((gone.peer, key), gone.own_key);
        }
        self.by_key.insert(gone.own_key, (until, gone));
        self.order.insert((until, gone.own_key));
    }

    /// Whether a key is taken.
    pub fn has_key(&self, own_key: u64) -> bool {
        self.by_key.contains_key(&own_key)
    }

    /// The one that a packet is for.
    pub fn find(&self, from: SocketAddr, key: Key) -> Option<&Gone> {
        let own_key = if key.is_returned() {
            key.value()
        } else {
            *self.by_peer.get(&(from, key.value()))?
        };
        self.by_key.get(&own_key).map(|(_, gone)| gone)
    }

    pub fn deadline(&self) -> Time {
        self.order.first().map_or(Time::NEVER, |(until, _)| *until)
    }

    /// Forgets those whose period is over.
    pub fn handle_time(&mut self, now: Time) {
        while self.order.first().is_some_and(|(until, _)| *until <= now) {
            self.remove_first();
        }
    }

    fn remove_first(&mut self) {
        let Some((_, own_key)) = self.order.pop_first() else { return };
        let Some((_, gone)) = self.by_key.remove(&own_key) else { return };
        let alias = gone.known_as.map(|key| (gone.peer, key));
        if let Some(alias) = alias.filter(|alias| self.by_peer.get(alias) == Some(&own_key)) {
            self.by_peer.remove(&alias);
        }
    }
}

impl Gone {
    /// Of a context that is over.
    pub fn of(context: &Context) -> Self {
        let (ends, rseq) = (context.addressing(), context.composer().control().rseq);
        Self {
            peer: ends.peer(),
            own_key: ends.own_key(),
            known_as: ends.known_as(),
            key: ends.peer_key(),
            seq: context.outbound().sender().next(),
            rseq,
            is_complete: context.lifecycle().end() == Some(End::Complete),
        }
    }

    /// Of a member that has parted so.
    pub fn of_member(parted: &Parted, how: Leaving) -> Self {
        Self {
            peer: parted.address,
            own_key: parted.offered,
            known_as: None,
            key: Key::returned(parted.key),
            seq: 0,
            rseq: parted.rseq,
            is_complete: how == Leaving::Complete,
        }
    }

    /// END, in answer to a packet with this `sync`; `more` is an option that it had.
    pub fn end(&self, sync: u32, more: Options) -> Vec<u8> {
        let closes = (Options::RCLOSE | Options::WCLOSE).when(self.is_complete);
        let options = Options::END | closes | more;
        let header = Header { options, seq: self.seq, ..Header::new(self.key, Format::Cntl) };
        let control = Control { rseq: self.rseq, alloc: self.rseq, echo: sync };
        let mut packet = Vec::new();
        // A control packet is never too long.
        let _ = Writer::packet(&header, &Body::Cntl(control), &mut packet);
        packet
    }
}
