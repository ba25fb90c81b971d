//! [`Peers`]: those that a worker has a connection to, or dials.
//!
//! Invariant: one that is lost is kept only while calls wait for it.

use dacapo_base::Address;
use dacapo_core::{Code, Error, PeerId};
use std::collections::BTreeMap;

/// A peer.
#[derive(Debug)]
struct Peer {
    /// Its address, when this end dialed.
    dialed: Option<Address>,
    phase: Phase,
    /// Calls that wait for it to open.
    waits: usize,
    /// A command has connected to it: it stays until another says goodbye.
    is_kept: bool,
}

/// How far a connection is.
#[derive(Debug)]
enum Phase {
    /// It is being set up.
    Dialing,
    /// Sessions can be joined.
    Open,
    /// It is gone, and why; kept while calls wait for it.
    Lost(Error),
}

/// The peers of a worker.
#[derive(Debug, Default)]
pub(super) struct Peers(BTreeMap<PeerId, Peer>);

impl Peers {
    fn at(&mut self, remote: Address) -> Option<(PeerId, &mut Peer)> {
        let is_there = |it: &Peer| it.dialed == Some(remote) && !matches!(it.phase, Phase::Lost(_));
        let found = self.0.iter_mut().find(|(_, peer)| is_there(peer));
        found.map(|(id, peer)| (*id, peer))
    }

    /// Whether that at an address is here.
    pub fn knows(&mut self, remote: Address) -> bool {
        self.at(remote).is_some()
    }

    /// A call waits for that at an address, when it is here; whether it is being dialed.
    pub fn wait_at(&mut self, remote: Address) -> Option<(PeerId, bool)> {
        let (id, peer) = self.at(remote)?;
        peer.waits += 1;
        Some((id, matches!(peer.phase, Phase::Dialing)))
    }

    /// A call dials a new one, and waits for it.
    pub fn dial(&mut self, id: PeerId, remote: Address) {
        let (dialed, phase) = (Some(remote), Phase::Dialing);
        self.0.insert(id, Peer { dialed, phase, waits: 1, is_kept: false });
    }

    /// It stays until it is said goodbye to, instead of for a call that waits.
    pub fn keep(&mut self, id: PeerId) {
        if let Some(peer) = self.0.get_mut(&id) {
            peer.waits = peer.waits.saturating_sub(1);
            peer.is_kept = true;
        }
    }

    /// Ends a wait for one.
    ///
    /// # Errors
    /// Why it could not be reached.
    pub fn dialed(&mut self, id: PeerId) -> Result<(), Error> {
        let gone = || Error::new(Code::Closed, "the connection ended");
        let peer = self.0.get_mut(&id).ok_or_else(gone)?;
        peer.waits = peer.waits.saturating_sub(1);
        let Phase::Lost(error) = &peer.phase else { return Ok(()) };
        let error = error.clone();
        if peer.waits == 0 {
            self.0.remove(&id);
        }
        Err(error)
    }

    /// It answers, or has come.
    pub fn opened(&mut self, id: PeerId) {
        let new = Peer { dialed: None, phase: Phase::Open, waits: 0, is_kept: false };
        self.0.entry(id).or_insert(new).phase = Phase::Open;
    }

    /// It is gone.
    pub fn lost(&mut self, id: PeerId, error: Error) {
        match self.0.get_mut(&id) {
            Some(lost) if lost.waits > 0 => lost.phase = Phase::Lost(error),
            _ => drop(self.0.remove(&id)),
        }
    }

    pub fn is_open(&self, id: PeerId) -> bool {
        self.0.get(&id).is_some_and(|peer| matches!(peer.phase, Phase::Open))
    }

    pub fn is_dialing(&self, id: PeerId) -> bool {
        self.0.get(&id).is_some_and(|peer| matches!(peer.phase, Phase::Dialing))
    }

    /// Whether somebody waits for it or keeps it; one that is gone needs no goodbye either.
    pub fn is_waited_for(&self, id: PeerId) -> bool {
        self.0.get(&id).is_none_or(|peer| peer.waits > 0 || peer.is_kept)
    }

    /// How many are open.
    pub fn open_count(&self) -> usize {
        self.0.values().filter(|peer| matches!(peer.phase, Phase::Open)).count()
    }

    pub fn ids(&self) -> Vec<PeerId> {
        self.0.keys().copied().collect()
    }
}
