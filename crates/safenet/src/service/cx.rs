//! [`Cx`]: what goes with each call into a part of the service, and [`Leaving`], the associations
//! that nobody has any more.

use super::Event;
use crate::config::Config;
use dacapo_base::Time;
use dacapo_xtp::{ContextId, Deadlines, Engine};
use std::collections::VecDeque;

/// Associations that only have to close, and how long they may.
#[derive(Debug, Default)]
pub struct Leaving(Deadlines<ContextId>);

impl Leaving {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is one.
    pub fn contains(&self, id: ContextId) -> bool {
        self.0.contains(id)
    }

    /// This is none any more.
    pub fn remove(&mut self, id: ContextId) {
        self.0.remove(id);
    }

    /// When the first has had its time.
    pub fn deadline(&self) -> Time {
        self.0.first()
    }

    /// Takes one that has had its time.
    pub fn pop_due(&mut self, now: Time) -> Option<ContextId> {
        self.0.pop_due(now)
    }
}

/// What goes with each call: the time, the engine, and where what is wanted of others goes.
pub struct Cx<'a> {
    pub now: Time,
    pub engine: &'a mut Engine,
    pub config: &'a Config,
    pub leaving: &'a mut Leaving,
    pub tidings: &'a mut VecDeque<Event>,
}

impl Cx<'_> {
    /// Both streams are done here: XTP closes the association when the peer agrees; of too many of
    /// them this one is cut off.
    pub fn close_streams(&mut self, id: ContextId) {
        // What is over already needs no more.
        let _ = self.engine.finish(self.now, id);
        let _ = self.engine.stop_reading(self.now, id);
        if self.leaving.0.len() < self.config.leaving_max {
            self.leaving.0.set(id, self.now + self.config.leave_max);
        } else {
            self.release(id);
        }
    }

    /// Nobody has this association any more.
    pub fn release(&mut self, id: ContextId) {
        // Released already is released.
        let _ = self.engine.release(self.now, id);
    }
}

/// For tests of parts: an engine, and what goes with calls beside it.
#[cfg(test)]
pub mod tests {
    use super::*;
    use dacapo_base::Random;
    use dacapo_xtp::Open;
    use std::net::SocketAddr;

    pub const NOW: Time = Time::from_millis(1_000);

    pub struct Bench {
        pub engine: Engine,
        pub config: Config,
        pub leaving: Leaving,
        pub tidings: VecDeque<Event>,
    }

    pub fn at(end: u8) -> SocketAddr {
        ([192, 0, 2, end], 4_040).into()
    }

    impl Bench {
        pub fn new() -> Self {
            let engine = Engine::new(dacapo_xtp::Config::default(), Random::from_number(7));
            let (leaving, tidings) = (Leaving::default(), VecDeque::new());
            Self { engine, config: Config::new(at(1)), leaving, tidings }
        }

        pub fn cx(&mut self, now: Time) -> Cx<'_> {
            let Self { engine, config, leaving, tidings } = self;
            Cx { now, engine, config, leaving, tidings }
        }
    }

    #[test]
    fn an_association_has_its_time_to_close_and_one_too_many_has_none() {
        let mut bench = Bench::new();
        bench.config.leaving_max = 1;
        let mut open = || bench.engine.open(NOW, &Open::stream(at(2), at(2), at(1)));
        let (one, other) = (open().expect("there is room"), open().expect("there is room"));
        bench.cx(NOW).close_streams(one);
        bench.cx(NOW).close_streams(other);
        assert!(bench.leaving.contains(one) && !bench.leaving.contains(other));
        assert!(bench.engine.status(one).is_ok() && bench.engine.status(other).is_err());
        let due = NOW + bench.config.leave_max;
        assert_eq!((bench.leaving.deadline(), bench.leaving.pop_due(NOW)), (due, None));
        assert_eq!(bench.leaving.pop_due(due), Some(one));
        bench.cx(NOW).close_streams(one);
        bench.leaving.remove(one);
        assert!(bench.leaving.is_empty());
    }
}
