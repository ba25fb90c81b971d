//! What a [`Reactor`] sends: transmits of its core, by transports and streams, and what the core
//! asks of both.
//!
//! ```text
//!   turn   --> send(All or Flows) --> poll_transmit, … --> transport | stream
//!   a call --> offer              --> poll_flows  -----------^
//! ```
//!
//! Invariants: a transport that takes no more keeps one transmit, and nothing is sent past it; what
//! is left over is a reason for a whole turn.

use super::{LINGER, RETRY, Reactor, Scope};
use dacapo_base::Time;
use dacapo_core::{GroupAsk, NetworkEvent, Offered, Request, SessionId, Transmit, Way};
use dacapo_transport::{Outgoing, SendError, Sent, TrafficClass};
use std::time::Duration;

/// Transmits of one turn before the sockets are read again.
const SEND_MAX: usize = 256;

impl Reactor {
    /// Hands a unit over to a flow, as [`dacapo_core::Core::offer`] does, and sends what may be
    /// sent, in the order of priority, until all of that flow has left: between two turns, for who
    /// hands over unit after unit. [`Offered::Sent`] when it has, and nothing else is to be done
    /// now.
    pub fn offer(&mut self, now: Time, id: SessionId, flow: usize, unit: &[u8]) -> Offered {
        self.idle_until = None;
        let offered = self.core.offer(now, id, flow, unit, &mut self.streams);
        match offered {
            Offered::NotNow => return offered,
            Offered::Sent => {}
            Offered::Taken if self.send_offered(now, id, flow) => {}
            Offered::Taken => return offered,
        }
        self.note_work(now);
        let is_busy = self.core.has_events() || self.core.is_touched();
        if is_busy && offered == Offered::Taken { Offered::Taken } else { Offered::Sent }
    }

    /// Sends until nothing of a flow waits; false when something may.
    fn send_offered(&mut self, now: Time, id: SessionId, flow: usize) -> bool {
        self.last_ready.sent();
        for _ in 0..SEND_MAX {
            if self.transports.is_any_full() {
                return false;
            }
            let Some(transmit) = self.core.poll_flows(now) else { return false };
            self.send_transmit(now, transmit);
            if !self.core.has_backlog(id, flow) {
                return true;
            }
        }
        false
    }

    /// Sends what may be sent; true when there may be more.
    pub(super) fn send(&mut self, now: Time, scope: Scope) -> bool {
        let more = self.send_all(now, scope);
        self.handle_requests(now);
        more
    }

    /// Does what the core asks for.
    pub(super) fn handle_requests(&mut self, now: Time) {
        while let Some(request) = self.core.poll_request() {
            match request {
                Request::Group(ask) => self.handle_group(now, ask),
                Request::Stream(ask) => {
                    let key = self.fresh_token();
                    self.streams.handle_ask(now, &mut self.core, &mut self.poller, ask, key);
                }
                Request::Lookup(look) => {
                    if self.streams.finds(&look) {
                        self.core.handle_network(now, NetworkEvent::Found(look));
                    }
                }
                Request::CloseData(remote) => self.transports.close_data(remote, now + LINGER),
            }
        }
        while self.streams.fallbacks.are_due() {
            let key = self.fresh_token();
            self.streams.dial_fallback(now, &mut self.core, &mut self.poller, key);
        }
    }

    /// Joins a group by the transport that was dialed to its source, or leaves it.
    fn handle_group(&mut self, now: Time, ask: GroupAsk) {
        let (GroupAsk::Join(membership) | GroupAsk::Leave(membership)) = ask;
        let token = self.transports.reaching(None, membership.source.into());
        let attached = token.and_then(|token| self.transports.get_mut(token));
        match (ask, attached) {
            (GroupAsk::Join(_), attached) => {
                let nobody = || Err("no transport reaches the source of the group".to_owned());
                let joined = attached.map(|it| it.transport.join(&membership));
                let result = joined.map_or_else(nobody, |it| it.map_err(|why| why.to_string()));
                self.core.handle_network(now, NetworkEvent::Joined(membership, result));
            }
            (GroupAsk::Leave(_), Some(attached)) => attached.transport.leave(&membership),
            (GroupAsk::Leave(_), None) => {}
        }
    }

    fn send_all(&mut self, now: Time, scope: Scope) -> bool {
        for (token, (transmit, taken)) in self.transports.take_retries(now) {
            self.send_one(now, token, transmit, taken);
        }
        for _ in 0..SEND_MAX {
            // A transport that is full holds all others up for a millisecond at most; it is the
            // device's queue that is full, and they share it.
            if self.transports.is_any_full() {
                self.core.touch();
                return false;
            }
            let transmit = match scope {
                Scope::All => self.core.poll_transmit(now),
                Scope::Flows => self.core.poll_flows(now),
            };
            let Some(transmit) = transmit else { return false };
            self.send_transmit(now, transmit);
        }
        self.core.touch();
        true
    }

    fn send_transmit(&mut self, now: Time, transmit: Transmit) {
        if let Way::Stream(stream) = transmit.way {
            return match self.streams.send(now, &mut self.core, stream, transmit, 0) {
                Ok(()) => {}
                Err(Some(error)) => self.count(&error),
                Err(None) => self.counters.unroutable += 1,
            };
        }
        match self.transports.reaching(transmit.local, transmit.remote) {
            Some(token) => self.send_one(now, token, transmit, 0),
            None => {
                self.counters.unroutable += 1;
                self.core.transmitted(transmit);
            }
        }
    }

    fn send_one(&mut self, now: Time, token: u64, transmit: Transmit, skip: usize) {
        let Some(attached) = self.transports.get_mut(token) else {
            return self.core.transmitted(transmit);
        };
        let is_data = transmit.way == Way::Data;
        if is_data && !attached.has_lane(transmit.remote) {
            let opened = attached.transport.open_data(transmit.remote);
            // Without a lane of its own, data goes the control way, but to a group there is none.
            if let (Err(error), true) = (opened, transmit.remote.is_group()) {
                attached.close_lane(transmit.remote);
                let (local, group) = (transmit.local, transmit.remote);
                self.core.handle_network(
                    now,
                    NetworkEvent::GroupClosed { local, group, reason: error.to_string() },
                );
                return self.core.transmitted(transmit);
            }
        }
        let (bytes, segment_len) = self.core.bytes(&transmit);
        let outgoing = Outgoing {
            lane: lane_of(transmit.way),
            remote: transmit.remote,
            bytes: bytes.get(skip..).unwrap_or_default(),
            segment_len,
            ecn: transmit.ecn,
        };
        match attached.transport.send(&outgoing) {
            Ok(Sent::All) => self.core.transmitted(transmit),
            Ok(Sent::Blocked { bytes_taken }) => {
                self.transports.keep(token, (transmit, skip + bytes_taken), now + RETRY);
            }
            Err(error) => {
                match error {
                    SendError::Refused if !attached.is_leaving() => {
                        self.core.handle_network(now, NetworkEvent::Refused(transmit.remote));
                    }
                    SendError::TooLarge { mtu } => {
                        self.core.handle_network(
                            now,
                            NetworkEvent::TooLarge { remote: transmit.remote, len: mtu },
                        );
                    }
                    _ => {}
                }
                self.count(&error);
                self.core.transmitted(transmit);
            }
        }
    }

    fn count(&mut self, error: &SendError) {
        let counter = match error {
            SendError::TooLarge { .. } => &mut self.counters.too_large,
            SendError::Refused | SendError::Unreachable => &mut self.counters.refused,
            _ => &mut self.counters.errors,
        };
        *counter += 1;
    }

    /// Sends what the end of sessions and connections has left, for at most `most`.
    pub fn flush(&mut self, most: Duration) {
        let end = self.now() + most;
        loop {
            let now = self.now();
            let more = self.send(now, Scope::All);
            let is_full = self.transports.is_any_full();
            if now >= end || !(more || is_full) {
                break;
            }
            if is_full {
                // Nothing is read here, so it is asked again when it is due.
                std::thread::sleep(RETRY);
            }
        }
    }
}

/// The lane of a transport that a transmit takes.
fn lane_of(way: Way) -> TrafficClass {
    match way {
        Way::Control => TrafficClass::Control,
        Way::Data | Way::Stream(_) => TrafficClass::Data,
    }
}
