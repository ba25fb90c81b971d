//! docs/faults.md beside docs/faults.jsonl: every row of it is one that was recorded.
//!
//! ```text
//!   faults.jsonl --Document--> page        == faults.md, else it was edited by hand
//!        '-- a commit for each row         before HEAD, at most OLD_AFTER commits
//! ```
//!
//! A row says at which commit it was seen where that is not the page's. How long ago that is grows
//! with every commit; so what stands in the page is counted up to the page's own commit, which does
//! not move, and what is counted up to HEAD is told, and fails at night only.
//!
//! Invariant: the page follows from the records and the history of their commits alone.

use crate::fault::Fault;
use crate::history::History;
use crate::records;
use crate::table::{Origin, Ran, page};
use serde_json::Value;
use std::collections::BTreeMap;

/// After how many commits a row is old.
pub const OLD_AFTER: u64 = 200;

/// What the page says of how it is made.
const COMMAND: &str =
    "dacapo-lab faults --records docs/faults.jsonl --recorded --write docs/faults.md";

/// Rows under their titles.
pub type Files<'a> = &'a [(&'static str, &'a [Fault])];

/// Records, and the rows that they are of.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    /// The lines of the file.
    pub records: &'a [Value],
    /// The rows of the table.
    pub files: Files<'a>,
    /// What is known of commits; nothing in a tarball or a shallow clone.
    pub history: Option<&'a History>,
}

impl Document<'_> {
    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        let own = self.commit();
        let files: Vec<(&str, Vec<Ran<'_>>)> = self
            .files
            .iter()
            .map(|(title, rows)| (*title, self.of(rows, own.as_deref()).collect()))
            .collect();
        let origin = Origin {
            command: COMMAND.to_owned(),
            place: format!("of what was seen at commit {}", own.as_deref().unwrap_or("unknown")),
            others: self.others(own.as_deref()),
        };
        let mut page = page(&files, &origin);
        let missing = self.missing();
        if !missing.is_empty() {
            page.push_str(&format!("\n## Not run\n\n`{}`\n", missing.join("`, `")));
        }
        page
    }

    /// What is wrong with a page and the records.
    #[must_use]
    pub fn faults(&self, page: &str) -> Vec<String> {
        let mut faults: Vec<String> =
            self.missing().iter().map(|id| format!("{id}: has no record")).collect();
        let failed = self.rows().filter(|row| row.result.is_err());
        faults.extend(failed.map(|row| format!("{}: failed", row.fault.id)));
        faults.extend(self.strange());
        let wanted = self.page();
        // Without history nobody can count, but the rest of the page stands.
        let is_same = match self.history {
            Some(_) => wanted == page,
            None => without_ages(&wanted) == without_ages(page),
        };
        if !is_same {
            faults.push(format!(
                "docs/faults.md: is not what docs/faults.jsonl gives: {COMMAND}, and look at it"
            ));
        }
        faults
    }

    /// The rows that are old, with how many commits there are up to HEAD.
    #[must_use]
    pub fn old(&self) -> Vec<String> {
        let age = |row: &Ran<'_>| self.history?.between(row.commit.as_deref()?, "HEAD");
        let rows = self.rows().filter_map(|row| Some((row.fault.id, age(&row)?)));
        rows.filter(|(_, age)| *age > OLD_AFTER)
            .map(|(id, age)| format!("{id} (old: {age} commits)"))
            .collect()
    }

    /// The page's commit: that of the line that was written last.
    fn commit(&self) -> Option<String> {
        let is_row = |record: &&Value| self.all().any(|row| record["id"] == row.id);
        let last = self.records.iter().rev().find(is_row)?;
        last["commit"].as_str().map(str::to_owned)
    }

    fn all(&self) -> impl Iterator<Item = &Fault> {
        self.files.iter().flat_map(|(_, rows)| *rows)
    }

    /// The rows that have a record, as it says.
    fn rows(&self) -> impl Iterator<Item = Ran<'_>> {
        self.all().filter_map(|row| records::of(self.records, row))
    }

    /// The same of one title, for a page of this commit.
    fn of<'a>(&'a self, rows: &'a [Fault], own: Option<&'a str>) -> impl Iterator<Item = Ran<'a>> {
        rows.iter().filter_map(|row| records::of(self.records, row)).map(move |mut ran| {
            ran.commit = ran.commit.filter(|commit| Some(commit.as_str()) != own);
            let between = |history: &History| history.between(ran.commit.as_deref()?, own?);
            ran.age = self.history.and_then(between).filter(|age| *age > OLD_AFTER);
            ran
        })
    }

    fn missing(&self) -> Vec<&str> {
        let has_none = |row: &&Fault| records::of(self.records, row).is_none();
        self.all().filter(has_none).map(|row| row.id).collect()
    }

    /// The commits of rows that are not the page's, and of how many.
    fn others(&self, own: Option<&str>) -> Vec<(String, usize)> {
        let mut others = BTreeMap::new();
        for commit in self.rows().filter_map(|row| row.commit) {
            *others.entry(commit).or_insert(0) += 1;
        }
        others.into_iter().filter(|(commit, _)| Some(commit.as_str()) != own).collect()
    }

    /// Rows whose commit is not one of those that HEAD comes of.
    fn strange(&self) -> Vec<String> {
        let Some(history) = self.history else { return Vec::new() };
        let mut known = BTreeMap::new();
        let mut is_strange = |commit: &str| {
            *known
                .entry(commit.to_owned())
                .or_insert_with(|| history.between(commit, "HEAD").is_none())
        };
        let rows = self.rows().map(|row| (row.fault.id, row.commit.unwrap_or_default()));
        rows.filter(|(_, commit)| is_strange(commit))
            .map(|(id, commit)| format!("{id}: HEAD does not come of its commit `{commit}`"))
            .collect()
    }
}

/// A page without how old rows are.
fn without_ages(page: &str) -> String {
    let mut pieces = page.split(", old: ");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
        match rest.strip_prefix(" commits") {
            Some(rest) if rest.len() + 8 < piece.len() => text.push_str(rest),
            _ => text.extend([", old: ", piece]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Seen;
    use crate::history::tests::Checkout;
    use serde_json::json;

    const fn row(id: &'static str) -> Fault {
        Fault {
            id,
            fault: "it breaks",
            injector: "a hammer",
            expected: "it holds",
            test: "",
            bench: None,
            run: |_| Ok(Seen { figure: String::new(), json: Value::Null }),
        }
    }

    const ROWS: [Fault; 2] = [row("first"), row("second")];
    const FILES: Files<'static> = &[("Things", &ROWS)];

    fn record(id: &str, commit: &str) -> Value {
        json!({"id": id, "commit": commit, "seconds": 1, "figure": "7 of 7"})
    }

    fn records(first: &str, second: &str) -> Vec<Value> {
        vec![record("first", first), record("second", second)]
    }

    fn document<'a>(records: &'a [Value], history: &'a History) -> Document<'a> {
        Document { records, files: FILES, history: Some(history) }
    }

    #[test]
    fn the_page_of_the_records_is_right() {
        let checkout = Checkout::new("right");
        let (history, records) =
            (checkout.history(), records(&checkout.commits[3], &checkout.commits[3]));
        let document = document(&records, &history);
        let page = document.page();
        assert_eq!(document.faults(&page), [""; 0]);
        assert_eq!(document.old(), [""; 0]);
        let own = format!("seen at commit {}: 2 rows, 0 failed", checkout.commits[3]);
        assert!(page.contains(&own) && !page.contains("(at"), "{page}");
    }

    #[test]
    fn a_figure_that_is_edited_by_hand_is_found() {
        let checkout = Checkout::new("edited");
        let (history, records) =
            (checkout.history(), records(&checkout.commits[3], &checkout.commits[3]));
        let document = document(&records, &history);
        let edited = document.page().replacen("7 of 7", "8 of 8", 1);
        let faults = document.faults(&edited);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("docs/faults.md: is not what"), "{faults:?}");
        let untold = Document { history: None, ..document };
        assert_eq!(untold.faults(&edited).len(), 1, "without history too");
    }

    #[test]
    fn a_row_without_a_record_and_one_that_failed_are_found() {
        let checkout = Checkout::new("missing");
        let history = checkout.history();
        let commit = &checkout.commits[3];
        let failed = json!({"id": "first", "commit": commit, "failed": "seed 3"});
        let records = [failed];
        let document = document(&records, &history);
        let page = document.page();
        assert_eq!(document.faults(&page), ["second: has no record", "first: failed"]);
        assert!(page.contains("## Not run\n\n`second`"), "{page}");
    }

    #[test]
    fn a_commit_of_another_branch_or_of_nowhere_is_found() {
        let checkout = Checkout::new("strange");
        let history = checkout.history();
        for commit in [&checkout.other, "0123456789ab"] {
            let records = records(commit, &checkout.commits[3]);
            let document = document(&records, &history);
            let wanted = format!("first: HEAD does not come of its commit `{commit}`");
            assert_eq!(document.faults(&document.page()), [wanted]);
            let untold = Document { history: None, ..document };
            assert_eq!(untold.faults(&untold.page()), [""; 0], "nobody could say");
        }
    }

    #[test]
    fn rows_of_other_commits_are_named_and_counted_at_the_top() {
        let checkout = Checkout::new("others");
        let (history, records) =
            (checkout.history(), records(&checkout.commits[1], &checkout.commits[2]));
        let document = document(&records, &history);
        let page = document.page();
        assert_eq!(document.faults(&page), [""; 0]);
        let top = format!("1 of them was seen at another commit: {} (1)", checkout.commits[1]);
        assert!(page.contains(&top), "{page}");
        assert!(page.contains(&format!("7 of 7 (at {}) |", checkout.commits[1])), "{page}");
    }

    #[test]
    fn an_old_row_is_marked_up_to_the_pages_commit_and_told_up_to_head() {
        let checkout = Checkout::new("old");
        for _ in 0..OLD_AFTER {
            checkout.git(&["commit", "-q", "--allow-empty", "-m", "empty"]);
        }
        let own = checkout.git(&["rev-parse", "--short=12", "HEAD"]);
        let (history, records) = (checkout.history(), records(&checkout.commits[2], &own));
        let document = document(&records, &history);
        let page = document.page();
        let mark = format!("7 of 7 (at {}, old: 201 commits) |", checkout.commits[2]);
        assert!(page.contains(&mark), "{page}");
        assert_eq!(document.faults(&page), [""; 0], "age is no commit's fault");
        assert_eq!(document.old(), ["first (old: 201 commits)"]);
        // Another commit moves what is told, and not the page.
        checkout.git(&["commit", "-q", "--allow-empty", "-m", "empty"]);
        assert_eq!(document.faults(&page), [""; 0]);
        assert_eq!(document.old(), ["first (old: 202 commits)"]);
        let untold = Document { history: None, ..document };
        assert_eq!((untold.faults(&page), untold.old()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn ages_alone_are_left_out() {
        let page = "a (at b, old: 12 commits) | c, old: x commits (at d) , old: 7 ";
        assert_eq!(without_ages(page), "a (at b) | c, old: x commits (at d) , old: 7 ");
    }
}
