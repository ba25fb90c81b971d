//! `dacapo play` and `control`: how a session ends, whoever ends it, and who may steer it.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{LONG, Place, Running, files, in_order, movie_session, wait_until};
use std::path::{Path, PathBuf};

/// A server with a movie of 30 s and a player that saves it, both running.
struct Pair {
    place: Place,
    server: Running,
    player: Running,
    uri: String,
}

impl Pair {
    fn new(serve: &[&str], play: &[&str]) -> Self {
        let place = Place::new();
        place.movie("movie.avi", "30");
        place.write("a.toml", movie_session("movie", "movie.avi"));
        let mut args = vec!["a.toml"];
        args.extend_from_slice(serve);
        let (server, authority) = place.serve(&args);
        let uri = format!("dacapo://{authority}/movie");
        let mut args = vec!["play", &uri, "--save", "out"];
        args.extend_from_slice(play);
        let player = place.start(&args);
        let pair = Self { place, server, player, uri };
        pair.wait_for_bytes();
        pair
    }

    /// Waits until about a second of the movie is saved.
    fn wait_for_bytes(&self) {
        let has_bytes = || self.saved().is_some_and(|path| len(&path) > 100_000);
        let text = || format!("{}\n{}", self.player.out(), self.player.err());
        assert!(wait_until(LONG, has_bytes), "nothing is saved:\n{}", text());
    }

    fn saved(&self) -> Option<PathBuf> {
        self.saved_in("out")
    }

    fn saved_in(&self, folder: &str) -> Option<PathBuf> {
        let out = self.place.path(folder);
        out.is_dir().then(|| files(&out, "avi").into_iter().next())?
    }

    /// What is saved can be read and has pictures and sound.
    fn check_saved(&self, out: &str) {
        let path = self.saved().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(out.contains(name), "the saved path is not in {out}");
        let json = self.place.run(&["inspect", "--json", path.to_str().unwrap()]).expect(0).out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let streams = json["streams"].as_array().unwrap();
        assert_eq!(streams.len(), 2, "{json}");
        assert!(streams.iter().all(|stream| stream["count"].as_u64() > Some(10)), "{json}");
    }

    /// The player, to wait for its end; a process that is over takes its place.
    fn replace_player(&mut self) -> Running {
        std::mem::replace(&mut self.player, self.place.start(&["--version"]))
    }

    /// The server, likewise.
    fn replace_server(&mut self) -> Running {
        std::mem::replace(&mut self.server, self.place.start(&["--version"]))
    }

    fn control(&self, args: &[&str]) -> serde_json::Value {
        let mut all = vec!["control", "--json"];
        all.extend_from_slice(args);
        let out = self.place.run(&all).expect(0).out;
        serde_json::from_str(&out).unwrap()
    }
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |about| about.len())
}

/// That contact is lost within 3 s is shown in virtual time (`netlab/tests/contact_lost.rs`).
#[test]
fn a_peer_that_is_killed_is_noticed_and_what_arrived_is_kept() {
    let mut pair = Pair::new(&[], &["--give-up", "1s"]);
    assert!(pair.player.is_running() && pair.server.is_running());
    let len_before = len(&pair.saved().unwrap());
    let server = pair.replace_server();
    server.kill();
    let run = pair.replace_player().wait(LONG).expect(1);
    run.says(&["contact did not come back"]);
    assert!(run.out.contains("is lost: waiting for it"), "{}", run.all());
    // The ledger closes with an open end: how much was sent only the dead could say.
    in_order(&run.out, &["flow ", "video", "open end", "audio", "open end", "saved "]);
    pair.check_saved(&run.out);
    assert!(len(&pair.saved().unwrap()) >= len_before);
}

#[test]
fn a_player_that_waits_for_contact_is_ended_by_a_signal() {
    let mut pair = Pair::new(&[], &[]);
    let server = pair.replace_server();
    server.kill();
    assert!(wait_until(LONG, || pair.player.out().contains("waiting for it")));
    pair.player.signal("INT");
    let run = pair.replace_player().wait(LONG).expect(130);
    in_order(&run.out, &["flow ", "video", "open end", "audio", "open end", "saved "]);
    pair.check_saved(&run.out);
}

#[test]
fn a_player_joins_a_server_again_that_was_started_anew() {
    let place = Place::new();
    place.movie("movie.avi", "4");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let (server, authority) = place.serve(&["a.toml"]);
    let uri = format!("dacapo://{authority}/movie");
    let player = place.start(&["play", &uri, "--reconnect"]);
    assert!(wait_until(LONG, || server.out().contains("joined movie")));
    server.kill();
    let port = authority.rsplit(':').next().unwrap().to_owned();
    let again = place.start(&["serve", "a.toml", "--port", &port]);
    let run = player.wait(LONG).expect(0);
    run.says(&["started anew", "joining again"]);
    assert!(run.out.contains("is lost: waiting for it"), "{}", run.all());
    in_order(&run.out, &["flow ", "video", "closes", "audio", "closes"]);
    again.signal("INT");
    again.wait(LONG).expect(130);
}

#[test]
fn an_interrupted_player_closes_in_order_and_prints_its_ledger() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut pair = Pair::new(&["--once"], &[]);
        // Some programs, timeout(1) for one, send a signal twice.
        pair.player.signal(signal);
        pair.player.signal(signal);
        let run = pair.replace_player().wait(LONG).expect(code);
        in_order(&run.out, &["flow ", "video", "closes", "audio", "closes", "saved "]);
        assert_eq!(run.out.matches("closes").count(), 2, "{}", run.all());
        assert!(!run.err.contains("dacapo: "), "{}", run.all());
        pair.check_saved(&run.out);
        let run = pair.replace_server().wait(LONG).expect(0);
        let words = ["joined movie", "left movie", "video", "closes", "audio", "closes"];
        in_order(&run.out, &words);
        assert_eq!(run.out.matches("closes").count(), 2, "{}", run.all());
    }
}

#[test]
fn an_interrupted_server_closes_every_session_in_order() {
    let mut pair = Pair::new(&[], &[]);
    let second = pair.place.start(&["play", &pair.uri, "--save", "second"]);
    // The server knows that somebody joined before the player does; what it saves it has.
    let has_bytes = || pair.saved_in("second").is_some_and(|path| len(&path) > 0);
    assert!(wait_until(LONG, has_bytes), "{}", pair.server.out());
    pair.server.signal("INT");
    let run = pair.replace_server().wait(LONG).expect(130);
    let left = ["left movie", "video", "closes", "audio", "closes"];
    in_order(&run.out, &[&["joined movie", "joined movie"], &left[..], &left[..]].concat());
    assert_eq!(run.out.matches("left movie").count(), 2, "{}", run.all());
    assert_eq!(run.out.matches("closes").count(), 4, "{}", run.all());
    second.wait(LONG).expect(0);
    let run = pair.replace_player().wait(LONG).expect(0);
    in_order(&run.out, &["flow ", "closes", "closes", "saved "]);
    pair.check_saved(&run.out);
}

#[test]
fn a_full_disk_is_one_error_for_all_flows_of_the_file() {
    let place = Place::new();
    place.movie("movie.avi", "5");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let (_server, authority) = place.serve(&["a.toml", "--speed", "8"]);
    // A limit of 100 or 200 KiB, by the shell; the signal that tells of it would end the program.
    let limited = "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"";
    let uri = format!("dacapo://{authority}/movie");
    for json in [false, true] {
        let mut args = vec!["-c", limited, env!("CARGO_BIN_EXE_dacapo"), "play", &uri];
        args.extend(["--save", "out", "--force"]);
        args.extend(json.then_some("--json"));
        let run = place.start_command(place.program("sh", &args)).wait(LONG).expect(1);
        run.says(&["video, audio: out/movie.avi: ", "too large"]);
        let errors = run.err.lines().filter(|line| line.starts_with("dacapo: "));
        assert_eq!(errors.count(), 1, "{}", run.all());
        if json {
            let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
            for flow in json["flows"].as_array().unwrap() {
                assert_eq!(flow["errors"].as_array().unwrap().len(), 1, "{flow}");
            }
        }
    }
}

#[test]
fn a_player_is_controlled_from_another_process() {
    let pair = Pair::new(&[], &[]);
    let status = pair.control(&["status"]);
    assert_eq!(status["state"], "playing");
    assert!(status["round_trip_us"].as_u64().unwrap() < 10_000_000);
    let fast = pair.control(&["FF"]);
    assert_eq!(fast["state"], "fast forward");
    assert!(fast["generation"].as_u64() > status["generation"].as_u64(), "{status} {fast}");
    assert_eq!(pair.control(&["stop"])["state"], "stopped");
    let stopped = pair.control(&["status"]);
    assert_eq!(stopped["state"], "stopped");
    assert_eq!(pair.control(&["status"])["position_ns"], stopped["position_ns"]);
    assert_eq!(pair.control(&["play"])["state"], "playing");
    assert_eq!(pair.control(&["fps", "12.5"])["fps_millihertz"], 12_500);
    let start = pair.control(&["rwd"]);
    assert!(start["position_ns"].as_u64() < stopped["position_ns"].as_u64());
    let words = pair.place.run(&["control", "status"]).expect(0).out;
    assert!(words.contains("playing at ") && words.contains("round trip "), "{words}");
}

#[test]
fn control_without_a_player_says_so_and_with_several_lists_them() {
    let place = Place::new();
    place.run(&["control", "status"]).expect(1).says(&["no player runs", "dacapo play"]);
    place.run(&["control", "status", "--pid", "1"]).expect(1).says(&["no such player"]);
    let pair = Pair::new(&[], &[]);
    let second = pair.place.start(&["play", &pair.uri, "--save", "second"]);
    let socket = pair.place.path(&format!("run/dacapo/{}.sock", second.pid()));
    assert!(wait_until(LONG, || socket.exists()));
    let run = pair.place.run(&["control", "status"]).expect(1);
    run.says(&["--pid"]);
    for pid in [pair.player.pid(), second.pid()] {
        assert!(run.out.contains(&pid.to_string()), "{}", run.all());
    }
    let pid = second.pid().to_string();
    let answer = pair.control(&["stop", "--pid", &pid]);
    assert_eq!(answer["state"], "stopped");
    assert_eq!(
        pair.control(&["status", "--pid", &pair.player.pid().to_string()])["state"],
        "playing"
    );
    second.kill();
    let alone = pair.control(&["status"]);
    assert_eq!(alone["ok"], true, "the socket of a killed player is passed over");
}

#[test]
fn a_folder_that_cannot_be_written_is_named_and_nothing_is_played() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let (_server, authority) = place.serve(&["a.toml"]);
    place.write("file", "precious");
    let uri = format!("dacapo://{authority}/movie");
    let run = place.run(&["play", &uri, "--save", "file/out"]).expect(1);
    run.says(&["file/out"]);
    assert_eq!(std::fs::read(place.path("file")).unwrap(), b"precious");
}

#[test]
fn a_file_that_is_there_is_not_written_over_without_force() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let (_server, authority) = place.serve(&["a.toml", "--speed", "8"]);
    let uri = format!("dacapo://{authority}/movie");
    let args = ["play", &uri, "--save", "out"];
    place.run(&args).expect(0);
    let path = files(&place.path("out"), "avi").remove(0);
    std::fs::write(&path, "precious").unwrap();
    place.run(&args).expect(1).says(&["--force", path.file_name().unwrap().to_str().unwrap()]);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    place.run(&["play", &uri, "--save", "out", "--force"]).expect(0);
    assert_eq!(place.hashes(path.to_str().unwrap()), place.hashes("movie.avi"));
}

#[test]
fn json_holds_the_account_of_every_flow_and_quiet_prints_nothing() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let (_server, authority) = place.serve(&["a.toml", "--speed", "8"]);
    let uri = format!("dacapo://{authority}/movie");
    let out = place.run(&["play", &uri, "--save", "out", "--json"]).expect(0).out;
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["exit_code"], 0);
    assert_eq!(json["flows"][0]["account"]["units_sent"], 25);
    for flow in json["flows"].as_array().unwrap() {
        assert_eq!(flow["account"]["closes"], true, "{json}");
        assert_eq!(flow["account"]["hash"], "equal", "{json}");
    }
    assert!(json["saved"][0].as_str().unwrap().ends_with(".avi"), "{json}");
    let quiet = place.run(&["play", &uri, "--save", "out", "--force", "--quiet"]).expect(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
}

#[test]
fn without_ffplay_what_arrives_is_counted() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let (_server, authority) = place.serve(&["a.toml", "--speed", "8"]);
    let mut command = place.command(&["play", &format!("dacapo://{authority}/movie")]);
    command.env("PATH", place.path("state"));
    let run = place.start_command(command).wait(LONG).expect(0);
    assert!(run.out.contains("ffplay is not installed"), "{}", run.all());
    assert_eq!(run.out.matches("closes").count(), 2, "{}", run.all());
}
