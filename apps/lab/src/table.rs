//! The table of faults as a page: what goes wrong, what must happen, what was seen.

use crate::fault::{Fault, Seen};
use std::fmt::Write;

/// A row and what its run gave.
pub struct Ran<'a> {
    /// The row.
    pub fault: &'a Fault,
    /// What was seen, or why it failed.
    pub result: Result<Seen, String>,
    /// How long the run took, seconds.
    pub seconds: f64,
    /// At which commit it was seen, where that is not the table's.
    pub commit: Option<String>,
    /// How many commits that is before the table's, where it is old.
    pub age: Option<u64>,
}

impl Ran<'_> {
    /// Whether it could not be run on its host, and says why.
    fn is_skipped(&self) -> bool {
        self.result.as_ref().is_ok_and(|seen| seen.figure.starts_with("skipped: "))
    }
}

/// Where the page comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The command that wrote it.
    pub command: String,
    /// At which commit, and where.
    pub place: String,
    /// The other commits at which rows were seen, and how many rows.
    pub others: Vec<(String, usize)>,
}

/// The page: a table for every kind of fault.
#[must_use]
pub fn page(files: &[(&str, Vec<Ran<'_>>)], origin: &Origin) -> String {
    let all = || files.iter().flat_map(|(_, rows)| rows);
    let (count, failed) = (all().count(), all().filter(|ran| ran.result.is_err()).count());
    let skipped = all().filter(|ran| ran.is_skipped()).count();
    let Origin { command, place, others } = origin;
    let mut page = format!(
        "# Faults\n\nEvery fault that is put in on purpose, what must happen then, and what was \
         seen.\n\nWritten by `{command}` {place}: {count} rows, {failed} failed, {skipped} \
         skipped{}. One row again: `dacapo-lab run NAME`; one seed of it: `dacapo-lab run NAME \
         --seed N`. The short form of every row is a test.\n",
        told_of(others)
    );
    for (title, rows) in files {
        let _ = write!(
            page,
            "\n## {title}\n\n| name | fault | injector | expected | seen |\n|---|---|---|---|---|\n"
        );
        rows.iter().for_each(|ran| row(&mut page, ran));
    }
    page
}

/// Which rows were seen at another commit; nothing when none was.
fn told_of(others: &[(String, usize)]) -> String {
    if others.is_empty() {
        return String::new();
    }
    let count: usize = others.iter().map(|(_, count)| count).sum();
    let verb = if count == 1 { "was seen at another commit" } else { "were seen at other commits" };
    let commits: Vec<String> =
        others.iter().map(|(commit, count)| format!("{commit} ({count})")).collect();
    format!("; {count} of them {verb}: {}", commits.join(", "))
}

fn row(page: &mut String, ran: &Ran<'_>) {
    let seen = match &ran.result {
        Ok(seen) => seen.figure.clone(),
        Err(reason) => format!("**FAILED**: {reason}"),
    };
    let Fault { id, fault, injector, expected, .. } = ran.fault;
    let age = ran.age.map_or_else(String::new, |age| format!(", old: {age} commits"));
    let at = ran.commit.as_ref().map_or_else(String::new, |commit| format!(" (at {commit}{age})"));
    let seen = cell(&seen) + &at;
    let cells = [format!("`{id}`"), cell(fault), cell(injector), cell(expected), seen];
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const ROW: Fault = Fault {
        id: "a-fault",
        fault: "it breaks",
        injector: "a hammer",
        expected: "it holds",
        test: "",
        bench: None,
        run: |_| Err(String::new()),
    };

    #[test]
    fn a_row_that_failed_says_so_with_its_reason_and_stays_one_line() {
        let ran = |result| Ran { fault: &ROW, result, seconds: 1.0, commit: None, age: None };
        let rows = vec![
            ran(Ok(Seen::new("0 of 7 | none".into(), Value::Null))),
            ran(Err("seed 3:\nbroken".into())),
            ran(Ok(Seen::new("skipped: no root".into(), Value::Null))),
        ];
        let (command, place) = ("dacapo-lab faults".into(), "at commit abc".into());
        let origin = Origin { command, place, others: Vec::new() };
        let page = page(&[("Things", rows)], &origin);
        assert!(page.contains("3 rows, 1 failed, 1 skipped"), "{page}");
        assert!(page.contains("| 0 of 7 \\| none |"), "{page}");
        assert!(page.contains("| **FAILED**: seed 3: broken |"), "{page}");
        assert!(page.contains("commit abc"), "{page}");
    }
}
