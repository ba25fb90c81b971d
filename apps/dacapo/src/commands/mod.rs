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
use dacapo::{Address, Place};
use std::path::Path;

/// Where who serves listens: at what was said, else at loopback.
fn listens(at: &[Place], port: u16) -> Vec<Address> {
    match at.is_empty() {
        true => dacapo::host::loopback(port),
        false => at.iter().map(|place| place.addr(port).into()).collect(),
    }
}

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
