//! `perf` before a command: it counts its system calls, or takes samples of its stacks.
//!
//! Invariant: nothing that is timed runs behind it.

use super::machine;
use std::path::Path;

/// Why there are no samples where it is missing.
const MISSING: &str = "`perf` is not there, which takes the samples: `scripts/setup.sh test` \
                       installs it (on Debian the package linux-perf)";

/// Whether it is there; why not.
///
/// # Errors
/// It is not.
pub fn look() -> Result<(), String> {
    machine::version("perf", &["--version"]).map(drop).ok_or_else(|| MISSING.to_owned())
}

/// What counts system calls by the kernel's tracepoint; where to, comes behind it. It slows every
/// call down.
const COUNTED: [&str; 5] = ["stat", "-x,", "-e", "raw_syscalls:sys_enter", "--output"];

/// Words before a command whose system calls are counted into `file`.
pub fn counted(file: &Path) -> Vec<String> {
    before(&COUNTED, file)
}

/// Whether system calls can be counted here.
pub fn counts_calls() -> bool {
    let words = [&COUNTED[..], &["/dev/stdout", "--", "true"]].concat();
    machine::output("perf", &words).is_some_and(|text| calls_of(&text).is_some())
}

/// How many calls there were, of what [`counted`] has written.
pub fn calls_of(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.split_once(",,raw_syscalls:")?.0.parse().ok())
}

/// What takes samples by the kernel's clock, 499 a second of processor time, with the whole stack:
/// there are no hardware counters in most machines that are virtual.
const PROFILED: [&str; 9] = [
    "record",
    "--quiet",
    "-e",
    "cpu-clock",
    "-F",
    "499",
    "--call-graph",
    "dwarf,16384",
    "--output",
];

/// Words before a command of whose stacks samples are put into `file`.
pub fn profiled(file: &Path) -> Vec<String> {
    before(&PROFILED, file)
}

/// What [`profiled`] has written, a line for each frame.
///
/// # Errors
/// It cannot be read.
pub fn stacks(file: &Path) -> Result<String, String> {
    let path = file.to_string_lossy();
    let words = ["script", "--no-inline", "-F", "ip,sym", "--input", &*path];
    machine::output("perf", &words).ok_or_else(|| format!("perf cannot read {path}"))
}

fn before(words: &[&str], file: &Path) -> Vec<String> {
    let file = file.to_string_lossy();
    let all = ["perf"].iter().chain(words).copied().chain([&*file, "--"]);
    all.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_has_counted_is_found_in_what_it_writes() {
        let text = "# started on\n\n1234,,raw_syscalls:sys_enter,5,100.00,,\n";
        assert_eq!(calls_of(text), Some(1_234));
        assert_eq!(calls_of("<not supported>,,raw_syscalls:sys_enter,0,0.00,,"), None);
        let words = counted(Path::new("/tmp/a")).join(" ");
        assert_eq!(words, "perf stat -x, -e raw_syscalls:sys_enter --output /tmp/a --");
    }
}
