//! [`Reconsider`]: what decides, while a flow runs, whether it goes on by another protocol.
//!
//! ```text
//!   each second, while the flow runs:  FlowInfo, Measured -> reconsider -> Change -> PREPARE …
//!                                                               Event::Changed, ChangeFailed
//! ```
//!
//! [`FlowSender::reconsider`](super::FlowSender::reconsider) begins it.
//!
//! Invariants: it is asked at most once a second, and not while contact is lost, the session
//! pauses, or a change is going on; what it says is begun like any change, and refused like any.

use super::account::Measured;
use super::change::Change;
use super::flow::FlowInfo;
use dacapo_base::{Time, panic};
use dacapo_core::{Code, Error, SessionId};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How often a flow is reconsidered.
pub const RECONSIDER_EVERY: Duration = Duration::from_secs(1);

/// Decides whether a flow goes on by another protocol. A closure of these arguments is one.
pub trait Reconsider: Send {
    /// What the flow is to be changed to, of which `flow` says what was agreed at set-up and
    /// `seen` what was measured until now; `None`: it goes on as it is. It is called with the
    /// endpoint locked: it must not call that, and must not take long.
    fn reconsider(&mut self, flow: &FlowInfo, seen: &Measured) -> Option<Change>;
}

impl<F: FnMut(&FlowInfo, &Measured) -> Option<Change> + Send> Reconsider for F {
    fn reconsider(&mut self, flow: &FlowInfo, seen: &Measured) -> Option<Change> {
        self(flow, seen)
    }
}

/// A flow that is reconsidered.
struct Reconsidered {
    next: Time,
    how: Box<dyn Reconsider>,
}

/// How a flow is, of which somebody asks.
pub(super) enum Look {
    /// Its session is over.
    Over,
    /// It does not run now.
    Paused,
    /// What was agreed, and what was measured.
    Runs(Box<(FlowInfo, Measured)>),
}

/// A flow of a session, by its place.
pub(super) type At = (SessionId, usize);

/// Those that are reconsidered.
#[derive(Default)]
pub(super) struct AllReconsidered(BTreeMap<At, Reconsidered>);

impl AllReconsidered {
    /// One is asked from now on.
    pub fn insert(&mut self, now: Time, at: At, how: Box<dyn Reconsider>) {
        self.0.insert(at, Reconsidered { next: now + RECONSIDER_EVERY, how });
    }

    /// When the first is asked.
    pub fn due(&self) -> Time {
        self.0.values().map(|it| it.next).min().unwrap_or(Time::NEVER)
    }

    /// Asks those that are due: what they say, and which have panicked, and are gone.
    pub fn ask(
        &mut self,
        now: Time,
        mut look: impl FnMut(At) -> Look,
    ) -> Vec<(At, Result<Change, Error>)> {
        let mut said = Vec::new();
        self.0.retain(|at, it| {
            if it.next > now {
                return true;
            }
            it.next = now + RECONSIDER_EVERY;
            let seen = match look(*at) {
                Look::Over => return false,
                Look::Paused => return true,
                Look::Runs(seen) => seen,
            };
            let asked = AssertUnwindSafe(|| it.how.reconsider(&seen.0, &seen.1));
            let (outcome, stays) = match catch_unwind(asked) {
                Ok(change) => (change.map(Ok), true),
                Err(why) => (Some(Err(panicked(panic::said(&*why)))), false),
            };
            said.extend(outcome.map(|outcome| (*at, outcome)));
            stays
        });
        said
    }
}

fn panicked(said: &str) -> Error {
    let text = format!("what reconsiders the flow panicked, and is asked no more: {said}");
    Error::new(Code::AccessFailed, text)
}
