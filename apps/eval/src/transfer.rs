//! `dacapo bench transfer`: a file from process to process, by `dacapo send --reliable` and by
//! plain sockets, in turn.
//!
//! ```text
//!   round   dacapo recv <- dacapo send     plain recv <- plain send     dacapo …
//!           seconds at the sender, from the first byte to the last receipt; processor time of both
//! ```

use super::plain;
use crate::cli::BenchTransferArgs;
use crate::exit::{Exit, Failure};
use crate::folder;
use crate::output::{self, Table, line};
use crate::program::DACAPO;
use crate::progress::Progress;
use crate::stats::median_or_0;
use dacapo::Random;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const FAILED: &str = "bench transfer";

/// Runs the command.
pub fn run(args: &BenchTransferArgs) -> Result<Exit, Failure> {
    if let Some(role) = &args.plain {
        return plain::run(role);
    }
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir = parent.join(format!("dacapo-bench-{}", std::process::id()));
    let failed = |error: std::io::Error| Failure::run_time(FAILED, error);
    folder::make(&dir.join("received")).map_err(|text| Failure::run_time(FAILED, text))?;
    let rounds = measure(args, &dir);
    let removed = std::fs::remove_dir_all(&dir);
    let rounds = rounds?;
    removed.map_err(failed)?;
    match args.json {
        true => output::json(&to_json(args, &rounds)),
        false => print(args, &rounds),
    }
    Ok(Exit::Success)
}

/// One transfer.
#[derive(Clone, Copy, Debug)]
struct Run {
    seconds: f64,
    /// Of both ends.
    cpu_seconds: f64,
}

/// A round: the same by both programs.
#[derive(Clone, Copy, Debug)]
struct Round {
    ours: Run,
    plain: Run,
}

fn measure(args: &BenchTransferArgs, dir: &Path) -> Result<Vec<Round>, Failure> {
    let mut progress = Progress::new(args.json);
    let file = dir.join("file");
    write_file(&file, args.size).map_err(|error| Failure::run_time(FAILED, error))?;
    let mut rounds = Vec::new();
    for number in 1..=args.rounds {
        if progress.is_due() {
            progress.show(&format!("round {number} of {}", args.rounds));
        }
        let ours = by_dacapo(&file, dir)?;
        let plain = by_plain(&file, dir)?;
        rounds.push(Round { ours, plain });
    }
    progress.clear();
    Ok(rounds)
}

/// Bytes that no hole and no compression makes cheap.
fn write_file(path: &Path, size: u64) -> std::io::Result<()> {
    let mut random = Random::from_number(1);
    let mut block = vec![0; 1 << 20];
    random.fill(&mut block);
    let mut file = File::create(path)?;
    let (mut left, mut number) = (size, 0_u64);
    while left > 0 {
        // Each block differs from the others in its first bytes.
        if let Some(head) = block.first_chunk_mut::<8>() {
            *head = number.to_be_bytes();
        }
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        file.write_all(block.get(..now).unwrap_or_default())?;
        (left, number) = (left - now as u64, number + 1);
    }
    Ok(())
}

/// A program and what it prints.
struct Program {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Program {
    /// The `dacapo` of this build, or else the one that is installed.
    fn dacapo(args: &[&str]) -> Result<Self, Failure> {
        let mut command = DACAPO.command();
        let child = Self::spawn(command.args(args));
        Self::of(child.map_err(|error| DACAPO.cannot_start(&command, &error))?)
    }

    /// This program, with the part of a program of plain sockets.
    fn plain(role: &str) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::run_time(FAILED, error);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        let child = Self::spawn(command.args(["transfer", "--plain", role]));
        Self::of(child.map_err(failed)?)
    }

    fn spawn(command: &mut Command) -> std::io::Result<Child> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
    }

    fn of(mut child: Child) -> Result<Self, Failure> {
        let out = child.stdout.take();
        let out = out.ok_or_else(|| Failure::run_time(FAILED, "a program without output"))?;
        Ok(Self { child, out: BufReader::new(out) })
    }

    /// The next line, as JSON.
    fn line(&mut self) -> Result<Value, Failure> {
        let mut text = String::new();
        self.out.read_line(&mut text).map_err(|error| Failure::run_time(FAILED, error))?;
        serde_json::from_str(&text)
            .map_err(|error| Failure::run_time(FAILED, format!("{text:?}: {error}")))
    }

    /// The rest, as JSON, and its end.
    fn rest(mut self) -> Result<Value, Failure> {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.out, &mut text)
            .map_err(|error| Failure::run_time(FAILED, error))?;
        let ended = self.child.wait().map_err(|error| Failure::run_time(FAILED, error))?;
        if !ended.success() {
            return Err(Failure::run_time(FAILED, format!("a program ended with {ended}")));
        }
        let last = text.trim();
        serde_json::from_str(last)
            .map_err(|error| Failure::run_time(FAILED, format!("{last:?}: {error}")))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended, unless something failed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number(value: &Value, key: &str) -> Result<f64, Failure> {
    let found = key.split('.').try_fold(value, |value, key| value.get(key));
    let found = found.and_then(Value::as_f64);
    found.ok_or_else(|| Failure::run_time(FAILED, format!("no {key} in {value}")))
}

fn by_dacapo(file: &Path, dir: &Path) -> Result<Run, Failure> {
    let received = dir.join("received");
    let (out, file) = (received.display().to_string(), file.display().to_string());
    // Where the path is said it goes by sockets too, and not through memory.
    let args = ["recv", "--json", "--port", "0", "--force", "--path", "loopback", "--out", &out];
    let mut recv = Program::dacapo(&args)?;
    let listening = recv.line()?;
    let addr = listening.pointer("/addresses/0").and_then(Value::as_str).map(str::to_owned);
    let addr = addr.ok_or_else(|| Failure::run_time(FAILED, "recv listens nowhere"))?;
    let sent = Program::dacapo(&["send", "--reliable", "--json", &addr, &file])?.rest()?;
    recv.line()?;
    let received = recv.rest()?;
    let cpu = number(&sent, "transfer.cpu_seconds")? + number(&received, "transfer.cpu_seconds")?;
    Ok(Run { seconds: number(&sent, "transfer.seconds")?, cpu_seconds: cpu })
}

fn by_plain(file: &Path, dir: &Path) -> Result<Run, Failure> {
    let target: PathBuf = dir.join("received").join("plain");
    let role = format!("recv:{}", target.display());
    let mut recv = Program::plain(&role)?;
    let listening = recv.line()?;
    let addr = listening.get("address").and_then(Value::as_str).unwrap_or_default().to_owned();
    let role = format!("send:{addr}:{}", file.display());
    let sent = Program::plain(&role)?.rest()?;
    let received = recv.rest()?;
    let cpu = number(&sent, "cpu_seconds")? + number(&received, "cpu_seconds")?;
    Ok(Run { seconds: number(&sent, "seconds")?, cpu_seconds: cpu })
}

/// Gbit/s and processor seconds per GB.
fn figures(args: &BenchTransferArgs, run: Run) -> (f64, f64) {
    let gbit_per_s = args.size as f64 * 8e-9 / run.seconds.max(1e-9);
    (gbit_per_s, run.cpu_seconds / (args.size as f64 * 1e-9))
}

/// The medians of one program over all rounds, and the median of the ratio to the plain one.
struct Medians {
    ours: (f64, f64),
    plain: (f64, f64),
    rate_ratio: f64,
    cpu_ratio: f64,
}

fn medians(args: &BenchTransferArgs, rounds: &[Round]) -> Medians {
    let of =
        |pick: &dyn Fn(&Round) -> f64| median_or_0(&rounds.iter().map(pick).collect::<Vec<f64>>());
    Medians {
        ours: (of(&|it| figures(args, it.ours).0), of(&|it| figures(args, it.ours).1)),
        plain: (of(&|it| figures(args, it.plain).0), of(&|it| figures(args, it.plain).1)),
        rate_ratio: of(&|it| it.plain.seconds / it.ours.seconds.max(1e-9)),
        cpu_ratio: of(&|it| it.ours.cpu_seconds / it.plain.cpu_seconds.max(1e-9)),
    }
}

fn print(args: &BenchTransferArgs, rounds: &[Round]) {
    let mut table = Table::new(&["round", "send Gbit/s", "CPU s/GB", "plain Gbit/s", "CPU s/GB"]);
    for (at, round) in rounds.iter().enumerate() {
        let (ours, plain) = (figures(args, round.ours), figures(args, round.plain));
        table.row(row((at + 1).to_string(), ours, plain));
    }
    let all = medians(args, rounds);
    table.row(row("median".to_owned(), all.ours, all.plain));
    table.print();
    line(format_args!(
        "\nsend / plain: {:.2} x the rate, {:.2} x the processor time per byte (medians of the \
         ratios in each round).",
        all.rate_ratio, all.cpu_ratio
    ));
    line("CPU: both ends, user and kernel; both programs read, hash (SHA-256) and write the file.");
}

fn row(name: String, ours: (f64, f64), plain: (f64, f64)) -> Vec<crate::output::Cell> {
    let figure = |value: f64| format!("{value:.2}").into();
    vec![name.into(), figure(ours.0), figure(ours.1), figure(plain.0), figure(plain.1)]
}

fn to_json(args: &BenchTransferArgs, rounds: &[Round]) -> Value {
    let run = |run: Run| {
        let (rate, cpu) = figures(args, run);
        json!({
            "seconds": run.seconds,
            "cpu_seconds": run.cpu_seconds,
            "gbit_per_s": rate,
            "cpu_s_per_gb": cpu,
        })
    };
    let all = medians(args, rounds);
    let rounds: Vec<Value> =
        rounds.iter().map(|it| json!({ "send": run(it.ours), "plain": run(it.plain) })).collect();
    json!({
        "bytes": args.size,
        "rounds": rounds,
        "median": {
            "send": { "gbit_per_s": all.ours.0, "cpu_s_per_gb": all.ours.1 },
            "plain": { "gbit_per_s": all.plain.0, "cpu_s_per_gb": all.plain.1 },
            "rate_ratio": all.rate_ratio,
            "cpu_ratio": all.cpu_ratio,
        },
    })
}
