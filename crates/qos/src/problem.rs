//! Mistakes in a file, all of them, each where it is and with what would be right.
//!
//! [`Problem`] (one mistake), [`Errors`] (at least one, in the order of the file), and the
//! collector that the readers share.
//!
//! ```text
//!   movie.toml:12: flow[0].attributes.delay.max: "50 mm" is not a duration; allowed: a number …
//!   origin     line key (dotted path)            what                       allowed
//! ```
//!
//! Invariants: the line is one of the file's; text of the file is quoted, with control characters
//! escaped and cut to a bounded length; at most [`MAX_PROBLEMS`] are kept.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::nearest::nearest;
use crate::spanned::{Lines, Spanned};

/// Problems that are kept; of more only the number is told.
pub(crate) const MAX_PROBLEMS: usize = 256;

const MAX_QUOTED_LEN: usize = 64;

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as the caller named it.
    pub origin: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The dotted path of the key, such as `flow[1].attributes.delay.max`; empty for the file.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What would be right, when that can be said in general.
    pub allowed: Option<String>,
}

impl Problem {
    /// A problem at a value that was read from `origin`.
    #[must_use]
    pub fn at<T>(
        origin: &Arc<str>,
        place: &Spanned<T>,
        key: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        let (line, column) = (place.line, place.column);
        let (origin, key, what) = (Arc::clone(origin), key.into(), what.into());
        Self { origin, line, column, key, what, allowed: None }
    }

    /// The same, saying what is allowed.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.origin, self.line)?;
        if self.key.is_empty() {
            write!(f, "{}: {}", self.column, self.what)?;
        } else {
            write!(f, " {}: {}", self.key, self.what)?;
        }
        match &self.allowed {
            Some(allowed) => write!(f, "; allowed: {allowed}"),
            None => Ok(()),
        }
    }
}

impl Error for Problem {}

/// All problems of a file, in the order of its lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(Vec<Problem>);

impl Errors {
    /// `problems` in the order of their lines, or none when there is none.
    #[must_use]
    pub fn new(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by_key(|problem| (problem.line, problem.column));
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// The problems.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Errors {
    /// One problem per line, without a line break at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            let lead = if i == 0 { "" } else { "\n" };
            write!(f, "{lead}{problem}")?;
        }
        Ok(())
    }
}

impl Error for Errors {}

impl From<Problem> for Errors {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl IntoIterator for Errors {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// `text` in quotes, escaped and cut.
pub(crate) fn quoted(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(MAX_QUOTED_LEN).collect();
    let more = if chars.next().is_some() { "…" } else { "" };
    format!("\"{}{more}\"", head.escape_debug())
}

/// `key` as part of a dotted path: bare when TOML would take it so, else quoted.
pub(crate) fn path_of(parent: &str, key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let bare = !key.is_empty() && key.len() <= MAX_QUOTED_LEN && key.chars().all(is_bare);
    let key = if bare { key.to_owned() } else { quoted(key) };
    if parent.is_empty() { key } else { format!("{parent}.{key}") }
}

/// `word` as "did you mean" among `candidates`, or nothing.
pub(crate) fn suggestion(word: &str, candidates: &[&str]) -> String {
    nearest(word, candidates.iter().copied())
        .map_or_else(String::new, |near| format!(" (did you mean \"{near}\"?)"))
}

/// The problems of one file while it is read.
pub(crate) struct Problems<'a> {
    origin: Arc<str>,
    lines: Lines<'a>,
    found: Vec<Problem>,
    omitted: usize,
}

impl<'a> Problems<'a> {
    pub(crate) fn new(origin: Arc<str>, text: &'a str) -> Self {
        Self { origin, lines: Lines::new(text), found: Vec::new(), omitted: 0 }
    }

    /// Whether another problem would only be counted; spares making its text.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_PROBLEMS
    }

    /// `value` with the place of an offset.
    pub(crate) fn spanned<T>(&self, offset: usize, value: T) -> Spanned<T> {
        let (line, column) = self.lines.position(offset);
        Spanned { value, line, column }
    }

    /// Reports that `key` at `offset` is wrong; a non-empty `allowed` says what would be right.
    pub(crate) fn report(
        &mut self,
        offset: usize,
        key: &str,
        what: impl Into<String>,
        allowed: impl Into<String>,
    ) {
        let place = self.spanned(offset, ());
        let problem = Problem::at(&self.origin, &place, key, what);
        let allowed = allowed.into();
        self.push(if allowed.is_empty() { problem } else { problem.allowed(allowed) });
    }

    /// Adds a problem, or only counts it.
    pub(crate) fn push(&mut self, problem: Problem) {
        if self.is_full() {
            self.omit();
        } else {
            self.found.push(problem);
        }
    }

    /// Counts a problem that is not kept.
    pub(crate) fn omit(&mut self) {
        self.omitted = self.omitted.saturating_add(1);
    }

    /// All problems; where there are none, that nothing could be read.
    pub(crate) fn into_errors(mut self) -> Errors {
        if self.found.is_empty() {
            self.report(0, "", "nothing could be read", "");
        }
        self.found.sort_by_key(|problem| (problem.line, problem.column));
        if self.omitted > 0 {
            let place = self.spanned(usize::MAX, ());
            let what = format!("{} more problems are not shown", self.omitted);
            self.found.push(Problem::at(&self.origin, &place, "", what));
        }
        Errors(self.found)
    }

    /// Whether nothing was wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_file_line_key_what_and_allowed() {
        let origin: Arc<str> = "movie.toml".into();
        let place = Spanned { value: (), line: 12, column: 7 };
        let problem = Problem::at(&origin, &place, "flow[0].name", "is empty");
        assert_eq!(problem.to_string(), "movie.toml:12: flow[0].name: is empty");
        let problem = problem.allowed("a name");
        assert_eq!(problem.to_string(), "movie.toml:12: flow[0].name: is empty; allowed: a name");
        let problem = Problem::at(&origin, &place, "", "not TOML");
        assert_eq!(problem.to_string(), "movie.toml:12:7: not TOML");
    }

    #[test]
    fn problems_come_in_the_order_of_the_file_and_their_number_is_bounded() {
        let text = "\n".repeat(1_000) + "x";
        let mut problems = Problems::new("f".into(), &text);
        for offset in (0..1_000).rev() {
            problems.report(offset, "k", "w", "");
        }
        let errors = problems.into_errors();
        assert_eq!(errors.problems().len(), MAX_PROBLEMS + 1);
        assert!(errors.problems().is_sorted_by_key(|problem| problem.line));
        assert!(errors.to_string().ends_with("744 more problems are not shown"), "{errors}");
    }

    #[test]
    fn text_of_the_file_is_escaped_and_cut() {
        assert_eq!(quoted("a\u{1b}[2J"), "\"a\\u{1b}[2J\"");
        assert_eq!(quoted(&"x".repeat(65)), format!("\"{}…\"", "x".repeat(64)));
        assert_eq!(path_of("flow[0]", "a b"), "flow[0].\"a b\"");
        assert_eq!(path_of("", "session"), "session");
    }
}
