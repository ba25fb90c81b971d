//! Names that are gone, as identifiers: in code and in its tests.

use super::settings::{Gone, Settings};
use super::size::{Kind, Size};
use crate::tidy::lexer::Kind as Token;
use crate::tidy::source::Source;
use crate::tidy::tree::Tree;
use std::collections::HashMap;

const NAME: Kind = Kind {
    word: "name",
    unit: "identifiers of a name that is gone",
    limit: 0,
    remedy: "rename it",
};

/// How often each name that is gone stands in `tree`, where it does.
#[must_use]
pub fn sizes(tree: &Tree, settings: &Settings) -> Vec<Size> {
    let mut gone: HashMap<&str, Vec<(&Gone, Option<Size>)>> = HashMap::new();
    for it in &settings.gone {
        gone.entry(it.old.as_str()).or_default().push((it, None));
    }
    for source in &tree.sources {
        for index in 0..source.tokens.len() {
            if source.kind(index) == Some(Token::Ident)
                && let Some(rows) = gone.get_mut(source.word(index))
            {
                rows.iter_mut().for_each(|(row, size)| count(source, index, row, size));
            }
        }
    }
    gone.into_values().flatten().filter_map(|(_, size)| size).collect()
}

fn count(source: &Source, index: usize, gone: &Gone, size: &mut Option<Size>) {
    let path = &source.path;
    if gone.folders.is_empty() || gone.folders.iter().any(|it| path.starts_with(it.as_str())) {
        let new = || Size {
            kind: NAME,
            name: [&[gone.old.clone(), gone.new.clone()], &gone.folders[..]].concat().join(" "),
            figure: 0,
            path: path.clone(),
            line: source.line(index),
        };
        size.get_or_insert_with(new).figure += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LIST, check, settings};
    use crate::tidy::tree::tree;

    fn found(settings: &str, code: &str) -> Vec<String> {
        let files = [("crates/a/src/x.rs", code), (settings::PATH, settings), (LIST, "")];
        check(&tree(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_name_that_is_gone_fails_as_an_identifier_only() {
        let code = "// Seat\nfn f() { let seats = \"Seat\"; Seated }\n";
        assert_eq!(found("gone Seat Worker\n", code), [""; 0]);
        let code = "//! x\nstruct Seat;\n#[cfg(test)] mod t { use super::Seat; }\n";
        assert_eq!(
            found("gone Seat Worker\n", code),
            ["crates/a/src/x.rs:2: limits: Seat Worker has 2 identifiers of a name that is gone, \
              limit 0; rename it"]
        );
    }

    #[test]
    fn a_name_that_is_gone_below_a_folder_stays_elsewhere() {
        assert_eq!(found("gone Gate Acceptor crates/b/\n", "struct Gate;"), [""; 0]);
        assert_eq!(found("gone Gate Acceptor crates/b/ crates/a/\n", "struct Gate;").len(), 1);
        assert_eq!(
            found("gone Gate Acceptor crates/b/\ngone Gate Table crates/a/\n", "Gate").len(),
            1
        );
    }
}
