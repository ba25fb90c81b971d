//! JSON Schema, as far as the schema of session files uses it.
//!
//! A validator of the keywords below.
//!
//! Source: JSON Schema 2020-12, core and validation.

use serde_json::{Map, Value};

use super::pattern;

/// Keywords that only describe.
const ANNOTATIONS: [&str; 6] = ["$schema", "$defs", "title", "description", "examples", "format"];

/// What is wrong with `value`, each with its place; nothing when it is valid.
pub fn errors(root: &Value, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    Validator { root }.check(root, value, "", &mut errors);
    errors
}

/// `schema`, or what it refers to.
pub fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(target) => {
            let pointer = target.strip_prefix('#').unwrap();
            resolve(root, root.pointer(pointer).unwrap_or_else(|| panic!("{target} is not there")))
        }
        None => schema,
    }
}

struct Validator<'a> {
    root: &'a Value,
}

impl Validator<'_> {
    fn is_valid(&self, schema: &Value, value: &Value) -> bool {
        let mut errors = Vec::new();
        self.check(schema, value, "", &mut errors);
        errors.is_empty()
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
        let Value::Object(keywords) = schema else {
            if *schema == Value::Bool(false) {
                errors.push(format!("{at}: nothing may stand here"));
            }
            assert!(schema.is_boolean(), "{schema} is no schema");
            return;
        };
        for (keyword, wanted) in keywords {
            if let Some(what) = self.keyword(keyword, wanted, keywords, value, at, errors) {
                errors.push(format!("{at}: {what}"));
            }
        }
    }

    /// Checks one keyword; what is wrong with the value itself.
    fn keyword(
        &self,
        keyword: &str,
        wanted: &Value,
        beside: &Map<String, Value>,
        value: &Value,
        at: &str,
        errors: &mut Vec<String>,
    ) -> Option<String> {
        let wrong = |is_wrong: bool| is_wrong.then(|| format!("{value} breaks {keyword} {wanted}"));
        match keyword {
            "$ref" => {
                self.check(
                    resolve(self.root, &serde_json::json!({ "$ref": wanted })),
                    value,
                    at,
                    errors,
                );
                None
            }
            "type" => wrong(!types(wanted).any(|name| is_type(name, value))),
            "const" => wrong(value != wanted),
            "enum" => wrong(!wanted.as_array().unwrap().contains(value)),
            "anyOf" | "oneOf" => {
                let choices = wanted.as_array().unwrap();
                let count = choices.iter().filter(|choice| self.is_valid(choice, value)).count();
                let fits = if keyword == "anyOf" { count >= 1 } else { count == 1 };
                (!fits).then(|| format!("{value} is {count} of the {} choices", choices.len()))
            }
            "pattern" | "minLength" | "maxLength" => {
                let text = value.as_str()?;
                let len = text.chars().count() as u64;
                wrong(match keyword {
                    "pattern" => !pattern::matches(wanted.as_str().unwrap(), text),
                    "minLength" => len < wanted.as_u64().unwrap(),
                    _ => len > wanted.as_u64().unwrap(),
                })
            }
            "minimum" => wrong(value.as_f64()? < wanted.as_f64().unwrap()),
            "maximum" => wrong(value.as_f64()? > wanted.as_f64().unwrap()),
            "items" => {
                for (index, item) in value.as_array()?.iter().enumerate() {
                    self.check(wanted, item, &format!("{at}[{index}]"), errors);
                }
                None
            }
            "minItems" => wrong((value.as_array()?.len() as u64) < wanted.as_u64().unwrap()),
            "maxItems" => wrong(value.as_array()?.len() as u64 > wanted.as_u64().unwrap()),
            _ if ANNOTATIONS.contains(&keyword) => None,
            _ => self.object_keyword(keyword, wanted, beside, value, at, errors),
        }
    }

    fn object_keyword(
        &self,
        keyword: &str,
        wanted: &Value,
        beside: &Map<String, Value>,
        value: &Value,
        at: &str,
        errors: &mut Vec<String>,
    ) -> Option<String> {
        let known = ["properties", "required", "additionalProperties", "propertyNames"];
        let counts = ["minProperties", "maxProperties"];
        assert!(known.contains(&keyword) || counts.contains(&keyword), "{keyword} is not known");
        let object = value.as_object()?;
        let count = object.len() as u64;
        match keyword {
            "minProperties" if count < wanted.as_u64().unwrap() => {
                return Some(format!("{count} keys are too few"));
            }
            "maxProperties" if count > wanted.as_u64().unwrap() => {
                return Some(format!("{count} keys are too many"));
            }
            "required" => {
                let missing = wanted.as_array().unwrap().iter().filter_map(Value::as_str);
                let missing: Vec<_> = missing.filter(|key| !object.contains_key(*key)).collect();
                return (!missing.is_empty()).then(|| format!("{missing:?} is missing"));
            }
            _ => {}
        }
        for (key, value) in object {
            let at = format!("{at}.{key}");
            let is_named = beside.get("properties").is_some_and(|known| known.get(key).is_some());
            match keyword {
                "properties" if is_named => self.check(&wanted[key], value, &at, errors),
                "additionalProperties" if !is_named => self.check(wanted, value, &at, errors),
                "propertyNames" => self.check(wanted, &Value::from(key.as_str()), &at, errors),
                _ => {}
            }
        }
        None
    }
}

fn types(wanted: &Value) -> impl Iterator<Item = &str> {
    let several = wanted.as_array().into_iter().flatten();
    several.chain(wanted.is_string().then_some(wanted)).filter_map(Value::as_str)
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => panic!("type {name} is not known"),
    }
}
