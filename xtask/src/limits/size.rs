//! [`Size`]: how much there is of something, and how much there may be.

use crate::allowances::Excess;

/// A kind of size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The first word of a line in the list.
    pub word: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// The most that needs no line.
    pub limit: usize,
    /// What to do about more.
    pub remedy: &'static str,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// What is counted.
    pub kind: Kind,
    /// Whose.
    pub name: String,
    /// How much.
    pub figure: usize,
    /// Where it stands.
    pub path: String,
    /// The line there, from 1.
    pub line: usize,
}

impl Size {
    /// It, where it is above its limit.
    #[must_use]
    pub fn excess(&self) -> Option<Excess> {
        let Self { kind, name, figure, path, line } = self;
        let excess = || Excess {
            key: format!("{} {name}", kind.word),
            figure: *figure,
            path: path.clone(),
            line: *line,
            what: format!("{name} has {figure} {}, limit {}", kind.unit, kind.limit),
            remedy: kind.remedy,
        };
        (*figure > kind.limit).then(excess)
    }
}
