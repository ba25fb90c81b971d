//! Records of rows that were run: a line of JSON for each, so that a table can be made of runs of
//! different times, and one that was stopped goes on.
//!
//! ```text
//!   run NAME --record FILE ---> a line        faults --records FILE ---> rows that have one are
//!                                             taken from it, the others are run and added
//! ```
//!
//! Invariants: of several lines of a row the last counts; one that is cut off counts for nothing.

use crate::fault::{Fault, Seen};
use crate::table::Ran;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Adds what a row gave to a file of records, which is made when it is missing.
///
/// # Errors
/// The file cannot be written.
pub fn add(path: &Path, ran: &Ran<'_>, commit: &str) -> io::Result<()> {
    let (figure, seen) = match &ran.result {
        Ok(seen) => (Some(&seen.figure), Some(&seen.json)),
        Err(_) => (None, None),
    };
    let line = json!({
        "id": ran.fault.id, "commit": commit, "seconds": ran.seconds,
        "figure": figure, "seen": seen, "failed": ran.result.as_ref().err(),
    });
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    // One write, so that runs side by side do not mix their lines.
    file.write_all(format!("{line}\n").as_bytes())
}

/// The last record of each row in a file; none when there is no file.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<Value>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// What a row gave when it was run last; none when it was not.
#[must_use]
pub fn of<'a>(records: &[Value], row: &'a Fault) -> Option<Ran<'a>> {
    let record = records.iter().rev().find(|record| record["id"] == row.id)?;
    let seconds = record["seconds"].as_f64().unwrap_or_default();
    let commit = record["commit"].as_str().map(str::to_owned);
    let result = match (record["figure"].as_str(), record["failed"].as_str()) {
        (Some(figure), None) => Ok(Seen::new(figure.to_owned(), record["seen"].clone())),
        (None, Some(reason)) => Err(reason.to_owned()),
        _ => return None,
    };
    Some(Ran { fault: row, result, seconds, commit, age: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::all;

    #[test]
    fn the_last_whole_line_of_a_row_counts() {
        let path = std::env::temp_dir().join(format!("dacapo-lab-records-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let rows: Vec<&Fault> = all().take(2).collect();
        let ran = |result| Ran { fault: rows[0], result, seconds: 1.5, commit: None, age: None };
        add(&path, &ran(Err("it broke".to_owned())), "a").unwrap();
        add(&path, &ran(Ok(Seen::new("3 of 3".to_owned(), Value::Null))), "b").unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"id\": \"{}\", \"fig", rows[0].id)).unwrap();
        let records = read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let found = of(&records, rows[0]).unwrap();
        assert_eq!(found.result.unwrap().figure, "3 of 3");
        assert_eq!((found.commit.as_deref(), found.seconds), (Some("b"), 1.5));
        assert!(of(&records, rows[1]).is_none());
        assert!(of(&records[..1], rows[0]).unwrap().result.is_err());
    }

    #[test]
    fn a_file_that_is_not_there_has_no_records() {
        assert_eq!(read(Path::new("/nowhere/rows.jsonl")).unwrap(), Vec::<Value>::new());
    }
}
