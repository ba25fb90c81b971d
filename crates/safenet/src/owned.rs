//! [`MessageService`]: [`Messages`] with an engine of their own, driven as the engine is.
//!
//! Who has an engine already, as a host that turns it has, gives it to [`Messages`] with each call.

use crate::config::{Config, Mode, Route, Traffic};
use crate::inflow::Part;
use crate::service::{Event, JoinError, Messages, SendError};
use crate::ticket::Ticket;
use dacapo_base::Time;
use dacapo_xtp::{Engine, ListenError};
use std::net::SocketAddr;

/// The message service of a host and its engine of XTP.
#[derive(Debug)]
pub struct MessageService {
    engine: Engine,
    messages: Messages,
}

impl MessageService {
    /// A service without listeners and associations.
    #[must_use]
    pub fn new(config: Config, engine: Engine) -> Self {
        Self { engine, messages: Messages::new(config) }
    }

    /// The engine, to look at.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The service, to look at.
    #[must_use]
    pub const fn messages(&self) -> &Messages {
        &self.messages
    }

    /// A packet has come from this address, the one below XTP.
    pub fn handle_packet(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) {
        self.engine.handle_packet(now, from, bytes);
        self.messages.handle_turn(now, &mut self.engine);
    }

    /// Time goes on.
    pub fn handle_time(&mut self, now: Time) {
        self.engine.handle_time(now);
        self.messages.handle_turn(now, &mut self.engine);
    }

    /// Appends the next packet to `into` and gives its destination.
    pub fn poll_packet(&mut self, now: Time, into: &mut Vec<u8>) -> Option<SocketAddr> {
        loop {
            let to = self.engine.poll_packet(now, into);
            if to.is_some() || !self.messages.handle_turn(now, &mut self.engine) {
                return to;
            }
        }
    }

    /// When [`MessageService::handle_time`] has something to do; asked when
    /// [`MessageService::poll_packet`] has nothing.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.engine.deadline().min(self.messages.deadline())
    }

    /// The next thing that a user may want to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.messages.poll_event()
    }

    /// See [`Messages::listen`].
    ///
    /// # Errors
    /// [`ListenError::Taken`].
    pub fn listen(&mut self, port: u16) -> Result<(), ListenError> {
        self.messages.listen(&mut self.engine, port)
    }

    /// See [`Messages::join_group`].
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join_group(&mut self, now: Time, group: SocketAddr, port: u16) -> Result<(), JoinError> {
        self.messages.join_group(now, &mut self.engine, group, port)
    }

    /// See [`Messages::unlisten`].
    pub fn unlisten(&mut self, port: u16) {
        self.messages.unlisten(&mut self.engine, port);
    }

    /// See [`Messages::send_message`].
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_message(
        &mut self,
        now: Time,
        route: Route,
        mode: Mode,
        data: Vec<u8>,
    ) -> Result<Ticket, SendError> {
        self.messages.send_message(now, &mut self.engine, route, mode, data)
    }

    /// See [`Messages::get_message`].
    pub fn get_message(&mut self, now: Time, port: u16) -> Option<Part> {
        self.messages.get_message(now, &mut self.engine, port)
    }

    /// See [`Messages::set_traffic`].
    ///
    /// # Errors
    /// [`SendError::Routes`].
    pub fn set_traffic(
        &mut self,
        now: Time,
        route: Route,
        traffic: Traffic,
    ) -> Result<(), SendError> {
        self.messages.set_traffic(now, &mut self.engine, route, traffic)
    }

    /// See [`Messages::abandon`].
    pub fn abandon(&mut self, now: Time, route: Route) {
        self.messages.abandon(now, &mut self.engine, route);
    }

    /// See [`Messages::close`].
    pub fn close(&mut self, now: Time) {
        self.messages.close(now, &mut self.engine);
    }
}
