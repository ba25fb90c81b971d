//! Every message in every state, against the tables of docs/protocol.md, read as they stand there.

use crate::arena::{Arena, As, At, join, welcome};
use crate::common::ms;
use crate::common::raw::{RawPeer, hello};
use dacapo_core::{Code, Command};
use dacapo_wire::change::{Abort, Cannot, Done, Prepare, Ready, Request, Switched};
use dacapo_wire::hub::{Goodbye, List, Listing, Refuse};
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::session::{
    Accept, Activate, Activated, Answer, Close, Closed, Control, ControlAnswer, Deactivate,
    Deactivated, End, Offer, Report,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

const PAGE: &str = include_str!("../../../../docs/protocol.md");

/// The cells of a table of the page: message, state, what is written there.
fn cells(heading: &str) -> Vec<(MessageKind, String, String)> {
    let after = PAGE.split(&format!("### {heading}\n")).nth(1).expect("the heading is there");
    let lines = after.lines().skip_while(|line| !line.starts_with('|'));
    let mut rows = lines.take_while(|line| line.starts_with('|')).map(|line| {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    });
    let head = rows.next().expect("a head");
    let of_row = |row: Vec<String>| {
        let named = |kind: &&MessageKind| kind.name() == row[0];
        let kind = *MessageKind::ALL.iter().find(named).expect("a message");
        let states = head[1..].to_vec();
        let cells = row[1..].to_vec();
        states.into_iter().zip(cells).map(move |(state, cell)| (kind, state, cell))
    };
    rows.skip(1).flat_map(of_row).collect()
}

/// A legal record of each kind.
fn sample(kind: MessageKind) -> Message {
    use MessageKind as K;
    match kind {
        K::Hello => hello().into(),
        K::Welcome => welcome().into(),
        K::Refuse => Refuse { code: 304, text: "no".into(), port: None }.into(),
        K::List => List { request: 1 }.into(),
        K::Listing => Listing { request: 1, sessions: Vec::new() }.into(),
        K::Goodbye => Goodbye { code: 701, text: String::new() }.into(),
        K::Join => join("down").into(),
        K::Offer => Offer::default().into(),
        K::Answer => Answer::default().into(),
        K::Accept => Accept::default().into(),
        K::Activate => Activate { request: 1 }.into(),
        K::Activated => Activated { request: 1 }.into(),
        K::Deactivate => Deactivate { request: 1 }.into(),
        K::Deactivated => Deactivated { request: 1 }.into(),
        K::End => End::default().into(),
        K::Report => Report::default().into(),
        K::Close => Close { code: 701, text: String::new() }.into(),
        K::Closed => Closed.into(),
        K::Control => Control { request: 1, module: 0xFFFF, ..Control::default() }.into(),
        K::ControlAnswer => ControlAnswer { request: 1, ..ControlAnswer::default() }.into(),
        K::Prepare => Prepare::default().into(),
        K::Ready => Ready::default().into(),
        K::Cannot => Cannot { code: 304, ..Cannot::default() }.into(),
        K::Abort => Abort::default().into(),
        K::Switched => Switched::default().into(),
        K::Done => Done::default().into(),
        K::Request => Request::default().into(),
    }
}

/// How far the raw peer goes so that the core is in a state.
fn place_of(state: &str) -> At {
    match state {
        "Idle" | "Joining" => At::Opened,
        "Offered" | "Answering" => At::Answered,
        "Ready" | "Closing" => At::Ready,
        "Activating" => At::Activating,
        "Active" | "Deactivating" | "Closed" => At::Active,
        other => panic!("no state {other}"),
    }
}

/// Begins a session whose state at the core is this one.
fn begin(arena: &mut Arena, state: &str) {
    arena.begin(place_of(state), "usual", crate::arena::usual_flows());
    let (now, session) = (arena.lab.now(), arena.session);
    let core = arena.lab.world.core(arena.core);
    match (state, session) {
        ("Deactivating", Some(session)) => {
            _ = core.handle_command(now, Command::Deactivate(session)).unwrap();
        }
        ("Closing", Some(session)) => {
            _ = core.handle_command(now, Command::Close(session)).unwrap();
        }
        ("Closed", _) => arena.say(Control { request: 0, ..Control::default() }),
        _ => {}
    }
    if state == "Closed" {
        arena.say(Close { code: 304, text: String::new() });
    }
    arena.run(20);
    arena.take_all();
}

/// Says one message in one state and looks at the session.
fn check(arena: &mut Arena, kind: MessageKind, state: &str, cell: &str) {
    begin(arena, state);
    let before = arena.lab.log.len();
    arena.say(sample(kind));
    arena.run(30);
    assert!(arena.raw.lost.is_none(), "the connection is lost: {:?}", arena.raw.lost);
    let ended = arena.lab.log[before..].iter().find_map(|(_, _, event)| match event {
        dacapo_core::CoreEvent::SessionEnded { error, .. } => {
            Some(error.as_ref().map(|error| error.code))
        }
        _ => None,
    });
    if cell == "✗" {
        assert_eq!(ended, Some(Some(Code::Violation)), "it must not come");
    } else {
        assert_eq!(ended, None, "it is passed over");
    }
    arena.raw.reset(arena.stream);
    arena.run(20);
}

/// All cells of a role's table that a message must not come in, or is passed over in.
fn check_table(heading: &str, role: As, count: usize) {
    let cells = cells(heading);
    let wrong = |cell: &str| cell == "✗" || cell == "·";
    let cells: Vec<_> = cells.into_iter().filter(|(_, _, cell)| wrong(cell)).collect();
    assert_eq!(cells.len(), count, "cells of {heading}");
    let mut failed = Vec::new();
    let mut arena = Arena::new(role, At::Greeted, "usual");
    arena.open_path_if_dialer();
    for (kind, state, cell) in cells {
        let checked = catch_unwind(AssertUnwindSafe(|| check(&mut arena, kind, &state, &cell)));
        if checked.is_err() {
            failed.push(format!("{} in {state}: {cell}", kind.name()));
            arena = Arena::new(role, At::Greeted, "usual");
            arena.open_path_if_dialer();
        }
    }
    assert!(failed.is_empty(), "{heading}:\n{}", failed.join("\n"));
    arena.finish();
}

impl Arena {
    /// Without a data path, a dialer's flows would not be sent.
    fn open_path_if_dialer(&mut self) {
        if self.role == As::Dialer {
            self.open_path();
        }
    }
}

#[test]
fn every_message_in_every_wrong_state_of_a_session_at_the_creator() {
    check_table("A session at the Creator", As::Dialer, 127);
}

#[test]
fn every_message_in_every_wrong_state_of_a_session_at_the_participant() {
    check_table("A session at the Participant", As::Listener, 156);
}

/// Every message that must not come on the hub ends the connection, and the peer is told why.
fn check_hub(heading: &str, role: As) {
    let listed = cells(heading);
    let allowed = |kind: MessageKind, state: &str| {
        listed.iter().any(|(it, at, cell)| *it == kind && at == state && cell != "✗")
    };
    let mut failed = Vec::new();
    for (state, at) in [("Greeting", At::Connected), ("Open", At::Greeted)] {
        for &kind in MessageKind::ALL.iter().filter(|kind| !allowed(**kind, state)) {
            let checked = catch_unwind(|| {
                let mut arena = Arena::new(role, at, "");
                if (role, at) == (As::Dialer, At::Connected) {
                    arena.hub = arena.raw.open().unwrap();
                }
                arena.raw.say(arena.hub, sample(kind));
                arena.expect_lost(Code::Violation);
                arena.finish_quickly();
            });
            if checked.is_err() {
                failed.push(format!("{} in {state}", kind.name()));
            }
        }
    }
    assert!(failed.is_empty(), "{heading}:\n{}", failed.join("\n"));
}

impl Arena {
    /// Nothing is left of the raw peer's connection; the honest session was looked at elsewhere.
    fn finish_quickly(mut self) {
        RawPeer::run(&mut [&mut self.raw], &mut self.lab.world, self.core, ms(100));
        self.lab.run(ms(900));
        assert_eq!(self.lab.world.core(self.core).connection_count(), 1);
    }
}

#[test]
fn every_message_in_every_wrong_state_of_the_hub_at_the_listener() {
    check_hub("The hub at the listener", As::Dialer);
}

#[test]
fn every_message_in_every_wrong_state_of_the_hub_at_the_dialer() {
    check_hub("The hub at the dialer", As::Listener);
}
