//! The toys in flows between two endpoints over loopback.

use dacapo::{Code, Endpoint, Session};
use dacapo_exercise::{sum8, unix};
use dacapo_lift::Params;
use dacapo_lift::conformance::{Subject, suite};
use dacapo_transport::Transport;
use dacapo_transport::conformance::{self as rules, Pair};
use std::sync::atomic::{AtomicU32, Ordering};

const SESSION: &str = r#"
[session]
name = "toys"

[[flow]]
name = "there"
from = "creator"
source = { raw = true }
digest = true
graph = ["segment", "sequence", "sum8"]
transport = "udp"
bound = "200 Mbit/s"
"#;

/// The identities of both ends are made here, not in this user's home.
fn endpoint(modules: &[dacapo_lift::Entry]) -> Endpoint {
    let builder = Endpoint::builder().identity(dacapo::Identity::generate().unwrap());
    modules.iter().fold(builder, |builder, entry| builder.module(*entry)).build().unwrap()
}

fn pair() -> (Session, Session) {
    let creator = endpoint(&[sum8::ENTRY]).create(SESSION).unwrap();
    creator.listen("127.0.0.1:0").unwrap();
    let uri = creator.uri().unwrap().to_string();
    let participant = endpoint(&[sum8::ENTRY]).connect(&uri).unwrap();
    (creator.accept().unwrap(), participant)
}

#[test]
fn the_toy_module_keeps_the_contract() {
    suite(&Subject { entry: sum8::ENTRY, params: Params::new() });
}

#[test]
fn a_flow_runs_with_the_toy_module_in_its_graph() {
    let (creator, participant) = pair();
    participant.activate().unwrap();
    creator.activate().unwrap();
    let (mut there, mut here) =
        (creator.sender("there").unwrap(), participant.receiver("there").unwrap());
    for number in 0..1_000_usize {
        let unit = vec![number as u8; number * 7 % 5_000];
        there.send(&unit).unwrap();
        assert_eq!(here.recv().unwrap(), Some(unit), "unit {number}");
    }
    there.finish().unwrap();
    assert_eq!(here.recv().unwrap(), None);
    for (session, way) in [(&creator, "down"), (&participant, "up")] {
        let modules = session.measured("there").unwrap().modules;
        let last = modules.last().unwrap();
        assert_eq!(last.name, "sum8");
        let counters = last.counters;
        let passed = if way == "down" { counters.down.packets } else { counters.up.packets };
        assert!(passed >= 1_000, "{way}: {passed}");
    }
    let account = creator.close().unwrap();
    assert!(account.is_complete() && account.flows[0].same_bytes == Some(true), "{account}");
}

#[test]
fn who_lacks_the_module_is_refused_and_told_its_name() {
    let creator = endpoint(&[sum8::ENTRY]).create(SESSION).unwrap();
    creator.listen("127.0.0.1:0").unwrap();
    let uri = creator.uri().unwrap().to_string();
    let error = endpoint(&[]).connect(&uri).unwrap_err();
    assert_eq!(error.code, Code::UnknownModule, "{error}");
    assert!(error.text.contains("lacks module \"sum8\""), "{error}");
}

#[test]
fn two_modules_of_one_number_are_an_error_that_names_both() {
    static OTHER: dacapo_lift::ModuleSpec = dacapo_lift::ModuleSpec { name: "other", ..sum8::SPEC };
    let other = dacapo_lift::Entry { spec: &OTHER, ..sum8::ENTRY };
    let builder = Endpoint::builder().module(sum8::ENTRY).module(other);
    let error = builder.build().unwrap_err();
    let both = "\"sum8\" (number 0xf0e8) and \"other\" (number 0xf0e8)";
    assert!(error.text.contains(both), "{error}");
}

#[test]
fn a_session_file_that_names_it_is_refused_where_it_is_not_there() {
    let error = endpoint(&[]).create(SESSION).unwrap_err();
    assert!(error.text.contains("\"sum8\" is no module"), "{error}");
}

/// The session with the flow over the toy transport, and the toy module in its graph.
fn over_unix() -> String {
    SESSION
        .replace("\"segment\", \"sequence\", \"sum8\"", "\"segment\", \"sum8\"")
        .replace("\"udp\"", "\"toy-unix\"")
}

/// An address of the toy transport that no other test has.
fn unix_address(of: &str) -> String {
    format!("toy-unix:{of}%2F{}", std::process::id())
}

#[test]
fn the_toy_transport_keeps_the_contract() {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let make = || {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("c/{}-{number}", std::process::id());
        let at = dacapo::Address::other(unix::SCHEME, name.as_bytes()).unwrap();
        let (server, client) = (unix::Unix::listen(at).unwrap(), unix::Unix::dial(at).unwrap());
        let client_addr = client.local_addrs()[0];
        let (server, client) = (Box::new(server), Box::new(client));
        Pair { client, server, server_addr: at, client_addr }
    };
    // The others send more than ten datagrams at a time without reading, which is more than the
    // queue of a Unix socket takes where nobody has set `net.unix.max_dgram_qlen`.
    rules::boundaries_are_kept_for_every_size(&make);
    rules::a_datagram_arrives_by_the_lane_it_was_sent_by(&make);
    rules::data_without_a_lane_goes_by_control(&make);
    rules::a_lane_can_be_closed_and_opened_again(&make);
    rules::sending_to_nobody_never_hangs(&make);
    rules::an_oversized_datagram_is_too_large(&make);
    rules::a_full_pool_leaves_the_data_for_later(&make);
    rules::the_descriptor_is_readable_while_something_waits(&make);
    rules::data_lanes_are_idempotent_and_bounded(&make);
    rules::joining_what_is_no_group_is_refused(&make);
    rules::run_small(&make);
}

fn endpoint_with_both() -> Endpoint {
    let builder = Endpoint::builder().identity(dacapo::Identity::generate().unwrap());
    builder.module(sum8::ENTRY).transport(unix::entry()).build().unwrap()
}

#[test]
fn a_flow_runs_over_the_toy_transport_with_the_toy_module_in_its_graph() {
    let creator = endpoint_with_both().create(over_unix()).unwrap();
    let at = unix_address("flow");
    creator.listen(&at).unwrap();
    let uri = creator.uri().unwrap().to_string();
    assert_eq!(uri, at.replace("toy-unix:", "dacapo+toy-unix://") + "/toys");
    let participant = endpoint_with_both().connect(&uri).unwrap();
    let creator = creator.accept().unwrap();
    assert_eq!(participant.remote().to_string(), at);
    assert_eq!((creator.remote().scheme(), creator.remote().ip()), (unix::SCHEME, None));
    let flow = participant.flows().remove(0);
    assert_eq!((flow.graph.as_str(), flow.transport.as_str()), ("segment ! sum8", "toy-unix"));
    participant.activate().unwrap();
    creator.activate().unwrap();
    let (mut there, mut here) =
        (creator.sender("there").unwrap(), participant.receiver("there").unwrap());
    for number in 0..1_000_usize {
        let unit = vec![number as u8; number * 97 % 100_000];
        there.send(&unit).unwrap();
        assert_eq!(here.recv().unwrap(), Some(unit), "unit {number}");
    }
    there.finish().unwrap();
    assert_eq!(here.recv().unwrap(), None);
    let account = creator.close().unwrap();
    assert!(account.is_complete() && account.flows[0].same_bytes == Some(true), "{account}");
}

#[test]
fn who_lacks_the_transport_is_refused_and_told_its_name() {
    let creator = endpoint_with_both().create(over_unix()).unwrap();
    creator.listen("127.0.0.1:0").unwrap();
    let uri = creator.uri().unwrap().to_string();
    let error = endpoint(&[sum8::ENTRY]).connect(&uri).unwrap_err();
    assert!(error.text.contains("\"toy-unix\""), "{error}");
    // Who has it is told why it cannot be used from there.
    let error = endpoint_with_both().connect(&uri).unwrap_err();
    let why = "(it takes addresses of toy-unix, and it came from 127.0.0.1:";
    assert!(error.text.contains(why), "{error}");
    let there = "dacapo+toy-unix://nobody/toys";
    let error = endpoint_with_both().connect(there).unwrap_err();
    assert_eq!(error.code, Code::NotListening, "{error}");
    let error = endpoint(&[]).connect(there).unwrap_err();
    assert!(error.text.contains("no transport here has addresses of toy-unix"), "{error}");
    let error = creator.listen("toy-unix:a b").unwrap_err();
    assert!(error.text.contains("toy-unix:a b: an address is written in letters"), "{error}");
    let error = endpoint(&[sum8::ENTRY]).create(over_unix()).unwrap_err();
    assert!(error.text.contains("\"toy-unix\": this host opens no such transport"), "{error}");
}

#[test]
fn addresses_of_two_schemes_or_none_are_not_listened_at() {
    let endpoint = endpoint_with_both();
    let own = dacapo::Address::other(unix::SCHEME, b"two").unwrap();
    let error = endpoint.listen(&["127.0.0.1:0".parse().unwrap(), own]).unwrap_err();
    let why = "toy-unix:two is not of ip, as the first: listen there by another call";
    assert!(error.text.contains(why), "{error}");
    assert!(endpoint.listen(&[]).unwrap_err().text.contains("no address to listen at"));
    assert!(endpoint.listening().is_empty());
}

#[test]
fn two_transports_of_one_name_are_an_error_that_names_both() {
    static OTHER: dacapo_lift::TransportSpec =
        dacapo_lift::TransportSpec { id: 0xF0EA, ..unix::SPEC };
    let other = dacapo_transport::entry::TransportEntry { spec: &OTHER, ..unix::entry() };
    let error = Endpoint::builder().transport(unix::entry()).transport(other).build().unwrap_err();
    let both = "\"toy-unix\" (number 0xf0e9) and \"toy-unix\" (number 0xf0ea)";
    assert!(error.text.contains(both), "{error}");
}
