//! What the tests of session files share: the example files, a file with every key, a validator
//! for the schema and the environment's seeds.

// Each test file uses a part; functions that tests share are not tests to clippy.
#![allow(dead_code, clippy::unwrap_used)]

pub mod pattern;
pub mod toml;
pub mod validator;

use std::path::PathBuf;

/// A session file with every key that there is, one line each.
pub const FULL: &str = include_str!("full.toml");

/// Names and texts of the files of `conf/`, in the order of the names.
pub fn examples() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path.file_name().unwrap().to_string_lossy().into_owned(), text)
    };
    paths.into_iter().map(read).collect()
}
