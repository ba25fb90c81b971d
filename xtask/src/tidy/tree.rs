//! [`Tree`]: the texts of the repository that the rules look at.
//!
//! Every Rust file, lexed, and every other text file, read once. A rule is a function of a tree and
//! touches no disk, so that a test gives it a tree of two lines.
//!
//! Build results (`target`, `out`) and hidden folders other than `.ci` and `.cargo` are left out by
//! name.

use std::fs;
use std::io;
use std::path::Path;

use super::source::Source;

/// Longer files are data, not text to be kept tidy.
const TEXT_LEN_MAX: u64 = 2 << 20;

/// A text file that is not Rust.
#[derive(Clone, Debug)]
pub struct Text {
    /// Its path from the root of the repository, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The repository as the rules see it.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The Rust files, by path.
    pub sources: Vec<Source>,
    /// The other text files, by path.
    pub texts: Vec<Text>,
}

impl Tree {
    /// Reads the repository at `root`.
    ///
    /// # Errors
    /// A folder or file that cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        walk(root, "", &mut files)?;
        Ok(Self::new(files))
    }

    /// A tree of `(path, text)`.
    #[must_use]
    pub fn new(mut files: Vec<(String, String)>) -> Self {
        files.sort();
        let mut tree = Self::default();
        for (path, text) in files {
            if path.ends_with(".rs") {
                tree.sources.push(Source::new(path, text));
            } else {
                tree.texts.push(Text { path, text });
            }
        }
        tree.mark_test_files();
        tree
    }

    /// The text of a file that is not Rust.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// The Rust file at `path`.
    #[must_use]
    pub fn source(&self, path: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.path == path)
    }

    fn mark_test_files(&mut self) {
        let declared: Vec<String> =
            self.sources.iter().flat_map(Source::test_module_paths).collect();
        for source in &mut self.sources {
            let path = source.path.as_str();
            source.is_test_file |= declared.iter().any(|test| {
                path == test.as_str() || (test.ends_with('/') && path.starts_with(test.as_str()))
            });
        }
    }
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && is_ours(&path, &name) {
            walk(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && is_text(&path, &name) && entry.metadata()?.len() <= TEXT_LEN_MAX
        {
            let bytes = fs::read(entry.path())?;
            files.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    Ok(())
}

fn is_ours(path: &str, name: &str) -> bool {
    let is_result = matches!(name, "target" | "out") && !path.split('/').any(|dir| dir == "src");
    let is_hidden = name.starts_with('.') && !matches!(name, ".ci" | ".cargo");
    !is_result && !is_hidden
}

fn is_text(path: &str, name: &str) -> bool {
    let suffixes = ["rs", "md", "toml", "txt", "sh", "py", "c", "h", "cpp", "hpp", "adb", "ads"];
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
    name == "Makefile" || path == ".ci/run" || suffix.is_some_and(|s| suffixes.contains(&s))
}

/// A tree of a few lines, for the tests of the rules.
#[cfg(test)]
pub fn tree(files: &[(&str, &str)]) -> Tree {
    Tree::new(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_test_module_declares_is_test_code_and_so_is_all_below_it() {
        let tree = tree(&[
            ("crates/x/src/a.rs", "#[cfg(test)] mod tests; mod live;"),
            ("crates/x/src/a/live.rs", ""),
            ("crates/x/src/a/tests.rs", ""),
            ("crates/x/src/a/tests/deep/more.rs", ""),
            ("crates/x/tests/flow.rs", ""),
        ]);
        let marked: Vec<bool> = tree.sources.iter().map(|source| source.is_test_file).collect();
        assert_eq!(marked, [false, false, true, true, true]);
    }

    #[test]
    fn results_and_hidden_folders_are_left_out_but_a_module_named_out_is_not() {
        assert!(!is_ours("target", "target"));
        assert!(!is_ours("fuzz/target", "target"));
        assert!(!is_ours(".git", ".git"));
        assert!(is_ours(".ci", ".ci"));
        assert!(is_ours("crates/x/src/out", "out"));
    }
}
