//! Calls that are wrong: number 101, and a text that says what to do.

use crate::world::{TWO_WAY, active_pair, endpoint, pair, serve, uri, watched};
use dacapo::{Code, Error, Fault};

#[track_caller]
fn assert_misuse<T: std::fmt::Debug>(outcome: Result<T, Error>, text: &str) {
    let error = outcome.unwrap_err();
    assert_eq!((error.code as u16, error.fault()), (101, Fault::Misuse), "{error}");
    assert_eq!(error.text, text);
}

#[test]
fn flows_that_do_not_exist_or_go_the_other_way() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let unknown = "the session \"two-way\" has no flow \"their\"; it has there, back";
        assert_misuse(participant.receiver("their").and_then(|mut it| it.recv()), unknown);
        assert_misuse(creator.sender("their").and_then(|mut it| it.send(b"")), unknown);
        assert_misuse(creator.sender("their").and_then(|mut it| it.finish()), unknown);
        let sent = "the flow \"there\" is sent by this end; call send, or receive from another";
        assert_misuse(creator.receiver("there").and_then(|mut it| it.recv()), sent);
        assert_misuse(creator.receiver("there").and_then(|mut it| it.try_recv()), sent);
        let received = "the flow \"there\" is received by this end; call recv, or send on another";
        assert_misuse(participant.sender("there").and_then(|mut it| it.send(b"")), received);
        assert_misuse(participant.sender("there").and_then(|mut it| it.finish()), received);
        // None of that has done any harm.
        creator.sender("there").unwrap().send(b"well").unwrap();
        assert_eq!(participant.receiver("there").unwrap().recv().unwrap().unwrap(), b"well");
    });
}

#[test]
fn calls_before_the_session_is_active() {
    watched(|| {
        let (_creator, participant) = pair(TWO_WAY);
        let text = "the session \"two-way\" is not active; call activate() first";
        assert_misuse(participant.sender("back").and_then(|mut it| it.send(b"")), text);
        assert_misuse(participant.receiver("there").and_then(|mut it| it.recv()), text);
        assert_misuse(participant.receiver("there").and_then(|mut it| it.try_recv()), text);
        assert_misuse(participant.deactivate(), text);
    });
}

#[test]
fn calls_after_the_end() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        creator.sender("there").unwrap().finish().unwrap();
        let finished = "the flow \"there\" is finished; nothing follows";
        assert_misuse(creator.sender("there").and_then(|mut it| it.send(b"")), finished);
        participant.close().unwrap();
        let text = "the session \"two-way\" is closed; connect or accept anew";
        assert_misuse(participant.close(), text);
        assert_misuse(participant.clone().sender("back").and_then(|mut it| it.send(b"")), text);
        assert_misuse(participant.receiver("there").and_then(|mut it| it.recv()), text);
        assert_misuse(participant.activate(), text);
        assert_misuse(participant.sender("back").and_then(|mut it| it.finish()), text);
        assert!(!participant.is_active());
        assert_eq!(participant.account().flows.len(), 2, "the account stays");
    });
}

#[test]
fn what_only_one_of_the_two_ends_may_do() {
    watched(|| {
        let (creator, _participant) = active_pair(TWO_WAY);
        let text = "only the participant pauses a session; close() ends it";
        assert_misuse(creator.deactivate(), text);
    });
}

#[test]
fn units_that_are_too_large() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let most = creator.flows()[0].unit_len_max;
        let error =
            creator.sender("there").and_then(|mut it| it.send(&vec![0; most + 1])).unwrap_err();
        assert_eq!((error.code, error.fault()), (Code::UnitTooLarge, Fault::Misuse));
        let text = format!("{} bytes; the flow \"there\" takes at most {most} in a unit", most + 1);
        assert_eq!(error.text, text);
        creator.sender("there").unwrap().send(b"small").unwrap();
        assert_eq!(participant.receiver("there").unwrap().recv().unwrap().unwrap(), b"small");
    });
}

#[test]
fn creators_that_cannot_be() {
    watched(|| {
        let creator = endpoint().create(TWO_WAY).unwrap();
        let silent = "nobody can join \"two-way\" yet; call listen() first";
        assert_misuse(creator.accept(), silent);
        assert_eq!(creator.uri(), None);
        let twice = "this endpoint serves \"two-way\"; give it another name";
        assert_misuse(creator.endpoint().create(TWO_WAY), twice);
        let error = endpoint().create("[session]\nname = \"x\"\nflows = 3\n").unwrap_err();
        assert_eq!(error.fault(), Fault::Config);
        assert!(error.text.contains("session file:3:"), "{error}");
        creator.listen("127.0.0.1:0").unwrap();
        let port = creator.uri().unwrap().port;
        creator.listen(&format!("127.0.0.1:{port}")).unwrap();
        assert_eq!(creator.endpoint().listening().len(), 1, "listening twice is once");
    });
}

#[test]
fn addresses_that_lead_nowhere() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let error = endpoint().connect("notes").unwrap_err();
        assert_eq!(error.fault(), Fault::Misuse);
        assert!(error.text.contains("expected dacapo://HOST[:PORT]/NAME"), "{error}");
        let itself = creator.endpoint().connect(&uri(&creator)).unwrap_err();
        assert_eq!(itself.fault(), Fault::Misuse);
        assert!(itself.text.contains("connect from another one"), "{itself}");
        let other = uri(&creator).replace("/two-way", "/three-way");
        let error = endpoint().connect(&other).unwrap_err();
        assert_eq!((error.code, error.fault()), (Code::NotServed, Fault::Peer));
    });
}
