//! Owners: types whose fields nobody else writes, and which lend none of them by `&mut`.

use super::settings::{PATH, RULE, Settings};
use super::size::{Kind, Size};
use super::types::{Known, Types};
use crate::code::header::Seen;
use crate::tidy::Problem;

const OPEN: Kind = Kind {
    word: "open",
    unit: "fields that others see",
    limit: 0,
    remedy: "make them its own, and ask for what is needed by a method",
};
const LENT: Kind = Kind {
    word: "lent",
    unit: "functions that give out a `&mut`",
    limit: 0,
    remedy: "let it do what is done with them",
};

/// The sizes of owners, and the problems of lines that name no type.
#[must_use]
pub fn sizes(types: &Types, settings: &Settings) -> (Vec<Size>, Vec<Problem>) {
    let mut sizes = Vec::new();
    let mut problems = Vec::new();
    for (name, line) in &settings.owners {
        match types.named(name) {
            Some(known) => sizes.extend(of(known)),
            None => problems.push(unknown(name, *line)),
        }
    }
    let arguments = settings.arguments.iter().filter(|(name, _)| types.named(name).is_none());
    problems.extend(arguments.map(|(name, line)| unknown(name, *line)));
    (sizes, problems)
}

fn unknown(name: &str, line: usize) -> Problem {
    let what = format!("there is no type `{name}` in what is counted");
    Problem::new(RULE, PATH, line, what, "correct or remove the name")
}

fn of(known: &Known) -> [Size; 2] {
    let open = known.fields.iter().filter(|seen| **seen != Seen::Here).count();
    [known.size(OPEN, open), known.size(LENT, known.lending.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;
    use crate::code::paths::Paths;
    use crate::tidy::tree::tree;

    #[test]
    fn what_others_see_and_what_is_lent_is_counted_and_unknown_owners_are_problems() {
        let text = "pub struct A { pub(crate) a: u8, pub b: u8, c: u8 } impl A { \
            pub(crate) fn a_mut(&mut self) -> Option<&mut u8> {} \
            fn c_mut(&mut self) -> &mut u8 {} }";
        let tree = tree(&[
            ("crates/core/Cargo.toml", "[package]\nname = \"dacapo-core\"\n"),
            ("crates/core/src/lib.rs", text),
            (PATH, "owner core::A\nowner core::B\nargument core::C\n"),
        ]);
        let code = Code::new(&tree);
        let (settings, _) = Settings::read(&tree);
        let types = Types::new(&code, &Paths::new(&code), &settings);
        let (sizes, problems) = sizes(&types, &settings);
        let figures: Vec<(&str, usize)> =
            sizes.iter().map(|it| (it.kind.word, it.figure)).collect();
        assert_eq!(figures, [("open", 2), ("lent", 1)]);
        let lines: Vec<usize> = problems.iter().map(|it| it.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
