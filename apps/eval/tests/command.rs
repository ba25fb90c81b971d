//! `dacapo bench` as it is typed: the command and the program that measures, as they are built.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../dacapo/tests/common/mod.rs"]
mod common;
mod eval;

use common::{LONG, Place, in_order};
use eval::{closes, json_of};

#[test]
fn what_is_measured_is_there_under_the_name_of_the_command() {
    let place = Place::new();
    let args = ["bench", "net", "--bytes", "500kB", "--what", "bulk", "--json"];
    closes(&json_of(&place.run(&args).expect(0))["rounds"][0]["bulk"]["up"], 60 * 1_024);
    let run = place.run(&["bench", "net", "127.0.0.1:1"]).expect(3);
    run.says(&["dacapo: bench net 127.0.0.1:1: ", "`dacapo bench net --listen`"]);
}

#[test]
fn the_harness_is_there_under_its_name_and_shows_the_runs_that_are_kept() {
    let place = Place::new();
    let list = place.run(&["eval", "list"]).expect(0).out;
    in_order(&list, &["experiment", "network", "links", "sizes"]);
    let mut command = place.command(&["eval", "show", "network"]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let shown = place.start_command(command).wait(LONG).expect(0).out;
    in_order(&shown, &["network: ", "rounds", "ours-udp", "goal", "95 % interval"]);
    place.run(&["eval", "show", "network"]).expect(1).says(&["this needs a checkout of dacapo"]);
    place.run(&["eval", "nonsense"]).expect(2);
}

#[test]
fn a_signal_to_the_command_ends_both_ends_in_order() {
    let place = Place::new();
    let far = place.start(&["bench", "net", "--listen", "127.0.0.1:0", "--json"]);
    let said = far.wait_for_out("\n", LONG);
    let said: serde_json::Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    let at = said["addresses"][0].as_str().unwrap();
    let near = place.start(&["bench", "net", at, "--duration", "60min", "--rate", "1 Mbit/s"]);
    far.wait_for_out("\"runs\"", LONG);
    near.signal("INT");
    let near = near.wait(LONG).expect(130);
    assert_eq!((near.out.as_str(), near.err.as_str()), ("", ""));
    far.signal("TERM");
    far.wait(LONG).expect(143);
}

#[test]
fn wrong_usage_and_help_name_what_was_typed() {
    let place = Place::new();
    for wrong in [
        &["bench", "control", "--rounds", "0"][..],
        &["bench", "transfer", "--size", "0"],
        &["bench", "nonsense"],
        &["bench", "--nonsense"],
    ] {
        place.run(wrong).expect(2);
    }
    let help = place.run(&["bench", "control", "--help"]).expect(0).out;
    in_order(&help, &["Usage: dacapo bench control", "--rounds", "Examples:", "Exit codes:"]);
    let list = place.run(&["bench", "help"]).expect(0).out;
    let names = [
        "choice", "choices", "control", "copies", "cost", "transfer", "lift", "link", "net",
        "safenet", "scale", "xtp",
    ];
    in_order(&list, &[&["Usage: dacapo bench"][..], &names].concat());
    let own = eval::run(&place, &["control", "--help"]).expect(0).out;
    in_order(&own, &["Usage: dacapo-eval control"]);
}
