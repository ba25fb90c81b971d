//! Rounds: every row once a round, round after round, kept after each; and a run whole in the
//! store.
//!
//! Invariant: whatever the end, no process and no namespace is left, and what was measured is on
//! the disk.

use super::burden::Burden;
use super::lock::{self, Lock};
use super::machine::{self, Tree};
use super::perf;
use super::place::Place;
use super::scratch::Scratch;
use super::stop::Stop;
use crate::exit::{Exit, Failure};
use crate::experiment::{Experiment, Figures, Load, Row, Site};
use crate::output;
use crate::progress::Progress;
use crate::rig::{self, Pass, Rig};
use crate::store::part::Part;
use crate::store::{self, Entry, Header, Run, VERSION};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is asked of a run; what is not said is the experiment's.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// These rows, with their controls.
    pub only: Vec<String>,
    /// How many quiet rounds.
    pub rounds: Option<u32>,
    /// How many with a load.
    pub loaded_rounds: Option<u32>,
    /// How long a row runs.
    pub seconds: Option<f64>,
    /// Both ends where the system puts them.
    pub is_unpinned: bool,
    /// The command that is measured.
    pub dacapo: PathBuf,
    /// Where the programs of peers are.
    pub programs: PathBuf,
    /// Nothing on standard error.
    pub is_quiet: bool,
}

/// The signal that ended a run, or why there is none.
#[derive(Debug)]
pub(super) enum Ended {
    Signal(dacapo_sys::signal::Signal),
    Failure(String),
}

impl From<String> for Ended {
    fn from(text: String) -> Self {
        Self::Failure(text)
    }
}

/// Runs `experiments`, one after the other; where each run is kept, or why it is not there.
///
/// # Errors
/// Another run is under way, the tree is none, or a signal came.
pub fn run(experiments: &[&dyn Experiment], asked: &Asked) -> Result<Vec<Kept>, Failure> {
    let failed = |text: String| Failure::run_time("eval run", text);
    let root = machine::root().map_err(failed)?;
    let ids: Vec<&str> = experiments.iter().map(|it| it.id()).collect();
    let who = format!("`dacapo eval run {}` at {}", ids.join(" "), root.display());
    let _lock = Lock::take(&lock::usual(), &who).map_err(failed)?;
    let stop = Stop::catch().map_err(|error| failed(error.to_string()))?;
    let mut all = Vec::new();
    for experiment in experiments {
        match one(*experiment, asked, &root, &stop) {
            Ok(kept) => all.push(kept),
            Err(Ended::Signal(signal)) => {
                let text = "stopped; what was measured is kept, and the same command goes on";
                output::note(format_args!("dacapo: eval run {}: {text}", experiment.id()));
                return Err(Failure { exit: Exit::Signal(signal), text: String::new() });
            }
            Err(Ended::Failure(why)) => all.push(Err((experiment.id(), why))),
        }
    }
    Ok(all)
}

/// Where a run is kept, or which there is none of and why.
pub type Kept = Result<PathBuf, (&'static str, String)>;

fn one(
    experiment: &dyn Experiment,
    asked: &Asked,
    root: &Path,
    stop: &Stop,
) -> Result<Kept, Ended> {
    let id = experiment.id();
    if let Some(why) = lacking(experiment.site()) {
        return Ok(Err((id, why)));
    }
    let tree = machine::tree(root)?;
    let scratch = Scratch::new()?;
    let mut rig = rig(experiment, asked, &scratch, stop)?;
    let mut header = header(experiment, asked, &tree, &rig)?;
    rig.seconds = header.spec.seconds;
    let all_missing = |row: &Row| header.missing.contains_key(&row.name);
    if header.spec.rows.iter().all(all_missing) {
        let why = header.missing.values().next().cloned().unwrap_or_default();
        return Ok(Err((id, why)));
    }
    let mut part = Part::open(&root.join(store::SCRATCH).join("part").join(id), &header)?;
    say_what_is_missing(&header, asked.is_quiet);
    if part.resumed > 0 && !asked.is_quiet {
        output::note(format_args!("{id}: goes on behind {} samples", part.resumed));
    }
    rounds(experiment, &header, &mut rig, &mut part, asked.is_quiet)?;
    header.is_clean = tree.is_clean && machine::tree(root)? == tree;
    let is_kept = header.is_clean && header.is_whole;
    let place = if is_kept { store::KEPT } else { store::SCRATCH };
    let folder = free_folder(&root.join(place).join(id), &header);
    let mut run = Run { header, entries: part.entries.clone() };
    run.write(&folder)?;
    part.remove();
    Ok(Ok(folder))
}

/// Why the machine does not do for an experiment, if it does not.
pub(super) fn lacking(site: Site) -> Option<String> {
    let is_between = matches!(site, Site::Veth | Site::Link);
    if is_between && dacapo_sys::process::uid() != 0 {
        return Some("it makes network namespaces, which needs root".to_owned());
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let text = "it needs a processor for each of two ends";
    (site != Site::Host && processors < 2).then(|| text.to_owned())
}

pub(super) fn rig(
    experiment: &dyn Experiment,
    asked: &Asked,
    scratch: &Scratch,
    stop: &Stop,
) -> Result<Rig, Ended> {
    let site = experiment.site();
    let place = if site == Site::Veth { Place::veth("cubic")? } else { Place::default() };
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(Rig {
        place,
        programs: asked.programs.clone(),
        dacapo: asked.dacapo.clone(),
        own,
        pins: (site != Site::Host && !asked.is_unpinned).then_some([0, 1]),
        folder: scratch.path().to_path_buf(),
        seconds: 1.0,
        stop: stop.clone(),
        port: 0,
        idle: 0.0,
        pass: Pass::Timed,
    })
}

fn header(
    experiment: &dyn Experiment,
    asked: &Asked,
    tree: &Tree,
    rig: &Rig,
) -> Result<Header, Ended> {
    let (all, mut spec) = (experiment.spec(), experiment.spec());
    spec.select(&asked.only)?;
    spec.rounds = asked.rounds.unwrap_or(spec.rounds);
    spec.loaded_rounds = asked.loaded_rounds.unwrap_or(spec.loaded_rounds);
    spec.seconds = asked.seconds.unwrap_or(spec.seconds);
    let missing: BTreeMap<String, String> = spec
        .rows
        .iter()
        .filter_map(|row| Some((row.name.clone(), experiment.missing(row, rig)?)))
        .collect();
    let there = spec.rows.iter().filter(|row| !missing.contains_key(&row.name));
    let versions = there.filter_map(|row| Some((row.name.clone(), experiment.version(row, rig)?)));
    let versions = versions.collect();
    let has_controls = spec.controls.iter().all(|(row, _)| !missing.contains_key(row));
    let is_whole = has_controls
        && spec.rows.len() == all.rows.len()
        && spec.rounds >= all.rounds
        && spec.loaded_rounds >= all.loaded_rounds;
    Ok(Header {
        version: VERSION,
        id: experiment.id().to_owned(),
        date: machine::today(),
        commit: format!("{}{}", tree.commit, if tree.is_clean { "" } else { "+" }),
        commit_count: tree.count,
        is_clean: tree.is_clean,
        is_whole,
        command: rig::shown(&std::env::args().collect::<Vec<_>>()),
        missing,
        versions,
        load_average: machine::load(),
        place: experiment.site().name().to_owned(),
        machine: machine::describe(),
        spec,
        ..Header::default()
    })
}

/// How long it is looked whether the machine has other work, and from how many processors on it
/// has.
const LOOK_S: f64 = 0.5;
const BUSY_MAX: f64 = 0.2;

fn say_what_is_missing(header: &Header, is_quiet: bool) {
    // Not the load average: that of an experiment before this one is still in it.
    let busy = if is_quiet { 0.0 } else { rig::busy_processors(LOOK_S) };
    if busy > BUSY_MAX {
        let text = "processors have other work: quiet rounds will not be quiet";
        output::note(format_args!("{}: {busy:.2} {text}", header.id));
    }
    for (row, why) in header.missing.iter().filter(|_| !is_quiet) {
        output::note(format_args!("{}: {row} is left out: {why}", header.id));
    }
}

/// Loaded and quiet rounds in turns, so that the machine is the same for both.
fn order(rounds: u32, loaded: u32) -> Vec<(u32, Load)> {
    let turns = (1..=rounds.max(loaded)).flat_map(|n| [(n, Load::Quiet), (n, Load::Loaded)]);
    turns.filter(|(n, load)| *n <= if *load == Load::Quiet { rounds } else { loaded }).collect()
}

/// So many rounds have a second pass that counts system calls, and how long it is at most.
const COUNTED_ROUNDS: u32 = 3;
const COUNTED_S: f64 = 0.5;

/// What takes longer than this and cannot be made shorter is not run twice.
const COUNTED_SECONDS_MAX: f64 = 20.0;

/// System calls of a row, from a pass of its own; none where it fails.
fn calls(experiment: &dyn Experiment, row: &Row, rig: &mut Rig) -> Figures {
    let seconds = rig.seconds;
    (rig.seconds, rig.pass) = (seconds.min(COUNTED_S), Pass::Counting);
    let counted = experiment.round(row, rig);
    (rig.seconds, rig.pass) = (seconds, Pass::Timed);
    let all = counted.map(|sample| sample.figures).unwrap_or_default();
    all.into_iter().filter(|(name, _)| name.starts_with("calls")).collect()
}

/// How long the machine is watched before a round, to know what it does by itself.
const WATCHED_S: f64 = 0.5;

fn rounds(
    experiment: &dyn Experiment,
    header: &Header,
    rig: &mut Rig,
    part: &mut Part,
    is_quiet: bool,
) -> Result<(), Ended> {
    let spec = &header.spec;
    let rows: Vec<&Row> =
        spec.rows.iter().filter(|row| !header.missing.contains_key(&row.name)).collect();
    let todo: Vec<(u32, Load)> = order(spec.rounds, spec.loaded_rounds);
    let is_left = |part: &Part, (round, load): (u32, Load)| {
        rows.iter().any(|row| !part.has(round, load, &row.name))
    };
    let mut pace = Pace::new(todo.len() * rows.len(), part.entries.len());
    let mut progress = Progress::new(is_quiet);
    let is_counted = perf::counts_calls() && spec.seconds <= COUNTED_SECONDS_MAX;
    if !is_counted && !is_quiet {
        let text =
            "system calls are not counted: rows are long, or `perf stat` cannot (linux-perf)";
        output::note(format_args!("{}: {text}", header.id));
    }
    for turn in todo {
        if !is_left(part, turn) {
            continue;
        }
        let (round, load) = turn;
        let _burden = match load {
            Load::Loaded => Some(Burden::start(&rig.own, &rig.stop)?),
            Load::Quiet => None,
        };
        rig.idle = rig::busy_processors(WATCHED_S);
        for row in rows.iter().filter(|row| !part.has(round, load, &row.name)).collect::<Vec<_>>() {
            let said = format!("{} round {round} {}  {:<22}", header.id, load.word(), row.name);
            // Elsewhere than on a terminal each row has a line of its own, which says it too.
            if progress.is_terminal() {
                progress.show(&format!("{said} {}", pace.left()));
            }
            let load_average = machine::load();
            let mut outcome = experiment.round(row, rig);
            if let (Ok(sample), true) = (&mut outcome, is_counted && round <= COUNTED_ROUNDS) {
                sample.figures.extend(calls(experiment, row, rig));
            }
            if let Some(signal) = rig.stop.wanted() {
                return Err(Ended::Signal(signal));
            }
            let words = in_words(&outcome);
            part.push(Entry { load_average, ..Entry::of(round, load, &row.name, outcome) })?;
            pace.step();
            progress.clear();
            if !is_quiet {
                output::note(format_args!("{said} {words}  ({})", pace.left()));
            }
        }
    }
    Ok(())
}

fn in_words(outcome: &Result<crate::experiment::Sample, String>) -> String {
    match outcome {
        Ok(sample) => {
            let shown = ["gbit_per_s", "cpu_s_per_gb", "p50_us", "p99_us", "switches_per_message"];
            let of = |name: &&str| Some(format!("{name} {:.3}", sample.figures.get(*name)?));
            let known: Vec<String> = shown.iter().filter_map(of).collect();
            let all = || sample.figures.iter().map(|(name, value)| format!("{name} {value:.3}"));
            if known.is_empty() { all().collect::<Vec<_>>() } else { known }.join("  ")
        }
        Err(failure) => format!("failed: {failure}"),
    }
}

/// How long what is left takes, by what was done since this began.
struct Pace {
    begun: Instant,
    done: usize,
    left: usize,
}

impl Pace {
    fn new(all: usize, done: usize) -> Self {
        Self { begun: Instant::now(), done: 0, left: all.saturating_sub(done) }
    }

    fn step(&mut self) {
        self.done += 1;
        self.left = self.left.saturating_sub(1);
    }

    fn left(&self) -> String {
        let Some(each) = self.begun.elapsed().checked_div(u32::try_from(self.done).unwrap_or(0))
        else {
            return format!("{} to go", self.left);
        };
        let seconds = (each * u32::try_from(self.left).unwrap_or(u32::MAX)).as_secs();
        format!("{} to go, {} min {:02} s", self.left, seconds / 60, seconds % 60)
    }
}

/// The folder of a run; a second of a day and commit gets a number.
fn free_folder(place: &Path, header: &Header) -> PathBuf {
    let name = format!("{}-{}", header.date, header.commit);
    let numbered = (2..).map(|number| place.join(format!("{name}-{number}")));
    std::iter::once(place.join(&name))
        .chain(numbered)
        .find(|folder| !folder.exists())
        .unwrap_or_else(|| place.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_and_quiet_rounds_take_turns() {
        use Load::{Loaded, Quiet};
        assert_eq!(order(2, 2), [(1, Quiet), (1, Loaded), (2, Quiet), (2, Loaded)]);
        assert_eq!(order(3, 1), [(1, Quiet), (1, Loaded), (2, Quiet), (3, Quiet)]);
        assert_eq!(order(0, 1), [(1, Loaded)]);
    }

    #[test]
    fn the_time_left_is_that_of_what_was_done_since() {
        let mut pace = Pace::new(10, 4);
        assert_eq!(pace.left(), "6 to go");
        pace.step();
        assert!(pace.left().starts_with("5 to go, 0 min"), "{}", pace.left());
    }

    #[test]
    fn a_second_run_of_a_day_and_commit_gets_a_number() {
        let place = std::env::temp_dir().join(format!("dacapo-eval-free-{}", std::process::id()));
        let header = Header { date: "d".to_owned(), commit: "c".to_owned(), ..Header::default() };
        assert_eq!(free_folder(&place, &header), place.join("d-c"));
        std::fs::create_dir_all(place.join("d-c")).unwrap();
        assert_eq!(free_folder(&place, &header), place.join("d-c-2"));
        std::fs::remove_dir_all(place).unwrap();
    }
}
