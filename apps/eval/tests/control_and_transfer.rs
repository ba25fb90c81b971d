//! `dacapo bench`: every figure is there; how good it is decides nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../dacapo/tests/common/mod.rs"]
mod common;
mod eval;

use common::{Place, in_order};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The program, with its temporary files in the folder of the test.
fn bench(place: &Place, args: &[&str]) -> common::Finished {
    std::fs::create_dir_all(place.path("tmp")).unwrap();
    let mut command = eval::command(place, args);
    command.env("TMPDIR", place.path("tmp"));
    let run = place.start_command(command).wait(common::LONG).expect(0);
    let left = std::fs::read_dir(place.path("tmp")).unwrap().count();
    assert_eq!(left, 0, "files stay behind");
    run
}

#[test]
fn control_has_every_row_with_its_figures_of_1998_beside() {
    let place = Place::new();
    let all = json(&bench(&place, &["control", "--rounds", "2", "--json"]).out);
    assert_eq!(all["rounds"], 2);
    let rows = all["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["command"].as_str().unwrap()).collect();
    let commands = ["init", "fps", "open", "start", "play", "ff", "rwd", "stop", "fr", "fwd"];
    let others = [
        "all commands",
        "a picture, read and put into a unit",
        "the same without the first",
        "from a command to its answer",
    ];
    assert_eq!(names, [&commands[..], &others[..]].concat());
    for row in rows {
        let (now, then) = (&row["now"], &row["1998"]);
        assert!(now["n"].as_u64().unwrap() > 0, "{row}");
        let at = |key: &str| now[key].as_f64().unwrap();
        assert!(at("min_us") <= at("average_us") && at("average_us") <= at("max_us"), "{row}");
        if row["command"] == others[3] {
            assert!(then.is_null(), "1998 did not measure it: {row}");
            continue;
        }
        assert!(then["n"].as_u64().unwrap() > 0, "{row}");
        assert!(then["table"].as_u64().is_some_and(|table| (20..=24).contains(&table)), "{row}");
        let runs = then["averages_us"].as_array().map(Vec::len);
        let wanted = [None, Some(6), Some(12)];
        assert!(wanted.contains(&runs) && runs.is_some() == (then["table"] != 24), "{row}");
    }
    // Each command of a round is counted as often as it was sent.
    let count =
        |name: &str| rows.iter().find(|row| row["command"] == name).unwrap()["now"]["n"].as_u64();
    assert_eq!((count("init"), count("play"), count("rwd")), (Some(2), Some(8), Some(4)));
}

#[test]
fn control_shows_a_table_and_says_where_the_figures_of_1998_are_from() {
    let place = Place::new();
    let out = bench(&place, &["control", "--rounds", "1"]).out;
    in_order(&out, &["command", "init", "open", "all commands", "1998: Tables"]);
}

#[test]
fn transfer_measures_both_programs_in_every_round() {
    common::dacapo();
    let place = Place::new();
    let all = json(&bench(&place, &["transfer", "--size", "10MB", "--rounds", "1", "--json"]).out);
    assert_eq!(all["bytes"], 10_000_000);
    let rounds = all["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 1);
    for program in ["send", "plain"] {
        for figure in ["seconds", "cpu_seconds", "gbit_per_s", "cpu_s_per_gb"] {
            assert!(rounds[0][program][figure].as_f64().unwrap() > 0.0, "{program} {figure}");
        }
        assert!(all["median"][program]["gbit_per_s"].as_f64().unwrap() > 0.0, "{program}");
    }
    assert!(all["median"]["rate_ratio"].as_f64().unwrap() > 0.0);
    assert!(all["median"]["cpu_ratio"].as_f64().unwrap() > 0.0);
}

#[test]
fn transfer_uses_the_folder_that_it_is_given_and_tidies_it() {
    common::dacapo();
    let place = Place::new();
    std::fs::create_dir(place.path("here")).unwrap();
    let args = ["transfer", "--size", "100kB", "--rounds", "2", "--dir", "here"];
    in_order(&bench(&place, &args).out, &["round", "\n1 ", "\n2 ", "\nmedian ", "send / plain: "]);
    assert_eq!(std::fs::read_dir(place.path("here")).unwrap().count(), 0);
    place.write("file", "precious");
    let run = eval::run(&place, &["transfer", "--size", "100kB", "--dir", "file"]).expect(1);
    run.says(&["dacapo: bench transfer: "]);
    assert_eq!(std::fs::read(place.path("file")).unwrap(), b"precious");
}
