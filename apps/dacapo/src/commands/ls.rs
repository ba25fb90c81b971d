//! `dacapo ls`: the sessions that a host serves.

use crate::app::{App, AppEvent, interrupted};
use crate::cli::LsArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Table};
use crate::progress::Progress;
use dacapo::Address;
use dacapo::offer::SessionEntry;
use dacapo::{Command, Event, Outcome, Ticket};
use serde_json::{Value, json};
use std::time::Duration;

/// Runs the command.
pub fn run(args: &LsArgs) -> Result<Exit, Failure> {
    let mut app = App::open()?;
    let mut progress = Progress::new(args.json);
    let peer = app.connect(&args.host, args.wait, &mut progress)?;
    let what = format!("list {}", args.host);
    let list = app.command(Command::List(peer)).map_err(|error| Failure::core(&what, &error))?;
    let sessions = wait(&mut app, list, &what);
    let address = app.endpoint.peer_address(peer);
    app.leave(peer);
    let sessions = sessions?;
    let uri = |name: &str| uri(&args.host, address, name);
    if args.json {
        output::json(&Value::Array(
            sessions.iter().map(|it| to_json(it, &uri(&it.name))).collect(),
        ));
    } else {
        print(&sessions, uri);
    }
    Ok(Exit::Success)
}

fn wait(app: &mut App, list: Ticket, what: &str) -> Result<Vec<SessionEntry>, Failure> {
    loop {
        match app.next(Duration::from_secs(1))? {
            Some(AppEvent::Event(_, Event::Done { ticket, outcome })) if ticket == list => {
                match outcome {
                    Ok(Outcome::Listed(sessions)) => return Ok(sessions),
                    Ok(_) => {}
                    Err(error) => return Err(Failure::core(what, &error)),
                }
            }
            Some(AppEvent::Signal(signal)) => return Err(interrupted(signal)),
            _ => {}
        }
    }
}

/// The address as it was typed, with the port that was used where it was left out.
fn uri(host: &str, address: Option<Address>, name: &str) -> String {
    let typed: Result<dacapo::uri::Uri, _> = format!("dacapo://{host}/{name}").parse();
    match (typed, address) {
        (Ok(uri), _) => uri.to_string(),
        (Err(_), Some(address)) => format!("dacapo://{address}/{name}"),
        (Err(_), None) => name.to_owned(),
    }
}

fn to_json(entry: &SessionEntry, uri: &str) -> Value {
    json!({
        "name": entry.name,
        "title": entry.title,
        "uri": uri,
        "flows": entry.flow_count,
        "participants": entry.participants,
    })
}

fn print(sessions: &[SessionEntry], uri: impl Fn(&str) -> String) {
    let mut table = Table::new(&["session", "flows", "participants", "title"]);
    for entry in sessions {
        table.row(vec![
            uri(&entry.name).into(),
            entry.flow_count.into(),
            entry.participants.into(),
            entry.title.as_str().into(),
        ]);
    }
    table.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_as_the_host_was() {
        let address = Some(Address::from(([127, 0, 0, 1], 7)));
        assert_eq!(uri("localhost", address, "movie"), "dacapo://localhost/movie");
        assert_eq!(uri("localhost:7", address, "movie"), "dacapo://localhost:7/movie");
        assert_eq!(uri("::1", address, "movie"), "dacapo://127.0.0.1:7/movie");
    }
}
