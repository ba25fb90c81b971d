//! The example files of `conf/` are read, and no damage to them causes a panic or an error without
//! a place.

// Helpers of tests stand outside of test functions here, where the lint still looks.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use dacapo_base::Random;
use dacapo_qos::{AttributeKey, MAX_FILE_LEN, Role, SessionFile, Source};

/// Names and texts of the example files, in the order of the names.
fn examples() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path.file_name().unwrap().to_string_lossy().into_owned(), text)
    };
    paths.into_iter().map(read).collect()
}

fn example(name: &str) -> SessionFile {
    let (origin, text) = examples().into_iter().find(|(file, _)| file == name).unwrap();
    SessionFile::parse(&text, &origin).unwrap()
}

#[test]
fn every_example_is_read_and_named_as_its_file() {
    let examples = examples();
    assert!(examples.len() >= 4, "only {} examples", examples.len());
    for (origin, text) in &examples {
        let file = SessionFile::parse(text, origin).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(format!("{}.toml", file.name.value), *origin);
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{origin} has a long line");
    }
}

#[test]
fn the_examples_show_every_source_role_and_attribute() {
    let two_way = example("two-way.toml");
    let keys: Vec<_> = two_way.flows[0].attributes.entries().map(|(key, _)| key).collect();
    assert_eq!(keys, AttributeKey::ALL);
    assert_eq!(two_way.flows[1].from.value, Role::Participant);
    assert_eq!(two_way.flows[1].source.value, Source::Raw);
    let radio = example("radio.toml");
    assert!(matches!(radio.flows[0].source.value, Source::File { stream: None, .. }));
    let testcard = example("testcard.toml");
    assert!(matches!(testcard.flows[0].source.value, Source::Test { duration: Some(_), .. }));
    let movie = example("movie.toml");
    assert_eq!(movie.flows.len(), 2);
    assert!(matches!(movie.flows[1].source.value, Source::File { stream: Some(_), .. }));
}

const TOKENS: &[&str] = &[
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\"",
    "'",
    "\"\"\"",
    "#",
    "\n",
    "\r\n",
    "\\",
    "\\u",
    "flow",
    "[[flow]]",
    "[session]",
    "[flow.attributes]",
    "name",
    "min",
    "max",
    "weight",
    "raw",
    "true",
    "nan",
    "-inf",
    "-1",
    "0",
    "1e999",
    "0x7fffffffffffffff",
    "9223372036854775807",
    "1979-05-27",
    "\"50 mm\"",
    "ms",
    "Mbit/s",
    "%",
    "\u{b5}",
    "\u{0}",
    "\u{feff}",
    "\u{202e}",
    "\u{1f3ac}",
];

/// A place in `bytes`, its end included.
fn place(bytes: &[u8], random: &mut Random) -> usize {
    random.below(bytes.len() as u64 + 1) as usize
}

/// A short range of `bytes`.
fn range(bytes: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let start = place(bytes, random);
    let len = random.below(40) as usize;
    start..bytes.len().min(start + len)
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    match random.below(6) {
        0 => {
            let at = place(bytes, random).min(bytes.len().saturating_sub(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next_u32() as u8;
            }
        }
        1 => drop(bytes.drain(range(bytes, random))),
        2 => {
            let copy = bytes[range(bytes, random)].to_vec();
            let at = place(bytes, random);
            bytes.splice(at..at, copy);
        }
        3 => {
            let lines: Vec<Vec<u8>> =
                bytes.split_inclusive(|&b| b == b'\n').map(Vec::from).collect();
            let line = random.below(lines.len() as u64 + 1) as usize;
            let at = place(bytes, random);
            bytes.splice(at..at, lines.get(line).cloned().unwrap_or_default());
        }
        4 => bytes.truncate(place(bytes, random)),
        _ => {
            let token = TOKENS[random.below(TOKENS.len() as u64) as usize];
            let range = if random.chance(0.5) { range(bytes, random) } else { 0..0 };
            let at = if range.is_empty() { place(bytes, random) } else { range.start };
            let end = range.end.max(at);
            bytes.splice(at..end, token.bytes());
        }
    }
}

/// Reads damaged bytes; whether they still are a session file.
fn check(bytes: &[u8], seed: u64) -> bool {
    assert!(bytes.len() <= MAX_FILE_LEN);
    let Err(errors) = SessionFile::parse_bytes(bytes, "m.toml") else { return true };
    let line_count = bytes.split(|&b| b == b'\n').count();
    assert!(!errors.problems().is_empty(), "seed {seed}: an error without a problem");
    for problem in errors.problems() {
        let line = problem.line as usize;
        assert!((1..=line_count).contains(&line), "seed {seed}: {problem} of {line_count} lines");
        assert!(problem.column >= 1, "seed {seed}: {problem}");
        let text = problem.to_string();
        assert!(!text.contains(|c: char| c.is_control()), "seed {seed}: {text:?}");
        assert!(text.len() < 2_000, "seed {seed}: {text}");
    }
    false
}

#[test]
fn damaged_examples_never_panic_and_every_error_has_a_line_of_the_file() {
    let rounds = std::env::var("DACAPO_ROUNDS").map_or(10_000, |n| n.parse().unwrap());
    let examples = examples();
    let mut accepted = 0;
    for seed in 0..rounds {
        let mut random = Random::from_number(seed);
        let (_, text) = &examples[random.below(examples.len() as u64) as usize];
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random.below(4) {
            mutate(&mut bytes, &mut random);
        }
        accepted += u64::from(check(&bytes, seed));
    }
    // Damage in a comment leaves a session file; damage elsewhere should not.
    assert!(accepted > rounds / 20 && accepted < rounds / 2, "{accepted} of {rounds} accepted");
}
