//! The session files of `conf/` as they are cloned: each is explained, the media that one lacks are
//! made by the command that its refusal names, and then it is served and played.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{LONG, Place, files};
use std::path::Path;

/// A folder with `conf/` in it as it is in a clone, without anything that it names.
fn clone() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("conf")).unwrap();
    let conf = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf"));
    for file in files(conf, "toml") {
        std::fs::copy(&file, place.path("conf").join(file.file_name().unwrap())).unwrap();
    }
    place
}

/// The session files, as they are typed.
fn sessions(place: &Place) -> Vec<String> {
    let paths = files(&place.path("conf"), "toml");
    let names = paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let names: Vec<String> = names.map(|name| format!("conf/{name}")).collect();
    assert!(names.len() >= 4, "{names:?}");
    names
}

/// The command that a refusal names: `dacapo` and its arguments.
fn command_of(refusal: &str) -> Vec<String> {
    let named = refusal.split_once("make one with: ").unwrap_or_else(|| panic!("{refusal}")).1;
    let words = named.lines().next().unwrap().split_whitespace();
    words.map(str::to_owned).collect()
}

#[test]
fn every_session_file_is_explained_without_its_media_and_says_what_is_assumed() {
    let place = clone();
    for file in sessions(&place) {
        let text = std::fs::read_to_string(place.path(&file)).unwrap();
        let lacks = text.contains("file = \"");
        let words = place.run(&["explain", &file]).expect(0).out;
        assert_eq!(words.contains("\nassumed of the medium: conf/"), lacks, "{file}: {words}");
        assert_eq!(words.contains(" is missing; taken for "), lacks, "{file}: {words}");
        let json = place.run(&["explain", &file, "--json"]).expect(0).out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        for flow in json["flows"].as_array().unwrap() {
            let assumed = &flow["assumed_medium"];
            assert_eq!(assumed.is_object(), lacks, "{file}: {flow}");
            if lacks {
                assert!(assumed["command"].as_str().unwrap().starts_with("dacapo testmovie conf/"));
                assert!(assumed["mean_bps"].as_u64().unwrap() > 1_000_000, "{assumed}");
            }
        }
    }
}

#[test]
fn every_session_file_is_served_after_the_command_that_its_refusal_names() {
    let place = clone();
    for file in sessions(&place) {
        let text = std::fs::read_to_string(place.path(&file)).unwrap();
        if let Some(line) = text.lines().position(|line| line.contains("file = \"")) {
            for refusing in [&["serve", &file, "--port", "0"][..], &["check", &file]] {
                let run = place.run(refusing).expect(5);
                run.says(&[&format!("{file}:{}: flow[0].source.file: conf/", line + 1)]);
                assert_eq!(run.out, "");
            }
            let refusal = place.run(&["serve", &file, "--port", "0"]).err;
            let command = command_of(&refusal);
            assert_eq!(command[0], "dacapo", "{refusal}");
            let args: Vec<&str> = command[1..].iter().map(String::as_str).collect();
            place.run(&args).expect(0);
        }
        let (server, authority) = place.serve(&[&file, "--once"]);
        let name = Path::new(&file).file_stem().unwrap().to_str().unwrap();
        let (uri, out) = (format!("dacapo://{authority}/{name}"), format!("out-{name}"));
        let player = place.start(&["play", &uri, "--save", &out, "--json"]);
        if text.contains("raw = true") {
            // Nobody feeds its flows: they end at once.
            player.wait(LONG).expect(0);
        } else {
            let dir = place.path(&out);
            let has_come = || {
                let saved = ["avi", "wav"].iter().flat_map(|it| match dir.exists() {
                    true => files(&dir, it),
                    false => Vec::new(),
                });
                saved.into_iter().any(|path| path.metadata().unwrap().len() > 100_000)
            };
            assert!(common::wait_until(LONG, has_come), "{file}: {}", player.err());
            player.signal("INT");
            let played = player.wait(LONG).expect(130);
            let json: serde_json::Value = serde_json::from_str(&played.out).unwrap();
            for flow in json["flows"].as_array().unwrap() {
                assert_eq!(flow["account"]["closes"], true, "{flow}");
                assert!(flow["media_frames"].as_u64().unwrap() > 0, "{flow}");
            }
        }
        server.wait(LONG).expect(0);
    }
}
