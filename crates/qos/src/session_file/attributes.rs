//! The attributes of a flow: `[flow.attributes]`.
//!
//! What it is: the reading of requirements. An attribute is a table of `min` and `max` (hard
//! bounds) and `weight` (soft, a number from 0 to 1 in steps of 0.01); a level such as
//! `order = "ordered"` may stand alone and is then the least that will do, and a bare number such
//! as `priority = 5` is exactly that. A bare quantity with a unit is refused: whether "50 ms" is
//! the least or the most must be said.
//!
//! What it is not: a choice. Nothing is derived here.

use std::collections::BTreeMap;

use toml_edit::Value;

use crate::attribute::{AttributeKey, Attributes, Kind, Quantity, Requirement, RequirementError};
use crate::problem::{Problems, quoted};
use crate::spanned::Spanned;
use crate::units::{Dimension, PPB};

use super::reader::{Node, Section};

/// Where each attribute stands.
pub(super) type AttributePlaces = BTreeMap<AttributeKey, Spanned<()>>;

const PERCENT: u64 = PPB / 100;
const WEIGHT_WANTED: &str = "a number from 0 to 1 in steps of 0.01, for example 0.5";

/// Reads the attributes of one flow.
pub(super) fn read(node: &Node<'_>, problems: &mut Problems<'_>) -> (Attributes, AttributePlaces) {
    let mut attributes = Attributes::new();
    let mut places = AttributePlaces::new();
    let names = AttributeKey::ALL.map(AttributeKey::name);
    let Some(section) = node.section("a table of attributes", problems) else {
        return (attributes, places);
    };
    section.check_keys(&names, problems);
    for key in AttributeKey::ALL {
        let Some(node) = section.optional(key.name()) else { continue };
        let Some(requirement) = read_requirement(key, &node, problems) else { continue };
        if let Err(error) = attributes.insert(key, requirement) {
            report_requirement(key, &node, &error, problems);
        }
        places.insert(key, node.spanned((), problems));
    }
    (attributes, places)
}

fn read_requirement(
    key: AttributeKey,
    node: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<Requirement> {
    if let Some(section) = node.as_section() {
        return read_bounds(key, &section, problems);
    }
    if matches!(key.kind(), Kind::Unit(_)) {
        let what = match scalar_text(node) {
            Some(text) => format!("{} alone is neither a minimum nor a maximum", quoted(&text)),
            None => "is neither a minimum nor a maximum".to_owned(),
        };
        node.report(what, table_wanted(key), problems);
        return None;
    }
    let quantity = read_quantity(key, node, problems)?;
    let max = (key.kind() == Kind::Number).then_some(quantity);
    Some(Requirement { min: Some(quantity), max, weight: None })
}

fn table_wanted(key: AttributeKey) -> String {
    let example = match key.kind() {
        Kind::Unit(dimension) => format!("{{ max = \"{}\" }}", dimension.example()),
        Kind::Number => format!("{{ max = {} }}", key.range().1),
        Kind::Level(words) => format!("{{ min = \"{}\" }}", words.last().unwrap_or(&"")),
    };
    format!("a table of min, max, weight, for example {example}")
}

/// Reads a table of bounds; none when any of them is wrong, so that one mistake is told once.
fn read_bounds(
    key: AttributeKey,
    section: &Section<'_>,
    problems: &mut Problems<'_>,
) -> Option<Requirement> {
    section.check_keys(&["min", "max", "weight"], problems);
    let min = section.optional("min").map(|node| read_quantity(key, &node, problems));
    let max = section.optional("max").map(|node| read_quantity(key, &node, problems));
    let weight = section.optional("weight").map(|node| read_weight(&node, problems));
    if matches!(min, Some(None)) || matches!(max, Some(None)) || matches!(weight, Some(None)) {
        return None;
    }
    Some(Requirement { min: min.flatten(), max: max.flatten(), weight: weight.flatten() })
}

/// A text or a number as text: what the readers of units and numbers take.
fn scalar_text(node: &Node<'_>) -> Option<String> {
    match node.scalar()? {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(whole) => Some(whole.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        _ => None,
    }
}

fn read_quantity(
    key: AttributeKey,
    node: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<Quantity> {
    let Some(text) = scalar_text(node) else {
        node.report_type(&key.allowed(), problems);
        return None;
    };
    match key.parse(&text) {
        Ok(quantity) => Some(quantity),
        Err(error) => {
            node.report(error.what(), error.allowed(), problems);
            None
        }
    }
}

fn read_weight(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<u8> {
    let Some(text) = scalar_text(node) else {
        node.report_type(WEIGHT_WANTED, problems);
        return None;
    };
    let percent = Dimension::Ratio.parse(&text).ok().and_then(whole_percent);
    if percent.is_none() {
        node.report(format!("{} is not a weight", quoted(&text)), WEIGHT_WANTED, problems);
    }
    percent
}

fn whole_percent(ppb: u64) -> Option<u8> {
    let percent = u8::try_from(ppb.checked_div(PERCENT)?).ok()?;
    (percent <= 100 && ppb.checked_rem(PERCENT)? == 0).then_some(percent)
}

fn report_requirement(
    key: AttributeKey,
    node: &Node<'_>,
    error: &RequirementError,
    problems: &mut Problems<'_>,
) {
    match error {
        RequirementError::Contradiction { min, max, .. } => {
            let what = format!("min = {} exceeds max = {}", key.format(*min), key.format(*max));
            node.report(what, "a min of at most max", problems);
        }
        RequirementError::Empty(_) => node.report("asks for nothing", table_wanted(key), problems),
        RequirementError::OutOfRange { .. } | RequirementError::Weight { .. } => {
            node.report(error.to_string(), key.allowed(), problems);
        }
    }
}
