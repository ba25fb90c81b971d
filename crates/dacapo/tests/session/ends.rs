//! Ends that are not the usual one, and that flows end one by one.

use crate::world::{TWO_WAY, active_pair, endpoint, serve, uri, watched};
use dacapo::session::BACKLOG_MAX;
use dacapo::{Attributes, Code, Fault};
use dacapo_qos::AttributeKey;

#[test]
fn a_flow_that_is_finished_ends_at_the_peer_and_the_other_goes_on() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        creator.sender("there").unwrap().send(b"only").unwrap();
        creator.sender("there").unwrap().finish().unwrap();
        creator.sender("there").unwrap().finish().unwrap();
        assert_eq!(participant.receiver("there").unwrap().recv().unwrap().unwrap(), b"only");
        assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), None);
        assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), None);
        participant.sender("back").unwrap().send(b"goes on").unwrap();
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap().unwrap(), b"goes on");
    });
}

#[test]
fn an_endpoint_that_goes_ends_its_sessions_at_the_peer() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let endpoint = participant.endpoint().clone();
        drop(endpoint);
        drop(participant);
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap(), None);
        creator.close().unwrap();
    });
}

#[test]
fn media_is_not_for_calls_and_a_session_of_nothing_else_is_refused() {
    let with_picture = format!(
        "{TWO_WAY}\n[[flow]]\nname = \"picture\"\nfrom = \"creator\"\n\
         source = {{ test = \"movie\", stream = \"video\", duration = \"1 s\" }}\n\
         graph = [\"segment\", \"sequence\", \"checksum\"]\ntransport = \"udp\"\n"
    );
    watched(move || {
        let (creator, participant) = active_pair(&with_picture);
        assert!(!participant.flows()[2].is_usable && participant.flows()[1].is_usable);
        assert!(participant.flows()[2].to_string().ends_with(", not for calls"));
        let error = participant.receiver("picture").and_then(|mut it| it.recv()).unwrap_err();
        assert!(error.text.contains("is not for calls; it carries pictures or sound"), "{error}");
        participant.sender("back").unwrap().send(b"bytes").unwrap();
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap().unwrap(), b"bytes");
        assert_eq!(participant.close().unwrap().flows.len(), 2);
    });
    let picture = "[session]\nname = \"two-way\"\n[[flow]]\nname = \"picture\"\n\
         from = \"creator\"\n\
         source = { test = \"movie\", stream = \"video\", duration = \"1 s\" }\n\
         graph = [\"segment\", \"sequence\", \"checksum\"]\ntransport = \"udp\"\n";
    watched(move || {
        let creator = serve(picture);
        let error = endpoint().connect(&uri(&creator)).unwrap_err();
        assert_eq!((error.code, error.fault()), (Code::Unsupported, Fault::Version));
        assert!(error.text.contains("no flow of bytes"), "{error}");
    });
}

#[test]
fn more_participants_than_allowed_are_refused_with_the_reason() {
    let one = TWO_WAY.replace("name = \"back\"", "name = \"back\"\nattributes = { receivers = 1 }");
    watched(move || {
        let creator = serve(&one);
        let endpoint = endpoint();
        let first = endpoint.connect(&uri(&creator)).unwrap();
        let error = endpoint.connect(&uri(&creator)).unwrap_err();
        assert_eq!(error.code, Code::TooMany, "{error}");
        assert!(error.text.contains("participants already"), "{error}");
        first.close().unwrap();
        // Who ended makes room, at the latest when the creator has seen it.
        creator.accept().unwrap().close().unwrap();
        endpoint.connect(&uri(&creator)).unwrap();
    });
}

#[test]
fn who_asks_for_what_the_creator_does_not_give_is_refused() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let asks = Attributes::default().min(AttributeKey::Throughput, 900_000_000);
        let error = endpoint().connect_with(&uri(&creator), &asks).unwrap_err();
        assert_eq!(error.fault(), Fault::Config, "{error}");
        let asks = Attributes::default().min(AttributeKey::Priority, 5);
        let session = endpoint().connect_with(&uri(&creator), &asks).unwrap();
        session.activate().unwrap();
        session.sender("back").unwrap().send(b"first").unwrap();
        assert_eq!(
            creator.accept().unwrap().receiver("back").unwrap().recv().unwrap().unwrap(),
            b"first"
        );
    });
}

#[test]
fn sessions_that_nobody_accepts_are_refused_from_a_bound_on() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let endpoint = endpoint();
        for _ in 0..BACKLOG_MAX {
            endpoint.connect(&uri(&creator)).unwrap().close().unwrap();
        }
        let error = endpoint.connect(&uri(&creator)).unwrap_err();
        assert_eq!(error.code, Code::TooMany, "{error}");
        assert!(error.text.contains("has not accepted"), "{error}");
        creator.accept().unwrap();
        endpoint.connect(&uri(&creator)).unwrap();
    });
}
