//! Flows between processes of one host: through shared memory where both ends have found it, and
//! over what goes between hosts where they have not, or the session says what the path is like.

use crate::world::{endpoint, serve, unit, uri, watched};
use dacapo::host::Host;
use dacapo::{Dial, Dialed, Endpoint, Session};
use dacapo_security::Identity;
use dacapo_transport::entry::{StreamCarrier, StreamListener};
use dacapo_transport::shm;

const UNITS: usize = 500;

/// A flow that asks for what several transports give, with further lines before it.
fn session(further: &str, flow: &str) -> String {
    format!(
        "[session]\nname = \"near\"\ntitle = \"Near\"\n{further}\n[[flow]]\nname = \"there\"\n\
         from = \"creator\"\nsource = {{ raw = true }}\ndigest = true\n\
         attributes = {{ order = \"ordered\", integrity = \"checked\", loss = \"0 %\" }}\n{flow}\n"
    )
}

/// Both ends, active, and the graph that was agreed.
fn agreed(file: &str, participant: &Endpoint) -> (Session, Session, String) {
    let creator = serve(file);
    let participant = participant.connect(&uri(&creator)).unwrap();
    let creator = creator.accept().unwrap();
    let flow = participant.flows().remove(0);
    let parts = [flow.graph, flow.transport].into_iter().filter(|part| !part.is_empty());
    let graph = parts.collect::<Vec<_>>().join(" ! ");
    participant.activate().unwrap();
    creator.activate().unwrap();
    (creator, participant, graph)
}

/// Sends every unit and reads it.
fn carries_all(creator: Session, participant: Session) {
    let writer = std::thread::spawn(move || {
        (0..UNITS).for_each(|number| creator.sender("there").unwrap().send(&unit(number)).unwrap());
        creator.sender("there").unwrap().finish().unwrap();
        creator.close().unwrap()
    });
    for number in 0..UNITS {
        assert_eq!(
            participant.receiver("there").unwrap().recv().unwrap(),
            Some(unit(number)),
            "{number}"
        );
    }
    assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), None);
    for account in [participant.close().unwrap(), writer.join().unwrap()] {
        assert!(account.is_complete(), "{account}");
        assert_eq!(account.flows[0].same_bytes, Some(true), "{account}");
    }
}

struct FindsNobody;

impl StreamCarrier for FindsNobody {
    fn listen(&mut self, _: &[dacapo::Address]) -> std::io::Result<StreamListener> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn dial(&mut self, _: Dial) -> Dialed {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// An endpoint that finds nobody on its host.
fn who_finds_nobody() -> Endpoint {
    let mut host = Host::with_identity(Identity::generate().unwrap()).unwrap();
    host.reactor().set_stream_carrier(shm::SPEC.id, Box::new(FindsNobody));
    Endpoint::with_host(host).unwrap()
}

#[test]
fn a_flow_between_two_ends_of_one_host_goes_through_shared_memory() {
    watched(|| {
        let (creator, participant, graph) = agreed(&session("", ""), &endpoint());
        assert_eq!(graph, "segment ! shm");
        carries_all(creator, participant);
    });
}

#[test]
fn who_has_not_found_the_creator_on_its_host_gets_what_goes_between_hosts() {
    watched(|| {
        let (creator, participant, graph) = agreed(&session("", ""), &who_finds_nobody());
        assert_eq!(graph, "segment ! checksum ! tcp");
        carries_all(creator, participant);
    });
}

#[test]
fn a_flow_that_may_lose_or_is_slow_goes_as_it_does_between_hosts() {
    watched(|| {
        let may_lose = session("", "").replace(", loss = \"0 %\"", "");
        let (.., graph) = agreed(&may_lose, &endpoint());
        assert!(graph.ends_with(" ! udp"), "{graph}");
        for (most, carried_by) in [("99 Mbit/s", "tcp"), ("100 Mbit/s", "shm")] {
            let bound = format!("throughput = {{ max = \"{most}\" }}, loss =");
            let (.., graph) = agreed(&session("", "").replace("loss =", &bound), &endpoint());
            assert!(graph.ends_with(carried_by), "{most}: {graph}");
        }
    });
}

#[test]
fn a_path_that_is_said_holds_and_what_is_named_is_taken() {
    watched(|| {
        let lan = "[path]\nassume = \"lan\"\n";
        let (.., graph) = agreed(&session(lan, ""), &endpoint());
        assert!(!graph.contains("shm"), "{graph}");
        let named = "graph = []\ntransport = \"shm\"";
        let (.., graph) = agreed(&session(lan, named), &endpoint());
        assert_eq!(graph, "shm");
    });
}

#[test]
fn what_shared_memory_does_not_give_is_not_carried_by_it() {
    watched(|| {
        let file = session("", "").replace("loss =", "confidentiality = \"required\", loss =");
        let (.., graph) = agreed(&file, &endpoint());
        assert_eq!(graph, "segment ! quic");
    });
}
