//! The command at terminals, as a person types it: every command line of README.md and docs/, and
//! every command that waits.
//!
//! ```text
//!   documents   README.md, docs/**/*.md -> fenced blocks -> command lines
//!   scenes.txt  which terminal types which line, what it shows, how it ends   (script)
//!   waiting     each command that waits x each way it is treated
//!        all at once: Terminal (pty, bash, a screen of 80, 120 or 20 columns) per person
//! ```
//!
//! A person rests for 8 s before each line. A command line that no scene types fails, so nothing is
//! shown that was not run. A failure prints the screen, and the line that repeats it.
//!
//! Everything that is run here sleeps most of the time, so all of it runs at once.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../common/mod.rs"]
mod common;
mod documents;
mod play;
mod process;
mod script;
mod stage;
mod terminal;
mod waiting;

use script::Script;
use stage::Piece;
use std::collections::BTreeSet;

/// Widths of terminals: the usual, a wide one, and one that is narrower than anything fits.
const WIDTHS: [u16; 3] = [80, 120, 20];

#[test]
fn what_the_documents_show_works_as_typed_and_what_waits_rests_hears_and_ends() {
    let script = Script::read();
    let mut pieces: Vec<Piece> = Vec::new();
    for scene in script.scenes.iter().filter(|scene| scene.night.is_none()) {
        let replace = script.replacements.as_slice();
        pieces.extend(WIDTHS.map(|columns| play::piece(scene, columns, Some(replace))));
    }
    pieces.extend(waiting::pieces());
    stage::run(pieces);
}

#[test]
#[ignore = "root and minutes: make nightly"]
fn what_needs_root_or_minutes_works_as_typed_and_the_rest_without_a_word_replaced() {
    if dacapo_sys::process::uid() != 0 {
        return dacapo_base::skip("namespaces and raw sockets need root");
    }
    let script = Script::read();
    let pieces = script.scenes.iter().map(|scene| play::piece(scene, 80, None));
    stage::run(pieces.chain(waiting::pieces_for_root()).collect());
}

#[test]
fn every_command_line_of_the_documents_is_in_a_scene_and_no_scene_types_others() {
    let script = Script::read();
    let shown = documents::command_lines();
    assert!(shown.len() >= 20, "the documents show {} command lines only", shown.len());
    let typed: BTreeSet<&str> = script.shown_lines().collect();
    let mut problems: Vec<String> = shown
        .iter()
        .filter(|it| !typed.contains(it.text.as_str()))
        .map(|it| {
            format!(
                "{}: no scene types `{}`; add it to apps/dacapo/tests/terminal/scenes.txt",
                it.place, it.text
            )
        })
        .collect();
    let lines: BTreeSet<&str> = shown.iter().map(|it| it.text.as_str()).collect();
    let stray = typed.iter().filter(|line| !lines.contains(*line));
    problems.extend(stray.map(|line| format!("scenes.txt: no document shows `{line}` any more")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_block_of_the_documents_says_what_it_is() {
    let problems = documents::problems();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
