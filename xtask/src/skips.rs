//! What a run of the tests left out: those that said so with `dacapo_base::skip`, and the ignored.
//!
//! ```text
//!   tests --> target/skipped.tsv (place, test, why) --\
//!                                                      +--> a list, with its count
//!   sources --> `#[ignore = "why: make target"]` -----/
//! ```

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::tidy::ignored::Ignored;

/// The variable that names the file to tests; `dacapo_base::skip` reads it.
pub const VARIABLE: &str = "DACAPO_SKIPPED";

/// The file to which the tests of one run add their lines.
#[derive(Debug)]
pub struct Skips {
    path: PathBuf,
}

impl Skips {
    /// A run that begins now, with an empty file.
    ///
    /// # Errors
    /// The file of the run before cannot be emptied.
    pub fn new(root: &Path) -> io::Result<Self> {
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let path = root.join(target).join("skipped.tsv");
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, "")?;
        Ok(Self { path })
    }

    /// Where tests write.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What they have written so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn text(&self) -> io::Result<String> {
        fs::read_to_string(&self.path)
    }
}

/// How many tests have said in `text` that they are left out.
#[must_use]
pub fn count(text: &str) -> usize {
    tests(text).values().map(Vec::len).sum()
}

/// Reason by reason, the tests that gave it; a test that says it twice counts once.
fn tests(text: &str) -> BTreeMap<&str, Vec<String>> {
    let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, '\t');
        let (place, test) = (fields.next().unwrap_or("?"), fields.next().unwrap_or("?"));
        let tests = all.entry(fields.next().unwrap_or("no reason")).or_default();
        let name = format!("{test} ({place})");
        if !tests.contains(&name) {
            tests.push(name);
        }
    }
    all
}

/// The list at the end of a run.
#[must_use]
pub fn list(text: &str, ignored: &[Ignored]) -> String {
    let mut out = format!("\n  skipped here: {}\n", count(text));
    for (why, tests) in tests(text) {
        out.push_str(&format!("    {why}: {}\n", tests.len()));
        tests.iter().for_each(|test| out.push_str(&format!("      {test}\n")));
    }
    out.push_str(&format!("  ignored, left to other targets: {}\n", ignored.len()));
    for Ignored { path, line, reason } in ignored {
        out.push_str(&format!("    {path}:{line}: {reason}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_listed_by_reason_and_counted_once() {
        let text = "a.rs:1\tx\tno root\nb.rs:2\ty\tno root\na.rs:1\tx\tno root\nc.rs:3\tz\tno ip\n";
        let ignored =
            [Ignored { path: "d.rs".into(), line: 4, reason: "long: make nightly".into() }];
        assert_eq!(count(text), 3);
        assert_eq!(
            list(text, &ignored),
            "\n  skipped here: 3\n    no ip: 1\n      z (c.rs:3)\n    no root: 2\n      x (a.rs:1)\
             \n      y (b.rs:2)\n  ignored, left to other targets: 1\
             \n    d.rs:4: long: make nightly\n"
        );
    }

    #[test]
    fn nothing_left_out_is_said_too() {
        assert_eq!(list("", &[]), "\n  skipped here: 0\n  ignored, left to other targets: 0\n");
    }
}
