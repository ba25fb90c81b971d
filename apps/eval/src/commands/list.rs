//! `list`: experiments, their rows, and the runs that there are.

use crate::cli::{ListArgs, or_usage};
use crate::exit::Exit;
use crate::experiments;
use crate::output::{self, Cell, Ink, Table};
use crate::store::{self, Header, KEPT, SCRATCH, short};
use serde_json::json;

/// Lists.
pub fn list(args: &ListArgs) -> Exit {
    match &args.id {
        Some(id) => rows(id, args.json),
        None => all(args.json),
    }
    Exit::Success
}

fn rows(id: &str, is_json: bool) {
    let spec = or_usage(experiments::find(id)).spec();
    if is_json {
        output::json(&json!(spec));
        return;
    }
    let mut table = Table::new(&["row", "what", "table", "beside"]);
    for row in &spec.rows {
        let control = row.control.clone().unwrap_or_default();
        table.row(vec![
            row.name.as_str().into(),
            row.what.as_str().into(),
            row.group.as_str().into(),
            control.as_str().into(),
        ]);
    }
    table.print();
}

fn all(is_json: bool) {
    let runs = headers();
    if is_json {
        let experiments: Vec<_> = experiments::all()
            .iter()
            .map(|it| json!({ "id": it.id(), "what": it.what(), "rows": it.spec().rows.len() }))
            .collect();
        let runs = runs.iter().map(|(name, header)| {
            let Header { commit, date, is_clean, .. } = header;
            json!({ "run": name, "commit": commit, "date": date, "is_clean": is_clean })
        });
        output::json(&json!({ "experiments": experiments, "runs": runs.collect::<Vec<_>>() }));
        return;
    }
    let mut table = Table::new(&["experiment", "what", "rows", "quiet and loaded rounds"]);
    for experiment in experiments::all() {
        let spec = experiment.spec();
        table.row(vec![
            experiment.id().into(),
            experiment.what().into(),
            (spec.rows.len() as u64).into(),
            format!("{} and {}", spec.rounds, spec.loaded_rounds).as_str().into(),
        ]);
    }
    table.print();
    if runs.is_empty() {
        return;
    }
    output::line("");
    let mut table = Table::new(&["run", "rounds", ""]);
    for (name, header) in &runs {
        let rounds = format!("{} and {}", header.spec.rounds, header.spec.loaded_rounds);
        let note = match (header.is_clean, header.is_whole) {
            (false, _) => "of a tree with changes: to look at, not kept",
            (_, false) => "a part of the experiment: no document is made of it",
            _ => "",
        };
        table.row(vec![name.as_str().into(), rounds.as_str().into(), Cell::new(note, Ink::Fair)]);
    }
    table.print();
}

/// All runs of this checkout that can be read, where this is one.
fn headers() -> Vec<(String, Header)> {
    let Ok(root) = crate::run::machine::root() else { return Vec::new() };
    let folders = [KEPT, SCRATCH].into_iter().filter_map(|it| store::folders(&root.join(it)).ok());
    let header = |run: std::path::PathBuf| match store::read_header(&run.join("run.json")) {
        Ok(header) => Some((short(&run), header)),
        Err(error) => {
            output::note(format_args!("dacapo: eval list: {error}"));
            None
        }
    };
    folders.flatten().filter_map(header).collect()
}
