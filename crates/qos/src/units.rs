//! Values with units, as people write them: "4 Mbit/s", "50 ms", "0.1 %", "64 KiB", "25 /s".
//!
//! A table of units per [`Dimension`], exact reading into a whole number of the base unit, and
//! writing in the largest unit in which the number stays short.
//!
//! | dimension | base unit            | units                                |
//! |-----------|----------------------|--------------------------------------|
//! | duration  | nanosecond           | ns, us (µs), ms, s, min              |
//! | rate      | bit per second       | bit/s, kbit/s, Mbit/s, Gbit/s        |
//! | size      | byte                 | B, kB, KiB, MB, MiB, GB, GiB         |
//! | ratio     | part per billion     | %, ppm, ppb, or a bare share (0.001) |
//! | frequency | a millionth per second | /s                                 |
//!
//! Invariant: `parse(format(n)) == n` for every `n`. Multiples of bits are decimal; of bytes
//! decimal with kB, MB, GB and binary with KiB, MiB, GiB (IEC 80000-13).

use std::error::Error;
use std::fmt;

use crate::decimal::{Decimal, DecimalFault, format_scaled, split};
use crate::problem::quoted;

/// Parts per billion in the whole: the ratio "100 %".
pub const PPB: u64 = 1_000_000_000;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// A span of time, in nanoseconds.
    Duration,
    /// Data per time, in bits per second.
    Rate,
    /// An amount of data, in bytes.
    Size,
    /// A share of a whole, in parts per billion; may exceed the whole.
    Ratio,
    /// Events per time, in millionths per second.
    Frequency,
}

/// Why a text is not a value of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitFault {
    /// No number stands in front.
    NotANumber,
    /// The number has no unit.
    UnitMissing,
    /// The unit is none of this dimension; when only its case is wrong, the right spelling.
    UnitUnknown(Option<&'static str>),
    /// The value is below zero.
    Negative,
    /// The value is not a whole number of the base unit.
    TooFine,
    /// The value exceeds 64 bits of the base unit.
    TooLarge,
}

/// A text that is not a value of the dimension that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    /// What was wanted.
    pub dimension: Dimension,
    /// What is wrong.
    pub fault: UnitFault,
    text: String,
}

struct Unit {
    name: &'static str,
    /// Base units in one of this.
    factor: u64,
    /// The smallest value, in base units, that is written in this unit.
    from: u64,
    /// Decimals with which a value is written in this unit, at most.
    decimals: u32,
}

const fn unit(name: &'static str, factor: u64, from: u64, decimals: u32) -> Unit {
    Unit { name, factor, from, decimals }
}

// Ascending; a value is written in the last unit that holds it exactly in the decimals given.
const DURATION: &[Unit] = &[
    unit("ns", 1, 0, 0),
    unit("us", 1_000, 1_000, 3),
    unit("ms", 1_000_000, 1_000_000, 3),
    unit("s", 1_000_000_000, 1_000_000_000, 3),
    unit("min", 60_000_000_000, 60_000_000_000, 0),
];
/// Microseconds with the micro sign and with the Greek mu.
const MICROSECONDS: [&str; 2] = ["\u{b5}s", "\u{3bc}s"];
const RATE: &[Unit] = &[
    unit("bit/s", 1, 0, 0),
    unit("kbit/s", 1_000, 1_000, 3),
    unit("Mbit/s", 1_000_000, 1_000_000, 3),
    unit("Gbit/s", 1_000_000_000, 1_000_000_000, 3),
];
const SIZE: &[Unit] = &[
    unit("B", 1, 0, 0),
    unit("kB", 1_000, 1_000, 3),
    unit("KiB", 1 << 10, 1 << 10, 0),
    unit("MB", 1_000_000, 1_000_000, 3),
    unit("MiB", 1 << 20, 1 << 20, 0),
    unit("GB", 1_000_000_000, 1_000_000_000, 3),
    unit("GiB", 1 << 30, 1 << 30, 0),
];
const RATIO: &[Unit] = &[
    unit("ppb", 1, u64::MAX, 0),
    unit("ppm", 1_000, u64::MAX, 3),
    unit("%", PPB / 100, 0, 7), // seven decimals reach 1 ppb, so this one always holds
];
const FREQUENCY: &[Unit] = &[unit("/s", 1_000_000, 0, 6)];

impl Dimension {
    const fn units(self) -> &'static [Unit] {
        match self {
            Self::Duration => DURATION,
            Self::Rate => RATE,
            Self::Size => SIZE,
            Self::Ratio => RATIO,
            Self::Frequency => FREQUENCY,
        }
    }

    /// Every way to write one of the units.
    pub(crate) fn spellings(self) -> Vec<&'static str> {
        let names = self.units().iter().map(|unit| unit.name);
        match self {
            Self::Duration => names.chain(MICROSECONDS).collect(),
            _ => names.collect(),
        }
    }

    /// The name with its article: "a duration".
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Duration => "a duration",
            Self::Rate => "a rate",
            Self::Size => "a size",
            Self::Ratio => "a ratio",
            Self::Frequency => "a frequency",
        }
    }

    /// A value as it may be written.
    #[must_use]
    pub const fn example(self) -> &'static str {
        match self {
            Self::Duration => "50 ms",
            Self::Rate => "4 Mbit/s",
            Self::Size => "64 KiB",
            Self::Ratio => "0.1 %",
            Self::Frequency => "25 /s",
        }
    }

    /// What may be written, as a phrase for an error.
    #[must_use]
    pub fn allowed(self) -> String {
        let units: Vec<_> = self.units().iter().map(|unit| unit.name).collect();
        let bare = if self == Self::Ratio { ", or a bare share such as 0.001" } else { "" };
        let (units, example) = (units.join(", "), self.example());
        format!("a number with a unit of {units}{bare}, for example \"{example}\"")
    }

    /// Reads a value in base units.
    ///
    /// # Errors
    /// When `text` is not a number and a unit of this dimension, or not a whole number of base
    /// units that fits in 64 bits. Nothing is rounded.
    pub fn parse(self, text: &str) -> Result<u64, UnitError> {
        self.parse_fault(text).map_err(|fault| UnitError {
            dimension: self,
            fault,
            text: text.trim().chars().take(65).collect(),
        })
    }

    fn parse_fault(self, text: &str) -> Result<u64, UnitFault> {
        let (number, unit) = split(text);
        let decimal = Decimal::parse(number)?;
        Ok(decimal.scaled(self.factor(unit)?)?)
    }

    fn factor(self, unit: &str) -> Result<u64, UnitFault> {
        let unit = match unit {
            "" if self == Self::Ratio => return Ok(PPB),
            "" => return Err(UnitFault::UnitMissing),
            _ if self == Self::Duration && MICROSECONDS.contains(&unit) => "us",
            _ => unit,
        };
        if let Some(known) = self.units().iter().find(|known| known.name == unit) {
            return Ok(known.factor);
        }
        let respelt = self.units().iter().find(|known| known.name.eq_ignore_ascii_case(unit));
        Err(UnitFault::UnitUnknown(respelt.map(|known| known.name)))
    }

    /// Writes `value`, in base units, so that [`Dimension::parse`] gives it back.
    #[must_use]
    pub fn format(self, value: u64) -> String {
        let fitting = self.units().iter().rev().filter(|unit| value >= unit.from);
        let written = fitting.map(|unit| (format_scaled(value, unit.factor, unit.decimals), unit));
        let mut exact = written.filter_map(|(text, unit)| Some(format!("{} {}", text?, unit.name)));
        exact.next().unwrap_or_else(|| value.to_string())
    }
}

impl From<DecimalFault> for UnitFault {
    fn from(fault: DecimalFault) -> Self {
        match fault {
            DecimalFault::NotANumber => Self::NotANumber,
            DecimalFault::Negative => Self::Negative,
            DecimalFault::TooFine => Self::TooFine,
            DecimalFault::TooLarge => Self::TooLarge,
        }
    }
}

impl UnitError {
    /// What is wrong, without what is allowed.
    #[must_use]
    pub fn what(&self) -> String {
        let base = match self.dimension {
            Dimension::Duration => "1 ns",
            Dimension::Rate => "1 bit/s",
            Dimension::Size => "1 B",
            Dimension::Ratio => "1 ppb",
            Dimension::Frequency => "0.000001 /s",
        };
        let detail = match self.fault {
            UnitFault::NotANumber | UnitFault::UnitUnknown(None) => String::new(),
            UnitFault::UnitMissing => " (the unit is missing)".to_owned(),
            UnitFault::UnitUnknown(Some(unit)) => format!(" (did you mean \"{unit}\"?)"),
            UnitFault::Negative => " (it is below zero)".to_owned(),
            UnitFault::TooFine => format!(" (it is not a whole number of {base})"),
            UnitFault::TooLarge => " (it is too large)".to_owned(),
        };
        format!("{} is not {}{detail}", quoted(&self.text), self.dimension.noun())
    }

    /// What may be written instead.
    #[must_use]
    pub fn allowed(&self) -> String {
        self.dimension.allowed()
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; allowed: {}", self.what(), self.allowed())
    }
}

impl Error for UnitError {}

/// Reads a duration such as "50 ms", in nanoseconds.
///
/// # Errors
/// See [`Dimension::parse`].
pub fn parse_duration(text: &str) -> Result<u64, UnitError> {
    Dimension::Duration.parse(text)
}

/// Reads a rate such as "4 Mbit/s", in bits per second.
///
/// # Errors
/// See [`Dimension::parse`].
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    Dimension::Rate.parse(text)
}

/// Reads a size such as "64 KiB", in bytes.
///
/// # Errors
/// See [`Dimension::parse`].
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    Dimension::Size.parse(text)
}

/// Reads a ratio such as "0.1 %" or a bare "0.001", in parts per billion ([`PPB`] is the whole).
///
/// # Errors
/// See [`Dimension::parse`].
pub fn parse_ratio(text: &str) -> Result<u64, UnitError> {
    Dimension::Ratio.parse(text)
}

/// Reads a frequency such as "25 /s", in millionths per second.
///
/// # Errors
/// See [`Dimension::parse`].
pub fn parse_frequency(text: &str) -> Result<u64, UnitError> {
    Dimension::Frequency.parse(text)
}

/// Writes nanoseconds: `50_000_000` is "50 ms".
#[must_use]
pub fn format_duration(ns: u64) -> String {
    Dimension::Duration.format(ns)
}

/// Writes bits per second: `4_000_000` is "4 Mbit/s".
#[must_use]
pub fn format_rate(bits_per_s: u64) -> String {
    Dimension::Rate.format(bits_per_s)
}

/// Writes bytes: `65_536` is "64 KiB", `1_500` is "1.5 kB".
#[must_use]
pub fn format_size(bytes: u64) -> String {
    Dimension::Size.format(bytes)
}

/// Writes parts per billion: `1_000_000` is "0.1 %".
#[must_use]
pub fn format_ratio(ppb: u64) -> String {
    Dimension::Ratio.format(ppb)
}

/// Writes millionths per second: `25_000_000` is "25 /s".
#[must_use]
pub fn format_frequency(micro_per_s: u64) -> String {
    Dimension::Frequency.format(micro_per_s)
}

#[cfg(test)]
mod tests {
    use dacapo_base::Random;

    use super::*;

    const ALL: [Dimension; 5] = [
        Dimension::Duration,
        Dimension::Rate,
        Dimension::Size,
        Dimension::Ratio,
        Dimension::Frequency,
    ];

    #[test]
    fn values_read_in_every_unit() {
        assert_eq!(parse_duration("50 ms"), Ok(50_000_000));
        assert_eq!(parse_duration("1.5s"), Ok(1_500_000_000));
        assert_eq!(parse_duration("3 µs"), Ok(3_000));
        assert_eq!(parse_duration("2 min"), Ok(120_000_000_000));
        assert_eq!(parse_rate("4 Mbit/s"), Ok(4_000_000));
        assert_eq!(parse_rate("2.5 Gbit/s"), Ok(2_500_000_000));
        assert_eq!(parse_size("64 KiB"), Ok(65_536));
        assert_eq!(parse_size("1.5 kB"), Ok(1_500));
        assert_eq!(parse_ratio("0.1 %"), Ok(1_000_000));
        assert_eq!(parse_ratio("0.001"), Ok(1_000_000));
        assert_eq!(parse_ratio("12 ppm"), Ok(12_000));
        assert_eq!(parse_ratio("1e-9"), Ok(1));
        assert_eq!(parse_frequency("29.97 /s"), Ok(29_970_000));
        assert_eq!(parse_frequency("25/s"), Ok(25_000_000));
    }

    #[test]
    fn values_are_written_in_the_unit_that_keeps_them_short() {
        let written = [
            (format_rate(4_000_000), "4 Mbit/s"),
            (format_rate(0), "0 bit/s"),
            (format_rate(1_234_567), "1234.567 kbit/s"),
            (format_duration(50_000_000), "50 ms"),
            (format_duration(1_500_000_000), "1.5 s"),
            (format_duration(90_000_000_000), "90 s"),
            (format_duration(120_000_000_000), "2 min"),
            (format_size(65_536), "64 KiB"),
            (format_size(1_500), "1.5 kB"),
            (format_size(20_000_000), "20 MB"),
            (format_ratio(1_000_000), "0.1 %"),
            (format_ratio(1), "0.0000001 %"),
            (format_ratio(0), "0 %"),
            (format_frequency(29_970_000), "29.97 /s"),
        ];
        for (is, wanted) in written {
            assert_eq!(is, wanted);
        }
    }

    #[test]
    fn every_number_reads_back_as_it_was_written() {
        let seed = 4;
        let mut random = Random::from_number(seed);
        for turn in 0..20_000_u64 {
            let round = 10_u64.pow((turn % 13) as u32);
            let any = random.next_u64() >> random.below(64);
            for value in [any, any / round * round, any & !0x3ff] {
                for dimension in ALL {
                    let text = dimension.format(value);
                    assert_eq!(dimension.parse(&text), Ok(value), "seed {seed}: {text}");
                }
            }
        }
        assert!(ALL.iter().all(|d| d.parse(&d.format(u64::MAX)) == Ok(u64::MAX)));
    }

    #[test]
    fn a_wrong_text_is_answered_with_what_is_allowed() {
        assert_eq!(
            parse_duration("50 mm").unwrap_err().to_string(),
            "\"50 mm\" is not a duration; allowed: a number with a unit of ns, us, ms, s, min, \
             for example \"50 ms\""
        );
        assert_eq!(
            parse_rate("4 mbit/s").unwrap_err().fault,
            UnitFault::UnitUnknown(Some("Mbit/s"))
        );
        assert_eq!(parse_rate("4").unwrap_err().fault, UnitFault::UnitMissing);
        assert_eq!(parse_rate("Mbit/s").unwrap_err().fault, UnitFault::NotANumber);
        assert_eq!(parse_duration("-1 ms").unwrap_err().fault, UnitFault::Negative);
        assert_eq!(parse_duration("0.5 ns").unwrap_err().fault, UnitFault::TooFine);
        assert_eq!(parse_duration("1e9 min").unwrap_err().fault, UnitFault::TooLarge);
        assert_eq!(parse_ratio("NaN").unwrap_err().fault, UnitFault::NotANumber);
        assert!(parse_size("1 mib").unwrap_err().what().contains("did you mean \"MiB\"?"));
        assert!(parse_ratio("x").unwrap_err().allowed().contains("bare share"));
    }
}
