//! A movie by two cables at once, of which one is pulled: two network namespaces with two cables.
//! Without the right to make them a test says so and ends.
//!
//! ```text
//!   near  10.84.1.1 ---- 10.84.1.2  far (serves at both)
//!         10.84.2.1 ---- 10.84.2.2
//! ```
//!
//! Nothing here asks how long something took.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::veth::ip;
use common::{LONG, Place, files, movie_session, wait_until};
use dacapo_sys::netns::Namespace;
use serde_json::Value;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Two ends with two cables between them; `None`, and a word, where there can be none.
fn network() -> Option<[Namespace; 2]> {
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    if dacapo_sys::process::uid() != 0 || !has_ip {
        dacapo_base::skip("two cables between namespaces: this is not root, or has no `ip`");
        return None;
    }
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = |what: &str| format!("dacapo-bond-{what}-{}-{number}", std::process::id());
    let [near, far] = ["near", "far"].map(|what| Namespace::create(&name(what)));
    let spaces = [near.ok()?, far.unwrap()];
    let [near, far] = [&spaces[0], &spaces[1]].map(Namespace::name);
    for cable in 1..=2 {
        ip(&format!("link add c{cable} netns {near} type veth peer name c{cable} netns {far}"));
        for (host, space) in [(1, near), (2, far)] {
            ip(&format!("-n {space} address add 10.84.{cable}.{host}/24 dev c{cable}"));
            ip(&format!("-n {space} link set c{cable} up"));
        }
    }
    Some(spaces)
}

/// A movie by both cables, of which this one is pulled while it is played.
fn is_whole_when_pulled(cable: u8) {
    let Some([near, far]) = network() else { return };
    let place = Place::new();
    place.run(&["testmovie", "movie.avi", "--duration", "6", "--size", "320x240"]).expect(0);
    place.write("a.toml", movie_session("movie", "movie.avi").replace("\"udp\"", "\"bond\""));
    let listen = ["--listen", "10.84.1.2", "--listen", "10.84.2.2"];
    let serve = [&["serve", "a.toml", "--once", "--json"], &listen[..]].concat();
    let server = far.run(|| place.start(&serve)).unwrap();
    server.wait_for_out("listening", LONG);
    let play = ["play", "dacapo://10.84.1.2/movie", "--save", "out", "--json"];
    let player = near.run(|| place.start(&play)).unwrap();
    let saved = || match place.path("out").is_dir() {
        true => {
            files(&place.path("out"), "avi").iter().map(|it| it.metadata().unwrap().len()).sum()
        }
        false => 0,
    };
    assert!(wait_until(LONG, || saved() > 200_000), "nothing is played: {}", server.out());
    ip(&format!("-n {} link set c{cable} down", far.name()));
    let run = player.wait(LONG);
    let played: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}", run.all()));
    assert_eq!(run.code, Some(0), "{}", run.all());
    server.wait(LONG).expect(0);
    for flow in played["flows"].as_array().unwrap() {
        let count = |key: &str| flow["account"][key].as_u64().unwrap();
        assert!(count("units_sent") > 0, "{flow}");
        assert_eq!((count("units_lost"), count("units_unknown")), (0, 0), "{flow}");
    }
}

#[test]
fn nothing_is_lost_when_the_first_cable_is_pulled() {
    is_whole_when_pulled(1);
}

#[test]
fn nothing_is_lost_when_the_second_cable_is_pulled() {
    is_whole_when_pulled(2);
}

#[test]
fn a_bond_of_one_is_refused_with_what_to_do() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi").replace("\"udp\"", "\"bond\""));
    let server = place.start(&["serve", "a.toml", "--listen", "127.0.0.1:0", "--json"]);
    server.wait_for_out("listening", LONG);
    let out = server.out();
    let event: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    let at = event["addresses"][0].as_str().unwrap_or_else(|| panic!("{out}"));
    let run = place.run(&["play", &format!("dacapo://{at}/movie"), "--save", "out"]);
    assert_ne!(run.code, Some(0), "{}", run.all());
    assert!(
        run.all().contains("several paths") && run.all().contains("listen at two"),
        "{}",
        run.all()
    );
}
