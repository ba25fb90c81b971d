//! [`Rig`]: what an experiment measures with: a place with two ends, programs, processors, and how
//! pairs of processes are run in it.
//!
//! ```text
//!   far end: says that it listens -> near end: reports -> far end: reports
//!   beside them: the machine's busy time, bytes on the wire, what each process took
//! ```
//!
//! Invariant: a figure comes from a report of an end or from the kernel's account, or there is
//! none.

use crate::experiment::Sample;
use crate::run::machine::{Busy, busy};
use crate::run::place::{End, Place};
use crate::run::process::{DIES_WITH_PARENT, Process, Usage};
use crate::run::stop::Stop;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long an end may take beyond what it is told to measure.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ports of runs, one after the other: what the last one left in the kernel does not matter.
const PORTS: std::ops::Range<u16> = 21_000..30_000;

/// What is needed to run any row.
pub struct Rig {
    /// Where the ends are.
    pub place: Place,
    /// Where the programs of peers are.
    pub programs: PathBuf,
    /// The command.
    pub dacapo: PathBuf,
    /// This program.
    pub own: PathBuf,
    /// The processors of the near and the far end.
    pub pins: Option<[usize; 2]>,
    /// Where programs leave things for each other.
    pub folder: PathBuf,
    /// How long a row is measured.
    pub seconds: f64,
    /// Whether the run was stopped.
    pub stop: Stop,
    /// The port of the next run.
    pub port: u16,
    /// How busy the machine is with nothing of ours, in processors.
    pub idle: f64,
    /// What this pass is for.
    pub pass: Pass,
}

/// What a pass over a row is for: times are only taken where nothing slows it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Its times.
    Timed,
    /// How many system calls there are.
    Counting,
    /// Where the time of each end goes ([`Rig::profile_of`]).
    Profiling,
}

/// A pair of commands, and how the far end says that it listens.
pub struct Pair {
    /// Of the end that sends or asks.
    pub near: Vec<String>,
    /// Of the end that listens.
    pub far: Vec<String>,
    /// Whether a line of the far end says so.
    pub is_ready: fn(&str) -> bool,
    /// Whether the near end's report is all that it prints, and the far end has none.
    pub is_near_alone: bool,
}

/// What a pair said and took.
#[derive(Debug, Default)]
pub struct Reports {
    /// The near end's report.
    pub near: Value,
    /// The far end's.
    pub far: Value,
    /// What the near end took, from its beginning to its end.
    pub near_usage: Usage,
    /// The same of the far end.
    pub far_usage: Usage,
    /// Processors that worked, without those that do so when nothing runs, in the middle.
    pub busy_processors: f64,
    /// What the host below took meanwhile, in processors.
    pub stolen_processors: f64,
    /// Bytes on the wire, both ways, of the whole run.
    pub wire_bytes: Option<u64>,
    /// The commands.
    pub commands: Vec<String>,
}

impl Rig {
    /// A port that no run of late has used.
    pub fn next_port(&mut self) -> u16 {
        self.port = if PORTS.contains(&(self.port + 1)) { self.port + 1 } else { PORTS.start };
        self.port
    }

    /// `command`, so that it runs at `end`, on the processor of that end, and not longer than us.
    pub fn words(&self, end: End, command: &[String]) -> Vec<String> {
        let mut words = self.place.words(end);
        words.extend(DIES_WITH_PARENT.map(str::to_owned));
        if let Some([near, far]) = self.pins {
            let processor = if end == End::Near { near } else { far };
            words.extend(["taskset", "-c", &processor.to_string()].map(str::to_owned));
        }
        words.extend_from_slice(command);
        words
    }

    fn start(&self, end: End, words: &[String]) -> Result<Process, String> {
        let (folder, stop) = (&self.folder, &self.stop);
        match self.pass {
            Pass::Timed => Process::start(words, folder, stop),
            Pass::Counting => Process::start_counted(words, folder, stop),
            Pass::Profiling => Process::start_profiled(words, folder, stop, &self.profile_of(end)),
        }
    }

    /// Where the samples of an end are; of a command of this host alone those of the near one.
    pub fn profile_of(&self, end: End) -> PathBuf {
        self.folder.join(if end == End::Near { "near.perf" } else { "far.perf" })
    }

    /// Runs both ends, and waits for their reports.
    ///
    /// # Errors
    /// One is missing, crashed, hung or printed rubbish; what is left of both is ended.
    pub fn pair(&self, pair: &Pair) -> Result<Reports, String> {
        let mut all = self.pairs(std::slice::from_ref(pair))?;
        all.pop().ok_or_else(|| "no pair".to_owned())
    }

    /// Runs several pairs beside each other: all far ends, and once all of them listen all near
    /// ends. What the machine did and what went over the wire is that of all together, in each.
    ///
    /// # Errors
    /// As [`Rig::pair`], of any of them.
    pub fn pairs(&self, pairs: &[Pair]) -> Result<Vec<Reports>, String> {
        let patience = Duration::from_secs_f64(self.seconds * 1.5) + PATIENCE;
        let wire = self.place.wire_bytes();
        let far: Result<Vec<Process>, String> = pairs.iter().map(|it| self.listen(it)).collect();
        let middle = Middle::watch(self.seconds);
        let near = |it: &Pair| self.start(End::Near, &self.words(End::Near, &it.near));
        let near: Result<Vec<Process>, String> = pairs.iter().map(near).collect();
        let mut ends: Vec<(Process, Process)> = near?.into_iter().zip(far?).collect();
        let mut all = Vec::new();
        for (pair, (near, far)) in pairs.iter().zip(&mut ends) {
            let mut reports = Reports { near: report(&near.all(patience)?)?, ..Reports::default() };
            if !pair.is_near_alone {
                reports.far = report(&far.line(PATIENCE, |line| line.starts_with('{'))?)?;
            }
            reports.near_usage = near.usage();
            all.push(reports);
        }
        let (busy, stolen) = middle.end(self.idle);
        for ((reports, pair), (_, far)) in all.iter_mut().zip(pairs).zip(&mut ends) {
            (reports.busy_processors, reports.stolen_processors) = (busy, stolen);
            reports.far_usage = far.end(PATIENCE)?;
            let words = [(End::Near, &pair.near), (End::Far, &pair.far)];
            reports.commands = words.map(|(end, it)| shown(&self.words(end, it))).to_vec();
        }
        let wire_bytes =
            self.place.wire_bytes().zip(wire).map(|(now, then)| now.saturating_sub(then));
        all.iter_mut().for_each(|it| it.wire_bytes = wire_bytes);
        Ok(all)
    }

    /// The far end of a pair, which listens.
    fn listen(&self, pair: &Pair) -> Result<Process, String> {
        let mut end = self.start(End::Far, &self.words(End::Far, &pair.far))?;
        end.line(PATIENCE, pair.is_ready)?;
        Ok(end)
    }

    /// Runs one command of this host to its end; what it said, as JSON.
    ///
    /// # Errors
    /// It is missing, crashed, hung or printed rubbish.
    pub fn alone(&self, command: &[String], patience: Duration) -> Result<(Value, Usage), String> {
        let words: Vec<String> =
            DIES_WITH_PARENT.map(str::to_owned).into_iter().chain(command.to_vec()).collect();
        let mut process = self.start(End::Near, &words)?;
        let text = process.all(patience)?;
        Ok((report(&text)?, process.usage()))
    }
}

impl Reports {
    /// A number of the report at this place of `{"near": …, "far": …}`.
    ///
    /// # Errors
    /// It is not there: the program has changed what it prints.
    pub fn number(&self, path: &str) -> Result<f64, String> {
        let (end, rest) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
        let report = if end == "far" { &self.far } else { &self.near };
        let number = report.pointer(&format!("/{rest}")).and_then(Value::as_f64);
        let number = number.filter(|number| number.is_finite());
        number.ok_or_else(|| format!("there is no {path} in the report"))
    }

    /// What the kernel knows, as figures beside those of the ends; `rate` is in bytes delivered
    /// for each second.
    #[must_use]
    pub fn beside(&self, sample: Sample, rate: Option<f64>) -> Sample {
        let mut sample = sample
            .with("near_memory_mib", self.near_usage.memory_kib as f64 / 1024.0)
            .with("far_memory_mib", self.far_usage.memory_kib as f64 / 1024.0)
            .with(
                "memory_mib",
                (self.near_usage.memory_kib + self.far_usage.memory_kib) as f64 / 1024.0,
            )
            .with("stolen_processors", self.stolen_processors)
            .with("switches", (self.near_usage.switches + self.far_usage.switches) as f64);
        if let Some(rate) = rate.filter(|rate| *rate > 0.0) {
            sample = sample.with("busy_s_per_gb", self.busy_processors / rate * 1e9);
        }
        if let Some(bytes) = self.wire_bytes {
            sample = sample.with("wire_mib", bytes as f64 / f64::from(1 << 20));
        }
        if let Some((near, far)) = self.near_usage.calls.zip(self.far_usage.calls) {
            sample = sample.with("calls", (near + far) as f64);
        }
        sample.commands.clone_from(&self.commands);
        sample.reports = json!({ "near": self.near, "far": self.far });
        // What is kept as a series is not kept twice.
        for name in sample.series.keys() {
            remove(&mut sample.reports, name);
        }
        sample
    }
}

/// A command as it is kept: programs and files by their names, without the folders of this machine;
/// also in what a shell is given to do.
pub fn shown(words: &[String]) -> String {
    let words = words.iter().flat_map(|word| word.split(' '));
    words.map(without_folder).collect::<Vec<_>>().join(" ")
}

/// A word without the folder of what it names, whatever stands before that: `>/tmp/a` is `>a`.
fn without_folder(word: &str) -> String {
    let Some((before, path)) = word.split_once('/') else { return word.to_owned() };
    if !before.chars().last().is_none_or(|it| "'\"<>=&(".contains(it)) {
        return word.to_owned();
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    format!("{before}{name}")
}

/// Takes whatever has this name out of a report.
fn remove(value: &mut Value, name: &str) {
    match value {
        Value::Object(map) => {
            map.remove(name);
            map.values_mut().for_each(|value| remove(value, name));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| remove(value, name)),
        _ => {}
    }
}

/// Rubbish is said back as far as it fits a table.
const SAID_LEN_MAX: usize = 80;

/// What a program printed, as JSON: all of it, or its last line.
fn report(text: &str) -> Result<Value, String> {
    let last = text.lines().rev().find(|line| line.starts_with('{'));
    serde_json::from_str(text)
        .or_else(|error| last.map_or(Err(error), serde_json::from_str))
        .map_err(|error| {
            let said: String = text.trim().chars().take(SAID_LEN_MAX).collect();
            if said.is_empty() {
                "said nothing".to_owned()
            } else {
                format!("said `{said}`: {error}")
            }
        })
}

/// How often the machine is looked at while a pair runs.
const STEP: Duration = Duration::from_millis(100);

/// How busy the machine is in a run: over the busiest stretch of nearly the time that is measured,
/// so that neither how an end begins is in it nor how long it takes to leave.
struct Middle {
    seconds: f64,
    thread: std::thread::JoinHandle<Vec<(f64, f64)>>,
    over: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl Middle {
    fn watch(seconds: f64) -> Self {
        let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_over = std::sync::Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let until = Instant::now() + Duration::from_secs_f64(seconds) + PATIENCE;
            let mut steps = Vec::new();
            let (mut at, mut last) = (Instant::now(), busy());
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) && at < until {
                std::thread::sleep(STEP);
                let (now, next) = (Instant::now(), busy());
                steps.push(step(last, next, (now - at).as_secs_f64()));
                (at, last) = (now, next);
            }
            steps
        });
        Self { seconds, thread, over }
    }

    /// Processors that worked for us, and those that the host below took.
    fn end(self, idle: f64) -> (f64, f64) {
        self.over.store(true, std::sync::atomic::Ordering::Relaxed);
        let steps = self.thread.join().unwrap_or_default();
        let (busy, stolen) = busiest(&steps, self.seconds);
        ((busy - idle).max(0.0), stolen)
    }
}

/// How much of the measured time the stretch is.
const STRETCH: f64 = 0.8;

/// The means over the busiest stretch.
fn busiest(steps: &[(f64, f64)], seconds: f64) -> (f64, f64) {
    let count = (seconds * STRETCH / STEP.as_secs_f64()) as usize;
    let count = count.clamp(1, steps.len().max(1));
    let mean = |of: &[(f64, f64)], pick: fn(&(f64, f64)) -> f64| {
        of.iter().map(pick).sum::<f64>() / count as f64
    };
    let means = steps.windows(count).map(|it| (mean(it, |step| step.0), mean(it, |step| step.1)));
    means.reduce(|a, b| if b.0 > a.0 { b } else { a }).unwrap_or_default()
}

fn step(from: Busy, to: Busy, seconds: f64) -> (f64, f64) {
    ((to.busy_s - from.busy_s) / seconds, (to.stolen_s - from.stolen_s) / seconds)
}

/// How busy the machine is now, in processors, with whatever runs on it.
pub fn busy_processors(seconds: f64) -> f64 {
    let (at, before) = (Instant::now(), busy());
    std::thread::sleep(Duration::from_secs_f64(seconds));
    step(before, busy(), at.elapsed().as_secs_f64()).0
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// One on this host that can run anything.
    pub fn rig() -> Rig {
        Rig {
            place: Place::default(),
            programs: PathBuf::new(),
            dacapo: PathBuf::new(),
            own: PathBuf::new(),
            pins: None,
            folder: std::env::temp_dir(),
            seconds: 0.2,
            stop: Stop::never(),
            port: 29_999,
            idle: 0.0,
            pass: Pass::Timed,
        }
    }

    fn pair(near: &str, far: &str) -> Result<Reports, String> {
        let of = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
        let is_ready = |line: &str| line == "ready";
        rig().pair(&Pair { near: of(near), far: of(far), is_ready, is_near_alone: false })
    }

    #[test]
    fn commands_are_kept_without_folders_and_whole() {
        let words = ["taskset", "/usr/bin/sh", "-c"].map(str::to_owned);
        let script = "/a/b/eval pace /c/film.ts | /a/dacapo send 10.0.0.1:5 - 2>&1 >/dev/shm/out; \
                      srt-live 'srt://10.77.0.2:21000?latency=150' --out=/tmp/a 1/2";
        let kept = shown(&[&words[..], &[script.to_owned()]].concat());
        let expected = "taskset sh -c eval pace film.ts | dacapo send 10.0.0.1:5 - 2>&1 >out; \
                        srt-live 'srt://10.77.0.2:21000?latency=150' --out=a 1/2";
        assert_eq!(kept, expected);
    }

    #[test]
    fn a_pair_reports_and_each_end_is_accounted() {
        let near = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; echo '{\"a\":{\"b\":2}}'";
        let reports = pair(near, "echo ready; echo '{\"c\":1}'").unwrap();
        assert_eq!(reports.number("near/a/b"), Ok(2.0));
        assert_eq!(reports.number("far/c"), Ok(1.0));
        assert!(reports.number("far/d").unwrap_err().contains("far/d"));
        assert!(reports.near_usage.cpu_s > reports.far_usage.cpu_s, "{reports:?}");
        let sample = reports.beside(Sample::default(), Some(1e9));
        assert!(sample.figures.contains_key("busy_s_per_gb") && sample.commands.len() == 2);
    }

    #[test]
    fn an_end_that_is_missing_crashes_or_prints_rubbish_says_so() {
        let error = pair("echo hello", "echo ready; echo '{}'").unwrap_err();
        assert!(error.contains("said `hello`"), "{error}");
        assert_eq!(pair("true", "echo ready; echo '{}'").unwrap_err(), "said nothing");
        let error = pair("echo '{}'", "echo no port >&2; exit 1").unwrap_err();
        assert!(error.contains("no port"), "{error}");
        let error = pair("/no/such/program", "echo ready").unwrap_err();
        assert!(error.contains("not found"), "{error}");
    }

    #[test]
    fn neither_the_beginning_nor_a_long_end_is_in_how_busy_the_machine_was() {
        let mut steps = vec![(0.1, 0.0); 3];
        steps.extend([(1.8, 0.1), (2.0, 0.1), (1.9, 0.1), (1.9, 0.1), (1.9, 0.1)]);
        steps.extend([(0.0, 0.0); 20]);
        let (busy, stolen) = busiest(&steps, 0.5);
        assert!((busy - 1.925).abs() < 1e-9 && (stolen - 0.1).abs() < 1e-9, "{busy} {stolen}");
        assert_eq!(busiest(&[], 1.0), (0.0, 0.0));
        assert_eq!(busiest(&[(1.0, 0.5)], 9.0), (1.0, 0.5));
    }

    #[test]
    fn what_is_kept_as_a_series_is_not_kept_in_the_report_too() {
        let near = json!({ "rounds": [{ "one_way_us": [1, 2], "n": 2 }], "one_way_us": 3 });
        let reports = Reports { near, ..Reports::default() };
        let mut sample = Sample::default();
        sample.series.insert("one_way_us".to_owned(), Default::default());
        let sample = reports.beside(sample, None);
        assert_eq!(sample.reports, json!({ "near": { "rounds": [{ "n": 2 }] }, "far": null }));
    }

    #[test]
    fn a_command_is_kept_without_the_folders_of_the_machine() {
        let words = ["taskset", "-c", "0", "/a/b/peer-plain", "gso", "10.9.0.2:21001", "a/b"];
        let kept = shown(&words.map(str::to_owned));
        assert_eq!(kept, "taskset -c 0 peer-plain gso 10.9.0.2:21001 a/b");
    }

    #[test]
    fn ports_go_round() {
        let mut rig = rig();
        assert_eq!([rig.next_port(), rig.next_port()], [21_000, 21_001]);
    }
}
