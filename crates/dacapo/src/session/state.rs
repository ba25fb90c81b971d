//! [`State`]: everything behind the lock of an endpoint.
//!
//! The host, the sessions, peers and served sessions, and who drives them. What the core tells is
//! followed in `events`.
//!
//! Invariant: between two calls everything that the core has told is followed, and everything that
//! may be sent is sent.

use super::account::Measured;
use super::driver::Driver;
use super::entry::{Entry, Phase};
use super::event::Event;
use super::flow::{End, Flow};
use super::join::Join;
use super::peers::Peers;
use super::publish::JoinQueue;
use super::reconsider::{AllReconsidered, Look};
use super::shard::ShardOrigin;
use super::waiting::Turning;
use super::watch::{Then, Watch};
use crate::host::Host;
use crate::misuse::misuse;
use dacapo_base::{Address, Time};
use dacapo_core::table::Role;
use dacapo_core::{Code, Command, Core, DialParams, Done, Error, Offered, PeerId, SessionId};
use dacapo_sys::clock;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What goes before an endpoint is gone has so long to leave.
const FLUSH_MAX: Duration = Duration::from_millis(200);

/// A session that is served here.
pub(super) struct Serving {
    /// What people see of it.
    pub title: String,
    /// Where those come in who join.
    pub join_queue: JoinQueue,
    /// Sessions that are set up and nobody has accepted.
    pub backlog: VecDeque<SessionId>,
    /// Where they wait instead, when it is served elsewhere first.
    pub origin: Option<ShardOrigin>,
}

pub(super) struct State {
    pub host: Host,
    pub sessions: BTreeMap<SessionId, Entry>,
    pub peers: Peers,
    pub serving: BTreeMap<String, Serving>,
    /// The newest session that is known here; ids ascend.
    pub newest: Option<SessionId>,
    pub driver: Driver,
    /// What waits for who turns by [`Endpoint::turn`](super::Endpoint::turn).
    pub watch: Watch,
    /// Flows of which somebody asks, while they run, whether they are to be changed.
    pub reconsidered: AllReconsidered,
    /// Rounds in which something has happened.
    pub changes: u64,
    /// Why nothing works any more.
    pub failure: Option<Error>,
}

impl State {
    pub fn new(host: Host, driver: Driver, place: usize) -> Self {
        Self {
            host,
            sessions: BTreeMap::new(),
            peers: Peers::default(),
            serving: BTreeMap::new(),
            newest: None,
            driver,
            watch: Watch::new(place),
            reconsidered: AllReconsidered::default(),
            changes: 0,
            failure: None,
        }
    }

    pub fn core(&mut self) -> &mut Core {
        self.host.reactor().core()
    }

    /// Turns without waiting until there is nothing left to do, and follows what the core tells;
    /// false when nothing has happened.
    pub fn round(&mut self) -> bool {
        let mut has_changed = false;
        loop {
            match self.host.reactor().turn(Duration::ZERO) {
                // Nothing but the waker of calls is watched.
                Ok(watched) if !watched.is_empty() => self.driver.hush(),
                Ok(_) => {}
                Err(error) => {
                    self.failure.get_or_insert(Error::caused(Code::System, error));
                    self.driver.background.notice.set();
                    return true;
                }
            }
            let was_idle = self.host.reactor().was_idle();
            has_changed |= !was_idle;
            self.changes += u64::from(!was_idle);
            // What was answered is to go out, and who was told to close.
            let is_over = was_idle || !self.follow_core();
            if self.driver.background.notice.is_watched() {
                let then = self.watch.settle(clock::now(), &mut self.sessions);
                for then in &then {
                    match *then {
                        Then::Close(id) => self.close(id),
                        Then::Switch(ticket, id, runs) => {
                            let failure = self.switch(id, runs).err();
                            failure.into_iter().for_each(|it| self.watch.fail(ticket, it));
                        }
                    }
                }
                if !then.is_empty() {
                    continue;
                }
                if has_something(self) {
                    self.driver.background.notice.set();
                }
            }
            if is_over {
                // Mostly nobody asks, and then no clock is read.
                let due = self.reconsidered.due();
                if due == Time::NEVER || due > clock::now() {
                    return has_changed;
                }
                self.reconsider();
            }
        }
    }

    /// Asks of the flows that are due whether they are to be changed, and begins that.
    fn reconsider(&mut self) {
        let (now, sessions, host) = (clock::now(), &self.sessions, &mut self.host);
        let said = self.reconsidered.ask(now, |(id, index)| {
            let Some(entry) = sessions.get(&id).filter(|entry| !entry.is_done()) else {
                return Look::Over;
            };
            let runs = entry.phase == Phase::Active && entry.has_contact;
            let flow = entry.flows.get(index).filter(|flow| runs && flow.account.is_none());
            let Some(info) = flow.map(|flow| flow.info.clone()) else { return Look::Paused };
            let all = host.reactor().status(id);
            let seen = Measured::of(all, &info.name, host.reactor().core().path(entry.peer));
            seen.map_or(Look::Paused, |seen| Look::Runs(Box::new((info, seen))))
        });
        for ((id, index), change) in said {
            let command = change.and_then(|it| it.command(id, index, self.host.catalogue()));
            let begun = command.and_then(|it| self.core().handle_command(now, it));
            // While one is going on it is asked again.
            let failure = begun.err().filter(|error| error.code != Code::NoSuchThing);
            let entry = self.sessions.get_mut(&id);
            if let (Some(error), Some(entry)) = (failure, entry) {
                let name = entry.flows.get(index).map(|flow| flow.info.name.clone());
                entry.tell(|| Event::ChangeFailed { flow: name.unwrap_or_default(), error });
            }
        }
    }

    /// When the next turn is due if nothing comes.
    pub fn next_deadline(&mut self) -> Time {
        let due = self.host.reactor().next_deadline().unwrap_or(Time::NEVER);
        due.min(self.watch.deadline()).min(self.reconsidered.due())
    }

    /// The session with this id, which a handle has.
    ///
    /// # Errors
    /// Misuse when it is closed, and what the system said when nothing works any more.
    pub fn open_entry(&mut self, id: SessionId) -> Result<&mut Entry, Error> {
        check_works(self)?;
        let entry = self.sessions.get_mut(&id).ok_or_else(|| misuse("the session is closed"))?;
        entry.check_open()?;
        Ok(entry)
    }

    /// Whether it is somebody else who listens at an address.
    ///
    /// # Errors
    /// Misuse when it is not.
    pub fn check_other(&self, remote: Address) -> Result<(), Error> {
        if !self.host.listening().iter().any(|at| is_same(*at, remote)) {
            return Ok(());
        }
        Err(misuse(format!("this endpoint listens on {remote} itself; connect from another one")))
    }

    /// The peer at an address: the one that is there, or a new one.
    ///
    /// # Errors
    /// When there is no way to the address.
    pub fn dial(&mut self, remote: Address, params: DialParams) -> Result<PeerId, Error> {
        let Some((id, is_dialing)) = self.peers.wait_at(remote) else {
            let id = self.host.connect_with(remote, params)?;
            self.peers.dial(id, remote);
            return Ok(id);
        };
        if is_dialing {
            let now = clock::now();
            // It is there: it only tries as long as this call waits, too.
            let _ = self
                .core()
                .handle_command(now, Command::Connect { remote, params })
                .and_then(Done::peer);
        }
        Ok(id)
    }

    /// Says goodbye to a peer that was dialed, unless somebody has a session with it or waits for
    /// it.
    pub fn leave_unused(&mut self, id: PeerId) {
        let is_used = self.sessions.values().any(|entry| entry.peer == id && !entry.is_over());
        if !is_used && !self.peers.is_waited_for(id) {
            let now = clock::now();
            let _ = self.core().handle_command(now, Command::Disconnect(id));
        }
    }

    /// Asks a peer that is open for a session.
    ///
    /// # Errors
    /// As [`Core::join`].
    pub fn join(
        &mut self,
        peer: PeerId,
        name: &str,
        (how, follows): (&Join, bool),
    ) -> Result<SessionId, Error> {
        let (media, decides) = how.taken(self.host.parts())?;
        let (now, params) = (clock::now(), how.params(follows));
        let id = self
            .core()
            .handle_command(now, Command::Join { peer, name: name.into(), params })
            .and_then(Done::session)?;
        let unknown = || Error::new(Code::Internal, "a peer without an address");
        let remote = self.core().peer_address(peer).ok_or_else(unknown)?;
        self.newest = self.newest.max(Some(id));
        let mut entry = Entry::new(name, Role::Participant, peer, remote);
        entry.keep_events(self.driver.background.notice.is_watched());
        (entry.media, entry.decides) = (media, decides);
        self.sessions.insert(id, entry);
        Ok(id)
    }

    /// Lets the flows of a session run, or pause, at the Participant's end.
    ///
    /// # Errors
    /// Misuse when it is closed; what the core refuses with.
    pub fn switch(&mut self, id: SessionId, runs: bool) -> Result<(), Error> {
        let (command, phase) = match runs {
            true => (Command::Activate(id), Phase::Activating),
            false => (Command::Deactivate(id), Phase::Pausing),
        };
        self.core().handle_command(clock::now(), command)?;
        self.open_entry(id)?.phase = phase;
        Ok(())
    }

    /// Asks the core to end a session that is not over.
    pub fn close(&mut self, id: SessionId) {
        let now = clock::now();
        // A session that the core does not know any more is over.
        let _ = self.core().handle_command(now, Command::Close(id));
    }

    /// Lets go of a session that nobody has accepted.
    pub fn turn_away(&mut self, id: SessionId) {
        self.sessions.remove(&id);
        self.close(id);
    }

    /// Asks the source of a flow again.
    pub fn wake(&mut self, id: SessionId, flow: usize) {
        let now = clock::now();
        self.core().wake(now, id, flow);
    }

    /// The reader of a flow has taken something: one that was held up goes on, and who leads, or
    /// will have to, is woken for that. The call itself need not turn.
    pub fn go_on(&mut self, id: SessionId, flow: usize) {
        self.wake(id, flow);
        self.reschedule();
    }

    /// Hands a unit over without the queue of its flow, in which none may wait.
    pub fn offer(&mut self, now: Time, id: SessionId, flow: usize, unit: &[u8]) -> Offered {
        let Self { sessions, host, .. } = self;
        let entry = sessions.get_mut(&id).filter(|entry| !entry.is_over());
        let Some(its) = entry.and_then(|entry| entry.flows.get_mut(flow)) else {
            return Offered::NotNow;
        };
        let End::Sender(sender) = &its.end else { return Offered::NotNow };
        if its.failure.is_some() || !sender.is_idle() {
            return Offered::NotNow;
        }
        let pushed = host.reactor().offer(now, id, flow, unit);
        if pushed != Offered::NotNow {
            if its.handed == 0 {
                sender.carries_units();
            }
            its.handed += 1;
        }
        pushed
    }

    /// Ends what this end sends, all of which is to arrive.
    pub fn leave_all(&mut self, id: SessionId) {
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        let count = entry.flows.len();
        entry.flows.iter_mut().for_each(Flow::leave);
        (0..count).for_each(|flow| self.wake(id, flow));
    }

    /// Units of this session that have been sent, over all flows.
    pub fn sent(&mut self, id: SessionId) -> u64 {
        self.core().status(id).iter().map(|flow| flow.sent).sum()
    }

    /// Says goodbye to everybody.
    pub fn leave(&mut self) {
        let now = clock::now();
        for peer in self.peers.ids() {
            let _ = self.core().handle_command(now, Command::Disconnect(peer));
        }
        self.round();
        self.host.reactor().flush(FLUSH_MAX);
    }
}

/// Whether anything works.
///
/// # Errors
/// Why nothing does any more.
pub(super) fn check_works(state: &State) -> Result<(), Error> {
    state.failure.clone().map_or(Ok(()), Err)
}

/// Whether something waits for who turns by [`Endpoint::turn`](super::Endpoint::turn).
pub(super) fn has_something(state: &State) -> bool {
    let is_guest = |it: &Serving| !it.backlog.is_empty() || it.join_queue.has_of_shard();
    state.failure.is_some()
        || state.watch.has_something(&state.sessions)
        || state.serving.values().any(is_guest)
}

/// Whether who listens at an address is who is reached at `remote`.
fn is_same(at: Address, remote: Address) -> bool {
    let (Some(here), Some(there)) = (at.ip(), remote.ip()) else { return at == remote };
    let everywhere = here.ip().is_unspecified() && there.ip().is_loopback();
    here.port() == there.port() && (here.ip() == there.ip() || everywhere)
}
