//! `dacapo doctor`: what it finds on a host as it is, and on one with something wrong.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{LONG, Place, movie_session};
use serde_json::Value;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};

const CHECKS: [&str; 29] = [
    "udp-port-ipv4",
    "tcp-port-ipv4",
    "udp-port-ipv6",
    "tcp-port-ipv6",
    "quic-port-ipv4",
    "quic-datagram-port-ipv4",
    "xtp-port-ipv4",
    "xtp-datagram-port-ipv4",
    "quic-port-ipv6",
    "quic-datagram-port-ipv6",
    "xtp-port-ipv6",
    "xtp-datagram-port-ipv6",
    "loopback-ipv4",
    "loopback-ipv6",
    "udp-gso",
    "udp-gro",
    "recv-buffer",
    "send-buffer",
    "clock-source",
    "clock-monotonic",
    "wake-up",
    "cpus",
    "open-files",
    "locked-memory",
    "capabilities",
    "identity",
    "runtime-folder",
    "ffplay",
    "ffmpeg",
];

/// The findings of a run, and that its code says what they say.
fn findings(place: &Place, args: &[&str]) -> Vec<Value> {
    let mut all = vec!["doctor", "--json"];
    all.extend_from_slice(args);
    let run = place.run(&all);
    let findings: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    let fails = findings.iter().any(|finding| finding["state"] == "fail");
    assert_eq!(run.code, Some(i32::from(fails)), "{}", run.all());
    findings
}

fn find<'a>(findings: &'a [Value], check: &str) -> &'a Value {
    findings.iter().find(|finding| finding["check"] == check).unwrap()
}

/// A port that only a test of this file uses: above those that systems hand out.
fn free_port() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = std::process::id() * 8 + COUNT.fetch_add(1, Ordering::Relaxed) % 8;
    (61_100 + number % 4_000).to_string()
}

#[test]
fn every_check_has_a_finding_and_nothing_is_made() {
    let place = Place::new();
    let port = free_port();
    let findings = findings(&place, &["--port", &port]);
    let checks: Vec<&str> = findings.iter().map(|it| it["check"].as_str().unwrap()).collect();
    assert_eq!(checks, CHECKS);
    for finding in &findings {
        assert_eq!(finding.as_object().unwrap().len(), 4, "{finding}");
        let state = finding["state"].as_str().unwrap();
        assert!(["ok", "info", "warn", "fail"].contains(&state), "{finding}");
        assert!(!finding["found"].as_str().unwrap().is_empty(), "{finding}");
        let has_advice = finding["advice"].is_string();
        assert!(has_advice || !["warn", "fail"].contains(&state), "{finding}");
    }
    assert_eq!(find(&findings, "udp-port-ipv4")["state"], "ok");
    assert_eq!(find(&findings, "loopback-ipv4")["state"], "ok");
    assert_eq!(find(&findings, "identity")["state"], "info");
    assert!(!place.path("state/dacapo").exists(), "no identity is made by looking");
    assert!(!place.path("run/dacapo").exists());
}

#[test]
fn the_table_has_every_check_and_a_verdict() {
    let place = Place::new();
    let port = free_port();
    let run = place.run(&["doctor", "--port", &port]);
    for check in CHECKS {
        assert!(run.out.contains(check), "{check} is not in {}", run.all());
    }
    assert!(run.out.contains("This host is "), "{}", run.all());
    assert!(!run.out.contains('\u{1b}'), "escape sequences without a terminal: {}", run.all());
}

#[test]
fn a_port_that_a_dacapo_serves_is_as_it_should_be_whoever_asks() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let (_server, authority) = place.serve(&["a.toml"]);
    let port = authority.rsplit_once(':').unwrap().1;
    let stranger = Place::new();
    for place in [&place, &stranger] {
        let findings = findings(place, &["--port", port]);
        let udp = find(&findings, "udp-port-ipv4");
        assert_eq!(udp["state"], "ok", "{udp}");
        let text = format!("{port} is held by a running dacapo with 1 session");
        assert_eq!(udp["found"], text.as_str());
    }
    assert!(!stranger.path("state/dacapo").exists(), "asking makes no identity");
}

#[test]
fn a_port_that_another_program_holds_fails_with_advice() {
    let place = Place::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port().to_string();
    let udp = findings(&place, &["--port", &port]);
    assert_eq!(find(&udp, "udp-port-ipv4")["state"], "fail");
    let advice = find(&udp, "udp-port-ipv4")["advice"].as_str().unwrap();
    assert!(advice.contains("--port") && advice.contains(&port), "{advice}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    assert_eq!(find(&findings(&place, &["--port", &port]), "tcp-port-ipv4")["state"], "fail");
}

#[test]
fn a_port_of_flows_that_another_program_holds_is_a_warning_with_advice() {
    let place = Place::new();
    let held = std::iter::repeat_with(|| UdpSocket::bind("127.0.0.1:0").unwrap()).take(64);
    let socket = held.into_iter().find(|it| it.local_addr().unwrap().port() > 11_100).unwrap();
    let port = socket.local_addr().unwrap().port();
    let control = (port - 10_000).to_string();
    let found = findings(&place, &["--port", &control]);
    let quic = find(&found, "quic-port-ipv4");
    assert_eq!(quic["state"], "warn", "{quic}");
    let advice = quic["advice"].as_str().unwrap();
    assert!(advice.contains("--port") && advice.contains(&port.to_string()), "{advice}");
}

#[test]
fn an_identity_is_named_and_one_that_others_may_read_fails() {
    let place = Place::new();
    let port = free_port();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let (server, _) = place.serve(&["a.toml"]);
    let fingerprint = server.out().split("identity ").nth(1).unwrap()[..50].to_owned();
    let found = findings(&place, &["--port", &port]);
    let identity = find(&found, "identity");
    assert_eq!(identity["state"], "ok");
    let text = identity["found"].as_str().unwrap();
    let key = place.path("state/dacapo/identity.key");
    assert!(text.contains(&fingerprint) && text.contains(key.to_str().unwrap()), "{text}");
    assert!(text.contains("mode 0600"), "{text}");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let exposed = findings(&place, &["--port", &port]);
    assert_eq!(find(&exposed, "identity")["state"], "fail");
    assert!(find(&exposed, "identity")["advice"].as_str().unwrap().contains("chmod 600"));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&key, "no key").unwrap();
    assert_eq!(find(&findings(&place, &["--port", &port]), "identity")["state"], "fail");
}

#[test]
fn what_is_missing_around_it_is_a_warning() {
    let place = Place::new();
    let port = free_port();
    let mut command = place.command(&["doctor", "--json", "--port", &port]);
    command.env("PATH", place.path("state")).env_remove("XDG_RUNTIME_DIR");
    let run = place.start_command(command).wait(LONG);
    let findings: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    assert_eq!(find(&findings, "ffplay")["state"], "warn");
    assert_eq!(find(&findings, "ffmpeg")["state"], "info");
    assert_eq!(find(&findings, "runtime-folder")["state"], "warn");
}
