//! [`Worker`]: a reactor of an endpoint, with its state and its thread; and [`Workers`], all of
//! them.
//!
//! ```text
//!   a peer --> where it is                                 all flows of a peer are at one
//!          \-> the first, while that is not full
//!          \-> the further one that works least, while that is not full
//!          \-> one more, up to `HostConfig::reactors_max`
//!          \-> the one that works least
//! ```
//!
//! Invariants: there is one as long as none is full; one that is there stays as long as the
//! endpoint; here no lock of one is taken under that of another.

use super::background;
use super::driver::{Counters, Driver, Guard, Shared};
use super::state::State;
use super::waiting::{Wait, Waiting};
use super::wanted::Wanted;
use super::watch::Notice;
use crate::host::{Host, HostConfig};
use dacapo_base::{Address, Time, failpoint};
use dacapo_core::{Code, DialParams, Error, PeerId};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// One reactor, and who drives it.
pub(super) struct Worker {
    pub shared: Arc<Shared>,
    background: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    /// The one at this place among those of its endpoint.
    ///
    /// # Errors
    /// [`Code::System`] when there is no descriptor or thread left.
    pub fn new(host: Host, notice: Arc<Notice>, place: usize) -> Result<Self, Error> {
        let (driver, host, background) = Driver::of(host, notice)?;
        let shared = Arc::new(Shared::new(State::new(host, driver, place)));
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("dacapo".to_owned());
        let thread = thread.spawn(move || background::run(&its, background));
        let thread = thread.map_err(|error| Error::new(Code::System, error.to_string()))?;
        shared.background.is_at(thread.thread());
        Ok(Self { shared, background: Mutex::new(Some(thread)) })
    }

    /// One with the same identity, and told the same, for this place.
    fn another(&self, place: usize) -> Result<Self, Error> {
        let host = self.shared.lock().host.another()?;
        Self::new(host, Arc::clone(&self.shared.background.notice), place)
    }

    /// The peer at an address, open, for as long as the state stays locked.
    ///
    /// # Errors
    /// Why it cannot be reached.
    pub fn dial(&self, remote: Address, params: DialParams) -> Result<(Guard<'_>, PeerId), Error> {
        let mut state = self.shared.lock();
        let id = state.dial(remote, params)?;
        self.shared.act(&mut state);
        let answers = Wanted::Peer(id);
        let (mut state, outcome) = self.shared.wait(state, Time::NEVER, Wait::default(), &answers);
        state.peers.dialed(id)?;
        outcome.map(|_| (state, id))
    }

    /// In a fork: what has sockets and a thread is the parent's. It is not even freed here.
    fn leave_to_parent(&mut self) {
        mem::forget(Arc::clone(&self.shared));
        let thread = self.background.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        mem::forget(thread);
    }

    fn busy_permille(&self) -> u16 {
        self.load().0
    }

    /// Which share of its time it works, and what its host was told.
    fn load(&self) -> (u16, HostConfig) {
        let mut state = self.shared.lock();
        let config = *state.host.config();
        (state.host.reactor().busy_permille(), config)
    }

    /// The peers that it has a connection to.
    pub fn peer_count(&self) -> usize {
        self.shared.lock().peers.open_count()
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let background_looks = self.shared.background.looks();
        let mut state = self.shared.lock();
        let reactor = state.host.reactor();
        let (turns, busy_permille) = (reactor.counters().turns, reactor.busy_permille());
        Counters { reactors: 1, turns, background_looks, busy_permille, ..state.driver.counters() }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.shared.is_here() {
            return self.leave_to_parent();
        }
        let mut state = self.shared.lock();
        failpoint!("endpoint.stop");
        state.leave();
        self.shared.background.stop();
        drop(state);
        let thread = self.background.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // It has at most one turn to make; a panic of it has been printed.
        let _ = thread.map(JoinHandle::join);
    }
}

/// The further ones of an endpoint, in the order in which they were made.
#[derive(Default)]
pub(super) struct Workers(Mutex<Vec<Arc<Worker>>>);

impl Workers {
    /// All, with the first before them; in a fork that alone, which says why.
    pub fn with(&self, first: &Arc<Worker>) -> Vec<Arc<Worker>> {
        if !first.shared.is_here() {
            return vec![Arc::clone(first)];
        }
        std::iter::once(first).chain(self.lock().iter()).cloned().collect()
    }

    /// Where a peer is, or is to be.
    ///
    /// # Errors
    /// Misuse when the first listens at that address itself, and in a fork.
    pub fn place(&self, first: &Arc<Worker>, remote: Address) -> Result<Arc<Worker>, Error> {
        first.shared.check_here()?;
        first.shared.lock().check_other(remote)?;
        let all = self.with(first);
        let its = all.into_iter().find(|worker| worker.shared.lock().peers.knows(remote));
        Ok(its.or_else(|| self.spare(first)).unwrap_or_else(|| Arc::clone(first)))
    }

    /// Where a new peer is best, when that is not the first: of the further ones that which works
    /// least, or, when all are full, one more. Where none can be made, one that is there must do.
    pub fn spare(&self, first: &Worker) -> Option<Arc<Worker>> {
        let (load, config) = first.load();
        if load < config.full_permille {
            return None;
        }
        let mut further = self.lock();
        let loads = further.iter().map(|worker| (worker.busy_permille(), worker));
        let least = loads.min_by_key(|(load, _)| *load);
        let is_free = least.is_some_and(|(load, _)| load < config.full_permille);
        if !is_free
            && further.len() + 1 < config.reactors_max.get()
            && let Ok(worker) = first.another(further.len() + 1)
        {
            let worker = Arc::new(worker);
            further.push(Arc::clone(&worker));
            return Some(worker);
        }
        least.filter(|(its, _)| *its <= load).map(|(_, worker)| Arc::clone(worker))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Worker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
