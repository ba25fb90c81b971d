//! `run`: measures, and keeps what came of it.

use crate::cli::{RunArgs, or_usage};
use crate::exit::{Exit, Failure};
use crate::experiment::Experiment;
use crate::experiments;
use crate::output;
use crate::program::DACAPO;
use crate::run::{self, Asked};
use crate::show;
use crate::store::{self, Run, short};
use std::path::PathBuf;

/// Runs.
///
/// # Errors
/// Another run is under way; nothing could be measured.
pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let failed = |text: String| Failure::new(Exit::Failure, "eval run", text);
    let named = args.ids.iter().flat_map(|id| or_usage(experiments::named(id)));
    let mut chosen: Vec<&dyn Experiment> = Vec::new();
    for experiment in named {
        if chosen.iter().all(|it| it.id() != experiment.id()) {
            chosen.push(experiment);
        }
    }
    for experiment in &chosen {
        or_usage(experiment.spec().select(&args.only));
    }
    let dacapo = args.dacapo.clone();
    let asked = Asked {
        only: args.only.clone(),
        rounds: args.rounds,
        loaded_rounds: args.loaded_rounds,
        seconds: args.seconds.map(|seconds| seconds.as_secs_f64()),
        is_unpinned: args.no_pin,
        dacapo: dacapo.unwrap_or_else(|| PathBuf::from(DACAPO.command().get_program())),
        programs: args.programs.clone(),
        is_quiet: args.quiet,
    };
    let kept = run::run(&chosen, &asked)?;
    let mut is_whole = true;
    let mut values = Vec::new();
    for it in kept {
        match it {
            Ok(folder) => {
                let run = Run::read(&folder).map_err(failed)?;
                match args.json {
                    true => values.push(show::json::of(&run)),
                    false => show::print(&run),
                }
                let is_kept = run.header.is_clean && run.header.is_whole;
                let place = if is_kept { store::KEPT } else { store::SCRATCH };
                output::note(format_args!("it is in {place}/{}", short(&folder)));
            }
            Err((id, why)) => {
                is_whole = false;
                output::note(format_args!("dacapo: eval run {id}: nothing was measured: {why}"));
            }
        }
    }
    if args.json {
        output::json(&serde_json::Value::from(values));
    }
    Ok(if is_whole { Exit::Success } else { Exit::Failure })
}
