//! The documents that are made of runs: written by `eval check --write`, compared by `eval check`.
//!
//! ```text
//!   eval/runs (the last run of each experiment) -+-> docs/performance.md, docs/charts/*.svg
//!   eval/goals.json (what is aimed at)          -+-> docs/goals.md
//!                                                +-> README.md, between two marks
//! ```
//!
//! Invariant: the same runs give the same bytes; nothing in these documents is written by hand.

mod aims;
mod performance;
mod readme;

use crate::experiment::Load;
use crate::experiments;
use crate::show::chart;
use crate::store::{self, KEPT, Run, short};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// After so many commits a run is old.
pub const OLD_AFTER: u64 = 200;

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
}

/// What the store has: the last whole run of each experiment that can be read, and what is wrong.
#[derive(Default)]
pub struct Kept {
    /// By experiment.
    pub last: BTreeMap<String, KeptRun>,
    /// All of them, for their size and age.
    pub all: Vec<(PathBuf, u64)>,
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
    for folder in folders {
        let name = short(&folder);
        match Run::read(&folder) {
            Ok(run) if !run.header.is_clean => {
                kept.faults.push(format!("{name}: of a tree with changes, which is never kept"));
            }
            Ok(run) => {
                let place = run.place_of_the_machine();
                kept.faults.extend(place.map(|it| format!("{name}: a command has {it}")));
                kept.all.push((folder, run.header.commit_count));
                if run.header.is_whole {
                    kept.last.insert(run.header.id.clone(), KeptRun { name, run });
                }
            }
            Err(error) => kept.faults.push(format!("{error}; the run is excluded")),
        }
    }
    Ok(kept)
}

/// All documents below `root`, by their paths, as they have to be.
///
/// # Errors
/// One cannot be made: what is aimed at cannot be read, or names what is not there.
pub fn all(root: &Path, kept: &Kept) -> Result<BTreeMap<PathBuf, String>, String> {
    let mut pages = BTreeMap::new();
    let aims = aims::read(&root.join(aims::FILE))?;
    pages.insert(PathBuf::from("docs/performance.md"), performance::page(kept)?);
    pages.insert(PathBuf::from("docs/goals.md"), aims::page(&aims, kept)?);
    for it in kept.last.values() {
        let all = charts(&it.run)?;
        pages.extend(all.into_iter().map(|(name, svg)| (Path::new(CHARTS).join(name), svg)));
    }
    let readme = Path::new("README.md");
    let text =
        fs::read_to_string(root.join(readme)).map_err(|error| format!("README.md: {error}"))?;
    pages.insert(readme.to_path_buf(), readme::page(&text, kept)?);
    Ok(pages)
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
