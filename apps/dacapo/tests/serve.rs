//! `dacapo serve`, `ls`, `check` and `inspect`: what is served, and what is refused in which words.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{LONG, Place, flow, movie_session, session};
use std::time::Duration;

/// Far less than the ten seconds that silence takes.
const SOON: Duration = Duration::from_secs(5);

#[test]
fn ls_shows_every_session_for_people_and_as_json() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("first", "movie.avi"));
    place.write("b.toml", movie_session("second", "movie.avi"));
    let (server, authority) = place.serve(&["a.toml", "b.toml"]);
    let table = place.run(&["ls", &authority]).expect(0).out;
    for name in ["first", "second"] {
        let uri = format!("dacapo://{authority}/{name}");
        assert!(table.contains(&uri), "{table}");
    }
    assert!(table.contains("A test"), "{table}");
    let json = place.run(&["ls", &authority, "--json"]).expect(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["name"], "first");
    assert_eq!(json[1]["flows"], 2);
    assert_eq!(json[1]["participants"], 0);
    server.signal("TERM");
    server.wait(LONG).expect(143);
}

#[test]
fn a_server_at_every_address_tells_programs_on_this_host_how_to_reach_it() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("first", "movie.avi"));
    let (server, authority) = place.serve(&["a.toml", "--listen", "0.0.0.0"]);
    assert!(authority.starts_with("127.0.0.1:"), "{authority}");
    assert!(!server.out().contains("this host only"), "{}", server.out());
    assert!(place.run(&["ls", &authority]).expect(0).out.contains("first"));
}

#[test]
fn a_name_that_is_not_served_is_refused_by_name() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("first", "movie.avi"));
    let (_server, authority) = place.serve(&["a.toml"]);
    let uri = format!("dacapo://{authority}/nothing");
    let run = place.run(&["play", &uri, "--save", "out"]).expect(1);
    run.says(&["dacapo: play dacapo://", "no session of this name is served", "nothing"]);
}

#[test]
fn an_address_where_nothing_listens_is_code_3() {
    let place = Place::new();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let uri = format!("dacapo://127.0.0.1:{port}/movie");
    let play = place.start(&["play", &uri, "--save", "out"]);
    let host = format!("127.0.0.1:{port}");
    let ls = place.start(&["ls", &host]);
    for run in [play.wait(LONG).expect(3), ls.wait(LONG).expect(3)] {
        run.says(&["nothing listens at the address", &host, "`dacapo serve`", "--wait 10s"]);
        assert!(run.took < SOON, "{:?}", run.took);
    }
}

#[test]
fn who_waits_finds_a_server_that_starts_later() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    drop(taken);
    let (host, uri) = (format!("127.0.0.1:{port}"), format!("dacapo://127.0.0.1:{port}/movie"));
    let ls = place.start(&["ls", &host, "--wait", "2min"]);
    let play = place.start(&["play", &uri, "--save", "out", "--wait", "2min"]);
    // Both are refused meanwhile.
    std::thread::sleep(Duration::from_secs(2));
    let _server = place.start(&["serve", "a.toml", "--port", &port]);
    for run in [play, ls] {
        run.wait(LONG).expect(0);
    }
}

#[test]
fn a_port_in_use_is_named() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("first", "movie.avi"));
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = place.run(&["serve", "a.toml", "--port", &port]).expect(1);
    run.says(&["dacapo: listen: ", &port, "in use"]);
}

#[test]
fn an_unknown_key_in_a_session_file_is_named_with_its_line() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    let text = movie_session("first", "movie.avi").replacen("bound =", "bond =", 1);
    let line = text.lines().position(|line| line.starts_with("bond")).unwrap() + 1;
    place.write("a.toml", text);
    for command in ["serve", "check"] {
        let run = place.run(&[command, "a.toml"]).expect(5);
        run.says(&[&format!("a.toml:{line}: "), "bond", "bound"]);
    }
}

#[test]
fn an_illegal_graph_is_refused_with_the_reason() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    let text = movie_session("first", "movie.avi");
    let wrong = text.replacen(
        "\"segment\", \"sequence\", \"checksum\"",
        "\"checksum\", \"sequence\", \"segment\"",
        1,
    );
    place.write("order.toml", wrong);
    place.run(&["check", "order.toml"]).expect(5).says(&["order.toml:", "graph"]);
    place.write("unknown.toml", text.replacen("\"sequence\"", "\"sequense\"", 1));
    place.run(&["serve", "unknown.toml"]).expect(5).says(&["unknown.toml:", "sequense"]);
}

#[test]
fn every_problem_of_every_file_is_printed_at_once() {
    let place = Place::new();
    place.write("a.toml", movie_session("first", "none.avi").replace("udp", "pigeon"));
    place.write("b.toml", "[session]\nname = \"B\"\n");
    let run = place.run(&["serve", "a.toml", "b.toml"]).expect(5);
    run.says(&["a.toml:", "pigeon", "b.toml:"]);
}

#[test]
fn media_files_that_are_missing_empty_cut_off_or_random_are_refused() {
    let place = Place::new();
    let movie = std::fs::read(place.movie("movie.avi", "1")).unwrap();
    place.write("empty.avi", "");
    place.write("cut.avi", &movie[..60]);
    let mut state = 1_u32;
    let random = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    place.write("random.avi", (0..10_000).map(random).collect::<Vec<u8>>());
    place.write("clip.mp4", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom\0\0\0\0");
    std::fs::create_dir(place.path("folder.avi")).unwrap();
    for name in ["missing.avi", "empty.avi", "cut.avi", "random.avi", "clip.mp4", "folder.avi"] {
        place.write("a.toml", movie_session("first", name));
        place.run(&["serve", "a.toml", "--port", "0"]).expect(5).says(&[name]);
        place.run(&["inspect", name]).expect(5).says(&[name]);
    }
    place.write("a.toml", movie_session("first", "clip.mp4"));
    place.run(&["check", "a.toml"]).expect(5).says(&["ffmpeg -i"]);
}

#[test]
fn a_media_file_that_is_cut_off_in_the_middle_is_served_as_far_as_it_goes_with_a_warning() {
    let place = Place::new();
    let movie = std::fs::read(place.movie("movie.avi", "2")).unwrap();
    place.write("cut.avi", &movie[..movie.len() / 2]);
    place.write("a.toml", movie_session("cut", "cut.avi"));
    let (server, authority) = place.serve(&["a.toml", "--once", "--speed", "8"]);
    let uri = format!("dacapo://{authority}/cut");
    place.run(&["play", &uri, "--save", "out"]).expect(0);
    server.wait(LONG).expect(0).says(&["dacapo: serve: ", "cut.avi", "ends at byte"]);
    assert_eq!(place.hashes("out/cut.avi"), place.hashes("cut.avi"));
}

#[test]
fn check_describes_a_file_that_is_right() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("first", "movie.avi"));
    let out = place.run(&["check", "a.toml"]).expect(0).out;
    for text in ["first", "video", "audio", "segment", "sequence", "checksum", "udp"] {
        assert!(out.contains(text), "{text:?} is not in {out}");
    }
    place.run(&["check", "none.toml"]).expect(5).says(&["none.toml"]);
}

#[test]
fn a_session_without_media_files_is_served_too() {
    let place = Place::new();
    let card = "{ test = \"movie\", stream = \"video\", duration = \"1 s\" }";
    place.write("card.toml", session("card", &[flow("picture", card)]));
    let (server, authority) = place.serve(&["card.toml", "--once", "--speed", "8"]);
    let uri = format!("dacapo://{authority}/card");
    place.run(&["play", &uri, "--save", "out"]).expect(0);
    server.wait(LONG).expect(0);
    assert_eq!(common::files(&place.path("out"), "avi").len(), 1);
}

#[test]
fn media_are_sent_as_fast_as_is_asked_or_what_bounds_them_is_named() {
    let place = Place::new();
    place.run(&["testmovie", "radio.wav", "--wav", "--duration", "10"]).expect(0);
    let radio = |bound: &str| {
        let text = format!(
            "[session]\nname = \"radio\"\n[[flow]]\nname = \"sound\"\nfrom = \"creator\"\n\
             source = {{ file = \"radio.wav\" }}\n{bound}\n\
             attributes = {{ order = \"ordered\" }}\n"
        );
        place.write("radio.toml", text);
    };
    radio("bound = \"2 Mbit/s\"");
    let run = place.run(&["serve", "radio.toml", "--port", "0", "--speed", "10"]).expect(5);
    run.says(&["radio.toml:7: flow[0].bound: at 10 times its speed", "at most 1.2 times as fast"]);
    radio("");
    let (server, authority) = place.serve(&["radio.toml", "--once", "--speed", "10"]);
    let uri = format!("dacapo://{authority}/radio");
    let played = place.run(&["play", &uri, "--save", "out", "--json"]).expect(0);
    let played: serde_json::Value = serde_json::from_str(&played.out).unwrap();
    let account = &played["flows"][0]["account"];
    assert_eq!((&account["closes"], &account["hash"]), (&true.into(), &"equal".into()));
    assert!(server.wait(LONG).expect(0).out.contains("closes  equal"));
    assert_eq!(place.hashes("out/radio-sound.wav"), place.hashes("radio.wav"));
}

#[test]
fn events_in_json_say_what_the_words_say() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let mut outs = Vec::new();
    for json in [true, false] {
        let mut args = vec!["serve", "a.toml", "--port", "0", "--once", "--speed", "8"];
        args.extend(json.then_some("--json"));
        let server = place.start(&args);
        // The last that it says before somebody comes.
        let first = server.wait_for_out(if json { "}\n" } else { "identity " }, LONG);
        let authority = first.split("dacapo://").nth(1).unwrap().split('/').next().unwrap();
        let unknown = format!("dacapo://{authority}/unknown");
        place.run(&["play", &unknown, "--save", "out"]).expect(1);
        let uri = format!("dacapo://{authority}/movie");
        place.run(&["play", &uri, "--save", "out", "--force"]).expect(0);
        outs.push((server.wait(LONG).expect(0).out, authority.to_owned()));
    }
    let events = outs[0].0.lines().map(|line| serde_json::from_str(line).unwrap());
    let events: Vec<serde_json::Value> = events.collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["listening", "refused", "joined", "left"], "{}", outs[0].0);
    let [listening, refused, joined, left] = &events[..] else { panic!("{events:?}") };
    let authority = &outs[0].1;
    assert_eq!(listening["ready"], format!("dacapo://{authority}/"));
    assert_eq!(listening["sessions"][0]["uri"], format!("dacapo://{authority}/movie"));
    assert_eq!((&joined["session"], &left["session"]), (&"movie".into(), &"movie".into()));
    assert_eq!(joined["peer"], left["peer"]);
    assert_eq!(joined["flows"], listening["sessions"][0]["flows"], "as they are served");
    assert!(joined["path"]["rtt_us_min"].as_f64().unwrap() > 0.0, "{joined}");
    assert_eq!(joined["path"]["loss_ppm"], serde_json::Value::Null, "nothing is known of it yet");
    assert_eq!(left["error"], serde_json::Value::Null);
    assert_eq!(left["accounts"][0]["units_sent"], 25);
    assert_eq!(left["accounts"][1]["hash"], "equal");
    let words = &outs[1].0;
    for word in [
        &listening["identity"],
        &listening["sessions"][0]["title"],
        &listening["sessions"][0]["flows"][0]["medium"],
        &listening["sessions"][0]["flows"][1]["graph"],
        &refused["error"],
        &joined["identity"],
        &left["accounts"][0]["hash"],
    ] {
        assert!(words.contains(word.as_str().unwrap()), "{word} is not in {words}");
    }
}

#[test]
fn wrong_usage_is_code_2_and_every_help_names_the_exit_codes() {
    let place = Place::new();
    for wrong in [
        &["play", "http://host/x"][..],
        &["play"],
        &["serve"],
        &["testmovie", "a.avi", "--size", "8x8"],
        &["control", "dance"],
        &["completions", "tortoise"],
        &["doctor", "--port", "0"],
        &["send", "127.0.0.1"],
        &["recv", "--stdout", "--force"],
        &["recv", "--path", "moon"],
        &["explain"],
        &["bench"],
        &["nonsense"],
    ] {
        place.run(wrong).expect(2);
    }
    for command in [
        "serve",
        "ls",
        "play",
        "send",
        "recv",
        "control",
        "check",
        "explain",
        "modules",
        "testmovie",
        "inspect",
        "demo",
        "bench",
        "doctor",
        "completions",
        "man",
    ] {
        let out = place.run(&[command, "--help"]).expect(0).out;
        assert!(out.contains("Exit codes:") && out.contains("Examples:"), "{out}");
    }
    let version = place.run(&["--version"]).expect(0).out;
    assert_eq!(version.trim(), format!("dacapo {}", env!("CARGO_PKG_VERSION")));
}
