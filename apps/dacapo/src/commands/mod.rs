//! One file per command.

pub mod bench;
pub mod check;
pub mod control;
pub mod demo;
pub mod doctor;
pub mod explain;
pub mod inspect;
pub mod link;
pub mod ls;
pub mod modules;
pub mod play;
pub mod serve;
pub mod testmovie;
pub mod transfer;
pub mod xtp;

use crate::exit::Exit;
use crate::output;
use dacapo::plan::PlanErrors;
use std::path::Path;

/// Says what is wrong with a session file; one that cannot be read is named once.
fn refuse(command: &str, file: &Path, errors: &PlanErrors) -> Exit {
    match errors {
        PlanErrors::Read { .. } => output::note(format_args!("dacapo: {command}: {errors}")),
        PlanErrors::File(_) => {
            output::note(format_args!("dacapo: {command}: {}:\n{errors}", file.display()));
        }
    }
    Exit::Invalid
}
