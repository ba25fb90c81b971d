//! `dacapo bench net` to several far ends: each has its figures and its sums close, and one that
//! cannot be measured is named. How good the figures are decides nothing.
//!
//! ```text
//!   near  10.78.1.1 ---+
//!   one   10.78.1.2 ---+--- lan, a bridge      (three namespaces, where this is root)
//!   two   10.78.1.3 ---+
//! ```

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../dacapo/tests/common/mod.rs"]
mod common;
mod eval;

use common::{LONG, Place, Running, in_order};
use dacapo_sys::netns::Namespace;
use eval::{closes, count, far_end, json_of, net};
use serde_json::{Value, json};
use std::process::Command;

/// A measurement that says nothing of speed and takes as long as it must.
const SLOW: [&str; 4] = ["--bytes", "2MB", "--rate", "50 Mbit/s"];

/// Everything of each receiver is there, and their sum is what they are together.
fn check(all: &Value, hosts: &[&str], unit_len: u64) {
    let named: Vec<&Value> = all["receivers"].as_array().unwrap().iter().collect();
    assert_eq!(named.len(), hosts.len(), "{all}");
    for round in all["rounds"].as_array().unwrap() {
        let (sum, each) = (&round["bulk"], round["receivers"].as_array().unwrap());
        assert_eq!(each.len(), hosts.len(), "{round}");
        closes(&sum["up"], unit_len);
        for (receiver, host) in each.iter().zip(hosts) {
            assert_eq!(receiver["host"], *host);
            closes(&receiver["up"], unit_len);
            assert_eq!(receiver["up"]["units_sent"], each[0]["up"]["units_sent"], "sent once");
            for end in ["near", "far", "both"] {
                assert!(receiver["cpu_s_per_gb"][end].as_f64().unwrap() > 0.0, "{round}");
            }
        }
        for key in ["units_sent", "units_delivered", "bytes_delivered"] {
            let together: u64 = each.iter().map(|receiver| count(&receiver["up"], key)).sum();
            assert_eq!(together, count(&sum["up"], key), "{key}: {round}");
        }
        assert_eq!((&sum["down"], &round["latency"]), (&Value::Null, &Value::Null));
    }
    let medians = all["median"]["receivers"].as_array().unwrap();
    assert!(medians.iter().all(|it| it["up"]["gbit_per_s"].as_f64().unwrap() > 0.0), "{all}");
    assert_eq!(medians.len(), hosts.len(), "{all}");
}

#[test]
fn a_group_reaches_two_far_ends_that_listen_elsewhere() {
    let place = Place::new();
    let [(one, at_one), (two, at_two)] =
        [far_end(&place, &["--once"]), far_end(&place, &["--once"])];
    let args = [&[&at_one, &at_two, "--transport", "udp-multicast", "--json"], &SLOW[..]];
    let all = json_of(&net(&place, &args.concat()).wait(LONG).expect(0));
    assert_eq!((&all["transport"], &all["far_end"]), (&json!("udp-multicast"), &json!(at_one)));
    assert_eq!(all["graph"], "segment, sequence");
    check(&all, &[&at_one, &at_two], 60 * 1_024);
    for far in [one, two] {
        far.wait(LONG).expect(0);
    }
}

#[test]
fn over_streams_each_far_end_of_this_host_gets_every_unit_of_every_flow() {
    let place = Place::new();
    let args = ["--receivers", "3", "--transport", "tcp-multicast", "--flows", "2", "--json"];
    let more = ["--unit-len", "5000", "--rounds", "2"];
    let all = json_of(&net(&place, &[&args[..], &more, &SLOW].concat()).wait(LONG).expect(0));
    let hosts: Vec<&str> = (all["receivers"].as_array().unwrap().iter())
        .map(|it| it["host"].as_str().unwrap())
        .collect();
    assert_eq!((hosts.len(), all["far_end_is_on_this_host"].as_bool()), (3, Some(true)));
    check(&all, &hosts, 5_000);
    for round in all["rounds"].as_array().unwrap() {
        assert_eq!(count(&round["bulk"]["up"], "units_delivered"), 3 * 2 * 200, "{round}");
    }
}

#[test]
fn one_far_end_is_measured_like_several_with_what_a_program_reads_as_ever() {
    let place = Place::new();
    let args = [&["--receivers", "1", "--transport", "udp-multicast", "--json"], &SLOW[..]];
    let all = json_of(&net(&place, &args.concat()).wait(LONG).expect(0));
    let host = all["receivers"][0]["host"].as_str().unwrap().to_owned();
    check(&all, &[&host], 60 * 1_024);
    let round = &all["rounds"][0];
    assert_eq!(round["bulk"]["up"], round["receivers"][0]["up"]);
    // One far end that is sent to by itself is no receiver of several.
    let all = json_of(&net(&place, &[&SLOW[..], &["--json"]].concat()).wait(LONG).expect(0));
    assert_eq!((&all["receivers"], &all["rounds"][0]["receivers"]), (&json!([]), &json!([])));
}

#[test]
fn people_get_a_line_for_each_and_for_all() {
    let place = Place::new();
    let args = [&["--receivers", "2", "--transport", "udp-multicast"], &SLOW[..]].concat();
    let out = net(&place, &args).wait(LONG).expect(0).out;
    let words = [
        "far end   127.0.0.1:",
        "far end   127.0.0.1:",
        "segment, sequence over udp-multicast",
        "1 flow up, sent once for 2; at most 50 Mbit/s",
        "1  up to 127.0.0.1:",
        "1  up to 127.0.0.1:",
        "1  up to all ",
        "1 up to 127.0.0.1:",
        "(closes)",
        "1 up to all: ",
        "(closes)",
        "1 up: the sender made ",
        "To each, the near end's",
    ];
    in_order(&out, &words);
}

#[test]
fn a_far_end_that_cannot_be_measured_is_named() {
    let place = Place::new();
    let (one, at_one) = far_end(&place, &[]);
    let (two, at_two) = far_end(&place, &[]);
    let both = [&at_one, &at_two, "--transport", "tcp-multicast"];
    // One is not there.
    let run = net(&place, &[&at_one, "127.0.0.1:1", "-t", "tcp-multicast"]).wait(LONG).expect(3);
    run.says(&["dacapo: bench net 127.0.0.1:1: ", "`dacapo bench net --listen`"]);
    // One is busy.
    let long = ["--duration", "60min", "--rate", "1 Mbit/s", "--what", "bulk"];
    let busy = net(&place, &[&[at_two.as_str()], &long[..]].concat());
    two.wait_for_out("\"runs\"", LONG);
    let run = net(&place, &both).wait(LONG).expect(1);
    run.says(&[&at_two, "another measurement is under way"]);
    assert_eq!(run.out, "", "nothing was measured");
    busy.signal("INT");
    busy.wait(LONG).expect(130);
    two.wait_for_out("\"left\"", LONG);
    // One dies.
    let run = lose(&place, &both, &one, two);
    run.says(&["dacapo: bench net: the far end at ", &at_two]);
    assert_eq!(run.out, "", "nothing was measured");
    // The other is there for the next.
    let args = [&at_one, "--transport", "tcp-multicast", "--json"];
    let all = json_of(&net(&place, &[&args[..], &SLOW].concat()).wait(LONG).expect(0));
    check(&all, &[&at_one], 60 * 1_024);
}

/// A measurement during which the second far end dies.
fn lose(place: &Place, both: &[&str], one: &Running, two: Running) -> common::Finished {
    let before = (one.out().matches("\"runs\"").count(), two.out().matches("\"runs\"").count());
    let near = net(place, &[both, &["--duration", "60min", "--rate", "1 Mbit/s"]].concat());
    let run = || {
        one.out().matches("\"runs\"").count() > before.0
            && two.out().matches("\"runs\"").count() > before.1
    };
    assert!(common::wait_until(LONG, run), "{}\n{}", one.out(), two.out());
    two.kill();
    near.wait(LONG).expect(1)
}

#[test]
fn a_signal_ends_all_ends_in_order() {
    let place = Place::new();
    let (far, at) = far_end(&place, &["--once"]);
    let args = [&at, "--duration", "60min", "--rate", "1 Mbit/s", "--transport", "udp-multicast"];
    let near = net(&place, &args);
    far.wait_for_out("\"runs\"", LONG);
    near.signal("INT");
    let near = near.wait(LONG).expect(130);
    assert_eq!((near.out.as_str(), near.err.as_str()), ("", ""));
    let args = [&at, "--transport", "udp-multicast", "--json"];
    let all = json_of(&net(&place, &[&args[..], &SLOW].concat()).wait(LONG).expect(0));
    check(&all, &[&at], 60 * 1_024);
    far.wait(LONG).expect(0);
}

#[test]
fn what_does_not_go_together_is_wrong_usage() {
    let place = Place::new();
    let wrong: [(&[&str], &str); 4] = [
        (&["127.0.0.1", "127.0.0.2"], "several far ends need --transport udp-multicast"),
        (&["--receivers", "2", "-t", "tcp-multicast", "--direction", "both"], "goes up only"),
        (&["-t", "tcp-multicast", "--group", "239.1.2.3:5004"], "--group needs"),
        (&["-t", "udp-multicast", "--what", "latency"], "nothing comes back"),
    ];
    for (args, why) in wrong {
        let run = net(&place, args).wait(LONG).expect(2);
        run.says(&[why]);
        assert_eq!(run.out, "");
    }
    let args = ["-t", "udp-multicast", "--group", "[ff15::1]:5004"];
    net(&place, &args).wait(LONG).expect(5).says(&["[ff15::1]:5004", "not of one family"]);
}

/// Runs `ip` with these words.
fn ip(words: &str) {
    let run = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "ip {words}: {}", String::from_utf8_lossy(&run.stderr));
}

/// Three hosts on one bridge; `None`, and a word, where there can be none.
fn lan() -> Option<[Namespace; 4]> {
    if dacapo_sys::process::uid() != 0 || Command::new("ip").arg("-V").output().is_err() {
        dacapo_base::skip("three hosts on a bridge: this is not root, or has no `ip`");
        return None;
    }
    let name = |what: &str| format!("dacapo-{what}-{}-lan", std::process::id());
    let lan = Namespace::create(&name("lan")).unwrap();
    let hosts = ["near", "one", "two"].map(|what| Namespace::create(&name(what)).unwrap());
    let bridge = lan.name();
    ip(&format!("-n {bridge} link add name bridge type bridge"));
    ip(&format!("-n {bridge} link set bridge up"));
    for (at, host) in hosts.iter().map(Namespace::name).enumerate() {
        ip(&format!("link add name end netns {host} type veth peer name to{at} netns {bridge}"));
        ip(&format!("-n {bridge} link set to{at} master bridge up"));
        ip(&format!("-n {host} address add 10.78.1.{}/24 dev end", at + 1));
        ip(&format!("-n {host} address add fd78:1::{}/64 dev end nodad", at + 1));
        ip(&format!("-n {host} link set end up"));
    }
    let [near, one, two] = hosts;
    Some([lan, near, one, two])
}

#[test]
fn three_hosts_on_a_network_by_either_family() {
    let Some([_lan, near, one, two]) = lan() else { return };
    let place = Place::new();
    let group = ["--group", "232.78.1.1:5004"];
    for (hosts, transport, more) in [
        (["10.78.1.2", "10.78.1.3"], "udp-multicast", &[][..]),
        (["10.78.1.2", "10.78.1.3"], "udp-multicast", &group),
        (["10.78.1.2", "10.78.1.3"], "tcp-multicast", &[]),
        (["[fd78:1::2]", "[fd78:1::3]"], "udp-multicast", &[]),
    ] {
        let fars = [&one, &two].into_iter().zip(hosts).map(|(space, host)| {
            let args = ["--listen", host, "--once", "--json"];
            let far = space.run(|| net(&place, &args)).unwrap();
            far.wait_for_out("listening", LONG);
            far
        });
        let fars: Vec<Running> = fars.collect();
        let args = [&hosts[..], &["--transport", transport, "--json"], &SLOW, more].concat();
        let run = near.run(|| net(&place, &args)).unwrap().wait(LONG).expect(0);
        check(&json_of(&run), &hosts, 60 * 1_024);
        fars.into_iter().for_each(|far| drop(far.wait(LONG).expect(0)));
    }
    // A group has one source, and these two see two.
    let args = ["10.78.1.2", "127.0.0.1", "--transport", "udp-multicast"];
    let fars = [(&one, "10.78.1.2"), (&near, "127.0.0.1")].map(|(space, host)| {
        let far = space.run(|| net(&place, &["--listen", host])).unwrap();
        far.wait_for_out("listening", LONG);
        far
    });
    let run = near.run(|| net(&place, &args)).unwrap().wait(LONG).expect(1);
    run.says(&["10.78.1.2 is reached from 10.78.1.1, and 127.0.0.1 from 127.0.0.1", "one source"]);
    fars.into_iter().for_each(Running::kill);
}
