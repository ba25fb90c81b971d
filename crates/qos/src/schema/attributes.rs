//! The attributes of a flow as JSON Schema.
//!
//! One property per [`AttributeKey`], with the bounds that it takes; descriptions are the doc
//! comments of the keys. Invariant: every key of [`AttributeKey::ALL`] has a property.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use crate::attribute::{AttributeKey, Bounds, Kind};
use crate::units::{Dimension, PPB};

use super::quantity::{self, Duration, Frequency, Rate, Share, Size};

/// `[flow.attributes]`.
pub(super) struct AttributesTable;

impl JsonSchema for AttributesTable {
    fn schema_name() -> Cow<'static, str> {
        "Attributes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let documented = AttributeKey::json_schema(generator);
        let properties: Map<String, Value> = AttributeKey::ALL
            .into_iter()
            .map(|key| (key.name().to_owned(), requirement(key, &documented, generator)))
            .collect();
        json_schema!({
            "description": "What the flow must be. min and max are hard bounds; weight says how \
                            much better than the bounds is worth.",
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

/// How much better than the bounds is worth, in steps of 0.01.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Weight(
    #[schemars(range(min = 0, max = 1))]
    #[allow(dead_code)]
    f64,
);

/// What may be asked of one attribute: a value alone, or a table of bounds and weight.
fn requirement(key: AttributeKey, documented: &Schema, generator: &mut SchemaGenerator) -> Value {
    let value = value(key, generator);
    let mut properties = Map::new();
    for name in key.requirement_keys() {
        let schema = match *name {
            "weight" => generator.subschema_for::<Weight>().to_value(),
            _ => value.clone(),
        };
        properties.insert((*name).to_owned(), schema);
    }
    let alone = match key.bounds() {
        Bounds::Min => "A value alone is the least that will do.",
        Bounds::Max => "A value alone is the most that will do.",
        Bounds::Both => "A value alone is exactly that.",
    };
    let description = format!("{} {alone}", comment_of(key, documented));
    let table = json_schema!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "minProperties": 1,
    });
    json_schema!({ "description": description, "anyOf": [value, table] }).to_value()
}

/// The doc comment of a key.
fn comment_of(key: AttributeKey, documented: &Schema) -> &str {
    let keys = documented.get("oneOf").and_then(Value::as_array);
    let is_key = |entry: &&Value| entry.get("const").is_some_and(|name| name == key.name());
    let entry = keys.and_then(|keys| keys.iter().find(is_key));
    entry.and_then(|entry| entry.get("description")?.as_str()).unwrap_or_default()
}

fn value(key: AttributeKey, generator: &mut SchemaGenerator) -> Value {
    let (low, high) = key.range();
    let schema = match key.kind() {
        Kind::Level(words) => json_schema!({ "type": "string", "enum": words }),
        Kind::Number => json_schema!({ "type": "integer", "minimum": low, "maximum": high }),
        Kind::Unit(Dimension::Duration) => generator.subschema_for::<Duration>(),
        Kind::Unit(Dimension::Rate) => generator.subschema_for::<Rate>(),
        Kind::Unit(Dimension::Size) => generator.subschema_for::<Size>(),
        Kind::Unit(Dimension::Frequency) => generator.subschema_for::<Frequency>(),
        Kind::Unit(Dimension::Ratio) if high <= PPB => generator.subschema_for::<Share>(),
        Kind::Unit(Dimension::Ratio) => {
            let mut schema = quantity::of(Dimension::Ratio);
            schema.insert("maximum".to_owned(), high.div_ceil(PPB).into());
            schema
        }
    };
    schema.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathPreset;
    use crate::session_file::Role;
    use crate::word::Word;

    /// The words that a type derives, each with a description.
    fn derived<T: JsonSchema>() -> Vec<String> {
        let schema = T::json_schema(&mut SchemaGenerator::default());
        let entries = schema.get("oneOf").and_then(Value::as_array).unwrap().clone();
        assert!(entries.iter().all(|entry| entry["description"].is_string()), "{entries:?}");
        entries.iter().map(|entry| entry["const"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn words_are_those_of_the_reader() {
        assert_eq!(derived::<AttributeKey>(), AttributeKey::ALL.map(AttributeKey::name));
        assert_eq!(derived::<Role>(), Role::words());
        assert_eq!(derived::<PathPreset>(), PathPreset::words());
    }

    #[test]
    fn every_attribute_has_a_description() {
        let documented = AttributeKey::json_schema(&mut SchemaGenerator::default());
        for key in AttributeKey::ALL {
            assert!(comment_of(key, &documented).ends_with('.'), "{key}");
        }
    }
}
