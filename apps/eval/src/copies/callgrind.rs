//! This program under callgrind: the bytes that are copied, and the instructions of the allocator.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The C library copies what is not short by `rep movsb`, of which callgrind counts an instruction
/// for each byte.
const TUNABLES: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,\
    -AVX_Fast_Unaligned_Load,-FSRM,-MOVBE,-BMI2,-RTM\
    :glibc.cpu.x86_rep_movsb_threshold=0x400:glibc.cpu.x86_non_temporal_threshold=0x1000000";

/// Functions that copy: those of the C library, and what copies into shared memory and out of it.
const COPYING: [&str; 3] = ["memcpy", "memmove", "dacapo_sys::memory::copy"];

/// Functions that find memory; what gives it back does nothing where nothing was found.
const ALLOCATING: [&str; 4] = ["malloc", "calloc", "realloc", "memalign"];

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Instructions of functions that copy, which are bytes.
    pub copied: f64,
    /// Instructions of the allocator.
    pub allocator: f64,
}

/// Runs this program under callgrind with these arguments.
///
/// # Errors
/// valgrind is not there, or the program failed; what it said.
pub fn count(args: &[&str]) -> Result<Counts, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let file = OutFile::new();
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--quiet"]);
    command.arg(format!("--callgrind-out-file={}", file.0.display()));
    command.arg(own).args(args).env("GLIBC_TUNABLES", TUNABLES);
    checked(command.output())?;
    let mut command = Command::new("callgrind_annotate");
    command.args(["--threshold=100", "--auto=no"]).arg(&file.0);
    let said = checked(command.output())?;
    let counts = read(&String::from_utf8_lossy(&said.stdout));
    match counts.copied > 0.0 {
        true => Ok(counts),
        false => Err("callgrind names no function that copies in what it says".to_owned()),
    }
}

/// Where callgrind writes; gone when it is.
struct OutFile(PathBuf);

impl OutFile {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("dacapo-copies-{}.callgrind", std::process::id())))
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn checked(output: std::io::Result<Output>) -> Result<Output, String> {
    let missing = "scripts/setup.sh test installs valgrind";
    let output = output.map_err(|error| format!("valgrind cannot be run: {error}; {missing}"))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

/// Sums up what `callgrind_annotate` lists, a function a line:
/// `1,234 (5.6%)  FILE:FUNCTION [OBJECT]`.
fn read(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines() {
        let Some((number, rest)) = line.trim_start().split_once(" (") else { continue };
        let Ok(number) = number.replace(',', "").parse::<f64>() else { continue };
        let Some((_, place)) = rest.split_once("%)") else { continue };
        let function = place.trim().split(" [").next().unwrap_or_default();
        let function = function.rsplit('/').next().unwrap_or_default();
        let is_one_of = |names: &[&str]| names.iter().any(|name| function.contains(name));
        if is_one_of(&COPYING) {
            counts.copied += number;
        } else if is_one_of(&ALLOCATING) {
            counts.allocator += number;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_copy_and_that_allocate_are_summed() {
        let text = "\
Profile data file 'x' (creator: callgrind-3.19.0)
--------------------------------------------------------------------------------
Ir
--------------------------------------------------------------------------------
1,234,567 (100.0%)  PROGRAM TOTALS
  900,000 (72.90%)  ./string/memmove-vec.S:__memcpy_sse2_unaligned [/lib/libc.so.6]
    1,000 ( 0.10%)  ???:memmove [/malloc/program]
  200,500 (16.20%)  ./malloc/malloc.c:_int_malloc [/lib/libc.so.6]
      500 ( 0.04%)  ./malloc/malloc.c:malloc'2 [/lib/libc.so.6]
    9,000 ( 0.70%)  src/lib.rs:dacapo::run [/malloc/program]
";
        assert_eq!(read(text), Counts { copied: 901_000.0, allocator: 201_000.0 });
    }
}
