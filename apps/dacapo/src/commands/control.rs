//! `dacapo control`: a command to a player on this host, through its local socket.

use crate::cli::{ControlArgs, or_usage};
use crate::exit::{Exit, Failure};
use crate::local;
use crate::output::{self, Table};
use dacapo::command::{CommandFault, MediaCommand};
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// Runs the command.
pub fn run(args: &ControlArgs) -> Result<Exit, Failure> {
    let words = [Some(args.command.as_str()), args.argument.as_deref()];
    let text = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let command: MediaCommand =
        or_usage(text.parse().map_err(|error: CommandFault| error.to_string()));
    let folder = local::folder();
    let pid = match args.pid {
        Some(pid) => pid,
        None => only_player(&folder)?,
    };
    let request = json!({ "command": command.to_string() });
    let answer = local::ask(&folder, pid, &request).map_err(|error| cannot_ask(pid, &error))?;
    if args.json {
        output::json(&answer);
    }
    match answer.get("ok") {
        Some(Value::Bool(true)) if !args.json => print(&answer),
        Some(Value::Bool(true)) => {}
        _ => {
            let error = answer.get("error").and_then(Value::as_str).unwrap_or("no reason given");
            return Err(Failure::run_time(&format!("control: {command}"), error));
        }
    }
    Ok(Exit::Success)
}

fn print(answer: &Value) {
    let text = answer.get("answer").and_then(Value::as_str).unwrap_or_default();
    let round_trip_us = answer.get("round_trip_us").and_then(Value::as_u64).unwrap_or(0);
    output::line(format_args!("{text}  (round trip {:.2} ms)", round_trip_us as f64 / 1e3));
}

fn cannot_ask(pid: u32, error: &io::Error) -> Failure {
    let is_gone =
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
    let what = format!("control: player {pid}");
    if is_gone {
        Failure::run_time(&what, "no such player; `dacapo control status` lists those that run")
    } else {
        Failure::run_time(&what, error)
    }
}

/// The player that is meant when none was named.
fn only_player(folder: &Path) -> Result<u32, Failure> {
    let about = |pid: u32| Some((pid, local::ask(folder, pid, &json!({ "about": true })).ok()?));
    let players: Vec<(u32, Value)> = local::players(folder).into_iter().filter_map(about).collect();
    match players.as_slice() {
        [(pid, _)] => Ok(*pid),
        [] => {
            let text = format!(
                "no player runs (none answers in {}); start one with `dacapo play`",
                folder.display()
            );
            Err(Failure::run_time("control", text))
        }
        several => {
            list(several);
            Err(Failure::run_time("control", "several players run; name one with --pid"))
        }
    }
}

fn list(players: &[(u32, Value)]) {
    let mut table = Table::new(&["pid", "plays"]);
    for (pid, about) in players {
        let uri = about.get("uri").and_then(Value::as_str).unwrap_or("?");
        table.row(vec![(*pid).into(), uri.into()]);
    }
    table.print();
}
