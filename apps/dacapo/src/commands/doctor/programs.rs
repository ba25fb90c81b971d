//! Programs of others that are found in PATH: players and converters.

use super::finding::Finding;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The findings.
pub fn examine() -> Vec<Finding> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let ffplay = match find("ffplay", &path) {
        Some(found) => Finding::ok("ffplay", found.display().to_string()),
        None => Finding::warn(
            "ffplay",
            "not in PATH",
            "`dacapo play` without --save can only count; Debian has it in the package ffmpeg",
        ),
    };
    let ffmpeg = match find("ffmpeg", &path) {
        Some(found) => Finding::ok("ffmpeg", found.display().to_string()),
        None => Finding::info("ffmpeg", "not in PATH")
            .advise("it converts files of other formats; Debian has it in the package ffmpeg"),
    };
    vec![ffplay, ffmpeg]
}

/// The file that is started by this name. Relative folders do not count: what they mean changes.
fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_absolute_folders_only() {
        let program = std::env::current_exe().unwrap();
        let name = program.file_name().unwrap().to_str().unwrap();
        let folder = program.parent().unwrap();
        let path = std::env::join_paths(["relative".as_ref(), folder]).unwrap();
        assert_eq!(find(name, &path), Some(program.clone()));
        assert_eq!(find(name, "relative".as_ref()), None);
        assert_eq!(find("no-such-program", &path), None);
    }
}
