//! `dacapo bench net`: what is measured is all there and closes, and what cannot be measured is a
//! failure that says what to do. How good the figures are decides nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../dacapo/tests/common/mod.rs"]
mod common;
mod eval;

use common::{LONG, Place, in_order};
use dacapo::patience;
use dacapo::{Deadline, Endpoint, Received, Session};
use eval::{closes, count, far_end, json_of, net};
use serde_json::{Value, json};
use std::time::Instant;

/// Says to a process which program it is, and where the far end is.
const PROGRAM: &str = "DACAPO_TEST_PROGRAM";
const ARGUMENT: &str = "DACAPO_TEST_ARGUMENT";

#[test]
fn both_ways_at_once_with_several_flows_everything_is_measured_and_closes() {
    let place = Place::new();
    let args = ["--bytes", "2MB", "--direction", "both", "--flows", "2", "--unit-len", "5000"];
    let more = ["--rate", "100 Mbit/s", "--rounds", "2", "--what", "bulk", "--json"];
    let all = json_of(&net(&place, &[&args[..], &more[..]].concat()).wait(LONG).expect(0));
    assert_eq!((&all["transport"], &all["wait"]), (&json!("udp"), &json!("adaptive")));
    assert_eq!((&all["graph"], &all["flows"]), (&json!("segment, sequence"), &json!(2)));
    assert_eq!(all["bound_bps"], 100_000_000);
    let rounds = all["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2);
    for round in rounds {
        for name in ["up", "down"] {
            let way = &round["bulk"][name];
            closes(way, 5_000);
            assert_eq!(count(way, "units_sent") + count(way, "units_not_sent"), 400, "{way}");
        }
        for end in ["near", "far", "both"] {
            assert!(round["bulk"]["cpu_s_per_gb"][end].as_f64().unwrap() > 0.0, "{round}");
        }
        assert_eq!(round["latency"], Value::Null);
    }
    assert!(all["median"]["bulk"]["down"]["gbit_per_s"].as_f64().unwrap() > 0.0, "{all}");
}

#[test]
fn over_streams_nothing_is_lost_and_the_time_there_and_back_is_measured() {
    for (transport, bound) in [("tcp", Value::Null), ("quic", Value::Null), ("xtp", json!(UDP_BPS))]
    {
        check_over_stream(transport, &bound);
    }
}

/// As fast as congestion control lets it: what is lost is said.
#[test]
fn over_quic_datagrams_the_sum_closes() {
    let place = Place::new();
    let args = ["--transport", "quic-datagram", "--bytes", "3MB", "--what", "bulk", "--json"];
    let all = json_of(&net(&place, &args).wait(LONG).expect(0));
    assert_eq!((&all["graph"], &all["bound_bps"]), (&json!("segment, sequence"), &Value::Null));
    closes(&all["rounds"][0]["bulk"]["up"], 60 * 1_024);
}

/// What over UDP and XTP is the bound when none is asked for.
const UDP_BPS: u64 = 100_000_000_000;

#[test]
fn over_datagrams_of_xtp_the_sum_closes() {
    let place = Place::new();
    let args = ["--transport", "xtp-datagram", "--bytes", "3MB", "--what", "bulk", "--json"];
    let all = json_of(&net(&place, &args).wait(LONG).expect(0));
    assert_eq!((&all["graph"], &all["bound_bps"]), (&json!("segment"), &json!(UDP_BPS)));
    closes(&all["rounds"][0]["bulk"]["up"], 60 * 1_024);
}

fn check_over_stream(transport: &str, bound: &Value) {
    let place = Place::new();
    let args = ["--transport", transport, "--bytes", "3MB", "--wait", "spin", "--json"];
    let all = json_of(&net(&place, &args).wait(LONG).expect(0));
    assert_eq!((&all["graph"], &all["bound_bps"]), (&json!(""), bound));
    let round = &all["rounds"][0];
    closes(&round["bulk"]["up"], 60 * 1_024);
    assert_eq!(count(&round["bulk"]["up"], "units_delivered"), 49);
    assert_eq!(round["bulk"]["down"], Value::Null);
    let delay = &round["latency"];
    assert!(count(delay, "n") > 0 && count(delay, "unit_bytes") == 64, "{delay}");
    let at = |key: &str| delay["rtt_us"][key].as_f64().unwrap();
    assert!(at("min") > 0.0 && at("min") <= at("p50"), "{delay}");
    assert!(at("p50") <= at("p99") && at("p99") <= at("p999"), "{delay}");
    assert!(at("p999") <= at("max"), "{delay}");
}

#[test]
fn through_shared_memory_nothing_is_lost_either_way() {
    let place = Place::new();
    let args = ["--transport", "shm", "--bytes", "3MB", "--direction", "both", "--json"];
    let all = json_of(&net(&place, &args).wait(LONG).expect(0));
    assert_eq!((&all["transport"], &all["graph"]), (&json!("shm"), &json!("")));
    for way in ["up", "down"] {
        closes(&all["rounds"][0]["bulk"][way], 60 * 1_024);
        assert_eq!(count(&all["rounds"][0]["bulk"][way], "units_delivered"), 49);
    }
    assert!(count(&all["rounds"][0]["latency"], "n") > 0);
}

#[test]
fn without_offloads_each_datagram_is_a_call_of_its_own() {
    let place = Place::new();
    let args = ["--bytes", "2MB", "--rate", "100 Mbit/s", "--what", "bulk", "--json"];
    for (without, is_single) in
        [(vec!["--no-gso"], true), (vec!["--no-gso", "--no-gro"], true), (vec!["--no-gro"], false)]
    {
        let run = net(&place, &[&args[..], &without[..]].concat());
        let all = json_of(&run.wait(LONG).expect(0));
        assert_eq!(all["gso_is_allowed"], !is_single);
        assert_eq!(all["gro_is_allowed"], !without.contains(&"--no-gro"));
        let way = &all["rounds"][0]["bulk"]["up"];
        closes(way, 60 * 1_024);
        let sends = &way["datagrams_per_send_call"];
        let singles = count(&sends["counts"][0], "calls");
        if is_single {
            assert_eq!(singles, count(sends, "calls"), "{sends}");
        }
    }
    let mut command = eval::command(&place, &[&["net"], &args[..]].concat());
    command.env("DACAPO_UDP", "no-such-thing");
    let out = command.output().unwrap();
    assert!(!out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("no-gso"), "{out:?}");
}

#[test]
fn people_get_a_table_with_the_sum_and_how_the_ends_wait() {
    let place = Place::new();
    let args = ["--bytes", "500kB", "--rate", "200 Mbit/s", "--unit-len", "20kB"];
    let out = net(&place, &args).wait(LONG).expect(0).out;
    let words = [
        "far end   127.0.0.1:",
        "a second process on this host",
        "protocol  segment, sequence over udp; units of 20 kB; 1 flow up; at most 200 Mbit/s",
        "Gbit/s",
        "near CPU s/GB",
        "1  up ",
        "1 up: 25 sent = ",
        "(closes)",
        "1 up: the sender made ",
        "there and back µs: p50",
        "Both ends adapt",
    ];
    in_order(&out, &words);
}

#[test]
fn a_far_end_runs_what_several_ask_one_after_the_other_and_ends_with_a_signal() {
    let place = Place::new();
    let (far, at) = far_end(&place, &[]);
    for graph in ["segment", "segment,sequence,checksum"] {
        let args = [&at, "--graph", graph, "--bytes", "200kB", "--what", "bulk", "--json"];
        let all = json_of(&net(&place, &args).wait(LONG).expect(0));
        closes(&all["rounds"][0]["bulk"]["up"], 60 * 1_024);
        assert_eq!(all["far_end_is_on_this_host"], false);
        assert_eq!(all["graph"], graph.replace(',', ", "));
    }
    far.signal("TERM");
    far.wait(LONG).expect(143);
    let (far, at) = far_end(&place, &["--once"]);
    let args = [&at, "--direction", "down", "--bytes", "200kB", "--what", "bulk", "--json"];
    let all = json_of(&net(&place, &args).wait(LONG).expect(0));
    closes(&all["rounds"][0]["bulk"]["down"], 60 * 1_024);
    far.wait(LONG).expect(0);
}

#[test]
fn where_nobody_measures_it_says_what_to_start() {
    let place = Place::new();
    let run = net(&place, &["127.0.0.1:1"]).wait(LONG).expect(3);
    run.says(&["dacapo: bench net 127.0.0.1:1: ", "`dacapo bench net --listen`"]);
    assert_eq!(run.out, "");
    net(&place, &["no-such-host.invalid"]).wait(LONG).expect(3).says(&["no-such-host"]);
    place.movie("movie.avi", "1");
    place.write("movie.toml", common::movie_session("movie", "movie.avi"));
    let (_server, at) = place.serve(&["movie.toml"]);
    let run = net(&place, &[&at]).wait(LONG).expect(1);
    run.says(&["start `dacapo bench net --listen` there"]);
}

#[test]
fn an_illegal_graph_is_refused_before_anything_is_sent() {
    let place = Place::new();
    let graphs =
        ["sequence,segment", "no-such-module", "[\"segment\"", "segment,,sequence", "a\nb"];
    for graph in graphs {
        let run = net(&place, &["--graph", graph, "--bytes", "1MB"]).wait(LONG).expect(5);
        run.says(&["dacapo: bench net --graph: "]);
        assert_eq!(run.out, "", "{graph:?}");
    }
    net(&place, &["--unit-len", "15"]).wait(LONG).expect(2);
    net(&place, &["127.0.0.1", "--listen", "127.0.0.1:0"]).wait(LONG).expect(2);
    net(&place, &["--listen", "example.org"]).wait(LONG).expect(2);
}

#[test]
fn a_single_unit_gives_no_rate_and_that_is_a_failure() {
    let place = Place::new();
    let run = net(&place, &["--bytes", "1kB", "--what", "bulk"]).wait(LONG).expect(1);
    run.says(&["a rate needs two", "--bytes"]);
    assert_eq!(run.out, "");
}

#[test]
fn one_measures_at_a_time_and_who_loses_the_far_end_hears_of_it() {
    let place = Place::new();
    let (far, at) = far_end(&place, &[]);
    let first = net(&place, &[&at, "--duration", "60min", "--rate", "1 Mbit/s", "--what", "bulk"]);
    far.wait_for_out("\"runs\"", LONG);
    let second = net(&place, &[&at, "--bytes", "1MB"]).wait(LONG).expect(1);
    second.says(&["refused", "another measurement is under way"]);
    far.kill();
    let first = first.wait(LONG).expect(1);
    first.says(&["dacapo: bench net"]);
    assert_eq!(first.out, "", "nothing was measured");
}

#[test]
fn a_signal_ends_both_ends_in_order() {
    let place = Place::new();
    let (far, at) = far_end(&place, &["--once"]);
    let near = net(&place, &[&at, "--duration", "60min", "--rate", "1 Mbit/s"]);
    far.wait_for_out("\"runs\"", LONG);
    near.signal("INT");
    let near = near.wait(LONG).expect(130);
    assert_eq!((near.out.as_str(), near.err.as_str()), ("", ""));
    // The far end goes on, for the next.
    let run = net(&place, &[&at, "--bytes", "200kB", "--what", "bulk", "--json"]);
    closes(&json_of(&run.wait(LONG).expect(0))["rounds"][0]["bulk"]["up"], 60 * 1_024);
    far.wait(LONG).expect(0);
}

/// Sends what is no question, as this test program started again with the name of this test;
/// without being told so there is nothing to do.
#[test]
fn program_junk() {
    if std::env::var(PROGRAM).is_ok_and(|program| program == "junk") {
        send_junk(&std::env::var(ARGUMENT).unwrap());
    }
}

fn send_junk(at: &str) {
    let endpoint = Endpoint::new().unwrap();
    let uri = format!("dacapo://{at}/bench-net");
    let control = endpoint.connect(&uri).unwrap();
    control.activate().unwrap();
    let good = json!({
        "dacapo_net": 1, "id": 3, "what": "bulk", "transport": "udp", "graph": "[\"segment\"]",
        "direction": "up", "flows": 1, "unit_len": 1_000, "rate_bps": null, "duration_ms": 100,
        "bytes": null, "wait": "block",
    });
    let changed = |key: &str, value: Value| {
        let mut question = good.clone();
        question[key] = value;
        question.to_string().into_bytes()
    };
    // Not of its form, of another version, beyond the bounds.
    let wrong = [vec![0xFF; 60_000], Vec::new(), b"{}".to_vec(), "[".repeat(5_000).into_bytes()];
    for bytes in wrong {
        assert_refused(&control, &bytes, "version");
    }
    assert_refused(&control, &changed("dacapo_net", json!(0)), "version");
    assert_refused(&control, &changed("flows", json!(1_000_000)), "1 to 16");
    assert_refused(&control, &changed("duration_ms", json!(1_u64 << 60)), "hour");
    // A graph of the right form that is none is refused, and not counted as nonsense.
    let stolen = "[] source = { file = \"/etc/passwd\" }";
    assert_refused(&control, &changed("graph", json!(stolen)), "graph");
    assert_refused(&control, &changed("graph", json!("[\"sequence\", \"segment\"]")), "segment");
    // What is to be joined is a session, and at the address of who asks.
    let joined = |session: &str| {
        let mut question: Value = good.clone();
        question["transport"] = json!("tcp-multicast");
        question["join"] = json!({ "port": 1, "session": session });
        question.to_string().into_bytes()
    };
    assert_refused(&control, &joined("a/b"), "cannot join dacapo://127.0.0.1:1/a/b");
    // The eighth is the last: the far end lets the guest go.
    assert_refused(&control, &changed("unit_len", json!(1)), "16 to");
    let let_go = patience::until(Instant::now, LONG, || {
        match control
            .receiver("answer")
            .and_then(|mut it| it.recv_by(Deadline::after(patience::STEP_MAX)))
        {
            Ok(Received::Unit(_) | Received::Nothing) => None,
            Ok(Received::End) | Err(_) => Some(()),
        }
    });
    assert!(let_go.is_some(), "the far end keeps who talks nonsense");
    println!("junk was refused.");
}

fn assert_refused(control: &Session, question: &[u8], why: &str) {
    control.sender("ask").unwrap().send(question).unwrap();
    let received = patience::until(Instant::now, LONG, || {
        let received = control
            .receiver("answer")
            .unwrap()
            .recv_by(Deadline::after(patience::STEP_MAX))
            .unwrap();
        (received != Received::Nothing).then_some(received)
    });
    let Some(Received::Unit(answer)) = received else {
        panic!("no answer to {:?}", String::from_utf8_lossy(question));
    };
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["ok"], false, "{answer}");
    assert!(answer["error"].as_str().unwrap().contains(why), "{why}: {answer}");
}

#[test]
fn nonsense_is_refused_and_ends_nothing() {
    let place = Place::new();
    let (far, at) = far_end(&place, &[]);
    let own = std::env::current_exe().unwrap();
    let args = ["program_junk", "--exact", "--nocapture"];
    let mut junk = place.program(own.to_str().unwrap(), &args);
    junk.env(PROGRAM, "junk").env(ARGUMENT, &at);
    let run = place.start_command(junk).wait(LONG).expect(0);
    assert!(run.out.contains("junk was refused."), "{}", run.all());
    let run = net(&place, &[&at, "--bytes", "200kB", "--what", "bulk", "--json"]);
    closes(&json_of(&run.wait(LONG).expect(0))["rounds"][0]["bulk"]["up"], 60 * 1_024);
    far.kill();
}

/// Shared memory is a file that the limit is for: it is not offered then, and nobody is ended by
/// SIGXFSZ. Over udp the same goes on.
#[test]
fn where_no_file_may_be_so_long_shared_memory_is_not_offered_and_udp_goes_on() {
    let place = Place::new();
    let run = |transport: &str| {
        let script = "ulimit -f 64; exec \"$0\" \"$@\"";
        let what = ["net", "--bytes", "1MB", "--what", "bulk", "--transport", transport];
        let args = [&["-c", script, eval::PROGRAM], &what[..]].concat();
        place.start_command(place.program("sh", &args)).wait(LONG)
    };
    let refused = run("shm");
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("the participant lacks transport \"shm\""), "{}", refused.err);
    assert!(refused.err.contains("has no memory to share"), "{}", refused.err);
    let served = run("udp");
    assert_eq!(served.code, Some(0), "{}", served.err);
}
