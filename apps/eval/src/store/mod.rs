//! The store: every run with all its samples, so that each figure can be worked out again.
//!
//! ```text
//!   eval/runs/ID/DATE-COMMIT/   run.json           what ran, where, at which commit, with what
//!                               samples.jsonl.gz   a line for each run of a row
//!   target/eval/ID/...          the same of a tree with changes: to look at, never kept
//!   target/eval/part/ID/        one that is not over: the same command goes on with it
//! ```
//!
//! Invariants: what is in `eval/runs` was made from one commit without changes; a run is moved
//! there whole; a file that is damaged is named and excluded.

pub mod budget;
pub mod histogram;
pub mod part;
mod run;

#[cfg(test)]
pub use run::SAMPLES;
pub use run::{Entry, Header, Run, VERSION, read_header};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where runs are kept, below the root of a checkout.
pub const KEPT: &str = "eval/runs";

/// Where runs of a changed tree lie, and those that are not over.
pub const SCRATCH: &str = "target/eval";

/// The folders of all runs below `place`, oldest first.
///
/// # Errors
/// The folder cannot be read; that there is none is no error.
pub fn folders(place: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for id in entries(place)? {
        if id.file_name().is_some_and(|name| name == "part") || !id.is_dir() {
            continue;
        }
        all.extend(entries(&id)?.into_iter().filter(|run| run.join("run.json").is_file()));
    }
    // Names begin with the date.
    all.sort_by_key(|run| run.file_name().map(ToOwned::to_owned));
    Ok(all)
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    listed.map(|entry| Ok(entry?.path())).collect()
}

/// The folder of a run that is named `ID/DATE-COMMIT`, the end of that, or by its path.
///
/// # Errors
/// Nothing, or more than one, has that name.
pub fn find(root: &Path, name: &str) -> Result<PathBuf, String> {
    let direct = Path::new(name);
    if direct.join("run.json").is_file() {
        return Ok(direct.to_path_buf());
    }
    let mut all = Vec::new();
    // What is kept comes last: it is the last run of an experiment, where there is one.
    for place in [SCRATCH, KEPT] {
        all.extend(folders(&root.join(place)).map_err(|error| format!("{place}: {error}"))?);
    }
    let matching: Vec<&PathBuf> = all.iter().filter(|run| is_named(run, name)).collect();
    match matching.as_slice() {
        [] => Err(format!("there is no run `{name}`; `dacapo eval list` shows them")),
        [run] => Ok((*run).clone()),
        // An experiment by itself: its last run.
        several if several.iter().all(|run| is_of(run, name)) => {
            several.last().map(|run| (*run).clone()).ok_or_else(String::new)
        }
        several => {
            let names: Vec<String> = several.iter().map(|run| short(run)).collect();
            Err(format!("`{name}` is {} runs: {}", names.len(), names.join(", ")))
        }
    }
}

fn is_named(run: &Path, name: &str) -> bool {
    short(run) == name || run.file_name().is_some_and(|it| it == name) || is_of(run, name)
}

fn is_of(run: &Path, id: &str) -> bool {
    run.parent().and_then(Path::file_name).is_some_and(|it| it == id)
}

/// `ID/DATE-COMMIT`.
pub fn short(run: &Path) -> String {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    format!("{}/{}", name(run.parent()), name(Some(run)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_by_experiment_by_name_and_by_path() {
        let root = std::env::temp_dir().join(format!("dacapo-eval-find-{}", std::process::id()));
        for run in [
            "eval/runs/network/2026-01-02-b",
            "eval/runs/network/2026-01-01-a",
            "target/eval/lift/2026-01-03-c+",
            "target/eval/network/2026-01-04-d+",
        ] {
            fs::create_dir_all(root.join(run)).unwrap();
            fs::write(root.join(run).join("run.json"), "{}").unwrap();
        }
        let found = |name: &str| find(&root, name).map(|run| short(&run));
        assert_eq!(found("network").as_deref(), Ok("network/2026-01-02-b"), "the last one");
        assert_eq!(found("network/2026-01-01-a").as_deref(), Ok("network/2026-01-01-a"));
        assert_eq!(found("2026-01-03-c+").as_deref(), Ok("lift/2026-01-03-c+"));
        assert!(found("none").unwrap_err().contains("there is no run `none`"));
        fs::remove_dir_all(&root).unwrap();
    }
}
