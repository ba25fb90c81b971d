//! For programs with a loop of their own: [`Endpoint::turn`], one descriptor for all that waits,
//! commands as data, events and units without waiting.
//!
//! ```text
//!   your loop:  wait for as_fd -> turn(Deadline::PAST) -> poll_event, poll_unit, try_send
//!               command(…) -> Ticket … … … … … … … … … -> Event::Done { ticket, outcome }
//! ```
//!
//! The endpoint's own threads keep the protocols going meanwhile. The descriptor is readable while
//! an event or a unit waits, a flow has room again for what [`FlowSender::try_send`] could not
//! take, or somebody waits to be accepted.
//!
//! Invariants: a turn makes its round before it looks at the time; no two workers are locked at
//! once.
//!
//! [`FlowSender::try_send`]: super::FlowSender::try_send

use super::asked::{Change, begin_change, begin_command};
use super::deadline::Deadline;
use super::driver::Guard;
use super::endpoint::Endpoint;
use super::ends::UnitView;
use super::entry::Phase;
use super::event::{Event, Outcome};
use super::flow::{Direction, End, Flow};
use super::ids::{FlowId, SessionId, Ticket};
use super::misuse;
use super::state::{State, has_guest};
use super::waiting::Waiting;
use super::watch::{Awaited, DRAIN_MAX};
use super::worker::Worker;
use crate::command::MediaCommand;
use dacapo_base::Time;
use dacapo_core::table::Role;
use dacapo_core::{self as core, Error};
use dacapo_sys::clock;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// What an endpoint is asked to do with one of its sessions, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Lets the flows run, as [`Session::activate`](super::Session::activate).
    Activate(SessionId),
    /// Lets the flows pause, as [`Session::deactivate`](super::Session::deactivate).
    Deactivate(SessionId),
    /// Ends a flow that this end sends, as [`FlowSender::finish`](super::FlowSender::finish).
    Finish(FlowId),
    /// Changes a flow that this end sends, as [`Session::change`](super::Session::change).
    Change(FlowId, Change),
    /// Tells the media at the other end, as [`Session::command`](super::Session::command).
    Media(SessionId, MediaCommand),
    /// How long contact may be lost, as [`Session::set_give_up`](super::Session::set_give_up).
    GiveUp(SessionId, Duration),
    /// Closes the session, as [`Session::close`](super::Session::close).
    Close(SessionId),
}

impl Command {
    fn session(&self) -> SessionId {
        match self {
            Self::Activate(id)
            | Self::Deactivate(id)
            | Self::Media(id, _)
            | Self::GiveUp(id, _)
            | Self::Close(id) => *id,
            Self::Finish(flow) | Self::Change(flow, _) => flow.session,
        }
    }
}

/// What there is after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turned {
    /// An event, a unit, room or a guest waits; else the time was over.
    pub is_ready: bool,
}

impl Endpoint {
    /// Does what is to be done now, and waits until something is there for the application, or
    /// until then.
    ///
    /// # Errors
    /// What the system says.
    pub fn turn(&mut self, until: Deadline) -> io::Result<Turned> {
        self.watch();
        loop {
            let is_ready = self.round(true);
            let left = until.left();
            if is_ready || left.is_some_and(|left| left.is_zero()) {
                return Ok(Turned { is_ready });
            }
            self.0.notice.poller().wait(left, &mut Vec::new())?;
        }
    }

    /// Readable while something waits for the application: one descriptor for the whole endpoint,
    /// which is the same for its life. Turn with [`Deadline::PAST`] when it is.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch();
        self.0.notice.as_fd()
    }

    /// When something is due if nothing comes: the endpoint sees to that itself.
    #[must_use]
    pub fn next_deadline(&self) -> Deadline {
        let times = self.workers().into_iter().map(|it| it.shared.lock().next_deadline());
        times.min().unwrap_or(Time::NEVER).into()
    }

    /// The next event of any session of the endpoint, from the first call on, or that of
    /// [`Endpoint::as_fd`], [`Endpoint::turn`] or [`Endpoint::command`]. What
    /// [`Session::events`](super::Session::events) has given is not given again. Events that nobody
    /// reads are merged, as there.
    pub fn poll_event(&mut self) -> Option<(SessionId, Event)> {
        self.watch();
        for (worker, it) in self.workers().into_iter().enumerate() {
            let state = &mut *it.shared.lock();
            if let Some((id, event)) = state.watch.pop_done() {
                self.0.notice.closed(1);
                return Some((SessionId { worker, id }, event));
            }
            for (id, entry) in &mut state.sessions {
                if let Some(event) = entry.pop_event() {
                    return Some((SessionId { worker, id: *id }, event));
                }
            }
        }
        self.round(false);
        None
    }

    /// The next unit of a flow that this end receives, when one is there, lent until it is dropped.
    /// How a flow ends is an event.
    pub fn poll_unit(&mut self, flow: FlowId) -> Option<UnitView<'_>> {
        let workers = self.workers();
        let worker = workers.get(flow.session.worker)?;
        let mut state = worker.shared.lock();
        let entry = state.sessions.get(&flow.session.id).filter(|entry| !entry.is_closed);
        let its = entry.and_then(|entry| entry.flows.get(flow.flow));
        let taken = its.and_then(|flow| match &flow.end {
            End::Receiver(receiver) if flow.inbox.is_none() => {
                let unit = receiver.try_recv()?;
                Some((UnitView::lent(unit, flow.unit_memory()), flow.is_held_up()))
            }
            _ => None,
        });
        let Some((unit, is_held_up)) = taken else {
            drop(state);
            self.round(false);
            return None;
        };
        if is_held_up {
            state.go_on(flow.session.id, flow.flow);
        }
        Some(unit)
    }

    /// Begins what a command says; [`Event::Done`] with this ticket says what came of it. At most
    /// 1,024 are open: until that event was read.
    ///
    /// # Errors
    /// Misuse when there is no such session or flow, or it cannot be now; what is wrong with the
    /// command; [`TooMany`](dacapo_core::Code::TooMany).
    pub fn command(&mut self, command: Command) -> Result<Ticket, Error> {
        self.watch();
        let at = command.session();
        let workers = self.workers();
        let unknown = || misuse("this endpoint has no such session");
        let worker = workers.get(at.worker).ok_or_else(unknown)?;
        let mut state = worker.shared.lock();
        if !state.sessions.contains_key(&at.id) {
            return Err(unknown());
        }
        let ticket = self.0.notice.open()?;
        match begin(&mut state, command) {
            Ok(awaited) => {
                state.watch.await_it(ticket, at.id, awaited);
                worker.shared.act(&mut state);
                Ok(ticket)
            }
            Err(error) => {
                self.0.notice.closed(1);
                Err(error)
            }
        }
    }

    /// How many tickets are open.
    #[must_use]
    pub fn open_tickets(&self) -> u64 {
        self.0.notice.open_count()
    }

    /// From now on what waits for the application is looked for.
    fn watch(&self) {
        if self.0.notice.watch() {
            return;
        }
        for worker in self.workers() {
            let mut state = worker.shared.lock();
            for entry in state.sessions.values_mut() {
                entry.keep_events(true);
            }
            worker.shared.desert(&mut state);
        }
    }

    /// A round of all workers, or only a look: whether something waits, which the descriptor shows
    /// from then on.
    fn round(&self, turns: bool) -> bool {
        self.0.notice.clear();
        let look = |worker: &Arc<Worker>| {
            let mut state = worker.shared.lock();
            if turns {
                worker.shared.look(&mut state);
            }
            has_something(&state)
        };
        let is_ready = self.workers().iter().map(look).fold(false, |any, it| any | it);
        if is_ready {
            self.0.notice.set();
        }
        is_ready
    }
}

/// Whether something waits for the application at a worker.
fn has_something(state: &State) -> bool {
    state.watch.has_something(&state.sessions) || has_guest(state)
}

/// Begins what a command says.
fn begin(state: &mut Guard<'_>, command: Command) -> Result<Awaited, Error> {
    let (id, now) = (command.session().id, clock::now());
    let entry = state.open_entry(id)?;
    let done = |()| Awaited::Done(Ok(Outcome::Done));
    match command {
        Command::Activate(_) => {
            if entry.role == Role::Participant && entry.phase == Phase::Ready {
                state.core().handle_command(now, core::Command::Activate(id))?;
                state.open_entry(id)?.phase = Phase::Activating;
            }
            Ok(Awaited::Runs(true))
        }
        Command::Deactivate(_) => {
            entry.check_begun()?;
            if entry.role == Role::Participant && entry.phase == Phase::Active {
                state.core().handle_command(now, core::Command::Deactivate(id))?;
                state.open_entry(id)?.phase = Phase::Pausing;
            } else if entry.role == Role::Creator {
                return Err(misuse("only the participant pauses a session; close() ends it"));
            }
            Ok(Awaited::Runs(false))
        }
        Command::Finish(flow) => {
            entry.check_flow(flow.flow, Direction::Outgoing)?;
            entry.flows.get_mut(flow.flow).into_iter().for_each(Flow::finish);
            state.wake(id, flow.flow);
            Ok(done(()))
        }
        Command::Change(flow, to) => {
            entry.check_flow(flow.flow, Direction::Outgoing)?;
            begin_change(state, id, flow.flow, &to)?;
            Ok(Awaited::Change(flow.flow))
        }
        Command::Media(_, command) => Ok(Awaited::Answer(begin_command(state, id, command)?)),
        Command::GiveUp(_, after) => {
            let give_up = core::Command::GiveUpAfter(id, after);
            state.core().handle_command(now, give_up).map(|_| done(()))
        }
        Command::Close(_) => {
            entry.is_closed = true;
            if entry.phase == Phase::Active {
                state.leave_all(id);
                return Ok(Awaited::Drained(now + DRAIN_MAX));
            }
            Ok(Awaited::Drained(Time::ZERO))
        }
    }
}
