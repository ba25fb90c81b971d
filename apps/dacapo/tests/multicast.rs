//! A session whose flows go to multicast groups: `dacapo explain`, `serve` and several `play`.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{LONG, Place, files, in_order, movie_session, wait_until};

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A session with a movie of so many seconds, both flows to a group.
fn group_session(place: &Place, seconds: &str) -> u16 {
    place.movie("movie.avi", seconds);
    let port = free_port();
    let group = format!("multicast = \"239.255.79.1:{port}\"\nbound =");
    place.write("a.toml", movie_session("movie", "movie.avi").replace("bound =", &group));
    port
}

#[test]
fn two_players_get_the_whole_movie_and_a_late_one_the_rest() {
    let place = Place::new();
    group_session(&place, "6");
    let (server, authority) = place.serve(&["a.toml"]);
    let uri = format!("dacapo://{authority}/movie");
    let early: Vec<_> =
        ["one", "two"].map(|out| place.start(&["play", &uri, "--save", out])).into_iter().collect();
    let saved = |out: &str| {
        let out = place.path(out);
        let files = if out.is_dir() { files(&out, "avi") } else { Vec::new() };
        files.first().map_or(0, |path| std::fs::metadata(path).map_or(0, |about| about.len()))
    };
    assert!(wait_until(LONG, || saved("one") > 300_000), "{}", early[0].out());
    let late = place.start(&["play", &uri, "--save", "late"]);
    for player in early {
        let run = player.wait(LONG).expect(0);
        in_order(&run.out, &["udp-multicast", "flow ", "video", "closes", "audio", "closes"]);
    }
    let run = late.wait(LONG).expect(0);
    in_order(&run.out, &["flow ", "video", "closes", "audio", "closes", "saved "]);
    let pictures = |out: &str| {
        let path = files(&place.path(out), "avi").remove(0);
        let json = place.run(&["inspect", "--json", path.to_str().unwrap()]).expect(0).out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["streams"][0]["count"].as_u64().unwrap()
    };
    let most = pictures("one").max(pictures("two"));
    assert_eq!(most, 150, "who was first was there from the beginning");
    assert!((1..150).contains(&pictures("late")), "it came late: {}", pictures("late"));
    server.signal("TERM");
    let run = server.wait(LONG).expect(143);
    assert_eq!(run.out.matches("closes").count(), 6, "{}", run.all());
}

#[test]
fn two_players_get_every_picture_over_streams_of_one_source() {
    let place = Place::new();
    place.movie("movie.avi", "3");
    let text = movie_session("movie", "movie.avi");
    place.write("a.toml", text.replace("\"udp\"", "\"tcp-multicast\""));
    let (server, authority) = place.serve(&["a.toml"]);
    let uri = format!("dacapo://{authority}/movie");
    let players = ["one", "two"].map(|out| place.start(&["play", &uri, "--save", out]));
    for player in players {
        let run = player.wait(LONG).expect(0);
        in_order(&run.out, &["tcp-multicast", "flow ", "video", "closes", "audio", "closes"]);
    }
    server.signal("TERM");
    let run = server.wait(LONG).expect(143);
    assert_eq!(run.out.matches("closes").count(), 4, "{}", run.all());
}

#[test]
fn explain_says_where_a_flow_goes_and_wrong_groups_are_named() {
    let place = Place::new();
    let port = group_session(&place, "1");
    let out = place.run(&["explain", "a.toml"]).expect(0).out;
    assert!(out.contains("segment ! sequence ! checksum ! udp-multicast"), "{out}");
    let out = place.run(&["check", "a.toml"]).expect(0).out;
    let group = format!("sent once for all participants, to group 239.255.79.1:{port}");
    assert!(out.contains(&group), "{out}");
    let text = std::fs::read_to_string(place.path("a.toml")).unwrap();
    place.write("wrong.toml", text.replace("239.255.79.1", "10.0.0.1"));
    let run = place.run(&["check", "wrong.toml"]).expect(5);
    run.says(&["multicast", "is not a group", "239.1.2.3:5004"]);
}
