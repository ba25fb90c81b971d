//! The schema of session files: it is current, it agrees with the reader key for key, and the files
//! of `conf/` keep to it.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;

use dacapo_base::Random;
use dacapo_base::seeds::number;
use dacapo_qos::{AttributeKey, Dimension, SessionFile, UnitFault, schema};
use serde_json::Value;
use support::toml::to_json;
use support::validator::{errors, resolve};
use support::{FULL, examples, pattern};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/session.schema.json");
const RENEW: &str =
    "DACAPO_WRITE=1 cargo test -p dacapo-qos --test schema the_committed_schema_is_current";

#[test]
fn the_committed_schema_is_current() {
    let is = schema();
    if std::env::var_os("DACAPO_WRITE").is_some() {
        let text = serde_json::to_string_pretty(&is).unwrap() + "\n";
        std::fs::write(FILE, text).unwrap();
    }
    let committed = std::fs::read_to_string(FILE).unwrap_or_default();
    let committed: Value = serde_json::from_str(&committed).unwrap_or_default();
    assert!(committed == is, "docs/session.schema.json is not what the code makes; renew: {RENEW}");
}

#[test]
fn the_examples_and_the_file_with_every_key_are_valid() {
    pattern::check_matcher();
    let full = ("full.toml".to_owned(), FULL.to_owned());
    for (name, text) in examples().into_iter().chain([full]) {
        assert_eq!(errors(&schema(), &to_json(&text)), [""; 0], "{name}");
        SessionFile::parse(&text, &name).unwrap_or_else(|errors| panic!("{errors}"));
    }
}

#[test]
fn the_requests_of_the_documentation_are_valid() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/requests.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0)
        .filter(|block| block.contains("[[flow]]"))
        .collect();
    assert!(blocks.len() >= 24, "only {} requests", blocks.len());
    for block in blocks {
        let text = format!("{HEAD}{block}");
        SessionFile::parse(&text, "request").unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        assert_eq!(errors(&schema(), &to_json(&text)), [""; 0], "{text}");
    }
}

/// The keys of every object of the schema, wherever it stands.
fn schema_keys(schema: &Value, keys: &mut BTreeSet<String>) {
    if let Some(Value::Object(properties)) = schema.get("properties") {
        keys.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(inner) => inner.values().for_each(|value| schema_keys(value, keys)),
        Value::Array(inner) => inner.iter().for_each(|value| schema_keys(value, keys)),
        _ => {}
    }
}

/// The keys that a file has anywhere.
fn file_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                keys.insert(key.clone());
                file_keys(value, keys);
            }
        }
        Value::Array(inner) => inner.iter().for_each(|value| file_keys(value, keys)),
        _ => {}
    }
}

#[test]
fn the_file_with_every_key_has_every_key_and_two_way_shows_them() {
    let (mut known, mut full) = (BTreeSet::new(), BTreeSet::new());
    schema_keys(&schema(), &mut known);
    file_keys(&to_json(FULL), &mut full);
    let missing: Vec<_> = known.difference(&full).collect();
    assert!(missing.is_empty(), "tests/support/full.toml lacks {missing:?}");

    let (_, two_way) = examples().into_iter().find(|(name, _)| name == "two-way.toml").unwrap();
    let shows =
        |key: &str| two_way.contains(&format!("{key} = ")) || two_way.contains(&format!("[{key}]"));
    // Those of other sources are in the other examples.
    let elsewhere = ["file", "test", "stream", "duration", "loop"];
    let missing: Vec<_> = known
        .iter()
        .filter(|key| !elsewhere.contains(&key.as_str()))
        .filter(|key| !shows(key) && !two_way.contains(&format!("[[{key}]]")))
        .filter(|key| key.as_str() != "attributes" || !two_way.contains("[flow.attributes]"))
        .collect();
    assert!(missing.is_empty(), "conf/two-way.toml lacks {missing:?}");
}

const HEAD: &str = "[session]\nname = \"s\"\n";
const FLOW: &str = "[[flow]]\nname = \"f\"\nfrom = \"creator\"\n";

/// What the reader allows where it finds the key `xqz` that it does not know.
fn reader_keys(text: &str) -> BTreeSet<String> {
    let errors = SessionFile::parse(text, "s.toml").expect_err(text);
    let problem = errors.problems().iter().find(|problem| problem.key.ends_with("xqz"));
    let problem = problem.unwrap_or_else(|| panic!("{errors}"));
    assert_eq!(problem.what, "unknown key", "{problem}");
    problem.allowed.as_deref().unwrap().split(", ").map(str::to_owned).collect()
}

/// The keys that one object of the schema has; it must allow no other.
fn keys_at(object: &Value) -> BTreeSet<String> {
    assert_eq!(object["additionalProperties"], false, "{object}");
    object["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn reader_and_schema_know_the_same_keys_in_every_table() {
    let root = schema();
    let at = |schema: &Value, key: &str| resolve(&root, &schema["properties"][key]).clone();
    let compare = |text: String, object: &Value| {
        assert_eq!(reader_keys(&text), keys_at(object), "{text}");
    };
    let flow = resolve(&root, &root["properties"]["flow"]["items"]).clone();
    let raw = "source = { raw = true }\n";
    compare(format!("xqz = 1\n{HEAD}{FLOW}{raw}"), &root);
    compare(format!("{HEAD}xqz = 1\n{FLOW}{raw}"), &at(&root, "session"));
    compare(format!("{HEAD}[path]\nxqz = 1\n{FLOW}{raw}"), &at(&root, "path"));
    compare(format!("{HEAD}{FLOW}{raw}xqz = 1\n"), &flow);
    let sources = at(&flow, "source")["anyOf"].as_array().unwrap().clone();
    for (kind, value) in [("file", "\"a\""), ("test", "\"movie\""), ("raw", "true")] {
        let object = sources.iter().map(|source| resolve(&root, source));
        let object = object.into_iter().find(|source| source["properties"].get(kind).is_some());
        let source = format!("source = {{ {kind} = {value}, xqz = 1 }}\n");
        compare(format!("{HEAD}{FLOW}{source}"), object.unwrap());
    }
    let attributes = at(&flow, "attributes");
    compare(format!("{HEAD}{FLOW}{raw}attributes.xqz = 1\n"), &attributes);
    for key in AttributeKey::ALL {
        let requirement = at(&attributes, key.name());
        let text = format!("{HEAD}{FLOW}{raw}attributes.{key} = {{ weight = 0, xqz = 1 }}\n");
        compare(text, resolve(&root, &requirement["anyOf"][1]));
    }
}

#[test]
fn what_is_wrong_for_the_reader_is_wrong_for_the_schema() {
    let root = schema();
    for (from, to) in [
        ("title = ", "titel = "),
        ("\"internet\"", "\"intranet\""),
        ("\"50 Mbit/s\"", "\"50 Mbps\""),
        ("\"30 ms\"", "\"-30 ms\""),
        ("\"10 ms\"", "10"),
        ("burst = 2.5", "burst = 0.5"),
        ("burst = 2.5", "burst = \"2.5\""),
        ("name = \"picture\"", "name = \"Picture\""),
        ("name = \"picture\"\n", ""),
        ("\"creator\"", "\"nobody\""),
        ("\"video:1\"", "\"video:256\""),
        ("\"video:1\"", "\"video:\""),
        ("rate = \"29.97 /s\"", "rate = 29.97"),
        ("window = 8", "window = [8]"),
        ("window = 8", "Window = 8"),
        ("module = ", "modul = "),
        ("\"udp\"", "\"in proc\""),
        ("\"150 ms\"", "\"150\""),
        ("delay = { max", "delay = { min"),
        ("loss = 0.001", "loss = 1.001"),
        ("loss = 0.001", "loss = \"0.1 %%\""),
        ("order = \"ordered\"", "order = \"sorted\""),
        ("priority = 5", "priority = 8"),
        ("priority = 5", "priority = \"5\""),
        ("priority = 5", "priority = 5.5"),
        ("cpu = { max = 0.2, weight = 0 }", "cpu = {}"),
        ("weight = 0.5", "weight = 1.5"),
        ("receivers = { min = 1", "receivers = { min = 0"),
        ("{ raw = true }", "{ raw = false }"),
        ("{ raw = true }", "{ raw = true, file = \"a\" }"),
        ("access = \"numbers\"", "access = \"Numbers\""),
        ("access = \"numbers\"", "access = 5"),
        ("access = \"meter\"", "every_one = 1"),
        ("graph = []", "graph = [5]"),
        ("graph = []", "graph = \"segment\""),
        ("\"1400 B\"", "\"1400 b\""),
    ] {
        assert!(FULL.contains(from), "{from}");
        let text = FULL.replacen(from, to, 1);
        assert!(SessionFile::parse(&text, "f").is_err(), "the reader takes {to}");
        assert!(!errors(&root, &to_json(&text)).is_empty(), "the schema takes {to}");
    }
}

#[test]
fn patterns_match_what_the_reader_of_quantities_takes() {
    let root = schema();
    let alphabet: Vec<char> = "0015.+-eE  %msunkMGbit/BiKpµμ\tx".chars().collect();
    let units = ["ms", "us", "µs", "min", "Mbit/s", "bit/s", "KiB", "B", "%", "ppm", "/s", ""];
    let numbers =
        ["0", "1.5", "-0", "-0.0", "+2", "-1", "1e3", "1E-3", "007", "1.", "1e", ".5", ""];
    let seed = number("DACAPO_SEED", 1);
    let mut random = Random::from_number(seed);
    let mut pick = |count: usize| random.below(count as u64) as usize;
    let (mut matched, mut refused) = (0, 0);
    for _ in 0..40_000 {
        let text: String = if pick(2) == 0 {
            (0..pick(10)).map(|_| alphabet[pick(alphabet.len())]).collect()
        } else {
            let blank = [" ", "", "\t"][pick(3)];
            format!("{blank}{}{blank}{}", numbers[pick(numbers.len())], units[pick(units.len())])
        };
        for (name, dimension) in [
            ("Duration", Dimension::Duration),
            ("Rate", Dimension::Rate),
            ("Size", Dimension::Size),
            ("Frequency", Dimension::Frequency),
            ("Share", Dimension::Ratio),
        ] {
            let pattern = root["$defs"][name]["pattern"].as_str().unwrap();
            let is_match = pattern::matches(pattern, &text);
            // How large and how fine a number may be, no pattern sees.
            let is_read = match dimension.parse(&text) {
                Ok(_) => true,
                Err(error) => matches!(error.fault, UnitFault::TooFine | UnitFault::TooLarge),
            };
            assert_eq!(is_match, is_read, "seed {seed}: {text:?} as {name}");
            *(if is_match { &mut matched } else { &mut refused }) += 1;
        }
    }
    assert!(matched > 2_000 && refused > 2_000, "{matched} matched, {refused} refused");
}
