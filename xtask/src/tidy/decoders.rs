//! Rule `decoders`: code that reads bytes from outside has nothing in it that can panic.
//!
//! Decoders are all of `crates/wire/src`, the containers of `crates/media/src`, the parsers of
//! `crates/qos/src`, and every file with a line that begins with the marker of a decoder. There,
//! outside tests: no `expect`, no macro that panics, no index or slice in brackets, and the clippy
//! lints that see the rest (arithmetic above all) denied in the file or in a module above it.
//! Assertions in constants are checked by the compiler and pass.
//!
//! An index is a bracket straight after a name, a literal, `)`, `]` or `?`.

use std::collections::BTreeSet;

use super::lexer::Kind;
use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

const RULE: &str = "decoders";
const MARKER: &str = "//! Decoder:";
const MEDIA_CONTAINERS: [&str; 5] = ["avi", "wav", "riff", "mjpeg", "sniff"];
const QOS_PARSERS: [&str; 6] = ["attribute", "decimal", "parse", "session_file", "units", "value"];
const PANICS: [&str; 7] =
    ["panic", "unreachable", "todo", "unimplemented", "assert", "assert_eq", "assert_ne"];
const LINTS: [&str; 5] =
    ["arithmetic_side_effects", "expect_used", "indexing_slicing", "panic", "unwrap_used"];
/// Keywords after which a bracket opens an array, a slice type or a pattern.
const BEFORE_ARRAY: [&str; 20] = [
    "as", "box", "break", "const", "dyn", "else", "for", "if", "impl", "in", "let", "match",
    "move", "mut", "ref", "return", "static", "unsafe", "where", "while",
];

/// Files of the containers that read nothing from outside.
const MEDIA_WRITERS: [&str; 4] = ["error.rs", "mod.rs", "segment.rs", "writer.rs"];

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let decoders = tree.sources.iter().filter(|source| !source.is_test_file && is_decoder(source));
    decoders.flat_map(|source| check_source(tree, source)).collect()
}

fn is_decoder(source: &Source) -> bool {
    let parts_of = |folder: &str| source.path.strip_prefix(folder).map(|rest| rest.split('/'));
    let is_part = |part: &str, stems: &[&str]| {
        let stem = part.strip_suffix(".rs").unwrap_or(part);
        stems.iter().any(|known| {
            stem.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
    };
    let writes = parts_of("crates/media/src/")
        .and_then(|mut parts| parts.next_back())
        .is_some_and(|file| MEDIA_WRITERS.contains(&file));
    source.path.starts_with("crates/wire/src/")
        || !writes
            && parts_of("crates/media/src/")
                .is_some_and(|mut parts| parts.any(|part| is_part(part, &MEDIA_CONTAINERS)))
        || parts_of("crates/qos/src/")
            .is_some_and(|mut parts| parts.any(|part| is_part(part, &QOS_PARSERS)))
        || source.text.lines().any(|line| line.starts_with(MARKER))
}

fn check_source(tree: &Tree, source: &Source) -> Vec<Problem> {
    let mut problems: Vec<Problem> = missing_lints(tree, source).into_iter().collect();
    for index in source.live() {
        if let Some((what, remedy)) = judge(source, index) {
            let line = source.line(index);
            problems.push(Problem::new(RULE, &source.path, line, what, remedy));
        }
    }
    problems
}

fn judge(source: &Source, index: usize) -> Option<(String, &'static str)> {
    let word = source.word(index);
    let refuse = "return an error, the bytes come from outside";
    if source.matches(index, &[".", "expect", "("]) {
        return Some(("`expect` in a decoder".to_owned(), refuse));
    }
    if source.word(index + 1) == "!" && PANICS.contains(&word) && !is_constant(source, index) {
        return Some((format!("`{word}!` in a decoder"), refuse));
    }
    if word == "[" && is_index(source, index) {
        return Some(("an index in a decoder".to_owned(), "use `get`, or split off what is there"));
    }
    None
}

fn is_index(source: &Source, bracket: usize) -> bool {
    let Some(before) = bracket.checked_sub(1) else { return false };
    if source.matches(bracket + 1, &[".", ".", "]"]) {
        return false;
    }
    match source.kind(before) {
        Some(Kind::Ident) => !BEFORE_ARRAY.contains(&source.word(before)),
        Some(Kind::Punct) => {
            matches!(source.word(before), ")" | "?")
                || (source.word(before) == "]" && !closes_attribute(source, before))
        }
        Some(Kind::Str) => true,
        _ => false,
    }
}

fn closes_attribute(source: &Source, bracket: usize) -> bool {
    let opens = |&at: &usize| source.matches(at, &["#", "["]) && source.closing(at + 1) == bracket;
    (0..bracket).rev().take(64).any(|at| opens(&at))
}

/// Whether the macro at `index` stands in `const _: () = …;` or in `const { … }`.
fn is_constant(source: &Source, index: usize) -> bool {
    (0..index).any(|at| {
        let end = if source.matches(at, &["const", "_", ":"]) {
            statement_end(source, at)
        } else if source.matches(at, &["const", "{"]) {
            source.closing(at + 1)
        } else {
            return false;
        };
        index < end
    })
}

fn statement_end(source: &Source, mut index: usize) -> usize {
    loop {
        match source.word(index) {
            "(" | "[" | "{" => index = source.closing(index),
            ";" | "" => return index,
            _ => {}
        }
        index += 1;
    }
}

fn missing_lints(tree: &Tree, source: &Source) -> Option<Problem> {
    let mut denied = denied_lints(source);
    for path in ancestors(&source.path) {
        denied.extend(tree.source(&path).map(denied_lints).unwrap_or_default());
    }
    let missing: Vec<&str> = LINTS.into_iter().filter(|lint| !denied.contains(*lint)).collect();
    if missing.is_empty() {
        return None;
    }
    let what = format!("not denied for this decoder: {}", missing.join(", "));
    let remedy = "open it, or a module above it, with `#![deny(clippy::…)]`";
    Some(Problem::new(RULE, &source.path, 1, what, remedy))
}

/// The clippy lints that `#![deny(…)]` or `#![forbid(…)]` names in the file.
fn denied_lints(source: &Source) -> BTreeSet<String> {
    let mut lints = BTreeSet::new();
    for index in 0..source.tokens.len() {
        let is_header = source.matches(index, &["#", "!", "[", "deny"])
            || source.matches(index, &["#", "!", "[", "forbid"]);
        if !is_header {
            continue;
        }
        let named = index..source.closing(index + 2);
        let is_lint = |&at: &usize| source.matches(at, &["clippy", ":", ":"]);
        lints.extend(named.filter(is_lint).map(|at| source.word(at + 3).to_owned()));
    }
    lints
}

/// The files of the modules above `path`, up to the root of the crate.
fn ancestors(path: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut folder = path;
    while let Some((parent, name)) = folder.rsplit_once('/') {
        if name == "src" {
            break;
        }
        folder = parent;
        files.push(format!("{folder}.rs"));
        files.extend(["mod.rs", "lib.rs", "main.rs"].map(|file| format!("{folder}/{file}")));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    const HEADER: &str = "#![deny(clippy::unwrap_used, clippy::expect_used,\n\
        clippy::indexing_slicing, clippy::panic, clippy::arithmetic_side_effects)]\n";

    fn found(path: &str, code: &str) -> Vec<String> {
        let tree = tree(&[(path, code), ("crates/wire/src/lib.rs", HEADER)]);
        check(&tree).into_iter().map(|p| format!("{}: {}", p.line, p.what)).collect()
    }

    fn in_wire(code: &str) -> Vec<String> {
        found("crates/wire/src/a/b.rs", code)
    }

    #[test]
    fn what_panics_is_seen() {
        let code = "a.expect(\"b\");\npanic!();\nassert_eq!(a, b);\nassert!(a);\nunreachable!()";
        assert_eq!(
            in_wire(code),
            [
                "1: `expect` in a decoder",
                "2: `panic!` in a decoder",
                "3: `assert_eq!` in a decoder",
                "4: `assert!` in a decoder",
                "5: `unreachable!` in a decoder",
            ]
        );
    }

    #[test]
    fn constants_may_assert() {
        assert_eq!(in_wire("const _: () = { assert!(A); assert!(B) };"), [""; 0]);
        assert_eq!(in_wire("fn a() { const { assert!(A) } }"), [""; 0]);
        assert_eq!(in_wire("const _: () = assert!(A);\nfn a() { assert!(b) }").len(), 1);
    }

    #[test]
    fn indices_are_seen() {
        for code in ["a[0]", "a()[1]", "a[0][1..]", "self[0]", "a?[0]", "self.b[..c]", "\"ab\"[0]"]
        {
            assert!(in_wire(code).contains(&"1: an index in a decoder".to_owned()), "{code}");
        }
    }

    #[test]
    fn types_arrays_macros_attributes_and_whole_slices_are_no_indices() {
        let passes = [
            "fn a<'a>(b: &'a [u8], c: &mut [u8; 4]) -> [u8; 2] { [0; 2] }",
            "#[derive(A)] struct B; #![allow(c)]",
            "let v = vec![1, 2]; for x in [1, 2] {} let [a, b] = c else { return [0; 2] };",
            "match a { [x, ..] => Some([1]), _ => x }",
            "a(&b[..]); impl A for [u8] {}",
            "a(#[b] [c, d]: [u8; 2])",
        ];
        for code in passes {
            assert_eq!(in_wire(code), [""; 0], "{code}");
        }
    }

    #[test]
    fn tests_of_a_decoder_may_do_all_of_it() {
        assert_eq!(in_wire("#[cfg(test)] mod tests { fn a() { assert!(b[0]); } }"), [""; 0]);
    }

    #[test]
    fn decoders_are_known_by_place_or_by_marker() {
        let bad = format!("{HEADER}a[0]");
        for path in [
            "crates/media/src/avi.rs",
            "crates/media/src/riff/chunks.rs",
            "crates/media/src/wav_header.rs",
            "crates/qos/src/parse.rs",
        ] {
            assert_eq!(found(path, &bad).len(), 1, "{path}");
        }
        for path in ["crates/media/src/playout.rs", "crates/media/src/waves.rs", "a.rs"] {
            assert_eq!(found(path, &bad), [""; 0], "{path}");
        }
        assert_eq!(found("a.rs", &format!("//! Decoder: of cells.\n{bad}")).len(), 1);
    }

    #[test]
    fn the_lints_must_be_denied_here_or_above() {
        let path = "crates/media/src/avi/index.rs";
        assert_eq!(
            found(path, "#![deny(clippy::panic, clippy::unwrap_used)]"),
            ["1: not denied for this decoder: arithmetic_side_effects, expect_used, \
                 indexing_slicing"]
        );
        assert_eq!(found(path, HEADER), [""; 0]);
        for above in ["crates/media/src/lib.rs", "crates/media/src/avi.rs"] {
            let tree = tree(&[(path, ""), (above, HEADER)]);
            assert_eq!(check(&tree), [], "{above}");
        }
        let beside = tree(&[(path, ""), ("crates/media/src/avi/other.rs", HEADER)]);
        assert_eq!(check(&beside).len(), 1);
    }
}
