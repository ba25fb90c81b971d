//! `cargo xtask ratchet`: instructions of fixed work, compared with what was recorded.
//!
//! ```text
//!   build crates/netlab/examples/ratchet (`count`) -> valgrind --tool=callgrind, for each work
//!        -> instructions of each function -> the ten hottest and the total
//!        -> beside xtask/instructions.txt: over 3 % more fails; --accept writes it anew
//! ```
//!
//! What is counted: the instructions of a function itself, not of what it calls (that is in the
//! total, and would be counted twice); of all code of the process but the program's own, while the
//! program is in its function `counted`. The compiler decides what a function is: one that is
//! inlined elsewhere takes its cost there. So where a recorded function is gone, more in another
//! one is said and does not fail; the total decides.
//!
//! Invariants: equal sources give equal counts, whatever the machine's load, the environment or the
//! folder; memory is copied by the same code on every processor.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

mod callgrind;
mod compare;
mod record;

use callgrind::Profile;
use record::Record;

/// Where the counts stand.
const PATH: &str = "xtask/instructions.txt";

/// What is counted; the program's words.
const WORKS: [&str; 4] = ["udp-large", "udp-small", "tcp", "control"];

/// The C library chooses how it copies by what the processor has; here it has nothing special.
const TUNABLES: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,\
    -AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-MOVBE,-BMI2,-RTM\
    :glibc.cpu.x86_non_temporal_threshold=0x1000000";

const HELP: &str = "\
Counts the instructions of fixed work (bulk over udp and tcp, control) under valgrind and compares
them with xtask/instructions.txt: the ten hottest functions of each work by their own instructions,
and the total.

  cargo xtask ratchet            compares; over 3 % more fails
  cargo xtask ratchet --accept   writes xtask/instructions.txt anew, for a change that is worth it
  cargo xtask ratchet --json tcp  prints the total of one work, as `dacapo eval` keeps it

The counts are the same in every run of the same sources. To see which lines a work spends them in:
  valgrind --tool=callgrind --toggle-collect='ratchet::counted*' target/count/examples/ratchet tcp
  callgrind_annotate callgrind.out.*
Exit code: 0, 1 when something costs more or valgrind is missing, 2 when a word was wrong or nothing
could be run.
";

/// Runs the command with the words after `ratchet`; true when nothing costs more.
///
/// # Errors
/// A word that is none; cargo, the program or the record cannot be run or read.
pub fn run(root: &Path, words: &[&str]) -> io::Result<bool> {
    match words {
        [] => check(root),
        ["--accept"] => accept(root),
        ["--json", work] if WORKS.contains(work) => print_total(root, work),
        ["--help" | "-h" | "help"] => {
            print!("{HELP}");
            Ok(true)
        }
        _ => {
            let text =
                format!("unknown words `{}`; see `cargo xtask ratchet --help`", words.join(" "));
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}

/// Counts and compares; true when nothing costs more.
///
/// # Errors
/// As [`run`].
fn check(root: &Path) -> io::Result<bool> {
    let Some(tools) = tools() else { return Ok(false) };
    let text = fs::read_to_string(root.join(PATH)).map_err(|error| {
        let text = format!("{PATH}: {error}; write it with `cargo xtask ratchet --accept`");
        io::Error::new(error.kind(), text)
    })?;
    let before = Record::parse(&text)?;
    let comparison = compare::compare(&before, &count(root, &tools)?);
    print!("{}", comparison.text);
    if before.tools != tools {
        println!("note: counted with {tools}, recorded with {}", before.tools);
    }
    if !comparison.is_passed {
        println!(
            "ratchet: more instructions than recorded. Make it cheaper or, if it is worth that, \
             accept it:\n  cargo xtask ratchet --accept"
        );
    }
    Ok(comparison.is_passed)
}

fn accept(root: &Path) -> io::Result<bool> {
    let Some(tools) = tools() else { return Ok(false) };
    let record = count(root, &tools)?;
    fs::write(root.join(PATH), record.to_text())?;
    println!("{PATH} is written; say in the commit what the change is worth");
    Ok(true)
}

/// The total of one work, as JSON.
fn print_total(root: &Path, work: &str) -> io::Result<bool> {
    let Some(tools) = tools() else { return Ok(false) };
    let total = measure(&build(root)?, work)?.total();
    println!("{}", serde_json::json!({ "work": work, "instructions": total, "tools": tools }));
    Ok(true)
}

/// What the counts depend on besides the sources; `None`, said, without valgrind.
fn tools() -> Option<String> {
    let says = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        output.status.success().then(|| text.trim().to_owned())
    };
    let Some(valgrind) = says("valgrind", &["--version"]) else {
        eprintln!(
            "ratchet: valgrind is missing: run `scripts/setup.sh test`, which installs it, then \
             this again"
        );
        return None;
    };
    let rustc = says("rustc", &["--version"]).unwrap_or_default();
    let rustc = rustc.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let libc = says("getconf", &["GNU_LIBC_VERSION"]).unwrap_or_default();
    Some(format!("{rustc}, {valgrind}, {libc}"))
}

fn count(root: &Path, tools: &str) -> io::Result<Record> {
    let folder = build(root)?;
    let mut record = Record::new(tools);
    for work in WORKS {
        record.add(work, &measure(&folder, work)?);
    }
    Ok(record)
}

/// Builds the program; the folder that it is in.
fn build(root: &Path) -> io::Result<PathBuf> {
    let outer = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target_dir = outer.map_or_else(|| root.join("target"), |dir| root.join(dir));
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--profile=count", "--quiet", "--locked", "-p", "dacapo-netlab"]);
    command.args(["--example", "ratchet", "--target-dir"]).arg(&target_dir).current_dir(root);
    if !command.status()?.success() {
        return Err(io::Error::other("the program that is counted could not be built"));
    }
    Ok(target_dir.join("count/examples"))
}

fn measure(folder: &Path, work: &str) -> io::Result<Profile> {
    let file = folder.join(format!("ratchet-{work}.callgrind"));
    // What an earlier run has left is not to be taken for this one's.
    let _ = fs::remove_file(&file);
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--quiet", "--toggle-collect=ratchet::counted*"]);
    command.arg(format!("--callgrind-out-file={}", file.display()));
    command.args(["./ratchet", work]).current_dir(folder).env_clear();
    command.envs(env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("GLIBC_TUNABLES", TUNABLES);
    let output = command.output()?;
    if !output.status.success() {
        let (out, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        return Err(io::Error::other(format!("the work {work} failed: {out}{error}")));
    }
    let profile = Profile::parse(&fs::read_to_string(&file)?, "ratchet")?;
    if profile.total() == 0 {
        let text = format!("nothing of {work} was counted; is the program stripped of symbols?");
        return Err(io::Error::other(text));
    }
    Ok(profile)
}
