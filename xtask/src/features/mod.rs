//! `cargo xtask features`: what a user can do, beside what was promised once.
//!
//! ```text
//!   dacapo [bench] completions bash -> command, option, value ---+
//!   dacapo modules --json ---> module, transport, parameter -----+--> docs/features.txt
//!   docs/session.schema.json -> key, value ----------------------+      | what is no more
//!   crates/dacapo/src ---------> item, method -------------------+      v
//!                                                      docs/features-lost.txt: why
//! ```
//!
//! The file grows only: what is new is added, and what was lost stays in it, so that nothing that
//! was promised vanishes without a reason. Of the library only what `dacapo` itself shows counts:
//! the other crates are its machinery.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

mod command;
mod lost;
mod public;
mod session;

use crate::tidy::tree::Tree;
use lost::{Lines, Losses};

const LIST: &str = "docs/features.txt";
const LOST: &str = "docs/features-lost.txt";
const SCHEMA: &str = "docs/session.schema.json";

const HELP: &str = "\
What a user can do: commands, options, keys of session files, modules, transports, and the public
items of the library, a line each.

  cargo xtask features           adds what is new to docs/features.txt
  cargo xtask features --check   exit code 1 where something of that file is gone, and
                                 docs/features-lost.txt does not say why; or says so of what is not

  --program FILE                 asks this program, and builds none
  --check --built                asks the one that the tests have built
";

/// Runs the command with the words after `features`; true when nothing is lost without a reason.
///
/// # Errors
/// A word that is none; the program cannot be built or run, or a file not be read or written.
pub fn run(root: &Path, words: &[&str]) -> io::Result<bool> {
    match words {
        [] => add(root, &build(root)?),
        ["--check"] => check(root, &build(root)?),
        ["--check", "--built"] => check(root, &built(root)),
        ["--program", program] => add(root, Path::new(program)),
        ["--check", "--program", program] => check(root, Path::new(program)),
        ["--help" | "-h" | "help"] => {
            print!("{HELP}");
            Ok(true)
        }
        _ => {
            let text =
                format!("unknown words `{}`; see `cargo xtask features --help`", words.join(" "));
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}

fn add(root: &Path, program: &Path) -> io::Result<bool> {
    let mut promised = promised(root)?;
    let before = promised.len();
    promised.extend(present(root, program)?);
    let text: String = promised.iter().map(|line| format!("{line}\n")).collect();
    fs::write(root.join(LIST), text)?;
    println!("{LIST}: {} lines, {} of them new", promised.len(), promised.len() - before);
    Ok(true)
}

fn check(root: &Path, program: &Path) -> io::Result<bool> {
    let (promised, present) = (promised(root)?, present(root, program)?);
    let text = read_or_empty(&root.join(LOST))?;
    let problems = Losses::parse(&text).and_then(|losses| losses.judge(&promised, &present));
    let problems = problems.err().unwrap_or_default();
    problems.iter().for_each(|problem| println!("{LOST}: {problem}"));
    let new = present.difference(&promised).count();
    println!(
        "features: {} problems; {} lines in {LIST}, {} there, {new} not in it yet \
         (`cargo xtask features` adds them)",
        problems.len(),
        promised.len(),
        present.len()
    );
    Ok(problems.is_empty())
}

fn promised(root: &Path) -> io::Result<Lines> {
    let text = read_or_empty(&root.join(LIST))?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn read_or_empty(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        outcome => outcome,
    }
}

fn present(root: &Path, program: &Path) -> io::Result<Lines> {
    let mut lines = command::lines(&says(program, &["completions", "bash"])?, "dacapo", "");
    // `bench` is a program of its own, and `xtp bench` one of what it measures.
    let script = says(program, &["bench", "completions", "bash"])?;
    let measured = command::lines(&script, "dacapo__subcmd__eval", "bench ");
    lines.extend(measured.iter().map(|line| line.replace("bench xtp", "xtp bench")));
    lines.extend(measured);
    lines.extend(session::catalogue(&says(program, &["modules", "--json"])?)?);
    lines.extend(session::keys(&fs::read_to_string(root.join(SCHEMA))?)?);
    lines.extend(public::lines(&Tree::read(root)?));
    Ok(lines)
}

/// Where the tests build the command.
fn built(root: &Path) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    root.join(target).join("debug/dacapo")
}

/// Builds the command; its path.
fn build(root: &Path) -> io::Result<PathBuf> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--locked", "--quiet", "-p", "dacapo-cli", "-p", "dacapo-eval"]);
    if !cargo.current_dir(root).status()?.success() {
        return Err(io::Error::other("the command could not be built"));
    }
    Ok(built(root))
}

fn says(program: &Path, words: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(words).output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let text = format!("{} {}: {error}", program.display(), words.join(" "));
        return Err(io::Error::other(text));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
