//! Making a folder that a user named, and saying what is in the way when it cannot be made.
//!
//! ```text
//!   out/demo/received --> "Not a directory" --> which part is it? --> `out/demo` is a file
//! ```
//!
//! Invariant: nothing that is there is removed or changed.

use std::io;
use std::path::{Path, PathBuf};

/// Makes a folder with all that it lies in; one that is there is left as it is.
///
/// # Errors
/// A sentence with the path, what is wrong with it, and what to do.
pub fn make(dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|error| explain(dir, &error))
}

fn explain(dir: &Path, error: &io::Error) -> String {
    let dir_text = dir.display();
    if let Some(part) = part_that_is_no_folder(dir) {
        let part = part.display();
        return format!(
            "{dir_text}: no folder can be made there, {part} is a file; move that away, or choose \
             another folder"
        );
    }
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "choose a folder that this user may write to"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there, or choose a folder on another file system"
        }
        _ => "choose another folder",
    };
    format!("{dir_text}: no folder can be made there: {error}; {advice}")
}

/// The first part of the path, from its root, that is there and is no folder.
fn part_that_is_no_folder(dir: &Path) -> Option<PathBuf> {
    let mut parts: Vec<&Path> = dir.ancestors().filter(|it| !it.as_os_str().is_empty()).collect();
    parts.reverse();
    parts.into_iter().find(|part| part.exists() && !part.is_dir()).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of one test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("folder-{name}-{}", std::process::id()));
            std::fs::create_dir(&dir).unwrap();
            Self(dir)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_part_that_is_a_file_is_named_wherever_it_is() {
        let scratch = Scratch::new("parts");
        let file = scratch.0.join("file");
        std::fs::write(&file, "kept").unwrap();
        for dir in [file.clone(), file.join("below"), file.join("a/b/c")] {
            let text = make(&dir).unwrap_err();
            assert!(text.starts_with(&format!("{}: ", dir.display())), "{text}");
            assert!(text.contains(&format!("{} is a file; move that away", file.display())));
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    }

    #[test]
    fn a_folder_is_made_once_with_all_that_it_lies_in() {
        let scratch = Scratch::new("made");
        let dir = scratch.0.join("a/b/c");
        for _ in 0..2 {
            assert_eq!(make(&dir), Ok(()));
            assert!(dir.is_dir());
        }
    }

    #[test]
    fn what_else_the_system_says_comes_with_advice() {
        let dir = Path::new("/nowhere-at-all/out");
        for (kind, advice) in [
            (io::ErrorKind::PermissionDenied, "may write to"),
            (io::ErrorKind::ReadOnlyFilesystem, "may write to"),
            (io::ErrorKind::StorageFull, "make room"),
            (io::ErrorKind::InvalidFilename, "choose another folder"),
        ] {
            let text = explain(dir, &kind.into());
            assert!(text.contains("/nowhere-at-all/out") && text.contains(advice), "{text}");
        }
    }
}
