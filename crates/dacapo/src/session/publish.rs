//! [`JoinQueue`]: where those come in who join a session that is served.
//!
//! ```text
//!   core: JOIN -> Acceptor (a SessionProvider) -> the plan's publisher
//!                   | who, from where, ends of its flows of bytes
//!                   v
//!                 JoinQueue --take_joined, after the turn--> State
//! ```
//!
//! Of a flow that is sent once for several, the first who comes gets the end, and each who comes
//! while it runs a further end of the same queue.
//!
//! Invariants: at most [`BACKLOG_MAX`] sessions wait to be accepted before further ones are
//! refused; the ends of one participant never reach the session of another; of each offer only the
//! queue that was opened last is remembered, and none that is gone.

use super::creator::BACKLOG_MAX;
use super::worker::Worker;
use crate::access::raw::RawShare;
use crate::plan::{OnRaw, Plan, RawEnd};
use dacapo_base::{Address, failpoint};
use dacapo_core::{Code, Error, JoinRequest, Port, SessionId, SessionProvider};
use dacapo_lift::Catalogue;
use dacapo_wire::session::FlowOffer;
use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who has joined, with the application's ends of its flows of bytes.
#[derive(Debug)]
pub(super) struct Joined {
    pub remote: Address,
    pub ends: Vec<(String, RawEnd)>,
    /// The flows that are to be opened or shared before it is let in.
    closed: usize,
}

impl Joined {
    /// One of its flows is there.
    fn has_got_one(&mut self) {
        self.closed = self.closed.saturating_sub(1);
    }

    /// What finds the queue of the flow with this name again, if it is fed by this end.
    fn share(&self, flow: &str) -> Option<RawShare> {
        self.ends.iter().find_map(|(name, end)| match end {
            RawEnd::Sender(sender) if name == flow => Some(sender.share()),
            _ => None,
        })
    }
}

#[derive(Default)]
struct Waiting {
    joined: Vec<Joined>,
    /// Sessions that wait to be accepted where they are served first.
    backlog_len: usize,
    /// Those that wait where it is served besides.
    of_shards: VecDeque<(Arc<Worker>, SessionId)>,
    /// Where those are sent who join.
    redirect: Option<NonZeroU16>,
}

/// Where those come in who join; copies share it.
#[derive(Clone, Default)]
pub(super) struct JoinQueue(Arc<Mutex<Waiting>>);

impl JoinQueue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The publisher of a plan; who joins comes in by this queue and waits at `main`.
    pub fn publisher(&self, plan: &Plan, main: &Self) -> Box<dyn SessionProvider> {
        let join_queue = self.clone();
        let on_raw: OnRaw = Box::new(move |name, end| {
            if let Some(joined) = join_queue.lock().joined.last_mut() {
                joined.ends.push((name.to_owned(), end));
            }
        });
        self.accepting(plan.publisher_with(1.0, on_raw), plan.catalogue(), main)
    }

    /// A provider with a list of who comes, who come in by this queue and wait at `main`.
    pub fn accepting(
        &self,
        provider: Box<dyn SessionProvider>,
        catalogue: Catalogue,
        main: &Self,
    ) -> Box<dyn SessionProvider> {
        let (join_queue, main, shared) = (self.clone(), main.clone(), Vec::new());
        Box::new(Acceptor { provider, catalogue, join_queue, main, shared })
    }

    /// Those who have joined since the last call and have got all of their flows, in order.
    pub fn take_joined(&self) -> Vec<Joined> {
        let mut joined = std::mem::take(&mut self.lock().joined);
        joined.retain(|joined| joined.closed == 0 && joined.ends.iter().all(|(_, end)| lives(end)));
        joined
    }

    /// So many sessions wait to be accepted.
    pub fn set_backlog(&self, len: usize) {
        self.lock().backlog_len = len;
    }

    /// Those who can go there are sent to this port of the host from now on.
    pub fn send_to(&self, port: Option<NonZeroU16>) {
        self.lock().redirect = port;
    }

    /// A session that is served besides waits to be accepted.
    pub fn push_of_shard(&self, worker: Arc<Worker>, id: SessionId) {
        self.lock().of_shards.push_back((worker, id));
    }

    /// The first of these, which waits no longer.
    pub fn pop_of_shard(&self) -> Option<(Arc<Worker>, SessionId)> {
        self.lock().of_shards.pop_front()
    }

    /// Whether there is one.
    pub fn has_of_shard(&self) -> bool {
        !self.lock().of_shards.is_empty()
    }

    fn waiting(&self) -> usize {
        let waiting = self.lock();
        waiting.backlog_len + waiting.of_shards.len()
    }
}

/// Whether the core still has the other end.
fn lives(end: &RawEnd) -> bool {
    match end {
        RawEnd::Sender(sender) => sender.is_open(),
        RawEnd::Receiver(receiver) => !receiver.is_finished(),
    }
}

/// A provider with a list of who comes.
struct Acceptor {
    provider: Box<dyn SessionProvider>,
    catalogue: Catalogue,
    join_queue: JoinQueue,
    /// Where sessions wait to be accepted.
    main: JoinQueue,
    /// The queues of flows that several are sent, by what was offered.
    shared: Vec<(FlowOffer, RawShare)>,
}

impl SessionProvider for Acceptor {
    fn redirect(&mut self, _joining: &JoinRequest) -> Option<NonZeroU16> {
        self.join_queue.lock().redirect
    }

    fn offer(
        &mut self,
        joining: &JoinRequest,
        flows: &[FlowOffer],
    ) -> Result<Vec<FlowOffer>, Error> {
        if self.main.waiting() >= BACKLOG_MAX {
            let text = format!("sessions that \"{}\" has not accepted; try again", joining.name);
            return Err(Error::new(Code::TooMany, text));
        }
        let flows = self.provider.offer(joining, flows)?;
        let joined = Joined { remote: joining.remote, ends: Vec::new(), closed: flows.len() };
        self.join_queue.lock().joined.push(joined);
        failpoint!("endpoint.joining");
        Ok(flows)
    }

    fn open(&mut self, flow: &FlowOffer, joining: &JoinRequest) -> Result<Port, String> {
        let port = self.provider.open(flow, joining)?;
        let mut waiting = self.join_queue.lock();
        let Some(joined) = waiting.joined.last_mut() else { return Ok(port) };
        joined.has_got_one();
        let transport = self.catalogue.transport(flow.transport);
        if let (true, Some(share)) =
            (transport.is_some_and(|it| it.groups), joined.share(&flow.name))
        {
            self.shared.retain(|(offer, share)| !share.is_gone() && offer != flow);
            self.shared.push((flow.clone(), share));
        }
        Ok(port)
    }

    fn share(&mut self, flow: &FlowOffer, _joining: &JoinRequest) {
        let mut waiting = self.join_queue.lock();
        let Some(joined) = waiting.joined.last_mut() else { return };
        joined.has_got_one();
        let found = self.shared.iter().find(|(offer, _)| offer == flow);
        let sender = found.and_then(|(_, share)| share.sender());
        joined.ends.extend(sender.map(|sender| (flow.name.clone(), RawEnd::Sender(sender))));
    }
}
