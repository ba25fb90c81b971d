//! Session files that were damaged: none makes the reader panic, every mistake has a line of the
//! file, and what is accepted all the same keeps every promise of [`SessionFile`].
//!
//! A failure prints its seed; `DACAPO_SEED=n cargo test -p dacapo-qos --test mutated one_seed`
//! repeats it alone. `DACAPO_SEEDS` sets how many are run. How long a file takes is not measured:
//! that the reader's steps are bounded shows in the bounded number and length of what it says, and
//! in that texts of the longest kind come back at all.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;

use dacapo_base::Random;
use dacapo_base::seeds::number;
use dacapo_qos::{
    AttributeKey, FlowSpec, MAX_ATTRIBUTES, MAX_FILE_LEN, MAX_FLOWS, MAX_MODULES, MAX_PARAMS,
    MAX_UNIT_LEN, Passes, PathKey, Problem, Role, SessionFile, Source, is_name, schema,
};
use serde_json::Value;
use support::toml::to_json;
use support::{FULL, examples, validator};

const SEEDS: u64 = 10_000;

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
    "[path]",
    "[flow.attributes]",
    "name",
    "unit_max",
    "digest",
    "multicast",
    "assume",
    "burst",
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

/// The files that are damaged.
fn texts() -> Vec<String> {
    let examples = examples().into_iter().map(|(_, text)| text);
    examples.chain(vec![FULL.to_owned(); 4]).collect()
}

fn pick<'a, T: ?Sized>(list: &[&'a T], random: &mut Random) -> &'a T {
    list[random.below(list.len() as u64) as usize]
}

/// Where the lines that say something are: a key and a value, or the head of a table.
fn telling_lines(text: &str) -> Vec<usize> {
    let tells = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    text.lines().enumerate().filter(|(_, line)| tells(line)).map(|(at, _)| at).collect()
}

/// Replaces one line.
fn with_line(text: &str, at: usize, line: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines[at] = line;
    lines.join("\n") + "\n"
}

// ------------------------------------------------------------------------------ blind damage

/// A place in `text`, its end included.
fn place(text: &[u8], random: &mut Random) -> usize {
    random.below(text.len() as u64 + 1) as usize
}

/// A short range of `text`.
fn range(text: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let start = place(text, random);
    start..text.len().min(start + random.below(40) as usize)
}

fn damage_bytes(text: &mut Vec<u8>, random: &mut Random) {
    match random.below(6) {
        0 => {
            let at = place(text, random).min(text.len().saturating_sub(1));
            if let Some(byte) = text.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => drop(text.drain(range(text, random))),
        2 => {
            let copy = text[range(text, random)].to_vec();
            let at = place(text, random);
            text.splice(at..at, copy);
        }
        3 => text.truncate(place(text, random)),
        4 => {
            let at = place(text, random);
            text.splice(at..at, pick(TOKENS, random).bytes());
        }
        _ => {
            let range = range(text, random);
            text.splice(range, pick(TOKENS, random).bytes());
        }
    }
}

/// Moves, doubles, swaps or removes whole lines, or puts one of another file into a flow.
fn damage_lines(text: &str, texts: &[String], random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let telling = telling_lines(text);
    if telling.is_empty() {
        return text.to_owned();
    }
    let [from, to] = [(); 2].map(|()| telling[random.below(telling.len() as u64) as usize]);
    let donor = &texts[random.below(texts.len() as u64) as usize];
    let heads = telling.iter().filter(|&&at| lines[at].starts_with("from = "));
    let heads: Vec<usize> = heads.copied().collect();
    match random.below(5) {
        _ if heads.is_empty() => lines.swap(from, to),
        4 => {
            let given = telling_lines(donor);
            let line = given[random.below(given.len() as u64) as usize];
            let head = heads[random.below(heads.len() as u64) as usize];
            lines.insert(head, donor.lines().nth(line).unwrap());
        }
        0 => lines.swap(from, to),
        1 => lines.insert(to, lines[from]),
        2 => drop(lines.remove(from)),
        _ => {
            let line = lines.remove(from);
            lines.insert(to.min(lines.len()), line);
        }
    }
    lines.join("\n") + "\n"
}

/// The words of a text and what is between them.
fn tokens(text: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '/' || c == '%';
    let mut tokens: Vec<String> = Vec::new();
    let mut was_word = None;
    for c in text.chars() {
        match tokens.last_mut().filter(|_| was_word == Some(is_word(c))) {
            Some(token) => token.push(c),
            None => tokens.push(c.into()),
        }
        was_word = Some(is_word(c));
    }
    tokens
}

/// Swaps words, replaces numbers and units, renames keys.
fn damage_tokens(text: &str, random: &mut Random) -> String {
    let mut tokens = tokens(text);
    let is_number = |token: &String| token.starts_with(|c: char| c.is_ascii_digit());
    let is_word = |token: &String| token.starts_with(char::is_alphabetic);
    let numbers: Vec<usize> = (0..tokens.len()).filter(|&at| is_number(&tokens[at])).collect();
    let words: Vec<usize> = (0..tokens.len()).filter(|&at| is_word(&tokens[at])).collect();
    let kind = random.below(4);
    let mut one = |places: &[usize]| {
        let at = random.below(places.len().max(1) as u64) as usize;
        places.get(at).copied()
    };
    match kind {
        0 => {
            if let (Some(a), Some(b)) = (one(&words), one(&words)) {
                tokens.swap(a, b);
            }
        }
        1 => {
            if let Some(at) = one(&numbers) {
                let numbers =
                    ["0", "-1", "1e9", "0.5", "18446744073709551616", "1e-9", "nan", "0x10", "64"];
                tokens[at] = pick(&numbers, random).to_owned();
            }
        }
        2 => {
            if let Some(at) = one(&words) {
                let units = ["ns", "ms", "min", "Mbit/s", "kbit/s", "KiB", "MiB", "ppb", "%", "/s"];
                tokens[at] = pick(&units, random).to_owned();
            }
        }
        _ => {
            if let Some(at) = one(&words) {
                tokens[at] = AttributeKey::ALL[random.below(14) as usize].name().to_owned();
            }
        }
    }
    tokens.concat()
}

/// Replaces a text in quotes by another one, of the file or of the ends of a range.
fn damage_strings(text: &str, random: &mut Random) -> String {
    let mut parts: Vec<&str> = text.split('"').collect();
    let strings = parts.len() / 2;
    if strings == 0 {
        return text.to_owned();
    }
    let at = 2 * random.below(strings as u64) as usize + 1;
    let edges = ["", "0 B", "65 MiB", "0 ms", "0 bit/s", "1 ns", "101 %", "1001 Gbit/s", "61 min"];
    parts[at] = match random.below(3) {
        0 => pick(&edges, random),
        _ => parts[2 * random.below(strings as u64) as usize + 1],
    };
    parts.join("\"")
}

/// Nests far deeper than anybody writes, or repeats the file.
fn damage_hugely(text: &str, random: &mut Random) -> String {
    let depth = 1_usize << random.below(15);
    let at = telling_lines(text);
    let at = at.get(random.below(at.len().max(1) as u64) as usize).copied().unwrap_or(0);
    let line = match random.below(5) {
        0 => format!("graph = {}{}", "[".repeat(depth), "]".repeat(depth)),
        1 => format!("source = {}1{}", "{ a = ".repeat(depth), " }".repeat(depth)),
        2 => format!("{}x = 1", "a.".repeat(depth)),
        3 => format!("[{}x]", "flow.".repeat(depth)),
        _ => return text.repeat(1 + random.below(40) as usize),
    };
    if text.is_empty() { line } else { with_line(text, at, &line) }
}

fn damaged(seed: u64) -> Vec<u8> {
    let mut random = Random::from_number(seed);
    let texts = texts();
    let mut bytes = texts[random.below(texts.len() as u64) as usize].clone().into_bytes();
    for _ in 0..=random.below(3) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match random.below(8) {
            0 | 1 => damage_bytes(&mut bytes, &mut random),
            2 | 3 => bytes = damage_lines(&text, &texts, &mut random).into_bytes(),
            4 | 5 => bytes = damage_tokens(&text, &mut random).into_bytes(),
            6 => bytes = damage_strings(&text, &mut random).into_bytes(),
            _ if random.chance(0.1) => bytes = damage_hugely(&text, &mut random).into_bytes(),
            _ => {}
        }
        bytes.truncate(MAX_FILE_LEN);
    }
    bytes
}

// ------------------------------------------------------------------------------ what must hold

/// Why the reader has broken a promise; none when it has not. The flag tells whether the file was
/// accepted.
fn broken(bytes: &[u8], schema: &Value) -> (bool, Option<String>) {
    match SessionFile::parse_bytes(bytes, "m.toml") {
        Ok(file) => {
            let text = std::str::from_utf8(bytes).unwrap();
            let invalid = || validator::errors(schema, &to_json(text)).into_iter().next();
            (true, broken_file(&file).or_else(invalid))
        }
        Err(errors) => {
            let line_count = bytes.split(|&b| b == b'\n').count();
            let problems = errors.problems();
            let count = (!(1..=257).contains(&problems.len())).then(|| "how many?".to_owned());
            let found = problems.iter().find_map(|problem| broken_problem(problem, line_count));
            (false, count.or(found))
        }
    }
}

fn broken_problem(problem: &Problem, line_count: usize) -> Option<String> {
    let text = problem.to_string();
    if !(1..=line_count).contains(&(problem.line as usize)) || problem.column == 0 {
        return Some(format!("{text}: there are {line_count} lines"));
    }
    let is_wrong = text.contains(|c: char| c.is_control()) || text.len() > 2_000;
    is_wrong.then(|| format!("not fit to print: {text:?}"))
}

/// The invariants that [`SessionFile`] documents.
fn broken_file(file: &SessionFile) -> Option<String> {
    let names: BTreeSet<&str> = file.flows.iter().map(|flow| flow.name.as_str()).collect();
    let attributes: usize = file.flows.iter().map(|flow| flow.attributes.len()).sum();
    let path = file.path.map(|path| path.value).unwrap_or_default();
    let in_range = |key: PathKey| {
        let (low, high) = key.range();
        path.figure(key).is_none_or(|figure| (low..=high).contains(&figure))
    };
    let promises = [
        ("flows", (1..=MAX_FLOWS).contains(&file.flows.len())),
        ("names differ", names.len() == file.flows.len()),
        ("names", names.iter().all(|name| is_name(name)) && is_name(&file.name)),
        ("attributes", attributes <= MAX_ATTRIBUTES),
        ("path", PathKey::ALL.into_iter().all(in_range) && path.path().burst_milli >= 1_000),
    ];
    let broken = promises.iter().find(|(_, holds)| !holds).map(|(name, _)| (*name).to_owned());
    broken.or_else(|| file.flows.iter().find_map(broken_flow))
}

fn broken_flow(flow: &FlowSpec) -> Option<String> {
    let graph = flow.graph.as_ref().map(|graph| graph.value.as_slice()).unwrap_or_default();
    let asked = |key| flow.attributes.get(key).copied().unwrap_or_default();
    let least = asked(AttributeKey::Throughput).min.unwrap_or(0);
    let playout = flow.playout.map_or(0, |playout| playout.value);
    let is_bytes = flow.source.is_bytes();
    let is_opened = matches!(flow.source.value, Source::File { .. } | Source::Access(_));
    let is_theirs = flow.from.value == Role::Participant;
    let latest = [AttributeKey::Delay, AttributeKey::Deadline].map(|key| asked(key).max);
    let promises = [
        ("modules", graph.len() <= MAX_MODULES && graph.iter().all(|m| is_name(&m.module))),
        ("params", graph.iter().all(|module| module.params.len() <= MAX_PARAMS)),
        (
            "passes",
            matches!(flow.source.passes(), Passes::Forever | Passes::Times(1..=Passes::MAX)),
        ),
        ("requirements", flow.attributes.check().is_ok()),
        ("what a participant opens", !(is_opened && is_theirs)),
        ("sink", flow.sink.is_none() || is_theirs && flow.source.value == Source::Raw),
        ("bound", flow.bound.is_none_or(|bound| bound.value > 0 && bound.value >= least)),
        ("unit_max of bytes", flow.unit_max.is_none() || is_bytes),
        ("unit_max", flow.unit_max.is_none_or(|len| (1..=MAX_UNIT_LEN).contains(&len.value))),
        ("playout", is_bytes || latest.into_iter().flatten().all(|latest| playout <= latest)),
        ("places", flow.attributes.entries().all(|(key, _)| flow.attribute_place(key).is_some())),
    ];
    promises.iter().find(|(_, holds)| !holds).map(|(name, _)| format!("{}: {name}", *flow.name))
}

fn repeat(seed: u64, test: &str) -> String {
    format!(
        "repeat: DACAPO_SEED={seed} cargo test -p dacapo-qos --test mutated {test} -- --nocapture"
    )
}

#[test]
fn ten_thousand_damaged_files_are_refused_with_lines_or_keep_every_promise() {
    let seeds = number("DACAPO_SEEDS", SEEDS);
    let schema = schema();
    let mut accepted = 0;
    for seed in 0..seeds {
        let bytes = damaged(seed);
        let outcome = std::panic::catch_unwind(|| broken(&bytes, &schema));
        match outcome {
            Ok((is_accepted, None)) => accepted += u64::from(is_accepted),
            Ok((_, Some(reason))) => panic!("seed {seed}: {reason}\n{}", repeat(seed, "one_seed")),
            Err(_) => panic!("seed {seed}: the reader panicked\n{}", repeat(seed, "one_seed")),
        }
    }
    println!("{accepted} of {seeds} damaged files were accepted");
    // Damage in a comment leaves a session file; damage elsewhere should not.
    assert!(accepted > seeds / 20 && accepted < seeds / 2, "{accepted} of {seeds} accepted");
}

#[test]
fn one_seed() {
    let seed = number("DACAPO_SEED", 1998);
    let bytes = damaged(seed);
    let text = String::from_utf8_lossy(&bytes);
    println!("{}", text.chars().take(20_000).collect::<String>());
    if let Err(errors) = SessionFile::parse_bytes(&bytes, "m.toml") {
        println!("{errors}");
    }
    assert_eq!(broken(&bytes, &schema()).1, None, "seed {seed}");
}

// --------------------------------------------------------------------- damage to one known key

/// What a known key cannot be, whichever it is.
const WRONG_VALUES: [&str; 6] =
    ["1979-05-27", "[[1]]", "{ xqz = 1 }", "nan", "12:30:00", "[{ xqz = [] }]"];

/// How a line `key = value # comment` is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// The key becomes one that nobody knows.
    Key,
    /// The value becomes one of [`WRONG_VALUES`].
    Value(usize),
    /// A unit becomes one that does not exist.
    Unit,
    /// A quantity falls below zero.
    Sign,
}

/// The line after the damage; none where it has nothing to damage.
fn break_line(line: &str, how: Break) -> Option<String> {
    let (key, rest) = line.split_once(" = ")?;
    let indent = key.len() - key.trim_start().len();
    // A parameter of a module, or of an access module, is not known to the reader.
    let is_of_module = key.trim() == "graph" || rest.starts_with("{ access = ");
    match how {
        Break::Key => Some(format!("{}xqz = {rest}", &key[..indent])),
        Break::Value(which) => Some(format!("{key} = {}", WRONG_VALUES[which])),
        Break::Unit | Break::Sign if is_of_module => None,
        Break::Unit => replace_quantity(line, |number, _| format!("{number} parsec")),
        Break::Sign => replace_quantity(line, |number, unit| format!("-{number} {unit}")),
    }
}

/// Replaces the first text of the form "50 ms" that is not of nothing.
fn replace_quantity(line: &str, with: impl Fn(&str, &str) -> String) -> Option<String> {
    let quantity = line.split('"').skip(1).step_by(2).find(|text| {
        text.starts_with(|c: char| c.is_ascii_digit() && c != '0') && text.contains(' ')
    })?;
    let (number, unit) = quantity.split_once(' ')?;
    Some(line.replacen(quantity, &with(number, unit), 1))
}

/// The text with comments in front of some lines, and the line to break with what it becomes.
fn broken_key(seed: u64) -> (String, usize, Break, String) {
    let mut random = Random::from_number(seed ^ 0x5EED);
    let texts = texts();
    let text = &texts[random.below(texts.len() as u64) as usize];
    let mut lines = Vec::new();
    for line in text.lines() {
        for _ in 0..random.below(6).saturating_sub(3) {
            lines.push(pick(&["", "# a comment", "   "], &mut random).to_owned());
        }
        lines.push(line.to_owned());
    }
    let text = lines.join("\n") + "\n";
    let telling = telling_lines(&text);
    loop {
        let at = telling[random.below(telling.len() as u64) as usize];
        let how = match random.below(4) {
            0 => Break::Key,
            1 => Break::Value(random.below(WRONG_VALUES.len() as u64) as usize),
            2 => Break::Unit,
            _ => Break::Sign,
        };
        if let Some(line) = break_line(&lines[at], how) {
            let broken = with_line(&text, at, &line);
            return (broken, at + 1, how, line);
        }
    }
}

/// Why the mistake was not told as it should be.
fn untold(seed: u64) -> Option<String> {
    let (text, line, how, is) = broken_key(seed);
    let Err(errors) = SessionFile::parse(&text, "m.toml") else {
        return Some(format!("line {line} is accepted: {is}"));
    };
    let on_line = |problem: &&Problem| problem.line as usize == line;
    let told = errors.problems().iter().find(on_line);
    let is_told = match how {
        Break::Key => told.is_some_and(|p| p.key.ends_with("xqz") && p.what == "unknown key"),
        _ => told.is_some(),
    };
    // A key that is gone may be missed at another line; a wrong value is wrong where it stands.
    let is_alone = how == Break::Key || errors.problems().iter().all(|problem| on_line(&problem));
    (!is_told || !is_alone).then(|| format!("line {line}, {how:?}: {is}\n{errors}"))
}

#[test]
fn a_mistake_in_a_known_key_is_told_with_its_line() {
    for seed in 0..number("DACAPO_SEEDS", SEEDS) / 2 {
        if let Some(reason) = untold(seed) {
            panic!("seed {seed}: {reason}\n{}", repeat(seed, "one_mistake"));
        }
    }
}

#[test]
fn one_mistake() {
    let seed = number("DACAPO_SEED", 1998);
    let (text, line, how, is) = broken_key(seed);
    println!("{text}\n\nline {line}, {how:?}: {is}");
    assert_eq!(untold(seed), None, "seed {seed}");
}
