//! `profile`: flame graphs of rows, beside the run whose goals they miss.

use super::{find, root};
use crate::cli::ProfileArgs;
use crate::exit::{Exit, Failure};
use crate::experiments;
use crate::outcome::{Outcome, Verdict};
use crate::output;
use crate::program::DACAPO;
use crate::run::{self, Asked, machine};
use crate::store::Run;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Profiles.
///
/// # Errors
/// There is no such run, it is of another commit, or nothing could be profiled.
pub fn profile(args: &ProfileArgs) -> Result<Exit, Failure> {
    let failed = |text: String| Failure::new(Exit::Failure, "eval profile", text);
    let (folder, run) = find("eval profile", &args.run)?;
    let root = root("eval profile")?;
    let tree = machine::tree(&root).map_err(failed)?;
    let folder = match &args.out {
        Some(out) => out.clone(),
        None if tree.is_clean && tree.commit == run.header.commit => folder,
        None => {
            let text = "this tree is another than that of the run: check its commit out, or put \
                        them elsewhere by --out DIR";
            return Err(failed(format!("{}: {text}", args.run)));
        }
    };
    let experiment = experiments::find(&run.header.id).map_err(failed)?;
    let wanted =
        if args.only.is_empty() { missed(&run) } else { args.only.iter().cloned().collect() };
    let spec = experiment.spec();
    let rows = wanted.iter().map(|name| {
        spec.row(name).ok_or_else(|| format!("{}: there is no row `{name}`", run.header.id))
    });
    let rows = rows.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    if rows.is_empty() {
        output::note("no goal of this run is missed; --only names rows");
        return Ok(Exit::Success);
    }
    let asked = Asked {
        dacapo: PathBuf::from(DACAPO.command().get_program()),
        programs: args.programs.clone(),
        ..Asked::default()
    };
    let all = run::profile(experiment, &rows, &asked, &root).map_err(failed)?;
    fs::create_dir_all(&folder).map_err(|e| failed(format!("{}: {e}", folder.display())))?;
    for (row, svg) in &all {
        let path = folder.join(format!("profile-{row}.svg"));
        fs::write(&path, svg).map_err(|error| failed(format!("{}: {error}", path.display())))?;
        output::note(format_args!("{}", path.display()));
    }
    Ok(if all.len() == rows.len() { Exit::Success } else { Exit::Failure })
}

/// The rows of a run that miss a goal.
fn missed(run: &Run) -> BTreeSet<String> {
    let outcomes = Outcome::all(run);
    let goals = &run.header.spec.goals;
    let is_missed = |goal: &&crate::experiment::Goal| {
        outcomes.iter().any(|outcome| matches!(outcome.judge(goal), Verdict::Missed(_)))
    };
    goals.iter().filter(is_missed).map(|goal| goal.row.clone()).collect()
}
