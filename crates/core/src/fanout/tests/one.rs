//! A fan-out by itself: who takes part, from where it is sent, whom its modules talk to.

use crate::error::{Code, Error};
use crate::fanout::{FanOut, Part};
use crate::flow::epoch::TxEpoch;
use crate::flow::sender::{Pace, Sender};
use crate::flow::tests::{Bench, PARAMS, Say, Scripted, empty_graph, ms, slow_graph, told};
use crate::flow::{FlowOut, ModuleMessage, ModulesTold};
use crate::ids::{Place, SessionId};
use crate::queues::Queues;
use crate::ready_table::Due;
use crate::transmit::{ListenerId, Offered};
use dacapo_base::Address;
use dacapo_lift::Built;
use dacapo_wire::attribute::{AttributeForm, key};
use dacapo_wire::session::FlowOffer;
use std::net::SocketAddr;

const A: Place = (SessionId(1), 0);
const B: Place = (SessionId(2), 3);

/// At this port, sent to, and running or not.
fn part(origin: u64, is_running: bool) -> Part {
    Part { is_running, is_sent_to: true, origin: Some(ListenerId(origin)) }
}

struct Rig {
    bench: Bench,
    source: Scripted,
    fan_out: FanOut,
}

impl Rig {
    /// One that A and B are to take part in.
    fn new() -> Self {
        Self::over(empty_graph(), offer("one"))
    }

    /// The same with this graph, as it was offered.
    fn over(graph: Built, offer: FlowOffer) -> Self {
        let (bench, source) = (Bench::new(), Scripted::units(3));
        let epoch = TxEpoch::new(0, graph, 10);
        let queues = Queues::default();
        let sender = Sender::new(bench.now, PARAMS, source.boxed(), epoch, Pace::Transport, queues);
        let mut fan_out = FanOut::new("news".into(), offer, 10, sender);
        fan_out.enter(A);
        fan_out.enter(B);
        Self { bench, source, fan_out }
    }

    fn note(&mut self, place: Place, part: Part) {
        self.fan_out.note(self.bench.now, place, part);
    }

    /// Packets that leave now.
    fn poll(&mut self) -> usize {
        let mut out = FlowOut::default();
        let mut count = 0;
        while let Some(packet) = self.fan_out.poll_packet(&mut self.bench.cx(), &mut out) {
            count += packet.segment_count();
            self.bench.pool.free(packet);
        }
        count
    }
}

fn offer(name: &str) -> FlowOffer {
    FlowOffer { name: name.into(), ..FlowOffer::default() }
}

#[test]
fn it_runs_while_one_of_its_members_does() {
    let mut rig = Rig::new();
    assert_eq!(rig.poll(), 0, "nobody runs");
    rig.note(A, part(1, true));
    assert_eq!(rig.poll(), 3);
    rig.note(B, part(1, true));
    rig.note(A, part(1, false));
    assert_eq!(rig.source.log(), ["start"], "who pauses stops it for no other");
    rig.note((SessionId(7), 0), part(1, false));
    assert!(rig.source.log().is_empty(), "who does not take part says nothing of it");
    rig.note(B, part(1, false));
    assert_eq!(rig.source.log(), ["stop"]);
    assert!(matches!(rig.fan_out.due(rig.bench.now), Due::Input), "nothing before somebody runs");
}

#[test]
fn it_is_what_was_offered() {
    let group: SocketAddr = "239.1.1.1:5000".parse().unwrap();
    let priority = AttributeForm { key: key::PRIORITY, min: Some(6), max: None, weight: None };
    let offer = FlowOffer { multicast: Some(group), attributes: vec![priority], ..offer("one") };
    let fan_out = Rig::over(empty_graph(), offer).fan_out;
    assert_eq!(fan_out.group(), Some(Address::from(group)));
    assert_eq!((fan_out.label(), fan_out.rank().priority), (10, 6));
    let over_streams = Rig::new().fan_out;
    assert_eq!((over_streams.group(), over_streams.rank().priority), (None, 0));
}

#[test]
fn only_who_asks_for_the_same_may_take_part() {
    let rig = Rig::new();
    assert!(rig.fan_out.may_take("news", &offer("one")));
    assert!(!rig.fan_out.may_take("other", &offer("one")));
    assert!(!rig.fan_out.may_take("news", &offer("two")));
    assert_eq!(rig.fan_out.members().collect::<Vec<_>>(), [A, B]);
}

#[test]
fn it_is_sent_from_where_somebody_takes_part_and_from_the_last_place_when_nobody_does() {
    let mut rig = Rig::new();
    assert!(rig.fan_out.origins().is_empty());
    rig.note(A, part(1, true));
    rig.note(B, part(2, true));
    assert_eq!(rig.fan_out.origins(), [ListenerId(1), ListenerId(2)]);
    assert!(rig.fan_out.leave(rig.bench.now, A), "B is left");
    assert_eq!(rig.fan_out.origins(), [ListenerId(2)]);
    let is_not_sent_to = Part { is_sent_to: false, ..part(2, false) };
    rig.note(B, is_not_sent_to);
    assert_eq!(rig.fan_out.origins(), [ListenerId(2)], "what waits leaves from the last");
    assert!(!rig.fan_out.leave(rig.bench.now, B), "nobody is left");
}

#[test]
fn an_origin_that_is_gone_takes_its_members_unless_it_was_the_last() {
    let mut rig = Rig::new();
    rig.note(A, part(1, true));
    rig.note(B, part(2, true));
    assert_eq!(rig.fan_out.close_origin(Some(ListenerId(1))), Some(vec![A]));
    assert_eq!(rig.fan_out.close_origin(Some(ListenerId(9))), Some(vec![]), "nobody is there");
    assert_eq!(rig.fan_out.close_origin(None), None, "all of them");
    rig.note(B, part(1, true));
    assert_eq!(rig.fan_out.close_origin(Some(ListenerId(1))), None, "it is the only one");
}

#[test]
fn units_are_cut_for_the_shortest_path() {
    let mut rig = Rig::new();
    let pool = &mut rig.bench.pool;
    rig.fan_out.set_len(pool, A, 900);
    assert_eq!(rig.fan_out.sender().datagram_len(), 900);
    rig.fan_out.set_len(pool, B, 500);
    rig.fan_out.set_len(pool, A, 1_400);
    assert_eq!(rig.fan_out.sender().datagram_len(), 500);
    rig.fan_out.set_len(pool, (SessionId(7), 0), 100);
    assert_eq!(
        rig.fan_out.sender().datagram_len(),
        500,
        "who does not take part counts for nothing"
    );
}

#[test]
fn a_command_that_would_change_it_for_others_is_refused() {
    let mut rig = Rig::new();
    let refused = rig.fan_out.command(rig.bench.now, b"x").unwrap_err();
    assert_eq!(refused.code, Code::Refused);
    assert!(refused.text.contains("2 participants"), "{refused}");
    rig.fan_out.leave(rig.bench.now, B);
    assert_eq!(rig.fan_out.command(rig.bench.now, b"x"), Ok(b"x".to_vec()));
    assert_eq!(rig.source.log(), ["command [120]"]);
}

#[test]
fn units_are_offered_to_all_by_a_copy_while_it_runs() {
    let mut rig = Rig::new();
    assert_eq!(rig.fan_out.offer(&mut rig.bench.cx(), &[1; 10]), Offered::NotNow);
    rig.note(A, part(1, true));
    assert_eq!(rig.poll(), 3);
    assert_eq!(rig.fan_out.offer(&mut rig.bench.cx(), &[1; 10]), Offered::Taken);
    assert_eq!((rig.poll(), rig.fan_out.fed().units), (1, 4));
}

#[test]
fn it_ends_once_for_all_and_gives_everything_back() {
    let mut rig = Rig::new();
    rig.note(A, part(1, true));
    let (error, mut out) = (Error::new(Code::NoDataPath, "no way"), FlowOut::default());
    rig.fan_out.lose_way(&mut rig.bench.cx(), &error, &mut out);
    rig.fan_out.lose_way(&mut rig.bench.cx(), &error, &mut out);
    let code = Code::NoDataPath as u16;
    assert_eq!(told(&mut out), [format!("END 0 0 {code}"), "failed: no way".into()]);
    assert!(rig.fan_out.has_ended() && !rig.fan_out.may_take("news", &offer("one")));
    assert_eq!(rig.fan_out.end(&mut rig.bench.cx()), [10]);
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn what_a_module_says_to_several_is_answered_with_a_refusal_and_tells_nothing_more() {
    let mut rig = Rig::new();
    let ask = ModuleMessage { epoch: 0, place: 0, payload: Vec::new() };
    let mut out = FlowOut::default();
    let modules = ModulesTold { asks: vec![ask], ..ModulesTold::default() };
    rig.fan_out.handle_told(&mut rig.bench.cx(), &modules, &mut out);
    assert!(out.is_empty());
}

#[test]
fn a_module_that_has_panicked_ends_it_for_all() {
    let (mut rig, mut out) = (Rig::new(), FlowOut::default());
    let modules = ModulesTold { failure: Some("no place".into()), ..ModulesTold::default() };
    rig.fan_out.handle_told(&mut rig.bench.cx(), &modules, &mut out);
    let code = Code::ModuleFailed as u16;
    assert_eq!(told(&mut out), [format!("END 0 0 {code}"), "failed: no place".into()]);
    assert!(rig.fan_out.has_ended());
}

#[test]
fn it_is_worth_asking_while_something_waits_or_its_source_may_have_something() {
    let mut rig = Rig::new();
    assert!(!rig.fan_out.may_give(rig.bench.now) && !rig.fan_out.has_ended(), "nobody runs");
    rig.note(A, part(1, true));
    assert!(rig.fan_out.may_give(rig.bench.now));
    assert_eq!(rig.poll(), 3);
    assert!(!rig.fan_out.may_give(rig.bench.now), "the source has nothing");
    rig.source.say(Say::Unit(vec![7; 10]));
    assert_eq!(rig.poll(), 0, "it is not asked again by itself");
    rig.fan_out.wake(rig.bench.now);
    assert!(rig.fan_out.may_give(rig.bench.now));
    assert_eq!(rig.poll(), 1);
}

#[test]
fn what_its_modules_keep_leaves_when_their_time_has_come() {
    let (mut rig, mut out) = (Rig::over(slow_graph(ms(30), 2), offer("one")), FlowOut::default());
    rig.note(A, part(1, true));
    assert_eq!(rig.poll(), 0, "the module keeps two, and takes no third");
    let (now, due) = (rig.bench.now, rig.bench.now + ms(30));
    let is_due = |due_at: Due| matches!(due_at, Due::Now(Some(at)) if at == due);
    assert!(is_due(rig.fan_out.due(now)), "the third waits: it is looked at all the time");
    rig.bench.pass(ms(29));
    rig.fan_out.handle_timeout(&mut rig.bench.cx(), &mut out);
    assert_eq!(rig.poll(), 0);
    rig.bench.pass(ms(1));
    rig.fan_out.handle_timeout(&mut rig.bench.cx(), &mut out);
    assert_eq!(rig.poll(), 2);
    assert!(matches!(rig.fan_out.due(rig.bench.now), Due::At(at) if at == due + ms(30)));
}
