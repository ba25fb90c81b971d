//! Rule `edges`: a crate depends on another one of ours only where ARCHITECTURE.md says so.
//!
//! ```text
//! <!-- edges:begin -->
//! | crate | may depend on | dev only |
//! |---|---|---|
//! | wire  |               |          |
//! | lift  | base, packet  | wire     |
//! <!-- edges:end -->
//! ```
//!
//! Names are those of the packages without `dacapo-`. Every package has a row; a row may allow more
//! than is used today; what `[dependencies]` may use, `[dev-dependencies]` may use too.

use std::collections::BTreeMap;

use super::manifest::{Manifest, short_name};
use super::problem::Problem;
use super::tree::Tree;

const RULE: &str = "edges";
const TABLE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- edges:begin -->";
const END: &str = "<!-- edges:end -->";

/// One row of the table.
#[derive(Debug, Default)]
struct Row {
    line: usize,
    normal: Vec<String>,
    dev: Vec<String>,
}

type Table = BTreeMap<String, Row>;

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let manifests = Manifest::all(tree);
    let (table, mut problems) = match tree.text(TABLE).map(read_table) {
        Some(Ok(found)) => found,
        Some(Err(missing)) => return vec![missing_table(missing)],
        None => return vec![missing_table("the file is missing")],
    };
    for manifest in &manifests {
        problems.extend(check_manifest(manifest, &table, &manifests));
    }
    problems.extend(unknown_names(&table, &manifests));
    problems
}

fn missing_table(what: &str) -> Problem {
    let remedy = format!("write the table of edges between `{BEGIN}` and `{END}`");
    Problem::new(RULE, TABLE, 1, what, remedy)
}

/// The rows between the marks, and what is wrong with them.
fn read_table(text: &str) -> Result<(Table, Vec<Problem>), &'static str> {
    let numbered = || text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let begin = numbered().find(|(_, line)| *line == BEGIN).ok_or("no line begins the table")?.0;
    let end = numbered().find(|&(at, line)| at > begin && line == END);
    let end = end.ok_or("no line ends the table")?.0;
    let rows = numbered().filter(|&(at, line)| at > begin && at < end && line.starts_with('|'));
    let mut table = Table::new();
    let mut problems = Vec::new();
    // The first two rows are the heading and its rule.
    for (line, text) in rows.skip(2) {
        let cells: Vec<&str> = text.trim_matches('|').split('|').map(str::trim).collect();
        let cell = |index: usize| names(cells.get(index).copied().unwrap_or_default());
        let Some(name) = cell(0).into_iter().next() else { continue };
        let row = Row { line, normal: cell(1), dev: cell(2) };
        if table.insert(name.clone(), row).is_some() {
            let what = format!("`{name}` has two rows");
            problems.push(Problem::new(RULE, TABLE, line, what, "make them one"));
        }
    }
    Ok((table, problems))
}

/// The names in a cell: separated by commas, with or without backticks; a dash is none.
fn names(cell: &str) -> Vec<String> {
    let bare = cell.split(',').map(|name| short_name(name.trim().trim_matches('`')));
    bare.filter(|name| !matches!(*name, "" | "-" | "–" | "—")).map(str::to_owned).collect()
}

fn check_manifest(manifest: &Manifest, table: &Table, all: &[Manifest]) -> Vec<Problem> {
    let (path, name) = (manifest.path.as_str(), manifest.short_name());
    let Some(row) = table.get(name) else {
        let what = format!("`{name}` has no row in the table of edges of {TABLE}");
        return vec![Problem::new(RULE, path, manifest.line, what, "add one")];
    };
    let mut problems = Vec::new();
    for dependency in &manifest.dependencies {
        let to = short_name(&dependency.package);
        if !all.iter().any(|other| other.package == dependency.package) {
            continue;
        }
        let allowed = |names: &[String]| names.iter().any(|name| name == to);
        if allowed(&row.normal) || (dependency.is_dev && allowed(&row.dev)) {
            continue;
        }
        let kind = if dependency.is_dev { "in tests" } else { "" };
        let what = format!("`{name}` may not depend on `{to}` {kind}");
        let remedy = format!("do without it, or justify the edge in {TABLE}:{}", row.line);
        problems.push(Problem::new(RULE, path, dependency.line, what.trim_end(), remedy));
    }
    problems
}

/// Names in the table that no package has.
fn unknown_names(table: &Table, all: &[Manifest]) -> Vec<Problem> {
    let exists = |name: &str| all.iter().any(|manifest| manifest.short_name() == name);
    let mut problems = Vec::new();
    for (name, row) in table {
        let named = std::iter::once(name).chain(&row.normal).chain(&row.dev);
        for unknown in named.filter(|name| !exists(name)) {
            let what = format!("no package is called `{unknown}`");
            problems.push(Problem::new(RULE, TABLE, row.line, what, "correct or remove the name"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    const TABLE_TEXT: &str = "# A\n<!-- edges:begin -->\n| crate | may depend on | dev only |\n\
        |---|---|---|\n| `base` | – | |\n| wire | base | lift |\n| lift | base, wire |\n\
        <!-- edges:end -->\n| other | table |\n";

    fn found(table: &str, wire: &str) -> Vec<String> {
        let tree = tree(&[
            ("ARCHITECTURE.md", table),
            ("Cargo.toml", "[workspace]\nmembers = []\n"),
            ("crates/base/Cargo.toml", "[package]\nname = \"dacapo-base\"\n"),
            ("crates/wire/Cargo.toml", wire),
            ("crates/lift/Cargo.toml", "[package]\nname = \"dacapo-lift\"\n"),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    fn wire(rest: &str) -> String {
        format!("[package]\nname = \"dacapo-wire\"\n{rest}")
    }

    #[test]
    fn edges_in_the_table_pass() {
        let text = "[dependencies]\ndacapo-base.workspace = true\nbytes = \"1\"\n\
            [dev-dependencies]\ndacapo-lift.workspace = true\ndacapo-base.workspace = true\n";
        assert_eq!(found(TABLE_TEXT, &wire(text)), [""; 0]);
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_fails_with_its_line() {
        let text = wire("[dependencies]\ndacapo-lift.workspace = true\n");
        assert_eq!(
            found(TABLE_TEXT, &text),
            ["crates/wire/Cargo.toml:4: edges: `wire` may not depend on `lift`; do without it, \
              or justify the edge in ARCHITECTURE.md:6"]
        );
    }

    #[test]
    fn a_package_without_a_row_fails() {
        let table =
            TABLE_TEXT.replace("| wire | base | lift |\n", "").replace("base, wire", "base");
        let expected = "crates/wire/Cargo.toml:2: edges: `wire` has no row in the table of edges \
            of ARCHITECTURE.md; add one";
        assert_eq!(found(&table, &wire("")), [expected]);
    }

    #[test]
    fn names_of_no_package_fail_wherever_they_stand() {
        let table = TABLE_TEXT.replace("| wire | base | lift |", "| wire | bose | lyft |");
        let problems = found(&table, &wire(""));
        assert_eq!(problems.len(), 2);
        assert!(problems[0].contains("`bose`") && problems[1].contains("`lyft`"), "{problems:?}");
    }

    #[test]
    fn two_rows_of_one_crate_fail() {
        let table = TABLE_TEXT.replace("| wire | base | lift |", "| wire | base |\n| wire | |");
        assert!(found(&table, &wire(""))[0].contains("`wire` has two rows"));
    }

    #[test]
    fn a_missing_file_or_table_is_one_problem() {
        assert!(check(&tree(&[]))[0].to_string().contains("the file is missing"));
        assert!(found("# A\n", &wire(""))[0].contains("no line begins the table"));
        assert!(found("<!-- edges:begin -->\n", &wire(""))[0].contains("no line ends the table"));
    }
}
