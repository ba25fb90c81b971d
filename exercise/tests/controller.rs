//! The toy controller: both flows of a path together keep to its pace, whatever each is bounded to.

use dacapo::{Endpoint, Session};
use dacapo_exercise::{steady, sum8};
use std::time::Instant;

/// Two flows, each bounded to far more than the controller lets out.
fn session() -> String {
    let flow = |name: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\nfrom = \"creator\"\nsource = {{ raw = true }}\n\
             graph = [\"segment\", \"sequence\", \"sum8\"]\n\
             transport = \"udp\"\nbound = \"200 Mbit/s\"\n"
        )
    };
    ["[session]\nname = \"toys\"\n".to_owned(), flow("one"), flow("two")].concat()
}

const RATE_BPS: u64 = 20_000_000;
const UNITS: usize = 500;
const UNIT_LEN: usize = 1_000;

fn builder() -> dacapo::Builder {
    Endpoint::builder().identity(dacapo::Identity::generate().unwrap()).module(sum8::ENTRY)
}

/// Only the end that sends has the controller.
fn pair() -> (Session, Session) {
    let steady = builder().controller(steady::entry(RATE_BPS)).control_by("steady");
    let creator = steady.build().unwrap().create(session()).unwrap();
    creator.listen("127.0.0.1:0").unwrap();
    let uri = creator.uri().unwrap().to_string();
    let participant = builder().build().unwrap().connect(&uri).unwrap();
    (creator.accept().unwrap(), participant)
}

#[test]
fn two_flows_together_keep_to_the_pace_of_the_toy_controller() {
    let (creator, participant) = pair();
    participant.activate().unwrap();
    creator.activate().unwrap();
    assert_eq!(creator.measured("one").unwrap().path.controller, "steady");
    assert_eq!(participant.measured("one").unwrap().path.controller, "reserved");
    let began = Instant::now();
    std::thread::scope(|scope| {
        for name in ["one", "two"] {
            let mut sender = creator.sender(name).unwrap();
            scope.spawn(move || {
                (0..UNITS).for_each(|_| sender.send(&[7; UNIT_LEN]).unwrap());
                sender.finish().unwrap();
            });
            let mut receiver = participant.receiver(name).unwrap();
            scope.spawn(move || while receiver.recv().unwrap().is_some() {});
        }
    });
    // A busy machine is slower, none is faster: what goes out in 2 ms may go out at once.
    let least = (2 * UNITS * UNIT_LEN * 8) as f64 / RATE_BPS as f64 - 0.01;
    let took = began.elapsed().as_secs_f64();
    assert!(took >= least, "{took} s for what takes {least} s at this pace");
    let account = creator.close().unwrap();
    assert!(account.flows.iter().all(|flow| flow.ledger.closes()), "{account}");
}

#[test]
fn a_controller_that_is_not_there_is_an_error_that_says_which_are() {
    let error = builder().control_by("steady").build().unwrap_err();
    assert!(error.text.contains("\"steady\" is no controller"), "{error}");
    assert!(error.text.contains("\"reserved\""), "{error}");
    let toy = || steady::entry(1);
    let error = builder().controller(toy()).controller(toy()).build().unwrap_err();
    assert!(error.text.contains("two controllers of one name: \"steady\""), "{error}");
}
