//! The nightly run as a process: killed at any moment it goes on from there, stopped it says what
//! it came to, and what failed is an exit status.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_base::Tolerance;
use dacapo_lab::nightly::{Failure, State};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dacapo-lab-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dacapo-lab"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Seeds alone, for as long as it is let.
fn nightly(folder: &Path, seed_seconds: &str) -> Command {
    let state = folder.to_str().unwrap();
    lab(&[
        "nightly",
        "--minutes",
        "10",
        "--state",
        state,
        "--fuzz-seconds",
        "0",
        "--kills",
        "0",
        "--seed-seconds",
        seed_seconds,
    ])
}

/// Waits until more than `count` seeds are noted.
fn wait_for_seeds(folder: &Path, count: u64) -> State {
    let mut patience = Tolerance::new(Instant::now(), LONG);
    loop {
        let state = State::load(folder).unwrap();
        if state.seeds.count > count {
            return state;
        }
        assert!(patience.lasts(Instant::now()), "nothing more in {LONG:?}: {state}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn interrupt(child: Child) -> Output {
    let done = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(done.success());
    child.wait_with_output().unwrap()
}

#[test]
fn who_is_killed_goes_on_where_it_was() {
    let folder = Folder::new("killed");
    let mut count = 0;
    for round in 0..4 {
        let mut child = nightly(&folder.0, "600").spawn().unwrap();
        let state = wait_for_seeds(&folder.0, count);
        // At another moment of its work each time.
        std::thread::sleep(Duration::from_millis(37 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let after = State::load(&folder.0).unwrap();
        assert!(after.seeds.count >= state.seeds.count, "{after} after {state}");
        assert_eq!(after.seeds.next, after.seeds.count, "no seed is run twice or left out");
        count = after.seeds.count;
    }
}

#[test]
fn a_file_that_is_cut_off_is_not_believed_and_the_one_before_is() {
    let folder = Folder::new("cut");
    let mut state = State::default();
    for next in [100, 200] {
        (state.seeds.next, state.seeds.count) = (next, next);
        state.save(&folder.0).unwrap();
    }
    let current = folder.0.join("totals.json");
    let whole = fs::read(&current).unwrap();
    for len in 0..whole.len() - 2 {
        fs::write(&current, &whole[..len]).unwrap();
        assert_eq!(State::load(&folder.0).unwrap().seeds.next, 100, "cut to {len} bytes");
    }
    // Killed between the two renames.
    fs::remove_file(&current).unwrap();
    fs::write(folder.0.join("totals.json.new"), &whole[..40]).unwrap();
    assert_eq!(State::load(&folder.0).unwrap().seeds.next, 100);
    state.save(&folder.0).unwrap();
    assert_eq!(State::load(&folder.0).unwrap(), state);
    for name in ["totals.json", "totals.json.old"] {
        fs::write(folder.0.join(name), b"{").unwrap();
    }
    let error = State::load(&folder.0).unwrap_err().to_string();
    assert!(error.contains("totals.json") && error.contains("remove it"), "{error}");
}

#[test]
fn an_interrupt_ends_it_in_order_with_its_totals() {
    let folder = Folder::new("interrupted");
    let child = nightly(&folder.0, "600").spawn().unwrap();
    wait_for_seeds(&folder.0, 0);
    let output = interrupt(child);
    let text = String::from_utf8(output.stdout).unwrap();
    let state = State::load(&folder.0).unwrap();
    assert!(text.contains("in all: "), "{text}");
    assert!(text.contains(&format!("{} seeds", state.seeds.count)), "{state}: {text}");
    let status = i32::from(!state.failures.is_empty());
    assert_eq!(output.status.code(), Some(status), "{text}");
}

#[test]
fn a_failure_is_kept_with_its_command_and_is_exit_status_1() {
    let folder = Folder::new("failure");
    let mut state = State::default();
    let failure = Failure { what: "seed 7: planted".into(), repeat: "run it again".into() };
    state.fail(failure.clone());
    state.fail(failure);
    assert_eq!(state.failures.len(), 1, "one cause is kept once");
    state.save(&folder.0).unwrap();
    let output = nightly(&folder.0, "0").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("seed 7: planted") && text.contains("repeat: run it again"), "{text}");
}

#[test]
fn commands_that_are_wrong_are_exit_status_2_and_say_what_to_do() {
    for (arguments, hint) in [
        (&["run", "no-such-fault"][..], "dacapo-lab list"),
        (&["nightly", "--minutes", "-3"], "--minutes"),
        (&["run"], "NAME"),
    ] {
        let output = lab(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(hint), "{arguments:?}: {text}");
    }
    let output = lab(&["list", "--json"]).output().unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(rows.as_array().is_some_and(|rows| rows.len() > 40), "{rows}");
}
