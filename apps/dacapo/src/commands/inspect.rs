//! `dacapo inspect`: what is in a media file, and a hash of each stream.

use crate::cli::InspectArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use dacapo::Inspection;
use std::path::Path;

/// Runs the command.
pub fn run(args: &InspectArgs) -> Result<Exit, Failure> {
    let inspection = inspect(&args.file)?;
    if args.json {
        let json = serde_json::to_value(&inspection);
        output::json(&json.map_err(|error| Failure::run_time("inspect", error))?);
    } else {
        output::line(inspection);
    }
    Ok(Exit::Success)
}

/// What is in a file.
///
/// # Errors
/// It is not one that can be read.
pub fn inspect(path: &Path) -> Result<Inspection, Failure> {
    Inspection::of(path).map_err(|error| Failure::new(Exit::Invalid, "inspect", error))
}
