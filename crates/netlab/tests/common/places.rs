//! [`Places`]: a sink that has room for so many units, and what it sees.

use dacapo_base::Time;
use dacapo_core::{Ending, Ledger, Port, Sink, Taken, UnitView};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub struct Places(Box<dyn Sink>, Arc<AtomicU64>);

impl Sink for Places {
    fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken {
        let left = self.1.load(Ordering::Relaxed);
        self.1.store(left.saturating_sub(1), Ordering::Relaxed);
        self.0.handle_unit(now, unit)
    }

    fn has_capacity(&self) -> bool {
        self.1.load(Ordering::Relaxed) > 0
    }

    fn handle_lost(&mut self, now: Time, first: u64, count: u64) {
        self.0.handle_lost(now, first, count);
    }

    fn finish(&mut self, now: Time, ending: &Ending, ledger: &Ledger) {
        self.0.finish(now, ending, ledger);
    }
}

/// The sink of the first flow has no place until it is given some.
pub fn with_places(ports: &mut [Option<Port>]) -> Arc<AtomicU64> {
    let places = Arc::new(AtomicU64::new(0));
    if let Some(Some(Port::Sink(sink))) = ports.first_mut().map(Option::take) {
        ports[0] = Some(Port::Sink(Box::new(Places(sink, Arc::clone(&places)))));
    }
    places
}
