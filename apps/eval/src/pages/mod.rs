//! The documents that are made of runs: written by `eval check --write`, compared by `eval check`.
//!
//! ```text
//!   eval/runs (the last run of each experiment) -+-> docs/performance.md, docs/bad-networks.md,
//!                                                |    docs/charts/*.svg
//!   eval/goals.json (what is aimed at)          -+-> docs/goals.md
//!   docs/faults.jsonl (what was seen of faults) -+
//!                                                +-> README.md, between two marks
//! ```
//!
//! Invariant: the same runs give the same bytes; nothing in these documents is written by hand.

mod aims;
mod by_faults;
mod performance;
mod prose;
mod readme;

pub use prose::faults as undated_figures;

use crate::experiment::Load;
use crate::experiments;
use crate::run::machine;
use crate::show::chart;
use crate::store::{self, KEPT, Run, short};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// After so many commits a run is old.
pub const OLD_AFTER: u64 = 200;

/// What stands behind the name of a run that is old. It depends on the commit at which somebody
/// looks, and so is in what is written and not in what is compared.
const OLD: &str = " (old)";

/// Where charts are.
pub const CHARTS: &str = "docs/charts";

/// In the order in which goals are judged.
const LOADS: [Load; 2] = [Load::Loaded, Load::Quiet];

/// A run that is kept.
pub struct KeptRun {
    /// `ID/DATE-COMMIT`.
    pub name: String,
    /// The run.
    pub run: Run,
    /// How many commits there have been since.
    pub age: u64,
    /// Rows of which there is a profile.
    pub profiles: BTreeSet<String>,
}

impl KeptRun {
    /// Whether figures that cite it are old.
    pub fn is_old(&self) -> bool {
        self.age > OLD_AFTER
    }

    /// Its name in documents.
    fn cited(&self) -> String {
        format!("{}{}", self.name, if self.is_old() { OLD } else { "" })
    }
}

/// A document without what depends on when it is looked at.
pub fn undated(text: &str) -> String {
    text.replace(OLD, "")
}

/// What the store has: the last whole run of each experiment that can be read, and what is wrong.
#[derive(Default)]
pub struct Kept {
    /// By experiment.
    pub last: BTreeMap<String, KeptRun>,
    /// All of them, oldest first.
    pub all: Vec<(PathBuf, Run)>,
    /// Files that are damaged, runs of trees with changes, and such.
    pub faults: Vec<String>,
}

/// Reads the store below `root`.
///
/// # Errors
/// It cannot be read at all.
pub fn read(root: &Path) -> Result<Kept, String> {
    let folders = store::folders(&root.join(KEPT)).map_err(|error| format!("{KEPT}: {error}"))?;
    let mut kept = Kept::default();
    let now = machine::tree(root).map_or(0, |tree| tree.count);
    for folder in folders {
        let name = short(&folder);
        match Run::read(&folder) {
            Ok(run) if !run.header.is_clean => {
                kept.faults.push(format!("{name}: of a tree with changes, which is never kept"));
            }
            Ok(run) => {
                let place = run.place_of_the_machine();
                kept.faults.extend(place.map(|it| format!("{name}: a command has {it}")));
                if run.header.is_whole {
                    let age = now.saturating_sub(run.header.commit_count);
                    let it = KeptRun { name, run: run.clone(), age, profiles: profiles(&folder) };
                    kept.last.insert(run.header.id.clone(), it);
                }
                kept.all.push((folder, run));
            }
            Err(error) => kept.faults.push(format!("{error}; the run is excluded")),
        }
    }
    Ok(kept)
}

/// The rows of which there is a flame graph beside a run.
fn profiles(run: &Path) -> BTreeSet<String> {
    let names = fs::read_dir(run).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let row = |name: std::ffi::OsString| {
        Some(name.to_str()?.strip_prefix("profile-")?.strip_suffix(".svg")?.to_owned())
    };
    names.filter_map(row).collect()
}

/// All documents below `root`, by their paths, as they have to be.
///
/// # Errors
/// One cannot be made: what is aimed at cannot be read, or names what is not there.
pub fn all(root: &Path, kept: &Kept) -> Result<BTreeMap<PathBuf, String>, String> {
    let mut pages = BTreeMap::new();
    let aims = aims::read(&root.join(aims::FILE))?;
    pages.insert(PathBuf::from("docs/performance.md"), performance::page(kept)?);
    pages.insert(PathBuf::from("docs/bad-networks.md"), performance::networks(kept)?);
    let faults = by_faults::Faults::read(root)?;
    pages.insert(PathBuf::from("docs/goals.md"), aims::page(&aims, kept, &faults)?);
    for it in kept.last.values() {
        let all = charts(&it.run)?;
        pages.extend(all.into_iter().map(|(name, svg)| (Path::new(CHARTS).join(name), svg)));
    }
    pages.extend(
        histories(kept)?.into_iter().map(|(name, svg)| (Path::new(CHARTS).join(name), svg)),
    );
    let readme = Path::new("README.md");
    let text =
        fs::read_to_string(root.join(readme)).map_err(|error| format!("README.md: {error}"))?;
    pages.insert(readme.to_path_buf(), readme::page(&text, kept)?);
    Ok(pages)
}

/// Rows whose way over commits is shown, where enough runs have them.
const HISTORIES: [(&str, &str, &str); 4] = [
    ("network", "ours-udp", "gbit_per_s"),
    ("network", "ours-tcp", "gbit_per_s"),
    ("network", "ours-udp-64", "p50_us"),
    ("links", "xtp-1", "of_link"),
];

/// So many runs make a history.
const HISTORY_MIN: usize = 3;

/// Charts of [`HISTORIES`], by the names of their files.
///
/// # Errors
/// One cannot be drawn.
fn histories(kept: &Kept) -> Result<Vec<(String, String)>, String> {
    let mut charts = Vec::new();
    for (id, row, figure) in HISTORIES {
        let runs = kept.all.iter().map(|(_, run)| run).filter(|run| run.header.id == id);
        let runs: Vec<&Run> = runs.collect();
        charts.extend(history(&runs, row, figure, HISTORY_MIN)?);
    }
    Ok(charts)
}

/// The chart of a figure of a row over runs, if so many have it.
///
/// # Errors
/// It cannot be drawn.
pub fn history(
    runs: &[&Run],
    row: &str,
    figure: &str,
    least: usize,
) -> Result<Option<(String, String)>, String> {
    let svg = chart::history(runs, row, figure, least)?;
    Ok(svg.map(|svg| (format!("history-{row}-{}.svg", slug(figure)), svg)))
}

/// The charts of a run, by the names of their files.
///
/// # Errors
/// One cannot be drawn.
pub fn charts(run: &Run) -> Result<Vec<(String, String)>, String> {
    let (id, spec) = (&run.header.id, &run.header.spec);
    let mut all = Vec::new();
    let mut is_curve = false;
    for (figure, load) in spec.figures.iter().flat_map(|it| LOADS.map(|load| (it, load))) {
        let svg = chart::curves(run, figure, load)?;
        is_curve |= svg.is_some();
        let name = format!("{id}-{}-{}.svg", slug(&figure.name), load.word());
        all.extend(svg.map(|svg| (name, svg)));
    }
    // A table for each point of a curve needs no chart of its own.
    for group in spec.groups().into_iter().filter(|_| !is_curve) {
        let of = |kind: &str| format!("{id}-{}-{kind}.svg", slug(group));
        for figure in spec.figures_of(group).filter(|figure| figure.is_compared) {
            let svg = chart::ratios(run, group, &figure.name)?;
            all.extend(svg.map(|svg| (of(&slug(&figure.name)), svg)));
        }
        for load in LOADS {
            let svg = chart::latencies(run, group, load)?;
            all.extend(svg.map(|svg| (of(&format!("latency-{}", load.word())), svg)));
        }
    }
    Ok(all)
}

/// A name for a file.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

/// The experiments, in their order, whose last run there is.
fn in_order(kept: &Kept) -> impl Iterator<Item = &KeptRun> {
    experiments::all().into_iter().filter_map(|it| kept.last.get(it.id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_have_letters_digits_and_dashes() {
        assert_eq!(slug("one way, 64 B, block"), "one-way-64-b-block");
        assert_eq!(slug("gbit_per_s"), "gbit-per-s");
    }
}
