//! [`Messages`]: all routes and mailboxes of a host, on an engine of XTP that somebody else drives.
//!
//! ```text
//!   packets -> Engine -> its events -> outflows (send.rs)      opened, reports, room, end
//!                                   -> inflows  (receive.rs)   incoming, bytes, end
//!                                   -> leaving: associations that only have to close
//!                                   -> strangers: those of nobody here
//!   turn.rs: the events, and what is due: rest, gathered reports, the pace of groups, patience
//! ```
//!
//! The order of calls: whatever was given to the engine or taken from it, then
//! [`Messages::handle_turn`].
//!
//! Invariants: every context is an outflow's, an inflow's, or closing, or a stranger's; each of
//! these is bounded by [`Config`]; an association that is made again has cost at least one message
//! its end, so nothing is made again for ever.

mod join;
mod receive;
mod send;
mod turn;

use crate::config::{Config, Reach, Route, Traffic};
use crate::inflow::Inflow;
use crate::outflow::Outflow;
use crate::ticket::{Ledger, Outcome, Sums, Ticket};
use dacapo_base::Time;
use dacapo_xtp::Deadlines;
use dacapo_xtp::{ContextId, End, Engine, Listen, ListenError, Mode};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

pub use join::JoinError;
pub use send::SendError;

/// Something that a user may want to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message has ended.
    Ended(Ticket, Outcome),
    /// There is something to take at this port; told again only after [`Messages::get_message`] has
    /// given `None` for it.
    Message {
        /// The port of XTP.
        port: u16,
    },
    /// A group that was to be joined late is heard from now on.
    Joined {
        /// The group, as it was named.
        group: SocketAddr,
        /// The port of XTP.
        port: u16,
    },
    /// A group that was to be joined late is not heard.
    NotJoined {
        /// The group, as it was named.
        group: SocketAddr,
        /// The port of XTP.
        port: u16,
        /// Why.
        end: End,
    },
    /// There is room again on a route on which messages were refused, for the shortest of them.
    Room(Route),
}

/// What has become of what came, beside what users have taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that were taken whole.
    pub taken: u64,
    /// Messages of which a part had come, and whose rest did not.
    pub broken: u64,
    /// Messages that had come whole, and of which users had not taken all when it was closed here.
    pub untaken: u64,
    /// Associations that were let go because what came was none of this service.
    pub malformed: u64,
    /// Associations that were not accepted: no room, or another service of XTP.
    pub refused: u64,
    /// Resting associations that gave their room away.
    pub rested: u64,
}

/// The message service of a host, on an engine that is given with each call: always the same one.
#[derive(Debug)]
pub struct Messages {
    config: Config,
    ports: BTreeSet<u16>,
    is_closed: bool,

    out: BTreeMap<Route, Outflow>,
    routes: BTreeMap<ContextId, Route>,
    traffic: BTreeMap<Route, Traffic>,
    ledger: Ledger,

    incoming: BTreeMap<ContextId, Inflow>,
    group_count: usize,
    /// Those of them that were asked for here.
    joined: BTreeMap<ContextId, join::Joined>,
    /// Parts that can be taken: port, priority, order.
    ready: BTreeMap<(u16, u16, u64), ContextId>,
    ready_count: u64,
    told: BTreeSet<u16>,
    counters: Counters,

    /// Routes on which every ticket has ended, and when they are given up.
    resting: Deadlines<Route>,
    /// Routes to groups that wait for their pace.
    paced: Deadlines<Route>,
    /// Associations of hosts here on which nothing is under way, and from when on they may go.
    rested: Deadlines<ContextId>,
    /// Routes to reliable groups of which members lack messages.
    members_wait: BTreeSet<Route>,
    /// Messages to groups of which nothing can be or was taken, by their age.
    partial: Deadlines<ContextId>,
    /// Reports that are gathered.
    reports: Deadlines<ContextId>,
    /// Associations of routes that take no more, and how long their end is waited for.
    closing: Deadlines<ContextId>,
    /// Associations that only have to close, and how long they may.
    leaving: Deadlines<ContextId>,

    ended: VecDeque<(Ticket, Outcome)>,
    tidings: VecDeque<Event>,
    strangers: VecDeque<dacapo_xtp::Event>,
}

impl Messages {
    /// A service without listeners and associations. It does not share its ports with other users
    /// of the engine, whose events it passes on.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            ports: BTreeSet::new(),
            is_closed: false,
            out: BTreeMap::new(),
            routes: BTreeMap::new(),
            traffic: BTreeMap::new(),
            ledger: Ledger::default(),
            incoming: BTreeMap::new(),
            group_count: 0,
            joined: BTreeMap::new(),
            ready: BTreeMap::new(),
            ready_count: 0,
            told: BTreeSet::new(),
            counters: Counters::default(),
            resting: Deadlines::default(),
            paced: Deadlines::default(),
            rested: Deadlines::default(),
            members_wait: BTreeSet::new(),
            partial: Deadlines::default(),
            reports: Deadlines::default(),
            closing: Deadlines::default(),
            leaving: Deadlines::default(),
            ended: VecDeque::new(),
            tidings: VecDeque::new(),
            strangers: VecDeque::new(),
        }
    }

    /// Takes messages at a port of XTP, from hosts and from groups.
    ///
    /// # Errors
    /// [`ListenError::Taken`].
    pub fn listen(&mut self, engine: &mut Engine, port: u16) -> Result<(), ListenError> {
        // Reports are short, and somebody waits for each.
        let without_check = self.config.without_check;
        let mode = Mode { fast_report: true, sort: Some(0), without_check, ..Mode::default() };
        engine.listen(Listen { mode, ..Listen::on(port) })?;
        self.ports.insert(port);
        Ok(())
    }

    /// Takes no new associations at a port any more; those that are open go on.
    pub fn unlisten(&mut self, engine: &mut Engine, port: u16) {
        if self.ports.remove(&port) {
            engine.unlisten(port);
        }
    }

    /// What has become of all messages that were accepted for sending.
    #[must_use]
    pub const fn sums(&self) -> &Sums {
        self.ledger.sums()
    }

    /// What has become of what came.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many routes are known, with an association or without.
    #[must_use]
    pub fn route_count(&self) -> usize {
        self.out.len()
    }

    /// How many associations others have opened here, groups included.
    #[must_use]
    pub fn incoming_count(&self) -> usize {
        self.incoming.len()
    }

    /// The next thing that a user may want to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        let ended = self.ended.pop_front().map(|(ticket, outcome)| Event::Ended(ticket, outcome));
        ended.or_else(|| self.tidings.pop_front())
    }

    /// The next event of the engine that is of no association of this service.
    pub fn poll_stranger(&mut self) -> Option<dacapo_xtp::Event> {
        self.strangers.pop_front()
    }

    fn handle_event(&mut self, now: Time, engine: &mut Engine, event: dacapo_xtp::Event) {
        use dacapo_xtp::Event as E;
        let id = match event {
            E::Incoming { port, id } if self.ports.contains(&port) => {
                return self.accept(now, engine, id, port);
            }
            E::Incoming { id, .. }
            | E::Opened(id)
            | E::Readable(id)
            | E::Writable(id)
            | E::Delivered(id)
            | E::Remark(id, ..)
            | E::Joined(id, _)
            | E::Left(id, ..)
            | E::Ended(id, _) => id,
        };
        if self.leaving.contains(id) {
            if let E::Ended(..) = event {
                self.leaving.remove(id);
                self.release(now, engine, id);
            }
        } else if let Some(route) = self.routes.get(&id).copied() {
            self.handle_outgoing(now, engine, route, event);
        } else if self.incoming.contains_key(&id) {
            self.handle_incoming(now, engine, id, event);
        } else if !self.strangers.contains(&event) {
            // Of one kind one is kept, however often it happens.
            self.strangers.push_back(event);
        }
    }

    /// An association has only to close; with too many of them it is cut off.
    fn leave(&mut self, now: Time, engine: &mut Engine, id: ContextId) {
        if self.leaving.len() < self.config.leaving_max {
            self.leaving.set(id, now + self.config.leave_max);
        } else {
            self.release(now, engine, id);
        }
    }

    /// Both streams are done here: XTP closes the association when the peer agrees.
    fn close_streams(&mut self, now: Time, engine: &mut Engine, id: ContextId) {
        // What is over already needs no more.
        let _ = engine.finish(now, id);
        let _ = engine.stop_reading(now, id);
        self.leave(now, engine, id);
    }

    fn release(&mut self, now: Time, engine: &mut Engine, id: ContextId) {
        // Released already is released.
        let _ = engine.release(now, id);
    }
}

/// XTP's service of a route.
const fn service_of(reach: Reach) -> dacapo_xtp::wire::Service {
    use dacapo_xtp::wire::Service;
    match reach {
        Reach::Host => Service::Stream,
        Reach::Group => Service::Multicast,
        Reach::ReliableGroup => Service::ReliableMulticast,
    }
}
