//! [`Shards`]: the further reactors at which a session is served, besides the first.
//!
//! ```text
//!   accept: the first is full? -> a further one listens at a port of its own, and serves it too
//!   JOIN at the first          -> REFUSE "at that port", if the peer follows
//!   JOIN there                 -> its session waits with those of the first to be accepted
//! ```
//!
//! Invariants: who has locked a shard may lock the first, to tell it, and nobody who has locked
//! the first locks a shard; a shard serves as long as the creator lives.

use super::creator::stop_serving;
use super::driver::Shared;
use super::publish::JoinQueue;
use super::state::Serving;
use super::waiting::Waiting;
use super::worker::Worker;
use crate::host::Host;
use crate::plan::Plan;
use dacapo_base::Address;
use dacapo_core::{Code, Error, SessionId};
use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What a shard hangs on: where its sessions wait to be accepted.
pub(super) struct ShardOrigin {
    join_queue: JoinQueue,
    first: Weak<Shared>,
    /// The shard itself.
    worker: Weak<Worker>,
}

impl ShardOrigin {
    /// Hands a session of the shard over, which is set up; false when nobody is left who would
    /// accept it.
    pub fn hand_over(&self, id: SessionId) -> bool {
        // The thread of a shard never has the last handle of it: this one goes to the queue.
        let Some(first) = self.first.upgrade() else { return false };
        let Some(worker) = self.worker.upgrade() else { return false };
        first.tell(|| self.join_queue.push_of_shard(worker, id));
        true
    }
}

/// One of them, and the port at which it listens.
type Shard = (Arc<Worker>, NonZeroU16);

/// Where else a session is served.
pub(super) struct Shards {
    plan: Plan,
    join_queue: JoinQueue,
    open: Mutex<Vec<Shard>>,
}

impl Shards {
    /// None yet; those who wait there are to be found at `join_queue`.
    pub fn new(plan: &Plan, join_queue: &JoinQueue) -> Self {
        Self { plan: plan.clone(), join_queue: join_queue.clone(), open: Mutex::default() }
    }

    /// The port at which who joins now is served best, when it is not at the first. Nobody has
    /// locked a state.
    pub fn port_on(&self, first: &Arc<Worker>, worker: &Arc<Worker>) -> Result<NonZeroU16, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, port)) = open.iter().find(|(its, _)| Arc::ptr_eq(its, worker)) {
            return Ok(*port);
        }
        let port = self.open(first, worker)?;
        open.push((Arc::clone(worker), port));
        Ok(port)
    }

    /// Whether it may be served by several.
    pub fn may_be(&self) -> bool {
        !self.plan.is_for_one_reactor()
    }

    fn open(&self, first: &Arc<Worker>, worker: &Arc<Worker>) -> Result<NonZeroU16, Error> {
        let addresses = addresses(&first.shared);
        let mut state = worker.shared.lock();
        let port = listen(&mut state.host, &addresses)?;
        let join_queue = JoinQueue::default();
        let publisher = join_queue.publisher(&self.plan, &self.join_queue);
        state.core().publish(self.plan.spec(), publisher)?;
        let origin = ShardOrigin {
            join_queue: self.join_queue.clone(),
            first: Arc::downgrade(&first.shared),
            worker: Arc::downgrade(worker),
        };
        let title = self.plan.title().to_owned();
        let serving = Serving { title, join_queue, backlog: VecDeque::new(), origin: Some(origin) };
        state.serving.insert(self.plan.name().to_owned(), serving);
        worker.shared.act(&mut state);
        Ok(port)
    }

    /// It is served no longer: nobody can join, and who was not accepted is let go.
    pub fn close(&self) {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        for (worker, _) in &open {
            stop_serving(&worker.shared, self.plan.name());
        }
        while let Some((worker, id)) = self.join_queue.pop_of_shard() {
            let mut state = worker.shared.lock();
            state.turn_away(id);
            worker.shared.act(&mut state);
        }
    }
}

/// The addresses at which an endpoint listens, each once, whatever their ports.
fn addresses(first: &Shared) -> Vec<Address> {
    let state = first.lock();
    let mut all: Vec<Address> = portless(&state.host).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The addresses with ports at which a host listens, without these: at others only one can listen.
fn portless(host: &Host) -> impl Iterator<Item = Address> {
    host.listening().iter().filter(|at| at.port().is_some()).map(|at| at.at_port(0))
}

/// Listens at these addresses, at one port, unless it does; the port.
fn listen(host: &mut Host, addresses: &[Address]) -> Result<NonZeroU16, Error> {
    let port_of = |host: &Host| host.listening().first().and_then(Address::port).unwrap_or(0);
    let mut port = port_of(host);
    for address in addresses {
        if portless(host).all(|at| at != *address) {
            host.listen(&[address.at_port(port)])?;
            port = port_of(host);
        }
    }
    NonZeroU16::new(port).ok_or_else(|| Error::new(Code::System, "no address to listen at"))
}
