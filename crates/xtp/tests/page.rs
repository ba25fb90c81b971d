//! The states on `docs/xtp.md` are those of the code: the table and the diagram are made here.
//!
//! `XTP_WRITE_PAGE=1 cargo test -p dacapo-xtp --test page` writes them anew.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use dacapo_xtp::table::{Act, Input, State, step};
use std::path::Path;

const BEGIN: &str = "<!-- states:begin -->\n";
const END: &str = "<!-- states:end -->";

fn cell(state: State, input: Input) -> String {
    match step(state, input) {
        None => String::new(),
        Some((next, act)) if next == state => format!("{act:?}"),
        Some((next, act)) => format!("{act:?} → **{next:?}**"),
    }
}

fn table() -> String {
    let names: Vec<String> = State::ALL.iter().map(|state| format!("{state:?}")).collect();
    let mut text = format!("| input | {} |\n|---|", names.join(" | "));
    text.push_str(&"---|".repeat(State::ALL.len()));
    text.push('\n');
    for input in Input::ALL {
        let cells: Vec<String> = State::ALL.iter().map(|state| cell(*state, input)).collect();
        text.push_str(&format!("| {input:?} | {} |\n", cells.join(" | ")));
    }
    text
}

fn diagram() -> String {
    let mut text =
        "```mermaid\nstateDiagram-v2\n    [*] --> Quiescent\n    [*] --> Listening\n".to_owned();
    for state in State::ALL {
        for next in State::ALL.into_iter().filter(|next| *next != state) {
            let leads = |input: &Input| step(state, *input).is_some_and(|(to, _)| to == next);
            let inputs: Vec<String> =
                Input::ALL.into_iter().filter(leads).map(|input| format!("{input:?}")).collect();
            if !inputs.is_empty() {
                text.push_str(&format!("    {state:?} --> {next:?}: {}\n", inputs.join(", ")));
            }
        }
    }
    text.push_str("```\n");
    text
}

#[test]
fn the_page_shows_the_states_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/xtp.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a mark where states begin");
    let (_, after) = rest.split_once(END).expect("the page has a mark where states end");
    let made = format!("{before}{BEGIN}{}\n{}{END}{after}", table(), diagram());
    if std::env::var("XTP_WRITE_PAGE").is_ok() {
        std::fs::write(&path, &made).unwrap();
    }
    let remedy = "XTP_WRITE_PAGE=1 cargo test -p dacapo-xtp --test page";
    assert!(page == made, "the states of docs/xtp.md are out of date; run `{remedy}`");
}

#[test]
fn every_packet_is_foreseen_in_every_state_that_packets_reach() {
    // Whoever listens is reached by FIRST only; all else finds no context.
    for input in Input::ALL.into_iter().filter(|input| input.is_packet()) {
        for state in
            [State::Quiescent, State::Opening, State::Joining, State::Open, State::Inactive]
        {
            assert!(step(state, input).is_some(), "{input:?} in {state:?}");
        }
    }
    assert_eq!(step(State::Listening, Input::First), Some((State::Open, Act::Create)));
}

#[test]
fn what_is_over_is_over() {
    for input in Input::ALL {
        let next = step(State::Inactive, input).map_or(State::Inactive, |(next, _)| next);
        assert!(matches!(next, State::Inactive | State::Quiescent), "{input:?}");
    }
}
