//! [`History`]: how far commits lie apart, as far as the checkout knows.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The commits of a checkout.
#[derive(Clone, Debug)]
pub struct History {
    root: PathBuf,
}

impl History {
    /// Those of the checkout at `root`.
    ///
    /// # Errors
    /// Why nothing can be said of them: a tarball, or a clone that has not all of them.
    pub fn of(root: &Path) -> Result<Self, String> {
        let history = Self { root: root.to_owned() };
        match history.git(&["rev-parse", "--is-shallow-repository"]).as_deref() {
            Some("false") => Ok(history),
            Some(_) => Err("this clone is shallow".to_owned()),
            None => Err("this is no checkout of git".to_owned()),
        }
    }

    /// How many commits lie between one and a later one; none when it is not before that.
    #[must_use]
    pub fn between(&self, commit: &str, later: &str) -> Option<u64> {
        // What begins with a dash would be an option.
        let is_name = |name: &str| !name.is_empty() && !name.starts_with('-');
        if !is_name(commit) || !is_name(later) {
            return None;
        }
        self.git(&["merge-base", "--is-ancestor", commit, later])?;
        self.git(&["rev-list", "--count", &format!("{commit}..{later}")])?.parse().ok()
    }

    /// What git prints for these words, if it can.
    fn git(&self, words: &[&str]) -> Option<String> {
        let output = Command::new("git").arg("-C").arg(&self.root).args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        Some(text.trim().to_owned())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    /// A checkout of its own, with two branches.
    ///
    /// ```text
    ///   0 -- 1 -- 2 -- 3   HEAD
    ///         '-- other
    /// ```
    pub(crate) struct Checkout {
        pub root: PathBuf,
        pub commits: Vec<String>,
        pub other: String,
    }

    impl Checkout {
        pub fn new(name: &str) -> Self {
            let root =
                std::env::temp_dir().join(format!("dacapo-lab-{name}-{}", std::process::id()));
            fs::create_dir_all(&root).unwrap();
            let mut checkout = Self { root, commits: Vec::new(), other: String::new() };
            checkout.git(&["init", "-q", "-b", "main"]);
            for _ in 0..2 {
                let commit = checkout.commit();
                checkout.commits.push(commit);
            }
            checkout.git(&["checkout", "-q", "-b", "other"]);
            checkout.other = checkout.commit();
            checkout.git(&["checkout", "-q", "main"]);
            for _ in 0..2 {
                let commit = checkout.commit();
                checkout.commits.push(commit);
            }
            checkout
        }

        pub fn history(&self) -> History {
            History::of(&self.root).unwrap()
        }

        fn commit(&self) -> String {
            // Two that are made in a second would else be one.
            let text = format!("{}{}", self.commits.len(), self.other);
            self.git(&["commit", "-q", "--allow-empty", "-m", &text]);
            self.git(&["rev-parse", "--short=12", "HEAD"])
        }

        pub fn git(&self, words: &[&str]) -> String {
            let who = ["-c", "user.name=lab", "-c", "user.email=lab@localhost"];
            let words = [&who[..], words].concat();
            self.history_of_any().git(&words).unwrap_or_else(|| panic!("git {words:?}"))
        }

        fn history_of_any(&self) -> History {
            History { root: self.root.clone() }
        }
    }

    impl Drop for Checkout {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.root);
        }
    }

    #[test]
    fn commits_are_counted_where_one_comes_of_the_other() {
        let checkout = Checkout::new("history");
        let history = checkout.history();
        assert_eq!(history.between(&checkout.commits[0], "HEAD"), Some(3));
        assert_eq!(history.between(&checkout.commits[3], "HEAD"), Some(0));
        assert_eq!(history.between(&checkout.other, "HEAD"), None, "of a branch");
        assert_eq!(history.between("0123456789ab", "HEAD"), None, "of nowhere");
        assert_eq!(history.between("--all", "HEAD"), None);
    }

    #[test]
    fn a_tarball_and_a_shallow_clone_say_that_they_know_nothing() {
        let checkout = Checkout::new("shallow");
        let shallow = checkout.root.join("shallow");
        let from = format!("file://{}", checkout.root.display());
        checkout.git(&["clone", "-q", "--depth", "1", &from, shallow.to_str().unwrap()]);
        assert_eq!(History::of(&shallow).unwrap_err(), "this clone is shallow");
        let nowhere = History::of(Path::new("/")).unwrap_err();
        assert_eq!(nowhere, "this is no checkout of git");
    }
}
