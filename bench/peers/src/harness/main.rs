//! The harness: every row once a round, round after round, and what that comes to.
//!
//! ```text
//!   rows x rounds -> process pairs in a place -> samples -> disturbed rounds out -> table, goals
//!                                                   +-----> raw.jsonl, machine.json, summary.json
//! ```
//!
//! A missed goal is a result, and the exit status is 0. It is 1 when something could not be
//! measured at all (no control, no quiet round), 2 for a wrong command line, 130 when stopped.
//! Invariant: whatever the end, no process and no namespace is left.

mod facts;
mod judge;
mod link;
mod measure;
mod options;
mod place;
mod process;
mod rows;
mod table;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use judge::{Outcome, Series};
use measure::{Bench, Sample};
use options::Options;
use peers::Failure;
use place::Place;
use rows::{CONTROLS, Measure, Row};
use serde_json::{Value, json};

static STOPPED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether somebody wants the run to end.
pub fn stopped() -> bool {
    STOPPED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(failure) => {
            eprintln!("peers: {failure}");
            return ExitCode::from(2);
        }
    };
    if options.is_help {
        print!("{}", options::HELP);
        return ExitCode::SUCCESS;
    }
    if options.is_list {
        if options.is_link {
            link::list();
            return ExitCode::SUCCESS;
        }
        rows::ROWS.iter().for_each(|row| println!("{:<18} {}", row.name, row.what));
        return ExitCode::SUCCESS;
    }
    let rows = if options.is_link {
        link::check(&options.only).map(|()| Vec::new())
    } else {
        rows::selected(&options.only)
    };
    let rows = match rows {
        Ok(rows) => rows,
        Err(failure) => {
            eprintln!("peers: {failure}");
            return ExitCode::from(2);
        }
    };
    match listen_for_signals().and_then(|()| measure_all(&options, &rows)) {
        Ok(code) => code,
        Err(_) if stopped() => {
            eprintln!("peers: stopped");
            ExitCode::from(130)
        }
        Err(failure) => {
            eprintln!("peers: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn listen_for_signals() -> Result<(), Failure> {
    let flag = STOPPED.get_or_init(Arc::default);
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(flag))?;
    }
    Ok(())
}

const SCRATCH_PREFIX: &str = "dacapo-peers-";

/// A folder that is deleted with what is in it.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        // In memory where that can be had: Aeron keeps its buffers there.
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        Self::sweep(&parent);
        let folder = parent.join(format!("{SCRATCH_PREFIX}{}", std::process::id()));
        fs::create_dir(&folder)
            .map_err(|error| Failure(format!("{}: {error}", folder.display())))?;
        Ok(Self(folder))
    }

    /// Deletes what runs left that were killed.
    fn sweep(parent: &Path) {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_prefix(SCRATCH_PREFIX));
            let is_number = |id: &&str| id.parse::<u32>().is_ok();
            if id.filter(is_number).is_some_and(|id| !Path::new("/proc").join(id).exists()) {
                // Somebody else's folder stays, as it cannot be deleted.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn measure_all(options: &Options, rows: &[&'static Row]) -> Result<ExitCode, Failure> {
    if options.is_link {
        return link::measure_all(options);
    }
    let place = if options.is_loopback {
        Place::loopback()
    } else if nix::unistd::geteuid().is_root() {
        Place::veth()?
    } else {
        eprintln!("peers: no namespaces without root: over loopback, which is not judged");
        Place::loopback()
    };
    let scratch = Scratch::new()?;
    let mut bench = bench(options, place, &scratch)?;
    for name in CONTROLS {
        let row = rows::row(name).ok_or_else(|| Failure(format!("no row {name}")))?;
        if let Some(why) = bench.missing(row) {
            return Err(Failure(format!("without the control {name} nothing is measured: {why}")));
        }
    }
    let out = out_folder(options)?;
    let before = facts::load();
    let series = run_rounds(&mut bench, rows, options, &out)?;
    let outcome = Outcome::new(series);
    let name = bench.place.name();
    let mut text = table::text(&outcome, name, bench.place.is_veth());
    text += &format!("load of the machine: {before} before, {} after\n", facts::load());
    let is_idle = facts::is_idle(&before);
    if !is_idle {
        text += "the machine had other work when the run began: these figures are no results\n";
    }
    let summary = json!({
        "place": name, "seconds": options.seconds, "pinned": bench.pins, "date": date(),
        "commit": facts::commit(), "load_before": before, "was_idle": is_idle,
        "load_after": facts::load(),
        "command": std::env::args().collect::<Vec<_>>(), "machine": facts::machine(),
        "settings": bench.place.settings(),
        "result": table::json(&outcome, bench.place.is_veth()),
    });
    write(&out.join("summary.json"), &format!("{summary:#}\n"))?;
    write(&out.join("table.txt"), &text)?;
    if options.is_json {
        println!("{summary:#}");
    } else {
        print!("{text}");
    }
    eprintln!("peers: raw data, machine and commands are in {}", out.display());
    if outcome.quiet_count() == 0 {
        eprintln!(
            "peers: no round was quiet: measure again when the machine has nothing else to do"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn bench(options: &Options, place: Place, scratch: &Scratch) -> Result<Bench, Failure> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Bench {
        place,
        programs: programs(options)?,
        dacapo: options.dacapo.clone(),
        pins: (options.is_pinned && processors > 1).then_some([0, 1]),
        folder: scratch.0.clone(),
        seconds: options.seconds,
        port: 21_000,
    })
}

fn programs(options: &Options) -> Result<PathBuf, Failure> {
    if let Some(folder) = &options.programs {
        return Ok(folder.clone());
    }
    let own = std::env::current_exe()?;
    Ok(own.parent().map_or_else(PathBuf::new, Path::to_path_buf))
}

fn date() -> String {
    facts::output("date", &["-u", "+%Y-%m-%d"]).unwrap_or_else(|| "undated".to_owned())
}

/// Makes the folder of this run; a second run of a day and commit gets a number.
fn out_folder(options: &Options) -> Result<PathBuf, Failure> {
    let name = format!("{}-{}", date(), facts::commit().trim_end_matches('+'));
    let usual = Path::new("bench/runs").join(name);
    let wanted = options.out.as_ref().unwrap_or(&usual);
    let mut folder = wanted.clone();
    let mut number = 2;
    while folder.join("raw.jsonl").exists() {
        folder = PathBuf::from(format!("{}-{number}", wanted.display()));
        number += 1;
    }
    fs::create_dir_all(&folder)
        .map_err(|error| Failure(format!("{}: {error}", folder.display())))?;
    Ok(folder)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure(format!("{}: {error}", path.display())))
}

/// Runs every row once a round; a line of raw data per run.
fn run_rounds(
    bench: &mut Bench,
    rows: &[&'static Row],
    options: &Options,
    out: &Path,
) -> Result<Vec<Series>, Failure> {
    let path = out.join("raw.jsonl");
    let mut raw =
        File::create(&path).map_err(|error| Failure(format!("{}: {error}", path.display())))?;
    let mut all: Vec<Series> = rows
        .iter()
        .map(|&row| Series { row, missing: bench.missing(row), samples: Vec::new() })
        .collect();
    for round in 1..=options.rounds {
        for series in all.iter_mut().filter(|series| series.missing.is_none()) {
            let (load, busy) = (facts::load(), facts::busy());
            let run = bench.run(series.row);
            if stopped() {
                return Err(Failure("stopped".to_owned()));
            }
            let line = json!({
                "round": round, "row": series.row.name, "near": run.commands[0],
                "far": run.commands[1], "reports": run.reports, "load": load,
                "machine": { "before": busy, "after": facts::busy() },
                "sample": run.outcome.as_ref().ok().map(sample_json),
                "failure": run.outcome.as_ref().err().map(ToString::to_string),
            });
            writeln!(raw, "{line}")?;
            let said = match &run.outcome {
                Ok(sample) => in_words(series.row, sample),
                Err(failure) => format!("failed: {failure}"),
            };
            eprintln!("round {round}/{}  {:<18} {said}", options.rounds, series.row.name);
            series.samples.push(run.outcome.map_err(|failure| failure.to_string()));
        }
    }
    Ok(all)
}

fn sample_json(sample: &Sample) -> Value {
    json!({
        "gbit_per_s": sample.gbit_per_s, "cpu_s_per_gb": sample.cpu_s_per_gb,
        "loss": sample.loss, "p50_us": sample.p50_us, "p99_us": sample.p99_us,
    })
}

fn in_words(row: &Row, sample: &Sample) -> String {
    let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
    match row.measure {
        Measure::Bulk => format!(
            "{:.2} Gbit/s, {:.3} CPU s/GB, {:.2} % lost",
            or_nan(sample.gbit_per_s),
            or_nan(sample.cpu_s_per_gb),
            or_nan(sample.loss) * 100.0
        ),
        Measure::Latency => {
            format!("p50 {:.2} µs, p99 {:.2} µs", or_nan(sample.p50_us), or_nan(sample.p99_us))
        }
    }
}
