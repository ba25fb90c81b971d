//! Profiles: a row once more, with samples of where the time of both ends goes.
//!
//! Invariant: nothing that is timed runs in such a pass, and its figures are not looked at.

use super::lock::{self, Lock};
use super::machine;
use super::perf;
use super::place::End;
use super::rounds::{self, Asked, Ended};
use super::scratch::Scratch;
use super::stop::Stop;
use crate::experiment::{Experiment, Row};
use crate::output;
use crate::rig::{Pass, Rig};
use crate::show::flame::Flame;
use std::path::Path;

/// How long a row runs.
const SECONDS: f64 = 2.0;

/// The flame graphs of rows, by their names; what cannot be had is said and left out.
///
/// # Errors
/// Another run is under way, or a signal came.
pub fn profile(
    experiment: &dyn Experiment,
    rows: &[&Row],
    asked: &Asked,
    root: &Path,
) -> Result<Vec<(String, String)>, String> {
    let who = format!("`dacapo eval profile {}` at {}", experiment.id(), root.display());
    let _lock = Lock::take(&lock::usual(), &who)?;
    let stop = Stop::catch().map_err(|error| error.to_string())?;
    perf::look()?;
    if let Some(why) = rounds::lacking(experiment.site()) {
        return Err(why);
    }
    let tree = machine::tree(root)?;
    let scratch = Scratch::new()?;
    let mut rig = rounds::rig(experiment, asked, &scratch, &stop).map_err(|ended| match ended {
        Ended::Failure(why) => why,
        Ended::Signal(_) => "stopped".to_owned(),
    })?;
    (rig.seconds, rig.pass) = (SECONDS, Pass::Profiling);
    let mut all = Vec::new();
    for row in rows {
        let missing = experiment.missing(row, &rig);
        let svg = missing.map_or_else(|| one(experiment, row, &mut rig, &tree.commit), Err);
        if stop.is_wanted() {
            return Err("stopped".to_owned());
        }
        match svg {
            Ok(svg) => all.push((row.name.clone(), svg)),
            Err(why) => output::note(format_args!("{}: {why}", row.name)),
        }
    }
    Ok(all)
}

fn one(
    experiment: &dyn Experiment,
    row: &Row,
    rig: &mut Rig,
    commit: &str,
) -> Result<String, String> {
    let files = [End::Near, End::Far].map(|end| rig.profile_of(end));
    // Of the row before.
    files.iter().for_each(|file| drop(std::fs::remove_file(file)));
    experiment.round(row, rig)?;
    let mut flame = Flame::default();
    for (name, file) in ["near", "far"].into_iter().zip(&files).filter(|(_, file)| file.is_file()) {
        flame.add(name, &perf::stacks(file)?);
    }
    if flame.count() == 0 {
        return Err("perf has taken no samples".to_owned());
    }
    let title = format!("{} {}: {}, both ends, {commit}", experiment.id(), row.name, row.what);
    Ok(flame.svg(&title))
}
