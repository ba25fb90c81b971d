//! Receiving: what the poller says is passed to the streams, which read in turn.
//!
//! What it is not: a parser; see [`crate::stream`].

use super::Tcp;
use super::streams::Place;
use crate::stream::Intake;
use crate::{Incoming, RecvOutcome};
use dacapo_base::Time;
use dacapo_packet::Pool;
use std::time::Duration;

impl Tcp {
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
        self.settle_watches();
        intake.outcome
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
            if let Place::Door(index) = Place::of_token(event.token) {
                self.accept(index, intake.now);
            }
        }
        self.events = events;
    }
}
