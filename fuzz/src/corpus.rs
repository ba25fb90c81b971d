//! The corpora in the tree: `corpus/NAME/*`, small files, one input each.
//!
//! ```text
//!   corpus/wire_record/seed-00      made by our encoders (`dacapo-fuzz-seeds`)
//!                      found-03     by libFuzzer, minimised
//!                      crash-…      an input that failed once, kept for good
//! ```

use crate::Target;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of all corpora of this checkout.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The inputs of a target, with their file names, in the order of the names.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn read(target: &Target) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root().join(target.name))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, fs::read(&path)?));
    }
    files.sort();
    Ok(files)
}

/// Writes the seeds of a target in place of those that are there; returns how many.
///
/// # Errors
/// A folder or file that cannot be read or written.
pub fn write_seeds(target: &Target) -> io::Result<usize> {
    let folder = root().join(target.name);
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("seed-") {
            fs::remove_file(entry.path())?;
        }
    }
    let seeds = (target.seeds)();
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:02}")), seed)?;
    }
    Ok(seeds.len())
}
