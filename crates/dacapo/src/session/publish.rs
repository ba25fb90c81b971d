//! [`Door`]: where those come in who join a session that is served.
//!
//! ```text
//!   core: JOIN -> Gate (a Publisher) -> the plan's publisher
//!                   | who, from where, ends of its flows of bytes
//!                   v
//!                 Door --take_joined, after the turn--> State
//! ```
//!
//! What it is not: the sessions; the core has not set them up yet.
//!
//! Invariants: at most [`BACKLOG_MAX`] sessions wait to be accepted before further ones are
//! refused; the ends of one participant never reach the session of another.

use super::creator::BACKLOG_MAX;
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
    /// The flows that are to be opened before it is let in.
    closed: usize,
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
        Box::new(Gate { plan: plan.publisher_with(1.0, on_raw), door: self.clone() })
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
        if let Some(joined) = self.door.hall().joined.last_mut() {
            joined.closed = joined.closed.saturating_sub(1);
        }
        Ok(port)
    }
}
