//! Rule `unwrap`: no `.unwrap()` outside tests, benches and examples, in any crate.
//!
//! `expect` with the invariant as its text is allowed, except in decoders ([`super::decoders`]).

use super::problem::Problem;
use super::tree::Tree;

const RULE: &str = "unwrap";

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for source in &tree.sources {
        for index in source.live() {
            let is_call = source.matches(index, &[".", "unwrap", "("]);
            let is_path = source.matches(index, &[":", ":", "unwrap"]);
            if is_call || is_path {
                let line = source.line(index + 1);
                let remedy = "use `?` or a `match`, or `expect` with the invariant as its text";
                problems.push(Problem::new(RULE, &source.path, line, "`unwrap`", remedy));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&tree(&[(path, text)])).into_iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn unwraps_are_seen_across_lines_and_as_paths() {
        assert_eq!(lines("a.rs", "a.b()\n    .unwrap();\nc.map(Option::unwrap);"), [2, 3]);
    }

    #[test]
    fn its_relatives_texts_and_tests_pass() {
        let text = "a.unwrap_or(1); \"a.unwrap()\"; // a.unwrap()\n#[test] fn t() { a.unwrap() }";
        assert_eq!(lines("a.rs", text), [0; 0]);
        for path in ["crates/x/tests/a.rs", "crates/x/benches/a.rs", "examples/a.rs"] {
            assert_eq!(lines(path, "a.unwrap()"), [0; 0], "{path}");
        }
    }
}
