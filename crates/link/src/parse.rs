//! Configuration text to [`LinkConfig`]: `loss=5%,burst=10,delay=20ms,rate=10Mbit/s`.
//!
//! It is what fits on a command line, in a URL or in a table.
//!
//! ```text
//!   text    = "perfect" | pair *( "," pair )       blanks around keys and values do not matter
//!   pair    = key "=" value                        each key at most once
//!   delay, jitter, reorder-by, mtu-from   time         20ms 1.5s 300us 7ns
//!   shape                                 uniform (default) | normal
//!   keep-order                            yes (default) | no
//!   loss, dup, reorder, corrupt, corrupt-undetected    probability   5% 0.05
//!   burst                                 mean length of a loss burst, in items (10) or as a time
//!                                         (26ms); with loss
//!   gilbert                               p_enter:p_leave:loss_good:loss_bad; without loss
//!   rate                                  10Mbit/s 500kbit/s 1Gbit/s 9600bit/s
//!   trace                                 a file whose name has no comma, or cellular:7 (a seed);
//!                                         without rate
//!   aqm                                   codel | dualpi2; with rate or trace
//!   aqm-target, aqm-interval              time; with aqm, the second one with codel
//!   ecn                                   keep (default) | clear: both bits, to Not-ECT
//!   queue, in-flight                      count        100
//!   queue-bytes, mtu                      bytes        64kB 64KiB 1MB 1280
//!   partition                             windows      5s..7s  5s..7s+20s..never
//! ```
//!
//! A file is read by whoever has files ([`LinkConfig::parse_with`]); [`FromStr`] refuses it.
//!
//! Invariants: text from outside never panics and allocates no more than a small multiple of its
//! length, which is bounded; every `LinkConfig` that is returned is valid; printing and parsing
//! again gives an equal one (`display.rs`).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use crate::aqm::Aqm;
use crate::config::{ConfigError, LinkConfig, Mtu, Window};
use crate::delay::JitterShape;
use crate::loss::Loss;
use crate::trace::{Trace, TraceError, TraceSource};
use dacapo_base::Time;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Every key of the text.
pub(crate) const KEYS: [&str; 24] = [
    "delay",
    "jitter",
    "shape",
    "keep-order",
    "loss",
    "burst",
    "gilbert",
    "dup",
    "reorder",
    "reorder-by",
    "corrupt",
    "corrupt-undetected",
    "rate",
    "trace",
    "aqm",
    "aqm-target",
    "aqm-interval",
    "ecn",
    "queue",
    "queue-bytes",
    "partition",
    "mtu",
    "mtu-from",
    "in-flight",
];

/// Units of time in nanoseconds, the largest first.
pub(crate) const TIME_UNITS: [(&str, u64); 4] =
    [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
/// Units of rate in bits per second, the largest first.
pub(crate) const RATE_UNITS: [(&str, u64); 4] =
    [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)];
/// Units of size in bytes, the largest first.
pub(crate) const SIZE_UNITS: [(&str, u64); 5] =
    [("MB", 1_000_000), ("MiB", 1 << 20), ("kB", 1_000), ("KiB", 1 << 10), ("B", 1)];

/// What a trace from a seed begins with.
const CELLULAR: &str = "cellular:";

/// The longest text that is looked at, bytes.
const TEXT_LEN_MAX: usize = 64 * 1024;
/// The longest piece of text that an error repeats, characters.
const QUOTE_LEN_MAX: usize = 40;

impl FromStr for LinkConfig {
    type Err = ParseError;

    /// Reads configuration text; the empty text and `perfect` are the perfect link. A trace can
    /// only be one from a seed: [`LinkConfig::parse_with`] reads files.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse_with(text, |_| Err(TraceError::NotHere))
    }
}

impl LinkConfig {
    /// Reads configuration text as [`FromStr`] does; a trace that is in a file is what `read` gives
    /// for its name, [`Trace::parse`] of what is in it.
    ///
    /// # Errors
    /// [`ParseError`]; what `read` says is [`ParseError::Trace`] with the name.
    pub fn parse_with(
        text: &str,
        read: impl FnOnce(&str) -> Result<Trace, TraceError>,
    ) -> Result<Self, ParseError> {
        if text.len() > TEXT_LEN_MAX {
            return Err(ParseError::TooLong { len: text.len() });
        }
        let mut draft = Draft::default();
        if !matches!(text.trim(), "" | "perfect") {
            for pair in text.split(',') {
                draft.take(pair)?;
            }
        }
        draft.finish(read)
    }
}

/// Configuration text that says nothing a link can do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParseError {
    /// A value is not what its key wants.
    BadValue {
        /// The key.
        key: &'static str,
        /// The value (shortened).
        value: String,
        /// What the key wants, with an example.
        wants: &'static str,
    },
    /// The text is understood, but no link can do it.
    Invalid(ConfigError),
    /// A piece of the text is not `key=value`.
    NoValue {
        /// The piece (shortened).
        pair: String,
    },
    /// Two keys exclude each other, or one needs another.
    Pairing {
        /// The key.
        key: &'static str,
        /// What is to be done about it.
        remedy: &'static str,
    },
    /// The text is longer than 64 KiB.
    TooLong {
        /// Its length, bytes.
        len: usize,
    },
    /// A trace cannot be read.
    Trace {
        /// The name of its file (shortened).
        name: String,
        /// What is wrong with it, and in which line.
        error: TraceError,
    },
    /// A key is given more than once.
    Twice {
        /// The key.
        key: &'static str,
    },
    /// A key does not exist.
    UnknownKey {
        /// What was given (shortened).
        key: String,
        /// The most similar key.
        nearest: &'static str,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadValue { key, value, wants } => {
                write!(f, "link: {key}={value} is not {wants}")
            }
            Self::Invalid(error) => error.fmt(f),
            Self::NoValue { pair } => {
                write!(f, "link: `{pair}` has no value; write key=value, separated by commas")
            }
            Self::Pairing { key, remedy } => write!(f, "link: {key} {remedy}"),
            Self::TooLong { len } => {
                write!(f, "link: the text has {len} bytes; at most {TEXT_LEN_MAX} are read")
            }
            Self::Trace { name, error } => write!(f, "link: trace={name}: {error}"),
            Self::Twice { key } => write!(f, "link: {key} is given twice; give it once"),
            Self::UnknownKey { key, nearest } => {
                let all = KEYS.join(", ");
                write!(f, "link: no key `{key}`; did you mean `{nearest}`? (keys: {all})")
            }
        }
    }
}

impl std::error::Error for ParseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Invalid(error) => Some(error),
            Self::Trace { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<ConfigError> for ParseError {
    fn from(error: ConfigError) -> Self {
        Self::Invalid(error)
    }
}

/// The text so far: what takes two keys waits for the second.
#[derive(Default)]
struct Draft {
    config: LinkConfig,
    seen: Vec<&'static str>,
    loss: Option<f64>,
    burst: Option<Burst>,
    gilbert: Option<Loss>,
    mtu: Option<usize>,
    mtu_from: Option<Time>,
    /// The name of a file.
    trace: Option<String>,
    aqm_target: Option<Duration>,
    aqm_interval: Option<Duration>,
}

/// How long bursts are.
#[derive(Clone, Copy)]
enum Burst {
    Items(f64),
    Time(Duration),
}

impl Draft {
    fn take(&mut self, pair: &str) -> Result<(), ParseError> {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(ParseError::NoValue { pair: quote(pair.trim()) });
        };
        let (key, value) = (key.trim(), value.trim());
        let Some(&key) = KEYS.iter().find(|&&known| known == key) else {
            return Err(ParseError::UnknownKey { key: quote(key), nearest: nearest_key(key) });
        };
        if self.seen.contains(&key) {
            return Err(ParseError::Twice { key });
        }
        self.seen.push(key);
        self.set(key, value).map_err(|wants| ParseError::BadValue {
            key,
            value: quote(value),
            wants,
        })
    }

    /// Sets one figure; the error says what the key wants.
    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        let config = &mut self.config;
        match key {
            "delay" => config.delay = duration(value)?,
            "jitter" => config.jitter = duration(value)?,
            "shape" => config.jitter_shape = shape(value)?,
            "keep-order" => config.keep_order = yes_or_no(value)?,
            "loss" => self.loss = Some(probability(value)?),
            "burst" => self.burst = Some(burst(value)?),
            "gilbert" => self.gilbert = Some(gilbert(value)?),
            "dup" => config.duplicate = probability(value)?,
            "reorder" => config.reorder = probability(value)?,
            "reorder-by" => config.reorder_by = duration(value)?,
            "corrupt" => config.corrupt = probability(value)?,
            "corrupt-undetected" => config.corrupt_undetected = probability(value)?,
            "rate" => config.rate_bits_per_s = Some(rate(value)?),
            "queue" => config.queue.packets = count(value)?,
            "queue-bytes" => config.queue.bytes = size(value)?,
            "partition" => config.partitions = windows(value)?,
            "mtu" => self.mtu = Some(size(value)?),
            "mtu-from" => self.mtu_from = Some(point(value)?),
            "trace" => match trace_seed(value)? {
                Some(seed) => config.trace = Some(TraceSource::Cellular { seed }),
                None => self.trace = Some(value.to_owned()),
            },
            "aqm" => config.aqm = Some(aqm(value)?),
            "aqm-target" => self.aqm_target = Some(duration(value)?),
            "aqm-interval" => self.aqm_interval = Some(duration(value)?),
            "ecn" => config.ecn_clear = is_cleared(value)?,
            "in-flight" => config.in_flight_max = count(value)?,
            _ => return Err("a key with a meaning"),
        }
        Ok(())
    }

    fn finish(
        mut self,
        read: impl FnOnce(&str) -> Result<Trace, TraceError>,
    ) -> Result<LinkConfig, ParseError> {
        self.finish_aqm()?;
        self.config.loss = match (self.loss, self.burst, self.gilbert) {
            (None, None, None) => Loss::None,
            (Some(p), None, None) => Loss::Random { p },
            (Some(mean_loss), Some(Burst::Items(len)), None) => Loss::burst(mean_loss, len)?,
            (Some(mean_loss), Some(Burst::Time(mean)), None) => Loss::burst_time(mean_loss, mean)?,
            (None, None, Some(gilbert)) => gilbert,
            (None, Some(_), None) => {
                return Err(ParseError::Pairing { key: "burst", remedy: "needs loss beside it" });
            }
            (_, _, Some(_)) => {
                let remedy = "stands alone; leave out loss and burst";
                return Err(ParseError::Pairing { key: "gilbert", remedy });
            }
        };
        self.config.mtu = match (self.mtu, self.mtu_from) {
            (Some(len_max), from) => {
                Some(Mtu { from: from.unwrap_or(Time::ZERO), ..Mtu::black_hole(len_max) })
            }
            (None, None) => None,
            (None, Some(_)) => {
                return Err(ParseError::Pairing { key: "mtu-from", remedy: "needs mtu beside it" });
            }
        };
        let Some(name) = self.trace else {
            self.config.validate()?;
            return Ok(self.config);
        };
        // Another one stands for it until all else is right: no file is read for a wrong text.
        self.config.trace = Some(TraceSource::Cellular { seed: 0 });
        self.config.validate()?;
        let trace = read(&name);
        let trace = trace.map_err(|error| ParseError::Trace { name: quote(&name), error })?;
        self.config.trace = Some(TraceSource::given(name, trace));
        Ok(self.config)
    }

    /// What is beside `aqm`.
    fn finish_aqm(&mut self) -> Result<(), ParseError> {
        let (given_target, given_interval) = (self.aqm_target, self.aqm_interval);
        let (key, remedy) = match &mut self.config.aqm {
            Some(Aqm::CoDel { target, interval }) => {
                *target = given_target.unwrap_or(*target);
                *interval = given_interval.unwrap_or(*interval);
                return Ok(());
            }
            Some(Aqm::DualPi2 { target }) if given_interval.is_none() => {
                *target = given_target.unwrap_or(*target);
                return Ok(());
            }
            Some(Aqm::DualPi2 { .. }) => {
                ("aqm-interval", "is one of codel; leave it out, or choose aqm=codel")
            }
            None if given_target.is_some() => ("aqm-target", "needs aqm beside it"),
            None if given_interval.is_some() => ("aqm-interval", "needs aqm=codel beside it"),
            None => return Ok(()),
        };
        Err(ParseError::Pairing { key, remedy })
    }
}

/// `0.05` or `5%`.
pub(crate) fn probability(text: &str) -> Result<f64, &'static str> {
    let value = match text.strip_suffix('%') {
        // Not a division, which would make 33.3% another number than 0.333.
        Some(percent) => number(&format!("{}e-2", percent.trim_end())),
        None => number(text),
    };
    value.ok_or("a probability such as 5% or 0.05")
}

/// A finite decimal number.
fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

fn burst(text: &str) -> Result<Burst, &'static str> {
    let items = number(text).map(Burst::Items);
    let time = || nanoseconds(text).ok().map(|ns| Burst::Time(Duration::from_nanos(ns)));
    items.or_else(time).ok_or("a number of items such as 10, or a time such as 26ms")
}

fn count(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "a count such as 100")
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    nanoseconds(text).map(Duration::from_nanos)
}

fn nanoseconds(text: &str) -> Result<u64, &'static str> {
    quantity(text, &TIME_UNITS, None).ok_or("a time such as 20ms (units s, ms, us, ns)")
}

/// A point in time as the duration since the origin, or `never`.
fn point(text: &str) -> Result<Time, &'static str> {
    match text.trim() {
        "never" => Ok(Time::NEVER),
        text => nanoseconds(text).map(Time::from_nanos),
    }
}

fn rate(text: &str) -> Result<u64, &'static str> {
    quantity(text, &RATE_UNITS, None)
        .ok_or("a rate in bits such as 10Mbit/s (units Gbit/s, Mbit/s, kbit/s, bit/s)")
}

fn size(text: &str) -> Result<usize, &'static str> {
    quantity(text, &SIZE_UNITS, Some(1))
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or("a size in bytes such as 1280 or 64kB (units MB, MiB, kB, KiB, B)")
}

/// The seed of a trace; nothing when it is the name of a file.
fn trace_seed(text: &str) -> Result<Option<u64>, &'static str> {
    const WANTS: &str = "a file, or cellular:SEED with a number such as cellular:7";
    match text.strip_prefix(CELLULAR) {
        Some(seed) => seed.trim().parse().map(Some).map_err(|_| WANTS),
        None if text.is_empty() => Err(WANTS),
        None => Ok(None),
    }
}

fn aqm(text: &str) -> Result<Aqm, &'static str> {
    let all = [Aqm::CODEL, Aqm::DUALPI2];
    all.into_iter().find(|aqm| aqm.name() == text).ok_or("codel or dualpi2")
}

fn is_cleared(text: &str) -> Result<bool, &'static str> {
    match text {
        "keep" => Ok(false),
        "clear" => Ok(true),
        _ => Err("keep or clear"),
    }
}

fn shape(text: &str) -> Result<JitterShape, &'static str> {
    [JitterShape::Uniform, JitterShape::Normal]
        .into_iter()
        .find(|shape| shape.name() == text)
        .ok_or("uniform or normal")
}

fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no"),
    }
}

fn gilbert(text: &str) -> Result<Loss, &'static str> {
    const WANTS: &str = "p_enter:p_leave:loss_good:loss_bad such as 0.5%:10%:0%:100%";
    let mut parts = text.split(':').map(|part| probability(part.trim()));
    let mut next = || parts.next().and_then(Result::ok).ok_or(WANTS);
    let loss = Loss::GilbertElliott {
        p_enter: next()?,
        p_leave: next()?,
        loss_good: next()?,
        loss_bad: next()?,
    };
    if parts.next().is_some() { Err(WANTS) } else { Ok(loss) }
}

fn windows(text: &str) -> Result<Vec<Window>, &'static str> {
    const WANTS: &str = "windows such as 5s..7s or 5s..7s+20s..never (at most 1024)";
    // One more than allowed is enough for the check of validity to see it.
    let bound = LinkConfig::PARTITION_COUNT_MAX.saturating_add(1);
    let window = |text: &str| {
        let (from, to) = text.split_once("..").ok_or(WANTS)?;
        Ok(Window { from: point(from)?, to: point(to)? })
    };
    text.split('+').take(bound).map(window).collect()
}

/// A decimal number with a unit, exactly, as a whole number of the smallest unit; `None` also when
/// it is none. `bare` is the unit of a number without one.
fn quantity(text: &str, units: &[(&str, u64)], bare: Option<u64>) -> Option<u64> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(digits_end)?;
    let unit = match unit.trim_start() {
        "" => bare?,
        unit => units.iter().find(|&&(name, _)| name == unit)?.1,
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = match whole {
        "" if fraction.is_empty() => return None,
        "" => 0,
        whole => whole.parse::<u64>().ok()?.checked_mul(unit)?,
    };
    whole.checked_add(fraction_of(fraction, unit)?)
}

/// The digits after the point times `unit`; `None` when that is not a whole number.
fn fraction_of(digits: &str, unit: u64) -> Option<u64> {
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let scale = 10_u64.checked_pow(u32::try_from(digits.len()).ok()?)?;
    let product = u128::from(digits.parse::<u64>().ok()?).checked_mul(u128::from(unit))?;
    let whole = product.checked_div(u128::from(scale))?;
    let exact = product.checked_rem(u128::from(scale))? == 0;
    u64::try_from(whole).ok().filter(|_| exact)
}

/// The most similar key: one that contains or begins what is given, else the fewest edits.
fn nearest_key(given: &str) -> &'static str {
    let given = quote(given).to_lowercase();
    let likeness = |key: &&&str| {
        let within = !given.is_empty() && (given.starts_with(**key) || key.contains(&given));
        (!within, edits(&given, key))
    };
    KEYS.iter().min_by_key(likeness).copied().unwrap_or_default()
}

/// Levenshtein distance: insertions, deletions and substitutions of characters.
fn edits(a: &str, b: &str) -> usize {
    // One row, written over from the left; what a cell held is the row above.
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (index, from) in a.chars().enumerate() {
        let (mut diagonal, mut left) = (index, index.saturating_add(1));
        let Some((first, cells)) = row.split_first_mut() else { break };
        *first = left;
        for (to, cell) in b.chars().zip(cells) {
            let (above, is_other) = (*cell, usize::from(from != to));
            let substituted = diagonal.saturating_add(is_other);
            left = substituted.min(above.saturating_add(1)).min(left.saturating_add(1));
            (*cell, diagonal) = (left, above);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// A piece of foreign text that is safe to repeat in an error.
fn quote(text: &str) -> String {
    text.chars().take(QUOTE_LEN_MAX).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
#[path = "parse_tests.rs"]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]
mod tests;
