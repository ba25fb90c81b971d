//! `dacapo bench xtp`: every byte is accounted for, and what cannot be measured says what to do.
//! How good the figures are decides nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../dacapo/tests/common/mod.rs"]
mod common;
mod eval;

use common::{LONG, Place, Running, in_order};
use dacapo::xtp_net::{Config, Open};
use dacapo::xtp_net::{Host, InternetConfig, Udp};
use eval::{count, json_of};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Very little; more than one run where that takes less than the time.
const SHORT: [&str; 4] = ["--bytes", "300000", "--seconds", "1ms"];
const ONE: [&str; 4] = ["--send-len", "4096", "--packet-len", "2048"];

fn bench(place: &Place, args: &[&str]) -> Running {
    eval::start(place, &[&["xtp"], args].concat())
}

fn closes(point: &Value) {
    assert_eq!(point["closes"], true, "{point}");
    let (sent, read) = (count(point, "bytes_sent"), count(point, "bytes_read"));
    assert_eq!(sent, read + count(point, "bytes_lost"), "{point}");
    let whole = 300_000_u64.div_ceil(count(point, "send_len")) * count(point, "send_len");
    assert_eq!(sent, whole * count(point, "runs"), "{point}");
    for figure in ["seconds", "mbit_per_s"] {
        assert!(point[figure].as_f64().unwrap() > 0.0, "{figure}: {point}");
    }
    assert!(count(&point["packets"], "sent") >= count(&point["calls"], "send"), "{point}");
}

#[test]
fn every_mode_and_length_is_measured_and_its_sum_closes() {
    let place = Place::new();
    let lens = ["--send-len", "512,65536", "--packet-len", "2048,4096", "--json"];
    let all = json_of(&bench(&place, &[&SHORT[..], &lens[..]].concat()).wait(LONG).expect(0));
    let points = all["points"].as_array().unwrap();
    assert_eq!(points.len(), 5 * 2 * 2);
    points.iter().for_each(closes);
    let is_reliable = |point: &&Value| point["mode"] == "ack-rel" || point["mode"] == "stream";
    for point in points.iter().filter(is_reliable) {
        assert_eq!(point["bytes_lost"], 0, "{point}");
    }
    let mbit_s = |mode: &str| {
        let is_it = |point: &&Value| {
            point["mode"] == mode && point["packet_len"] == 4_096 && point["send_len"] == 512
        };
        points.iter().find(is_it).unwrap()["mbit_per_s"].as_f64().unwrap()
    };
    let cost = all["derived"]
        .as_array()
        .unwrap()
        .iter()
        .find(|cost| (&cost["packet_len"], &cost["send_len"]) == (&json!(4_096), &json!(512)));
    let cost = |key: &str| cost.unwrap()[key].as_f64().unwrap();
    let (reliable, unreliable) = (mbit_s("ack-rel"), mbit_s("ack-un"));
    assert!((cost("reliability_mbit_per_s") - (unreliable - reliable)).abs() < 1e-6);
    assert!((cost("waiting_mbit_per_s") - (mbit_s("blast") - unreliable)).abs() < 1e-6);
    assert_eq!(all["then"]["best_mbit_per_s"][0]["ack_rel"], 13.97);
}

#[test]
fn a_far_end_that_was_started_by_hand_serves_one_after_the_other() {
    let place = Place::new();
    let far = bench(&place, &["--listen", "127.0.0.1:0", "--count", "2", "--json"]);
    let said: Value =
        serde_json::from_str(far.wait_for_out("\n", LONG).lines().next().unwrap()).unwrap();
    let at = said["addresses"][0].as_str().unwrap();
    // One run of each: at this rate it takes 20 ms at least.
    let modes = [at, "--mode", "stream,blast", "--rate", "80 Mbit/s", "--json"];
    let args = [&modes[..], &SHORT[..], &ONE[..]].concat();
    let all = json_of(&bench(&place, &args).wait(LONG).expect(0));
    let points = all["points"].as_array().unwrap();
    assert_eq!((points.len(), &all["far"]), (2, &json!(at)));
    points.iter().for_each(closes);
    assert!(all["derived"][0]["waiting_mbit_per_s"].is_null(), "{all}");
    let out = far.wait(LONG).expect(0).out;
    assert_eq!(out.matches("\"measured\"").count(), 2, "{out}");
}

#[test]
fn an_association_that_broke_counts_as_one_that_came() {
    let place = Place::new();
    let far = bench(&place, &["--listen", "127.0.0.1:0", "--count", "1", "--json"]);
    let said: Value =
        serde_json::from_str(far.wait_for_out("\n", LONG).lines().next().unwrap()).unwrap();
    let peer: SocketAddr = said["addresses"][0].as_str().unwrap().parse().unwrap();
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let network = Udp::bind(&InternetConfig::new(here)).unwrap();
    let mut host = Host::new(Box::new(network), Config::default()).unwrap();
    let at = |address: SocketAddr, port| SocketAddr::new(address.ip(), port);
    let open = Open::stream(peer, at(peer, 5_001), at(host.local(), 7));
    let id = host.open(&open).unwrap();
    host.wait_open(id, host.after(LONG)).unwrap();
    host.release(id).unwrap();
    let out = far.wait(LONG).expect(0).out;
    assert_eq!(out.matches("\"left\"").count(), 1, "{out}");
}

/// 300 kB at 8 Mbit/s take 300 ms, however fast the host is; the first burst of 10 ms is free.
#[test]
fn a_rate_is_kept() {
    let place = Place::new();
    let rate = ["--mode", "stream", "--rate", "8 Mbit/s", "--no-check", "--json"];
    let all = json_of(&bench(&place, &[&rate, &SHORT[..], &ONE[..]].concat()).wait(LONG).expect(0));
    assert_eq!(all["rate_bytes_per_s"], 1_000_000);
    assert_eq!((&all["no_check"], &all["run_max_seconds"]), (&json!(true), &Value::Null));
    assert!(all["points"][0]["mbit_per_s"].as_f64().unwrap() < 9.0, "{all}");
}

/// What a far end could say of each would fill a pipe after some hundred.
#[test]
fn a_far_end_here_serves_as_many_as_come() {
    let place = Place::new();
    let many = ["--bytes", "64", "--send-len", "64", "--packet-len", "2048", "--seconds", "100ms"];
    let all = json_of(
        &bench(&place, &[&many[..], &["--mode", "stream", "--json"]].concat()).wait(LONG).expect(0),
    );
    assert_eq!(all["points"][0]["closes"], true, "{all}");
}

/// 10 GB take longer than 50 ms.
#[test]
fn a_run_ends_early_where_it_may_not_last() {
    let place = Place::new();
    let most = ["--bytes", "10GB", "--seconds", "1ms", "--run-max", "50ms"];
    let modes = ["--mode", "stream,blast,ack-un", "--json"];
    let all = json_of(&bench(&place, &[&modes[..], &most, &ONE].concat()).wait(LONG).expect(0));
    for point in all["points"].as_array().unwrap() {
        assert_eq!((&point["closes"], &point["runs"]), (&json!(true), &json!(1)), "{point}");
        assert!((1..10_000_000_000).contains(&count(point, "bytes_sent")), "{point}");
    }
}

/// The pause after the first burst is longer than the run may be.
#[test]
fn pauses_count_where_a_run_may_not_last() {
    let place = Place::new();
    let most = ["--bytes", "10GB", "--seconds", "1ms", "--run-max", "50ms", "--mode", "blast"];
    let all =
        json_of(&bench(&place, &[&most[..], &["--json"], &ONE].concat()).wait(LONG).expect(0));
    let point = &all["points"][0];
    assert_eq!((&point["closes"], &point["runs"]), (&json!(true), &json!(1)), "{point}");
    assert!(count(point, "bytes_sent") < 1_000_000 + 4_096, "one burst: {point}");
}

#[test]
fn the_tables_name_the_paper_under_both_names_of_the_command() {
    let place = Place::new();
    for name in [["bench", "xtp"], ["xtp", "bench"]] {
        let args = [&name[..], &SHORT[..], &ONE[..], &["--mode", "ack-rel,ack-un"]].concat();
        let out = place.run(&args).expect(0).out;
        in_order(
            &out,
            &[
                "over udp, to a process on this host",
                "windows of 4.00 MiB",
                "packets of 2048",
                "4096",
                "Lost: 0 of",
                "1995",
                "13.97",
                "SandiaXTP",
            ],
        );
        let help = place.run(&[name[0], name[1], "--help"]).expect(0).out;
        in_order(&help, &["--mode", "blast-steady", "--packet-len", "Examples:"]);
    }
}

#[test]
fn what_cannot_be_measured_says_what_to_do() {
    let place = Place::new();
    for (args, says) in [
        (&["--mode", "fast"][..], "blast-steady"),
        (&["--send-len", "0"], "1..=1048576"),
        (&["--window", "1"], "64 KiB to 256 MiB"),
        (&["--over", "ethernet", "--interface", "lo"], "--listen --over ethernet"),
    ] {
        let text = bench(&place, args).wait(LONG).expect(2).err;
        assert!(text.contains(says), "{args:?}: {text}");
    }
    // Nothing listens at a port that was just given back.
    let gone = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = bench(&place, &[&gone.to_string()]).wait(LONG).expect(3).err;
    assert!(text.contains("nobody takes XTP there"), "{text}");
}
