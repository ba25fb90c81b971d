//! Receiving: what the poller says is passed to the streams, which read in turn.

use super::accepting::Place;
use super::{Connections, Listener};
use crate::stream::table::{Connection, Intake};
use crate::{Incoming, RecvOutcome};
use dacapo_base::Time;
use dacapo_packet::Pool;
use std::time::Duration;

impl<L: Listener> Connections<L> {
    pub(super) fn recv_from_streams(
        &mut self,
        now: Time,
        pool: &mut Pool,
        into: &mut Vec<Incoming>,
    ) -> RecvOutcome {
        let mut intake = Intake::new(now, pool, into);
        self.end_pauses(now);
        self.collect_ready(&mut intake);
        self.streams.recv(&mut intake);
        self.write_where_room_is(&mut intake);
        self.settle_watches();
        intake.outcome
    }

    /// Writes what waited where the other end has made room. What told so may have been taken by
    /// the reading of the same stream, so all are asked, after it.
    fn write_where_room_is(&mut self, intake: &mut Intake<'_>) {
        let has_capacity = |index: &usize| {
            self.streams.connection(*index).is_some_and(Connection::has_capacity)
                && self.streams.wants_write(*index)
        };
        let free: Vec<usize> = self.full.iter().copied().filter(has_capacity).collect();
        for index in free {
            intake.outcome.writable |= self.streams.handle_writable(index);
        }
    }

    /// Asks which sockets are ready: accepts, writes what waited, and queues what can be read.
    fn collect_ready(&mut self, intake: &mut Intake<'_>) {
        let mut events = std::mem::take(&mut self.events);
        if self.poller.wait(Some(Duration::ZERO), &mut events).is_err() {
            self.streams.stats.errors += 1;
        }
        // Streams first: a place that becomes free in this turn must not get the event of another.
        for event in &events {
            let Place::Stream(index) = Place::of_token(event.token) else { continue };
            if event.writable {
                intake.outcome.writable |= self.streams.handle_writable(index);
            }
            if event.readable || event.closed {
                self.streams.enqueue(index);
            }
        }
        for event in &events {
            if let Place::Listener(index) = Place::of_token(event.token) {
                self.accept(index, intake.now);
            }
        }
        self.events = events;
    }
}
