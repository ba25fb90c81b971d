//! Access module `numbers`: a source of numbered units, and a sink that checks them.
//!
//! ```text
//!   | number, 8 bytes | number + 0, number + 1, … modulo 256 |   `len` bytes, `count` times
//! ```
//!
//! A toy: it shows that every unit came once, whole and in order, and costs less than what it
//! checks.

use dacapo::access::{Access, AccessEntry, AccessParam, AccessSpec, Carries, Found, Opening};
use dacapo::port::{BeginError, Sink, Source, SourcePoll, Taken, UnitView, UnitWriter};
use dacapo::spec::{ParamSpec, ParamUnit};
use dacapo::{Time, access::Wrong};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the catalogue is told: name, number, that it sends and takes bytes, what it can be told.
pub static SPEC: AccessSpec = AccessSpec {
    name: "numbers",
    id: 0xF0E7,
    summary: "numbered units, and a sink that checks them; a toy",
    sends: true,
    takes: true,
    carries: &[Carries::Bytes],
    params: &[AccessParam::Quantity(COUNT), AccessParam::Quantity(LEN)],
};

const COUNT: ParamSpec = ParamSpec {
    name: "count",
    unit: ParamUnit::Count,
    default: 100,
    min: 1,
    max: 1_000_000,
    summary: "how many units the source gives",
    control: None,
};

const LEN: ParamSpec = ParamSpec {
    name: "len",
    unit: ParamUnit::Bytes,
    default: 1_000,
    min: HEAD as u64,
    max: 1 << 20,
    summary: "how long each is",
    control: None,
};

/// The number in front of every unit.
const HEAD: usize = 8;

/// What the sinks of one entry have seen.
#[derive(Debug, Default)]
pub struct Counts {
    /// Units that were those that were due.
    pub right: AtomicU64,
    /// Units that were others, or altered.
    pub wrong: AtomicU64,
    /// Units that did not come.
    pub lost: AtomicU64,
    /// Flows that have ended.
    pub ended: AtomicU64,
}

/// The catalogue's entry, for [`dacapo::Builder::access`]; its sinks count there.
pub fn entry(counts: &Arc<Counts>) -> AccessEntry {
    let counts = Arc::clone(counts);
    AccessEntry::new(&SPEC, move |setup| {
        let (count, len) = (setup.settings.quantity("count"), setup.settings.quantity("len"));
        let len =
            usize::try_from(len).map_err(|_| Wrong::at("len", "is too long for this host"))?;
        Ok(Found::bytes(Numbers { count, len, counts: Arc::clone(&counts) }))
    })
}

#[derive(Debug)]
struct Numbers {
    count: u64,
    len: usize,
    counts: Arc<Counts>,
}

impl Access for Numbers {
    fn describe(&self) -> String {
        format!("{} numbered units of {} bytes", self.count, self.len)
    }

    fn source(&self, to: &Opening<'_>) -> Result<Box<dyn Source>, String> {
        let most = to.flow.unit_len_max as usize;
        if self.len > most {
            return Err(format!("units of {} bytes, where a unit has at most {most}", self.len));
        }
        Ok(Box::new(Counter { next: 0, end: self.count, unit: vec![0; self.len] }))
    }

    fn sink(&self, _: &Opening<'_>) -> Result<Box<dyn Sink>, String> {
        Ok(Box::new(Checker { due: 0, counts: Arc::clone(&self.counts) }))
    }
}

/// Unit `number`, as long as `unit` is.
fn fill(unit: &mut [u8], number: u64) {
    let (head, rest) = unit.split_at_mut(HEAD.min(unit.len()));
    head.copy_from_slice(&number.to_le_bytes()[..head.len()]);
    rest.iter_mut().zip(number..).for_each(|(byte, value)| *byte = value as u8);
}

struct Counter {
    next: u64,
    end: u64,
    unit: Vec<u8>,
}

impl Source for Counter {
    fn poll_unit(&mut self, _: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        if self.next == self.end {
            return SourcePoll::End;
        }
        match unit.begin(self.unit.len()) {
            Ok(()) => {}
            Err(BeginError::NoMemory) => return SourcePoll::Blocked,
            Err(BeginError::TooLarge) => return SourcePoll::Failed("a unit is too long".into()),
        }
        fill(&mut self.unit, self.next);
        unit.write(&self.unit);
        self.next += 1;
        SourcePoll::Unit
    }
}

struct Checker {
    due: u64,
    counts: Arc<Counts>,
}

impl Sink for Checker {
    fn handle_unit(&mut self, _: Time, unit: &UnitView<'_>) -> Taken {
        let came: Vec<u8> = unit.pieces().flatten().copied().collect();
        let mut right = vec![0; came.len().max(HEAD)];
        fill(&mut right, self.due);
        self.due += 1;
        let of = if came == right { &self.counts.right } else { &self.counts.wrong };
        of.fetch_add(1, Ordering::Relaxed);
        Taken::Delivered
    }

    fn handle_lost(&mut self, _: Time, _first: u64, count: u64) {
        self.due += count;
        self.counts.lost.fetch_add(count, Ordering::Relaxed);
    }

    fn finish(&mut self, _: Time, _: &dacapo::port::Ending, _: &dacapo::Ledger) {
        self.counts.ended.fetch_add(1, Ordering::Relaxed);
    }
}
