//! The commands of the harness: `list`, `run`, `show`, `profile`, `compare`, `history`, `check`.

mod check;
mod compare;
mod history;
mod list;
mod profile;
mod run;
mod show;

pub use check::check;
pub use compare::compare;
pub use history::history;
pub use list::list;
pub use profile::profile;
pub use run::run;
pub use show::show;

use crate::exit::{Exit, Failure};
use crate::store::{self, Run};
use std::path::PathBuf;

/// The root of the checkout.
fn root(what: &str) -> Result<PathBuf, Failure> {
    crate::run::machine::root().map_err(|text| Failure::run_time(what, text))
}

/// A run by its name.
fn find(what: &str, name: &str) -> Result<(PathBuf, Run), Failure> {
    let failed = |text: String| Failure::new(Exit::Failure, what, text);
    let folder = store::find(&root(what)?, name).map_err(failed)?;
    let run = Run::read(&folder).map_err(failed)?;
    Ok((folder, run))
}
