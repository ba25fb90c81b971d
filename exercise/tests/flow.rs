//! The toys in flows between two endpoints over loopback.

use dacapo::{Code, Endpoint, Session};
use dacapo_exercise::{sum8, unix};
use dacapo_lift::Params;
use dacapo_lift::conformance::{Subject, suite};

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

fn endpoint_with_both() -> Endpoint {
    let builder = Endpoint::builder().identity(dacapo::Identity::generate().unwrap());
    builder.module(sum8::ENTRY).transport(unix::entry()).build().unwrap()
}

#[test]
fn a_flow_runs_over_the_toy_transport_with_the_toy_module_in_its_graph() {
    let creator = endpoint_with_both().create(&over_unix()).unwrap();
    creator.listen("127.0.0.1:0").unwrap();
    let uri = creator.uri().unwrap().to_string();
    let participant = endpoint_with_both().connect(&uri).unwrap();
    let creator = creator.accept().unwrap();
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
    let creator = endpoint_with_both().create(&over_unix()).unwrap();
    creator.listen("127.0.0.1:0").unwrap();
    let uri = creator.uri().unwrap().to_string();
    let error = endpoint(&[sum8::ENTRY]).connect(&uri).unwrap_err();
    assert!(error.text.contains("\"toy-unix\""), "{error}");
    let error = endpoint(&[sum8::ENTRY]).create(&over_unix()).unwrap_err();
    assert!(error.text.contains("\"toy-unix\": this host opens no such transport"), "{error}");
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
