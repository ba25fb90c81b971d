//! [`skip`]: a test that cannot run here says so where it is counted.
//!
//! libtest has no word for "left out": a test that returns early has passed, and what it prints is
//! shown to nobody. So each call adds a line to the file that `DACAPO_SKIPPED` names, which
//! `cargo xtask ci` counts and lists at its end:
//!
//! ```text
//!   crates/sys/tests/tun.rs:21 <tab> packets_go_both_ways <tab> this is not root
//! ```
//!
//! For tests, and for checks that `cargo xtask ci` runs. A line is one write to a file opened for
//! appending, so that those of many processes do not mix.

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::path::Path;
use std::thread;

/// The variable that names the file.
pub const VARIABLE: &str = "DACAPO_SKIPPED";

/// Says that the test of this thread, a check, or a part of it, is left out, and why.
///
/// # Panics
/// When the file that the variable names cannot be written: a skip that is lost would be silent.
#[track_caller]
pub fn skip(why: impl Display) {
    let place = Location::caller();
    let place = format!("{}:{}", place.file(), place.line());
    let thread = thread::current();
    let line = line(&place, thread.name().unwrap_or("?"), &why.to_string());
    println!("skipped: {why}");
    if let Some(path) = env::var_os(VARIABLE) {
        let path = Path::new(&path);
        let written = append(path, &line);
        assert!(written.is_ok(), "{VARIABLE}: {}: {written:?}", path.display());
    }
}

fn line(place: &str, test: &str, why: &str) -> String {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{place}\t{test}\t{why}\n")
}

fn append(path: &Path, line: &str) -> std::io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_one_line_however_its_reason_is_broken() {
        let text = line("a/b.rs:7", "a_test", "no `ip`:\n  not\tfound");
        assert_eq!(text, "a/b.rs:7\ta_test\tno `ip`: not found\n");
    }

    #[test]
    fn lines_are_added_behind_those_that_are_there() {
        let path = env::temp_dir().join(format!("dacapo-skip-{}", std::process::id()));
        append(&path, "1\n").unwrap();
        append(&path, "2\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "1\n2\n");
    }
}
