//! [`Door`]: where those come in who join a session that is served.
//!
//! ```text
//!   core: JOIN -> Gate (a Publisher) -> the plan's publisher
//!                   | who, from where, ends of its flows of bytes
//!                   v
//!                 Door --take_joined, after the turn--> State
//! ```
//!
//! Of a flow that is sent once for several, the first who comes gets the end, and each who comes
//! while it runs a further end of the same queue.
//!
//! What it is not: the sessions; the core has not set them up yet.
//!
//! Invariants: at most [`BACKLOG_MAX`] sessions wait to be accepted before further ones are
//! refused; the ends of one participant never reach the session of another; of each offer only the
//! queue that was opened last is remembered, and none that is gone.

use super::creator::BACKLOG_MAX;
use crate::access::raw::RawShare;
use crate::plan::{OnRaw, Plan, RawEnd};
use dacapo_base::failpoint;
use dacapo_core::{Code, Error, Joining, Port, Publisher};
use dacapo_wire::session::FlowOffer;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who has joined, with the application's ends of its flows of bytes.
#[derive(Debug)]
pub(super) struct Joined {
    pub remote: SocketAddr,
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

#[derive(Debug, Default)]
struct Hall {
    joined: Vec<Joined>,
    /// Sessions that wait to be accepted.
    backlog_len: usize,
}

/// Where those come in who join; copies share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Door(Arc<Mutex<Hall>>);

impl Door {
    fn hall(&self) -> MutexGuard<'_, Hall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The publisher of a plan; who joins comes in by this door.
    pub fn publisher(&self, plan: &Plan) -> Box<dyn Publisher> {
        let door = self.clone();
        let on_raw: OnRaw = Box::new(move |name, end| {
            if let Some(joined) = door.hall().joined.last_mut() {
                joined.ends.push((name.to_owned(), end));
            }
        });
        let plan = plan.publisher_with(1.0, on_raw);
        Box::new(Gate { plan, door: self.clone(), shared: Vec::new() })
    }

    /// Those who have joined since the last call and have got all of their flows, in order.
    pub fn take_joined(&self) -> Vec<Joined> {
        let mut joined = std::mem::take(&mut self.hall().joined);
        joined.retain(|joined| joined.closed == 0 && joined.ends.iter().all(|(_, end)| lives(end)));
        joined
    }

    /// So many sessions wait to be accepted.
    pub fn set_backlog(&self, len: usize) {
        self.hall().backlog_len = len;
    }
}

/// Whether the core still has the other end.
fn lives(end: &RawEnd) -> bool {
    match end {
        RawEnd::Sender(sender) => sender.is_open(),
        RawEnd::Receiver(receiver) => !receiver.is_finished(),
    }
}

/// The publisher of a plan, with a list of who comes.
struct Gate {
    plan: Box<dyn Publisher>,
    door: Door,
    /// The queues of flows that several are sent, by what was offered.
    shared: Vec<(FlowOffer, RawShare)>,
}

impl Publisher for Gate {
    fn offer(&mut self, joining: &Joining, flows: &[FlowOffer]) -> Result<Vec<FlowOffer>, Error> {
        if self.door.hall().backlog_len >= BACKLOG_MAX {
            let text = format!("sessions that \"{}\" has not accepted; try again", joining.name);
            return Err(Error::new(Code::TooMany, text));
        }
        let flows = self.plan.offer(joining, flows)?;
        let joined = Joined { remote: joining.remote, ends: Vec::new(), closed: flows.len() };
        self.door.hall().joined.push(joined);
        failpoint!("endpoint.joining");
        Ok(flows)
    }

    fn open(&mut self, flow: &FlowOffer, joining: &Joining) -> Result<Port, String> {
        let port = self.plan.open(flow, joining)?;
        let mut hall = self.door.hall();
        let Some(joined) = hall.joined.last_mut() else { return Ok(port) };
        joined.has_got_one();
        let transport = crate::catalogue().transport(flow.transport);
        if let (true, Some(share)) =
            (transport.is_some_and(|it| it.groups), joined.share(&flow.name))
        {
            self.shared.retain(|(offer, share)| !share.is_gone() && offer != flow);
            self.shared.push((flow.clone(), share));
        }
        Ok(port)
    }

    fn share(&mut self, flow: &FlowOffer, _joining: &Joining) {
        let mut hall = self.door.hall();
        let Some(joined) = hall.joined.last_mut() else { return };
        joined.has_got_one();
        let found = self.shared.iter().find(|(offer, _)| offer == flow);
        let sender = found.and_then(|(_, share)| share.sender());
        joined.ends.extend(sender.map(|sender| (flow.name.clone(), RawEnd::Sender(sender))));
    }
}
