//! [`Watch`]: what waits at a worker for who asks by [`Endpoint::turn`](super::Endpoint::turn): the
//! commands that are under way, and what came of them; [`Notice`]: the descriptor that shows it.
//!
//! ```text
//!   command -> Ticket, open -> … a round finds what was awaited -> Event::Done -> poll_event
//!              at most 1,024                                                      -> closed
//!   a peer is gone, somebody is refused -> Event::PeerLost, Event::Refused, the newest 256
//!   round   -> an event, a unit, room that was asked for, a guest? -> Notice, readable
//! ```
//!
//! Invariants: nothing is looked for before somebody watches; a ticket is open until what came of
//! it was read, so that answers nobody reads are bounded.

use super::entry::Entry;
use super::event::{Event, Outcome};
use super::flow::{End, Flow};
use super::ids::{self, Ticket};
use crate::misuse::misuse;
use dacapo_base::Time;
use dacapo_core::{Code, Error, PeerId, SessionId};
use dacapo_sys::poll::{Interest, Poller, Waker};
use dacapo_wire::hub::SessionEntry;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The most tickets that are open.
pub const TICKETS_MAX: usize = 1_024;

/// The most events of no session that wait; the oldest is dropped first.
const TOLD_MAX: usize = 256;

/// A session that is closed waits so long for what was sent to be accounted for.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(10);

/// Readable while something waits at any worker of an endpoint.
pub(super) struct Notice {
    waker: Waker,
    /// Where [`Endpoint::turn`](super::Endpoint::turn) waits for it.
    poller: Poller,
    /// Somebody has asked for it.
    is_watched: AtomicBool,
    /// The number of the next ticket.
    next: AtomicU64,
    /// Tickets that are open.
    open: AtomicU64,
}

impl Notice {
    /// # Errors
    /// When there is no descriptor left.
    pub fn new() -> io::Result<Self> {
        let (is_watched, next, open) = <(AtomicBool, AtomicU64, AtomicU64)>::default();
        let (waker, poller) = (Waker::new()?, Poller::new()?);
        poller.add(waker.as_fd(), 0, Interest::Read)?;
        Ok(Self { waker, poller, is_watched, next, open })
    }

    /// From now on it is looked at; whether it was before.
    pub fn watch(&self) -> bool {
        self.is_watched.swap(true, Ordering::AcqRel)
    }

    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Acquire)
    }

    /// Something waits.
    pub fn set(&self) {
        self.waker.wake();
    }

    /// Where it is waited for.
    pub fn poller(&self) -> Poller {
        self.poller.twin()
    }

    /// Whoever clears it looks at all workers afterwards.
    pub fn clear(&self) {
        self.waker.clear();
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    /// The next ticket.
    ///
    /// # Errors
    /// [`Code::TooMany`] when too many are open.
    pub fn open(&self) -> Result<Ticket, Error> {
        if self.open.fetch_add(1, Ordering::AcqRel) >= TICKETS_MAX as u64 {
            self.closed(1);
            let text = format!("{TICKETS_MAX} commands are open; read events, then go on");
            return Err(Error::new(Code::TooMany, text));
        }
        Ok(Ticket(self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// So many are not open any more.
    pub fn closed(&self, count: u64) {
        self.open.fetch_sub(count, Ordering::AcqRel);
    }

    pub fn open_count(&self) -> u64 {
        self.open.load(Ordering::Acquire)
    }
}

/// What a command waits for in its session.
#[derive(Clone, Debug)]
pub(super) enum Awaited {
    /// Nothing: this came of it.
    Done(Result<Outcome, Error>),
    /// It is set up.
    Joined,
    /// Its flows run (`true`), or pause.
    Runs(bool),
    /// An answer of the peer, by the number of the request.
    Answer(u32),
    /// The change of a flow, by its place.
    Change(usize),
    /// What was sent is accounted for, or it is too late for that; then the session is to end.
    Drained(Time),
    /// The end of the session.
    End,
}

/// What is to be done for a command that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The session is to end.
    Close(SessionId),
    /// Its flows are to run (`true`) or pause, which could not be asked for before.
    Switch(Ticket, SessionId, bool),
}

/// What a command waits for of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfPeer {
    /// Its answer to who connects.
    Opens,
    /// The list of what it serves.
    Lists,
}

/// What waits at a worker.
#[derive(Default)]
pub(super) struct Watch {
    /// The worker's place among those of the endpoint.
    place: usize,
    open: Vec<(Ticket, SessionId, Awaited)>,
    of_peers: Vec<(Ticket, PeerId, OfPeer)>,
    done: VecDeque<(Option<SessionId>, Event)>,
    told: VecDeque<Event>,
}

impl Watch {
    /// That of the worker at this place.
    pub fn new(place: usize) -> Self {
        Self { place, ..Self::default() }
    }

    /// A command is under way.
    pub fn await_it(&mut self, ticket: Ticket, id: SessionId, awaited: Awaited) {
        self.open.push((ticket, id, awaited));
    }

    /// When something is too late.
    pub fn deadline(&self) -> Time {
        let times = self.open.iter().map(|(_, _, awaited)| match awaited {
            Awaited::Drained(until) => *until,
            _ => Time::NEVER,
        });
        times.min().unwrap_or(Time::NEVER)
    }

    /// What has come of commands by now, and what is to be done for others. Of those that let the
    /// flows of a session run or pause one is under way at a time, in the order in which they came.
    pub fn settle(&mut self, now: Time, sessions: &mut Sessions) -> Vec<Then> {
        let (mut then, mut switching) = (Vec::new(), Vec::new());
        let Self { open, done, .. } = self;
        open.retain_mut(|(ticket, id, awaited)| {
            let is_switch = matches!(awaited, Awaited::Runs(_));
            if is_switch && switching.contains(id) {
                return true;
            }
            if let Awaited::Drained(until) = awaited {
                let is_running = |entry: &Entry| !entry.is_over() && !entry.is_accounted();
                if sessions.get(id).is_some_and(is_running) && now < *until {
                    return true;
                }
                then.push(Then::Close(*id));
                *awaited = Awaited::End;
            }
            let outcome = match sessions.get_mut(id) {
                Some(entry) => entry.outcome(awaited),
                None => Some(Err(misuse("the session is gone"))),
            };
            let Some(outcome) = outcome else {
                switching.extend(is_switch.then_some(*id));
                if let Awaited::Runs(runs) = *awaited
                    && sessions.get(id).is_some_and(|entry| entry.may_switch(runs))
                {
                    then.push(Then::Switch(*ticket, *id, runs));
                }
                return true;
            };
            if matches!(awaited, Awaited::Joined) && outcome.is_err() {
                sessions.remove(id);
            }
            done.push_back((Some(*id), Event::Done { ticket: *ticket, outcome }));
            false
        });
        then
    }

    /// A command of a session is done otherwise than by what it waited for.
    pub fn fail(&mut self, ticket: Ticket, error: Error) {
        let Some(at) = self.open.iter().position(|(it, ..)| *it == ticket) else { return };
        let (_, id, _) = self.open.remove(at);
        self.done.push_back((Some(id), Event::Done { ticket, outcome: Err(error) }));
    }

    /// A command to a peer is under way.
    pub fn await_peer(&mut self, ticket: Ticket, id: PeerId, awaited: OfPeer) {
        self.of_peers.push((ticket, id, awaited));
    }

    /// A command of no session is done.
    pub fn settled(&mut self, ticket: Ticket, outcome: Result<Outcome, Error>) {
        self.done.push_back((None, Event::Done { ticket, outcome }));
    }

    /// A peer answers.
    pub fn opened(&mut self, id: PeerId) {
        while let Some(ticket) = self.take(|its, of| its == id && of == OfPeer::Opens) {
            self.settled(ticket, Ok(Outcome::Connected(self.peer(id))));
        }
    }

    /// A peer has said what it serves, or why not; it answers in order.
    pub fn listed(&mut self, id: PeerId, sessions: Result<Vec<SessionEntry>, Error>) {
        if let Some(ticket) = self.take(|its, of| its == id && of == OfPeer::Lists) {
            self.settled(ticket, sessions.map(Outcome::Listed));
        }
    }

    /// A peer is gone, which had answered or not.
    pub fn lost(&mut self, id: PeerId, was_open: bool, error: &Error) {
        while let Some(ticket) = self.take(|its, _| its == id) {
            self.settled(ticket, Err(error.clone()));
        }
        if was_open {
            self.tell(Event::PeerLost { peer: self.peer(id), error: error.clone() });
        }
    }

    /// Somebody did not get into a session that is served here, for this reason if any.
    pub fn refused(&mut self, error: Option<Error>) {
        error.into_iter().for_each(|error| self.tell(Event::Refused { error }));
    }

    /// Something of no session has happened.
    fn tell(&mut self, event: Event) {
        if self.told.len() == TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back(event);
    }

    /// The first command to a peer that waits for this.
    fn take(&mut self, is_it: impl Fn(PeerId, OfPeer) -> bool) -> Option<Ticket> {
        let at = self.of_peers.iter().position(|(_, id, of)| is_it(*id, *of))?;
        Some(self.of_peers.remove(at).0)
    }

    /// A peer of the worker, by its number at the endpoint.
    pub fn peer(&self, id: PeerId) -> ids::PeerId {
        ids::PeerId { worker: self.place, id }
    }

    /// The next thing that has come of a command.
    pub fn pop_done(&mut self) -> Option<(Option<SessionId>, Event)> {
        self.done.pop_front()
    }

    /// The next thing that is told of no session.
    pub fn pop_told(&mut self) -> Option<Event> {
        self.told.pop_front()
    }

    /// Whether something is to be read.
    pub fn has_something(&self, sessions: &Sessions) -> bool {
        !self.done.is_empty() || !self.told.is_empty() || sessions.values().any(is_telling)
    }
}

/// Whether a session has an event, a unit, or room that was asked for.
fn is_telling(entry: &Entry) -> bool {
    entry.has_event() || !entry.is_closed && entry.flows.iter().any(has_moved)
}

fn has_moved(flow: &Flow) -> bool {
    match &flow.end {
        End::Receiver(receiver) => flow.inbox.is_none() && receiver.has_unit(),
        End::Sender(_) => flow.awaits_room.is_some_and(|len| flow.takes(len)),
        End::Finished(_) | End::None => false,
    }
}

/// The sessions of a worker.
pub(super) type Sessions = BTreeMap<SessionId, Entry>;
