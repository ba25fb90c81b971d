//! The programs of tests that Cargo builds, and how one of them runs.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::skips;

/// A program that is not at its end by then is ended: one that hangs shall not hide the others.
const LONGEST: Duration = Duration::from_secs(900);

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The package it belongs to.
    pub package: String,
    /// Its name in the package: of the library, of a command, or of a file of `tests`.
    pub name: String,
    /// Cargo's words that run it alone.
    pub words: String,
    /// What is started, with its arguments.
    command: Vec<String>,
    /// Where it runs: the folder of its package.
    folder: PathBuf,
}

/// How a program went.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Cargo's words that run it alone.
    pub words: String,
    /// It succeeded.
    pub is_passed: bool,
    /// For how long it ran.
    pub took: Duration,
    /// What it printed.
    pub output: String,
}

impl Program {
    /// Builds what `words`, as of `cargo test`, select; `None` when that failed, as Cargo has said.
    ///
    /// # Errors
    /// Cargo cannot be run, or says something else than what it has built.
    pub fn build(words: &[&str], root: &Path) -> io::Result<Option<Vec<Self>>> {
        let mut cargo = Command::new(cargo());
        cargo.arg("test").args(words).args(["--no-run", "--message-format"]);
        cargo.arg("json-render-diagnostics").current_dir(root).stderr(Stdio::inherit());
        let output = cargo.output()?;
        if !output.status.success() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let messages = text.lines().map(serde_json::from_str);
        let programs = messages.map(|message| Ok(Self::of(&message?, words)));
        Ok(Some(programs.filter_map(io::Result::transpose).collect::<io::Result<_>>()?))
    }

    /// The program that a message of Cargo tells of, if it does.
    fn of(message: &Value, words: &[&str]) -> Option<Self> {
        let executable = message["executable"].as_str()?;
        message["profile"]["test"].as_bool().filter(|is_test| *is_test)?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let package = package(message["package_id"].as_str()?)?;
        let name = message["target"]["name"].as_str()?.to_owned();
        let target = match message["target"]["kind"][0].as_str()? {
            "test" => format!("--test {name}"),
            "bin" => format!("--bin {name}"),
            "example" => format!("--example {name}"),
            "bench" => format!("--bench {name}"),
            _ => "--lib".to_owned(),
        };
        // Another workspace is found by the file that it begins with.
        let at = words.iter().position(|word| *word == "--manifest-path");
        let other = at.and_then(|at| words.get(at + 1));
        let other = other.map_or_else(String::new, |path| format!("--manifest-path {path} "));
        Some(Self {
            words: format!("{other}-p {package} {target}"),
            command: vec![executable.to_owned()],
            folder: folder.to_owned(),
            package,
            name,
        })
    }

    /// The examples in the documentation of all crates, which Cargo builds and runs itself.
    #[must_use]
    pub fn documentation(root: &Path) -> Self {
        let words = "--doc --workspace --locked";
        let line = format!("test {words}");
        let command = line.split(' ').map(str::to_owned);
        Self {
            package: "dacapo".to_owned(),
            name: "doc".to_owned(),
            words: words.to_owned(),
            command: [cargo()].into_iter().chain(command).collect(),
            folder: root.to_owned(),
        }
    }

    /// Runs it to its end, `patient` of all others; what it prints is kept in `logs`.
    ///
    /// # Errors
    /// It cannot be run, or its log not be written.
    pub fn run(&self, is_patient: bool, logs: &Path, skipped: &Path) -> io::Result<Ended> {
        let name = format!("{}-{}.log", self.package, self.name);
        let log = logs.join(name);
        let file = File::create(&log)?;
        let nice: &[&str] = if is_patient { &["nice", "-n", "19"] } else { &[] };
        let mut line = nice.iter().copied().chain(self.command.iter().map(String::as_str));
        let mut command = Command::new(line.next().unwrap_or_default());
        command.args(line).current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.env(skips::VARIABLE, skipped).env("RUSTDOCFLAGS", "-Dwarnings");
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let start = Instant::now();
        let named = |error| io::Error::other(format!("{}: {error}", self.words));
        let status = wait(&mut command.spawn().map_err(named)?, start + LONGEST)?;
        let mut output = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        if status.is_none() {
            output.push_str(&format!("\nended: it ran for {} s\n", LONGEST.as_secs()));
        }
        let is_passed = status.is_some_and(|status| status.success());
        Ok(Ended { words: self.words.clone(), is_passed, took: start.elapsed(), output })
    }
}

/// The name in Cargo's id of a package, which leaves out what its folder is called, too.
fn package(id: &str) -> Option<String> {
    let (place, rest) = id.rsplit_once('#')?;
    let name = rest.split_once('@').map(|(name, _)| name);
    Some(name.or_else(|| place.rsplit('/').next())?.to_owned())
}

/// Waits for a process, and ends it when the time is over.
fn wait(child: &mut Child, end: Instant) -> io::Result<Option<ExitStatus>> {
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// The Cargo that runs this, which says so to what it starts.
fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, is_test: bool) -> Value {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": "path+file:///x/apps/dacapo#dacapo-cli@0.1.0",
            "manifest_path": "/x/apps/dacapo/Cargo.toml",
            "target": { "kind": [kind], "name": "play" },
            "profile": { "test": is_test },
            "executable": "/x/target/debug/deps/play-1",
        })
    }

    fn program(command: &[&str]) -> Program {
        Program {
            package: "test".to_owned(),
            name: format!("{}-{}", std::process::id(), command.len()),
            words: "-p test".to_owned(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            folder: env::temp_dir(),
        }
    }

    #[test]
    fn a_message_of_cargo_is_a_program_when_it_is_one_of_tests() {
        let program = Program::of(&message("test", true), &["--workspace"]).unwrap();
        assert_eq!(program.words, "-p dacapo-cli --test play");
        assert_eq!((program.package.as_str(), program.name.as_str()), ("dacapo-cli", "play"));
        assert_eq!(program.folder, Path::new("/x/apps/dacapo"));
        assert_eq!(Program::of(&message("lib", true), &[]).unwrap().words, "-p dacapo-cli --lib");
        let elsewhere = ["--manifest-path", "exercise/Cargo.toml"];
        let words = Program::of(&message("test", true), &elsewhere).unwrap().words;
        assert_eq!(words, "--manifest-path exercise/Cargo.toml -p dacapo-cli --test play");
        assert_eq!(Program::of(&message("bin", false), &[]), None);
        assert_eq!(Program::of(&serde_json::json!({ "reason": "build-finished" }), &[]), None);
    }

    #[test]
    fn a_package_has_the_name_of_its_folder_where_it_says_no_other() {
        let name = |id| package(id).unwrap();
        assert_eq!(name("path+file:///x/apps/dacapo#dacapo-cli@0.1.0"), "dacapo-cli");
        assert_eq!(name("path+file:///x/crates/dacapo#0.1.0"), "dacapo");
        assert_eq!(package("nothing"), None);
    }

    #[test]
    fn what_a_program_printed_and_how_it_ended_is_told() {
        let logs = env::temp_dir();
        let run = |command: &[&str], is_patient| {
            let ended = program(command).run(is_patient, &logs, Path::new("none")).unwrap();
            fs::remove_file(logs.join(format!("test-{}.log", program(command).name))).unwrap();
            (ended.is_passed, ended.output)
        };
        assert_eq!(run(&["sh", "-c", "echo a; echo b >&2"], true), (true, "a\nb\n".to_owned()));
        assert_eq!(run(&["sh", "-c", "nice", "4"], true), (true, "19\n".to_owned()));
        assert_eq!(run(&["sh", "-c", "exit 3", "4", "5"], false), (false, String::new()));
        let fault = program(&["no-such-program"]).run(false, &logs, Path::new("none"));
        let fault = fault.unwrap_err().to_string();
        fs::remove_file(logs.join(format!("test-{}-1.log", std::process::id()))).unwrap();
        assert!(fault.starts_with("-p test: "), "{fault}");
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert_eq!(wait(&mut child, Instant::now()).unwrap(), None);
        assert!(child.try_wait().unwrap().is_some(), "it is gone");
    }
}
