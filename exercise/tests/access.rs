//! The toy access module: its source and its sink, in flows with the toy C-module over the toy
//! transport.

use dacapo::{Endpoint, Join};
use dacapo_exercise::numbers::{self, Counts};
use dacapo_exercise::{sum8, unix};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One flow each way: both ends of both are the toy's.
const SESSION: &str = r#"
[session]
name = "toys"

[[flow]]
name = "there"
from = "creator"
source = { access = "numbers", count = 1000, len = "3000 B" }
unit_max = "3000 B"
graph = ["segment", "sum8"]
transport = "toy-unix"
bound = "1 Gbit/s"

[[flow]]
name = "back"
from = "participant"
source = { raw = true }
sink = { access = "numbers" }
unit_max = "70 KiB"
graph = ["segment", "sum8"]
transport = "toy-unix"
bound = "1 Gbit/s"
"#;

fn endpoint(counts: &Arc<Counts>) -> Endpoint {
    let builder = Endpoint::builder().identity(dacapo::Identity::generate().unwrap());
    let builder = builder.module(sum8::ENTRY).transport(unix::entry());
    builder.access(numbers::entry(counts)).build().unwrap()
}

/// Right, wrong, lost, ended.
fn seen(counts: &Counts) -> [u64; 4] {
    let Counts { right, wrong, lost, ended } = counts;
    [right, wrong, lost, ended].map(|it| it.load(Ordering::Relaxed))
}

#[test]
fn what_the_toy_source_gives_comes_whole_and_in_order_to_the_toy_sink() {
    let (here, there) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
    let creator = endpoint(&here).create(SESSION).unwrap();
    creator.listen(&format!("toy-unix:access-{}", std::process::id())).unwrap();
    let uri = creator.uri().unwrap().to_string();
    let back = [("count", "500"), ("len", "70000 B")];
    let join = Join::new().access("there", "numbers", &[]).access("back", "numbers", &back);
    let participant = endpoint(&there).join(&uri, &join).unwrap();
    let creator = creator.accept().unwrap();
    let flows = participant.flows();
    let used = |at: usize| (flows[at].graph.as_str(), flows[at].transport.as_str());
    assert_eq!([used(0), used(1)], [("segment ! sum8", "toy-unix"); 2]);
    assert!(participant.receiver("there").is_err() && creator.receiver("back").is_err());
    participant.activate().unwrap();
    creator.activate().unwrap();
    participant.wait_end().unwrap();
    let account = creator.close().unwrap();
    assert!(account.is_complete(), "{account}");
    assert_eq!((seen(&there), seen(&here)), ([1_000, 0, 0, 1], [500, 0, 0, 1]));
}

#[test]
fn a_name_or_parameter_that_there_is_not_is_told_with_what_there_is() {
    let counts = Arc::default();
    for (from, to, said) in [
        (
            "\"numbers\", c",
            "\"numbrs\", c",
            "\"numbrs\" is no access module (did you mean \"numbers\"?)",
        ),
        ("\"numbers\", c", "\"x\", c", "allowed: \"file\", \"numbers\", \"raw\", \"test\""),
        (
            "count = 1000",
            "cuont = 5",
            "\"numbers\" has no parameter \"cuont\" (did you mean \"count\"?)",
        ),
        ("count = 1000", "count = 0", "source.count: 0 is out of range; allowed: 1 to 1000000"),
        ("\"3000 B\" }", "\"3 s\" }", "source.len: \"3 s\" is not a size"),
        ("\"numbers\" }", "\"numbrs\" }", "sink.access: \"numbrs\" is no access module"),
    ] {
        assert!(SESSION.contains(from), "{from}");
        let error = endpoint(&counts).create(SESSION.replacen(from, to, 1)).unwrap_err();
        assert!(error.text.contains(said) && error.text.contains("session file:"), "{error}");
    }
    for (module, params, said) in [
        ("numbrs", [("count", "5")], "did you mean \"numbers\"?"),
        ("numbers", [("len", "5 B")], "len: 5 B is out of range"),
        ("raw", [("len", "5 B")], "\"raw\" has no parameter \"len\""),
    ] {
        let join = Join::new().access("there", module, &params);
        // Nobody listens there: it is told before anything is sent.
        let error = endpoint(&counts).join("dacapo://127.0.0.1:1/toys", &join).unwrap_err();
        assert!(error.text.contains(said), "{error}");
    }
}

#[test]
fn two_access_modules_of_one_number_are_an_error_that_names_both() {
    static OTHER: dacapo::access::AccessSpec =
        dacapo::access::AccessSpec { name: "others", ..numbers::SPEC };
    let counts = Arc::default();
    let other = dacapo::access::AccessEntry { spec: &OTHER, ..numbers::entry(&counts) };
    let builder = Endpoint::builder().access(numbers::entry(&counts)).access(other);
    let error = builder.build().unwrap_err();
    let both = "\"numbers\" (number 0xf0e7) and \"others\" (number 0xf0e7)";
    assert!(error.text.contains(both), "{error}");
}

#[test]
fn a_flow_that_the_session_has_not_is_told() {
    let counts = Arc::default();
    let creator = endpoint(&counts).create(SESSION).unwrap();
    creator.listen(&format!("toy-unix:told-{}", std::process::id())).unwrap();
    let uri = creator.uri().unwrap().to_string();
    let join = Join::new().access("their", "numbers", &[]);
    let error = endpoint(&counts).join(&uri, &join).unwrap_err();
    assert!(error.text.contains("the session has no flow \"their\""), "{error}");
}
