//! Units that say who they are, and the count of those that came.
//!
//! ```text
//!   unit:  | number, 8 bytes | the number's lowest byte, again and again |
//! ```

use dacapo_base::Time;
use dacapo_core::{BeginError, Port, Sink, Source, SourcePoll, Taken, UnitView, UnitWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const NUMBER_LEN: usize = 8;

/// What a source gives.
#[derive(Clone, Copy, Debug)]
pub struct Supply {
    /// The length of a unit in bytes, 8 or more.
    pub len: usize,
    /// One so often; zero: whenever one is wanted.
    pub every: Duration,
    /// So many; `u64::MAX`: without end.
    pub count: u64,
}

/// A source of numbered units.
struct Numbered {
    supply: Supply,
    next: u64,
    due: Option<Time>,
    bytes: Vec<u8>,
}

impl Supply {
    /// The source.
    #[must_use]
    pub fn port(self) -> Port {
        let bytes = Vec::with_capacity(self.len);
        Port::Source(Box::new(Numbered { supply: self, next: 0, due: None, bytes }))
    }
}

impl Source for Numbered {
    fn start(&mut self, now: Time) {
        // A pause is not made good: what was not due then is not due at once now.
        self.due = Some(now);
    }

    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        if self.next >= self.supply.count {
            return SourcePoll::End;
        }
        let due = *self.due.get_or_insert(now);
        if due > now {
            return SourcePoll::Wait(due);
        }
        let len = self.supply.len.max(NUMBER_LEN);
        match unit.begin(len) {
            Ok(()) => {}
            Err(BeginError::NoMemory) => return SourcePoll::Blocked,
            Err(BeginError::TooLarge) => return SourcePoll::Failed("the unit is too long".into()),
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&self.next.to_be_bytes());
        self.bytes.resize(len, self.next as u8);
        unit.write(&self.bytes);
        self.next += 1;
        self.due = Some(due + self.supply.every);
        SourcePoll::Unit
    }
}

/// What has come, for other threads to read while it does.
#[derive(Debug, Default)]
pub struct Arrivals {
    units: AtomicU64,
    bytes: AtomicU64,
    altered: AtomicU64,
    waited_from_ns: AtomicU64,
    first_ns: AtomicU64,
}

impl Arrivals {
    /// Units, those that were not as they were sent included.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units.load(Relaxed)
    }

    /// Bytes of them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Units that were not as they were sent.
    #[must_use]
    pub fn altered(&self) -> u64 {
        self.altered.load(Relaxed)
    }

    /// The next unit is the first one since `now`.
    pub fn wait_from(&self, now: Time) {
        self.waited_from_ns.store(now.as_nanos(), Relaxed);
        self.first_ns.store(0, Relaxed);
    }

    /// How long the first unit took since [`Arrivals::wait_from`]; `None` before it has come.
    #[must_use]
    pub fn first_after(&self) -> Option<Duration> {
        let first = self.first_ns.load(Relaxed);
        let from = self.waited_from_ns.load(Relaxed);
        (first != 0).then(|| Duration::from_nanos(first.saturating_sub(from)))
    }

    /// A sink that counts here.
    #[must_use]
    pub fn port(self: &Arc<Self>) -> Port {
        Port::Sink(Box::new(Counted(Arc::clone(self))))
    }
}

struct Counted(Arc<Arrivals>);

impl Sink for Counted {
    fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken {
        let seen = &self.0;
        seen.units.fetch_add(1, Relaxed);
        seen.bytes.fetch_add(unit.len() as u64, Relaxed);
        seen.altered.fetch_add(u64::from(!is_whole(unit)), Relaxed);
        if seen.first_ns.load(Relaxed) == 0 && now.as_nanos() >= seen.waited_from_ns.load(Relaxed) {
            seen.first_ns.store(now.as_nanos(), Relaxed);
        }
        Taken::Delivered
    }
}

/// True for a unit that is as it was sent.
fn is_whole(unit: &UnitView<'_>) -> bool {
    let head = unit.number.to_be_bytes();
    let mut at = 0;
    let mut whole = unit.len() >= NUMBER_LEN;
    for piece in unit.pieces() {
        let of_head = piece.len().min(NUMBER_LEN - at.min(NUMBER_LEN));
        let (front, rest) = piece.split_at(of_head);
        whole &= head.get(at..at + of_head).is_none_or(|expected| expected == front);
        // Counted in one pass that the compiler makes fast.
        whole &= rest.iter().fold(0, |sum, byte| sum | (byte ^ unit.number as u8)) == 0;
        at += piece.len();
    }
    whole
}
