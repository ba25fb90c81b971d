//! What a run of the tests left out: those that said so with `dacapo_base::skip`, the ignored, and
//! the scenes that are played at night.
//!
//! ```text
//!   tests --> target/skipped.tsv (place, test, why) --\
//!                                                      +--> a list, with its count
//!   sources --> `#[ignore = "why: make target"]` -----+
//!   scenes.txt --> `scene NAME at night: why` --------/
//! ```

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::tidy::ignored::{self, Ignored};
use crate::tidy::tree::Tree;

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

/// Where the scenes of the documents' command lines are.
const SCENES: &str = "apps/dacapo/tests/terminal/scenes.txt";

/// What else a run leaves to other targets: ignored tests, and scenes of the night.
#[derive(Debug)]
pub struct Left {
    ignored: Vec<Ignored>,
    scenes: Vec<String>,
}

impl Left {
    /// What stands so in the repository.
    #[must_use]
    pub fn of(tree: &Tree) -> Self {
        let text = tree.text(SCENES).unwrap_or_default();
        Self { ignored: ignored::list(tree), scenes: scenes(text) }
    }
}

/// The scenes that are played at night, each with its reason.
fn scenes(text: &str) -> Vec<String> {
    let scenes = text.lines().filter_map(|line| line.strip_prefix("scene "));
    let nights = scenes.filter_map(|scene| scene.split_once(" at night: "));
    nights.map(|(name, why)| format!("{name}: {why}: make nightly")).collect()
}

/// The list at the end of a run.
#[must_use]
pub fn list(text: &str, left: &Left) -> String {
    let mut out = format!("\n  skipped here: {}\n", count(text));
    for (why, tests) in tests(text) {
        out.push_str(&format!("    {why}: {}\n", tests.len()));
        tests.iter().for_each(|test| out.push_str(&format!("      {test}\n")));
    }
    out.push_str(&format!("  ignored, left to other targets: {}\n", left.ignored.len()));
    for Ignored { path, line, reason } in &left.ignored {
        out.push_str(&format!("    {path}:{line}: {reason}\n"));
    }
    out.push_str(&format!("  scenes left to the night: {}\n", left.scenes.len()));
    left.scenes.iter().for_each(|scene| out.push_str(&format!("    {scene}\n")));
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
        let scenes = scenes("scene a\nscene demo in the sources at night: minutes\n$ b\n");
        let left = Left { ignored: ignored.into(), scenes };
        assert_eq!(count(text), 3);
        assert_eq!(
            list(text, &left),
            [
                "\n  skipped here: 3\n    no ip: 1\n      z (c.rs:3)\n    no root: 2\n",
                "      x (a.rs:1)\n      y (b.rs:2)\n  ignored, left to other targets: 1\n",
                "    d.rs:4: long: make nightly\n  scenes left to the night: 1\n",
                "    demo in the sources: minutes: make nightly\n",
            ]
            .concat()
        );
    }

    #[test]
    fn nothing_left_out_is_said_too() {
        let nothing = Left { ignored: Vec::new(), scenes: Vec::new() };
        let said = list("", &nothing);
        assert!(said.contains("skipped here: 0\n") && said.contains("targets: 0\n"), "{said}");
        assert!(said.ends_with("scenes left to the night: 0\n"), "{said}");
    }
}
