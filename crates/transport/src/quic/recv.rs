//! Receiving: packets go to their connections, what those have for the streams is told, and the
//! streams read in turn.
//!
//! Decoder: any packet moves its own connection only, makes a new one, or is answered or dropped
//! without being kept.
//!
//! Invariants: one call reads at most [`dacapo_io::READS_MAX`] arrivals and about
//! [`crate::RECV_BYTES_MAX`] bytes per socket, as much as it hands up: what is more waits in the
//! kernel, and what that has no room for tells the sender to yield; what somebody new may make this
//! end keep is bounded (see [`super`]).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::Quic;
use super::links::Stir;
use super::marks::{departure, from_socket};
use crate::stream::{DIAL_WAIT, Intake, PREFACE_WAIT, Phase};
use crate::{Incoming, RECV_BYTES_MAX, RecvOutcome};
use bytes::BytesMut;
use dacapo_base::{Address, Time};
use dacapo_io::{Came, Round};
use dacapo_packet::Pool;
use dacapo_sys::udp::Recv;
use quinn_proto::{DatagramEvent, Transmit};
use std::net::SocketAddr;
use std::time::Duration;

impl Quic {
    pub(super) fn recv_from_links(
        &mut self,
        now: Time,
        pool: &mut Pool,
        into: &mut Vec<Incoming>,
    ) -> RecvOutcome {
        self.now = now;
        let mut intake = Intake::new(now, pool, into);
        self.sockets.look();
        let may_have_more = self.read_sockets();
        self.links.handle_timeout(now);
        self.settle(&mut intake.outcome);
        self.hand_up_datagrams(&mut intake);
        self.streams.recv(&mut intake);
        let more_of_datagrams = self.has_arrivals_for_now();
        self.settle(&mut intake.outcome);
        intake.outcome.more |= may_have_more || (more_of_datagrams && !intake.outcome.blocked);
        intake.outcome
    }

    /// Reads what the sockets have; true when there may be more.
    fn read_sockets(&mut self) -> bool {
        let mut round = Round::new(RECV_BYTES_MAX);
        while let Some(came) = self.sockets.read(&mut round, &mut self.buffer) {
            match came {
                Came::Train { at, local, recv } => self.handle_train(at, local, &recv),
                Came::Refused => self.links.handle_refused(),
            }
        }
        round.may_have_more()
    }

    fn handle_train(&mut self, at: usize, local: SocketAddr, recv: &Recv) {
        let mut bytes = BytesMut::from(self.buffer.get(..recv.len).unwrap_or_default());
        let segment_len = recv.segment_size.map_or(recv.len, usize::from).max(1);
        while !bytes.is_empty() {
            let datagram = bytes.split_to(segment_len.min(bytes.len()));
            self.handle_datagram(at, local, recv, datagram);
        }
    }

    fn handle_datagram(&mut self, at: usize, local: SocketAddr, recv: &Recv, bytes: BytesMut) {
        let instant = self.links.instant(self.now);
        let ecn = from_socket(recv.ecn);
        let mut answer = Vec::new();
        let endpoint = &mut self.links.endpoint;
        match endpoint.handle(instant, recv.from, None, ecn, bytes, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                self.links.handle_event(handle, event);
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(at, local, incoming),
            Some(DatagramEvent::Response(transmit)) => self.answer(at, &transmit, &answer),
            None => {}
        }
    }

    /// Takes a connection in. Nothing is kept for an address that has not been proved when many
    /// have shown no token: it is asked to come again (Retry).
    fn accept(&mut self, at: usize, local: SocketAddr, incoming: quinn_proto::Incoming) {
        let (instant, remote) = (self.links.instant(self.now), incoming.remote_address());
        let mut answer = Vec::new();
        let is_crowded = self.streams.unclaimed_count() >= self.config.retry_from;
        if is_crowded && !incoming.remote_address_validated() {
            match self.links.endpoint.retry(incoming, &mut answer) {
                Ok(transmit) => self.answer(at, &transmit, &answer),
                Err(error) => self.links.endpoint.ignore(error.into_incoming()),
            }
            return;
        }
        match self.links.endpoint.accept(incoming, instant, &mut answer, None) {
            Ok((handle, inner)) => {
                let stream = self.links.adopt(self.now, handle, inner, at);
                let place =
                    self.streams.accepted(stream, [local, remote].map(Address::from), self.now);
                // Who had to go for it must be closed before another place is given away.
                self.close_left();
                // The handshake takes its time, too; the preface is waited for from its end on.
                self.streams.set_preface_due(place, later(self.now, DIAL_WAIT));
                self.links.set_place(handle, place);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.answer(at, &transmit, &answer);
                }
            }
        }
    }

    /// Sends what belongs to no connection, where there is room for it.
    fn answer(&mut self, at: usize, transmit: &Transmit, bytes: &[u8]) {
        if self.sockets.has_capacity(at) {
            let bytes = bytes.get(..transmit.size).unwrap_or(bytes);
            self.sockets.send(at, &departure(transmit), bytes);
        }
    }

    /// Tells the streams what has happened to their connections, and sends what those have.
    pub(super) fn settle(&mut self, outcome: &mut RecvOutcome) {
        for handle in self.links.handles() {
            if let Some(stir) = self.links.poll(self.now, handle) {
                self.tell(handle, &stir, outcome);
            }
            outcome.more |= !self.links.transmit(self.now, handle, &mut self.sockets);
        }
        self.close_left();
        // Sockets are watched here, not streams.
        while self.streams.poll_watch().is_some() {}
    }

    fn tell(&mut self, handle: usize, stir: &Stir, outcome: &mut RecvOutcome) {
        let Some((place, stream)) =
            self.links.entry(handle).map(|entry| (entry.place, entry.stream.clone()))
        else {
            return;
        };
        let drops = &mut self.streams.stats.drops.queue_full;
        *drops = drops.saturating_add(stir.dropped);
        if stir.connected {
            self.streams.set_preface_due(place, later(self.now, PREFACE_WAIT));
        }
        if stir.writable {
            outcome.writable |= self.streams.handle_writable(place);
            outcome.writable |= std::mem::take(&mut stream.link().is_awaited);
        }
        if stir.readable {
            self.streams.enqueue(place);
        }
        if let Some((Phase::Open, _)) = self.streams.stage(place) {
            stream.link().handle_known(&self.config);
        }
    }

    /// Closes connections that the table of streams has let go.
    pub(super) fn close_left(&mut self) {
        let unread = self.links.close_left(self.now, &mut self.sockets);
        let drops = &mut self.streams.stats.drops.closed;
        *drops = drops.saturating_add(unread);
    }
}

/// Time adds without overflow.
#[allow(clippy::arithmetic_side_effects)]
fn later(now: Time, wait: Duration) -> Time {
    now + wait
}
