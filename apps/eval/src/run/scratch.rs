//! [`Scratch`]: a folder in which programs of a run leave things for each other.
//!
//! Invariant: it is deleted with what is in it when the run is over, and by the next one where a
//! run was killed.

use super::machine;
use std::fs;
use std::path::{Path, PathBuf};

const PREFIX: &str = "dacapo-eval-peers-";

/// The folder, in memory where that can be had: Aeron keeps its buffers there.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> Result<Self, String> {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        sweep(&parent);
        let folder = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Deletes what runs left that were killed.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if id.is_some_and(machine::is_gone) {
            // Somebody else's folder stays, as it cannot be deleted.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_left_that_was_killed_goes_and_what_one_uses_stays() {
        let parent = std::env::temp_dir().join(format!("dacapo-scratch-{}", std::process::id()));
        let own = format!("{PREFIX}{}", std::process::id());
        // No process has this number: it is above what the kernel gives.
        let names = [own.as_str(), "dacapo-eval-peers-4999999", "dacapo-eval-peers-x", "other"];
        names.iter().for_each(|name| fs::create_dir_all(parent.join(name)).unwrap());
        sweep(&parent);
        let is_there = names.map(|name| parent.join(name).is_dir());
        fs::remove_dir_all(&parent).unwrap();
        assert_eq!(is_there, [true, false, true, true]);
    }
}
