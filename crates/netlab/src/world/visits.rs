//! The double visit: a core looks at those of its parts that are ready, and a world looks at all of
//! them besides.
//!
//! ```text
//!   settle --> when is the next? --> visit all --> nothing sent, nothing told, no earlier next
//! ```
//!
//! A part that sleeps although something of it is due does it then, and the world stops. One may
//! be due later than it was put to sleep for: a peer that has been heard meanwhile wakes too early,
//! and finds that out. Else looking changes nothing, so runs with and without it have one trace;
//! that has a test of its own.

use super::World;
use std::time::Duration;

/// With more parts than this, all are looked at less often: so that a world costs at most a part
/// more.
const PARTS_PER_STEP: u64 = 16;

impl World {
    /// From now on everything is looked at besides what is ready at each so many steps, or never
    /// with 0. A new world begins as `DACAPO_VISIT_EVERY` says, or with 5.
    pub fn set_steps_per_visit(&mut self, steps: u64) {
        self.steps_per_visit = steps;
    }

    /// Looks at everything, of which nothing may come.
    pub(super) fn visit_all(&mut self) {
        if self.steps_per_visit == 0 {
            return;
        }
        let parts = self.nodes.iter().map(|node| node.core.sessions().count() as u64).sum::<u64>();
        if !self.steps.is_multiple_of(self.steps_per_visit + parts / PARTS_PER_STEP) {
            return;
        }
        let next = self.next_time();
        // Who is due already is looked at next, and does something.
        if next.is_some_and(|at| at <= self.now + Duration::from_nanos(1)) {
            return;
        }
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            if node.killed {
                continue;
            }
            let (local, had_events) = (node.clock.local(self.now), node.core.has_events());
            node.core.visit_all(local);
            let has_sent = self.drain(index);
            let has_events = self.nodes[index].core.has_events();
            assert!(
                !has_sent && has_events == had_events,
                "node {index} was not ready at {:?} and had something to do",
                self.now
            );
        }
        let (then, at) = (self.next_time(), self.now);
        let is_earlier = then.is_some_and(|then| next.is_none_or(|next| then < next));
        assert!(!is_earlier, "due at {next:?}, and at {then:?} when looked at, at {at:?}");
    }
}
