//! What `xtask/limits-of.txt` says is looked at: owners, arguments, old names.
//!
//! ```text
//!   owner core::Sender                     its fields are its own, and it lends none by &mut
//!   argument core::Context                 passed along by all; what takes it is no method of it
//!   gone Seat Worker                       no identifier may be `Seat`; it is called `Worker`
//!   gone Gate Acceptor crates/dacapo/      the same below a folder
//! ```

use crate::tidy::Problem;
use crate::tidy::tree::Tree;

/// The rule's name.
pub const RULE: &str = "limits";

/// Where it stands.
pub const PATH: &str = "xtask/limits-of.txt";

/// What is looked at.
#[derive(Debug, Default)]
pub struct Settings {
    /// Types whose fields nobody else may touch: name and line.
    pub owners: Vec<(String, usize)>,
    /// Types that are handed to everything: name and line.
    pub arguments: Vec<(String, usize)>,
    /// Names that are gone.
    pub gone: Vec<Gone>,
}

/// A name that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// The old one.
    pub old: String,
    /// What it is called now.
    pub new: String,
    /// Folders in which it is gone; none is everywhere.
    pub folders: Vec<String>,
}

impl Settings {
    /// Reads the file of `tree`, and what is wrong with it.
    #[must_use]
    pub fn read(tree: &Tree) -> (Self, Vec<Problem>) {
        let mut settings = Self::default();
        let mut problems = Vec::new();
        for (index, line) in tree.text(PATH).unwrap_or_default().lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["owner", name] => settings.owners.push(((*name).to_owned(), index + 1)),
                ["argument", name] => settings.arguments.push(((*name).to_owned(), index + 1)),
                ["gone", old, new, folders @ ..] => settings.gone.push(Gone {
                    old: (*old).to_owned(),
                    new: (*new).to_owned(),
                    folders: folders.iter().map(|it| (*it).to_owned()).collect(),
                }),
                _ => {
                    let remedy = "write `owner crate::Type`, `argument crate::Type` or \
                        `gone old new folder…`";
                    problems.push(Problem::new(RULE, PATH, index + 1, "no setting", remedy));
                }
            }
        }
        (settings, problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    #[test]
    fn every_form_is_read_and_another_is_a_problem() {
        let text =
            "# a\n\nowner a::B\nargument a::C\ngone D E\ngone F G crates/a/ crates/b/\nown x\n";
        let (settings, problems) = Settings::read(&tree(&[(PATH, text)]));
        assert_eq!(settings.owners, [("a::B".to_owned(), 3)]);
        assert_eq!(settings.arguments, [("a::C".to_owned(), 4)]);
        assert_eq!(settings.gone[1].folders, ["crates/a/", "crates/b/"]);
        assert_eq!(problems.len(), 1);
        assert_eq!((problems[0].path.as_str(), problems[0].line), (PATH, 7));
    }
}
