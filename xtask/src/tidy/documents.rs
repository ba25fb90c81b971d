//! Rule `documents`: what the documents must keep up with.
//!
//! - Shipped configurations (`conf/*.toml`) exist, and a test of `crates/qos` parses them all.
//! - Every C-module and access module has a row in a table of `docs/modules.md`, once that file
//!   exists.
//! - `CHANGELOG.md` has an Unreleased heading.

use super::lexer::Kind;
use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

const RULE: &str = "documents";
const MANUAL: &str = "docs/modules.md";
const CHANGELOG: &str = "CHANGELOG.md";

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = configurations(tree);
    problems.extend(modules(tree));
    problems.extend(changelog(tree));
    problems
}

fn configurations(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut report = |path: &str, what: &str, remedy: &str| {
        problems.push(Problem::new(RULE, path, 1, what, remedy));
    };
    let is_shipped = |path: &str| path.starts_with("conf/") && path.ends_with(".toml");
    if !tree.texts.iter().any(|file| is_shipped(&file.path)) {
        report("conf", "there is no configuration", "ship at least one in conf/*.toml");
    }
    let in_qos =
        |path: &str| path.starts_with("crates/qos/src/") || path.starts_with("crates/qos/tests/");
    let names_folder = |source: &Source| {
        let is_text = |index: usize| source.kind(index) == Some(Kind::Str);
        (0..source.tokens.len()).any(|i| is_text(i) && source.word(i).contains("conf/"))
            || source.comments.iter().any(|c| source.comment_text(c).contains("conf/"))
    };
    if !tree.sources.iter().any(|source| in_qos(&source.path) && names_folder(source)) {
        let remedy = "add a test that parses every file of conf/";
        report("crates/qos", "no test reads the configurations of conf/", remedy);
    }
    problems
}

fn modules(tree: &Tree) -> Vec<Problem> {
    let Some(manual) = tree.text(MANUAL) else { return Vec::new() };
    let mut problems = Vec::new();
    for source in tree.sources.iter().filter(|s| are_modules(&s.path)) {
        for (line, name) in module_names(source) {
            if !manual.contains(&format!(" | `{name}` | ")) {
                let what = format!("the module `{name}` has no row in the table of {MANUAL}");
                let remedy = "add it, and what it does, what it costs, when to take it";
                problems.push(Problem::new(RULE, &source.path, line, what, remedy));
            }
        }
    }
    problems
}

fn are_modules(path: &str) -> bool {
    path.starts_with("crates/modules/src/") || path.starts_with("crates/dacapo/src/access/")
}

/// The modules whose specification the file holds: line and name.
///
/// A specification is a constant or static of type `ModuleSpec` or `AccessSpec`; without a literal
/// name in it, the module is called as its file.
fn module_names(source: &Source) -> Vec<(usize, String)> {
    let is_spec = |&at: &usize| {
        matches!(source.word(at), "static" | "const")
            && source.word(at + 2) == ":"
            && (at + 3..at + 10).find(|&i| source.word(i) == "=").is_some_and(|equals| {
                matches!(source.word(equals - 1), "ModuleSpec" | "AccessSpec")
            })
    };
    source.live().filter(is_spec).map(|at| (source.line(at), module_name(source, at))).collect()
}

fn module_name(source: &Source, spec: usize) -> String {
    let literal = (spec..spec + 32).find(|&at| source.matches(at, &["name", ":"])).map(|at| at + 2);
    match literal {
        Some(at) if source.kind(at) == Some(Kind::Str) => source.word(at).replace('"', ""),
        _ => file_module(&source.path).to_owned(),
    }
}

/// `arq` for `…/arq.rs` and `…/arq/mod.rs`.
fn file_module(path: &str) -> &str {
    let name = path.strip_suffix("/mod.rs").or(path.strip_suffix(".rs")).unwrap_or(path);
    name.rsplit('/').next().unwrap_or(name)
}

fn changelog(tree: &Tree) -> Option<Problem> {
    let is_heading = |line: &str| line.starts_with('#') && line.contains("Unreleased");
    let what = match tree.text(CHANGELOG) {
        Some(text) if text.lines().any(is_heading) => return None,
        Some(_) => "no Unreleased heading",
        None => "the file is missing",
    };
    Some(Problem::new(RULE, CHANGELOG, 1, what, "keep a heading `## Unreleased`"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    const CONF: (&str, &str) = ("conf/a.toml", "");
    const TEST: (&str, &str) = ("crates/qos/tests/conf.rs", "const FILES: &str = \"../../conf/\";");
    const LOG: (&str, &str) = ("CHANGELOG.md", "# Changes\n## Unreleased\n");

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&tree(files))
            .into_iter()
            .map(|p| format!("{}:{}: {}", p.path, p.line, p.what))
            .collect()
    }

    #[test]
    fn a_repository_with_all_of_it_passes() {
        assert_eq!(found(&[CONF, TEST, LOG]), [""; 0]);
    }

    #[test]
    fn configurations_and_their_test_must_exist() {
        assert_eq!(found(&[TEST, LOG]), ["conf:1: there is no configuration"]);
        let elsewhere = ("crates/lift/tests/conf.rs", TEST.1);
        let expected = ["crates/qos:1: no test reads the configurations of conf/"];
        assert_eq!(found(&[CONF, elsewhere, LOG]), expected);
    }

    #[test]
    fn the_changelog_has_an_unreleased_heading() {
        assert_eq!(found(&[CONF, TEST]), ["CHANGELOG.md:1: the file is missing"]);
        let log = ("CHANGELOG.md", "# Changes\nUnreleased\n");
        assert_eq!(found(&[CONF, TEST, log]), ["CHANGELOG.md:1: no Unreleased heading"]);
    }

    #[test]
    fn every_module_has_a_row_in_the_manual_by_its_own_name_or_its_files() {
        let named = (
            "crates/modules/src/repair/arq.rs",
            "\npub static SPEC: ModuleSpec = ModuleSpec { name: \"selective-repeat\", id: 1 };",
        );
        let by_file = (
            "crates/modules/src/number/mod.rs",
            "pub static SPEC: dacapo_lift::ModuleSpec = spec();",
        );
        let access = (
            "crates/dacapo/src/access/drum.rs",
            "pub static SPEC: AccessSpec = AccessSpec { name: \"drum\", id: 1 };",
        );
        let found_in = |manual| found(&[CONF, TEST, LOG, access, ("docs/modules.md", manual)]);
        assert_eq!(found_in("| 1 | `drum` | x |"), [""; 0]);
        assert_eq!(found_in("`drum`").len(), 1);
        let none = ("crates/modules/src/lib.rs", "pub const ALL: [&ModuleSpec; 1] = [&arq::SPEC];");
        let files = |manual| [CONF, TEST, LOG, named, by_file, none, ("docs/modules.md", manual)];
        assert_eq!(found(&files("| 1 | `selective-repeat` | x |\n| 2 | `number` | x |")), [""; 0]);
        assert_eq!(
            found(&files("| 1 | `selective-repeat-2` | x |\n`number`")),
            [
                "crates/modules/src/number/mod.rs:1: the module `number` has no row in the table \
                 of docs/modules.md",
                "crates/modules/src/repair/arq.rs:2: the module `selective-repeat` has no row in \
                 the table of docs/modules.md",
            ]
        );
        assert_eq!(found(&[CONF, TEST, LOG, named]), [""; 0]);
    }
}
