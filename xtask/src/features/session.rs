//! Keys of session files, from their schema, and what a graph is made of, from the catalogue.

use serde_json::Value;
use std::io;

use super::lost::Lines;

/// How deep keys lie in keys; a schema that refers to itself ends here.
const DEPTH_MAX: usize = 12;

/// `key flow.attributes.delay`, and `key flow.from = creator` for each value that is named.
///
/// # Errors
/// The schema is no JSON.
pub fn keys(schema: &str) -> io::Result<Lines> {
    let root: Value = serde_json::from_str(schema)?;
    let mut lines = Lines::new();
    walk(&root, &root, "", DEPTH_MAX, &mut lines);
    Ok(lines)
}

fn walk(root: &Value, value: &Value, prefix: &str, depth: usize, lines: &mut Lines) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if let Some(to) = value["$ref"].as_str().and_then(|to| root.pointer(to.trim_start_matches('#')))
    {
        walk(root, to, prefix, depth, lines);
    }
    for list in ["anyOf", "oneOf", "allOf"] {
        for each in value[list].as_array().into_iter().flatten() {
            walk(root, each, prefix, depth, lines);
        }
    }
    for below in ["items", "additionalProperties"] {
        walk(root, &value[below], prefix, depth, lines);
    }
    let values = value["enum"].as_array().into_iter().flatten().chain([&value["const"]]);
    lines.extend(values.filter_map(Value::as_str).map(|it| format!("key {prefix} = {it}")));
    for (name, each) in value["properties"].as_object().into_iter().flatten() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        lines.insert(format!("key {path}"));
        walk(root, each, &path, depth, lines);
    }
}

/// `module NAME`, `parameter NAME PARAMETER` and `transport NAME`.
///
/// # Errors
/// The catalogue is no JSON.
pub fn catalogue(text: &str) -> io::Result<Lines> {
    let root: Value = serde_json::from_str(text)?;
    let mut lines = Lines::new();
    for (kind, list) in [("module", "modules"), ("transport", "transports")] {
        for entry in root[list].as_array().into_iter().flatten() {
            let name = entry["name"].as_str().unwrap_or_default();
            lines.insert(format!("{kind} {name}"));
            let parameters = entry["params"].as_array().into_iter().flatten();
            let named = parameters.filter_map(|it| it["name"].as_str());
            lines.extend(named.map(|it| format!("parameter {name} {it}")));
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lie_in_keys_and_values_that_are_named_are_found() {
        let schema = r##"{"properties":{"flow":{"type":"array","items":{"$ref":"#/$defs/Flow"}}},
            "$defs":{"Flow":{"properties":{"from":{"enum":["creator","participant"]},
            "graph":{"anyOf":[{"type":"string"},{"properties":{"module":{"const":"arq"}}}]},
            "more":{"$ref":"#/$defs/Flow"}}}}}"##;
        let found: Vec<String> = keys(schema).unwrap().into_iter().collect();
        for line in [
            "key flow",
            "key flow.from",
            "key flow.from = creator",
            "key flow.graph.module = arq",
            "key flow.more.from",
        ] {
            assert!(found.contains(&line.to_owned()), "{line}: {found:?}");
        }
        assert!(keys("{").is_err());
    }

    #[test]
    fn modules_transports_and_parameters_are_found() {
        let text = r#"{"modules":[{"name":"segment","params":[{"name":"patience"}]}],
            "transports":[{"name":"udp"}]}"#;
        let found: Vec<String> = catalogue(text).unwrap().into_iter().collect();
        assert_eq!(found, ["module segment", "parameter segment patience", "transport udp"]);
    }
}
