//! `dacapo xtp`: files and pings over UDP on loopback, and over IP and Ethernet between two
//! namespaces, where a test that cannot make them says so and ends.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;
#[path = "../../../crates/xtp/tests/common/gate.rs"]
#[allow(dead_code, reason = "whole captures are judged here only")]
mod gate;

use common::veth::ip;
use common::{Finished, LONG, Place, Running, in_order, wait_until};
use dacapo::Random;
use dacapo_sys::netns::Namespace;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const LUA: &str = concat!(
    "lua_script:",
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/xtp-net/tests/common/xtp.lua"
);

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The events of this name.
fn named(text: &str, name: &str) -> Vec<Value> {
    events(text).into_iter().filter(|event| event["event"] == name).collect()
}

/// A listener, and where it is.
fn listen(place: &Place, args: &[&str]) -> (Running, String) {
    let all = [&["xtp", "listen", "--json"], args].concat();
    let listener = place.start(&all);
    let text = listener.wait_for_out("\n", LONG);
    let address = events(text.lines().next().unwrap())[0]["address"].as_str().unwrap().to_owned();
    (listener, address)
}

fn listen_here(place: &Place, args: &[&str]) -> (Running, String) {
    listen(place, &[&["--listen", "127.0.0.1:0", "--out", "in"], args].concat())
}

fn random_file(place: &Place, name: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::from_number(len as u64).fill(&mut bytes);
    place.write(name, &bytes);
    bytes
}

/// What was given to the network is sent, dropped or waiting.
fn packets_close(run: &Finished) -> u64 {
    let packets = &named(&run.out, "totals")[0]["packets"];
    let count = |key: &str| packets[key].as_u64().unwrap();
    let dropped = packets["dropped"].as_object().unwrap().values();
    let dropped: u64 = dropped.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(count("given"), count("sent") + dropped + count("waiting"), "{packets}");
    count("sent") + count("received")
}

/// tshark reads all of a capture; gives how many packets it has.
fn judge(path: &Path) -> Option<u64> {
    gate::has_tshark().then(|| gate::judge_file(path, &["-X", LUA]) as u64)
}

#[test]
fn files_arrive_with_equal_hashes_and_captures_have_every_packet() {
    let place = Place::new();
    let (listener, address) = listen_here(&place, &["--once", "--capture", "far.pcapng"]);
    let long = random_file(&place, "long.bin", 300_000);
    random_file(&place, "empty.bin", 0);
    let args =
        ["xtp", "send", &address, "long.bin", "empty.bin", "--json", "--capture", "a.pcapng"];
    let sent = place.run(&args).expect(0);
    let files = named(&sent.out, "sent");
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|file| file["equal"] == true), "{}", sent.out);
    let received = listener.wait(LONG).expect(0);
    let event = &named(&received.out, "received")[0];
    assert_eq!(event["error"], Value::Null);
    for (file, name) in event["files"].as_array().unwrap().iter().zip(["long.bin", "empty.bin"]) {
        assert_eq!((&file["name"], &file["fault"]), (&Value::from(name), &Value::Null));
    }
    assert_eq!(event["files"][0]["sha256"], files[0]["sha256"]);
    assert!(std::fs::read(place.path("in/long.bin")).unwrap() == long);
    assert_eq!(std::fs::read(place.path("in/empty.bin")).unwrap(), b"");
    for (run, name) in [(&sent, "a.pcapng"), (&received, "far.pcapng")] {
        let count = packets_close(run);
        let seen = judge(&place.path(name));
        assert!(seen.is_none_or(|seen| seen == count), "{name}: {seen:?} of {count}");
    }
}

#[test]
fn files_and_pings_go_over_connections_too() {
    let place = Place::new();
    let tcp = ["--over", "tcp"];
    let (listener, address) = listen_here(&place, &[&tcp[..], &["--once"]].concat());
    let bytes = random_file(&place, "a.bin", 400_000);
    let ping = ["xtp", "ping", &address, "--count", "3", "--interval", "1ms"];
    place.run(&[&ping[..], &tcp].concat()).expect(0);
    let send = ["xtp", "send", &address, "a.bin", "--json", "--capture", "a.pcapng"];
    let sent = place.run(&[&send[..], &tcp].concat()).expect(0);
    assert_eq!(named(&sent.out, "sent")[0]["equal"], true);
    packets_close(&listener.wait(LONG).expect(0));
    assert!(std::fs::read(place.path("in/a.bin")).unwrap() == bytes);
    let seen = judge(&place.path("a.pcapng"));
    assert!(seen.is_none_or(|seen| seen == packets_close(&sent)), "{seen:?}");
}

#[test]
fn files_go_to_every_member_of_a_group_and_the_sender_says_who_has_them() {
    let place = Place::new();
    let bytes = random_file(&place, "a.bin", 400_000);
    let (first, address) = listen(
        &place,
        &[
            "--listen",
            "127.0.0.2:0",
            "--interface",
            "lo",
            "--group",
            "239.77.5.1",
            "--out",
            "first",
            "--once",
        ],
    );
    let port = address.rsplit_once(':').unwrap().1;
    let at = format!("127.0.0.3:{port}");
    let (second, _) = listen(
        &place,
        &[
            "--listen",
            &at,
            "--interface",
            "lo",
            "--group",
            "239.77.5.1",
            "--out",
            "second",
            "--once",
        ],
    );
    let group = format!("239.77.5.1:{port}");
    let send = ["xtp", "send", &group, "a.bin", "--interface", "lo", "--listen", "127.0.0.1:0"];
    let sent = place.run(&[&send[..], &["--members", "2", "--json"]].concat()).expect(0);
    assert_eq!(named(&sent.out, "joined").len(), 2);
    let left = named(&sent.out, "left");
    assert!(left.len() == 2 && left.iter().all(|it| it["complete"] == true), "{}", sent.out);
    packets_close(&sent);
    for (listener, name) in [(first, "first/a.bin"), (second, "second/a.bin")] {
        let received = listener.wait(LONG).expect(0);
        assert_eq!(named(&received.out, "received")[0]["files"][0]["fault"], Value::Null);
        assert!(std::fs::read(place.path(name)).unwrap() == bytes, "{name}");
    }
    place
        .run(&["xtp", "send", &address, "a.bin", "--members", "2"])
        .expect(1)
        .says(&["--members is for groups"]);
    place
        .run(&["xtp", "send", "239.77.5.1", "a.bin", "--over", "tcp"])
        .expect(1)
        .says(&["no groups", "--over udp"]);
    place
        .run(&["xtp", "listen", "--group", "192.0.2.1", "--listen", "127.0.0.1:0"])
        .expect(1)
        .says(&["192.0.2.1", "multicast address"]);
}

#[test]
fn more_files_than_may_be_open_go_in_one_association() {
    let place = Place::new();
    let (listener, address) = listen_here(&place, &["--once"]);
    let names: Vec<String> = (0..1_500).map(|number| format!("{number}.txt")).collect();
    for name in &names {
        place.write(name, name);
    }
    let mut send = vec!["xtp", "send", &address, "--json"];
    send.extend(names.iter().map(String::as_str));
    let sent = place.run(&send).expect(0);
    assert_eq!(named(&sent.out, "sent").len(), names.len());
    listener.wait(LONG).expect(0);
    assert_eq!(std::fs::read_to_string(place.path("in/1499.txt")).unwrap(), "1499.txt");
}

#[test]
fn pings_are_answered_with_their_times() {
    let place = Place::new();
    let (listener, address) = listen_here(&place, &[]);
    let args = ["xtp", "ping", &address, "--interval", "1ms", "--size", "20000", "--count"];
    let json = place.run(&[&args[..], &["20", "--json"]].concat()).expect(0);
    assert_eq!(named(&json.out, "answered").len(), 20);
    let totals = &named(&json.out, "totals")[0];
    let us = |key: &str| totals["us"][key].as_f64().unwrap();
    assert!(0.0 < us("min") && us("min") <= us("p50") && us("p50") <= us("p99"), "{totals}");
    packets_close(&json);
    let words = place.run(&[&args[..], &["1"]].concat()).expect(0);
    in_order(&words.out, &["20000 bytes from", " ms", "1 sent, 1 answered; min/p50/p99/max"]);
    listener.signal("TERM");
    let ended = listener.wait(LONG).expect(143);
    assert_eq!(named(&ended.out, "totals")[0]["pings"], 21);
}

/// A host that answers every transaction with the same bytes, until it has answered so many.
fn answer_alike(count: usize) -> (String, std::thread::JoinHandle<()>) {
    use dacapo::xtp_net::{Config, Host, InternetConfig, Listen, Message, Udp};
    let network = Udp::bind(&InternetConfig::new("127.0.0.1:0".parse().unwrap())).unwrap();
    let mut host = Host::new(Box::new(network), Config::default()).unwrap();
    host.listen(Listen::on(5_000)).unwrap();
    let address = host.local().to_string();
    let thread = std::thread::spawn(move || {
        for _ in 0..count {
            let until = host.after(LONG);
            let incoming = host.accept(until).unwrap();
            host.write(incoming.id, &Message::whole(b"always this"), until).unwrap();
            // The other end may be gone before.
            let _ = host.close(incoming.id, until);
        }
    });
    (address, thread)
}

#[test]
fn an_answer_with_other_bytes_is_none_and_that_is_said() {
    let place = Place::new();
    let (address, thread) = answer_alike(2);
    let run = place.run(&["xtp", "ping", &address, "--count", "2", "--interval", "1ms"]).expect(6);
    run.says(&["other bytes came back"]);
    in_order(&run.out, &["no answer from", "2 sent, 0 answered"]);
    thread.join().unwrap();
}

#[test]
fn what_is_there_stays_and_both_ends_say_that_nothing_came() {
    let place = Place::new();
    let (listener, address) = listen_here(&place, &["--once"]);
    place.write("a.txt", "new");
    place.write("in/a.txt", "precious");
    let sent = place.run(&["xtp", "send", &address, "a.txt"]).expect(1);
    sent.says(&["dacapo: xtp send to", "let go"]);
    let received = listener.wait(LONG).expect(6);
    let event = &named(&received.out, "received")[0];
    assert!(event["error"].as_str().unwrap().contains("--force"), "{event}");
    assert_eq!(std::fs::read_to_string(place.path("in/a.txt")).unwrap(), "precious");
}

#[test]
fn a_listener_that_is_interrupted_lets_its_sender_know_and_keeps_what_came() {
    let place = Place::new();
    let (listener, address) = listen_here(&place, &[]);
    random_file(&place, "long.bin", 50_000_000);
    let sender = place.start(&["xtp", "send", &address, "long.bin", "--rate", "8Mbit/s"]);
    let is_begun = || {
        let part = place.path("in/.long.bin.0.part");
        part.metadata().is_ok_and(|about| about.len() > 0)
    };
    assert!(wait_until(LONG, is_begun), "nothing came");
    listener.signal("INT");
    let ended = listener.wait(LONG).expect(130);
    assert!(named(&ended.out, "received")[0]["error"].as_str().unwrap().contains("given up"));
    sender.wait(LONG).expect(1).says(&["let go"]);
    assert!(place.path("in/long.bin.incomplete").exists());
    assert!(!place.path("in/long.bin").exists());
}

#[test]
fn what_stands_in_the_way_is_said_with_what_to_do() {
    let place = Place::new();
    place.write("a.txt", "a");
    let (_listener, address) = listen_here(&place, &[]);
    let run = |args: &[&str], code| place.run(&[&["xtp"], args].concat()).expect(code);
    run(&["listen", "--listen", &address], 1).says(&["in use", "another port"]);
    run(&["listen", "--listen", "203.0.113.9"], 1)
        .says(&["203.0.113.9", "no address of this host"]);
    run(&["send", &address, "a.txt", "--port", "7"], 3).says(&["refused", "no listener"]);
    let gone = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    run(&["send", &gone, "a.txt"], 3).says(&["nobody takes XTP there"]);
    run(&["ping", &gone, "--count", "1"], 3).says(&["nobody takes XTP there"]);
    run(&["send", &address, "b.txt"], 1).says(&["b.txt", "No such file"]);
    run(&["send", &address, "in"], 1).says(&["no file that can be sent"]);
    run(&["send", "no.such.host.invalid", "a.txt"], 3).says(&["no.such.host.invalid"]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap().to_string();
    run(&["ping", &at, "--count", "1", "--wait", "50ms"], 3).says(&["nothing came in time"]);
    run(&["listen", "--packet-len", "100", "--listen", "127.0.0.1:0"], 1).says(&["128 to 65507"]);
    run(&["listen", "--over", "ethernet"], 2).says(&["--interface"]);
    run(&["listen", "--over", "ethernet", "--interface", "nope"], 1).says(&["\"nope\"", "ip link"]);
    run(&["listen", "--over", "ethernet", "--interface", "lo"], 1).says(&["not Ethernet"]);
    run(&["ping", "1.2.3.4", "--over", "ethernet", "--interface", "lo"], 3).says(&["02:11:22"]);
    run(&["ping", &address, "--count", "1", "--capture", "/dev/full"], 1)
        .says(&["/dev/full", "No space left"]);
    run(&["capture", "nope", "x.pcapng"], 1).says(&["\"nope\""]);
    run(&["send", &address, "a.txt", "--rate", "fast"], 2).says(&["20Mbit/s"]);
}

#[test]
fn without_the_right_the_error_says_which_and_how_to_get_it() {
    let place = Place::new();
    let args = ["xtp", "listen", "--over", "ip", "--listen", "127.0.0.1", "--out", "."];
    let command = if dacapo_sys::process::uid() != 0 {
        place.command(&args)
    } else if Command::new("setpriv").arg("--version").output().is_ok() {
        let program = env!("CARGO_BIN_EXE_dacapo");
        let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", program];
        place.program("setpriv", &[&nobody[..], &args].concat())
    } else {
        return dacapo_base::skip("this is root, and there is no setpriv to be another");
    };
    let run = place.start_command(command).wait(LONG).expect(1);
    run.says(&["IP protocol 36 needs the right CAP_NET_RAW", "setcap", "UDP"]);
}

/// Two namespaces with a cable `v` between them: 10.83.0.1 and .2, fd83::1 and ::2.
fn cable() -> Option<[Namespace; 2]> {
    if dacapo_sys::process::uid() != 0 || Command::new("ip").arg("-V").output().is_err() {
        dacapo_base::skip("a cable between namespaces: this is not root, or has no `ip`");
        return None;
    }
    let name = |end| format!("dacapo-xtp-cli-{}-{end}", std::process::id());
    let ends = [1, 2].map(|end| Namespace::create(&name(end)).unwrap());
    let [a, b] = ends.each_ref().map(Namespace::name);
    ip(&format!("-n {a} link add v type veth peer name v netns {b}"));
    for (end, name) in [(1, a), (2, b)] {
        ip(&format!("-n {name} address add 10.83.0.{end}/24 dev v"));
        ip(&format!("-n {name} address add fd83::{end}/64 dev v nodad"));
        ip(&format!("-n {name} link set v up"));
    }
    let is_up =
        || [a, b].iter().all(|end| ip(&format!("-n {end} link show v")).contains("state UP"));
    assert!(wait_until(LONG, is_up), "the cable never came up");
    Some(ends)
}

#[test]
fn files_and_pings_cross_a_cable_over_every_network_and_a_capture_of_it_is_read_by_tshark() {
    let Some([near, far]) = cable() else { return };
    let place = Place::new();
    let bytes = random_file(&place, "a.bin", 50_000);
    for (at, over) in [
        ("10.83.0.2", &["--over", "ip"][..]),
        ("fd83::2", &["--over", "ip"]),
        ("[fd83::2]:4040", &["--over", "udp"]),
        ("", &["--over", "ethernet", "--interface", "v"]),
    ] {
        let local = if at.is_empty() { vec![] } else { vec!["--listen", at] };
        let listened = [over, &local, &["--out", "in", "--force", "--once"]].concat();
        let (listener, address) = far.run(|| listen(&place, &listened)).unwrap();
        let capture = ["xtp", "capture", "v", "seen.pcapng", "--json"];
        let capture = near.run(|| place.start(&capture)).unwrap();
        capture.wait_for_out("capturing", LONG);
        let ping = [&["xtp", "ping", &address, "--count", "2", "--interval", "1ms"], over].concat();
        near.run(|| place.run(&ping)).unwrap().expect(0);
        let send = [&["xtp", "send", &address, "a.bin", "--json"], over].concat();
        let sent = near.run(|| place.run(&send)).unwrap().expect(0);
        assert_eq!(named(&sent.out, "sent")[0]["equal"], true, "{over:?}");
        let received = listener.wait(LONG).expect(0);
        assert!(std::fs::read(place.path("in/a.bin")).unwrap() == bytes, "{over:?}");
        let of_far = packets_close(&received);
        capture.signal("INT");
        let seen = capture.wait(LONG).expect(130);
        let totals = &named(&seen.out, "totals")[0];
        assert_eq!(
            (&totals["packets"], &totals["dropped"]),
            (&of_far.into(), &0.into()),
            "{over:?}"
        );
        let judged = judge(&place.path("seen.pcapng"));
        assert!(judged.is_none_or(|count| count == of_far), "{over:?}: {judged:?}");
    }
}
