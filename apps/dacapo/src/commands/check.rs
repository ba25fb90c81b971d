//! `dacapo check`: a session file in words, or everything that is wrong with it.

use crate::cli::CheckArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use dacapo::plan::Plan;

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    match Plan::load(&args.file) {
        Ok(plan) => {
            output::line(plan.describe().trim_end());
            let warnings = plan.warnings();
            warnings.iter().for_each(|it| output::note(format_args!("dacapo: check: {it}")));
            Ok(Exit::Success)
        }
        Err(errors) => Ok(super::refuse("check", &args.file, &errors)),
    }
}
