//! A session by itself, in each of its states: messages by hand, no core, no peer's core.

mod changes;
mod ends;
mod groups;
mod life;
mod set;
mod table;

use super::table::State;
use super::{Session, SessionCx};
use crate::channel::StreamAsk;
use crate::config::{ANSWER_MAX, APPLICATION_MAX};
use crate::effect::{Effect, Out};
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::fanout::FanOuts;
use crate::flow::tests::{Basket, PLAIN_TRANSPORT, Scripted, at, layout, ms, shared};
use crate::ids::{PeerId, SessionId};
use crate::network::ChannelEvent;
use crate::peer::{DialParams, Peer};
use crate::port::{Ending, Port};
use crate::served::Served;
use crate::shared::Shared;
use dacapo_base::Time;
use dacapo_lift::{Property, TransportSpec};
use dacapo_path::controllers::reserved;
use dacapo_wire::change::{Mode, Prepare};
use dacapo_wire::message::Message;
use dacapo_wire::session::{
    Accept, Activate, Activated, Close, Closed, Control, ControlAnswer, Deactivate, Direction, End,
    FlowAnswer, FlowOffer, Join, Offer, Report,
};
use quinn_proto::{Dir, Side, StreamId};

const STREAM: u16 = 3;

const BYTES: TransportSpec = TransportSpec {
    id: STREAM,
    properties: &[Property::Order, Property::NoLoss, Property::Boundaries],
    streams: true,
    ..PLAIN_TRANSPORT
};

static SPEC: TransportSpec = BYTES;

/// Streams that find out by themselves how fast the way is.
static FAST: TransportSpec = TransportSpec {
    name: "fast",
    id: 4,
    properties: &[
        Property::Order,
        Property::NoLoss,
        Property::Boundaries,
        Property::CongestionControl,
    ],
    ..BYTES
};

static DATAGRAMS: TransportSpec = TransportSpec {
    name: "datagrams",
    id: 5,
    properties: &[Property::Boundaries],
    streams: false,
    ..BYTES
};

static GROUPS: TransportSpec = TransportSpec {
    name: "groups",
    id: 6,
    properties: &[Property::Boundaries],
    streams: false,
    groups: true,
    ..BYTES
};

/// A session and what it lives in.
struct Rig {
    shared: Shared,
    fan_outs: FanOuts,
    peer: Peer,
    session: Session,
    out: Out,
    now: Time,
    sink: Basket,
    source: Scripted,
}

fn offer(flow: u16, direction: Direction) -> FlowOffer {
    FlowOffer {
        flow,
        name: format!("flow{flow}"),
        direction,
        transport: STREAM,
        unit_len_max: 100,
        datagram_len: layout(false).stride() as u16,
        ..FlowOffer::default()
    }
}

/// One flow each way.
fn offers() -> Vec<FlowOffer> {
    vec![offer(0, Direction::ToParticipant), offer(1, Direction::ToCreator)]
}

impl Rig {
    fn new(session: impl FnOnce(Time, SessionId, PeerId, StreamId) -> Session) -> Self {
        let now = at(1_000);
        let stream = StreamId::new(Side::Client, Dir::Bi, 1);
        Self {
            shared: shared(vec![&SPEC, &FAST, &DATAGRAMS, &GROUPS]),
            fan_outs: FanOuts::default(),
            peer: Peer::dialed(
                "192.0.2.1:9".parse().unwrap(),
                now,
                DialParams::default(),
                &reserved::entry(),
            ),
            session: session(now, SessionId(5), PeerId(2), stream),
            out: Out::default(),
            now,
            sink: Basket::new(),
            source: Scripted::default(),
        }
    }

    /// The end that has sent a JOIN.
    fn participant() -> Self {
        Self::new(|now, id, peer, stream| Session::joining(now, id, peer, stream, "film"))
    }

    /// The end at which a stream was opened.
    fn creator() -> Self {
        Self::new(Session::asked_for)
    }

    fn with<R>(&mut self, body: impl FnOnce(&mut Session, &mut SessionCx<'_>, &mut Out) -> R) -> R {
        let (shared, fan_outs) = (&mut self.shared, &mut self.fan_outs);
        let mut cx = SessionCx { now: self.now, shared, fan_outs, peer: Some(&self.peer) };
        self.session.enter(&mut cx, &mut self.out, body)
    }

    /// A message comes; what is wanted then.
    fn take(&mut self, message: Message) -> Vec<String> {
        self.with(|it, cx, out| it.handle_message(cx, message, out));
        self.said()
    }

    fn pass(&mut self, time: std::time::Duration) -> Vec<String> {
        self.now += time;
        self.with(|it, cx, out| it.handle_timeout(cx, out));
        self.said()
    }

    /// What was wanted since the last call, in words.
    fn said(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.out.pop()).map(words).collect()
    }

    fn ports(&self) -> Vec<Option<Port>> {
        vec![Some(Port::Sink(self.sink.boxed())), Some(Port::Source(self.source.boxed()))]
    }

    /// What was wanted since the last call, as it is.
    fn effects(&mut self) -> Vec<Effect> {
        std::iter::from_fn(|| self.out.pop()).collect()
    }

    /// A participant that these are offered to.
    fn offered(flows: Vec<FlowOffer>) -> Self {
        let mut rig = Self::participant();
        let offer = Offer { session: 9, title: "Film".into(), flows, ..Offer::default() };
        assert_eq!(rig.take(Message::Offer(offer)), ["offered Film"]);
        rig
    }

    /// The participant has answered: its ACCEPT, that a creator would send.
    fn answered() -> (Self, Accept) {
        let mut rig = Self::offered(offers());
        let ports = rig.ports();
        rig.with(|it, cx, out| it.answer(cx, ports, out)).unwrap();
        assert_eq!(rig.said(), ["ANSWER"]);
        let transcript = rig.session.transcript;
        let flow = |flow| FlowAnswer {
            flow,
            accepted: Ok(()),
            label: 70 + u32::from(flow),
            datagram_len: offers()[0].datagram_len,
            stream_token: Some([flow as u8; 16]),
            base: None,
            stream_port: None,
        };
        (rig, Accept { transcript, flows: vec![flow(0), flow(1)] })
    }

    /// A participant that is set up, and its flows run.
    fn active() -> Self {
        let (mut rig, accept) = Self::answered();
        assert!(rig.take(Message::Accept(accept)).is_empty(), "its streams are not open");
        let mut opens = Vec::new();
        while let Some(StreamAsk::Dial { stream, .. }) = rig.shared.channels.poll() {
            opens.push(stream);
        }
        for (flow, stream) in opens.into_iter().enumerate() {
            rig.with(|it, cx, out| {
                it.handle_channel(cx, (flow, stream), ChannelEvent::Open, out);
            });
        }
        assert_eq!(rig.said(), ["ready"]);
        let now = rig.now;
        rig.with(|it, _, out| it.set_active(now, true, out)).unwrap();
        assert_eq!(rig.said(), ["ACTIVATE"]);
        assert_eq!(rig.take(Message::Activated(Activated { request: 1 })), ["active"]);
        rig
    }
}

fn words(effect: Effect) -> String {
    match effect {
        Effect::Send(_, Message::Close(close)) => format!("CLOSE {}", close.code),
        Effect::Send(_, Message::Cannot(it)) => format!("CANNOT {}", it.code),
        Effect::Send(_, Message::ControlAnswer(it)) => {
            format!("CONTROL_ANSWER {} {}", it.request, it.code)
        }
        Effect::Send(_, Message::Refuse(it)) => format!("REFUSE {}", it.code),
        Effect::Send(_, message) => message.kind().name().to_owned(),
        Effect::Event(CoreEvent::Offered { title, .. }) => format!("offered {title}"),
        Effect::Event(CoreEvent::Ready { .. }) => "ready".into(),
        Effect::Event(CoreEvent::Active { .. }) => "active".into(),
        Effect::Event(CoreEvent::Inactive { .. }) => "inactive".into(),
        Effect::Event(CoreEvent::FlowEnded { flow, ledger, .. }) => {
            format!("flow {flow} ended, {} unknown", ledger.unknown)
        }
        Effect::Event(CoreEvent::FlowFailed { flow, error, .. }) => {
            format!("flow {flow} failed {}", error.code as u16)
        }
        Effect::Event(CoreEvent::ControlAnswered { request, answer, .. }) => {
            let answer = answer.map_err(|error| error.code as u16);
            format!("answer to {request}: {answer:?}")
        }
        Effect::Over(_, error) => format!("over {:?}", error.map(|it| it.code)),
        Effect::Serve(_, join) => format!("serve {}", join.name),
        Effect::Left(name) => format!("left {name}"),
        Effect::Event(event) => format!("{event:?}"),
        _ => "something else".into(),
    }
}

/// The code of an abnormal end that was told, with CLOSE to the peer.
fn violated(said: &[String]) -> bool {
    let code = Code::Violation as u16;
    let is_told = said.last().is_some_and(|it| it == "over Some(Violation)");
    said.first().is_some_and(|it| *it == format!("CLOSE {code}")) && is_told
}

#[test]
fn a_participant_joins_and_its_flows_begin_when_all_streams_are_open() {
    let mut rig = Rig::active();
    assert_eq!((rig.session.state, rig.session.flows().len()), (State::Active, 2));
    assert_eq!(rig.source.log(), ["start"]);
    let deactivate =
        |it: &mut Session, cx: &mut SessionCx<'_>, out: &mut Out| it.set_active(cx.now, false, out);
    rig.with(deactivate).unwrap();
    assert!(rig.with(deactivate).is_err(), "it is asked for already");
    assert_eq!(rig.said(), ["DEACTIVATE"]);
}

#[test]
fn a_creator_serves_and_lets_the_participant_say_when() {
    let mut rig = Rig::creator();
    let join = Join { name: "film".into(), ..Join::default() };
    assert_eq!(rig.take(Message::Join(join)), ["serve film"]);
    let ports = vec![Some(Port::Source(rig.source.boxed())), Some(Port::Sink(rig.sink.boxed()))];
    let (name, title, flows) = ("film".to_owned(), "Film".to_owned(), offers());
    let (give_up_ms, further) = (Some(1_000), Vec::new());
    let served = Served { name, title, give_up_ms, further, flows, ports };
    rig.with(|it, cx, out| it.handle_served(cx, Ok(served), out));
    assert_eq!(rig.said(), ["OFFER"]);
    let (_, accept) = Rig::answered();
    let answer = dacapo_wire::session::Answer { flows: accept.flows };
    assert_eq!(rig.take(Message::Answer(answer)), ["ACCEPT", "ready"]);
    let expects = std::iter::from_fn(|| rig.shared.channels.poll());
    assert_eq!(expects.filter(|it| matches!(it, StreamAsk::Expect { .. })).count(), 2);
    assert_eq!(rig.take(Message::Activate(Activate { request: 7 })), ["active", "ACTIVATED"]);
    let said = rig.take(Message::Deactivate(Deactivate { request: 8 }));
    assert_eq!(said, ["inactive", "DEACTIVATED"]);
    assert_eq!(rig.source.log(), ["start", "stop"]);
}

#[test]
fn what_is_not_served_is_refused_with_the_reason() {
    let mut rig = Rig::creator();
    rig.take(Message::Join(Join { name: "none".into(), ..Join::default() }));
    let error = Error::new(Code::NotServed, "none");
    rig.with(|it, cx, out| it.handle_served(cx, Err(error.into()), out));
    let code = Code::NotServed as u16;
    assert_eq!(rig.said(), [format!("REFUSE {code}"), "over Some(NotServed)".into()]);
}

#[test]
fn an_accept_that_does_not_fit_the_answer_ends_the_session() {
    let bad: [fn(&mut Accept); 4] = [
        |it| it.transcript[0] ^= 1,
        |it| drop(it.flows.pop()),
        |it| it.flows.swap(0, 1),
        |it| it.flows[1].stream_token = None,
    ];
    for (place, spoil) in bad.into_iter().enumerate() {
        let (mut rig, mut accept) = Rig::answered();
        spoil(&mut accept);
        let said = rig.take(Message::Accept(accept));
        assert!(violated(&said), "{place}: {said:?}");
        assert_eq!(rig.shared.pool.live_views(), 0);
    }
}

#[test]
fn flows_that_are_numbered_out_of_order_are_refused() {
    let mut rig = Rig::participant();
    let mut flows = offers();
    flows.swap(0, 1);
    let offer = Offer { session: 9, flows, ..Offer::default() };
    let said = rig.take(Message::Offer(offer));
    assert_eq!(said, [format!("REFUSE {}", Code::Violation as u16), "over Some(Violation)".into()]);
}

#[test]
fn an_offer_is_answered_once_with_the_ports_that_it_needs() {
    let mut rig = Rig::participant();
    let ports = rig.ports();
    assert!(rig.with(|it, cx, out| it.answer(cx, ports, out)).is_err(), "there is no offer");
    let offer = Offer { session: 9, flows: offers(), ..Offer::default() };
    rig.take(Message::Offer(offer));
    let mut swapped = rig.ports();
    swapped.swap(0, 1);
    assert!(rig.with(|it, cx, out| it.answer(cx, swapped, out)).is_err(), "of the wrong kinds");
    assert!(rig.with(|it, cx, out| it.answer(cx, vec![None], out)).is_err(), "too few");
    let ports = vec![None, None];
    rig.with(|it, cx, out| it.answer(cx, ports, out)).unwrap();
    let ports = vec![None, None];
    assert!(rig.with(|it, cx, out| it.answer(cx, ports, out)).is_err(), "it is answered");
}

#[test]
fn each_command_waits_for_its_answer_and_no_longer() {
    let mut rig = Rig::participant();
    assert!(rig.pass(ANSWER_MAX - ms(1)).is_empty());
    assert_eq!(rig.pass(ms(1)).last().unwrap(), "over Some(NoAnswer)", "JOIN");
    let mut rig = Rig::creator();
    rig.take(Message::Join(Join::default()));
    assert!(rig.pass(APPLICATION_MAX - ms(1)).is_empty());
    assert_eq!(rig.pass(ms(1)).last().unwrap(), "over Some(NoAnswer)", "OFFER");
    let mut rig = Rig::active();
    rig.session.shift(ms(500));
    rig.with(|it, cx, out| it.control(cx.now, 0, 0, b"x", out)).unwrap();
    rig.session.shift(ms(500));
    assert_eq!(rig.said(), ["CONTROL"]);
    assert!(rig.pass(ANSWER_MAX).is_empty(), "this end did not run for half a second");
    assert_eq!(rig.pass(ms(500)), [format!("answer to 2: Err({})", Code::NoAnswer as u16)]);
    assert_eq!(rig.session.state, State::Active, "only the request has failed");
}

#[test]
fn streams_that_do_not_open_end_their_flows_and_the_session_is_ready_without_them() {
    let (mut rig, accept) = Rig::answered();
    rig.take(Message::Accept(accept));
    let said = rig.pass(ms(10_000));
    assert!(said.contains(&"ready".to_owned()), "{said:?}");
    let failed = format!("failed {}", Code::NoDataPath as u16);
    assert_eq!(said.iter().filter(|it| it.contains(&failed)).count(), 2, "{said:?}");
}

#[test]
fn answers_to_nothing_and_messages_out_of_turn_end_the_session() {
    let cases = [
        Message::Activated(Activated { request: 99 }),
        Message::Activate(Activate { request: 1 }),
        Message::Join(Join::default()),
        Message::End(End { flow: 9, ..End::default() }),
        Message::End(End { flow: 1, ..End::default() }),
        Message::Report(Report { flow: 1, ..Report::default() }),
        Message::Report(Report { flow: 0, ..Report::default() }),
        Message::Closed(Closed),
    ];
    for message in cases {
        let mut rig = Rig::active();
        let name = message.kind().name();
        let said = rig.take(message);
        let is_over = said.last().is_some_and(|it| it == "over Some(Violation)");
        assert!(is_over, "{name}: {said:?}");
        assert!(rig.sink.ending().is_some(), "{name}: the sink is told");
        assert_eq!(rig.shared.pool.live_views(), 0);
    }
}

#[test]
fn requests_are_bounded_and_an_answer_to_none_is_passed_over() {
    let mut rig = Rig::active();
    let control = |rig: &mut Rig, len: usize| {
        rig.with(|it, cx, out| it.control(cx.now, 0, 0, &vec![0; len], out)).map_err(|it| it.code)
    };
    assert_eq!(control(&mut rig, 4_097), Err(Code::TooMany));
    let first = control(&mut rig, 4_096).unwrap();
    for _ in 1..256 {
        control(&mut rig, 1).unwrap();
    }
    assert_eq!(control(&mut rig, 1), Err(Code::TooMany));
    assert_eq!(rig.said().len(), 256);
    let answer = |request| ControlAnswer { request, code: 0, payload: vec![7] };
    let said = rig.take(Message::ControlAnswer(answer(first)));
    assert_eq!(said, [format!("answer to {first}: Ok([7])")]);
    assert!(rig.take(Message::ControlAnswer(answer(first))).is_empty(), "it was answered");
    assert!(control(&mut rig, 1).is_ok());
}

#[test]
fn a_command_reaches_the_source_that_is_meant_and_no_other() {
    let mut rig = Rig::active();
    rig.source.log();
    let command = |flow, module, payload: &[u8]| {
        Message::Control(Control { request: 3, flow, epoch: 0, module, payload: payload.to_vec() })
    };
    let (refused, nothing) = (Code::Refused as u16, Code::NoSuchThing as u16);
    let access = dacapo_wire::session::MODULE_ACCESS;
    assert_eq!(rig.take(command(1, access, b"x")), ["CONTROL_ANSWER 3 0"]);
    assert_eq!(rig.take(command(1, access, b"")), [format!("CONTROL_ANSWER 3 {refused}")]);
    assert_eq!(rig.take(command(0, access, b"x")), [format!("CONTROL_ANSWER 3 {nothing}")]);
    assert_eq!(rig.source.log(), ["command [120]", "command []"]);
    assert_eq!(rig.take(command(1, 0, b"x")), [format!("CONTROL_ANSWER 3 {refused}")]);
    assert_eq!(rig.take(command(5, 0, b"x")), [format!("CONTROL_ANSWER 3 {nothing}")]);
}

#[test]
fn a_change_of_what_this_end_sends_or_by_another_memory_is_refused() {
    let mut rig = Rig::active();
    let prepare = |flow| {
        Message::Prepare(Prepare {
            flow,
            epoch: 1,
            label: 9,
            mode: Mode::Make,
            graph: dacapo_wire::graph::GraphForm::default(),
            transcript: [1; 32],
            hints: Vec::new(),
            transport: None,
        })
    };
    let refused = format!("CANNOT {}", Code::Violation as u16);
    assert_eq!(rig.take(prepare(1)), [refused.as_str()], "this end sends it");
    assert_eq!(rig.take(prepare(0)), [refused.as_str()], "the transcript differs");
    assert_eq!(rig.shared.changes_refused, 2);
    assert_eq!(rig.session.state, State::Active);
}

#[test]
fn who_closes_says_end_and_waits_for_the_accounts() {
    let mut rig = Rig::active();
    rig.with(|it, cx, out| it.close(cx, out));
    assert_eq!(rig.said(), ["END", format!("CLOSE {}", Code::Closed as u16).as_str()]);
    rig.with(|it, cx, out| it.close(cx, out));
    assert!(rig.said().is_empty(), "it closes already");
    let report = Report { flow: 1, ..Report::default() };
    assert_eq!(rig.take(Message::Report(report)), ["flow 1 ended, 0 unknown"]);
    let said = rig.take(Message::End(End { flow: 0, ..End::default() }));
    assert_eq!(said, ["REPORT", "flow 0 ended, 0 unknown"]);
    assert_eq!(rig.sink.ending(), Some(Ending::Complete));
    assert_eq!(rig.take(Message::Closed(Closed)).last().unwrap(), "over None");
    assert!(rig.session.is_over());
}

#[test]
fn who_is_closed_ends_its_flows_and_says_closed_when_all_is_accounted_for() {
    let mut rig = Rig::active();
    let close = || Message::Close(Close { code: Code::Closed as u16, text: String::new() });
    assert_eq!(rig.take(close()), ["END"]);
    rig.take(Message::Report(Report { flow: 1, ..Report::default() }));
    let said = rig.take(Message::End(End { flow: 0, ..End::default() }));
    let expected = ["REPORT", "flow 0 ended, 0 unknown", "CLOSED", "over None"];
    assert_eq!(said, expected);
    let mut rig = Rig::active();
    let abnormal = Close { code: Code::System as u16, text: "no disk".into() };
    let said = rig.take(Message::Close(abnormal));
    assert_eq!(said.last().unwrap(), "over Some(System)", "{said:?}");
}

#[test]
fn a_session_that_is_set_up_waits_for_contact_and_what_it_waits_for_has_its_time_anew() {
    let mut rig = Rig::participant();
    assert!(!rig.with(|it, cx, _| it.lose_contact(cx)), "it is not set up");
    let mut rig = Rig::active();
    rig.with(|it, cx, out| it.control(cx.now, 0, 0, b"x", out)).unwrap();
    rig.said();
    assert!(rig.with(|it, cx, _| it.lose_contact(cx)));
    assert_eq!(rig.source.log(), ["start", "stop"]);
    rig.now += ms(60_000);
    let now = rig.now;
    rig.session.restore_contact(now, ms(60_000));
    assert_eq!(rig.source.log(), ["start"]);
    assert!(rig.pass(ANSWER_MAX - ms(1)).is_empty());
    assert_eq!(rig.pass(ms(1)).len(), 1, "the request has failed");
    let mut rig = Rig::active();
    rig.session.set_give_up_after(std::time::Duration::ZERO);
    assert!(!rig.with(|it, cx, _| it.lose_contact(cx)), "it does not wait");
}

#[test]
fn when_it_is_over_everything_comes_back_and_it_is_told_once() {
    let mut rig = Rig::active();
    rig.with(|it, cx, out| it.control(cx.now, 0, 0, b"x", out)).unwrap();
    rig.said();
    let error = || Error::new(Code::ContactLost, "gone");
    rig.with(|it, cx, out| it.end(cx, Some(error()), out));
    let said = rig.said();
    assert_eq!(said.last().unwrap(), "over Some(ContactLost)");
    let lost = format!("answer to 2: Err({})", Code::ContactLost as u16);
    assert!(said.contains(&lost), "{said:?}");
    assert_eq!(rig.sink.ending(), Some(Ending::Abnormal(error().to_string())));
    assert_eq!(rig.shared.pool.live_views(), 0);
    rig.with(|it, cx, out| it.end(cx, Some(error()), out));
    assert!(rig.said().is_empty());
}
