//! [`Trace`]: when a link can deliver, in the format of Mahimahi, and how much it carries then.
//!
//! ```text
//!   0        a line per delivery opportunity: whole milliseconds since the start of the trace,
//!   1        never less than the line before; the same number again is one more opportunity
//!   1        1,500 bytes leave in each
//!   4        the last line is also how long the trace is: then it begins again
//! ```
//!
//! What follows Mahimahi's `link_queue`: an opportunity serves what was sent before it, in order,
//! until its 1,500 bytes are used; items share one, and what of an item does not fit leaves with
//! the next one. What of an opportunity finds nothing to send is lost. Different from it: an item
//! may be longer than an opportunity; time counts from the start of the link's clock, and not from
//! the first packet; of its 1,504 bytes four were the header of a TUN device, which a link has not.
//! An empty item takes a byte.
//!
//! Decoder: of trace files. Invariants: times do not decrease, and the last one is above zero; both
//! the number of lines and the duration are bounded.
//!
//! Source: Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP" (2015), and its
//! `mm-link`.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use dacapo_base::Time;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The longest piece of a line that an error repeats, characters.
const QUOTE_LEN_MAX: usize = 20;

/// Delivery opportunities, which repeat.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    at_ms: Vec<u32>,
}

impl Trace {
    /// Bytes that leave in an opportunity.
    pub const OPPORTUNITY_LEN: usize = 1_500;
    /// The most lines.
    pub const LINE_COUNT_MAX: usize = 1 << 22;
    /// The longest trace.
    pub const DURATION_MAX: Duration = Duration::from_secs(24 * 3_600);
    /// The longest text that is looked at, bytes.
    pub const TEXT_LEN_MAX: usize = 48 << 20;

    /// Reads the lines of a trace.
    ///
    /// # Errors
    /// The first line that is none, with its number; a trace that has no line or no duration, or
    /// is above one of the limits.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        if text.len() > Self::TEXT_LEN_MAX {
            return Err(TraceError::TooLong);
        }
        let count = text.lines().count();
        if count > Self::LINE_COUNT_MAX {
            return Err(TraceError::TooManyLines { count });
        }
        let mut at_ms = Vec::with_capacity(count);
        let mut before_ms = 0;
        for (number, line) in (1..).zip(text.lines()) {
            let ms = milliseconds(number, line)?;
            if ms < before_ms {
                return Err(TraceError::Backwards { line: number, ms, before_ms });
            }
            at_ms.push(ms);
            before_ms = ms;
        }
        match at_ms.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoDuration),
            Some(_) => Ok(Self { at_ms }),
        }
    }

    /// One of times that are known to be in order, the last of them above zero.
    pub(crate) fn of_times(at_ms: Vec<u32>) -> Self {
        Self { at_ms }
    }

    /// The opportunities of one pass, in milliseconds since its start: at least one.
    #[must_use]
    pub fn at_ms(&self) -> &[u32] {
        &self.at_ms
    }

    /// How long it is until it begins again; above zero.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms())
    }

    /// What it carries on average, bits per second; at least 1.
    #[must_use]
    pub fn mean_bits_per_s(&self) -> u64 {
        let bytes = (self.at_ms.len() as u64).saturating_mul(Self::OPPORTUNITY_LEN as u64);
        // Bytes times 8 bits times 1,000 ms fit: at most 4 million lines.
        let mean = bytes.saturating_mul(8_000).checked_div(self.duration_ms());
        mean.unwrap_or_default().max(1)
    }

    fn duration_ms(&self) -> u64 {
        self.at_ms.last().copied().unwrap_or(1).max(1).into()
    }

    /// The first opportunity after `now`.
    pub(crate) fn first_after(&self, now: Time) -> Place {
        let now_ms = now.as_nanos() / 1_000_000;
        let pass = now_ms.checked_div(self.duration_ms()).unwrap_or_default();
        let rest = now_ms.checked_rem(self.duration_ms()).unwrap_or_default();
        // The last one is at the duration, so there is always one after the rest.
        let index = self.at_ms.partition_point(|at| u64::from(*at) <= rest);
        Place { pass, index: index as u64 }
    }

    /// The one that comes so many later.
    pub(crate) fn later(&self, place: Place, count: u64) -> Place {
        let ahead = place.index.saturating_add(count);
        let len = self.at_ms.len() as u64;
        let passes = ahead.checked_div(len).unwrap_or_default();
        let index = ahead.checked_rem(len).unwrap_or_default();
        Place { pass: place.pass.saturating_add(passes), index }
    }

    pub(crate) fn time_of(&self, place: Place) -> Time {
        let index = usize::try_from(place.index).unwrap_or(usize::MAX);
        let at_ms = u64::from(self.at_ms.get(index).copied().unwrap_or_default());
        let start_ms = place.pass.saturating_mul(self.duration_ms());
        Time::from_millis(start_ms.saturating_add(at_ms))
    }
}

/// A line of a trace.
fn milliseconds(line: usize, text: &str) -> Result<u32, TraceError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = text.chars().take(QUOTE_LEN_MAX).flat_map(char::escape_debug).collect();
        return Err(TraceError::NotATime { line, text });
    }
    let ms = text.parse().ok();
    let max = Trace::DURATION_MAX.as_millis();
    ms.filter(|ms| u128::from(*ms) <= max).ok_or(TraceError::Late { line })
}

/// The format in which it is read.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at_ms.iter().try_for_each(|ms| writeln!(f, "{ms}"))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, duration) = (self.at_ms.len(), self.duration());
        write!(f, "Trace({count} opportunities in {duration:?})")
    }
}

/// An opportunity of a trace, in which pass of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pass: u64,
    index: u64,
}

/// Where the trace of a link comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceSource {
    /// [`Trace::cellular`] with this seed, [`TraceSource::CELLULAR_DURATION`] long.
    Cellular {
        /// The seed.
        seed: u64,
    },
    /// A trace that was read.
    Given {
        /// How configuration text names it: a file.
        name: String,
        /// What was in it.
        trace: Arc<Trace>,
    },
}

impl TraceSource {
    /// How long a trace is that a seed stands for.
    pub const CELLULAR_DURATION: Duration = Duration::from_secs(60);

    /// A trace that configuration text names like this.
    #[must_use]
    pub fn given(name: impl Into<String>, trace: Trace) -> Self {
        Self::Given { name: name.into(), trace: Arc::new(trace) }
    }

    /// The trace; that of a seed is made here.
    #[must_use]
    pub fn trace(&self) -> Arc<Trace> {
        match self {
            Self::Cellular { seed } => Arc::new(Trace::cellular(*seed, Self::CELLULAR_DURATION)),
            Self::Given { trace, .. } => Arc::clone(trace),
        }
    }
}

/// The name in configuration text.
impl fmt::Display for TraceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cellular { seed } => write!(f, "cellular:{seed}"),
            Self::Given { name, .. } => f.write_str(name),
        }
    }
}

/// Why there is no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// A line is less than the one before it.
    Backwards {
        /// Its number, from 1.
        line: usize,
        /// What it says, milliseconds.
        ms: u32,
        /// What the line before says.
        before_ms: u32,
    },
    /// It has no line.
    Empty,
    /// A line is later than [`Trace::DURATION_MAX`].
    Late {
        /// Its number, from 1.
        line: usize,
    },
    /// The last line is 0.
    NoDuration,
    /// A line is not a number of milliseconds.
    NotATime {
        /// Its number, from 1.
        line: usize,
        /// What it says (shortened).
        text: String,
    },
    /// Where the configuration is read there are no files.
    NotHere,
    /// A line is not text.
    NotText {
        /// Its number, from 1.
        line: usize,
    },
    /// It is longer than [`Trace::TEXT_LEN_MAX`].
    TooLong,
    /// It has more than [`Trace::LINE_COUNT_MAX`] lines.
    TooManyLines {
        /// How many.
        count: usize,
    },
    /// The file cannot be read.
    Unreadable {
        /// What the system says.
        why: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backwards { line, ms, before_ms } => write!(
                f,
                "line {line}: {ms} ms after {before_ms} ms; times of a trace never decrease"
            ),
            Self::Empty => f.write_str("no line; write the milliseconds of an opportunity in each"),
            Self::Late { line } => {
                write!(f, "line {line}: beyond {:?}, the longest trace", Trace::DURATION_MAX)
            }
            Self::NoDuration => {
                f.write_str("the last line is 0; it says how long the trace is, 1 ms at least")
            }
            Self::NotATime { line, text } => {
                write!(f, "line {line}: `{text}` is not a number of whole milliseconds")
            }
            Self::NotHere => f.write_str("no files are read here; choose cellular:SEED"),
            Self::NotText { line } => write!(
                f,
                "line {line} is not UTF-8; a trace is text, a number of milliseconds in each line"
            ),
            Self::TooLong => write!(
                f,
                "longer than {} bytes, of which no more are read: leave out lines at its end",
                Trace::TEXT_LEN_MAX
            ),
            Self::TooManyLines { count } => write!(
                f,
                "{count} lines; at most {} are read: leave out lines at its end",
                Trace::LINE_COUNT_MAX
            ),
            Self::Unreadable { why } => f.write_str(why),
        }
    }
}

impl std::error::Error for TraceError {}

#[cfg(test)]
#[path = "trace_tests.rs"]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]
mod tests;
