//! How much the store may hold: what no figure cites goes first.

use super::{folders, short};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A run may have so many bytes.
pub const RUN_LEN_MAX: u64 = 2 << 20;

/// All of them together.
pub const ALL_LEN_MAX: u64 = 40 << 20;

/// Bytes of what is in a folder.
///
/// # Errors
/// It cannot be read.
pub fn len_of(run: &Path) -> io::Result<u64> {
    fs::read_dir(run)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}

/// The runs below `place` that have to go, oldest first, until all fit in `most` bytes; none that
/// is `cited` by a document, by its short name.
///
/// # Errors
/// The store cannot be read, or what is cited alone is too much.
pub fn to_go(place: &Path, most: u64, cited: &[String]) -> io::Result<Vec<PathBuf>> {
    let all = folders(place)?;
    let lens: Vec<u64> = all.iter().map(|run| len_of(run)).collect::<io::Result<_>>()?;
    let mut len: u64 = lens.iter().sum();
    let mut going = Vec::new();
    for (run, own) in all.into_iter().zip(lens) {
        if len <= most {
            break;
        }
        if !cited.contains(&short(&run)) {
            len -= own;
            going.push(run);
        }
    }
    if len > most {
        let text = format!("runs that figures cite have {len} bytes, and {most} are kept at most");
        return Err(io::Error::other(text));
    }
    Ok(going)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_nothing_cites_goes_first() {
        let root = std::env::temp_dir().join(format!("dacapo-eval-budget-{}", std::process::id()));
        for run in ["a/2026-01-01-x", "b/2026-01-02-y", "a/2026-01-03-z"] {
            fs::create_dir_all(root.join(run)).unwrap();
            fs::write(root.join(run).join("run.json"), [b' '; 100]).unwrap();
        }
        let names = |most, cited: &[&str]| {
            let cited: Vec<String> = cited.iter().map(|&it| it.to_owned()).collect();
            to_go(&root, most, &cited)
                .map(|all| all.iter().map(|run| short(run)).collect::<Vec<_>>())
        };
        assert!(names(300, &[]).unwrap().is_empty());
        assert_eq!(names(200, &[]).unwrap(), ["a/2026-01-01-x"]);
        assert_eq!(names(200, &["a/2026-01-01-x"]).unwrap(), ["b/2026-01-02-y"]);
        let all = ["a/2026-01-01-x", "b/2026-01-02-y", "a/2026-01-03-z"];
        assert!(names(200, &all).unwrap_err().to_string().contains("300 bytes"));
        fs::remove_dir_all(&root).unwrap();
    }
}
