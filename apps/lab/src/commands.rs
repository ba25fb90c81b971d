//! The commands of `dacapo-lab`.
//!
//! ```text
//!   list     rows in words             run      NAME ... : what was seen
//!   faults   all rows, as a page       check    that page beside what was recorded
//!   nightly  rounds, totals
//! ```

use crate::cli::{CheckArgs, Cli, Command, FaultsArgs, ListArgs, NightlyArgs, RunArgs, ScaleArgs};
use crate::document::Document;
use crate::fault::{Fault, Scale};
use crate::faults::{FILES, all, by_id};
use crate::history::History;
use crate::nightly::{Nightly, Plan, State};
use crate::records;
use crate::table::{Origin, Ran, page};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What the runs write themselves.
const KEPT: [&str; 2] = [":(top,exclude)docs/faults.jsonl", ":(top,exclude)docs/faults.md"];

/// The longest nightly run, minutes: a year.
const MINUTES_MAX: f64 = 525_600.0;

/// Runs a command; the exit status.
pub fn run(cli: &Cli) -> ExitCode {
    let done = match &cli.command {
        Command::List(args) => list(args),
        Command::Run(args) => run_rows(args),
        Command::Faults(args) => faults(args),
        Command::Check(args) => check(args),
        Command::Nightly(args) => nightly(args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Standard error that is gone needs no words.
            let _ = writeln!(io::stderr(), "dacapo-lab: {error}");
            ExitCode::from(2)
        }
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        // Who reads no more wants no more.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

fn list(args: &ListArgs) -> io::Result<bool> {
    if args.json {
        let row = |row: &Fault| {
            json!({
                "id": row.id, "fault": row.fault, "injector": row.injector,
                "expected": row.expected, "test": row.test, "bench": row.bench,
            })
        };
        let rows: Vec<Value> = all().map(row).collect();
        print(&Value::from(rows).to_string())?;
        return Ok(true);
    }
    for (title, rows) in FILES {
        print(title)?;
        for row in *rows {
            print(&format!("  {:16} {}\n  {:16}   -> {}", row.id, row.fault, "", row.expected))?;
        }
    }
    Ok(true)
}

fn scale(args: ScaleArgs) -> Scale {
    let scale = if args.short { Scale::short() } else { Scale::full() };
    // One seed that is named is meant alone.
    let seeds = args.seeds.or(args.seed.map(|_| 1));
    scale.with_seeds(seeds).from_seed(args.seed.unwrap_or(0))
}

fn run_row<'a>(row: &'a Fault, scale: &Scale) -> Ran<'a> {
    let begun = Instant::now();
    let result = (row.run)(scale);
    Ran { fault: row, result, seconds: begun.elapsed().as_secs_f64(), commit: None, age: None }
}

/// Runs rows that are given; true when all are as expected.
///
/// # Errors
/// Standard output is gone.
pub fn run_and_tell(rows: &[&Fault], scale: &Scale, json: bool) -> io::Result<bool> {
    run_and_record(rows, scale, json, None)
}

fn run_and_record(
    rows: &[&Fault],
    scale: &Scale,
    json: bool,
    record: Option<&Path>,
) -> io::Result<bool> {
    let mut good = true;
    let record = record.map(|path| Ok::<_, io::Error>((path, clean_commit()?))).transpose()?;
    for row in rows {
        let ran = run_row(row, scale);
        if let Some((path, commit)) = &record {
            records::add(path, &ran, commit)?;
        }
        good &= ran.result.is_ok();
        print(&if json { as_json(&ran).to_string() } else { in_words(&ran) })?;
    }
    Ok(good)
}

fn in_words(ran: &Ran<'_>) -> String {
    let (id, seconds) = (ran.fault.id, ran.seconds);
    match &ran.result {
        Ok(seen) => format!("ok      {id}: {} [{seconds:.1} s]", seen.figure),
        Err(reason) => format!("FAILED  {id}: {reason} [{seconds:.1} s]"),
    }
}

fn as_json(ran: &Ran<'_>) -> Value {
    let (figure, json) = match &ran.result {
        Ok(seen) => (Some(&seen.figure), Some(&seen.json)),
        Err(_) => (None, None),
    };
    json!({
        "id": ran.fault.id, "ok": ran.result.is_ok(), "seconds": ran.seconds,
        "figure": figure, "seen": json, "failed": ran.result.as_ref().err(),
    })
}

fn run_rows(args: &RunArgs) -> io::Result<bool> {
    let mut rows = Vec::new();
    for name in &args.names {
        let row = by_id(name).ok_or_else(|| {
            let text = format!("no fault is called `{name}`; `dacapo-lab list` has the names");
            io::Error::new(io::ErrorKind::NotFound, text)
        })?;
        rows.push(row);
    }
    run_and_record(&rows, &scale(args.scale), args.json, args.record.as_deref())
}

/// What a row gave: from the records, or by running it now.
fn known_or_run<'a>(
    row: &'a Fault,
    known: &[Value],
    scale: &Scale,
    records: Option<&Path>,
) -> io::Result<Ran<'a>> {
    if let Some(ran) = records::of(known, row) {
        return Ok(ran);
    }
    let record = records.map(|path| Ok::<_, io::Error>((path, clean_commit()?))).transpose()?;
    let ran = run_row(row, scale);
    if let Some((path, commit)) = record {
        records::add(path, &ran, &commit)?;
    }
    Ok(ran)
}

fn faults(args: &FaultsArgs) -> io::Result<bool> {
    let scale = scale(args.scale);
    let records = args.records.as_deref();
    let known = records.map_or_else(|| Ok(Vec::new()), records::read)?;
    let mut files = Vec::new();
    for (title, rows) in FILES {
        let mut ran = Vec::new();
        for row in *rows {
            if args.recorded && records::of(&known, row).is_none() {
                continue;
            }
            let row = known_or_run(row, &known, &scale, records)?;
            if args.write.is_some() {
                let _ = writeln!(io::stderr(), "{}", in_words(&row));
            }
            ran.push(row);
        }
        files.push((*title, ran));
    }
    let good = files.iter().flat_map(|(_, ran)| ran).all(|ran| ran.result.is_ok());
    let page = match records {
        Some(path) => recorded_page(path)?,
        None => page(&files, &origin(args)),
    };
    if let Some(path) = &args.write {
        replace(path, &page)?;
    }
    if args.json {
        let rows: Vec<Value> = files.iter().flat_map(|(_, ran)| ran).map(as_json).collect();
        print(&Value::from(rows).to_string())?;
    } else if args.write.is_none() {
        print(&page)?;
    }
    Ok(good)
}

/// The page of all that is in a file of records.
fn recorded_page(path: &Path) -> io::Result<String> {
    let (records, history) = (records::read(path)?, History::of(&root()).ok());
    Ok(Document { records: &records, files: FILES, history: history.as_ref() }.page())
}

fn check(args: &CheckArgs) -> io::Result<bool> {
    let root = root();
    let records = records::read(&root.join("docs/faults.jsonl"))?;
    let page = fs::read_to_string(root.join("docs/faults.md"))?;
    let history = History::of(&root);
    if let Err(why) = &history {
        dacapo_base::skip(format!("commits are not looked at: {why}"));
    }
    let history = history.ok();
    let document = Document { records: &records, files: FILES, history: history.as_ref() };
    let (faults, old) = (document.faults(&page), document.old());
    old.iter().chain(&faults).try_for_each(|text| print(text))?;
    let is_right = faults.is_empty() && (!args.night || old.is_empty());
    if is_right {
        print(&format!("docs/faults.md is what {} records give", records.len()))?;
    }
    Ok(is_right)
}

/// Writes a file whole or not at all.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    fs::write(&part, text)?;
    fs::rename(part, path)
}

/// What git prints for these words, if it can.
fn git(args: &[&str]) -> Option<String> {
    let output = std::process::Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.trim().to_owned())
}

/// The commit that is checked out.
fn commit() -> String {
    let describe = ["describe", "--always", "--dirty=, with changes", "--abbrev=12"];
    git(&describe).unwrap_or_else(|| "unknown".into())
}

/// The commit that is checked out, whatever the runs have written.
fn here() -> String {
    clean_commit().unwrap_or_else(|_| commit())
}

/// The commit that is checked out, for a figure that is kept: nothing but the records and their
/// page may differ from it, else nobody could measure the same again.
fn clean_commit() -> io::Result<String> {
    let status = ["status", "--porcelain", "--untracked-files=no", "--", ":/"];
    let changes = git(&[&status[..], &KEPT].concat());
    let commit = git(&["describe", "--always", "--abbrev=12"]);
    match (changes.as_deref(), commit) {
        (Some(""), Some(commit)) => Ok(commit),
        (Some(changes), Some(_)) => Err(io::Error::other(format!(
            "no row of a tree with changes is kept, and {} differs; commit them, or run without \
             a file of records",
            changes.split_whitespace().nth(1).unwrap_or("a file")
        ))),
        _ => Err(io::Error::other(
            "this is no checkout of git, so nobody could say of which tree a row is; run without \
             a file of records",
        )),
    }
}

fn origin(args: &FaultsArgs) -> Origin {
    let mut command = "dacapo-lab faults".to_owned();
    if args.scale.short {
        command.push_str(" --short");
    }
    if let Some(seeds) = args.scale.seeds {
        command.push_str(&format!(" --seeds {seeds}"));
    }
    if let Some(seed) = args.scale.seed {
        command.push_str(&format!(" --seed {seed}"));
    }
    if let Some(path) = &args.write {
        command.push_str(&format!(" --write {}", path.display()));
    }
    let cpu_count = std::thread::available_parallelism().map_or(1, usize::from);
    let place = format!("at commit {}, on {cpu_count} processors", here());
    Origin { command, place, others: Vec::new() }
}

/// The root of the repository, where cargo is called: above this folder, else where this was built.
fn root() -> PathBuf {
    let is_root = |folder: &Path| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.contains("[workspace]")
    };
    let here = std::env::current_dir().unwrap_or_default();
    let above = here.ancestors().find(|folder| is_root(folder)).map(Path::to_path_buf);
    above.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

fn nightly(args: &NightlyArgs) -> io::Result<bool> {
    let seconds = |value: f64, most: f64| Duration::from_secs_f64(value.clamp(0.0, most));
    if !(args.minutes > 0.0 && args.minutes <= MINUTES_MAX && args.seed_seconds >= 0.0) {
        let text = "--minutes lies above 0 and is at most a year; --seed-seconds is not below 0";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let root = root();
    let folder = args.state.clone().unwrap_or_else(|| root.join("target/nightly"));
    let folder = std::path::absolute(folder)?;
    let plan = Plan {
        time: seconds(args.minutes * 60.0, MINUTES_MAX * 60.0),
        seed_time: seconds(args.seed_seconds, MINUTES_MAX * 60.0),
        fuzz_seconds: args.fuzz_seconds,
        kills: args.kills,
        folder,
        root,
    };
    let quiet = args.json;
    let state = Nightly::new(plan)?.run(|state| {
        if !quiet {
            // Standard output that is gone is told at the end.
            let _ = print(&state.to_string());
        }
    })?;
    tell_state(&state, args.json)?;
    Ok(state.failures.is_empty())
}

fn tell_state(state: &State, json: bool) -> io::Result<()> {
    if json {
        return print(&serde_json::to_string(state)?);
    }
    print(&format!("in all: {state}"))?;
    for failure in &state.failures {
        print(&format!("FAILED  {}\n        repeat: {}", failure.what, failure.repeat))?;
    }
    Ok(())
}
