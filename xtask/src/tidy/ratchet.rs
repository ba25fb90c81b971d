//! [`Ratchet`]: allowances above a limit, which may only go down.
//!
//! `xtask/ratchet.txt` holds a line per allowance: `path::function length` or `path length`. What
//! needs less than it is allowed fails until the allowance is lowered; what needs none, until the
//! line is removed. So the file shrinks by itself, and growing it is a line in a review.

use std::collections::BTreeMap;

use super::problem::Problem;

/// Where the allowances stand.
pub const PATH: &str = "xtask/ratchet.txt";

/// The allowances, by key.
#[derive(Debug, Default)]
pub struct Ratchet {
    entries: BTreeMap<String, (usize, usize)>,
}

impl Ratchet {
    /// Reads `text`; comments begin with `#`.
    ///
    /// # Errors
    /// The problem of the first line that is no allowance.
    pub fn parse(rule: &'static str, text: &str) -> Result<Self, Problem> {
        let mut entries = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), index + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let parsed = line.rsplit_once(' ').and_then(|(key, n)| Some((key, n.parse().ok()?)));
            let Some((key, allowed)) = parsed else {
                let remedy = "write `path::function length` or `path length`";
                return Err(Problem::new(rule, PATH, number, "no allowance", remedy));
            };
            entries.insert(key.trim().to_owned(), (allowed, number));
        }
        Ok(Self { entries })
    }

    /// What `key` is allowed, if anything.
    #[must_use]
    pub fn allowed(&self, key: &str) -> Option<usize> {
        self.entries.get(key).map(|&(allowed, _)| allowed)
    }

    /// The allowances that are above what is needed; `needs` has what exceeds `limit`, by key.
    #[must_use]
    pub fn slack(&self, rule: &'static str, needs: &BTreeMap<String, usize>) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (key, &(allowed, line)) in &self.entries {
            let what =
                |needed: &str| format!("`{key}` is allowed {allowed} lines and needs {needed}");
            match needs.get(key) {
                None => {
                    problems.push(Problem::new(rule, PATH, line, what("none"), "remove the line"));
                }
                Some(&needed) if needed < allowed => {
                    let remedy = format!("lower it to {needed}");
                    let what = what(&needed.to_string());
                    problems.push(Problem::new(rule, PATH, line, what, remedy));
                }
                Some(_) => {}
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowances_are_read_and_comments_skipped() {
        let ratchet = Ratchet::parse("r", "# why\n\na.rs::f 80\na.rs 1200\n").unwrap();
        assert_eq!(ratchet.allowed("a.rs::f"), Some(80));
        assert_eq!(ratchet.allowed("a.rs"), Some(1200));
        assert_eq!(ratchet.allowed("b.rs"), None);
    }

    #[test]
    fn a_line_of_another_form_is_a_problem_with_its_number() {
        let problem = Ratchet::parse("r", "a.rs 80\na.rs::f many\n").unwrap_err();
        assert_eq!((problem.path.as_str(), problem.line), (PATH, 2));
    }

    #[test]
    fn an_allowance_above_its_need_must_go_down() {
        let ratchet = Ratchet::parse("r", "a 80\nb 90\nc 100\n").unwrap();
        let needs = BTreeMap::from([("a".to_owned(), 80), ("b".to_owned(), 85)]);
        let found: Vec<String> =
            ratchet.slack("r", &needs).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "xtask/ratchet.txt:2: r: `b` is allowed 90 lines and needs 85; lower it to 85",
                "xtask/ratchet.txt:3: r: `c` is allowed 100 lines and needs none; remove the line",
            ]
        );
    }
}
