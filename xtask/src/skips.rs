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

    /// One that writes there, whatever the environment says.
    #[cfg(test)]
    pub fn at(path: PathBuf) -> Self {
        Self { path }
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

/// Which reasons are no failure: those that `.ci/skips.toml` lists.
#[derive(Debug, Default)]
pub struct Allowed(Vec<String>);

/// Where they are.
const ALLOWED: &str = ".ci/skips.toml";

impl Allowed {
    /// Reads them: `[[skip]]`, then `why = "words of the reason"` and `because = "…"`.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is something else.
    pub fn read(root: &Path) -> io::Result<Self> {
        Self::parse(&fs::read_to_string(root.join(ALLOWED))?).map_err(io::Error::other)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut whys = Vec::new();
        let mut reasons = 0;
        for (at, line) in (1..).zip(text.lines().map(str::trim)) {
            let value = |key: &str| {
                let rest = line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim();
                rest.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.is_empty())
            };
            if let Some(why) = value("why") {
                whys.push(why.to_owned());
            } else if value("because").is_some() {
                reasons += 1;
            } else if !line.is_empty() && !line.starts_with('#') && line != "[[skip]]" {
                return Err(format!("{ALLOWED}:{at}: `{line}` is no why and no because"));
            }
        }
        let is_whole = whys.len() == reasons && whys.len() == text.matches("[[skip]]").count();
        let fault = || format!("{ALLOWED}: each [[skip]] has one why and one because");
        if is_whole { Ok(Self(whys)) } else { Err(fault()) }
    }

    /// The tests in `text` that gave a reason which is not listed.
    #[must_use]
    pub fn others(&self, text: &str) -> Vec<String> {
        let is_listed = |why: &str| self.0.iter().any(|words| why.contains(words));
        let all = tests(text).into_iter().filter(|(why, _)| !is_listed(why));
        all.flat_map(|(why, tests)| tests.into_iter().map(move |it| format!("{it}: {why}")))
            .collect()
    }
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
    fn a_reason_that_is_not_listed_is_a_failure_with_the_test_that_gave_it() {
        let listed = "# x\n[[skip]]\nwhy = \"root\"\nbecause = \"rights\"\n";
        let allowed = Allowed::parse(listed).unwrap();
        let text = "a.rs:1\tx\tthis is not root\nb.rs:2\ty\ttshark is not installed\n";
        assert_eq!(allowed.others(text), ["y (b.rs:2): tshark is not installed"]);
        assert!(Allowed::parse("[[skip]]\nwhy = \"a\"\n").is_err(), "without a because");
        assert!(Allowed::parse("why: a\n").unwrap_err().contains("skips.toml:1: `why: a`"));
        assert!(Allowed::parse("[[skip]]\nwhy = \"\"\nbecause = \"b\"\n").is_err(), "all");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(!Allowed::read(&root).unwrap().0.is_empty());
    }

    #[test]
    fn nothing_left_out_is_said_too() {
        let nothing = Left { ignored: Vec::new(), scenes: Vec::new() };
        let said = list("", &nothing);
        assert!(said.contains("skipped here: 0\n") && said.contains("targets: 0\n"), "{said}");
        assert!(said.ends_with("scenes left to the night: 0\n"), "{said}");
    }
}
