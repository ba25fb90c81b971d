//! Rule `lengths`: functions of at most 70 lines, files of at most 1000, tests not counted.
//!
//! Functions are measured from `fn` to the closing brace. Longer ones need an allowance in the
//! ratchet ([`super::ratchet`]); several functions of one name in a file share its allowance.

use std::collections::BTreeMap;

use super::problem::Problem;
use super::ratchet::{PATH, Ratchet};
use super::source::Source;
use super::tree::Tree;

const RULE: &str = "lengths";
const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 1000;

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let text = tree.text(PATH).unwrap_or_default();
    let ratchet = match Ratchet::parse(RULE, text) {
        Ok(ratchet) => ratchet,
        Err(problem) => return vec![problem],
    };
    let mut needs = BTreeMap::new();
    let mut problems = Vec::new();
    for source in &tree.sources {
        for excess in excesses(source) {
            problems.extend(excess.judge(source, ratchet.allowed(&excess.key)));
            let need = needs.entry(excess.key).or_insert(0);
            *need = excess.line_count.max(*need);
        }
    }
    problems.extend(ratchet.slack(RULE, &needs));
    problems
}

/// Something longer than its limit.
struct Excess {
    key: String,
    name: String,
    line: usize,
    line_count: usize,
    limit: usize,
}

impl Excess {
    fn judge(&self, source: &Source, allowed: Option<usize>) -> Option<Problem> {
        if allowed.is_some_and(|allowed| self.line_count <= allowed) {
            return None;
        }
        let what = format!("{} has {} lines, limit {}", self.name, self.line_count, self.limit);
        let remedy = match allowed {
            Some(allowed) => format!("split it; it was {allowed} and may only go down"),
            None => "split it along what it does".to_owned(),
        };
        Some(Problem::new(RULE, &source.path, self.line, what, remedy))
    }
}

fn excesses(source: &Source) -> Vec<Excess> {
    let path = &source.path;
    let functions = source.functions().into_iter().map(|function| Excess {
        key: format!("{path}::{}", function.name),
        name: format!("`{}`", function.name),
        line: function.line,
        line_count: function.line_count,
        limit: FUNCTION_LINES_MAX,
    });
    let file = Excess {
        key: path.clone(),
        name: "the file".to_owned(),
        line: 1,
        line_count: source.live_line_count(),
        limit: FILE_LINES_MAX,
    };
    functions.chain([file]).filter(|excess| excess.line_count > excess.limit).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn function(line_count: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    x();\n".repeat(line_count - 2))
    }

    fn found(code: &str, ratchet: &str) -> Vec<String> {
        let tree = tree(&[("a.rs", code), (PATH, ratchet)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn seventy_lines_pass_and_seventy_one_do_not() {
        assert_eq!(found(&function(70), ""), [""; 0]);
        let expected = "a.rs:1: lengths: `f` has 71 lines, limit 70; split it along what it does";
        assert_eq!(found(&function(71), ""), [expected]);
    }

    #[test]
    fn an_allowance_holds_exactly() {
        assert_eq!(found(&function(75), "a.rs::f 75\n"), [""; 0]);
        assert!(found(&function(76), "a.rs::f 75\n")[0].contains("it was 75 and may only go down"));
        assert!(found(&function(74), "a.rs::f 75\n")[0].contains("lower it to 74"));
        assert!(found(&function(70), "a.rs::f 75\n")[0].contains("remove the line"));
    }

    #[test]
    fn braces_in_strings_comments_and_tests_do_not_count() {
        let code = format!(
            "fn f() {{\n    let a = \"}}\"; // {{\n    let b = '{{';\n}}\n\
             #[cfg(test)]\nmod t {{\n{}}}\n",
            function(90)
        );
        assert_eq!(found(&code, ""), [""; 0]);
    }

    #[test]
    fn a_file_has_at_most_a_thousand_lines_without_its_tests() {
        let tests = format!("#[cfg(test)]\nmod t {{\n{}}}\n", "\n".repeat(500));
        assert_eq!(found(&format!("{}{tests}", "\n".repeat(1000)), ""), [""; 0]);
        let long = "\n".repeat(1001);
        assert!(found(&long, "")[0].contains("the file has 1001 lines, limit 1000"));
        assert_eq!(found(&long, "a.rs 1001\n"), [""; 0]);
    }
}
