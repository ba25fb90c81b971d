//! When a session is due, what it waits for, how it ends before its time.

use super::*;
use crate::flow::receiver::Keeping;
use crate::flow::tests::{Say, slow_graph};
use crate::flow::{FlowOut, FlowSeen, ModuleMessage, ModulesTold};
use crate::peer::tests::narrow;
use crate::ready_table::Due;
use crate::session::Role;
use dacapo_lift::PathSeen;
use dacapo_wire::hub::Refuse;
use std::num::NonZeroU16;

impl Rig {
    /// When it is due, once its sinks have been asked when they are.
    fn due(&mut self) -> Due {
        self.with(|it, cx, out| it.on_flows(|flows| flows.handle_timeout(cx, out)));
        self.session.due(self.now, Some(&self.peer))
    }

    /// What modules of a flow tell.
    fn modules(&mut self, index: usize, told: ModulesTold) {
        let told = FlowOut { modules: Some(Box::new(told)), ..FlowOut::default() };
        self.with(|it, cx, out| it.on_flows(|flows| flows.apply(cx, index, told, out)));
    }

    fn ask(&mut self, count: usize) -> Vec<String> {
        let ask = || ModuleMessage { epoch: 0, place: 0, payload: vec![1] };
        let asks = std::iter::repeat_with(ask).take(count).collect();
        self.modules(0, ModulesTold { asks, ..ModulesTold::default() });
        self.said()
    }
}

#[test]
fn a_session_is_who_it_was_made() {
    let rig = Rig::participant();
    let it = &rig.session;
    assert_eq!(
        (it.id(), it.peer(), it.role(), it.name()),
        (SessionId(5), PeerId(2), Role::Participant, "film")
    );
    assert_eq!(it.stream(), StreamId::new(Side::Client, Dir::Bi, 1));
    let rig = Rig::creator();
    assert_eq!((rig.session.role(), rig.session.name()), (Role::Creator, ""));
    assert_eq!(rig.session.due(rig.now, None), Due::At(rig.now + ANSWER_MAX), "its JOIN");
}

#[test]
fn it_is_due_for_what_it_waits_for_while_there_is_contact() {
    let mut rig = Rig::participant();
    assert_eq!(rig.due(), Due::At(rig.now + ANSWER_MAX));
    rig.peer.suspend(rig.now);
    assert_eq!(rig.due(), Due::Input);
    let mut rig = Rig::offered(offers());
    assert_eq!(rig.due(), Due::At(rig.now + APPLICATION_MAX), "its application");
    let ports = rig.ports();
    rig.with(|it, cx, out| it.answer(cx, ports, out)).unwrap();
    assert_eq!(rig.due(), Due::At(rig.now + ANSWER_MAX), "the ACCEPT");
    let mut rig = Rig::active();
    super::ends::poll(&mut rig, 1);
    let now = rig.now;
    rig.with(|it, _, out| it.set_active(now, false, out)).unwrap();
    assert_eq!(rig.due(), Due::At(now + ANSWER_MAX));
    rig.with(|it, cx, out| it.close(cx, out));
    assert_eq!(rig.due(), Due::Now(Some(now + ANSWER_MAX)), "while it closes it does not rest");
}

#[test]
fn a_flow_with_something_to_send_does_not_let_it_rest() {
    let mut rig = Rig::active();
    assert!(!matches!(rig.due(), Due::Now(_)));
    rig.session.on_flow(1, |flow| match &mut flow.end {
        crate::session::FlowEnd::Sender(sender) => {
            assert_eq!(
                sender.offer(&mut rig.shared.flow(rig.now), &[1; 10], None),
                crate::transmit::Offered::Taken
            );
        }
        _ => panic!("it sends"),
    });
    assert!(matches!(rig.due(), Due::Now(_)));
}

#[test]
fn its_source_is_waited_for_while_there_is_a_way() {
    let mut rig = Rig::active();
    let (now, at) = (rig.now, rig.now + ms(700));
    rig.source.say(Say::Poll(crate::port::SourcePoll::Wait(at)));
    let (shared, peer, mut told) = (&mut rig.shared, &mut rig.peer, FlowOut::default());
    rig.session.on_flow(1, |flow| flow.wake(now, &mut shared.channels));
    let polled = rig.session.on_flow(1, |flow| flow.poll_packet(now, shared, peer, &mut told));
    assert!(matches!(polled.flatten(), Some((_, _, None))));
    assert_eq!(rig.due(), Due::At(at));
    rig.session.on_flow(1, |flow| flow.channel.as_mut().map(|channel| channel.handle_ready(false)));
    assert_eq!(rig.due(), Due::Input, "its stream takes nothing");
    rig.session.on_flow(1, |flow| flow.channel = None);
    assert_eq!(rig.due(), Due::Input, "nor is there a data path");
    rig.peer = Peer::on_path("192.0.2.1:9", &narrow());
    assert_eq!(rig.due(), Due::At(at));
}

#[test]
fn a_stream_that_opens_is_waited_for_while_there_is_contact() {
    let (mut rig, accept) = Rig::answered();
    rig.take(Message::Accept(accept));
    assert_eq!(rig.due(), Due::At(rig.now + ms(10_000)));
    rig.session.shift(ms(300));
    assert_eq!(rig.due(), Due::At(rig.now + ms(10_300)), "that time does not count");
    rig.peer.suspend(rig.now);
    assert_eq!(rig.due(), Due::Input);
    assert!(rig.pass(ms(60_000)).is_empty(), "nothing is given up without contact");
}

#[test]
fn a_refusal_ends_it_and_says_where_else_it_may_be_joined() {
    for port in [None, NonZeroU16::new(4_000)] {
        let mut rig = Rig::participant();
        let refuse = Refuse { code: Code::NotServed as u16, text: "no".into(), port };
        let said = rig.take(Message::Refuse(refuse));
        assert_eq!(said.last().unwrap(), "over Some(NotServed)");
        assert_eq!(said.iter().any(|it| it.contains("Redirected")), port.is_some(), "{said:?}");
    }
}

#[test]
fn who_closes_before_it_is_set_up_is_over_at_once() {
    for mut rig in [Rig::participant(), Rig::offered(offers()), Rig::answered().0, Rig::creator()] {
        rig.with(|it, cx, out| it.close(cx, out));
        let said = rig.said();
        let close = format!("CLOSE {}", Code::Closed as u16);
        assert_eq!((said.first(), said.last()), (Some(&close), Some(&"over None".to_owned())));
        rig.with(|it, cx, out| it.close(cx, out));
        assert!(rig.said().is_empty());
    }
}

#[test]
fn who_closes_without_contact_is_over_at_once_and_units_may_be_unknown() {
    let mut rig = Rig::active();
    rig.peer.suspend(rig.now);
    rig.with(|it, cx, out| it.close(cx, out));
    let said = rig.said();
    assert_eq!(said.last().unwrap(), "over Some(ContactLost)", "{said:?}");
}

#[test]
fn an_end_that_nobody_confirms_is_over_after_ten_seconds() {
    let mut rig = Rig::active();
    rig.with(|it, cx, out| it.close(cx, out));
    rig.said();
    assert!(!rig.pass(ANSWER_MAX - ms(1)).iter().any(|it| it.starts_with("over")));
    let said = rig.pass(ms(1));
    assert_eq!(said.last().unwrap(), "over Some(NoAnswer)");
    assert!(!said.iter().any(|it| it.starts_with("CLOSE")), "it was said: {said:?}");
    let mut rig = Rig::active();
    let close = || Message::Close(Close { code: Code::Closed as u16, text: String::new() });
    assert_eq!(rig.take(close()), ["END"]);
    assert!(rig.take(close()).is_empty(), "once");
    assert!(!rig.pass(ANSWER_MAX - ms(1)).iter().any(|it| it.starts_with("over")));
    assert_eq!(rig.pass(ms(1)).last().unwrap(), "over Some(NoAnswer)");
}

#[test]
fn a_peer_that_closes_while_it_sets_up_ends_it_at_once() {
    let mut rig = Rig::answered().0;
    let close = Close { code: Code::Closed as u16, text: String::new() };
    assert_eq!(rig.take(Message::Close(close)).last().unwrap(), "over Some(Closed)");
}

#[test]
fn an_answer_that_never_went_out_is_no_data_path() {
    let flows = vec![FlowOffer { transport: DATAGRAMS.id, ..offer(0, Direction::ToParticipant) }];
    let mut rig = Rig::offered(flows);
    let ports = vec![Some(Port::Sink(rig.sink.boxed()))];
    rig.with(|it, cx, out| it.answer(cx, ports, out)).unwrap();
    assert!(rig.said().is_empty() && rig.session.is_unanswered());
    assert_eq!(rig.pass(ANSWER_MAX).last().unwrap(), "over Some(NoDataPath)");
    assert!(!rig.session.is_unanswered());
    let mut rig = Rig::answered().0;
    assert!(!rig.session.is_unanswered(), "it has gone out");
    assert_eq!(rig.pass(ANSWER_MAX).last().unwrap(), "over Some(NoAnswer)");
    let mut rig = Rig::offered(offers());
    assert!(!rig.session.is_unanswered(), "the application has not answered");
    assert!(rig.pass(APPLICATION_MAX - ms(1)).is_empty());
    assert_eq!(rig.pass(ms(1)).last().unwrap(), "over Some(NoAnswer)");
}

#[test]
fn an_answer_waits_for_the_data_path_only_when_a_flow_that_is_wanted_needs_it() {
    let by_datagrams = FlowOffer { transport: DATAGRAMS.id, ..offer(1, Direction::ToCreator) };
    let flows = || vec![offer(0, Direction::ToParticipant), by_datagrams.clone()];
    for (wants, waits) in [([true, false], false), ([true, true], true), ([false, false], true)] {
        let mut rig = Rig::offered(flows());
        let ports = rig.ports().into_iter().zip(wants).map(|(port, wants)| port.filter(|_| wants));
        let ports = ports.collect();
        rig.with(|it, cx, out| it.answer(cx, ports, out)).unwrap();
        assert_eq!(rig.said().is_empty(), waits, "{wants:?}");
        rig.peer = Peer::on_path("192.0.2.1:9", &narrow());
        rig.with(|it, cx, out| it.answer_if_open(cx, out));
        assert_eq!(rig.said().is_empty(), !waits, "{wants:?}: once");
    }
}

#[test]
fn a_stream_that_has_ended_is_usual_only_when_the_peer_has_closed_and_nothing_is_unknown() {
    let mut rig = Rig::active();
    rig.with(|it, cx, out| it.handle_stream_ended(cx, None, out));
    assert_eq!(rig.said().last().unwrap(), "over Some(Violation)");
    let mut rig = Rig::active();
    rig.take(Message::Close(Close { code: Code::Closed as u16, text: String::new() }));
    rig.with(|it, cx, out| it.handle_stream_ended(cx, None, out));
    assert_eq!(rig.said().last().unwrap(), "over None");
    let mut rig = Rig::active();
    let error = Error::new(Code::Malformed, "no record");
    rig.with(|it, cx, out| it.handle_stream_ended(cx, Some(error), out));
    assert_eq!(rig.said().last().unwrap(), "over Some(Malformed)");
}

#[test]
fn a_creator_tells_that_a_participant_is_gone_when_it_has_asked_for_something() {
    let mut rig = Rig::creator();
    rig.with(|it, cx, out| it.end(cx, None, out));
    assert_eq!(rig.said(), ["over None"]);
    let mut rig = Rig::creator();
    rig.session.name = "film".into();
    rig.with(|it, cx, out| it.end(cx, None, out));
    assert_eq!(rig.said(), ["left film", "over None"]);
    let mut rig = Rig::participant();
    rig.with(|it, cx, out| it.end(cx, None, out));
    assert_eq!(rig.said(), ["over None"]);
}

#[test]
fn sinks_are_told_whether_the_end_was_usual() {
    let closed = Error::new(Code::Closed, "enough");
    let lost = Error::new(Code::ContactLost, "gone");
    for (error, ending) in [
        (None, Ending::Closed),
        (Some(closed), Ending::Closed),
        (Some(lost.clone()), Ending::Abnormal(lost.to_string())),
    ] {
        let mut rig = Rig::active();
        rig.with(|it, cx, out| it.end(cx, error, out));
        assert_eq!(rig.sink.ending(), Some(ending));
    }
}

#[test]
fn how_long_it_waits_for_contact_is_what_was_offered_unless_this_end_has_said_it() {
    let offer = |give_up_ms| {
        Message::Offer(Offer { session: 9, give_up_ms, flows: offers(), ..Offer::default() })
    };
    let mut rig = Rig::participant();
    rig.take(offer(Some(1_500)));
    assert_eq!(rig.session.give_up_after(), ms(1_500));
    let mut rig = Rig::participant();
    rig.take(offer(None));
    assert_eq!(rig.session.give_up_after(), crate::config::GIVE_UP_AFTER);
    let mut rig = Rig::participant();
    rig.session.set_give_up_after(ms(700));
    assert_eq!(rig.session.give_up_after(), ms(700));
    rig.take(offer(Some(1_500)));
    assert_eq!(rig.session.give_up_after(), ms(700));
}

#[test]
fn without_contact_it_waits_only_while_it_runs_and_something_may_still_come() {
    let mut rig = Rig::active();
    rig.shared.channels.poll();
    assert!(rig.with(|it, cx, _| it.lose_contact(cx)));
    let waits = std::iter::from_fn(|| rig.shared.channels.poll());
    let longer = crate::config::GIVE_UP_AFTER;
    let is_patient =
        |ask: &StreamAsk| matches!(ask, StreamAsk::Wait { longer: it, .. } if *it == longer);
    assert_eq!(waits.filter(is_patient).count(), 2, "its streams are kept");
    let mut rig = Rig::active();
    rig.with(|it, cx, out| it.close(cx, out));
    assert!(!rig.with(|it, cx, _| it.lose_contact(cx)), "it closes");
    let mut rig = Rig::active();
    let streams = rig.session.flows().iter().map(|it| it.channel.unwrap().id()).collect::<Vec<_>>();
    rig.peer.suspend(rig.now);
    let closed = || ChannelEvent::closed("reset");
    rig.with(|it, cx, out| it.handle_channel(cx, (0, streams[0]), closed(), out));
    assert!(!rig.session.is_over(), "another way is there");
    rig.with(|it, cx, out| it.handle_channel(cx, (1, streams[1]), closed(), out));
    assert!(rig.session.is_over(), "nothing is waited for any more");
    let mut rig = Rig::active();
    for (index, stream) in streams.into_iter().enumerate() {
        rig.with(|it, cx, out| it.handle_channel(cx, (index, stream), closed(), out));
    }
    assert!(!rig.session.is_over(), "there is contact: its flows end in order");
    assert!(!rig.with(|it, cx, _| it.lose_contact(cx)), "nothing may come any more");
}

#[test]
fn a_path_of_another_length_concerns_flows_by_datagrams_in_a_session_that_is_set_up() {
    let mut rig = Rig::active();
    assert!(!rig.with(|it, cx, _| it.handle_path_len(cx, 150)), "its flows are on streams");
    let flows = vec![
        FlowOffer { transport: DATAGRAMS.id, ..offer(0, Direction::ToCreator) },
        offer(1, Direction::ToParticipant),
    ];
    let mut rig = Rig::offered(flows);
    rig.peer = Peer::on_path("192.0.2.1:9", &narrow());
    let mut ports = rig.ports();
    ports.swap(0, 1);
    rig.with(|it, cx, out| it.answer(cx, ports, out)).unwrap();
    assert_eq!(rig.said(), ["ANSWER"]);
    assert!(!rig.with(|it, cx, _| it.handle_path_len(cx, 160)), "it is not set up");
    rig.session.was_ready = true;
    assert!(rig.with(|it, cx, _| it.handle_path_len(cx, 150)));
    match &rig.session.flows()[0].end {
        crate::session::FlowEnd::Sender(sender) => assert_eq!(sender.datagram_len(), 150),
        _ => panic!("it sends"),
    }
}

#[test]
fn what_modules_ask_goes_to_those_of_the_peer_while_it_runs() {
    let mut rig = Rig::active();
    super::ends::poll(&mut rig, 1);
    assert_eq!(rig.ask(2), ["CONTROL", "CONTROL"]);
    assert_eq!(rig.due(), Due::At(rig.now + ANSWER_MAX));
    assert_eq!(rig.ask(30).len(), 22, "so many wait, and the others are refused at once");
    let answer = ControlAnswer { request: 2, code: 0, payload: vec![7] };
    assert!(rig.take(Message::ControlAnswer(answer)).is_empty(), "the application has not asked");
    assert_eq!(rig.ask(1), ["CONTROL"], "there is a place again");
    rig.with(|it, cx, out| it.close(cx, out));
    rig.said();
    assert!(rig.ask(1).is_empty(), "it closes");
}

#[test]
fn a_module_that_has_panicked_ends_its_flow_and_what_was_seen_is_told_to_the_path() {
    let mut rig = Rig::active();
    let failure = Some("no place".to_owned());
    rig.modules(1, ModulesTold { failure, ..ModulesTold::default() });
    let code = Code::ModuleFailed as u16;
    assert_eq!(rig.said(), ["END".to_owned(), format!("flow 1 failed {code}")]);
    let left = PathSeen { lost_packets: 1, ..PathSeen::default() };
    let seen = FlowSeen { left, ..FlowSeen::default() };
    rig.modules(0, ModulesTold { seen, ..ModulesTold::default() });
    let told = rig.effects();
    let is_seen = |it: &Effect| matches!(it, Effect::Peer(_, crate::effect::PeerNews::Seen(_)));
    assert!(told.len() == 1 && told.iter().all(is_seen));
    rig.modules(0, ModulesTold::default());
    assert!(rig.effects().is_empty());
}

#[test]
fn a_message_of_a_module_of_the_peer_reaches_ours_in_the_epoch_that_is_meant() {
    let mut rig = Rig::active();
    let epoch = crate::flow::epoch::RxEpoch::new(0, slow_graph(ms(1), 1), 11, true);
    let (sink, queues) = (Basket::new().boxed(), crate::queues::Queues::default());
    let params = crate::flow::tests::PARAMS;
    let it = crate::flow::receiver::Receiver::new(
        params,
        sink,
        epoch,
        Keeping::Transport,
        rig.now,
        queues,
    );
    rig.session.on_flow(0, |flow| flow.end = crate::session::FlowEnd::Receiver(Box::new(it)));
    let control = |epoch, payload: &[u8]| {
        let payload = payload.to_vec();
        Message::Control(Control { request: 3, flow: 0, epoch, module: 0, payload })
    };
    let mut answer = |epoch, payload| {
        rig.with(|it, cx, out| it.handle_message(cx, control(epoch, payload), out));
        match rig.effects().pop() {
            Some(Effect::Send(_, Message::ControlAnswer(it))) => (it.code, it.payload),
            _ => panic!("it is answered"),
        }
    };
    assert_eq!(answer(0, &[5, 6]), (0, vec![5, 6]));
    assert_eq!(answer(0, &[]).0, Code::Refused as u16);
    assert_eq!(answer(4, &[5]), (Code::NoSuchThing as u16, b"the flow runs in epoch 0".to_vec()));
}

#[test]
fn an_account_is_asked_for_and_adds_up() {
    let mut rig = Rig::active();
    let far = crate::flow::receiver::UNITS_MAX + 1;
    assert!(violated(&rig.take(Message::End(End { flow: 0, units: far, ..End::default() }))));
    let mut rig = Rig::active();
    let most = crate::flow::receiver::UNITS_MAX;
    assert!(!violated(&rig.take(Message::End(End { flow: 0, units: most, ..End::default() }))));
    let mut rig = Rig::active();
    rig.with(|it, cx, out| it.close(cx, out));
    rig.said();
    let report = Report { flow: 1, delivered: 1, ..Report::default() };
    assert!(violated(&rig.take(Message::Report(report))), "nothing was sent");
}
