//! Receiving: time moves on, who came is accepted, and every stream has its turn.

use super::Sim;
use crate::stream::Intake;
use crate::{Incoming, RecvOutcome};
use dacapo_base::Time;
use dacapo_packet::Pool;

impl Sim {
    pub(super) fn recv_from_streams(
        &mut self,
        now: Time,
        pool: &mut Pool,
        into: &mut Vec<Incoming>,
    ) -> RecvOutcome {
        self.net.advance(now);
        while let Some((wire, remote)) = self.net.accept(self.local()) {
            self.streams.accepted(wire, [self.local(), remote], now);
        }
        let mut intake = Intake::new(now, pool, into);
        for index in self.streams.places() {
            let is_writable = self.streams.connection(index).is_some_and(super::Wire::is_writable);
            if is_writable && self.streams.wants_write(index) {
                intake.outcome.writable |= self.streams.handle_writable(index);
            }
            self.streams.enqueue(index);
        }
        self.streams.recv(&mut intake);
        self.settle_watches();
        intake.outcome
    }

    /// Nothing is watched, so whose wish to write has changed is of no interest.
    pub(super) fn settle_watches(&mut self) {
        while self.streams.poll_watch().is_some() {}
    }
}
