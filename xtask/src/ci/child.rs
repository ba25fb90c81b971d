//! Runs a program as a step: what it prints goes on as it comes.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skips::{self, Skips};

/// Runs a program whose checks say what they leave out; true when it succeeded.
///
/// # Errors
/// The program cannot be run.
pub fn run(program: PathBuf, words: &[&str], root: &Path, skipped: &Skips) -> io::Result<bool> {
    let mut command = Command::new(&program);
    command.args(words).current_dir(root).env("RUSTDOCFLAGS", "-Dwarnings");
    let status = command.env(skips::VARIABLE, skipped.path()).status();
    let named = |error| io::Error::other(format!("{}: {error}", program.display()));
    Ok(status.map_err(named)?.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    #[test]
    fn what_a_program_of_a_step_leaves_out_is_counted() {
        let root = env::temp_dir();
        let path = root.join(format!("dacapo-ci-{}", std::process::id()));
        let skipped = Skips::at(path.clone());
        let says = "printf 'a.rs:1\tcheck\tno history\n' >> \"$DACAPO_SKIPPED\"";
        assert!(run("sh".into(), &["-c", says], &root, &skipped).unwrap());
        let counted = skips::count(&skipped.text().unwrap());
        assert!(!run("false".into(), &[], &root, &skipped).unwrap());
        std::fs::remove_file(path).unwrap();
        assert_eq!(counted, 1);
    }
}
