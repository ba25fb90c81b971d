//! Faults of whole processes and of their system calls: killed and started again, stopped for a
//! while, a shifted clock, calls that fail. The ledgers close, transfers are whole, and nobody ends
//! without a word.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;
mod faulty;

use common::{Finished, LONG, Place, Running, movie_session, wait_until};
use faulty::{SYS_FAULTS, address, bytes, events, fails_typed, free_port, ledgers_close, start};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

fn movie_place(seconds: &str) -> Place {
    let place = Place::new();
    place.movie("movie.avi", seconds);
    place.write("movie.toml", movie_session("movie", "movie.avi"));
    place
}

fn serve(place: &Place, port: u16, more: &[&str], fault: Option<(&str, &str)>) -> Running {
    let port = port.to_string();
    let args = [&["serve", "movie.toml", "--json", "--port", &port], more].concat();
    let server = start(place, &args, fault);
    address(&server);
    server
}

/// Plays into a folder and waits until something is saved.
fn playing(place: &Place, port: u16, folder: &str) -> Running {
    let uri = format!("dacapo://127.0.0.1:{port}/movie");
    let player = start(place, &["play", &uri, "--save", folder, "--json"], None);
    let path = place.path(folder).join("movie.avi");
    let has_bytes = || fs::metadata(&path).is_ok_and(|found| found.len() > 0);
    assert!(wait_until(LONG, has_bytes), "{}", player.err());
    player
}

#[test]
fn a_server_that_is_killed_and_started_again_serves_the_next_player_at_once() {
    let (place, port) = (movie_place("4"), free_port());
    let server = serve(&place, port, &[], None);
    let first = playing(&place, port, "first");
    server.kill();
    let again = serve(&place, port, &["--speed", "8"], None);
    let uri = format!("dacapo://127.0.0.1:{port}/movie");
    let second = start(&place, &["play", &uri, "--save", "second", "--json"], None);
    let second = ledgers_close(&second.wait(LONG).expect(0));
    assert!(second["flows"][0]["media_frames"].as_u64() > Some(0), "{second}");
    // The first one is told, and what it has got is kept.
    let run = first.wait(LONG);
    fails_typed(&run);
    faulty::is_readable_or_nothing(&place, &place.path("first/movie.avi"));
    again.signal("INT");
    again.wait(LONG).expect(130);
}

#[test]
fn a_process_that_is_stopped_for_a_while_goes_on_and_the_ledgers_close() {
    for who in ["player", "server"] {
        let (place, port) = (movie_place("4"), free_port());
        let server = serve(&place, port, &["--once"], None);
        let player = playing(&place, port, "out");
        let stopped = if who == "player" { &player } else { &server };
        stopped.signal("STOP");
        std::thread::sleep(Duration::from_millis(1_500));
        stopped.signal("CONT");
        let run = player.wait(LONG).expect(0);
        let json = ledgers_close(&run);
        assert_eq!(json["flows"][0]["account"]["units_sent"], 100, "{who}: {json}");
        let run = server.wait(LONG).expect(0);
        assert_eq!(events(&run.out, "left")[0]["error"], Value::Null, "{who}: {}", run.all());
        faulty::is_readable_or_nothing(&place, &place.path("out/movie.avi"));
    }
}

/// Calls that fail and may cost units of a flow that may lose.
const FAULTS: [&str; 13] = [
    "sendmsg:ENOBUFS:1/7",
    "sendmsg:EMSGSIZE:1/40",
    "sendmsg:ECONNREFUSED:1/40",
    "sendmsg:ENETUNREACH:1/40",
    "sendmsg:EPERM:1/40",
    "sendmsg:EINTR:1/2,recvmsg:EINTR:1/2,wait:EINTR:1/2",
    "sendmsg:EAGAIN:1/2,recvmsg:EAGAIN:1/4",
    "sendmsg:PARTIAL:1/2",
    "recvmsg:ECONNREFUSED:1/20",
    "recvmsg:ENETUNREACH:1/20",
    "recvmsg:ENOMEM:1/20",
    "accept:ECONNABORTED:1/2",
    "tcpwrite:PARTIAL:1/2,tcpread:PARTIAL:1/2,tcpwrite:EAGAIN:1/3,tcpread:EINTR:1/3",
];

/// Tries every fault at each end; says all that went wrong.
fn each_fault(faults: &[&str], mut attempt: impl FnMut(&str, bool) -> Result<(), String>) {
    let mut wrong = Vec::new();
    for fault in faults {
        for is_first in [true, false] {
            if let Err(text) = attempt(fault, is_first) {
                wrong.push(format!("{fault}, at the first end {is_first}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), 2 * faults.len(), wrong.join("\n"));
}

fn ended_well(who: &str, run: &Finished) -> Result<(), String> {
    let is_well = run.code == Some(0) && !run.err.contains("panicked");
    if is_well { Ok(()) } else { Err(format!("{who} {:?}: {}", run.code, run.all())) }
}

#[test]
fn a_session_whose_system_calls_fail_runs_to_its_end_and_accounts_for_every_unit() {
    if !faulty::are_there() {
        return;
    }
    let place = movie_place("2");
    each_fault(&FAULTS, |fault, at_server| {
        let of = |is_it: bool| is_it.then_some((SYS_FAULTS, fault));
        let port = free_port();
        let server = serve(&place, port, &["--speed", "8", "--once"], of(at_server));
        let uri = format!("dacapo://127.0.0.1:{port}/movie");
        let play = ["play", &uri, "--save", "out", "--force", "--json"];
        let run = start(&place, &play, of(!at_server)).wait(LONG);
        ended_well("player", &run)?;
        let json = ledgers_close(&run);
        assert_eq!(json["flows"][0]["account"]["units_sent"], 50, "{fault}: {json}");
        ended_well("server", &server.wait(LONG))
    });
}

/// Sends a file while calls fail at one end.
fn transfer(place: &Place, content: &[u8], fault: &str, at_sender: bool) -> Result<(), String> {
    let of = |is_it: bool| is_it.then_some((SYS_FAULTS, fault));
    // Where the path is said it is not memory: it is TCP whose calls fail.
    let path = ["--path", "loopback"];
    let recv = [&["recv", "--port", "0", "--json", "--force", "--out", "in"], &path[..]].concat();
    let receiver = start(place, &recv, of(!at_sender));
    let addr = address(&receiver);
    let run = start(place, &["send", &addr, "a.bin", "--json"], of(at_sender)).wait(LONG);
    ended_well("sender", &run)?;
    let sent: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(sent["files"][0]["sha256"], faulty::sha256(content));
    ended_well("receiver", &receiver.wait(LONG))?;
    assert!(fs::read(place.path("in/a.bin")).unwrap() == content, "{fault}");
    fs::remove_file(place.path("in/a.bin")).unwrap();
    Ok(())
}

fn transfers_are_whole(faults: &[&str]) {
    if !faulty::are_there() {
        return;
    }
    let place = Place::new();
    let content = bytes(1_500_000);
    place.write("a.bin", &content);
    each_fault(faults, |fault, at_sender| transfer(&place, &content, fault, at_sender));
}

#[test]
fn a_transfer_whose_system_calls_fail_is_whole_at_the_other_end() {
    let more = ["tcpwrite:PARTIAL:1/1", "tcpread:PARTIAL:1/1", "tcpread:EAGAIN:1/2"];
    transfers_are_whole(&[&FAULTS[..], &more].concat());
}

#[test]
fn who_got_the_last_descriptor_is_not_given_up_for_nobody() {
    transfers_are_whole(&["accept:EMFILE:1/2"]);
}

#[test]
fn no_way_to_the_peer_is_code_3_with_the_address() {
    if !faulty::are_there() {
        return;
    }
    let place = Place::new();
    place.write("a.bin", "a");
    let fault = Some((SYS_FAULTS, "connect:ENETUNREACH:1/1"));
    let run = start(&place, &["send", "127.0.0.1:9", "a.bin"], fault).wait(LONG).expect(3);
    run.says(&["dacapo: ", "127.0.0.1:9"]);
}

/// A name space of clocks in which the monotonic clock is a day and more ahead: what one end reads
/// is far from what the other reads.
#[test]
fn two_ends_whose_monotonic_clocks_are_far_apart_play_as_usual() {
    let place = movie_place("2");
    let program = env!("CARGO_BIN_EXE_dacapo");
    let apart = ["--time", "--monotonic", "100000", "--boottime", "100000", "--fork", program];
    let probe = place.program("unshare", &[&apart[..6], &["true"]].concat());
    if place.start_command(probe).wait(LONG).code != Some(0) {
        dacapo_base::skip("this user may not make a name space of clocks");
        return;
    }
    let port = free_port();
    let server = serve(&place, port, &["--speed", "8", "--once"], None);
    let uri = format!("dacapo://127.0.0.1:{port}/movie");
    let args = [&apart[..], &["play", &uri, "--save", "out", "--json"]].concat();
    let run = place.start_command(place.program("unshare", &args)).wait(LONG).expect(0);
    let json = ledgers_close(&run);
    for flow in json["flows"].as_array().unwrap() {
        // Nothing is a day late or early: the distance of the clocks is measured, not assumed.
        let late_ns = flow["lateness"]["ns_max"].as_i64().unwrap_or(0).abs();
        assert!(late_ns < 3_600_000_000_000, "{flow}");
        assert!(flow["media_frames"].as_u64() > Some(0), "{flow}");
    }
    server.wait(LONG).expect(0);
}

/// The wall clock may jump by years; a timeout that is measured with it fires or never does.
#[test]
fn the_wall_clock_is_read_at_one_place_and_that_is_for_stamps() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["crates", "apps"] {
        find_wall_clocks(&root.join(folder), &mut found);
    }
    found.sort();
    let allowed = ["crates/netlab/src/plain_tls/clock.rs", "crates/sys/src/clock.rs"];
    let found: Vec<String> = found
        .into_iter()
        .map(|path| path.split("/../../").last().unwrap().to_owned())
        .filter(|path| !allowed.contains(&path.as_str()))
        .collect();
    assert_eq!(found, [""; 0], "take dacapo_sys::clock::now(), which never jumps");
    let clock = fs::read_to_string(root.join("crates/sys/src/clock.rs")).unwrap();
    assert_eq!(clock.matches("SystemTime::now").count(), 1, "beside wall()");
}

/// Sources that read the wall clock: by `std`, by the system's call, or by what `sys` has for logs.
fn find_wall_clocks(folder: &Path, found: &mut Vec<String>) {
    // Written so that this file does not hold them.
    let words = [["System", "Time"], ["CLOCK_", "REALTIME"], ["gettime", "ofday"]];
    let words: Vec<String> = words.into_iter().map(|parts| parts.concat()).collect();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "target" {
            find_wall_clocks(&path, found);
        } else if name.ends_with(".rs") && name != "faults_process.rs" {
            let text = fs::read_to_string(&path).unwrap();
            if words.iter().any(|word| text.contains(word)) {
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
}
