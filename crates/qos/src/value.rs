//! [`Value`]: the value of a module's parameter.
//!
//! What stood in the file, typed as far as its text tells: "60 ms" is a duration whoever wrote it.
//!
//! Invariant: a value with a unit reads back from what `Display` writes.

use std::error::Error;
use std::fmt;

use crate::problem::quoted;
use crate::units::{Dimension, UnitError};

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A bare number; finite, whole ones at most 2⁵³ from zero.
    Number(f64),
    /// A text that is none of the following.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// A duration in nanoseconds.
    Duration(u64),
    /// A rate in bits per second.
    Rate(u64),
    /// A size in bytes.
    Size(u64),
    /// A share in parts per billion.
    Ratio(u64),
}

/// A parameter whose value is of another type than was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// A text that is not a value of the dimension.
    Unit(UnitError),
    /// A value that has another dimension, or none.
    Dimension {
        /// The value, as it may be written.
        found: String,
        /// What was wanted.
        dimension: Dimension,
    },
    /// A value of another type.
    Type {
        /// The value, as it may be written.
        found: String,
        /// What was wanted.
        wanted: &'static str,
    },
}

impl Value {
    /// A text, or what it means when it is a number with a unit of time, rate, size or share.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        // A bare number in quotes stays a text: nobody wrote a unit.
        let bare = text.trim_end().ends_with(|c: char| c.is_ascii_digit() || c == '.');
        let read = |dimension: Dimension| dimension.parse(text).ok().filter(|_| !bare);
        read(Dimension::Duration)
            .map(Self::Duration)
            .or_else(|| read(Dimension::Rate).map(Self::Rate))
            .or_else(|| read(Dimension::Size).map(Self::Size))
            .or_else(|| read(Dimension::Ratio).map(Self::Ratio))
            .unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    /// Nanoseconds.
    ///
    /// # Errors
    /// When this is not a duration.
    pub fn as_duration(&self) -> Result<u64, ValueError> {
        self.as_quantity(Dimension::Duration)
    }

    /// Bits per second.
    ///
    /// # Errors
    /// When this is not a rate.
    pub fn as_rate(&self) -> Result<u64, ValueError> {
        self.as_quantity(Dimension::Rate)
    }

    /// Bytes.
    ///
    /// # Errors
    /// When this is not a size.
    pub fn as_size(&self) -> Result<u64, ValueError> {
        self.as_quantity(Dimension::Size)
    }

    /// Parts per billion; a bare number is a share of one.
    ///
    /// # Errors
    /// When this is neither a share nor a number that is one.
    pub fn as_ratio(&self) -> Result<u64, ValueError> {
        self.as_quantity(Dimension::Ratio)
    }

    /// Base units of `dimension`.
    ///
    /// # Errors
    /// When this is no value of that dimension.
    pub fn as_quantity(&self, dimension: Dimension) -> Result<u64, ValueError> {
        match (self, dimension) {
            (Self::Duration(quantity), Dimension::Duration)
            | (Self::Rate(quantity), Dimension::Rate)
            | (Self::Size(quantity), Dimension::Size)
            | (Self::Ratio(quantity), Dimension::Ratio) => Ok(*quantity),
            (Self::Text(text), _) => Ok(dimension.parse(text)?),
            (Self::Number(share), Dimension::Ratio) => Ok(dimension.parse(&share.to_string())?),
            _ => Err(ValueError::Dimension { found: self.to_string(), dimension }),
        }
    }

    /// A bare number.
    ///
    /// # Errors
    /// When this is not one.
    pub fn as_number(&self) -> Result<f64, ValueError> {
        match self {
            Self::Number(number) => Ok(*number),
            _ => Err(self.is_not("a number")),
        }
    }

    /// A bare whole number that is not negative.
    ///
    /// # Errors
    /// When this is not one.
    pub fn as_count(&self) -> Result<u64, ValueError> {
        match self {
            Self::Number(number) if *number >= 0.0 && number.fract() == 0.0 && *number < 9e15 => {
                Ok(*number as u64)
            }
            _ => Err(self.is_not("a whole number of at least 0")),
        }
    }

    /// Yes or no.
    ///
    /// # Errors
    /// When this is neither.
    pub fn as_bool(&self) -> Result<bool, ValueError> {
        match self {
            Self::Bool(yes) => Ok(*yes),
            _ => Err(self.is_not("true or false")),
        }
    }

    /// A text.
    ///
    /// # Errors
    /// When this is something else, a text that reads as a value with a unit among it.
    pub fn as_text(&self) -> Result<&str, ValueError> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(self.is_not("a text")),
        }
    }

    fn is_not(&self, wanted: &'static str) -> ValueError {
        ValueError::Type { found: self.to_string(), wanted }
    }
}

impl fmt::Display for Value {
    /// As it may stand in a session file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Bool(yes) => write!(f, "{yes}"),
            Self::Duration(ns) => write!(f, "\"{}\"", Dimension::Duration.format(*ns)),
            Self::Rate(rate) => write!(f, "\"{}\"", Dimension::Rate.format(*rate)),
            Self::Size(bytes) => write!(f, "\"{}\"", Dimension::Size.format(*bytes)),
            Self::Ratio(ppb) => write!(f, "\"{}\"", Dimension::Ratio.format(*ppb)),
        }
    }
}

impl ValueError {
    /// What is wrong, without what is allowed.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::Unit(error) => error.what(),
            Self::Dimension { found, dimension } => format!("{found} is not {}", dimension.noun()),
            Self::Type { found, wanted } => format!("{found} is not {wanted}"),
        }
    }

    /// What may be written instead.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self {
            Self::Unit(error) => error.allowed(),
            Self::Dimension { dimension, .. } => dimension.allowed(),
            Self::Type { wanted, .. } => (*wanted).to_owned(),
        }
    }
}

impl From<UnitError> for ValueError {
    fn from(error: UnitError) -> Self {
        Self::Unit(error)
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; allowed: {}", self.what(), self.allowed())
    }
}

impl Error for ValueError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::PPB;

    #[test]
    fn a_text_with_a_unit_is_typed_and_every_other_stays_text() {
        assert_eq!(Value::from_text("60 ms"), Value::Duration(60_000_000));
        assert_eq!(Value::from_text("4 Mbit/s"), Value::Rate(4_000_000));
        assert_eq!(Value::from_text("64 KiB"), Value::Size(65_536));
        assert_eq!(Value::from_text("5 %"), Value::Ratio(PPB / 20));
        for text in ["crc32c", "12", "1.5", "12 ", "", "5 mm", "0.5 ns"] {
            assert_eq!(Value::from_text(text), Value::Text(text.to_owned()));
        }
    }

    #[test]
    fn values_read_back_as_they_are_written() {
        for text in ["60 ms", "4 Mbit/s", "64 KiB", "5 %", "1.5 kB"] {
            assert_eq!(Value::from_text(text).to_string(), format!("\"{text}\""));
        }
        assert_eq!(Value::Number(8.0).to_string(), "8");
        assert_eq!(Value::Bool(true).to_string(), "true");
    }

    #[test]
    fn a_value_of_another_type_is_answered_with_what_was_wanted() {
        let wrong = Value::Text("50 mm".to_owned()).as_duration().unwrap_err();
        assert!(wrong.to_string().starts_with("\"50 mm\" is not a duration; allowed: a number"));
        let wrong = Value::Rate(4_000_000).as_duration().unwrap_err();
        assert_eq!(wrong.what(), "\"4 Mbit/s\" is not a duration");
        assert!(wrong.allowed().starts_with("a number with a unit of ns, us"));
        assert_eq!(Value::Number(0.25).as_ratio(), Ok(PPB / 4));
        assert_eq!(Value::from_text("25 /s").as_quantity(Dimension::Frequency), Ok(25_000_000));
        assert!(Value::Number(-0.25).as_ratio().is_err());
        assert!(Value::Number(f64::MAX).as_ratio().is_err());
        assert_eq!(Value::Number(8.0).as_count(), Ok(8));
        assert!(Value::Number(8.5).as_count().is_err());
        assert!(Value::Number(-1.0).as_count().is_err());
        assert!(Value::Bool(true).as_number().is_err());
        assert!(Value::Text("x".to_owned()).as_bool().is_err());
        assert!(Value::Duration(1).as_text().is_err());
    }
}
