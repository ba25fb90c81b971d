//! The ends of flows: a source that always has another unit, and a sink that counts.

use dacapo_base::Time;
use dacapo_core::{
    BeginError, JoinRequest, Port, SessionProvider, Sink, Source, SourcePoll, Taken, UnitView,
    UnitWriter,
};
use dacapo_wire::session::FlowOffer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives the same bytes for ever.
pub struct Endless(Vec<u8>);

impl Endless {
    pub fn new(len: usize) -> Self {
        Self((0..len).map(|at| at as u8).collect())
    }
}

impl Source for Endless {
    fn poll_unit(&mut self, _: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        match unit.begin(self.0.len()) {
            Ok(()) => {
                unit.write(&self.0);
                SourcePoll::Unit
            }
            Err(BeginError::NoMemory) => SourcePoll::Blocked,
            Err(BeginError::TooLarge) => SourcePoll::Failed("a unit is too large".into()),
        }
    }
}

/// Counts units and their bytes.
#[derive(Clone, Default)]
pub struct Counts(Arc<[AtomicU64; 2]>);

impl Counts {
    /// Units that came whole.
    pub fn units(&self) -> u64 {
        self.0[0].load(Ordering::Relaxed)
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.0[1].load(Ordering::Relaxed)
    }
}

impl Sink for Counts {
    fn handle_unit(&mut self, _: Time, unit: &UnitView<'_>) -> Taken {
        self.0[0].fetch_add(1, Ordering::Relaxed);
        self.0[1].fetch_add(unit.len() as u64, Ordering::Relaxed);
        Taken::Delivered
    }
}

/// Opens an endless source for every flow.
pub struct Opens(pub usize);

impl SessionProvider for Opens {
    fn open(&mut self, _: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        Ok(Port::Source(Box::new(Endless::new(self.0))))
    }
}
