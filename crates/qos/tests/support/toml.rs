//! TOML as JSON: tables are objects, lists of tables arrays.

use serde_json::{Map, Value, json};
use toml_edit::{Document, Item, TableLike};

/// The text as JSON. What JSON does not have (a date, a number that is none) is null.
pub fn to_json(text: &str) -> Value {
    let document = Document::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    table(document.as_table())
}

fn table(table: &dyn TableLike) -> Value {
    let entries = table.iter().map(|(key, value)| (key.to_owned(), item(value)));
    Value::Object(entries.collect::<Map<_, _>>())
}

fn item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(scalar) => value(scalar),
        Item::Table(inner) => table(inner),
        Item::ArrayOfTables(tables) => tables.iter().map(|inner| table(inner)).collect(),
    }
}

fn value(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => json!(text.value()),
        Toml::Integer(whole) => json!(whole.value()),
        Toml::Float(number) => json!(number.value()),
        Toml::Boolean(yes) => json!(yes.value()),
        Toml::Datetime(_) => Value::Null,
        Toml::Array(array) => array.iter().map(self::value).collect(),
        Toml::InlineTable(inner) => table(inner),
    }
}
