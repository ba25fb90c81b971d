//! [`AttributeKey`]: the attributes, in one table.
//!
//! Numbers, names, kinds, ranges and bounds, and the reading and writing of one quantity.
//! Invariant: a quantity that was read is within the range of its key.

use std::error::Error;
use std::fmt;

use schemars::JsonSchema;

use crate::nearest::nearest;
use crate::problem::quoted;
use crate::units::{Dimension, PPB, UnitError};

/// A value of an attribute: a whole number in the base unit of its key, at most 2⁶³-1.
pub type Quantity = u64;

const ANY: Quantity = i64::MAX as u64; // languages without unsigned numbers read it too
const FREQUENCY_MAX: Quantity = 1_000_000_000_000; // 1000000 /s

/// What can be asked of a flow. The numbers go over the wire; the base units are in the table of
/// [`crate::attribute`].
// The schema of session files takes its descriptions from the comments of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[repr(u16)]
pub enum AttributeKey {
    /// Payload delivered per time.
    Throughput = 1,
    /// One-way delay of a unit, from application to application.
    Delay = 2,
    /// Spread of the delay.
    Jitter = 3,
    /// Share of units that are not delivered.
    Loss = 4,
    /// Whether units come in the order in which they were sent.
    Order = 5,
    /// Whether a unit may come twice.
    Duplicates = 6,
    /// Whether units with changed bytes are noticed, and not delivered.
    Integrity = 7,
    /// Age at which a unit is of no use any more.
    Deadline = 8,
    /// Precedence among the flows; 7 goes first.
    Priority = 9,
    /// Units per second.
    FrameRate = 10,
    /// Processor time, as a share of one core.
    Cpu = 11,
    /// How many receivers there are at the same time.
    Receivers = 12,
    /// Whether others can read what is sent.
    Confidentiality = 13,
    /// Whether it is proven who sent a unit: some holder of the group's key, or this very sender.
    Authenticity = 14,
    /// Whether the newest unit arrives, whatever becomes of those that it replaces.
    Newest = 15,
    /// How much the flow gets beside others of its priority: two of share 1 as much as one of 2,
    /// and one of 0 what all others leave.
    Share = 16,
}

/// How the values of an attribute are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number with a unit.
    Unit(Dimension),
    /// A bare whole number.
    Number,
    /// One of these words, ascending in what they demand; the quantity is the index.
    Level(&'static [&'static str]),
}

/// One side of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The least that will do.
    Min,
    /// The most that will do.
    Max,
}

impl Bound {
    /// The key in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// The comparison on a command line.
    #[must_use]
    pub const fn operator(self) -> &'static str {
        match self {
            Self::Min => ">=",
            Self::Max => "<=",
        }
    }

    /// The other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Min => Self::Max,
            Self::Max => Self::Min,
        }
    }
}

/// Which hard bounds an attribute takes: nobody minds too little delay, or too much order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// A lower one only: more is better.
    Min,
    /// An upper one only: less is better.
    Max,
    /// Both.
    Both,
}

impl Bounds {
    /// Whether `bound` is among them.
    #[must_use]
    pub const fn takes(self, bound: Bound) -> bool {
        match self {
            Self::Min => matches!(bound, Bound::Min),
            Self::Max => matches!(bound, Bound::Max),
            Self::Both => true,
        }
    }
}

struct Row {
    name: &'static str,
    kind: Kind,
    bounds: Bounds,
    low: Quantity,
    high: Quantity,
}

const fn unit(name: &'static str, dimension: Dimension, bounds: Bounds, high: Quantity) -> Row {
    Row { name, kind: Kind::Unit(dimension), bounds, low: 0, high }
}

const fn number(name: &'static str, bounds: Bounds, low: Quantity, high: Quantity) -> Row {
    Row { name, kind: Kind::Number, bounds, low, high }
}

const fn level(name: &'static str, words: &'static [&'static str]) -> Row {
    let high = (words.len() as Quantity).saturating_sub(1);
    Row { name, kind: Kind::Level(words), bounds: Bounds::Min, low: 0, high }
}

impl AttributeKey {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 16] = [
        Self::Throughput,
        Self::Delay,
        Self::Jitter,
        Self::Loss,
        Self::Order,
        Self::Duplicates,
        Self::Integrity,
        Self::Deadline,
        Self::Priority,
        Self::FrameRate,
        Self::Cpu,
        Self::Receivers,
        Self::Confidentiality,
        Self::Authenticity,
        Self::Newest,
        Self::Share,
    ];

    const fn row(self) -> Row {
        match self {
            Self::Throughput => unit("throughput", Dimension::Rate, Bounds::Both, ANY),
            Self::Delay => unit("delay", Dimension::Duration, Bounds::Max, ANY),
            Self::Jitter => unit("jitter", Dimension::Duration, Bounds::Max, ANY),
            Self::Loss => unit("loss", Dimension::Ratio, Bounds::Max, PPB),
            Self::Order => level("order", &["any", "ordered"]),
            Self::Duplicates => level("duplicates", &["allowed", "none"]),
            Self::Integrity => level("integrity", &["none", "checked"]),
            Self::Deadline => unit("deadline", Dimension::Duration, Bounds::Max, ANY),
            Self::Priority => number("priority", Bounds::Min, 0, 7),
            Self::FrameRate => {
                unit("frame_rate", Dimension::Frequency, Bounds::Both, FREQUENCY_MAX)
            }
            Self::Cpu => unit("cpu", Dimension::Ratio, Bounds::Max, 1_024 * PPB),
            Self::Receivers => number("receivers", Bounds::Both, 1, 65_535),
            Self::Confidentiality => level("confidentiality", &["none", "preferred", "required"]),
            Self::Authenticity => level("authenticity", &["none", "preferred", "group", "source"]),
            Self::Newest => level("newest", &["any", "arrives"]),
            Self::Share => number("share", Bounds::Min, 0, 100),
        }
    }

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The key of a number from the wire.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.number() == number)
    }

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The key of a name from a file.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// How its values are written.
    #[must_use]
    pub const fn kind(self) -> Kind {
        self.row().kind
    }

    /// Which hard bounds it takes.
    #[must_use]
    pub const fn bounds(self) -> Bounds {
        self.row().bounds
    }

    /// The least and the greatest quantity.
    #[must_use]
    pub const fn range(self) -> (Quantity, Quantity) {
        let row = self.row();
        (row.low, row.high)
    }

    /// Reads one value: "50 ms", "ordered", "5".
    ///
    /// # Errors
    /// When the text is not a value of this attribute.
    pub fn parse(self, text: &str) -> Result<Quantity, AttributeError> {
        let wrong = || AttributeError::Value { key: self, text: text.chars().take(65).collect() };
        let quantity = match self.kind() {
            Kind::Unit(dimension) => dimension.parse(text)?,
            Kind::Number => text.trim().parse().map_err(|_| wrong())?,
            Kind::Level(words) => {
                let index = words.iter().position(|&word| word == text).ok_or_else(wrong)?;
                Quantity::try_from(index).map_err(|_| wrong())?
            }
        };
        let (low, high) = self.range();
        if (low..=high).contains(&quantity) { Ok(quantity) } else { Err(wrong()) }
    }

    /// Writes one value so that [`AttributeKey::parse`] gives it back; the number of a level that
    /// does not exist is written as such.
    #[must_use]
    pub fn format(self, quantity: Quantity) -> String {
        match self.kind() {
            Kind::Unit(dimension) => dimension.format(quantity),
            Kind::Number => quantity.to_string(),
            Kind::Level(words) => {
                let word = usize::try_from(quantity).ok().and_then(|index| words.get(index));
                word.map_or_else(|| quantity.to_string(), |word| (*word).to_owned())
            }
        }
    }

    /// The least level that is asked, as a noun: "order", "no duplicates", "confidentiality if
    /// possible"; `None` for an attribute that has no levels.
    #[must_use]
    pub fn level_asked(self, least: Quantity) -> Option<String> {
        let Kind::Level(words) = self.kind() else { return None };
        let word = usize::try_from(least).ok().and_then(|index| words.get(index)).copied();
        let noun = match (self, word) {
            (Self::Duplicates, Some("allowed")) => "duplicates allowed",
            (Self::Duplicates, _) => "no duplicates",
            (_, Some("any" | "none")) => return Some(format!("{self} not needed")),
            (_, Some("preferred")) => return Some(format!("{self} if possible")),
            (Self::Authenticity, Some("group")) => "authenticity of the group",
            (Self::Authenticity, _) => "authenticity of the source",
            (Self::Newest, _) => "the newest unit",
            (_, _) => self.name(),
        };
        Some(noun.to_owned())
    }

    /// The keys of a requirement of it in files: the bounds that it takes, and the weight.
    #[must_use]
    pub const fn requirement_keys(self) -> &'static [&'static str] {
        match self.bounds() {
            Bounds::Min => &["min", "weight"],
            Bounds::Max => &["max", "weight"],
            Bounds::Both => &["min", "max", "weight"],
        }
    }

    /// What one value may be, as a phrase for an error.
    #[must_use]
    pub fn allowed(self) -> String {
        let (low, high) = self.range();
        match self.kind() {
            Kind::Unit(dimension) if high < ANY => {
                format!("{}, at most {}", dimension.allowed(), self.format(high))
            }
            Kind::Unit(dimension) => dimension.allowed(),
            Kind::Number => format!("a whole number from {low} to {high}"),
            Kind::Level(words) => format!("\"{}\"", words.join("\", \"")),
        }
    }
}

impl fmt::Display for AttributeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is not a value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeError {
    /// It is not a value of the attribute's dimension.
    Unit(UnitError),
    /// It is not one of the levels, not a number, or out of range.
    Value {
        /// The attribute.
        key: AttributeKey,
        /// The text, cut.
        text: String,
    },
}

impl AttributeError {
    /// What is wrong, without what is allowed.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::Unit(error) => error.what(),
            Self::Value { key, text } => {
                let near = match key.kind() {
                    Kind::Level(words) => nearest(text, words.iter().copied()),
                    Kind::Unit(_) | Kind::Number => None,
                };
                let hint = near.map_or_else(String::new, |n| format!(" (did you mean \"{n}\"?)"));
                format!("{} is not a value of {key}{hint}", quoted(text))
            }
        }
    }

    /// What may be written instead.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self {
            Self::Unit(error) => error.allowed(),
            Self::Value { key, .. } => key.allowed(),
        }
    }
}

impl From<UnitError> for AttributeError {
    fn from(error: UnitError) -> Self {
        Self::Unit(error)
    }
}

impl fmt::Display for AttributeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; allowed: {}", self.what(), self.allowed())
    }
}

impl Error for AttributeError {}
