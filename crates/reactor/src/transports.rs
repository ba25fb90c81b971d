//! [`Transports`]: the transports for datagrams of a [`super::Reactor`], and which of them a turn
//! has to look at.
//!
//! ```text
//!   events, `more`, `silent` --> due: those that are asked for what has come
//!   `full`                   --> those that keep a transmit which they did not take
//!   `leaving`                --> those that go, and when
//! ```
//!
//! Invariants: a turn in which nothing comes looks at no transport that is not in one of these
//! sets, however many there are; a token is in a set of those alone that are attached; what is
//! known of the last way out is forgotten when one comes, or begins to go, or is gone.

use super::key_of;
use dacapo_base::{Address, Time, earlier};
use dacapo_core::{ListenerId, Transmit};
use dacapo_sys::poll::Event;
use dacapo_transport::Transport;
use std::collections::{BTreeMap, BTreeSet};

/// A transport in use.
pub(super) struct Attached {
    pub transport: Box<dyn Transport>,
    /// The one remote of a transport that was dialed.
    dialed: Option<Address>,
    lanes: BTreeSet<Address>,
    /// Of these the one that was used last: mostly the next is the same.
    lane: Option<Address>,
    /// When what it did not take is tried again.
    retry_at: Option<Time>,
    /// When it goes.
    remove_at: Option<Time>,
}

impl Attached {
    /// Whether the lane of data to a remote is open; from now on it is.
    pub fn has_lane(&mut self, remote: Address) -> bool {
        self.lane == Some(remote) || {
            self.lane = Some(remote);
            !self.lanes.insert(remote)
        }
    }

    /// Whether its peer is gone, and it goes soon.
    pub fn is_leaving(&self) -> bool {
        self.remove_at.is_some()
    }

    /// The lane to a remote is closed; whether it was open.
    pub fn close_lane(&mut self, remote: Address) -> bool {
        self.lane = None;
        self.lanes.remove(&remote)
    }
}

/// A transmit that was not taken, and how many bytes of it were.
pub(super) type Waiting = (Transmit, usize);

#[derive(Default)]
pub(super) struct Transports {
    all: BTreeMap<u64, Attached>,
    dialed: BTreeSet<(Address, u64)>,
    listening: BTreeSet<u64>,
    /// No event tells when they have something.
    silent: BTreeSet<u64>,
    /// Receiving stopped there at the bound of a turn.
    more: BTreeSet<u64>,
    /// What they did not take.
    full: BTreeMap<u64, Waiting>,
    leaving: BTreeSet<(Time, u64)>,
    /// Which reached a remote the last time: mostly the next is the same.
    last: Option<(Option<ListenerId>, Address, u64)>,
}

impl Transports {
    /// Takes one in: one that was dialed to a remote, or that listens.
    pub fn insert(
        &mut self,
        token: u64,
        transport: Box<dyn Transport>,
        dialed: Option<Address>,
        is_silent: bool,
    ) {
        self.last = None;
        match dialed {
            Some(remote) => self.dialed.insert((remote, token)),
            None => self.listening.insert(token),
        };
        if is_silent {
            self.silent.insert(token);
        }
        let (lanes, lane, retry_at, remove_at) = (BTreeSet::new(), None, None, None);
        let attached = Attached { transport, dialed, lanes, lane, retry_at, remove_at };
        self.all.insert(token, attached);
    }

    pub fn get_mut(&mut self, token: u64) -> Option<&mut Attached> {
        self.all.get_mut(&token)
    }

    pub fn iter(&self) -> impl Iterator<Item = &dyn Transport> {
        self.all.values().map(|attached| &*attached.transport)
    }

    /// Tells transports of what the poller has found, and puts those that are to be asked for what
    /// has come into `due`, in order.
    pub fn take_due(&mut self, ready: &[Event], due: &mut Vec<u64>) {
        due.clear();
        due.extend(&self.silent);
        if !self.more.is_empty() {
            due.extend(std::mem::take(&mut self.more));
        }
        for event in ready {
            let token = key_of(event);
            if let Some(attached) = self.all.get_mut(&token) {
                attached.transport.handle_ready(*event);
                due.push(token);
            }
        }
        if due.len() > 1 {
            due.sort_unstable();
            due.dedup();
        }
    }

    /// Receiving has stopped at its bound.
    pub fn note_more(&mut self, token: u64) {
        self.more.insert(token);
    }

    /// Which reaches a remote: the one that was dialed to it, else that by which it has come in,
    /// else the first that listens at an address of its family.
    pub fn reaching(&mut self, local: Option<ListenerId>, remote: Address) -> Option<u64> {
        if let Some((from, to, token)) = self.last
            && (from, to) == (local, remote)
        {
            return Some(token);
        }
        let token = self.find(local, remote)?;
        self.last = Some((local, remote, token));
        Some(token)
    }

    fn find(&self, local: Option<ListenerId>, remote: Address) -> Option<u64> {
        // One whose peer is gone lingers, and another may have been dialed since.
        let dialed = || self.dialed_to(remote);
        let stays = |token: &u64| self.all.get(token).is_some_and(|it| it.remove_at.is_none());
        let dialed = dialed().find(stays).or_else(|| dialed().next());
        // A further path to a peer that was dialed goes by the transport of the first.
        let came = local.map(|ListenerId(token)| token).filter(|it| self.all.contains_key(it));
        dialed.or(came).or_else(|| self.listening_for(remote))
    }

    /// Who comes in by two addresses of one family is known by where.
    fn listening_for(&self, remote: Address) -> Option<u64> {
        let suits = |token: &&u64| {
            let addrs = self.all.get(token).map(|it| it.transport.local_addrs());
            addrs.unwrap_or_default().iter().any(|it| it.is_like(&remote))
        };
        let first = || self.listening.first();
        self.listening.iter().find(suits).or_else(first).copied()
    }

    fn dialed_to(&self, remote: Address) -> impl Iterator<Item = u64> {
        self.dialed.range((remote, 0)..=(remote, u64::MAX)).map(|(_, token)| *token)
    }

    /// Keeps what one has not taken, to be tried again at `retry_at` or when it has room.
    pub fn keep(&mut self, token: u64, waiting: Waiting, retry_at: Time) {
        if let Some(attached) = self.all.get_mut(&token) {
            attached.retry_at = Some(retry_at);
            self.full.insert(token, waiting);
        }
    }

    /// Whether any has not taken something.
    pub fn is_any_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// One has room again: what it has not taken need not wait.
    pub fn note_room(&mut self, token: u64) {
        if let Some(attached) = self.all.get_mut(&token) {
            attached.retry_at = None;
        }
    }

    /// What was not taken and is due again, with whom it waits for.
    pub fn take_retries(&mut self, now: Time) -> Vec<(u64, Waiting)> {
        let all = &self.all;
        let is_due = |token: &u64| {
            let at = all.get(token).and_then(|it| it.retry_at);
            at.is_none_or(|at| at <= now)
        };
        let due: Vec<u64> = self.full.keys().copied().filter(is_due).collect();
        due.into_iter().filter_map(|token| Some((token, self.full.remove(&token)?))).collect()
    }

    /// The lane of data to a remote is no longer needed; what was dialed to it goes at `at`.
    pub fn close_data(&mut self, remote: Address, at: Time) {
        self.last = None;
        for attached in self.all.values_mut() {
            if attached.close_lane(remote) {
                attached.transport.close_data(remote);
            }
        }
        let dialed: Vec<u64> = self.dialed_to(remote).collect();
        for token in dialed {
            let Some(attached) = self.all.get_mut(&token) else { continue };
            let before = attached.remove_at.replace(at);
            before.map(|before| self.leaving.remove(&(before, token)));
            self.leaving.insert((at, token));
        }
    }

    /// The next of those whose time to go has come, with what it has not taken.
    pub fn take_over(&mut self, now: Time) -> Option<(Attached, Option<Waiting>)> {
        let &(at, token) = self.leaving.first().filter(|(at, _)| *at <= now)?;
        self.leaving.remove(&(at, token));
        self.last = None;
        let attached = self.all.remove(&token)?;
        attached.dialed.map(|remote| self.dialed.remove(&(remote, token)));
        self.silent.remove(&token);
        self.more.remove(&token);
        Some((attached, self.full.remove(&token)))
    }

    /// When the first that has not taken something is tried again: at once where it has room.
    pub fn retry_at(&self) -> Option<Time> {
        let at = |token: &u64| Some(self.all.get(token)?.retry_at.unwrap_or(Time::ZERO));
        self.full.keys().filter_map(at).min()
    }

    /// When something of them is due.
    pub fn next_deadline(&self) -> Option<Time> {
        earlier(self.retry_at(), self.leaving.first().map(|(at, _)| *at))
    }
}
