//! Sources and sinks that know what must arrive.
//!
//! Units whose bytes follow from their number, so that a sink can tell an altered unit from a true
//! one, and a record of every number that came, in order, and of every loss reported.

use dacapo_base::{Random, Time};
use dacapo_core::{
    BeginError, CommandError, Ending, Ledger, Sink, Source, SourcePoll, Taken, UnitView, UnitWriter,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most lost numbers that a sink notes of one report.
const LOST_MAX: usize = 1 << 20;

/// How units follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// How many.
    pub count: u64,
    /// The time from one to the next.
    pub every: Duration,
    /// The shortest, in bytes; at least 16.
    pub len_min: usize,
    /// The longest.
    pub len_max: usize,
    /// What the lengths and bytes follow from.
    pub seed: u64,
}

/// The bytes of unit `number`: its number, the time it was made, and noise.
#[must_use]
pub fn unit_bytes(pattern: &Pattern, number: u64, made: Time) -> Vec<u8> {
    let mut random = Random::from_number(pattern.seed ^ (number + 1).wrapping_mul(0x9E37_79B9));
    let spread = (pattern.len_max - pattern.len_min) as u64 + 1;
    let len = pattern.len_min.max(16) + random.below(spread) as usize;
    let mut bytes = vec![0; len];
    random.fill(&mut bytes);
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..16].copy_from_slice(&made.as_nanos().to_be_bytes());
    bytes
}

/// Makes units by a pattern.
pub struct PatternSource {
    pattern: Pattern,
    next: u64,
    start: Option<Time>,
    /// Since when it pauses; the units that follow are later by so much.
    paused: Option<Time>,
}

impl PatternSource {
    /// A source of this pattern.
    #[must_use]
    pub fn new(pattern: Pattern) -> Self {
        Self { pattern, next: 0, start: None, paused: None }
    }
}

impl Source for PatternSource {
    fn start(&mut self, now: Time) {
        let start = self.start.get_or_insert(now);
        if let Some(paused) = self.paused.take() {
            *start += now.since(paused);
        }
    }

    fn stop(&mut self, now: Time) {
        self.paused.get_or_insert(now);
    }

    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        if self.next >= self.pattern.count {
            return SourcePoll::End;
        }
        let nanos = self.pattern.every.as_nanos() as u64 * self.next;
        let due = self.start.unwrap_or(now) + Duration::from_nanos(nanos);
        if due > now {
            return SourcePoll::Wait(due);
        }
        let bytes = unit_bytes(&self.pattern, self.next, now);
        match unit.begin(bytes.len()) {
            Ok(()) => {
                unit.write(&bytes);
                self.next += 1;
                SourcePoll::Unit
            }
            Err(BeginError::NoMemory) => SourcePoll::Blocked,
            Err(BeginError::TooLarge) => {
                SourcePoll::Failed("the pattern's units are too large".into())
            }
        }
    }

    fn command(&mut self, _: Time, payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        Ok(payload.iter().rev().copied().collect())
    }
}

/// What a sink saw.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The unit numbers of the flow, in the order in which they came.
    pub numbers: Vec<u64>,
    /// The numbers that were reported lost.
    pub lost: Vec<u64>,
    /// Units whose bytes were not those of their number.
    pub altered: u64,
    /// Units that stand under another number than the one in their bytes.
    pub misnumbered: u64,
    /// Network delay of each unit: from made to its last packet's arrival.
    pub delays: Vec<Duration>,
    /// From when each unit was made to when it was passed on.
    pub waits: Vec<Duration>,
    /// How the flow ended.
    pub ending: Option<Ending>,
    /// The account at the end.
    pub ledger: Option<Ledger>,
}

/// A handle to what a sink saw.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<Record>>);

impl Seen {
    /// The record so far.
    pub fn record(&self) -> MutexGuard<'_, Record> {
        // A test that panicked while it held the lock has failed already.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks units against a pattern.
pub struct PatternSink {
    pattern: Pattern,
    seen: Seen,
}

impl PatternSink {
    /// A sink for this pattern, and the handle to what it will see.
    #[must_use]
    pub fn new(pattern: Pattern) -> (Self, Seen) {
        let seen = Seen::default();
        (Self { pattern, seen: seen.clone() }, seen)
    }
}

impl Sink for PatternSink {
    fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken {
        let mut bytes = Vec::new();
        unit.copy_to(&mut bytes);
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(u64::MAX, u64::from_be_bytes)
        };
        let (number, made) = (word(0), Time::from_nanos(word(8)));
        let mut record = self.seen.record();
        let true_bytes =
            number < self.pattern.count && bytes == unit_bytes(&self.pattern, number, made);
        record.altered += u64::from(!true_bytes);
        record.misnumbered += u64::from(number != unit.number);
        record.numbers.push(unit.number);
        record.delays.push(unit.arrived.since(made));
        record.waits.push(now.since(made));
        Taken::Delivered
    }

    fn handle_lost(&mut self, _: Time, first: u64, count: u64) {
        // Who makes up numbers may lose more than there is memory for.
        self.seen.record().lost.extend((first..first + count).take(LOST_MAX));
    }

    fn finish(&mut self, _: Time, ending: &Ending, ledger: &Ledger) {
        let mut record = self.seen.record();
        record.ending = Some(ending.clone());
        record.ledger = Some(ledger.clone());
    }
}
