//! Rule `ignored`: what a run leaves out is said where it is counted.
//!
//! - An ignored test says why, and which make target runs it: `#[ignore = "20 minutes: make
//!   nightly"]`; the target must be in the Makefile, so that no test is switched off for good.
//! - A test that cannot run says so by `dacapo_base::skip`; what it prints is seen by nobody.

use super::lexer::Kind;
use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

const RULE: &str = "ignored";

/// A test that is ignored.
#[derive(Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Its file.
    pub path: String,
    /// The line of its attribute.
    pub line: usize,
    /// What the attribute says.
    pub reason: String,
}

/// Every ignored test of `tree`, in the order of its files.
#[must_use]
pub fn list(tree: &Tree) -> Vec<Ignored> {
    let of = |source: &Source| -> Vec<Ignored> {
        let attributes = (0..source.tokens.len()).filter(|&at| is_ignored(source, at));
        let reason = |at| source.word(at + 4).trim_matches('"').to_owned();
        let ignored =
            |at| Ignored { path: source.path.clone(), line: source.line(at), reason: reason(at) };
        attributes.map(ignored).collect()
    };
    tree.sources.iter().flat_map(of).collect()
}

fn is_ignored(source: &Source, index: usize) -> bool {
    source.matches(index, &["#", "[", "ignore"])
}

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let targets = targets(tree.text("Makefile").unwrap_or_default());
    let mut problems = Vec::new();
    for source in &tree.sources {
        for index in 0..source.tokens.len() {
            if is_quiet_skip(source, index) {
                let (line, what) = (source.line(index), "a skip that nothing counts");
                let remedy = "call `dacapo_base::skip`";
                problems.push(Problem::new(RULE, &source.path, line, what, remedy));
            }
            if !is_ignored(source, index) {
                continue;
            }
            if let Some(what) = fault(source, index + 3, &targets) {
                let remedy =
                    "write `#[ignore = \"why: make target\"]` with a target of the Makefile";
                problems.push(Problem::new(RULE, &source.path, source.line(index), what, remedy));
            }
        }
    }
    problems
}

/// Whether a test prints here that something is skipped, or left out, which nothing counts.
fn is_quiet_skip(source: &Source, index: usize) -> bool {
    let prints = ["print", "println", "eprint", "eprintln"].contains(&source.word(index));
    let says = |text: &str| ["skip", "left out"].iter().any(|word| text.contains(word));
    prints
        && source.matches(index + 1, &["!", "("])
        && source.kind(index + 3) == Some(Kind::Str)
        && says(&source.word(index + 3).to_lowercase())
        && source.is_test(index)
}

/// What is wrong with the reason after `ignore`, at `index`.
fn fault(source: &Source, index: usize, targets: &[&str]) -> Option<&'static str> {
    if source.word(index) != "=" || source.kind(index + 1) != Some(Kind::Str) {
        return Some("an ignored test without a reason");
    }
    let words: Vec<&str> = source
        .word(index + 1)
        .split(|c: char| c != '-' && c != '_' && !c.is_alphanumeric())
        .collect();
    let is_run = |pair: &[&str]| matches!(pair, ["make", target] if targets.contains(target));
    (!words.windows(2).any(is_run)).then_some("an ignored test that no make target runs")
}

/// The targets of a Makefile.
fn targets(text: &str) -> Vec<&str> {
    let is_name = |c: char| c == '-' || c == '_' || c.is_alphanumeric();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(_, rest)| !rest.starts_with('='))
        .map(|(name, _)| name)
        .filter(|name| !name.is_empty() && name.chars().all(is_name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn found(code: &str) -> Vec<String> {
        let makefile = "X := 1\n.PHONY: soak\nsoak: build ## long\n\tcargo test\n";
        let problems = check(&tree(&[("a.rs", code), ("Makefile", makefile)]));
        problems.into_iter().map(|p| format!("{}: {}", p.line, p.what)).collect()
    }

    #[test]
    fn a_reason_with_a_target_of_the_makefile_passes() {
        assert_eq!(found("#[test]\n#[ignore = \"20 minutes: make soak\"]\nfn a() {}"), [""; 0]);
    }

    #[test]
    fn a_skip_that_is_printed_only_fails() {
        for text in ["skipped: no root", "IPv6 left out", "{} tests Skipped"] {
            let code = format!("#[test]\nfn a() {{\n    println!(\"{text}\");\n}}");
            assert_eq!(found(&code), ["3: a skip that nothing counts"], "{text}");
        }
        assert_eq!(found("fn a() { println!(\"{} skipped\", 3); }"), [""; 0], "no test");
    }

    #[test]
    fn ignored_tests_are_listed_with_their_reasons() {
        let code = "#[test]\n#[ignore = \"20 minutes: make soak\"]\nfn a() {}";
        let reason = "20 minutes: make soak".to_owned();
        let ignored = Ignored { path: "a.rs".to_owned(), line: 2, reason };
        assert_eq!(list(&tree(&[("a.rs", code)])), [ignored]);
    }

    #[test]
    fn no_reason_and_a_reason_without_a_known_target_fail() {
        assert_eq!(found("#[test]\n#[ignore]\nfn a() {}"), ["2: an ignored test without a reason"]);
        for reason in ["slow", "make all of it work", "make X", "soak"] {
            let code = format!("#[ignore = \"{reason}\"] fn a() {{}}");
            assert_eq!(found(&code), ["1: an ignored test that no make target runs"], "{reason}");
        }
    }
}
