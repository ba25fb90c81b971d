//! `dacapo link`, `play --link` and `demo --link`: sessions over a bad network, and
//! an account of it that closes.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{LONG, Place, Running, files, flow, in_order, movie_session, session, wait_until};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A served movie.
struct Served {
    place: Place,
    server: Running,
    authority: String,
}

impl Served {
    fn new(seconds: &str, args: &[&str]) -> Self {
        let place = Place::new();
        place.movie("movie.avi", seconds);
        place.write("a.toml", movie_session("movie", "movie.avi"));
        let (server, authority) = place.serve(&[&["a.toml", "--speed", "2"], args].concat());
        Self { place, server, authority }
    }

    fn uri(&self) -> String {
        format!("dacapo://{}/movie", self.authority)
    }
}

fn sum(play: &Value, key: &str) -> u64 {
    let flows = play["flows"].as_array().unwrap();
    flows.iter().map(|flow| flow["account"][key].as_u64().unwrap()).sum()
}

/// What a link lost in the direction of the player, by its own account.
fn link_lost(link: &Value) -> u64 {
    assert_eq!(link["closes"], true, "{link}");
    assert_eq!((&link["kernel_drops"], &link["refused"]), (&Value::from(0), &Value::from(0)));
    link["back"]["lost_random"].as_u64().unwrap()
}

/// The same of one that loses in runs, which `play` runs itself.
fn link_lost_in_runs(link: &Value) -> u64 {
    assert_eq!(link["closes"], true, "{link}");
    link["back"]["lost_burst"].as_u64().unwrap()
}

#[test]
fn a_session_over_a_relay_loses_no_more_than_the_relay_says_and_every_ledger_closes() {
    let served = Served::new("6", &["--once"]);
    let relay = served.place.start(&[
        "link",
        "loss=5%,delay=20ms",
        "--to",
        &served.authority,
        "--seed",
        "7",
        "--json",
    ]);
    let listening = json(&relay.wait_for_out("}\n", LONG));
    assert_eq!(listening["event"], "listening");
    assert_eq!(listening["back"], "delay=20ms,loss=5%");
    let uri = format!("dacapo://{}/movie", listening["relay"].as_str().unwrap());
    let play = served.place.run(&["play", &uri, "--save", "out", "--json"]).expect(0);
    let play = json(&play.out);
    for flow in play["flows"].as_array().unwrap() {
        assert_eq!(flow["account"]["closes"], true, "{flow}");
        assert_eq!(flow["account"]["units_unknown"], 0, "{flow}");
    }
    served.server.wait(LONG).expect(0);
    relay.signal("INT");
    let run = relay.wait(LONG).expect(130);
    let totals = json(run.out.lines().last().unwrap());
    assert_eq!(totals["event"], "totals");
    let (units, datagrams) = (sum(&play, "units_lost"), link_lost(&totals));
    assert!(0 < units && units <= datagrams, "{units} units, {datagrams} datagrams");
    assert!(totals["back"]["delay_us"]["min"].as_f64().unwrap() >= 20_000.0, "{totals}");
    // The control lane and the data lane of the player are two clients.
    assert_eq!(totals["clients"], 2, "{totals}");
}

#[test]
fn a_player_over_a_link_accounts_for_the_link_too() {
    let served = Served::new("4", &["--once"]);
    let link = ["--link", "loss=5%,burst=2,delay=20ms,dup=1%,corrupt-undetected=1%"];
    let uri = served.uri();
    let args = [&["play", &uri, "--save", "out", "--json"][..], &link].concat();
    let play = json(&served.place.run(&args).expect(0).out);
    let link = &play["link"];
    assert_eq!((&link["closes"], &link["seed"]), (&Value::from(true), &Value::from(1)));
    assert!(sum(&play, "units_lost") > 0, "{play}");
    assert!(link["back"]["lost_burst"].as_u64().unwrap() > 0, "{link}");
    assert!(link["back"]["corrupted_undetected"].as_u64().unwrap() > 0, "{link}");
    assert_eq!(files(&served.place.path("out"), "avi").len(), 1);
    served.server.wait(LONG).expect(0);
}

#[test]
fn what_a_link_loses_is_asked_for_and_every_byte_comes() {
    let place = Place::new();
    place.movie("movie.avi", "4");
    let asking = "{ module = \"sequence\", hold = \"500 ms\" }, \
                  { module = \"arq-nak\", deadline = \"450 ms\" }";
    let file = movie_session("movie", "movie.avi");
    let file = file.replace("\"sequence\"", asking).replace("100 ms", "600 ms");
    place.write("a.toml", file);
    let (server, authority) = place.serve(&["a.toml", "--speed", "2", "--once"]);
    let uri = format!("dacapo://{authority}/movie");
    let link = ["--link", "loss=5%,burst=2,delay=20ms"];
    let play = place.run(&[&["play", &uri, "--save", "out", "--json"][..], &link].concat());
    let play = json(&play.expect(0).out);
    assert!(link_lost_in_runs(&play["link"]) > 20, "{play}");
    let kept = ["units_lost", "units_late", "units_unknown"].map(|key| sum(&play, key));
    assert_eq!(kept, [0; 3], "{play}");
    let flows = play["flows"].as_array().unwrap();
    let modules = flows.iter().flat_map(|flow| flow["account"]["modules"].as_array().unwrap());
    let repaired = modules.filter_map(|module| module["notes"]["packets_repaired"].as_u64());
    assert!(repaired.sum::<u64>() > 20, "{play}");
    let saved = &files(&place.path("out"), "avi")[0];
    assert_eq!(place.hashes(saved.to_str().unwrap()), place.hashes("movie.avi"));
    server.wait(LONG).expect(0);
}

#[test]
fn a_player_over_a_perfect_link_gets_every_byte_and_shows_the_links_account() {
    let served = Served::new("2", &["--once"]);
    let args = ["play", &served.uri(), "--save", "out", "--link", "perfect", "--link-seed", "3"];
    let run = served.place.run(&args).expect(0);
    let words = [
        "over a link with perfect both ways (seed 3)",
        "flow ",
        "equal",
        "The link's account",
        "forward",
        "closes",
        "back",
        "closes",
    ];
    in_order(&run.out, &words);
    let saved = &files(&served.place.path("out"), "avi")[0];
    let saved = served.place.hashes(saved.to_str().unwrap());
    assert_eq!(saved, served.place.hashes("movie.avi"));
    served.server.wait(LONG).expect(0);
}

#[test]
fn a_flow_that_is_bound_to_tcp_is_refused_over_a_link() {
    let place = Place::new();
    place.movie("movie.avi", "1");
    let video = flow("video", "{ file = \"movie.avi\", stream = \"video\" }");
    let video = video.replace("transport = \"udp\"", "transport = \"tcp\"");
    let video = video.replace("\"sequence\", ", "");
    place.write("a.toml", session("movie", &[video]));
    let (_server, authority) = place.serve(&["a.toml"]);
    let uri = format!("dacapo://{authority}/movie");
    place.run(&["play", &uri, "--save", "plain"]).expect(0);
    let run = place.run(&["play", &uri, "--save", "out", "--link", "perfect"]).expect(1);
    run.says(&["lacks transport \"tcp\""]);
}

#[test]
fn a_server_that_is_not_there_is_named_and_not_the_relay_alone() {
    let place = Place::new();
    let uri = "dacapo://127.0.0.1:9/movie";
    let run = place.run(&["play", uri, "--link", "loss=100%"]).expect(3);
    run.says(&["dacapo: connect to 127.0.0.1:9 over the link: ", "nothing answers"]);
}

#[test]
fn a_demo_over_a_link_says_what_is_missing_and_both_ends_agree() {
    let place = Place::new();
    let args = ["demo", "--duration", "24", "--speed", "2", "--out", "demo", "--link"];
    // What is lost in shorter runs is sent again in time. In twelve seconds there are fourteen; all
    // are shorter than the delay that is asked in one of a thousand.
    let link = "loss=30%,burst=250ms,delay=30ms";
    let run = place.run(&[&args[..], &[link]].concat()).expect(0);
    let words = [
        "assumed of the path: ",
        "loss 30 % in runs of ",
        "over a link with delay=30ms,loss=30%,burst=250ms both ways",
        "serve | ready dacapo://127.0.0.1:",
        "serve | left  demo",
        "The receiver's account:",
        "closes",
        "The link's account",
        "The accounts of both ends",
        "agree",
        "agree",
        "The files",
        "Every unit is accounted for, at both ends: ",
        " lost",
        "as it was sent.",
    ];
    in_order(&run.out, &words);
    for wrong in ["DISAGREE", "DOES NOT CLOSE", "DIFFERENT", "every byte arrived"] {
        assert!(!run.out.contains(wrong), "{wrong}: {}", run.all());
    }
}

#[test]
fn a_configuration_that_no_link_can_do_is_wrong_usage_and_says_what_would_be_right() {
    let place = Place::new();
    for (config, words) in [
        ("loss=300%", ["loss is 3", "0% to 100%"]),
        ("lost=3%", ["no key `lost`", "did you mean `loss`?"]),
        ("delay=20", ["delay=20 is not", "20ms"]),
        ("burst=3", ["burst", "needs loss"]),
        ("delay", ["no value", "key=value"]),
    ] {
        place.run(&["link", config, "--to", "127.0.0.1"]).expect(2).says(&words);
        let play = ["play", "dacapo://127.0.0.1/x", "--link", config];
        place.run(&play).expect(2).says(&words);
    }
    place.run(&["link", "perfect"]).expect(2).says(&["--to", "--between"]);
    let both = ["link", "perfect", "--to", "127.0.0.1", "--between", "a,b"];
    place.run(&both).expect(2).says(&["cannot be used with"]);
    place.run(&["link", "perfect", "--between", "a,a"]).expect(2).says(&["different names"]);
    place.run(&["link", "perfect", "--to", "no.such.host.invalid"]).expect(3);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let args = ["link", "perfect", "--to", "127.0.0.1", "--listen", &listen];
    place.run(&args).expect(1).says(&["dacapo: link: listen at ", "in use"]);
}

#[test]
fn a_relay_ends_by_itself_and_prints_its_account() {
    let place = Place::new();
    let run = place.run(&["link", "dup=100%", "--to", "127.0.0.1", "--for", "100ms"]).expect(0);
    in_order(&run.out, &["ready dacapo://127.0.0.1:", "forward  dup=100%", "seed     1", "closes"]);
}

/// Whether namespaces can be made here; says why not.
fn can_tunnel() -> bool {
    let reason = match () {
        () if dacapo_sys::process::uid() != 0 => "this is not root",
        () if !std::path::Path::new(dacapo_sys::tun::PATH).exists() => "there is no /dev/net/tun",
        () => return true,
    };
    dacapo_base::skip(format!("a session between two network namespaces: {reason}"));
    false
}

#[test]
fn a_session_crosses_two_namespaces_with_everything_that_can_happen_to_a_packet() {
    if !can_tunnel() {
        return;
    }
    let place = Place::new();
    place.movie("movie.avi", "4");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let names = [1, 2].map(|end| format!("dacapo-cli-{}-{end}", std::process::id()));
    let config = "loss=2%,delay=10ms,jitter=2ms,dup=1%,corrupt=1%,corrupt-undetected=1%";
    let between = names.join(",");
    let tunnel = place.start(&["link", config, "--between", &between, "--json"]);
    let listening = json(&tunnel.wait_for_out("}\n", LONG));
    assert_eq!(listening["addresses"][1], "10.77.0.2/24");
    let [near, far] = &names;
    let [near, far] = [near, far].map(|name| dacapo_sys::netns::Namespace::open(name).unwrap());
    let serve = ["serve", "a.toml", "--listen", "10.77.0.2", "--once", "--speed", "2"];
    let server = far.run(|| place.start(&serve)).unwrap();
    server.wait_for_out("identity ", LONG);
    let play = ["play", "dacapo://10.77.0.2/movie", "--save", "out", "--json"];
    let player = near.run(|| place.start(&play)).unwrap();
    let play = json(&player.wait(LONG).expect(0).out);
    assert!(sum(&play, "units_lost") > 0, "{play}");
    server.wait(LONG).expect(0);
    drop((near, far));
    tunnel.signal("TERM");
    let run = tunnel.wait(LONG).expect(143);
    let totals = json(run.out.lines().last().unwrap());
    assert_eq!(totals["closes"], true, "{totals}");
    assert!(totals["back"]["corrupted_sent_on"].as_u64().unwrap() > 0, "{totals}");
    assert_eq!(totals["back"]["corrupted_detected"], 0, "{totals}");
    let dir = std::path::Path::new(dacapo_sys::netns::DIR);
    let is_gone = || names.iter().all(|name| !dir.join(name).exists());
    assert!(wait_until(LONG, is_gone), "a namespace stays behind");
}
