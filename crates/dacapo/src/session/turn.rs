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

use super::asked::{begin_change, begin_command};
use super::change::Change;
use super::deadline::Deadline;
use super::driver::Guard;
use super::endpoint::Endpoint;
use super::entry::{Handle, Phase};
use super::event::{Event, Outcome};
use super::flow::{Direction, End, Flow};
use super::ids::{FlowId, PeerId, SessionId, Ticket};
use super::join::Join;
use super::state::has_something;
use super::units::UnitView;
use super::waiting::Waiting;
use super::watch::{Awaited, DRAIN_MAX, OfPeer};
use super::worker::Worker;
use crate::command::MediaCommand;
use crate::misuse::misuse;
use dacapo_base::{Address, Time};
use dacapo_core::table::Role;
use dacapo_core::{self as core, DialParams, Error};
use dacapo_sys::clock;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// What an endpoint is asked to do, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Connects to the host at an address, or gives the connection that is there; it stays until
    /// [`Command::Disconnect`]. [`Outcome::Connected`] follows, or why it cannot be reached.
    Connect {
        /// Where it listens; [`resolve`](crate::host::resolve) finds it by name.
        to: Address,
        /// How long to try, as [`Join::wait`](super::Join::wait).
        wait: Option<Duration>,
    },
    /// Asks what a peer serves: [`Outcome::Listed`] follows, within 10 s.
    List(PeerId),
    /// Says goodbye to a peer, and ends every session with it.
    Disconnect(PeerId),
    /// Joins a session of a peer. [`Outcome::Done`] of the session follows when it is set up, and
    /// [`Endpoint::session`] gives its handle from now on; or why it is not.
    Join {
        /// Who serves it.
        peer: PeerId,
        /// Its name there.
        name: String,
        /// How. Its [`wait`](Join::wait) is that of [`Command::Connect`].
        how: Join,
    },
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
    /// Ends the session at once and tells the peer why; what is on its way is booked as unknown.
    Abort(SessionId, Error),
}

impl Command {
    /// The session that it is for.
    fn session(&self) -> Option<SessionId> {
        match self {
            Self::Activate(id)
            | Self::Deactivate(id)
            | Self::Media(id, _)
            | Self::GiveUp(id, _)
            | Self::Close(id)
            | Self::Abort(id, _) => Some(*id),
            Self::Finish(flow) | Self::Change(flow, _) => Some(flow.session),
            Self::Connect { .. } | Self::List(_) | Self::Join { .. } | Self::Disconnect(_) => None,
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
    /// What the system says, and has said since nothing works any more.
    pub fn turn(&mut self, until: Deadline) -> io::Result<Turned> {
        self.0.first.shared.check_here().map_err(io::Error::other)?;
        self.watch();
        loop {
            let is_ready = self.round(true);
            if let Some(failure) = self.failure() {
                return Err(io::Error::other(failure));
            }
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

    /// The next event of the endpoint and of any session of it, which it names, from the first call
    /// on, or that of [`Endpoint::as_fd`], [`Endpoint::turn`] or [`Endpoint::command`]. What
    /// [`Session::events`](super::Session::events) has given is not given again. Events that nobody
    /// reads are merged, as there; of peers the newest 256 are kept.
    pub fn poll_event(&mut self) -> Option<(Option<SessionId>, Event)> {
        self.watch();
        for (worker, it) in self.workers().into_iter().enumerate() {
            let state = &mut *it.shared.lock();
            if let Some((id, event)) = state.watch.pop_done() {
                self.0.notice.closed(1);
                return Some((id.map(|id| SessionId { worker, id }), event));
            }
            for (id, entry) in &mut state.sessions {
                if let Some(event) = entry.pop_event() {
                    return Some((Some(SessionId { worker, id: *id }), event));
                }
            }
            if let Some(event) = state.watch.pop_told() {
                return Some((None, event));
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
                let unit = receiver.try_take_up_to(usize::MAX).ok()??;
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
    /// Misuse when there is no such peer, session or flow, or it cannot be now; what is wrong with
    /// the command; [`TooMany`](dacapo_core::Code::TooMany).
    pub fn command(&mut self, command: Command) -> Result<Ticket, Error> {
        self.0.first.shared.check_here()?;
        self.watch();
        let worker = self.worker_for(&command)?;
        let mut state = worker.shared.lock();
        let ticket = self.0.notice.open()?;
        let begun = match command.session() {
            Some(at) => begin(&mut state, at.id, command)
                .map(|awaited| state.watch.await_it(ticket, at.id, awaited)),
            None => begin_with_peer(&mut state, ticket, command),
        };
        if let Err(error) = begun {
            self.0.notice.closed(1);
            return Err(error);
        }
        worker.shared.act(&mut state);
        Ok(ticket)
    }

    /// Where a command is done.
    fn worker_for(&self, command: &Command) -> Result<Arc<Worker>, Error> {
        let place = match (command, command.session()) {
            (_, Some(session)) => session.worker,
            (Command::Connect { to, .. }, _) => {
                return self.0.further.place(&self.0.first, *to);
            }
            (Command::List(peer) | Command::Disconnect(peer) | Command::Join { peer, .. }, _) => {
                peer.worker
            }
            _ => 0,
        };
        let unknown = || misuse("this endpoint has no such session or peer");
        self.workers().into_iter().nth(place).ok_or_else(unknown)
    }

    /// How many tickets are open.
    #[must_use]
    pub fn open_tickets(&self) -> u64 {
        self.0.notice.open_count()
    }

    /// Why nothing works any more.
    fn failure(&self) -> Option<Error> {
        self.workers().iter().find_map(|it| it.shared.lock().failure.clone())
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

/// Begins what a command to a session says.
fn begin(state: &mut Guard<'_>, id: core::SessionId, command: Command) -> Result<Awaited, Error> {
    let now = clock::now();
    if !state.sessions.contains_key(&id) {
        return Err(misuse("this endpoint has no such session"));
    }
    let entry = state.open_entry(id)?;
    let done = |()| Awaited::Done(Ok(Outcome::Done));
    match command {
        Command::Activate(_) => {
            if entry.may_switch(true) {
                state.switch(id, true)?;
            }
            Ok(Awaited::Runs(true))
        }
        Command::Deactivate(_) => {
            entry.check_begun()?;
            if entry.may_switch(false) {
                state.switch(id, false)?;
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
        Command::Abort(_, why) => {
            let abort = core::Command::CloseBecause(id, why);
            state.core().handle_command(now, abort).map(|_| done(()))
        }
        _ => Err(misuse("this is no command to a session")),
    }
}

/// Begins what a command to a peer says.
fn begin_with_peer(state: &mut Guard<'_>, ticket: Ticket, command: Command) -> Result<(), Error> {
    let now = clock::now();
    match command {
        Command::Connect { to, wait } => {
            let id = state.dial(to, DialParams { wait })?;
            state.peers.keep(id);
            state.watch.await_peer(ticket, id, OfPeer::Opens);
            if state.peers.is_open(id) {
                state.watch.opened(id);
            }
        }
        Command::List(peer) => {
            state.core().handle_command(now, core::Command::List(peer.id))?;
            state.watch.await_peer(ticket, peer.id, OfPeer::Lists);
        }
        Command::Join { peer, name, how } => {
            let id = state.join(peer.id, &name, (&how, false))?;
            if let Some(entry) = state.sessions.get_mut(&id) {
                entry.handle = Handle::Free;
            }
            state.watch.await_it(ticket, id, Awaited::Joined);
        }
        Command::Disconnect(peer) => {
            state.core().handle_command(now, core::Command::Disconnect(peer.id))?;
            state.watch.settled(ticket, Ok(Outcome::Done));
        }
        _ => return Err(misuse("this is no command to a peer")),
    }
    Ok(())
}
