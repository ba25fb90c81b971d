//! `show`: the tables of a run, or its charts.

use super::find;
use crate::cli::{Format, ShowArgs};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::pages::charts;
use crate::show;
use std::fs;
use std::path::Path;

/// Shows.
///
/// # Errors
/// There is no such run, or it is damaged; a chart cannot be written.
pub fn show(args: &ShowArgs) -> Result<Exit, Failure> {
    let (_, run) = find("eval show", &args.run)?;
    match args.format {
        _ if args.json => output::json(&show::json::of(&run)),
        Format::Json => output::json(&show::json::of(&run)),
        Format::Table => show::print(&run),
        Format::Csv => {
            let written = output::document(&show::csv(&run));
            written.map_err(|error| Failure::run_time("standard output", error))?;
        }
    }
    if let Some(folder) = &args.charts {
        let failed = |text: String| Failure::run_time("eval show --charts", text);
        let all = charts(&run).map_err(failed)?;
        write_charts(folder, all).map_err(failed)?;
    }
    Ok(Exit::Success)
}

/// Writes charts, by the names of their files.
///
/// # Errors
/// The folder cannot be written.
pub fn write_charts(
    folder: &Path,
    charts: impl IntoIterator<Item = (String, String)>,
) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (name, svg) in charts {
        let path = folder.join(name);
        fs::write(&path, svg).map_err(|error| failed(&path, error))?;
        output::note(format_args!("{}", path.display()));
    }
    Ok(())
}
