//! [`MessageHost`]: the service, a host, and the calls that wait.
//!
//! ```text
//!   call -> try at the service -> done? return, and what it has written leaves
//!              ^                  not, and the last turn began after the time? it is over
//!              `----------------- turn: at most until the time
//! ```
//!
//! While one call waits, all messages go on; between two calls nothing does, and peers are held up
//! by XTP's window.
//!
//! Invariants: whatever a peer does or does not, a call ends by its time. Of a message that was
//! accepted the caller has the ticket, and what was taken it has: what goes wrong after that is
//! told by the next call.

use crate::fault::{Awaited, CallError};
use crate::heard::{ANSWERS_MAX, ENDS_MAX, Heard};
use crate::watch::{Ended, WATCH_MAX, Watch};
use dacapo_base::Time;
use dacapo_safenet::{
    Config, Ending, Event, Messages, Mode, Outcome, Part, Reach, Route, SendError, Ticket, Traffic,
};
use dacapo_xtp::ListenError;
use dacapo_xtp_net::{Group, Host, HostError, JoinError};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// The longest that is waited at once.
const SLICE: Duration = Duration::from_secs(1);

/// The message service over a network.
pub struct MessageHost {
    host: Host,
    messages: Messages,
    heard: Heard,
    watch: Watch,
    /// What went wrong when the work of a call was done, until the next call tells it.
    failure: Option<HostError>,
}

impl MessageHost {
    /// A service without listeners on the engine of a host.
    #[must_use]
    pub fn new(host: Host, config: Config) -> Self {
        Self {
            host,
            messages: Messages::new(config),
            heard: Heard::default(),
            watch: Watch::default(),
            failure: None,
        }
    }

    /// The address of this end, below XTP.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.host.local()
    }

    /// The host, to look at its counters, or to have it watch a descriptor whose readiness ends
    /// waits ([`CallError::Interrupted`]).
    pub const fn host(&mut self) -> &mut Host {
        &mut self.host
    }

    /// The service, to look at its sums and counters.
    #[must_use]
    pub const fn messages(&self) -> &Messages {
        &self.messages
    }

    /// The time after this long, for calls.
    #[must_use]
    pub fn after(&self, wait: Duration) -> Time {
        self.host.after(wait)
    }

    /// Takes messages at a port of XTP, from hosts and from groups.
    ///
    /// # Errors
    /// [`ListenError::Taken`].
    pub fn listen(&mut self, port: u16) -> Result<(), ListenError> {
        self.messages.listen(self.host.engine(), port)
    }

    /// Joins a group with repair to which somebody may send already, at a port that is listened on;
    /// [`Event::Joined`] or [`Event::NotJoined`] answers, with the address as it is here. The
    /// network has to hear it ([`MessageHost::join`]).
    ///
    /// # Errors
    /// [`CallError::Address`], [`CallError::Join`], [`CallError::Unheard`]; no event follows.
    pub fn join_group(&mut self, group: SocketAddr, port: u16) -> Result<(), CallError> {
        let known = self.host.address(group).map_err(CallError::Address)?;
        // An answer of before is to what was asked before.
        self.hear();
        let count = self.heard.answers_waiting();
        if count >= ANSWERS_MAX {
            return Err(CallError::Unheard { count });
        }
        let now = self.host.now();
        let asked = self.messages.join_group(now, self.host.engine(), known, port);
        asked.map_err(|error| CallError::Join { group, port, error })?;
        self.heard.ask(known, port, group);
        Ok(())
    }

    /// Takes what is sent to a group of the network.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(&mut self, group: Group) -> Result<(), JoinError> {
        self.host.join(group)
    }

    /// BURST and RATE of a route, from now on.
    ///
    /// # Errors
    /// [`CallError::Address`], [`CallError::Traffic`].
    pub fn set_traffic(&mut self, route: Route, traffic: Traffic) -> Result<(), CallError> {
        let (route, now) = (self.known(route)?, self.host.now());
        let set = self.messages.set_traffic(now, self.host.engine(), route, traffic);
        set.map_err(|error| CallError::Traffic { route, error })
    }

    /// SEND_MESSAGE, asynchronous: returns when the message is accepted, which is at once while
    /// there is room on its route. [`MessageHost::wait`] or [`MessageHost::poll_event`] tell its
    /// end.
    ///
    /// # Errors
    /// [`CallError`]; the message was not accepted, and has no ticket.
    pub fn send_message(
        &mut self,
        route: Route,
        data: Vec<u8>,
        until: Time,
    ) -> Result<Ticket, CallError> {
        self.accept(route, Mode::Asynchronous, data, until)
    }

    /// SEND_MESSAGE, synchronous: returns when the peer's user has all of the message, or it has
    /// come to another end.
    ///
    /// # Errors
    /// [`CallError`]. When it has a ticket ([`CallError::ticket`]) the message is under way:
    /// [`MessageHost::wait`] goes on with it, [`MessageHost::abandon`] gives it up. Otherwise it
    /// was not accepted.
    pub fn send_message_and_wait(
        &mut self,
        route: Route,
        data: Vec<u8>,
        until: Time,
    ) -> Result<Outcome, CallError> {
        let ticket = self.accept(route, Mode::Synchronous, data, until)?;
        self.wait(ticket, until)
    }

    /// Waits for the end of a message.
    ///
    /// # Errors
    /// [`CallError`]; the message is under way still, unless it is [`CallError::NotOpen`].
    pub fn wait(&mut self, ticket: Ticket, until: Time) -> Result<Outcome, CallError> {
        if let Some(outcome) = self.heard.take_end(ticket) {
            return Ok(outcome);
        }
        let route = self.heard.route_of(ticket).ok_or(CallError::NotOpen(ticket))?;
        self.repeat(until, Awaited::End(ticket, route), |this| this.heard.take_end(ticket))
    }

    /// GET_MESSAGE: the most urgent message that has come to a port, or the next part of a long
    /// one. With a time that is over it takes what has come, and does not wait.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn get_message(&mut self, port: u16, until: Time) -> Result<Part, CallError> {
        self.tell_failure(Awaited::Message { port })?;
        self.repeat(until, Awaited::Message { port }, |this| this.take_message(port))
    }

    /// The same of what the turns so far have brought, for who makes them: the network is not
    /// looked at. Nothing of it fails.
    pub fn take_message(&mut self, port: u16) -> Option<Part> {
        let now = self.host.now();
        let part = self.messages.get_message(now, self.host.engine(), port)?;
        let is_awaited = part.mode == Mode::Synchronous && part.reach == Reach::Host;
        if is_awaited && part.ending == Ending::Last {
            // Its sender waits for the word that has just been written.
            self.send_written();
        }
        Some(part)
    }

    /// Gives up every message of a route: what waits fails, what is under way is unknown.
    ///
    /// # Errors
    /// [`CallError::Address`].
    pub fn abandon(&mut self, route: Route) -> Result<(), CallError> {
        let (route, now) = (self.known(route)?, self.host.now());
        self.messages.abandon(now, self.host.engine(), route);
        self.send_written();
        Ok(())
    }

    /// The next thing that was told and not asked for by a call: ends of messages that nobody
    /// waited for, messages that have come, room.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.hear();
        self.heard.take_any()
    }

    /// Does what there is to do, or waits for it at most this long.
    ///
    /// # Errors
    /// [`HostError`], also one that came when a call before was done.
    pub fn turn(&mut self, most: Duration) -> Result<(), HostError> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let now = self.host.now();
        let due = self.messages.deadline();
        let most = if due == Time::NEVER { most } else { most.min(due.since(now)) };
        self.wait_for_packets(now, most)?;
        self.messages.handle_turn(self.host.now(), self.host.engine());
        self.hear();
        Ok(())
    }

    /// Ends the service: every message ends, peers are told, and waits until they know.
    ///
    /// # Errors
    /// [`CallError::TimedOut`] when not all have said so in time, [`CallError::Host`].
    pub fn close(&mut self, until: Time) -> Result<(), CallError> {
        let now = self.host.now();
        self.messages.close(now, self.host.engine());
        self.repeat(until, Awaited::Close, |this| this.messages.is_quiet().then_some(()))?;
        // What was written last leaves.
        let left = self.turn(Duration::ZERO);
        left.map_err(|error| CallError::Host { error, awaited: Some(Awaited::Close) })
    }

    fn accept(
        &mut self,
        route: Route,
        mode: Mode,
        data: Vec<u8>,
        until: Time,
    ) -> Result<Ticket, CallError> {
        let route = self.known(route)?;
        self.tell_failure(Awaited::Capacity(route))?;
        let count = self.heard.ends_waiting();
        if count >= ENDS_MAX {
            return Err(CallError::Send { route, error: SendError::Unheard { count } });
        }
        self.repeat(until, Awaited::Capacity(route), |this| {
            this.messages.has_capacity(route, data.len()).then_some(())
        })?;
        let now = self.host.now();
        let sent = self.messages.send_message(now, self.host.engine(), route, mode, data);
        let ticket = sent.map_err(|error| CallError::Send { route, error })?;
        self.heard.open(ticket, route);
        self.send_written();
        Ok(ticket)
    }

    /// What a call has written leaves. The call has done its work: the next one tells a failure.
    fn send_written(&mut self) {
        if let Err(error) = self.turn(Duration::ZERO) {
            self.failure = Some(error);
        }
    }

    /// Tells what went wrong when the call before was done.
    fn tell_failure(&mut self, awaited: Awaited) -> Result<(), CallError> {
        self.failure
            .take()
            .map_or(Ok(()), |error| Err(CallError::Host { error, awaited: Some(awaited) }))
    }

    /// The same route with the one form that the network has of its peer's address.
    fn known(&self, route: Route) -> Result<Route, CallError> {
        let peer = self.host.address(route.peer).map_err(CallError::Address)?;
        Ok(Route { peer, ..route })
    }

    /// A turn of the host, which watches first where that is worth it, until there is anything to
    /// do: the service is to hear of it before anybody sleeps.
    fn wait_for_packets(&mut self, began: Time, most: Duration) -> Result<(), HostError> {
        if most.is_zero() {
            return self.host.turn(most);
        }
        let before = self.host.counters().packets_received;
        let end = began + most;
        let mut has_worked = false;
        if self.watch.is_worth(began) {
            let watched = end.min(began + WATCH_MAX);
            while !has_worked && self.host.now() < watched {
                has_worked = self.host.look()?;
            }
        }
        if !has_worked {
            self.host.turn(end.since(self.host.now()))?;
        }
        let ended = match self.host.counters().packets_received > before {
            true => Ended::Packets,
            false if has_worked => Ended::Work,
            false => Ended::Time,
        };
        self.watch.waited(self.host.now().since(began), ended);
        Ok(())
    }

    fn hear(&mut self) {
        while let Some(event) = self.messages.poll_event() {
            self.heard.hear(event);
        }
    }

    /// Tries until it succeeds or the time is over; what has come by then counts.
    fn repeat<T>(
        &mut self,
        until: Time,
        awaited: Awaited,
        attempt: impl Fn(&mut Self) -> Option<T>,
    ) -> Result<T, CallError> {
        let mut is_over = false;
        loop {
            if let Some(done) = attempt(self) {
                return Ok(done);
            }
            if is_over {
                let fault = awaited.route().and_then(|route| self.host.fault_of(route.peer));
                return Err(CallError::TimedOut { awaited, fault });
            }
            let rest = until.since(self.host.now());
            is_over = rest.is_zero();
            let turned = self.turn(rest.min(SLICE));
            turned.map_err(|error| CallError::Host { error, awaited: Some(awaited) })?;
            if let Some(token) = self.host.take_alarm() {
                return Err(CallError::Interrupted { token, awaited });
            }
        }
    }
}

impl fmt::Debug for MessageHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageHost").field("local", &self.local()).finish_non_exhaustive()
    }
}
