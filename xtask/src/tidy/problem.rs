//! [`Problem`]: one finding, with its place, its rule and what to do.

use std::fmt;

/// One finding of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, from the root of the repository.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The rule's name.
    pub rule: &'static str,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl Problem {
    /// A finding of `rule` at `path:line`.
    #[must_use]
    pub fn new(
        rule: &'static str,
        path: &str,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { path: path.to_owned(), line, rule, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, what, remedy } = self;
        write!(f, "{path}:{line}: {rule}: {what}; {remedy}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_place_rule_what_and_what_to_do() {
        let problem = Problem::new("layout", "a.rs", 3, "a tab", "use spaces");
        assert_eq!(problem.to_string(), "a.rs:3: layout: a tab; use spaces");
    }
}
