//! The fan-outs of a core: who is found, who is awake, what is closed with the last.

use crate::effect::{Effect, Out};
use crate::error::{Code, Error};
use crate::fanout::{FanOut, FanOuts, Part};
use crate::flow::FlowOut;
use crate::flow::tests::{Say, Scripted, at, layout, ms, shared};
use crate::ids::{FanOutId, Place, SessionId};
use crate::port::SourcePoll;
use crate::schedule::{Asked, Rank, Turn};
use crate::shared::Shared;
use crate::transmit::{ListenerId, Offered};
use dacapo_base::{Address, Time};
use dacapo_wire::attribute::{AttributeForm, key};
use dacapo_wire::session::FlowOffer;
use std::net::SocketAddr;

const A: Place = (SessionId(1), 0);
const B: Place = (SessionId(2), 3);

const GROUP: &str = "239.1.1.1:5000";
const OTHER_GROUP: &str = "239.1.1.2:5000";

fn group(address: &str) -> SocketAddr {
    address.parse().unwrap()
}

/// A flow of this name over streams.
fn offer(name: &str) -> FlowOffer {
    FlowOffer {
        name: name.into(),
        unit_len_max: 100,
        datagram_len: layout(false).stride() as u16,
        bound_bps: 1_000_000_000,
        ..FlowOffer::default()
    }
}

fn offer_to(address: &str, name: &str) -> FlowOffer {
    FlowOffer { multicast: Some(group(address)), ..offer(name) }
}

struct Rig {
    shared: Shared,
    all: FanOuts,
    source: Scripted,
    out: Out,
    now: Time,
}

impl Rig {
    fn new() -> Self {
        let (shared, all) = (shared(Vec::new()), FanOuts::default());
        Self { shared, all, source: Scripted::default(), out: Out::default(), now: at(1_000) }
    }

    fn begin(&mut self, offer: FlowOffer) -> FanOutId {
        let source = self.source.boxed();
        self.all.begin(self.now, &mut self.shared, "news".into(), offer, source).unwrap()
    }

    /// One to a group in which A takes part, and runs.
    fn running() -> (Self, FanOutId) {
        let mut rig = Self::new();
        let id = rig.begin(offer_to(GROUP, "one"));
        rig.all.enter(id, A);
        rig.note(id, A);
        (rig, id)
    }

    /// The same at rest: its source has nothing, and nothing has happened since.
    fn resting() -> (Self, FanOutId) {
        let (mut rig, id) = Self::running();
        assert_eq!(rig.poll(id), 0);
        rig.all.next_deadline(rig.now, false);
        rig.all.take_changed();
        rig.all.set_may_give(false);
        assert!(!rig.all.is_awake(id) && !rig.all.may_give());
        (rig, id)
    }

    fn note(&mut self, id: FanOutId, place: Place) {
        let part = Part { is_running: true, is_sent_to: true, origin: Some(ListenerId(1)) };
        self.all.note(self.now, id, place, part);
    }

    fn leave(&mut self, id: FanOutId, place: Place) -> Vec<Address> {
        self.all.leave(self.now, &mut self.shared, id, place, &mut self.out);
        let closed = std::iter::from_fn(|| self.out.pop()).map(|effect| match effect {
            Effect::CloseData(group) => group,
            _ => panic!("something else is wanted"),
        });
        closed.collect()
    }

    /// How many packets of one leave now.
    fn poll(&mut self, id: FanOutId) -> usize {
        let mut count = 0;
        let (now, out) = (self.now, &mut self.out);
        while let Some(Some(packet)) = self.all.poll_packet(&mut self.shared.flow(now), id, out) {
            count += packet.segment_count();
            self.shared.pool.free(packet);
        }
        count
    }
}

#[test]
fn who_asks_for_the_same_flow_finds_it_while_it_is_there() {
    let mut rig = Rig::new();
    assert_eq!((rig.all.len(), rig.all.running("news", &offer("one"))), (0, None));
    let (one, two) = (rig.begin(offer("one")), rig.begin(offer("two")));
    assert_eq!(rig.all.len(), 2);
    assert_eq!(rig.all.running("news", &offer("one")), Some(one));
    assert_eq!(rig.all.running("news", &offer("two")), Some(two));
    assert_eq!(rig.all.running("other", &offer("two")), None);
    let label = rig.all.get(two).unwrap().label();
    assert_eq!(rig.all.fed(two).map(|(fed, label)| (fed.units, label)), Some((0, label)));
    assert_ne!(rig.all.get(one).unwrap().label(), label);
    assert!(rig.all.fed(FanOutId(99)).is_none());
}

#[test]
fn it_stays_until_the_last_of_those_who_take_part_has_left() {
    let mut rig = Rig::new();
    let (one, two) = (rig.begin(offer("one")), rig.begin(offer("two")));
    for (id, place) in [(one, A), (one, B), (two, A)] {
        rig.all.enter(id, place);
    }
    assert!(rig.leave(one, A).is_empty());
    let members = rig.all.get(one).unwrap().members();
    assert!(members.eq([B]), "the others stay");
    let label = rig.all.get(one).unwrap().label();
    assert!(rig.shared.labels.target(label).is_some());
    assert!(rig.leave(one, B).is_empty(), "it was sent to no group");
    assert!(rig.all.get(one).is_none() && rig.all.len() == 1);
    assert_eq!(rig.all.over_streams(), [two]);
    assert!(rig.shared.labels.target(label).is_none(), "its label is given back");
    assert!(rig.leave(one, B).is_empty(), "it is gone");
    assert_eq!(rig.all.len(), 1);
}

#[test]
fn nothing_goes_to_a_group_any_more_when_the_last_flow_to_it_is_over() {
    let mut rig = Rig::new();
    let one = rig.begin(offer_to(GROUP, "one"));
    let two = rig.begin(offer_to(GROUP, "two"));
    let other = rig.begin(offer_to(OTHER_GROUP, "three"));
    for id in [one, two, other] {
        rig.all.enter(id, A);
    }
    let to_group = |rig: &Rig, address| -> Vec<FanOutId> {
        rig.all.to_group(Address::from(group(address))).collect()
    };
    assert_eq!(to_group(&rig, GROUP), [one, two]);
    assert_eq!(to_group(&rig, OTHER_GROUP), [other]);
    assert!(rig.leave(one, A).is_empty(), "another is sent there still");
    assert_eq!(rig.leave(two, A), [Address::from(group(GROUP))]);
    assert_eq!(rig.leave(other, A), [Address::from(group(OTHER_GROUP))]);
}

#[test]
fn what_goes_to_a_group_has_its_turn_and_what_goes_to_streams_is_asked_by_itself() {
    let mut rig = Rig::new();
    let urgent = AttributeForm { key: key::PRIORITY, min: Some(5), max: None, weight: None };
    let to_group = FlowOffer { attributes: vec![urgent], ..offer_to(GROUP, "one") };
    let (one, streams) = (rig.begin(to_group), rig.begin(offer("two")));
    let plain = rig.begin(offer_to(GROUP, "three"));
    let rank = |priority| Rank { priority, ..Rank::of(&FlowOffer::default()) };
    let turn = |id, priority| Turn { rank: rank(priority), asked: Asked::FanOut(id) };
    assert_eq!(rig.all.turns().collect::<Vec<_>>(), [turn(one, 5), turn(plain, 0)]);
    assert_eq!(rig.all.over_streams(), [streams]);
    rig.all.next_deadline(rig.now, false);
    assert_eq!(rig.all.turns().count(), 0, "who rests has no turn");
    assert_eq!(rig.all.over_streams(), [streams]);
    rig.all.wake_all();
    assert_eq!(rig.all.turns().count(), 2);
}

#[test]
fn a_command_reaches_the_source_of_the_one_that_is_meant() {
    let (mut rig, id) = Rig::resting();
    rig.source.log();
    assert_eq!(rig.all.command(rig.now, id, b"x"), Ok(b"x".to_vec()));
    assert_eq!(rig.source.log(), ["command [120]"]);
    assert!(rig.all.may_give() && rig.all.is_awake(id));
    let gone = rig.all.command(rig.now, FanOutId(99), b"x").unwrap_err();
    assert_eq!(gone.code, Code::NoSuchThing);
    assert!(rig.source.log().is_empty());
}

#[test]
fn what_one_tells_goes_out_under_its_number_and_who_tells_nothing_sends_nothing() {
    let (mut rig, id) = Rig::running();
    let quiet = rig.all.with(id, &mut rig.out, |it, _| it.label());
    assert_eq!(quiet, rig.all.get(id).map(FanOut::label));
    assert!(rig.out.pop().is_none());
    let (now, shared) = (rig.now, &mut rig.shared);
    let error = Error::new(Code::NoDataPath, "no way");
    let lose =
        |it: &mut FanOut, told: &mut FlowOut| it.lose_way(&mut shared.flow(now), &error, told);
    assert!(rig.all.with(id, &mut rig.out, lose).is_some());
    let Some(Effect::FanOut(told, out)) = rig.out.pop() else { panic!("it ended") };
    assert_eq!((told, out.messages.len(), out.events.len()), (id, 1, 1));
    assert!(rig.out.pop().is_none());
    assert!(rig.all.with(FanOutId(99), &mut rig.out, |_, _| ()).is_none());
}

#[test]
fn one_is_asked_for_packets_only_while_it_may_have_one() {
    let (mut rig, id) = Rig::running();
    let out = &mut rig.out;
    let asked = rig.all.poll_packet(&mut rig.shared.flow(rig.now), id, out);
    assert!(matches!(asked, Some(None)), "its source was asked, and had nothing");
    rig.source.say(Say::Unit(vec![1; 10]));
    let idle = rig.all.poll_packet(&mut rig.shared.flow(rig.now), id, out);
    assert!(idle.is_none(), "it is not asked again by itself");
    rig.all.wake_source(rig.now, id);
    let packet = rig.all.poll_packet(&mut rig.shared.flow(rig.now), id, out).flatten().unwrap();
    assert_eq!(packet.segment_count(), 1);
    rig.shared.pool.free(packet);
    assert!(rig.all.poll_packet(&mut rig.shared.flow(rig.now), FanOutId(99), out).is_none());
}

#[test]
fn what_a_source_says_at_its_end_goes_out_with_the_packet_that_was_asked_for() {
    let (mut rig, id) = Rig::running();
    rig.source.say(Say::Poll(SourcePoll::End));
    assert_eq!(rig.poll(id), 0);
    assert!(matches!(rig.out.pop(), Some(Effect::FanOut(told, _)) if told == id));
}

#[test]
fn a_source_that_was_idle_is_asked_when_it_is_woken() {
    let (mut rig, id) = Rig::resting();
    rig.source.say(Say::Unit(vec![1; 10]));
    assert_eq!(rig.poll(id), 0, "it has said that it has nothing");
    rig.all.wake_source(rig.now, id);
    assert!(rig.all.may_give() && rig.all.is_awake(id));
    assert_eq!(rig.poll(id), 1);
}

#[test]
fn a_unit_that_is_handed_over_leaves_and_is_counted() {
    let (mut rig, id) = Rig::resting();
    let offered = rig.all.offer(&mut rig.shared.flow(rig.now), id, &[1; 10]);
    assert_eq!(offered, Some(Offered::Taken));
    assert!(rig.all.may_give());
    assert_eq!(rig.poll(id), 1);
    assert_eq!(rig.all.fed(id).map(|(fed, _)| (fed.units, fed.bytes)), Some((1, 10)));
    assert!(rig.all.offer(&mut rig.shared.flow(rig.now), FanOutId(99), &[1; 10]).is_none());
}

#[test]
fn units_are_cut_for_what_the_paths_to_the_members_take() {
    let (mut rig, id) = Rig::resting();
    rig.all.set_len(&mut rig.shared.pool, id, A, 77);
    assert_eq!(rig.all.get(id).unwrap().sender().datagram_len(), 77);
    assert!(rig.all.may_give() && rig.all.is_awake(id));
}

#[test]
fn nobody_is_to_be_asked_until_something_has_happened_to_one_to_a_group() {
    let (mut rig, id) = Rig::resting();
    assert!(!rig.all.is_changed() && !rig.all.take_changed());
    rig.note(id, A);
    assert!(rig.all.may_give() && rig.all.is_changed(), "it is awake");
    assert!(rig.all.take_changed() && !rig.all.take_changed());
    assert!(rig.all.may_give(), "and was not asked since");
    rig.all.set_may_give(false);
    assert!(!rig.all.may_give());
    rig.begin(offer_to(GROUP, "two"));
    assert!(rig.all.may_give(), "somebody is new");
    rig.all.take_changed();
    assert!(!rig.all.may_give());
    rig.begin(offer("three"));
    rig.all.take_changed();
    assert!(rig.all.may_give(), "those over streams are asked each time");
}

#[test]
fn one_rests_until_its_source_is_due() {
    let (mut rig, id) = Rig::resting();
    assert_eq!(rig.all.next_deadline(rig.now, false), None, "its source has said nothing");
    let due = rig.now + ms(40);
    rig.source.say(Say::Poll(SourcePoll::Wait(due)));
    rig.all.wake_source(rig.now, id);
    assert_eq!(rig.poll(id), 0);
    assert_eq!(rig.all.next_deadline(rig.now, false), Some(due));
    rig.all.set_may_give(false);
    rig.all.take_changed();
    rig.all.wake_due(due - ms(1));
    assert!(!rig.all.is_awake(id) && !rig.all.may_give());
    rig.all.wake_due(due);
    assert!(rig.all.is_awake(id));
    rig.all.take_changed();
    assert!(rig.all.may_give(), "it may have something now");
    rig.all.set_may_give(true);
    rig.all.wake_due(due);
    assert!(rig.all.may_give(), "that nobody is due takes nothing back");
}

#[test]
fn who_rests_is_not_woken_by_time_once_that_is_forgotten() {
    let (mut rig, id) = Rig::resting();
    let due = rig.now + ms(40);
    rig.source.say(Say::Poll(SourcePoll::Wait(due)));
    rig.all.wake_source(rig.now, id);
    assert_eq!(rig.poll(id), 0);
    rig.all.forget_due();
    rig.all.next_deadline(rig.now, false);
    rig.all.wake_due(due);
    assert!(!rig.all.is_awake(id));
    rig.all.wake_all();
    assert!(rig.all.is_awake(id));
}

#[test]
fn those_that_are_awake_are_looked_at_and_rest_as_before() {
    let mut rig = Rig::new();
    let out = &mut rig.out;
    assert_eq!(rig.all.handle_timeout(rig.now, &mut rig.shared, out), 0);
    assert_eq!(rig.all.next_deadline(rig.now, false), None);
    let ids = ["one", "two", "three"].map(|name| rig.begin(offer_to(GROUP, name)));
    let look = |rig: &mut Rig| rig.all.handle_timeout(rig.now, &mut rig.shared, &mut rig.out);
    assert_eq!(look(&mut rig), 3);
    rig.all.next_deadline(rig.now, false);
    assert_eq!(look(&mut rig), 0, "they rest");
    rig.all.enter(ids[1], A);
    assert_eq!(look(&mut rig), 1);
    rig.all.next_deadline(rig.now, true);
    assert!(rig.all.is_awake(ids[1]), "it was touched, though looked at since");
    assert_eq!(look(&mut rig), 1);
    rig.all.next_deadline(rig.now, true);
    assert!(!rig.all.is_awake(ids[1]), "who was only looked at is not touched by that");
}
