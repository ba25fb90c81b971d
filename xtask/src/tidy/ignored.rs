//! Rule `ignored`: an ignored test says why, and which make target runs it.
//!
//! `#[ignore = "10^6 seeds, 20 minutes: make nightly"]`; the target must be in the Makefile, so
//! that no test is switched off for good.

use super::lexer::Kind;
use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

const RULE: &str = "ignored";

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let targets = targets(tree.text("Makefile").unwrap_or_default());
    let mut problems = Vec::new();
    for source in &tree.sources {
        for index in 0..source.tokens.len() {
            if !source.matches(index, &["#", "[", "ignore"]) {
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
    fn no_reason_and_a_reason_without_a_known_target_fail() {
        assert_eq!(found("#[test]\n#[ignore]\nfn a() {}"), ["2: an ignored test without a reason"]);
        for reason in ["slow", "make all of it work", "make X", "soak"] {
            let code = format!("#[ignore = \"{reason}\"] fn a() {{}}");
            assert_eq!(found(&code), ["1: an ignored test that no make target runs"], "{reason}");
        }
    }
}
