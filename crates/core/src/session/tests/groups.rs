//! Flows that are sent once for several: groups at the participant, fan-outs at the creator.

use super::*;
use crate::fanout::{FanOutMember, Fed};
use crate::flow::receiver::UNITS_MAX;
use crate::groups::GroupAsk;
use crate::ids::FanOutId;
use crate::labels::Target;
use crate::peer::tests::narrow;
use crate::session::FlowEnd;
use dacapo_base::Address;
use dacapo_lift::Membership;
use dacapo_wire::session::Answer;
use std::net::SocketAddr;

fn group() -> SocketAddr {
    "239.1.1.1:5000".parse().unwrap()
}

/// A flow to a group, and one on a stream.
fn news() -> Vec<FlowOffer> {
    let to_group = offer(0, Direction::ToParticipant);
    vec![
        FlowOffer { transport: GROUPS.id, multicast: Some(group()), ..to_group },
        offer(1, Direction::ToParticipant),
    ]
}

fn membership() -> Membership {
    let source = "192.0.2.1:9".parse().unwrap();
    Membership { group: group(), source, source_specific: false }
}

fn given(flow: u16, base: Option<u64>) -> FlowAnswer {
    FlowAnswer {
        flow,
        accepted: Ok(()),
        label: 70 + u32::from(flow),
        datagram_len: news()[0].datagram_len,
        stream_token: (flow == 1).then_some([1; 16]),
        base,
        stream_port: None,
    }
}

impl Rig {
    /// A participant that has answered the offer of a group, which is not joined yet.
    fn joining_group() -> Self {
        let mut rig = Self::offered(news());
        rig.peer = Peer::on_path("192.0.2.1:9", &narrow());
        let ports = || vec![Some(Port::Sink(Basket::new().boxed())), None];
        rig.with(|it, cx, out| it.answer(cx, ports(), out)).unwrap();
        assert!(rig.said().is_empty() && rig.session.is_unanswered(), "it waits for the group");
        assert_eq!(rig.shared.groups.poll(), Some(GroupAsk::Join(membership())));
        rig
    }

    /// What became of the group; the answer to the offer.
    fn joined(&mut self, result: &Result<(), String>) -> Vec<FlowAnswer> {
        self.with(|it, cx, out| {
            it.on_flow(0, |flow| flow.handle_joined(cx, &membership(), result));
            it.answer_if_open(cx, out);
        });
        match self.effects().pop() {
            Some(Effect::Send(_, Message::Answer(answer))) => answer.flows,
            _ => panic!("it is answered"),
        }
    }

    fn accept(&mut self, base: Option<u64>) -> Vec<String> {
        let transcript = self.session.transcript;
        let flows = vec![given(0, base), given(1, None)];
        self.take(Message::Accept(Accept { transcript, flows }))
    }

    /// A creator of a flow to a group, with one who has asked for it.
    fn serving() -> Self {
        let mut rig = Self::creator();
        let source = rig.source.boxed();
        rig.serve(Some(Port::Source(source)));
        rig
    }

    fn serve(&mut self, source: Option<Port>) {
        self.take(Message::Join(Join { name: "film".into(), ..Join::default() }));
        let ports = vec![source, Some(Port::Source(Scripted::default().boxed()))];
        let (name, title) = ("film".to_owned(), "Film".to_owned());
        let served =
            Served { name, title, give_up_ms: None, further: Vec::new(), flows: news(), ports };
        self.with(|it, cx, out| it.handle_served(cx, Ok(served), out));
        assert_eq!(self.said(), ["OFFER"]);
    }

    /// The participant wants both, or only the flow to the group: what it is given.
    fn answered_by(&mut self) -> Vec<FlowAnswer> {
        let refused = Err((Code::Refused as u16, "no".to_owned()));
        let second = FlowAnswer { accepted: refused, ..given(1, None) };
        let flows = vec![FlowAnswer { datagram_len: 180, ..given(0, None) }, second];
        self.with(|it, cx, out| it.handle_message(cx, Message::Answer(Answer { flows }), out));
        match self.effects().into_iter().next() {
            Some(Effect::Send(_, Message::Accept(accept))) => accept.flows,
            _ => panic!("it is accepted"),
        }
    }

    fn fan_out(&self) -> FanOutId {
        self.session.flows()[0].fan_out.expect("it takes part").0
    }
}

#[test]
fn a_participant_joins_the_group_before_it_answers_and_takes_units_from_the_base_on() {
    let mut rig = Rig::joining_group();
    let answers = rig.joined(&Ok(()));
    assert_eq!((&answers[0].accepted, answers[0].label), (&Ok(()), 0), "the label is the sender's");
    assert!(answers[1].accepted.is_err(), "it is not wanted");
    assert!(!rig.session.is_unanswered());
    assert_eq!(rig.accept(Some(7)), ["ready"]);
    let target = Target { session: 5, flow: 0, epoch: 0 };
    let source: Address = "192.0.2.1:9".parse().unwrap();
    assert_eq!(rig.shared.groups.target(source, 70), Some(target));
    assert_eq!(rig.shared.channels.poll(), None, "what was declined has no stream");
    rig.with(|it, cx, out| it.end(cx, None, out));
    assert_eq!(rig.shared.groups.poll(), Some(GroupAsk::Leave(membership())));
    assert_eq!(rig.shared.groups.target(source, 70), None);
}

#[test]
fn a_group_that_cannot_be_joined_is_answered_with_the_reason_and_left() {
    let mut rig = Rig::joining_group();
    let answers = rig.joined(&Err("no multicast here".into()));
    let refused = (Code::NoDataPath as u16, "no multicast here".to_owned());
    assert_eq!(answers[0].accepted, Err(refused));
    assert_eq!(rig.shared.groups.poll(), Some(GroupAsk::Leave(membership())));
    let refused = rig.session.flows()[0].refused.clone().map(|error| error.code);
    assert_eq!(refused, Some(Code::NoDataPath));
    rig.with(|it, cx, _| it.on_flow(0, |flow| flow.handle_joined(cx, &membership(), &Ok(()))));
    assert!(rig.session.flows()[0].group_failure().is_some(), "it is not asked for any more");
}

#[test]
fn a_flow_to_a_group_begins_at_a_base_that_can_be() {
    for (base, is_taken) in [(None, false), (Some(UNITS_MAX + 1), false), (Some(UNITS_MAX), true)] {
        let mut rig = Rig::joining_group();
        rig.joined(&Ok(()));
        let said = rig.accept(base);
        assert_eq!(
            (violated(&said), said == ["ready"]),
            (!is_taken, is_taken),
            "{base:?} {said:?}"
        );
    }
}

#[test]
fn a_flow_whose_label_is_in_use_here_is_not_there() {
    let mut rig = Rig::joining_group();
    rig.joined(&Ok(()));
    let target = Target { session: 77, flow: 0, epoch: 0 };
    let source: Address = "192.0.2.1:9".parse().unwrap();
    assert!(rig.shared.groups.add_label(source, 70, target));
    rig.accept(Some(0));
    let flow = &rig.session.flows()[0];
    assert!(matches!(flow.end, FlowEnd::None));
    assert_eq!(flow.refused.as_ref().map(|error| error.code), Some(Code::Internal));
}

#[test]
fn who_asks_for_what_is_sent_to_a_group_takes_part_in_it() {
    let mut rig = Rig::serving();
    assert_eq!(rig.fan_outs.len(), 1);
    let answers = rig.answered_by();
    let id = rig.fan_out();
    let label = rig.fan_outs.get(id).unwrap().label();
    assert_eq!((answers[0].label, answers[0].base), (label, Some(0)));
    assert_eq!((answers[1].base, answers[1].stream_token), (None, None));
    assert_eq!(rig.fan_outs.get(id).unwrap().sender().datagram_len(), 180);
    assert!(rig.fan_outs.get(id).unwrap().members().eq([(SessionId(5), 0)]));
    assert!(rig.source.log().is_empty());
    rig.take(Message::Activate(Activate { request: 7 }));
    assert_eq!(rig.source.log(), ["start"]);
    rig.take(Message::Deactivate(Deactivate { request: 8 }));
    assert_eq!(rig.source.log(), ["stop"]);
}

#[test]
fn the_second_who_asks_takes_part_in_what_runs_and_it_is_over_with_the_last() {
    let mut rig = Rig::serving();
    rig.answered_by();
    let stream = StreamId::new(Side::Client, Dir::Bi, 2);
    let second = Session::asked_for(rig.now, SessionId(6), PeerId(3), stream);
    let mut first = std::mem::replace(&mut rig.session, second);
    rig.serve(None);
    rig.answered_by();
    assert_eq!(rig.fan_outs.len(), 1);
    let id = rig.fan_out();
    assert!(rig.fan_outs.get(id).unwrap().members().eq([(SessionId(5), 0), (SessionId(6), 0)]));
    rig.with(|it, cx, out| it.end(cx, None, out));
    assert_eq!(rig.fan_outs.len(), 1, "the first is there still");
    std::mem::swap(&mut rig.session, &mut first);
    rig.with(|it, cx, out| it.end(cx, None, out));
    assert_eq!(rig.fan_outs.len(), 0);
}

#[test]
fn what_is_sent_to_a_group_needs_a_source() {
    for port in [None, Some(Port::Sink(Basket::new().boxed()))] {
        let mut rig = Rig::creator();
        rig.take(Message::Join(Join { name: "film".into(), ..Join::default() }));
        let (name, title) = ("film".to_owned(), "Film".to_owned());
        let ports = vec![port, None];
        let served =
            Served { name, title, give_up_ms: None, further: Vec::new(), flows: news(), ports };
        rig.with(|it, cx, out| it.handle_served(cx, Ok(served), out));
        assert_eq!(rig.said()[0], format!("REFUSE {}", Code::AccessFailed as u16));
    }
}

#[test]
fn a_member_that_closes_is_told_its_end_and_accounts_for_itself() {
    let mut rig = Rig::serving();
    rig.answered_by();
    rig.take(Message::Activate(Activate { request: 7 }));
    rig.with(|it, cx, out| it.close(cx, out));
    assert_eq!(rig.said(), ["END", format!("CLOSE {}", Code::Closed as u16).as_str()]);
    assert_eq!(rig.source.log(), ["start", "stop"], "nobody runs");
    let report = Message::Report(Report { flow: 0, ..Report::default() });
    assert_eq!(rig.take(report.clone()), ["flow 0 ended, 0 unknown"]);
    assert!(violated(&rig.take(report)), "it has come");
}

#[test]
fn a_member_whose_way_is_lost_is_told_why_and_what_waits_for_it_is_given_back() {
    let mut rig = Rig::serving();
    rig.answered_by();
    let mut packet = rig.shared.pool.packet_from(0, &[7; 20], 0).unwrap();
    let pushed = rig
        .with(|it, cx, _| it.on_flow(0, |flow| flow.push_copy(&mut cx.shared.pool, &mut packet)));
    assert_eq!((pushed, rig.shared.pool.live_views()), (Some(true), 2));
    rig.shared.pool.free(packet);
    let flow = &rig.session.flows()[0];
    assert!(flow.end.may_give(rig.now) && !flow.end.may_rest());
    let error = Error::new(Code::NoDataPath, "gone");
    rig.with(|it, cx, out| {
        it.with_flow(cx, 0, out, |flow, cx, told| flow.lose_member(cx, &error, told));
    });
    let code = Code::NoDataPath as u16;
    assert_eq!(rig.said(), ["END".to_owned(), format!("flow 0 failed {code}")]);
    assert_eq!(rig.shared.pool.live_views(), 0);
    rig.with(|it, cx, out| {
        it.with_flow(cx, 0, out, |flow, cx, told| flow.lose_member(cx, &error, told));
    });
    assert!(rig.said().is_empty(), "once");
}

#[test]
fn copies_are_kept_for_a_member_that_is_sent_to_while_there_is_room() {
    let mut rig = Rig::serving();
    let mut pool = dacapo_packet::Pool::new(8 << 20);
    let mut packet = pool.packet_from(0, &vec![7; 1 << 15], 0).unwrap();
    let mut push = |rig: &mut Rig| {
        rig.session.on_flow(0, |flow| flow.push_copy(&mut pool, &mut packet)).unwrap()
    };
    assert!(push(&mut rig), "who is no member needs none");
    rig.answered_by();
    assert!((0..32).all(|_| push(&mut rig)));
    assert!(!push(&mut rig), "it is too far behind");
    let member = FanOutMember::new(FanOutId(9), 0, Fed::default());
    rig.session.on_flow(0, |flow| flow.end = FlowEnd::Member(member));
    let fed = Fed::default();
    rig.session.on_flow(0, |flow| match &mut flow.end {
        FlowEnd::Member(member) => member.end(&fed, None, &mut crate::flow::FlowOut::default()),
        _ => panic!("a member"),
    });
    assert!(push(&mut rig), "END was said: it gets nothing");
    assert!(!rig.session.flows()[0].end.may_give(rig.now));
}

#[test]
fn a_command_for_a_flow_to_a_group_reaches_its_source() {
    let mut rig = Rig::serving();
    rig.answered_by();
    let control = |flow| {
        let (module, payload) = (dacapo_wire::session::MODULE_ACCESS, b"x".to_vec());
        Message::Control(Control { request: 3, flow, epoch: 0, module, payload })
    };
    let nothing = format!("CONTROL_ANSWER 3 {}", Code::NoSuchThing as u16);
    assert_eq!(rig.take(control(1)), [nothing]);
    assert!(rig.source.log().is_empty());
    assert_eq!(rig.take(control(dacapo_wire::session::FLOW_ALL)), ["CONTROL_ANSWER 3 0"]);
    assert_eq!(rig.take(control(0)), ["CONTROL_ANSWER 3 0"]);
    assert_eq!(rig.source.log(), ["command [120]", "command [120]"]);
}

#[test]
fn a_path_that_takes_another_length_is_told_to_the_flow_to_the_group() {
    let mut rig = Rig::serving();
    assert!(!rig.with(|it, cx, _| it.handle_path_len(cx, 150)), "it is not set up");
    rig.answered_by();
    let id = rig.fan_out();
    assert!(rig.with(|it, cx, _| it.handle_path_len(cx, 150)));
    assert_eq!(rig.fan_outs.get(id).unwrap().sender().datagram_len(), 150);
}
