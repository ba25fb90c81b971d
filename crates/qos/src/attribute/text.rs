//! Attributes on a command line: `delay<=150ms@0.5,order=ordered,loss=0`.
//!
//! The reading of requirements that stand in one line of text, separated by commas.
//!
//! ```text
//!   throughput >= 4 Mbit/s @ 0.5        name, comparison, value, weight
//!   delay <= 150ms                      blanks do not matter
//!   loss = 0                            "=" is the bound that the attribute takes, or exactly that
//!   delay @ 0.5                         a weight alone
//!   reliable                            no loss, in order, nothing twice, changes noticed
//! ```
//!
//! Invariants: what is accepted passes [`Attributes::check`]; a bound or weight is given once;
//! `reliable` and a bound of the same attribute give the stricter of both.

use std::str::FromStr;

use super::key::{AttributeKey, Bound, Bounds, Kind, Quantity};
use super::{Attributes, Requirement, RequirementError, weight};
use crate::nearest::nearest;
use crate::problem::quoted;
use crate::text_error::TextError;

/// The word for [`Attributes::reliable`].
const RELIABLE: &str = "reliable";

const COMPARISONS: &str = "<=, >=, =";

impl Attributes {
    /// Reads requirements as they stand on a command line: one or more, separated by commas, such
    /// as `delay<=150ms@0.5`, `throughput>=4Mbit/s`, `order=ordered`, `loss=0`, `delay@0.5`, or
    /// `reliable` for those of [`Attributes::reliable`].
    ///
    /// # Errors
    /// The first part that is wrong, with what may stand there.
    pub fn parse_text(text: &str) -> Result<Self, TextError> {
        TextError::check_len(text)?;
        let mut asked = Self::new();
        let mut is_reliable = false;
        for part in text.split(',').map(str::trim) {
            if part == RELIABLE {
                is_reliable = true;
            } else {
                read(part, &mut asked)?;
            }
        }
        asked.check().map_err(|error| refuse_requirement(text.trim(), &error))?;
        if !is_reliable {
            return Ok(asked);
        }
        let stricter = asked.tightened(&Self::reliable());
        stricter.map_err(|contradiction| {
            TextError::new(text.trim(), contradiction.to_string(), "what both allow")
        })
    }
}

impl FromStr for Attributes {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::parse_text(text)
    }
}

/// Reads one part into what is asked so far.
fn read(part: &str, asked: &mut Attributes) -> Result<(), TextError> {
    let (assignment, weight) = match part.rsplit_once('@') {
        Some((assignment, weight)) => (assignment.trim(), Some(read_weight(part, weight)?)),
        None => (part, None),
    };
    let is_comparison = |c: char| matches!(c, '<' | '>' | '=' | '!' | '≤' | '≥');
    let end = assignment.find(is_comparison).unwrap_or(assignment.len());
    let (name, rest) = assignment.split_at_checked(end).unwrap_or((assignment, ""));
    let key = read_key(part, name.trim())?;
    let value = rest.trim_start_matches(is_comparison);
    let comparison = rest.strip_suffix(value).unwrap_or_default();
    let mut requirement = match comparison {
        "" if weight.is_some() => Requirement::default(),
        _ => read_bounds(part, key, comparison, value.trim())?,
    };
    requirement.weight = weight;
    add(part, key, requirement, asked)
}

fn read_weight(part: &str, text: &str) -> Result<u8, TextError> {
    weight::parse(text).ok_or_else(|| {
        TextError::new(part, format!("{} is not a weight", quoted(text.trim())), weight::WANTED)
    })
}

fn read_key(part: &str, name: &str) -> Result<AttributeKey, TextError> {
    if let Some(key) = AttributeKey::from_name(name) {
        return Ok(key);
    }
    let names: Vec<_> = AttributeKey::ALL.iter().map(|key| key.name()).chain([RELIABLE]).collect();
    let what = match (name, nearest(name, names.iter().copied())) {
        ("", _) => "no attribute is named".to_owned(),
        (RELIABLE, _) => format!("{RELIABLE} stands alone"),
        (_, Some(near)) => {
            format!("no attribute is called {} (did you mean \"{near}\"?)", quoted(name))
        }
        _ => format!("no attribute is called {}", quoted(name)),
    };
    Err(TextError::new(part, what, names.join(", ")))
}

fn read_bounds(
    part: &str,
    key: AttributeKey,
    comparison: &str,
    value: &str,
) -> Result<Requirement, TextError> {
    let bound = match comparison {
        "=" => None,
        "<=" => Some(Bound::Max),
        ">=" => Some(Bound::Min),
        _ => return Err(wrong_comparison(part, key, comparison)),
    };
    if let Some(bound) = bound.filter(|&bound| !key.bounds().takes(bound)) {
        return Err(refuse_requirement(part, &RequirementError::Bound { key, bound }));
    }
    let quantity =
        key.parse(value).map_err(|error| TextError::new(part, error.what(), error.allowed()))?;
    Ok(match bound {
        None => Requirement::alone(key, quantity),
        Some(Bound::Min) => Requirement { min: Some(quantity), ..Requirement::default() },
        Some(Bound::Max) => Requirement { max: Some(quantity), ..Requirement::default() },
    })
}

fn wrong_comparison(part: &str, key: AttributeKey, comparison: &str) -> TextError {
    let near = match comparison {
        "" => {
            let what = format!("{key} has neither a value nor a weight");
            return TextError::new(part, what, examples(key));
        }
        "<" | "≤" | "=<" => "<=",
        ">" | "≥" | "=>" => ">=",
        _ => "=",
    };
    let what = format!("{} is no comparison (did you mean \"{near}\"?)", quoted(comparison));
    TextError::new(part, what, COMPARISONS)
}

/// Adds a requirement of one part; nothing may be said twice.
fn add(
    part: &str,
    key: AttributeKey,
    requirement: Requirement,
    asked: &mut Attributes,
) -> Result<(), TextError> {
    let before = asked.get(key).copied().unwrap_or_default();
    let is_twice = |is: Option<Quantity>, was: Option<Quantity>| is.is_some() && was.is_some();
    let twice = [
        ("min", is_twice(requirement.min, before.min)),
        ("max", is_twice(requirement.max, before.max)),
        ("weight", requirement.weight.is_some() && before.weight.is_some()),
    ];
    if let Some((what, _)) = twice.iter().find(|(_, is_twice)| *is_twice) {
        let what = format!("the {what} of {key} is given twice");
        return Err(TextError::new(part, what, "each once"));
    }
    let both = Requirement {
        min: requirement.min.or(before.min),
        max: requirement.max.or(before.max),
        weight: requirement.weight.or(before.weight),
    };
    asked.0.insert(key, both);
    Ok(())
}

fn refuse_requirement(part: &str, error: &RequirementError) -> TextError {
    match error {
        RequirementError::Bound { key, bound } => {
            let (taken, given) = (bound.other(), *bound);
            let [taken, given] =
                [taken, given].map(|bound| format!("{} ({})", bound.name(), bound.operator()));
            let what = format!("{key} takes {taken}, not {given}");
            TextError::new(part, what, examples(*key))
        }
        RequirementError::Contradiction { key, min, max } => {
            let what = format!(
                "{key}: at least {} exceeds at most {}",
                key.format(*min),
                key.format(*max)
            );
            TextError::new(part, what, "a min of at most max")
        }
        _ => TextError::new(part, error.to_string(), "a requirement that some value meets"),
    }
}

/// How requirements of `key` may look.
fn examples(key: AttributeKey) -> String {
    let value = match key.kind() {
        Kind::Unit(dimension) => dimension.example().replace(' ', ""),
        Kind::Number => key.range().1.to_string(),
        Kind::Level(words) => {
            return format!("{key}={}, {key}@0.5", words.join(&format!(", {key}=")));
        }
    };
    let comparison = match key.bounds() {
        Bounds::Min => ">=",
        Bounds::Max | Bounds::Both => "<=",
    };
    format!("{key}{comparison}{value}, {key}={value}, {key}@0.5")
}
