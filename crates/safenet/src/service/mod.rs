//! [`Messages`]: all routes and mailboxes of a host, on an engine of XTP that somebody else drives.
//!
//! ```text
//!   packets -> Engine -> its events -> outflows   opened, reports, room, end
//!                                   -> inflows    incoming, bytes, end
//!                                   -> leaving: associations that only have to close
//!                                   -> strangers: those of nobody here
//! ```
//!
//! Each part owns its fields; what it must know, and where what it wants goes, comes with the call.
//!
//! The order of calls: whatever was given to the engine or taken from it, then
//! [`Messages::handle_turn`].
//!
//! Invariants: every context is an outflow's, an inflow's, or closing, or a stranger's; each of
//! these is bounded by [`Config`]; an association that is made again has cost at least one message
//! its end, so nothing is made again for ever.

mod cx;
mod error;
mod inflows;
mod outflows;

use crate::config::{Config, Mode, Route, Traffic};
use crate::inflow::Part;
use crate::ticket::{Outcome, Sums, Ticket};
use cx::{Cx, Leaving};
use dacapo_base::Time;
use dacapo_xtp::{End, Engine, Listen, ListenError};
use inflows::Inflows;
use outflows::Outflows;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

pub use error::{JoinError, SendError};

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
    Capacity(Route),
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
    outflows: Outflows,
    inflows: Inflows,
    leaving: Leaving,
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
            outflows: Outflows::default(),
            inflows: Inflows::default(),
            leaving: Leaving::default(),
            tidings: VecDeque::new(),
            strangers: VecDeque::new(),
        }
    }

    /// The parts, and what goes with a call into one of them.
    fn split<'a>(
        &'a mut self,
        now: Time,
        engine: &'a mut Engine,
    ) -> (&'a mut Outflows, &'a mut Inflows, Cx<'a>) {
        let Self { config, outflows, inflows, leaving, tidings, .. } = self;
        (outflows, inflows, Cx { now, engine, config, leaving, tidings })
    }

    /// Takes messages at a port of XTP, from hosts and from groups.
    ///
    /// # Errors
    /// [`ListenError::Taken`].
    pub fn listen(&mut self, engine: &mut Engine, port: u16) -> Result<(), ListenError> {
        engine.listen(Listen { mode: mode_of_receivers(&self.config), ..Listen::on(port) })?;
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
        self.outflows.sums()
    }

    /// What has become of what came.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        self.inflows.counters()
    }

    /// How many routes are known, with an association or without.
    #[must_use]
    pub fn route_count(&self) -> usize {
        self.outflows.count()
    }

    /// How many associations others have opened here, groups included.
    #[must_use]
    pub fn incoming_count(&self) -> usize {
        self.inflows.count()
    }

    /// The next thing that a user may want to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        let ended = self.outflows.pop_ended();
        let ended = ended.map(|(ticket, outcome)| Event::Ended(ticket, outcome));
        ended.or_else(|| self.tidings.pop_front())
    }

    /// The next event of the engine that is of no association of this service.
    pub fn poll_stranger(&mut self) -> Option<dacapo_xtp::Event> {
        self.strangers.pop_front()
    }

    /// SEND_MESSAGE: accepts a message. Its end is told once, by [`Event::Ended`] with the ticket.
    ///
    /// The association is made when there is none. The two modes differ in when the peer reports;
    /// to a group there are no reports, and a message ends when it has left.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_message(
        &mut self,
        now: Time,
        engine: &mut Engine,
        route: Route,
        mode: Mode,
        data: Vec<u8>,
    ) -> Result<Ticket, SendError> {
        if self.is_closed {
            return Err(SendError::Closed);
        }
        let (outflows, _, mut cx) = self.split(now, engine);
        outflows.send(&mut cx, route, mode, data)
    }

    /// Whether a route has room for a message of `len` bytes; one that is not known yet has.
    #[must_use]
    pub fn has_capacity(&self, route: Route, len: usize) -> bool {
        self.outflows.has_capacity(&self.config, route, len)
    }

    /// BURST and RATE of a route, from now on and for every association that is made for it.
    ///
    /// # Errors
    /// [`SendError::Routes`]: as many routes have limits as there may be routes.
    pub fn set_traffic(
        &mut self,
        now: Time,
        engine: &mut Engine,
        route: Route,
        traffic: Traffic,
    ) -> Result<(), SendError> {
        let (outflows, _, mut cx) = self.split(now, engine);
        outflows.set_traffic(&mut cx, route, traffic)
    }

    /// Gives up every message of a route: what waits fails, what is under way is unknown.
    pub fn abandon(&mut self, now: Time, engine: &mut Engine, route: Route) {
        let (outflows, _, mut cx) = self.split(now, engine);
        outflows.abandon(&mut cx, route);
    }

    /// Ends the service: every message ends, peers are told, nothing is accepted any more. Packets
    /// are still to be carried until [`Messages::is_quiet`].
    pub fn close(&mut self, now: Time, engine: &mut Engine) {
        self.is_closed = true;
        while let Some(route) = self.outflows.first() {
            self.abandon(now, engine, route);
        }
        for port in std::mem::take(&mut self.ports) {
            engine.unlisten(port);
        }
        let (_, inflows, mut cx) = self.split(now, engine);
        inflows.close(&mut cx);
    }

    /// Whether every association of the service is closed.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.outflows.is_quiet() && self.inflows.count() == 0 && self.leaving.is_empty()
    }

    /// GET_MESSAGE: takes the most urgent message that has come to a port, equals in the order in
    /// which they came, or the next part of a long one. `None` when there is nothing now;
    /// [`Event::Message`] says when there is.
    ///
    /// A message counts as delivered when its last part is taken.
    pub fn get_message(&mut self, now: Time, engine: &mut Engine, port: u16) -> Option<Part> {
        let (_, inflows, mut cx) = self.split(now, engine);
        inflows.get(&mut cx, port)
    }

    /// Joins a group with repair whose association may have been made already, as the network below
    /// knows it, at a port that is listened on. From [`Event::Joined`] on every message that begins
    /// comes, and nothing older; [`Event::NotJoined`] says that nobody sends to the group, or does
    /// not want this member, or that it hears the group already because it was invited.
    ///
    /// # Errors
    /// [`JoinError`]; no event follows.
    pub fn join_group(
        &mut self,
        now: Time,
        engine: &mut Engine,
        group: SocketAddr,
        port: u16,
    ) -> Result<(), JoinError> {
        if self.is_closed {
            return Err(JoinError::Closed);
        }
        if !self.ports.contains(&port) {
            return Err(JoinError::NotListening { port });
        }
        let (_, inflows, mut cx) = self.split(now, engine);
        inflows.join(&mut cx, group, port)
    }

    /// When [`Messages::handle_turn`] has something to do besides the engine's events.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.outflows.deadline().min(self.inflows.deadline()).min(self.leaving.deadline())
    }

    /// Takes the engine's events, and does what is due and what has become possible. To be called
    /// after the engine was given packets or time, and after all its packets were taken: what has
    /// left makes room, and ends messages to groups. False when nothing was there to do; else the
    /// engine may have packets again.
    pub fn handle_turn(&mut self, now: Time, engine: &mut Engine) -> bool {
        let mut has_some = self.deadline() <= now;
        let (outflows, inflows, mut cx) = self.split(now, engine);
        inflows.handle_due(&mut cx);
        outflows.handle_due(&mut cx);
        while let Some(id) = cx.leaving.pop_due(now) {
            cx.release(id);
        }
        while let Some(event) = engine.poll_event() {
            has_some = true;
            self.handle_event(now, engine, event);
        }
        let (outflows, _, mut cx) = self.split(now, engine);
        outflows.look_at_members(&mut cx);
        has_some
    }

    fn handle_event(&mut self, now: Time, engine: &mut Engine, event: dacapo_xtp::Event) {
        use dacapo_xtp::Event as E;
        let is_ours = matches!(event, E::Incoming { port, .. } if self.ports.contains(&port));
        let (outflows, inflows, mut cx) = self.split(now, engine);
        let id = match event {
            E::Incoming { port, id } if is_ours => return inflows.accept(&mut cx, id, port),
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
        if cx.leaving.contains(id) {
            if let E::Ended(..) = event {
                cx.leaving.remove(id);
                cx.release(id);
            }
        } else if let Some(route) = outflows.route_of(id) {
            outflows.handle_event(&mut cx, route, event);
        } else if inflows.contains(id) {
            inflows.handle_event(&mut cx, id, event);
        } else if !self.strangers.contains(&event) {
            // Of one kind one is kept, however often it happens.
            self.strangers.push_back(event);
        }
    }
}

/// XTP's options of an end that takes messages: reports are short, and somebody waits for each.
fn mode_of_receivers(config: &Config) -> dacapo_xtp::Mode {
    let without_check = config.without_check;
    let sort = Some(0);
    dacapo_xtp::Mode { fast_report: true, sort, without_check, ..dacapo_xtp::Mode::default() }
}
