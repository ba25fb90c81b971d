//! Quantities with units as JSON Schema: texts with a pattern.
//!
//! The patterns, made from the table of units. Invariant: a text that [`Dimension::parse`] accepts
//! matches.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::units::Dimension;

/// A number as the reader takes it: nothing below zero but a zero with a sign.
const NUMBER: &str = r"(\+?[0-9]+(\.[0-9]+)?|-0+(\.0+)?)([eE][+-]?[0-9]+)?";

/// What a quantity of this dimension may be.
pub(super) fn of(dimension: Dimension) -> Schema {
    let pattern = pattern(dimension);
    let examples = [dimension.example()];
    match dimension {
        // A share may be a bare number too.
        Dimension::Ratio => json_schema!({
            "type": ["string", "number"], "pattern": pattern, "examples": examples, "minimum": 0,
        }),
        _ => json_schema!({ "type": "string", "pattern": pattern, "examples": examples }),
    }
}

fn pattern(dimension: Dimension) -> String {
    let units = dimension.spellings().join("|");
    let bare = if dimension == Dimension::Ratio { "?" } else { "" };
    format!(r"^\s*{NUMBER}\s*({units}){bare}\s*$")
}

/// A type whose schema is that of a dimension.
macro_rules! quantity {
    ($name:ident, $dimension:expr, $description:literal) => {
        pub(super) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let mut schema = of($dimension);
                schema.insert("description".to_owned(), $description.into());
                schema
            }
        }
    };
}

quantity!(Duration, Dimension::Duration, "A span of time.");
quantity!(Rate, Dimension::Rate, "Data per time.");
quantity!(Size, Dimension::Size, "An amount of data.");
quantity!(Frequency, Dimension::Frequency, "Events per second.");

/// A share of a whole, at most all of it.
pub(super) struct Share;

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = of(Dimension::Ratio);
        let description = "A share of a whole, at most all of it; a bare number is a share of one.";
        schema.insert("description".to_owned(), description.into());
        schema.insert("maximum".to_owned(), 1.into());
        schema
    }
}
