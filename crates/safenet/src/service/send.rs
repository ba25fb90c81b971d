//! The sending half: `send_message`, associations on first use, and how messages end.

use super::{Event, Messages, service_of};
use crate::config::{Config, Mode, Reach, Route, Traffic};
use crate::outflow::{Ended, Heard, Loss, Outflow, Waiting};
use crate::ticket::{Cause, Ticket};
use crate::wire::{Head, LetGo};
use dacapo_base::Time;
use dacapo_xtp::wire::Limits;
use dacapo_xtp::{ContextId, End, Engine, Open};
use std::fmt;
use std::net::SocketAddr;

/// Why a message was not accepted. It has no ticket, and is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// As much waits on this route as may; [`Event::Room`] says when it does not.
    Full {
        /// The most messages that have not ended.
        messages: usize,
        /// The most bytes that wait.
        bytes: usize,
    },
    /// As many routes are in use as there may be, and none rests.
    Routes {
        /// How many.
        count: usize,
    },
    /// As many ends of messages have not been heard as messages a route may have.
    Unheard {
        /// How many.
        count: usize,
    },
    /// The service was closed.
    Closed,
}

impl Messages {
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
        self.admit(now, engine, route, data.len())?;
        let (ticket, claim) = self.ledger.open();
        let is_urgent = mode == Mode::Synchronous;
        let (priority, port) = (route.priority, self.config.source.port());
        let head = Head { is_urgent, priority, port, len: data.len() as u64 }.emit();
        let outflow = self.out.entry(route).or_insert_with(|| Outflow::new(route));
        outflow.push(Waiting { claim, head, data });
        self.resting.remove(route);
        self.go_on(now, engine, route);
        Ok(ticket)
    }

    /// Whether a route has room for a message of `len` bytes; one that is not known yet has.
    #[must_use]
    pub fn has_room(&self, route: Route, len: usize) -> bool {
        let (messages, bytes) = (self.config.messages_max, self.config.waiting_bytes_max);
        self.out.get(&route).is_none_or(|outflow| outflow.has_room(len, messages, bytes))
    }

    fn admit(
        &mut self,
        now: Time,
        engine: &mut Engine,
        route: Route,
        len: usize,
    ) -> Result<(), SendError> {
        let config = self.config;
        let (messages, bytes) = (config.messages_max, config.waiting_bytes_max);
        if self.is_closed {
            return Err(SendError::Closed);
        }
        if self.ended.len() >= messages.max(1) {
            return Err(SendError::Unheard { count: self.ended.len() });
        }
        if let Some(outflow) = self.out.get_mut(&route) {
            if outflow.has_room(len, messages, bytes) {
                return Ok(());
            }
            outflow.wants_room = Some(outflow.wants_room.map_or(len, |other| other.min(len)));
            return Err(SendError::Full { messages, bytes });
        }
        let has_place = self.out.len() < config.routes_max || self.rest_oldest(now, engine);
        if has_place { Ok(()) } else { Err(SendError::Routes { count: self.out.len() }) }
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
        let count = self.traffic.len();
        if traffic == Traffic::default() {
            self.traffic.remove(&route);
        } else if count < self.config.routes_max || self.traffic.contains_key(&route) {
            self.traffic.insert(route, traffic);
        } else {
            return Err(SendError::Routes { count });
        }
        if let Some(id) = self.out.get(&route).and_then(|outflow| outflow.context) {
            // One that has just ended is made again with these.
            let _ = engine.set_limits(now, id, limits(traffic));
        }
        self.go_on(now, engine, route);
        Ok(())
    }

    /// Gives up every message of a route: what waits fails, what is under way is unknown.
    pub fn abandon(&mut self, now: Time, engine: &mut Engine, route: Route) {
        let loss = Loss { cause: Cause::Closed, is_certain: false, keeps_waiting: false };
        let context = self.out.get(&route).and_then(|outflow| outflow.context);
        self.lose(route, loss);
        if let Some(id) = context {
            self.cut_off(now, engine, id);
        }
        self.forget(route);
    }

    /// Ends the service: every message ends, peers are told, nothing is accepted any more. Packets
    /// are still to be carried until [`Messages::is_quiet`].
    pub fn close(&mut self, now: Time, engine: &mut Engine) {
        self.is_closed = true;
        while let Some(route) = self.out.keys().next().copied() {
            self.abandon(now, engine, route);
        }
        for port in std::mem::take(&mut self.ports) {
            engine.unlisten(port);
        }
        for id in self.incoming.keys().copied().collect::<Vec<ContextId>>() {
            self.let_go(now, engine, id, LetGo::Closing);
            self.remove_incoming(id);
        }
        self.ready.clear();
    }

    /// Whether every association of the service is closed.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.routes.is_empty() && self.incoming.is_empty() && self.leaving.is_empty()
    }

    /// A route goes on: makes its association when it lacks one, writes, rests when all is done.
    pub(super) fn go_on(&mut self, now: Time, engine: &mut Engine, route: Route) {
        let Some(outflow) = self.out.get_mut(&route) else { return };
        if outflow.context.is_none() && outflow.next_len().is_some() {
            let traffic = self.traffic.get(&route).copied().unwrap_or_default();
            if !self.open(now, engine, route, traffic) {
                return;
            }
        }
        let Some(outflow) = self.out.get_mut(&route) else { return };
        if let (Err(_), Some(id)) = (outflow.write(now, engine), outflow.context) {
            // It takes no more, and its end has not been told yet: not for ever.
            self.closing.set_once(id, now + self.config.leave_max);
        }
        if outflow.awaits_members() {
            self.members_wait.insert(route);
        }
        self.look_for_rest(now, route);
    }

    /// Ends the messages to reliable groups that all members have. Status of members makes no event
    /// of its own, so this is looked at with every turn in which one waits.
    pub(super) fn look_at_members(&mut self, now: Time, engine: &mut Engine) {
        for route in self.members_wait.iter().copied().collect::<Vec<Route>>() {
            let Some(outflow) = self.out.get_mut(&route).filter(|flow| flow.awaits_members())
            else {
                self.members_wait.remove(&route);
                continue;
            };
            let members = outflow.context.and_then(|id| engine.members(id).ok());
            let mut ended = Ended::new();
            outflow.settle_reached(&members.unwrap_or_default(), &mut self.ledger, &mut ended);
            if !ended.is_empty() {
                self.ended.extend(ended);
                self.go_on(now, engine, route);
            }
        }
    }

    /// Opens the association of a route; false when that has to wait.
    fn open(&mut self, now: Time, engine: &mut Engine, route: Route, traffic: Traffic) -> bool {
        let Some(outflow) = self.out.get_mut(&route) else { return false };
        if route.reach == Reach::Group {
            let ready_at = outflow.pace.ready_at(traffic);
            if ready_at > now {
                self.paced.set(route, ready_at);
                return false;
            }
            outflow.pace.take(now, traffic, outflow.next_len().unwrap_or(0));
        }
        let open = opening(route, &self.config, traffic);
        let opened = match route.reach {
            Reach::ReliableGroup => engine.open_group(now, &open, &self.config.group_policy),
            Reach::Host | Reach::Group => engine.open(now, &open),
        };
        match opened {
            Ok(id) => {
                outflow.context = Some(id);
                self.routes.insert(id, route);
            }
            Err(error) => {
                let cause = Cause::NotOpened(error);
                self.lose(route, Loss { cause, is_certain: true, keeps_waiting: false });
            }
        }
        true
    }

    /// Notes that all is done, and that there is room.
    fn look_for_rest(&mut self, now: Time, route: Route) {
        let config = self.config;
        let Some(outflow) = self.out.get_mut(&route) else { return };
        if outflow.is_at_rest() {
            self.resting.set_once(route, now + config.idle_max);
        }
        let (messages, bytes) = (config.messages_max, config.waiting_bytes_max);
        if outflow.wants_room.is_some_and(|len| outflow.has_room(len, messages, bytes)) {
            outflow.wants_room = None;
            self.tidings.push_back(Event::Room(route));
        }
    }

    /// Something has happened to the association of a route.
    pub(super) fn handle_outgoing(
        &mut self,
        now: Time,
        engine: &mut Engine,
        route: Route,
        event: dacapo_xtp::Event,
    ) {
        use dacapo_xtp::Event as E;
        match event {
            E::Opened(_) => {
                if let Some(outflow) = self.out.get_mut(&route) {
                    outflow.is_opened = true;
                }
            }
            E::Left(_, member, _) => {
                if let Some(outflow) = self.out.get_mut(&route) {
                    outflow.lose_member(&member);
                }
            }
            E::Readable(id) => self.hear(now, engine, route, id),
            E::Ended(id, end) => self.end(now, engine, route, id, end),
            E::Incoming { .. }
            | E::Writable(_)
            | E::Delivered(_)
            | E::Remark(..)
            | E::Joined(..) => {}
        }
        self.go_on(now, engine, route);
    }

    /// Reports have come. Groups make none.
    fn hear(&mut self, now: Time, engine: &mut Engine, route: Route, id: ContextId) {
        let Some(outflow) = self.out.get_mut(&route) else { return };
        if route.reach != Reach::Host {
            return;
        }
        let mut ended = Ended::new();
        let heard = outflow.read_reports(now, engine, &mut self.ledger, &mut ended);
        self.ended.extend(ended);
        let (cause, is_certain) = match heard {
            Ok(Heard::Nothing) => return,
            Ok(Heard::LetGo(let_go)) => (Cause::LetGo(let_go), true),
            Ok(Heard::Over) => (Cause::Ended(End::Aborted), false),
            Err(_) => (Cause::Malformed, false),
        };
        // Who only needed the room, or reports no more, takes messages again when they come.
        let keeps_waiting =
            matches!(cause, Cause::LetGo(LetGo::Rested) | Cause::Ended(End::Aborted));
        self.lose(route, Loss { cause, is_certain, keeps_waiting });
        self.routes.remove(&id);
        self.closing.remove(id);
        self.close_streams(now, engine, id);
    }

    /// The association is over; the last reports may still be unread.
    fn end(&mut self, now: Time, engine: &mut Engine, route: Route, id: ContextId, end: End) {
        self.hear(now, engine, route, id);
        let is_settled = !self.routes.contains_key(&id);
        self.leaving.remove(id);
        self.cut_off(now, engine, id);
        let Some(outflow) = self.out.get_mut(&route).filter(|_| !is_settled) else { return };
        if route.reach == Reach::Group && end == End::Complete {
            let mut ended = Ended::new();
            outflow.settle_sent(&mut self.ledger, &mut ended);
            return self.ended.extend(ended);
        }
        let is_refused = matches!(end, End::Refused(..)) || route.reach == Reach::ReliableGroup;
        let is_certain = !outflow.is_opened && is_refused;
        let keeps_waiting = outflow.is_opened;
        self.lose(route, Loss { cause: Cause::Ended(end), is_certain, keeps_waiting });
    }

    fn lose(&mut self, route: Route, loss: Loss) {
        if let Some(outflow) = self.out.get_mut(&route) {
            let mut ended = Ended::new();
            outflow.settle_lost(loss, &mut self.ledger, &mut ended);
            self.ended.extend(ended);
        }
    }

    /// The association is given up at once.
    pub(super) fn cut_off(&mut self, now: Time, engine: &mut Engine, id: ContextId) {
        self.routes.remove(&id);
        self.closing.remove(id);
        self.release(now, engine, id);
    }

    /// The route that has rested longest gives its room away; false when none rests.
    fn rest_oldest(&mut self, now: Time, engine: &mut Engine) -> bool {
        let oldest = self.resting.pop();
        oldest.inspect(|route| self.rest(now, engine, *route)).is_some()
    }

    /// Closes the association of a route on which every ticket has ended.
    pub(super) fn rest(&mut self, now: Time, engine: &mut Engine, route: Route) {
        let context = self.out.get(&route).and_then(|outflow| outflow.context);
        self.forget(route);
        if let Some(id) = context {
            self.routes.remove(&id);
            self.closing.remove(id);
            self.close_streams(now, engine, id);
        }
    }

    fn forget(&mut self, route: Route) {
        self.out.remove(&route);
        self.resting.remove(route);
        self.paced.remove(route);
        self.members_wait.remove(&route);
    }
}

fn limits(traffic: Traffic) -> Limits {
    Limits { out_rate: traffic.rate, out_burst: traffic.burst, ..Limits::default() }
}

fn opening(route: Route, config: &Config, traffic: Traffic) -> Open {
    let destination = SocketAddr::new(route.peer.ip(), route.port);
    let mode = dacapo_xtp::Mode {
        fast_report: true,
        without_check: config.without_check,
        sort: Some(route.priority),
        limits: limits(traffic),
        ..dacapo_xtp::Mode::default()
    };
    Open {
        peer: route.peer,
        ends: Some((destination, config.source)),
        service: service_of(route.reach),
        mode,
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { messages, bytes } => write!(
                f,
                "{messages} messages or {bytes} bytes of this route wait; send again after Room"
            ),
            Self::Routes { count } => {
                write!(f, "{count} routes are in use and none rests; wait for messages to end")
            }
            Self::Unheard { count } => {
                write!(f, "{count} messages have ended and nobody has heard; poll the events")
            }
            Self::Closed => f.write_str("the service was closed"),
        }
    }
}

impl std::error::Error for SendError {}
