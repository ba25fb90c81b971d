//! Lines of files and of functions, from `fn` to the closing brace. Functions of one name in a file
//! count as the longest of them.

use std::collections::BTreeMap;

use super::size::{Kind, Size};
use crate::tidy::source::Source;
use crate::tidy::tree::Tree;

const FILE: Kind =
    Kind { word: "file", unit: "lines", limit: 600, remedy: "split it along what it does" };
const FUNCTION: Kind =
    Kind { word: "function", unit: "lines", limit: 70, remedy: "split it along what it does" };

/// The lengths of `tree`.
#[must_use]
pub fn sizes(tree: &Tree) -> Vec<Size> {
    tree.sources.iter().flat_map(of).collect()
}

fn of(source: &Source) -> Vec<Size> {
    let path = &source.path;
    let size =
        |kind, name: String, figure, line| Size { kind, name, figure, path: path.clone(), line };
    let mut functions: BTreeMap<String, Size> = BTreeMap::new();
    for function in source.functions() {
        let name = format!("{path}::{}", function.name);
        let new = size(FUNCTION, name.clone(), function.line_count, function.line);
        let longest = functions.entry(name).or_insert_with(|| new.clone());
        if longest.figure < new.figure {
            *longest = new;
        }
    }
    let file = size(FILE, path.clone(), source.live_line_count(), 1);
    functions.into_values().chain([file]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{LIST, check};
    use crate::tidy::tree::tree;

    fn function(line_count: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    x();\n".repeat(line_count - 2))
    }

    fn found(code: &str, list: &str) -> Vec<String> {
        check(&tree(&[("a.rs", code), (LIST, list)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn seventy_lines_pass_and_seventy_one_do_not() {
        assert_eq!(found(&function(70), ""), [""; 0]);
        let expected =
            "a.rs:1: limits: a.rs::f has 71 lines, limit 70; split it along what it does";
        assert_eq!(found(&function(71), ""), [expected]);
    }

    #[test]
    fn an_allowance_holds_exactly() {
        let list = "function a.rs::f 75: it is a table\n";
        assert_eq!(found(&function(75), list), [""; 0]);
        assert!(found(&function(76), list)[0].contains("75 in xtask/limits.txt"));
        assert!(found(&function(74), list)[0].contains("needs 74; lower it"));
        assert!(found(&function(70), list)[0].contains("remove it"));
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
    fn a_file_has_at_most_six_hundred_lines_without_its_tests() {
        let tests = format!("#[cfg(test)]\nmod t {{\n{}}}\n", "\n".repeat(500));
        assert_eq!(found(&format!("{}{tests}", "\n".repeat(600)), ""), [""; 0]);
        let long = "\n".repeat(601);
        assert!(found(&long, "")[0].contains("a.rs has 601 lines, limit 600"));
        assert_eq!(found(&long, "file a.rs 601: it is a table\n"), [""; 0]);
    }
}
