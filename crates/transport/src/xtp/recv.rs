//! Receiving: packets go to the engine, what it tells is told to the streams, and the streams read
//! in turn.
//!
//! Decoder: any datagram moves its own association only, makes a new one, or is dropped and
//! counted.
//!
//! Invariants: one call reads at most [`dacapo_io::READS_MAX`] arrivals and about
//! [`crate::RECV_BYTES_MAX`] bytes per socket; what somebody new may make this end keep is bounded
//! (see [`super`]).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::Xtp;
use super::links::Told;
use super::stream_of::{StreamOf, lock};
use crate::stream::Intake;
use crate::{Incoming, RECV_BYTES_MAX, RecvOutcome};
use dacapo_base::{Address, Time};
use dacapo_io::{Came, Round};
use dacapo_packet::Pool;
use dacapo_sys::udp::Recv;

impl Xtp {
    pub(super) fn recv_from_links(
        &mut self,
        now: Time,
        pool: &mut Pool,
        into: &mut Vec<Incoming>,
    ) -> RecvOutcome {
        let mut intake = Intake::new(now, pool, into);
        self.now = now;
        self.sockets.look();
        let told = lock(&self.links).handle_time(now);
        told.into_iter().for_each(|told| self.tell(told, &mut intake.outcome));
        let may_have_more = self.read_sockets();
        self.settle(&mut intake.outcome);
        self.hand_up_datagrams(&mut intake);
        self.streams.recv(&mut intake);
        let more_of_datagrams = self.has_arrivals_for_now() && !intake.outcome.blocked;
        self.settle(&mut intake.outcome);
        intake.outcome.more |= may_have_more || more_of_datagrams || self.is_unsent;
        intake.outcome
    }

    /// Reads what the sockets have; true when there may be more.
    fn read_sockets(&mut self) -> bool {
        let mut round = Round::new(RECV_BYTES_MAX);
        while let Some(came) = self.sockets.read(&mut round, &mut self.buffer) {
            match came {
                Came::Train { at, recv, .. } => self.handle_train(at, &recv),
                Came::Refused => self.handle_refused(),
            }
        }
        round.may_have_more()
    }

    fn handle_train(&mut self, at: usize, recv: &Recv) {
        let bytes = self.buffer.get(..recv.len).unwrap_or_default();
        let segment_len = recv.segment_size.map_or(recv.len, usize::from).max(1);
        let mut links = lock(&self.links);
        for datagram in bytes.chunks(segment_len) {
            links.handle_datagram(at, recv.from, datagram);
        }
    }

    /// The network says that nobody listens.
    pub(super) fn handle_refused(&mut self) {
        let told = lock(&self.links).handle_refused();
        if let Some(told) = told {
            self.tell(told, &mut RecvOutcome::default());
        }
    }

    /// Tells the streams what has happened to their associations, and sends what those have.
    pub(super) fn settle(&mut self, outcome: &mut RecvOutcome) {
        loop {
            let told = lock(&self.links).poll_told();
            let Some(told) = told else { break };
            self.tell(told, outcome);
        }
        self.close_left();
        self.transmit();
        // Packets that left made room, and what ended by the last word is told.
        loop {
            let told = lock(&self.links).poll_told();
            let Some(told) = told else { break };
            self.tell(told, outcome);
        }
        // Sockets are watched here, not streams.
        while self.streams.poll_watch().is_some() {}
    }

    pub(super) fn tell(&mut self, told: Told, outcome: &mut RecvOutcome) {
        match told {
            Told::Incoming { number, remote, door } => {
                let Some(local) = self.sockets.local(door) else { return };
                let stream = StreamOf::new(&self.links, number);
                let place =
                    self.streams.accepted(stream, [local, remote].map(Address::from), self.now);
                self.set_place(number, place);
            }
            Told::Writable { number } => {
                let Some(place) = self.place_of(number) else { return };
                let mut links = lock(&self.links);
                if links.flush_rest(number)
                    && let Some(link) = links.link(number)
                {
                    outcome.writable |= std::mem::take(&mut link.is_awaited);
                }
                drop(links);
                outcome.writable |= self.streams.handle_writable(place);
            }
            Told::Readable { number } => {
                if let Some(place) = self.place_of(number) {
                    self.streams.enqueue(place);
                }
            }
        }
    }

    pub(super) fn set_place(&mut self, number: usize, place: usize) {
        if let Some(link) = lock(&self.links).link(number) {
            link.place = place;
        }
    }

    /// The place of an association that the table of streams holds.
    pub(super) fn place_of(&self, number: usize) -> Option<usize> {
        lock(&self.links).link(number).filter(|link| !link.is_left).map(|link| link.place)
    }

    /// Ends associations that the table of streams has let go, and counts what was dropped.
    pub(super) fn close_left(&mut self) {
        let mut links = lock(&self.links);
        links.close_left();
        self.streams.stats.drops.add(&links.take_drops());
    }
}
