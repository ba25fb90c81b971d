//! The tables of `docs/protocol.md`, written by hand, against the code, cell by cell.

use dacapo_core::table::{HubRole, HubState, Role, State, Step, hub_step, step};
use dacapo_wire::message::MessageKind;

const PAGE: &str = include_str!("../../../docs/protocol.md");

/// The table under a heading: its columns, and its rows as (message, cells).
fn table(heading: &str) -> (Vec<String>, Vec<(String, Vec<String>)>) {
    let after = PAGE.split(&format!("### {heading}\n")).nth(1).expect("the heading is on the page");
    let lines = after.lines().skip_while(|line| !line.starts_with('|'));
    let mut rows = lines.take_while(|line| line.starts_with('|')).map(|line| {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    });
    let columns = rows.next().expect("a head")[1..].to_vec();
    rows.next();
    let split = |mut row: Vec<String>| (row.remove(0), row);
    (columns, rows.map(split).collect())
}

fn kind(name: &str) -> MessageKind {
    *MessageKind::ALL
        .iter()
        .find(|kind| kind.name() == name)
        .unwrap_or_else(|| panic!("{name} is no message"))
}

fn state(name: &str) -> State {
    use State::*;
    let all = [
        Idle,
        Offered,
        Joining,
        Answering,
        Ready,
        Activating,
        Active,
        Deactivating,
        Closing,
        Closed,
    ];
    *all.iter().find(|state| format!("{state:?}") == name).expect("a state of the code")
}

fn check_session(heading: &str, role: Role, states: usize) {
    let (columns, rows) = table(heading);
    assert_eq!(columns.len(), states, "{heading}");
    assert_eq!(rows.len(), MessageKind::ALL.len(), "{heading}: every message has a row");
    for (message, cells) in rows {
        assert_eq!(cells.len(), columns.len(), "{heading}: {message}");
        for (column, cell) in columns.iter().zip(cells) {
            let expected = match cell.as_str() {
                "✗" => Step::Violation,
                "·" => Step::Ignore,
                name => Step::To(state(name)),
            };
            let is = step(role, state(column), kind(&message));
            assert_eq!(is, expected, "{heading}: {message} in {column}");
        }
    }
}

#[test]
fn the_creators_table_is_the_code() {
    check_session("A session at the Creator", Role::Creator, 6);
}

#[test]
fn the_participants_table_is_the_code() {
    check_session("A session at the Participant", Role::Participant, 8);
}

fn check_hub(heading: &str, role: HubRole) {
    let (columns, rows) = table(heading);
    assert_eq!(columns, ["Greeting", "Open", "Closed"]);
    let states = [HubState::Greeting, HubState::Open, HubState::Closed];
    for &kind in MessageKind::ALL {
        let row = rows.iter().find(|(message, _)| message == kind.name());
        for (index, &state) in states.iter().enumerate() {
            let cell =
                row.map_or(if index == 2 { "Closed" } else { "✗" }, |(_, cells)| &cells[index]);
            let is = hub_step(role, state, kind).map_or("✗".into(), |to| format!("{to:?}"));
            assert_eq!(is, cell, "{heading}: {} in {state:?}", kind.name());
        }
    }
}

#[test]
fn the_hubs_tables_are_the_code() {
    check_hub("The hub at the dialer", HubRole::Dialer);
    check_hub("The hub at the listener", HubRole::Listener);
}
