//! The attributes of a flow: `[flow.attributes]`.
//!
//! The reading of requirements. An attribute is a table of `min` and `max` (hard bounds, those that
//! it takes) and `weight` (soft, a number from 0 to 1 in steps of 0.01). A value alone is the bound
//! that the attribute takes: `delay = "150 ms"` is the most, `order = "ordered"` and `priority = 5`
//! the least; where it takes both, as throughput does, it is exactly that.
//!
//! Nothing is derived here.

use std::collections::BTreeMap;

use toml_edit::Value;

use crate::attribute::{
    AttributeKey, Attributes, Bound, Kind, Quantity, Requirement, RequirementError, weight,
};
use crate::problem::{Problems, path_of, quoted};
use crate::spanned::Spanned;

use super::reader::{Node, Section};

/// Where each attribute stands.
pub(super) type AttributePlaces = BTreeMap<AttributeKey, Spanned<()>>;

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
    read_quantity(key, node, problems).map(|quantity| Requirement::alone(key, quantity))
}

fn table_wanted(key: AttributeKey) -> String {
    let keys = key.requirement_keys();
    let value = match key.kind() {
        Kind::Unit(dimension) => format!("\"{}\"", dimension.example()),
        Kind::Number => key.range().1.to_string(),
        Kind::Level(words) => format!("\"{}\"", words.last().unwrap_or(&"")),
    };
    let bound = keys.first().unwrap_or(&"");
    format!("a table of {}, for example {{ {bound} = {value} }}", keys.join(", "))
}

/// Reads a table of bounds; none when any of them is wrong, so that one mistake is told once.
fn read_bounds(
    key: AttributeKey,
    section: &Section<'_>,
    problems: &mut Problems<'_>,
) -> Option<Requirement> {
    let foreign = foreign_bound(key);
    section.check_keys_but(key.requirement_keys(), foreign.map(Bound::name), problems);
    if let Some(bound) = foreign.filter(|bound| section.optional(bound.name()).is_some()) {
        report_foreign(key, bound, section, problems);
        return None;
    }
    let min = section.optional("min").map(|node| read_quantity(key, &node, problems));
    let max = section.optional("max").map(|node| read_quantity(key, &node, problems));
    let weight = section.optional("weight").map(|node| read_weight(&node, problems));
    if matches!(min, Some(None)) || matches!(max, Some(None)) || matches!(weight, Some(None)) {
        return None;
    }
    Some(Requirement { min: min.flatten(), max: max.flatten(), weight: weight.flatten() })
}

/// The bound that the attribute does not take.
fn foreign_bound(key: AttributeKey) -> Option<Bound> {
    [Bound::Min, Bound::Max].into_iter().find(|&bound| !key.bounds().takes(bound))
}

fn report_foreign(
    key: AttributeKey,
    bound: Bound,
    section: &Section<'_>,
    problems: &mut Problems<'_>,
) {
    let what = RequirementError::Bound { key, bound }.to_string();
    let path = path_of(&section.path, bound.name());
    let allowed = key.requirement_keys().join(", ");
    problems.report(section.key_offset(bound.name()), &path, what, allowed);
}

/// A text or a number as text: what the readers of units and numbers take.
pub(super) fn scalar_text(node: &Node<'_>) -> Option<String> {
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
    let is_text = node.scalar().is_some_and(Value::is_str);
    // A number in quotes is a mistake where no unit can follow.
    let fits = key.kind() != Kind::Number || !is_text;
    let Some(text) = scalar_text(node).filter(|_| fits) else {
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
    let is_text = node.scalar().is_some_and(Value::is_str);
    let Some(text) = scalar_text(node).filter(|_| !is_text) else {
        node.report_type(weight::WANTED, problems);
        return None;
    };
    let percent = weight::parse(&text);
    if percent.is_none() {
        node.report(format!("{} is not a weight", quoted(&text)), weight::WANTED, problems);
    }
    percent
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
        RequirementError::Bound { .. }
        | RequirementError::OutOfRange { .. }
        | RequirementError::Weight { .. } => {
            node.report(error.to_string(), key.allowed(), problems);
        }
    }
}
