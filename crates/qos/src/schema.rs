//! [`schema`]: the session file as JSON Schema, for editors and for programs that write one.
//!
//! The keys of the session file with their types, words, patterns and ranges. Tables are mirror
//! types whose doc comments become descriptions; attributes, words and units come from the tables
//! that the reader uses, so that a new one appears by itself.
//!
//! ```text
//!   tables (mirror types) ──┐
//!   AttributeKey::ALL ──────┼── schemars ──> schema() ──> docs/session.schema.json
//!   Dimension's units ──────┘                    └──────> editors, which read it for TOML too
//! ```
//!
//! What a schema cannot say (contradictions between keys, names that differ, weights in steps of
//! 0.01, the range of a quantity with a unit) only
//! [`SessionFile::parse`](crate::SessionFile::parse) checks.
//!
//! Invariants: what the reader accepts is valid; both know the same keys (`tests/schema.rs`).
//!
//! Source: JSON Schema 2020-12, json-schema.org/draft/2020-12.

mod attributes;
mod quantity;
mod tables;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value};

/// The session file as JSON Schema (2020-12); TOML tables are objects, lists of tables arrays.
#[must_use]
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(without_null))
        .with_transform(RecursiveTransform(without_breaks));
    settings.into_generator().into_root_schema_for::<tables::SessionDocument>().to_value()
}

/// TOML has no null: what may be left out is left out.
fn without_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        extend(object, only);
    }
}

/// Doc comments are broken to the width of the source.
fn without_breaks(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// Adds what is not there yet.
fn extend(object: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        object.entry(key).or_insert(value);
    }
}
