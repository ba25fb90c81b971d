//! What the sessions carry: one flow to each participant, whose source has nothing to send or sends
//! at a steady pace, in turns with the others.

use crate::exit::{Exit, Failure};
use dacapo::Plan;
use dacapo::Time;
use dacapo::offer::FlowOffer;
use dacapo::plan::Assumptions;
use dacapo::port::{
    JoinRequest, Port, SessionProvider, SessionSpec, Sink, Source, SourcePoll, Taken, UnitView,
    UnitWriter,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The name of the session.
pub const NAME: &str = "bench-scale";

/// The session as it is served.
pub fn spec() -> Result<SessionSpec, Failure> {
    let text = format!(
        "[session]\nname = \"{NAME}\"\n[[flow]]\nname = \"idle\"\nfrom = \"creator\"\n\
         source = {{ raw = true }}\nunit_max = \"1 KiB\"\ntransport = \"udp\"\n\
         graph = [\"segment\", \"sequence\"]\n"
    );
    let assumptions = Assumptions { on_loopback: true, ..Assumptions::default() };
    let plan = Plan::parse(&text, "bench-scale", &assumptions);
    let plan =
        plan.map_err(|errors| Failure::new(Exit::Invalid, "bench scale: its session", errors))?;
    Ok(SessionSpec { participants_max: usize::MAX, ..plan.spec() })
}

/// Bytes of a unit.
const UNIT_LEN: usize = 1_000;

/// Who opens the sources of so many sessions, which send so much each second together.
pub fn provider(per_s: Option<u32>, sessions: u32) -> Box<dyn SessionProvider> {
    let Some(per_s) = per_s else { return Box::new(Idle) };
    let turn = Duration::from_secs(1) / per_s;
    Box::new(Turns { turn, sessions, opened: 0 })
}

struct Turns {
    turn: Duration,
    sessions: u32,
    opened: u32,
}

impl SessionProvider for Turns {
    fn open(&mut self, _: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        let before = self.turn * (self.opened % self.sessions);
        self.opened += 1;
        Ok(Port::Source(Box::new(Paced { before, every: self.turn * self.sessions, due: None })))
    }
}

/// A unit at each of equal steps, which begins with when it was due.
struct Paced {
    before: Duration,
    every: Duration,
    due: Option<Time>,
}

impl Source for Paced {
    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        let due = *self.due.get_or_insert(now + self.before);
        if now < due {
            return SourcePoll::Wait(due);
        }
        if unit.begin(UNIT_LEN).is_err() {
            return SourcePoll::Blocked;
        }
        let mut bytes = [0; UNIT_LEN];
        bytes[..8].copy_from_slice(&due.as_nanos().to_le_bytes());
        unit.write(&bytes);
        self.due = Some(due + self.every);
        SourcePoll::Unit
    }
}

/// A sink that keeps how long after it was due each unit came, in microseconds.
#[derive(Clone, Default)]
pub struct Arrivals(Arc<Mutex<Vec<f64>>>);

impl Arrivals {
    /// All since the last call.
    pub fn take(&self) -> Vec<f64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sink for Arrivals {
    fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken {
        let due = unit.pieces().next().and_then(|piece| piece.first_chunk::<8>());
        if let Some(due) = due.map(|bytes| Time::from_nanos(u64::from_le_bytes(*bytes))) {
            let us = now.since(due).as_nanos() as f64 / 1_000.0;
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(us);
        }
        Taken::Delivered
    }
}

/// A source that has nothing, and who opens it.
struct Idle;

impl Source for Idle {
    fn poll_unit(&mut self, _: Time, _: &mut UnitWriter<'_>) -> SourcePoll {
        SourcePoll::Idle
    }
}

impl SessionProvider for Idle {
    fn open(&mut self, _: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        Ok(Port::Source(Box::new(Self)))
    }
}
