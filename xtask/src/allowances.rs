//! [`Allowances`]: what stands above a limit, each with a reason; the list only shrinks.
//!
//! ```text
//!   # a comment
//!   fields core::Core 24: one sentence of reason
//!   `-- the key ----' `-- how much
//! ```
//!
//! Something above its limit without a line fails, and so does what grew beyond its line, a line
//! above what is there, a line for what is no longer above a limit, and a line without a reason.

use std::collections::BTreeMap;

use crate::tidy::Problem;

/// The lines of a list.
#[derive(Debug)]
pub struct Allowances {
    rule: &'static str,
    path: &'static str,
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    figure: usize,
    has_reason: bool,
    line: usize,
}

/// Something that was counted, and is above its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// What and whose, as the list has it.
    pub key: String,
    /// How much.
    pub figure: usize,
    /// Where it stands.
    pub path: String,
    /// The line there, from 1.
    pub line: usize,
    /// `24 fields, limit 20`.
    pub what: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl Allowances {
    /// Reads the list `path` with `text`; lines that begin with `#` are none.
    ///
    /// # Errors
    /// The problem of the first line that is of another form.
    pub fn parse(rule: &'static str, path: &'static str, text: &str) -> Result<Self, Problem> {
        let mut entries = BTreeMap::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| is_entry(line)) {
            let bad = |what: &str, remedy: &str| Problem::new(rule, path, index + 1, what, remedy);
            let Some((key, figure, reason)) = read(line) else {
                return Err(bad("no allowance", "write `what whose figure: reason`"));
            };
            let entry = Entry { figure, has_reason: reason.contains(' '), line: index + 1 };
            if entries.insert(key.to_owned(), entry).is_some() {
                return Err(bad("a second line for the same", "make them one"));
            }
        }
        Ok(Self { rule, path, entries })
    }

    /// What `key` is allowed.
    #[must_use]
    pub fn allowed(&self, key: &str) -> Option<usize> {
        self.entries.get(key).map(|entry| entry.figure)
    }

    /// What is wrong, either way, between the list and what is there.
    #[must_use]
    pub fn judge(&self, excesses: &[Excess]) -> Vec<Problem> {
        let above = excesses.iter().filter_map(|excess| self.judge_one(excess));
        let needs: BTreeMap<&str, usize> =
            excesses.iter().map(|it| (it.key.as_str(), it.figure)).collect();
        let below = self.entries.iter().filter_map(|(key, entry)| {
            let (what, remedy) = match needs.get(key.as_str()) {
                None => (format!("`{key}` needs no line"), "remove it".to_owned()),
                Some(&need) if need < entry.figure => (
                    format!("`{key}` has {} and needs {need}", entry.figure),
                    "lower it".to_owned(),
                ),
                Some(_) if !entry.has_reason => {
                    (format!("`{key}` has no reason"), "say why in a sentence".to_owned())
                }
                Some(_) => return None,
            };
            Some(Problem::new(self.rule, self.path, entry.line, what, remedy))
        });
        above.chain(below).collect()
    }

    fn judge_one(&self, excess: &Excess) -> Option<Problem> {
        let Excess { key, figure, path, line, what, remedy } = excess;
        let what = match self.allowed(key) {
            Some(allowed) if *figure <= allowed => return None,
            Some(allowed) => format!("{what}, {allowed} in {}, which only go down", self.path),
            None => what.clone(),
        };
        Some(Problem::new(self.rule, path, *line, what, *remedy))
    }

    /// `text` with what is there where that is less, without the lines that nothing needs.
    #[must_use]
    pub fn shrunk(text: &str, excesses: &[Excess]) -> String {
        let mut shrunk = String::new();
        for line in text.lines() {
            let entry = is_entry(line).then(|| read(line)).flatten();
            let Some((key, figure, reason)) = entry else {
                shrunk.push_str(&format!("{line}\n"));
                continue;
            };
            if let Some(need) = excesses.iter().find(|it| it.key == key) {
                shrunk.push_str(&format!("{key} {}: {reason}\n", need.figure.min(figure)));
            }
        }
        shrunk
    }
}

fn is_entry(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

fn read(line: &str) -> Option<(&str, usize, &str)> {
    let (head, reason) = line.split_once(": ").or(Some((line.trim_end_matches(':'), "")))?;
    let (key, figure) = head.rsplit_once(' ')?;
    Some((key, figure.parse().ok()?, reason.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excess(key: &str, figure: usize) -> Excess {
        let what = format!("{key}: {figure}, limit 20");
        let (key, path) = (key.to_owned(), "a.rs".to_owned());
        Excess { key, figure, path, line: 7, what, remedy: "split it" }
    }

    fn found(text: &str, excesses: &[Excess]) -> Vec<String> {
        match Allowances::parse("limits", "list.txt", text) {
            Ok(list) => list.judge(excesses).iter().map(ToString::to_string).collect(),
            Err(problem) => vec![problem.to_string()],
        }
    }

    #[test]
    fn what_is_listed_with_its_figure_and_a_reason_passes() {
        let text = "# why\n\nfields a::B 24: it is one thing\n";
        assert_eq!(found(text, &[excess("fields a::B", 24)]), [""; 0]);
    }

    #[test]
    fn what_is_not_listed_or_grew_fails_at_its_place() {
        let new = excess("fields a::B", 25);
        assert_eq!(
            found("", std::slice::from_ref(&new)),
            ["a.rs:7: limits: fields a::B: 25, limit 20; split it"]
        );
        assert_eq!(
            found("fields a::B 24: it is one thing\n", &[new]),
            ["a.rs:7: limits: fields a::B: 25, limit 20, 24 in list.txt, which only go down; \
              split it"]
        );
    }

    #[test]
    fn a_line_above_its_need_or_without_one_or_a_reason_fails_at_the_line() {
        let text = "a 30: it is one thing\nb 21: it is one thing\nc 22: why\n";
        assert_eq!(
            found(text, &[excess("a", 29), excess("c", 22)]),
            [
                "list.txt:1: limits: `a` has 30 and needs 29; lower it",
                "list.txt:2: limits: `b` needs no line; remove it",
                "list.txt:3: limits: `c` has no reason; say why in a sentence",
            ]
        );
    }

    #[test]
    fn lines_of_another_form_and_two_of_one_key_fail() {
        let form = "list.txt:2: limits: no allowance; write `what whose figure: reason`";
        assert_eq!(found("# a\nfields a::B many: x y\n", &[]), [form]);
        let twice = "list.txt:2: limits: a second line for the same; make them one";
        assert_eq!(found("a 1: x y\na 2: x y\n", &[]), [twice]);
    }

    #[test]
    fn shrinking_lowers_and_removes_and_never_raises() {
        let text = "# why\na 30: x y\nb 21: x y\n\nc 22: x y\n";
        let now = [excess("a", 29), excess("c", 40), excess("d", 90)];
        assert_eq!(Allowances::shrunk(text, &now), "# why\na 29: x y\n\nc 22: x y\n");
    }
}
