//! Rule `layout`: at most 100 columns, no tabs, no space at the end of a line, `//!` at the start.
//!
//! A comment may be longer where it cannot be broken: an address, or a row of a table.

use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

const RULE: &str = "layout";
const WIDTH_MAX: usize = 100;

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    tree.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut report = |line: usize, what: String, remedy: &str| {
        problems.push(Problem::new(RULE, &source.path, line, what, remedy));
    };
    if !source.text.starts_with("//!") {
        let remedy =
            "begin with `//!`: what it is, in a sentence; its invariants, where there are any";
        report(1, "the file does not open with `//!`".to_owned(), remedy);
    }
    for (index, line) in source.text.split_terminator('\n').enumerate() {
        let width = line.chars().count();
        if width > WIDTH_MAX && !is_unbreakable(line) {
            report(index + 1, format!("{width} columns, limit {WIDTH_MAX}"), "break the line");
        }
        if line.contains('\t') {
            report(index + 1, "a tab".to_owned(), "use spaces, or `\\t` in a string");
        }
        if line.ends_with(char::is_whitespace) {
            report(index + 1, "space at the end of the line".to_owned(), "remove it");
        }
    }
    problems
}

fn is_unbreakable(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    let text = comment.trim_start_matches(['/', '!']).trim_start();
    text.starts_with('|') || text.contains("://")
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        check(&tree(&[("a.rs", text)])).into_iter().map(|p| (p.line, p.what)).collect()
    }

    #[test]
    fn a_hundred_columns_of_any_script_pass_and_one_more_does_not() {
        let line = |count: usize| format!("//! a\n// {}\n", "ü".repeat(count - 3));
        assert_eq!(found(&line(100)), []);
        assert_eq!(found(&line(101)), [(2, "101 columns, limit 100".to_owned())]);
    }

    #[test]
    fn addresses_and_rows_of_tables_may_be_longer_in_comments_only() {
        let long = "x".repeat(100);
        assert_eq!(
            found(&format!("//! see https://{long}\n//! | {long} |\n    /// | {long} |\n")),
            []
        );
        assert_eq!(found(&format!("//! a\nlet a = \"https://{long}\";\n")).len(), 1);
    }

    #[test]
    fn tabs_and_spaces_at_the_end_are_seen_with_their_line() {
        assert_eq!(
            found("//! a\nfn a() {} \n\tb\nc\r\n"),
            [
                (2, "space at the end of the line".to_owned()),
                (3, "a tab".to_owned()),
                (4, "space at the end of the line".to_owned()),
            ]
        );
    }

    #[test]
    fn a_file_without_a_heading_is_seen() {
        assert_eq!(found("// a\n"), [(1, "the file does not open with `//!`".to_owned())]);
        assert_eq!(found("").len(), 1);
    }
}
