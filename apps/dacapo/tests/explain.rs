//! `dacapo explain` and `modules`: which protocol each flow gets, why, and what of.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{Place, in_order};
use serde_json::Value;

/// The session files of `conf/`, with the media that they name.
fn place() -> Place {
    let place = Place::new();
    let conf = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf");
    for name in ["movie.toml", "radio.toml", "testcard.toml", "two-way.toml"] {
        std::fs::copy(format!("{conf}/{name}"), place.path(name)).unwrap();
    }
    place.movie("movie.avi", "1");
    place.run(&["testmovie", "radio.wav", "--wav", "--duration", "1"]).expect(0);
    place
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn every_flow_of_every_example_is_explained() {
    let place = place();
    for (file, flows) in [
        ("movie.toml", &["video", "audio"][..]),
        ("radio.toml", &["sound"]),
        ("testcard.toml", &["picture", "tone"]),
        ("two-way.toml", &["there", "back"]),
    ] {
        let out = place.run(&["explain", file]).expect(0).out;
        for flow in flows {
            let head = format!("{flow}: asks for ");
            let words = [&head, "\nwhy\n", "\nexpected: ", "\nasked\n", "\nassumed of the path: "];
            in_order(&out, &words);
        }
    }
}

#[test]
fn json_has_the_graph_its_modules_and_what_forces_each() {
    let place = place();
    let out = place.run(&["explain", "movie.toml", "--json"]).expect(0).out;
    let all = json(&out);
    assert_eq!(all["session"], "movie");
    let flows = all["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2);
    for flow in flows {
        let explanation = &flow["explanation"];
        let parts = explanation["parts"].as_array().unwrap();
        let names: Vec<&str> = parts.iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(explanation["graph"], names.join(" ! "), "{explanation}");
        assert!(parts.iter().all(|part| !part["forced_by"].is_null()), "{parts:?}");
        let checksum = parts.iter().find(|part| part["name"] == "checksum").unwrap();
        let forced = &checksum["forced_by"]["each"][0];
        assert_eq!(forced["text"], "integrity", "{checksum}");
        assert!(!explanation["attributes"].as_array().unwrap().is_empty());
    }
}

#[test]
fn the_path_that_is_assumed_changes_the_protocol() {
    let place = place();
    let graph = |path: &str| {
        let out = place.run(&["explain", "movie.toml", "--json", "--path", path]).expect(0).out;
        json(&out)["flows"][1]["explanation"]["graph"].as_str().unwrap().to_owned()
    };
    assert!(graph("internet").contains("repeat"), "the loss is too high without");
    assert!(!graph("lan").contains("repeat"), "nothing is lost that would be repeated");
    let out = place.run(&["explain", "movie.toml", "--path", "lan,loss=0.2%"]).expect(0).out;
    assert!(out.contains("loss 0.2 %"), "{out}");
}

#[test]
fn what_a_participant_asks_changes_the_protocol() {
    let place = place();
    let usual = place.run(&["explain", "radio.toml", "--path", "lan"]).expect(0).out;
    let asked = ["explain", "radio.toml", "--path", "lan", "--ask", "loss=0"];
    let asked = place.run(&asked).expect(0).out;
    assert!(usual.contains("! udp: ") && asked.contains("! tcp: "), "{usual}\n{asked}");
    assert!(asked.contains("no loss"), "{asked}");
}

#[test]
fn what_nothing_meets_is_a_failure_with_the_nearest() {
    let place = place();
    for (ask, words) in [
        ("confidentiality=required", &["confidentiality, loss at most 0.1 %", "nearest: "][..]),
        ("delay<=1ns", &["delay at most 1 ns", "nearest: delay at most "]),
        ("throughput>=30Mbit/s", &["contradict", "at most 20 Mbit/s", "nearest: "]),
    ] {
        let run = place.run(&["explain", "movie.toml", "--ask", ask]).expect(1);
        run.says(&[&["dacapo: explain: "], words].concat());
        assert_eq!(run.out, "", "nothing is explained that would not run");
    }
}

#[test]
fn a_flow_of_the_file_that_nothing_meets_is_code_5() {
    let place = Place::new();
    let attributes = "[flow.attributes]\nloss = \"0\"\ndelay = \"1 ms\"\n";
    let flow = "[[flow]]\nname = \"data\"\nfrom = \"creator\"\nsource = { raw = true }\n";
    place.write("a.toml", format!("[session]\nname = \"a\"\n\n{flow}{attributes}"));
    let run = place.run(&["explain", "a.toml"]).expect(5);
    run.says(&["a.toml", "delay at most 1 ms", "nearest"]);
}

#[test]
fn the_refusal_in_the_guide_is_what_the_program_prints() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/choosing.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let block = |after: &str| {
        let rest = guide.split_once(after).unwrap_or_else(|| panic!("no {after}")).1;
        rest.split_once("```").unwrap().0.to_owned()
    };
    let place = Place::new();
    place.write("robot.toml", block("in `robot.toml`:\n\n```toml\n"));
    let run = place.run(&["explain", "robot.toml"]).expect(5);
    let printed: Vec<&str> = run.err.lines().skip(1).collect();
    // The page breaks the line.
    let shown = block("<!-- shown: robot -->\n```text\n");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&shown), words(&printed.join(" ")));
}

#[test]
fn words_that_are_none_are_wrong_usage_with_the_nearest() {
    let place = place();
    let explain = |args: &[&str]| place.run(&[&["explain", "movie.toml"], args].concat());
    explain(&["--path", "wirelss"]).expect(2).says(&["wirelss", "did you mean \"wireless\"?"]);
    explain(&["--path", "lan,los=1%"]).expect(2).says(&["did you mean \"loss\"?"]);
    explain(&["--ask", "dealy<=1s"]).expect(2).says(&["did you mean \"delay\"?"]);
    explain(&["--ask", "loss>=1%"]).expect(2).says(&["loss takes max"]);
    let two = ["--ask", "throughput>=2Mbit/s", "--ask", "throughput<=1Mbit/s"];
    explain(&two).expect(2).says(&["throughput"]);
}

#[test]
fn a_session_file_that_is_invalid_or_missing_is_code_5() {
    let place = Place::new();
    place.write("a.toml", "[session]\nname = \"A b\"\n");
    place.run(&["explain", "a.toml"]).expect(5).says(&["dacapo: explain: a.toml", "a.toml:2"]);
    place.run(&["explain", "none.toml"]).expect(5).says(&["none.toml"]);
}

#[test]
fn the_table_of_modules_fits_100_columns_and_names_all() {
    let place = Place::new();
    let out = place.run(&["modules"]).expect(0).out;
    for line in out.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
    let all = json(&place.run(&["modules", "--json"]).expect(0).out);
    for list in ["access", "modules", "transports"] {
        let entries = all[list].as_array().unwrap();
        assert!(entries.len() >= 2, "{list}");
        for entry in entries {
            let name = entry["name"].as_str().unwrap();
            let is_named = |line: &str| line.split_whitespace().any(|word| word == name);
            assert!(out.lines().any(is_named), "{name} is not in {out}");
            // What is broken over lines says everything all the same.
            for gives in entry["provides"].as_array().unwrap() {
                let last = gives.as_str().unwrap().split(' ').next_back().unwrap();
                assert!(out.contains(last), "{gives} of {name} is not in {out}");
            }
        }
    }
}

#[test]
fn one_module_or_transport_is_described_for_people_and_as_json() {
    let place = Place::new();
    let out = place.run(&["modules", "sequence"]).expect(0).out;
    in_order(&out, &["sequence: ", "function ", "ordering", "mechanism ", "provides ", "hold: "]);
    let one = json(&place.run(&["modules", "sequence", "--json"]).expect(0).out);
    assert_eq!((&one["name"], &one["function"]), (&"sequence".into(), &"ordering".into()));
    assert!(one["params"].as_array().unwrap().iter().any(|param| param["name"] == "hold"));
    let out = place.run(&["modules", "file"]).expect(0).out;
    in_order(&out, &["file: ", "is ", "source", "carries ", "pictures, sound", "rate: "]);
    let one = json(&place.run(&["modules", "raw", "--json"]).expect(0).out);
    assert_eq!((&one["source"], &one["sink"]), (&true.into(), &true.into()));
    let out = place.run(&["modules", "tcp"]).expect(0).out;
    in_order(&out, &["tcp: ", "gives ", "no loss", "datagrams ", "cost "]);
    let one = json(&place.run(&["modules", "tcp", "--json"]).expect(0).out);
    assert_eq!(one["function"], "transport");
}

#[test]
fn a_module_that_there_is_not_is_a_failure_with_the_nearest() {
    let place = Place::new();
    let run = place.run(&["modules", "sequense"]).expect(1);
    run.says(&["dacapo: modules: ", "sequense", "did you mean \"sequence\"?"]);
    let run = place.run(&["modules", "nonsense", "--json"]).expect(1);
    run.says(&["no module is called \"nonsense\"", "there are: ", "checksum", "udp"]);
    assert!(!run.err.contains("dacapo: dacapo: "), "{}", run.all());
}
