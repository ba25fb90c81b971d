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

/// The letters of `2026-11-28`.
const DAY_LEN: usize = 10;

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
    all.sort_by_cached_key(|run| place_in_time(run));
    Ok(all)
}

/// What is less for an older run: its day, with which its name begins; of one day, how many commits
/// its tree had, then its name. One that is damaged is the oldest of its day.
fn place_in_time(run: &Path) -> (String, u64, String) {
    let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let day = name.chars().take(DAY_LEN).collect();
    let commit_count = read_header(&run.join("run.json")).map_or(0, |header| header.commit_count);
    (day, commit_count, name)
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

    #[test]
    fn of_one_day_the_run_with_more_commits_is_the_later_one() {
        let root = std::env::temp_dir().join(format!("dacapo-eval-day-{}", std::process::id()));
        let runs = [("2026-01-02-8a", 7), ("2026-01-02-2b", 9), ("2026-01-01-9c", 11)];
        for (name, commit_count) in runs {
            let folder = root.join("eval/runs/setup").join(name);
            fs::create_dir_all(&folder).unwrap();
            let header = Header { commit_count, ..Header::default() };
            let text = serde_json::to_string(&header).unwrap();
            fs::write(folder.join("run.json"), text).unwrap();
        }
        let found = folders(&root.join("eval/runs")).unwrap();
        let names: Vec<_> = found.iter().filter_map(|it| it.file_name()?.to_str()).collect();
        assert_eq!(names, ["2026-01-01-9c", "2026-01-02-8a", "2026-01-02-2b"]);
        fs::remove_dir_all(&root).unwrap();
    }
}
