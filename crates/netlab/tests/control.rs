//! Commands out of band: to access modules and to modules of a running graph, answered or given up.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, ms, offer, offer_back, pattern, plain};
use dacapo_base::Time;
use dacapo_core::{Code, Command, CoreEvent, Done, Port, SourcePoll, UnitWriter};
use dacapo_core::{CommandError, SessionId, Source};
use dacapo_modules::ordering::sequence::CONTROL_SET_HOLD;
use dacapo_netlab::NodeId;
use dacapo_wire::session::{FLOW_ALL, MODULE_ACCESS};
use std::sync::{Arc, Mutex};

const LINK: &str = "delay=20ms";

type Answer = Result<Vec<u8>, (Code, String)>;

/// Flows: 0 and 1 to the participant, 2 back.
fn running() -> (Lab, Joined) {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(20_000);
    let mut flows = plain();
    flows.push(offer("second", &["checksum"]));
    flows.push(offer_back("back", &["sequence"]));
    let joined = lab.start(flows);
    (lab, joined)
}

/// Sends a command and waits for its answer.
fn ask(
    lab: &mut Lab,
    (node, session): (NodeId, SessionId),
    flow: u16,
    module: u16,
    bytes: &[u8],
) -> Answer {
    let now = lab.now();
    let request = lab
        .world
        .core(node)
        .handle_command(now, Command::Control { session, flow, module, payload: bytes.to_vec() })
        .and_then(Done::request)
        .unwrap();
    answer_of(lab, node, request, 500)
}

fn answer_of(lab: &mut Lab, node: NodeId, request: u32, most: u64) -> Answer {
    let (_, answer) = lab.expect(node, ms(most), |event| match event {
        CoreEvent::ControlAnswered { request: id, answer, .. } if *id == request => {
            Some(answer.clone())
        }
        _ => None,
    });
    answer.map_err(|error| (error.code, error.text))
}

#[test]
fn the_access_module_of_a_flow_answers_a_command() {
    let (mut lab, joined) = running();
    let (creator, participant) = ((lab.creator, joined.there), (lab.participant, joined.here));
    for flow in [0, 1, FLOW_ALL] {
        let answer = ask(&mut lab, participant, flow, MODULE_ACCESS, b"abc");
        assert_eq!(answer, Ok(b"cba".to_vec()), "flow {flow}");
    }
    let answer = ask(&mut lab, creator, 2, MODULE_ACCESS, b"abc");
    assert_eq!(answer, Ok(b"cba".to_vec()), "the other way");
    let unknown = ask(&mut lab, participant, 9, MODULE_ACCESS, b"abc").unwrap_err();
    assert_eq!(unknown.0, Code::NoSuchThing);
    let receives = ask(&mut lab, participant, 2, MODULE_ACCESS, b"abc").unwrap_err();
    assert_eq!(receives.0, Code::NoSuchThing, "the creator does not send flow 2");
}

/// A source that notes commands, and takes none that begins with `no`.
struct Noting(Arc<Mutex<Vec<(String, Time)>>>, String);

impl Source for Noting {
    fn poll_unit(&mut self, _: Time, _: &mut UnitWriter<'_>) -> SourcePoll {
        SourcePoll::Idle
    }

    fn command(&mut self, now: Time, payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        self.0.lock().unwrap().push((self.1.clone(), now));
        if payload.starts_with(self.1.as_bytes()) {
            return Err(CommandError(format!("{} does not want that", self.1)));
        }
        Ok(self.1.clone().into_bytes())
    }
}

#[test]
fn a_command_to_all_flows_reaches_each_at_one_instant_even_if_one_refuses() {
    let mut lab = Lab::new(LINK);
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = noted.clone();
    let flows = ["one", "two", "three"].map(|name| offer(name, &["checksum"])).to_vec();
    lab.publish_with("test", flows, move |flow| {
        Ok(Port::Source(Box::new(Noting(notes.clone(), flow.name.clone()))))
    });
    let peer = lab.dial();
    let joined = lab.set_up(peer, "test");
    let here = (lab.participant, joined.here);
    assert_eq!(ask(&mut lab, here, FLOW_ALL, MODULE_ACCESS, b"go"), Ok(b"one".to_vec()));
    let (code, text) = ask(&mut lab, here, FLOW_ALL, MODULE_ACCESS, b"one").unwrap_err();
    assert_eq!((code, text.as_str()), (Code::Refused, "one does not want that"));
    let noted = noted.lock().unwrap();
    let names: Vec<&str> = noted.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["one", "two", "three", "one", "two", "three"]);
    assert!(noted[..3].iter().all(|(_, at)| *at == noted[0].1), "at one instant");
}

fn set_hold(ns: u64) -> Vec<u8> {
    [&[CONTROL_SET_HOLD][..], &ns.to_be_bytes()].concat()
}

#[test]
fn a_module_of_the_graph_is_set_at_the_sender_and_at_the_receiver() {
    let (mut lab, joined) = running();
    let (creator, participant) = ((lab.creator, joined.there), (lab.participant, joined.here));
    // Place 1 of flow 0 is `sequence`: the participant asks the sender, the creator the receiver.
    for end in [creator, participant] {
        assert_eq!(ask(&mut lab, end, 0, 1, &set_hold(5_000_000)), Ok(Vec::new()));
        let (code, text) = ask(&mut lab, end, 0, 1, &set_hold(10_000_000_001)).unwrap_err();
        assert_eq!(code, Code::Refused);
        assert!(text.starts_with("hold: 10000000001 ns is outside 0 to 10000000000"), "{text}");
        for junk in
            [&b""[..], &[CONTROL_SET_HOLD], &[CONTROL_SET_HOLD, 1, 2], &[99; 9], &[0; 4_096]]
        {
            let refused = ask(&mut lab, end, 0, 1, junk).unwrap_err();
            assert_eq!(refused.0, Code::Refused, "{} bytes of junk", junk.len());
        }
        for place in [0, 2] {
            let refused = ask(&mut lab, end, 0, place, &set_hold(0)).unwrap_err();
            assert_eq!(refused.0, Code::Refused, "place {place} knows no messages");
        }
        assert_eq!(ask(&mut lab, end, 0, 3, b"x").unwrap_err().0, Code::Refused, "no such place");
        assert_eq!(
            ask(&mut lab, end, 7, 0, b"x").unwrap_err().0,
            Code::NoSuchThing,
            "no such flow"
        );
        assert_eq!(ask(&mut lab, end, FLOW_ALL, 0, b"x").unwrap_err().0, Code::NoSuchThing);
    }
}

#[test]
fn a_hold_that_is_set_at_the_receiver_is_how_long_it_waits() {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(3_000);
    let joined = lab.start(plain());
    let creator = (lab.creator, joined.there);
    assert_eq!(ask(&mut lab, creator, 0, 1, &set_hold(400_000_000)), Ok(Vec::new()));
    let from = lab.now();
    lab.world.cut(lab.creator, lab.participant, true);
    lab.run(ms(5));
    lab.world.cut(lab.creator, lab.participant, false);
    lab.run(ms(300));
    let before = joined.numbers(0).len();
    lab.run(ms(200));
    assert!(joined.numbers(0).len() > before + 300, "the wait is over");
    let gap_ms = |at: usize| at as u64 + 1;
    assert!(gap_ms(before) < from.as_nanos() / 1_000_000, "nothing passed while it waited");
}

#[test]
fn requests_are_numbered_and_each_answer_names_its_own() {
    let (mut lab, joined) = running();
    let now = lab.now();
    let core = lab.world.core(lab.participant);
    let mut requests = Vec::new();
    for index in 0..100_u8 {
        let bytes = [index, 255];
        requests.push(
            core.handle_command(
                now,
                Command::Control {
                    session: joined.here,
                    flow: 0,
                    module: MODULE_ACCESS,
                    payload: bytes.to_vec(),
                },
            )
            .and_then(Done::request)
            .unwrap(),
        );
    }
    assert!(requests.windows(2).all(|pair| pair[0] < pair[1]), "{requests:?}");
    for (index, request) in requests.into_iter().enumerate() {
        let answer = answer_of(&mut lab, NodeId(1), request, 500);
        assert_eq!(answer, Ok(vec![255, index as u8]));
    }
}

#[test]
fn four_kibibytes_are_carried_and_a_byte_more_is_refused_at_once() {
    let (mut lab, joined) = running();
    let here = (lab.participant, joined.here);
    let most = ask(&mut lab, here, 0, MODULE_ACCESS, &[7; 4_096]);
    assert_eq!(most, Ok(vec![7; 4_096]));
    let now = lab.now();
    let core = lab.world.core(lab.participant);
    let more = core
        .handle_command(
            now,
            Command::Control {
                session: joined.here,
                flow: 0,
                module: MODULE_ACCESS,
                payload: [7; 4_097].to_vec(),
            },
        )
        .and_then(Done::request)
        .unwrap_err();
    assert_eq!(more.code, Code::TooMany);
    let waiting = (0..300).map(|_| {
        core.handle_command(
            now,
            Command::Control {
                session: joined.here,
                flow: 0,
                module: MODULE_ACCESS,
                payload: b"x".to_vec(),
            },
        )
        .and_then(Done::request)
    });
    let refused = waiting.filter(Result::is_err).count();
    assert!(refused >= 44, "at most 256 wait: {refused} refused");
}

#[test]
fn a_request_that_nobody_answers_fails_once_whether_the_peer_or_the_session_ends() {
    let (mut lab, joined) = running();
    let now = lab.now();
    let core = lab.world.core(lab.participant);
    core.handle_command(now, Command::GiveUpAfter(joined.here, ms(0))).unwrap();
    let request = core
        .handle_command(
            now,
            Command::Control {
                session: joined.here,
                flow: 0,
                module: MODULE_ACCESS,
                payload: b"x".to_vec(),
            },
        )
        .and_then(Done::request)
        .unwrap();
    lab.world.kill(lab.creator);
    let answer = answer_of(&mut lab, NodeId(1), request, 10_100);
    assert_eq!(
        answer.unwrap_err().0,
        Code::ContactLost,
        "the peer is gone before the 10 s are over"
    );
    lab.run(ms(12_000));
    let answers = lab.count(NodeId(1), |it| matches!(it, CoreEvent::ControlAnswered { .. }));
    assert_eq!(answers, 1);
}

#[test]
fn a_request_to_a_peer_that_lives_and_does_not_answer_fails_after_ten_seconds() {
    let (mut lab, joined) = running();
    // Its control does not get through, its probes and data do.
    lab.world.block(lab.creator, Some(dacapo_transport::TrafficClass::Control));
    let now = lab.now();
    let core = lab.world.core(lab.participant);
    let request = core
        .handle_command(
            now,
            Command::Control {
                session: joined.here,
                flow: 0,
                module: MODULE_ACCESS,
                payload: b"x".to_vec(),
            },
        )
        .and_then(Done::request)
        .unwrap();
    let answer = answer_of(&mut lab, NodeId(1), request, 10_100);
    assert_eq!(answer, Err((Code::NoAnswer, "CONTROL".into())));
    assert!(lab.now().since(now) >= ms(9_999));
    assert_eq!(lab.ended(lab.participant, joined.here), None, "only the request failed");
    lab.world.block(lab.creator, None);
    lab.run(ms(2_000));
    let here = (lab.participant, joined.here);
    assert_eq!(ask(&mut lab, here, 0, MODULE_ACCESS, b"ab"), Ok(b"ba".to_vec()));
}

#[test]
fn a_command_before_the_session_is_set_up_or_after_its_end_is_refused_at_once() {
    let mut lab = Lab::new(LINK);
    lab.publish("test", plain());
    let peer = lab.dial();
    let here = lab.join(peer, "test");
    let control = |lab: &mut Lab| {
        let now = lab.now();
        let core = lab.world.core(lab.participant);
        core.handle_command(
            now,
            Command::Control {
                session: here,
                flow: 0,
                module: MODULE_ACCESS,
                payload: b"x".to_vec(),
            },
        )
        .and_then(Done::request)
        .map_err(|error| error.code)
    };
    assert_eq!(control(&mut lab), Err(Code::NoSuchThing), "joining");
    let flows = lab.offered(here);
    assert_eq!(control(&mut lab), Err(Code::NoSuchThing), "an offer waits");
    lab.answer(here, &flows);
    lab.run(ms(500));
    assert_eq!(lab.ended(lab.participant, here), None);
    assert!(control(&mut lab).is_ok(), "ready");
    lab.close(lab.participant, here);
    assert_eq!(control(&mut lab), Err(Code::NoSuchThing), "closing");
    lab.end_of(lab.participant, here, ms(500));
    assert_eq!(control(&mut lab), Err(Code::NoSuchThing), "over");
}
