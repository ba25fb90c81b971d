//! Runs of the harness as they are typed, in a checkout of their own: kept, stopped, gone on with,
//! refused.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A checkout with nothing in it, whose runs meet no others.
struct Checkout(PathBuf);

impl Checkout {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("dacapo-runs-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("eval")).unwrap();
        fs::write(root.join("eval/goals.json"), "[]\n").unwrap();
        fs::write(root.join(".gitignore"), "/target\n/tmp\n").unwrap();
        fs::create_dir_all(root.join("tmp")).unwrap();
        let checkout = Self(root);
        for words in ["init -q", "add -A", "-c user.name=x -c user.email=x@x commit -qm x"] {
            let mut git = Command::new("git");
            git.args(["-C", checkout.0.to_str().unwrap()]).args(words.split(' '));
            assert!(git.status().unwrap().success(), "git {words}");
        }
        checkout
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dacapo-eval"));
        command.args(words.split(' ')).current_dir(&self.0).env("TMPDIR", self.0.join("tmp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &str) -> (i32, String, String) {
        of(self.command(words).output().unwrap())
    }

    /// The only run below `place`.
    fn only(&self, place: &str) -> PathBuf {
        let mut runs = fs::read_dir(self.0.join(place)).unwrap().map(|it| it.unwrap().path());
        let run = runs.next().unwrap();
        assert!(runs.next().is_none(), "more than one in {place}");
        run
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn of(output: Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Waits until a file has something in it.
fn wait_for(path: &Path, is_there: impl Fn(&str) -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !fs::read_to_string(path).is_ok_and(|text| is_there(&text)) {
        assert!(Instant::now() < until, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn end(child: Child, signal: &str) -> (i32, String, String) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    of(child.wait_with_output().unwrap())
}

#[test]
fn a_part_of_an_experiment_is_shown_and_compared_and_not_kept_nor_is_what_a_changed_tree_gives() {
    let checkout = Checkout::new("kept");
    let (code, out, err) = checkout.run("run lift --rounds 1 --loaded-rounds 1");
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("batched") && out.contains("beside a process that spins"), "{out}");
    assert!(out.contains("a part of the experiment") && err.contains("target/eval/lift"), "{err}");
    let run = checkout.only("target/eval/lift");
    assert!(!checkout.0.join("eval/runs").exists(), "a part is not kept");
    assert!(run.join("run.json").is_file() && run.join("samples.jsonl.gz").is_file());
    let (code, csv, _) = checkout.run("show lift --format csv");
    assert_eq!(
        (code, csv.lines().next().unwrap_or_default().split(',').next()),
        (0, Some("table"))
    );
    let (code, _, err) = checkout.run("history lift");
    assert!(code == 1 && err.contains("no run that is kept has a row `lift`"), "{err}");
    let kept = checkout.0.join("eval/runs/lift").join(run.file_name().unwrap());
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    fs::rename(&run, &kept).unwrap();
    let (code, json, _) = checkout.run("history lift --json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, json.as_array().unwrap().len()), (0, 2), "one of each load");
    let (code, out, _) = checkout.run("compare lift lift");
    assert!(code == 0 && out.contains("after / before") && !out.contains("worse\n"), "{out}");
    // A change.
    fs::write(checkout.0.join("eval/goals.json"), "[ ]\n").unwrap();
    let (code, out, _) = checkout.run("run lift --rounds 1 --loaded-rounds 0 --quiet");
    assert!(code == 0 && out.contains("a tree with changes"), "{out}");
    let scratch = checkout.only("target/eval/lift");
    assert!(scratch.to_str().unwrap().ends_with('+'), "{}", scratch.display());
    assert_eq!(checkout.only("eval/runs/lift"), kept);
}

#[test]
fn a_run_that_is_stopped_goes_on_where_it_was_and_a_second_one_is_refused_meanwhile() {
    let checkout = Checkout::new("stopped");
    let words = "run lift --rounds 3 --loaded-rounds 0";
    let child = checkout.command(words).spawn().unwrap();
    let samples = checkout.0.join("target/eval/part/lift/samples.jsonl");
    wait_for(&samples, |text| text.lines().count() >= 1);
    let (code, _, err) = checkout.run("run transfer");
    assert!(code == 1 && err.contains("another run is under way: `dacapo eval run lift`"), "{err}");
    let (code, _, err) = end(child, "TERM");
    assert!(code == 143 && err.contains("the same command goes on"), "{code}: {err}");
    assert!(!checkout.0.join("target/eval/lift").exists(), "half a run is none");
    let done = fs::read_to_string(&samples).unwrap().lines().count();
    let (code, _, err) = checkout.run(words);
    assert!(code == 0 && err.contains(&format!("goes on behind {done} samples")), "{err}");
    let header = fs::read_to_string(checkout.only("target/eval/lift").join("run.json")).unwrap();
    assert!(header.contains("\"rounds\": 3"));
}

#[test]
fn what_is_not_there_is_said_with_what_to_do() {
    let checkout = Checkout::new("wrong");
    let (code, _, err) = checkout.run("run nothing");
    assert!(code == 2 && err.contains("`nothing` is no experiment; there are network, "), "{err}");
    let (code, _, err) = checkout.run("run lift --only nothing");
    assert!(code == 2 && err.contains("`nothing` is no row; `dacapo eval list`"), "{err}");
    let (code, _, err) = checkout.run("show network");
    assert!(code == 1 && err.contains("there is no run `network`; `dacapo eval list`"), "{err}");
    let (code, out, _) = checkout.run("list");
    assert!(code == 0 && out.contains("network") && out.contains("7 and 7"), "{out}");
    let mut outside = checkout.command("check");
    let (code, _, err) = of(outside.current_dir("/").output().unwrap());
    assert!(code == 1 && err.contains("this needs a checkout of dacapo"), "{err}");
}
