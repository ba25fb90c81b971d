//! `cargo xtask lines`: Rust lines without blanks, comments and tests, per crate and in groups.
//!
//! ```text
//!   a line counts when a token outside tests begins, goes on or ends on it
//! ```
//!
//! Tests are what stands under `#[cfg(test)]` or `#[test]`, the files that it declares, and folders
//! `tests`. What has a goal is over it or within; nothing fails.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::tidy::manifest::Manifest;
use crate::tidy::source::Source;
use crate::tidy::tree::Tree;

/// Some folders and how many lines they are to have at most.
#[derive(Clone, Copy, Debug)]
struct Group {
    name: &'static str,
    /// What is in it: prefixes of paths.
    holds: &'static [&'static str],
    /// What is not, although a prefix says so.
    but: &'static [&'static str],
    /// What it had when the goals were set.
    before: usize,
    goal: usize,
}

/// Where is measured, and where faults are made and looked at.
const MEASURING: [&str; 3] = ["apps/lab/", "apps/eval/", "eval/"];

const GROUPS: [Group; 6] = [
    Group { name: "measuring", holds: &MEASURING, but: &[], before: 15_300, goal: 9_000 },
    Group {
        name: "command without bench",
        holds: &["apps/dacapo/", "crates/term/"],
        but: &[],
        before: 8_000,
        goal: 6_000,
    },
    Group {
        name: "core, reactor, path",
        holds: &["crates/core/", "crates/reactor/", "crates/path/"],
        but: &[],
        before: 10_100,
        goal: 10_000,
    },
    Group { name: "dacapo", holds: &["crates/dacapo/"], but: &[], before: 10_100, goal: 9_300 },
    Group {
        name: "transport, xtp-net, sys, io",
        holds: &["crates/transport/", "crates/xtp-net/", "crates/sys/", "crates/io/"],
        but: &[],
        before: 15_900,
        goal: 13_700,
    },
    Group {
        name: "xtp, safenet",
        holds: &["crates/xtp/", "crates/safenet/"],
        but: &[],
        before: 8_000,
        goal: 7_500,
    },
];

const ALL_BEFORE: usize = 101_150;
const ALL_GOAL: usize = 97_000;

/// Prints the table; true always.
///
/// # Errors
/// The repository cannot be read.
pub fn run(root: &Path) -> io::Result<bool> {
    print!("{}", table(&Tree::read(root)?));
    Ok(true)
}

/// The lines of `source` that are code and no test.
#[must_use]
fn count(source: &Source) -> usize {
    if ["/benches/", "/examples/"].iter().any(|folder| source.path.contains(folder)) {
        // No tests, although the rules for tests hold in them.
        return count(&Source::new("lib.rs".to_owned(), source.text.clone()));
    }
    let mut lines = BTreeSet::new();
    for index in source.live() {
        let first = source.line(index);
        let more = source.word(index).matches('\n').count();
        lines.extend(first..=first + more);
    }
    lines.len()
}

fn table(tree: &Tree) -> String {
    let counts: Vec<(&str, usize)> =
        tree.sources.iter().map(|source| (source.path.as_str(), count(source))).collect();
    let mut folders: Vec<String> = Manifest::all(tree)
        .iter()
        .map(|it| it.path.trim_end_matches("Cargo.toml").to_owned())
        .collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
    let mut packages: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, count) in &counts {
        let folder = folders.iter().find(|folder| path.starts_with(folder.as_str()));
        let folder = folder.map_or("elsewhere", |it| it.trim_end_matches('/'));
        *packages.entry(folder).or_default() += count;
    }
    let mut text = format!("  {:<28} {:>7}\n", "crate", "lines");
    for (folder, count) in packages {
        text.push_str(&format!("  {folder:<28} {count:>7}\n"));
    }
    text.push_str(&format!("\n  {:<28} {:>7} {:>7} {:>7}\n", "group", "lines", "before", "goal"));
    for group in GROUPS {
        let is_in = |path: &str| {
            let has = |list: &[&str]| list.iter().any(|it| path.starts_with(it));
            has(group.holds) && !has(group.but)
        };
        let sum: usize = counts.iter().filter(|(path, _)| is_in(path)).map(|it| it.1).sum();
        text.push_str(&row(group.name, sum, group.before, group.goal));
    }
    let all: usize = counts.iter().map(|it| it.1).sum();
    text.push_str(&row("all", all, ALL_BEFORE, ALL_GOAL));
    text
}

fn row(name: &str, count: usize, before: usize, goal: usize) -> String {
    let over = count.saturating_sub(goal);
    let note = if over > 0 { format!("   {over} over") } else { String::new() };
    format!("  {name:<28} {count:>7} {before:>7} {goal:>7}{note}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    #[test]
    fn blanks_comments_and_tests_do_not_count_and_long_strings_do() {
        let text = "//! a\n\nuse b;\n// c\nfn d() {\n    /* e\n    f */ g(\"h\n\n    i\");\n}\n\
            #[cfg(test)]\nmod tests {\n    fn j() {}\n}\n";
        let count = |path: &str| count(&Source::new(path.to_owned(), text.to_owned()));
        assert_eq!(count("crates/x/src/a.rs"), 6);
        assert_eq!(count("crates/x/examples/a.rs"), 6);
        assert_eq!(count("crates/x/tests/a.rs"), 0);
    }

    #[test]
    fn crates_and_groups_have_their_sums() {
        let table = table(&tree(&[
            ("Cargo.toml", "[workspace]\n"),
            ("crates/core/Cargo.toml", "[package]\nname = \"dacapo-core\"\n"),
            ("crates/core/src/lib.rs", "mod a;\nmod b;\n"),
            ("crates/path/Cargo.toml", "[package]\nname = \"dacapo-path\"\n"),
            ("crates/path/src/lib.rs", "mod c;\n"),
            ("crates/path/tests/d.rs", "fn e() {}\n"),
            ("apps/dacapo/Cargo.toml", "[package]\nname = \"dacapo-cli\"\n"),
            ("apps/dacapo/src/main.rs", "fn main() {}\n"),
            ("apps/eval/Cargo.toml", "[package]\nname = \"dacapo-eval\"\n"),
            ("apps/eval/src/main.rs", "mod f;\nmod g;\nmod h;\n"),
        ]));
        let has = |row: &str| table.lines().any(|line| line.trim() == row);
        let figures = |name: &str| {
            let line = table.lines().rfind(|line| line.trim_start().starts_with(name)).unwrap();
            line.trim().strip_prefix(name).unwrap().split_whitespace().next().unwrap().to_owned()
        };
        assert!(has("crates/core                        2"), "{table}");
        assert!(has("apps/eval                          3"), "{table}");
        assert_eq!(figures("core, reactor, path"), "3");
        assert_eq!(figures("measuring"), "3");
        assert_eq!(figures("command without bench"), "1");
        assert_eq!(figures("all"), "7");
    }

    #[test]
    fn what_is_over_its_goal_says_by_how_much() {
        assert!(row("x", 10, 12, 7).ends_with("3 over\n"));
        assert!(row("x", 7, 12, 7).ends_with(" 7\n"));
    }
}
