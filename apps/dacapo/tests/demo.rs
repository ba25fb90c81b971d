//! `dacapo demo` as its user sees it: everything arrives, or the exit code says so.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::Place;

#[test]
fn a_demo_closes_its_ledgers_and_every_hash_agrees() {
    let place = Place::new();
    let run = place.run(&["demo", "--duration", "2", "--speed", "4", "--out", "demo"]).expect(0);
    for text in [
        "session.toml",
        "order = \"ordered\"",
        "why\n",
        "→ sequence(",
        "serve | ready dacapo://127.0.0.1:",
        "serve | left demo",
        "The receiver's account:",
        "closes",
        "equal",
        "Every unit is accounted for, and every byte arrived.",
    ] {
        assert!(run.out.contains(text), "{text:?} is not in {}", run.all());
    }
    assert!(!run.out.contains("DOES NOT CLOSE") && !run.out.contains("DIFFERENT"), "{}", run.all());
    assert!(!run.out.contains('\u{1b}'), "escape sequences without a terminal: {}", run.all());
    assert!(place.path("demo/source.avi").is_file());
    assert_eq!(common::files(&place.path("demo/received"), "avi").len(), 1);
}

#[test]
fn a_demo_is_repeated_in_its_folder_and_not_when_told_to_keep_it() {
    let place = Place::new();
    let args = ["demo", "--duration", "1", "--speed", "8", "--out", "demo"];
    place.run(&args).expect(0);
    place.run(&args).expect(0);
    let mut keep = args.to_vec();
    keep.push("--keep");
    place.run(&keep).expect(1).says(&["an earlier demo is there"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_said_with_the_part_that_is_in_the_way() {
    let place = Place::new();
    place.write("file", "kept");
    for out in ["file", "file/demo"] {
        let run = place.run(&["demo", "--out", out, "--duration", "1"]).expect(1);
        run.says(&["file is a file", "move that away, or choose another folder"]);
    }
    let run = place.run(&["recv", "--out", "file/incoming"]).expect(1);
    run.says(&["recv: file/incoming", "file is a file", "choose another folder"]);
    place.run(&["man", "file"]).expect(1).says(&["man: file", "choose another folder"]);
    assert_eq!(std::fs::read_to_string(place.path("file")).unwrap(), "kept");
}
