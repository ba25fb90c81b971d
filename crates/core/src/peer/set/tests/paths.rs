//! The data paths to peers: whose a probe is, how it goes, when who is looked at.

use super::*;
use crate::flow::FlowSeen;
use crate::flow::tests::PLAIN_TRANSPORT;
use crate::peer::{HostLookup, PathSet};
use crate::transmit::Way;
use dacapo_lift::{Catalogue, PathSeen, TransportSpec};

const fn spec(id: u16, name: &'static str, same_host: bool) -> TransportSpec {
    TransportSpec { name, id, same_host, ..PLAIN_TRANSPORT }
}

static NEAR: TransportSpec = spec(3, "near", true);
static FAR: TransportSpec = spec(4, "far", false);

/// The next probe of an end, as it came.
fn probe(end: &mut End) -> (Way, Option<ListenerId>, Address, Probe, usize) {
    let (way, local, remote, bytes, _) = end.peers.poll_probe().expect("there is one");
    (way, local, remote, Probe::parse(&bytes).unwrap(), bytes.len())
}

/// The dialer's first question, and the listener.
fn asked() -> (World, Probe, usize) {
    let mut world = World::open();
    world.dialer.with(world.now, |peers, cx, out| peers.handle_timeout(cx, out));
    assert!(world.dialer.peers.has_probes());
    let (way, local, remote, question, len) = probe(&mut world.dialer);
    assert_eq!((way, local, remote), (Way::Data, None, address(LISTENER)));
    (world, question, len)
}

impl World {
    /// Gives the listener a probe from there.
    fn give(&mut self, from: &str, probe: Probe, len: usize) -> bool {
        self.listener.with(self.now, |peers, cx, out| {
            peers.handle_probe(cx, (ListenerId(0), address(from)), probe, len, out)
        })
    }
}

#[test]
fn a_probe_that_is_nobodys_changes_nothing() {
    let (mut world, question, len) = asked();
    let other = Probe { connection: question.connection ^ 1, ..question };
    let forged = Probe { tag: question.tag ^ 1, ..question };
    for probe in [other, forged] {
        assert!(!world.give(DIALER, probe, len));
        assert!(!world.listener.peers.has_probes());
    }
    assert!(world.give(DIALER, question, len));
    let (way, local, remote, back, _) = probe(&mut world.listener);
    assert_eq!((way, local, remote), (Way::Control, Some(HERE), address(DIALER)));
    assert!(!back.answer, "it asks back, to be sure of the address");
    let (_, _, remote, answer, answer_len) = probe(&mut world.listener);
    assert_eq!((remote, answer.answer, answer.number), (address(DIALER), true, question.number));
    assert_eq!(answer_len, len);
    assert!(!world.listener.peers.has_probes() && world.listener.peers.poll_probe().is_none());
}

#[test]
fn data_goes_to_an_address_that_has_answered_and_the_one_before_is_closed() {
    let (mut world, question, len) = asked();
    world.give(DIALER, question, len);
    let (_, _, _, back, back_len) = probe(&mut world.listener);
    let now = world.now;
    let answer = |world: &World, asked: Probe, len: usize| {
        let bytes = world.dialer.peer().data().write_answer(now, asked, len);
        Probe::parse(&bytes).unwrap()
    };
    let first = answer(&world, back, back_len);
    assert!(world.give(DIALER, first, back_len));
    assert_eq!(world.listener.said(), ["data moved"], "nothing was there before");
    assert_eq!(world.listener.peer().data().remote(), Some(address(DIALER)));
    assert!(!world.give(DIALER, first, back_len), "it answers nothing now");
    assert!(matches!(world.listener.peers.poll_probe(), Some((Way::Data, ..))));
    let moved = "192.0.2.77:5";
    let bytes = world.dialer.peer().data().write_question(
        now,
        dacapo_path::Question { number: question.number + 1, len, ecn: Ecn::NotEct },
    );
    assert!(world.give(moved, Probe::parse(&bytes).unwrap(), len));
    let (way, _, remote, back, back_len) = probe(&mut world.listener);
    assert_eq!((way, remote), (Way::Control, address(moved)));
    let second = answer(&world, back, back_len);
    assert!(world.give(moved, second, back_len));
    assert_eq!(world.listener.said(), [format!("close {DIALER}").as_str(), "data moved"]);
}

#[test]
fn no_more_probes_wait_than_may() {
    let (mut world, question, len) = asked();
    world.listener.shared.queues.probes_max = 1;
    assert!(world.give(DIALER, question, len));
    assert!(world.listener.peers.poll_probe().is_some());
    assert!(!world.listener.peers.has_probes(), "the answer found no place");
}

#[test]
fn both_ends_find_out_how_long_datagrams_may_be_and_tell_it_once() {
    let mut world = World::open();
    world.pass(ms(12_000));
    for end in [&mut world.dialer, &mut world.listener] {
        let said = end.said();
        assert_eq!(said.iter().filter(|it| *it == "length false").count(), 1, "{said:?}");
        let len = end.peer().data().settled_len();
        assert!(len.is_some_and(|len| len > 1_200), "{len:?}");
    }
    let moved = |end: &End| end.peer().data().remote();
    assert_eq!(moved(&world.listener), Some(address(DIALER)));
    assert_eq!(moved(&world.dialer), Some(address(LISTENER)));
}

#[test]
fn what_somebody_says_of_lengths_is_tried_out_for_those_at_that_address() {
    let mut world = World::probed();
    let idle = |world: &mut World| {
        world.dialer.peers.next_deadline(world.now, |_, _| None);
        !world.dialer.peers.all.is_any_awake()
    };
    assert!(idle(&mut world));
    world.dialer.peers.handle_too_large(world.now, address("192.0.2.9:1"), Some(1_300));
    assert!(idle(&mut world), "nobody is there");
    world.dialer.peers.handle_too_large(world.now, address(LISTENER), Some(1_300));
    assert!(world.dialer.peers.all.is_any_awake());
}

#[test]
fn modules_that_have_seen_what_left_wake_the_peer_and_what_came_does_not() {
    let mut world = World::probed();
    let (id, now) = (world.dialer.id(), world.now);
    let some = PathSeen { lost_packets: 1, ..PathSeen::default() };
    world.dialer.peers.next_deadline(now, |_, _| None);
    let came = FlowSeen { came: some, ..FlowSeen::default() };
    assert!(!world.dialer.peers.handle_seen(now, id, &came));
    assert!(!world.dialer.peers.all.is_awake(id));
    let left = FlowSeen { left: some, ..FlowSeen::default() };
    assert!(!world.dialer.peers.handle_seen(now, id, &left), "nothing waits for room");
    assert!(world.dialer.peers.all.is_awake(id));
    world.dialer.peers.adjust(id, |peer| peer.await_room(PathSet::FIRST, true));
    assert!(world.dialer.peers.handle_seen(now, id, &left), "what waits may leave");
    assert!(!world.dialer.peers.handle_seen(now, PeerId(9_999), &left));
}

#[test]
fn what_is_adjusted_gives_its_result_and_wakes_nobody() {
    let mut world = World::probed();
    let (id, now) = (world.dialer.id(), world.now);
    world.dialer.peers.next_deadline(now, |_, _| None);
    assert_eq!(world.dialer.peers.adjust(id, |peer| peer.remote()), Some(address(LISTENER)));
    assert_eq!(world.dialer.peers.adjust(PeerId(9_999), |peer| peer.remote()), None);
    assert!(!world.dialer.peers.all.is_awake(id));
    assert!(!world.dialer.peers.is_suspended(id));
}

#[test]
fn who_rests_is_woken_when_it_is_due_and_those_that_are_due_soon_with_it() {
    let mut world = World::probed();
    let now = world.now;
    let due = world.dialer.peers.next_deadline(now, |_, _| None).expect("it asks for life");
    assert!(due > now);
    let look = |world: &mut World, at: Time| {
        world.dialer.with(at, |peers, cx, out| peers.handle_timeout(cx, out))
    };
    assert_eq!(look(&mut world, due - ms(1)), 0);
    assert_eq!(look(&mut world, due), 1);
    let controller = world.dialer.shared.controllers.here.clone();
    let mut twin = World::probed();
    let due = twin.dialer.peers.next_deadline(now, |_, _| None).unwrap();
    let fresh = |since| Peer::came_in(address(DIALER), None, ConnId(77), since, &controller);
    // Who has greeted nobody by then is due ten seconds after it came.
    let ten = Duration::from_secs(10);
    let soon = due + dacapo_path::EARLY_MAX;
    for (id, at) in [(901, soon), (902, soon + ms(1))] {
        twin.dialer.peers.all.insert(PeerId(id), fresh(Time::ZERO + (at - ten).since(Time::ZERO)));
    }
    twin.dialer.peers.next_deadline(now, |_, _| None);
    twin.dialer.peers.wake_due(due - ms(1));
    assert!(!twin.dialer.peers.all.is_any_awake(), "nobody is due");
    twin.dialer.peers.wake_due(due);
    assert!(twin.dialer.peers.all.is_awake(PeerId(901)));
    assert!(!twin.dialer.peers.all.is_awake(PeerId(902)));
}

#[test]
fn for_tests_time_may_be_forgotten_and_all_be_woken() {
    let mut world = World::probed();
    let (id, now) = (world.dialer.id(), world.now);
    world.dialer.peers.wake_all();
    assert!(world.dialer.peers.all.is_awake(id));
    world.dialer.peers.forget_due();
    assert_eq!(world.dialer.peers.next_deadline(now, |_, _| None), None);
    world.dialer.peers.wake_due(now + ms(60_000));
    assert!(!world.dialer.peers.all.is_awake(id));
    world.dialer.peers.wake_all();
    assert!(world.dialer.peers.all.is_awake(id));
}

#[test]
fn time_in_which_this_end_did_not_run_does_not_count() {
    let mut world = World::new();
    world.lossy = Lossy::All;
    world.connect().unwrap();
    world.dialer.peers.shift(world.now, ms(5_000));
    world.pass(ms(14_980));
    assert!(world.dialer.said().is_empty());
    world.pass(ms(20));
    assert!(world.dialer.said().contains(&"lost Unreachable 0".to_owned()));
}

#[test]
fn a_peer_of_this_host_is_looked_for_by_what_needs_one_host() {
    let near = |world: &mut World| {
        let catalogue = Catalogue::new(Vec::new()).with_transports(vec![&FAR, &NEAR]);
        world.dialer.shared.graphs = crate::graphs::Graphs::new(catalogue, None);
        world.listener.at = address("127.0.0.1:19980");
        world.dialer.at = address("127.0.0.1:1000");
    };
    let mut world = World::new();
    near(&mut world);
    world.greet();
    let look = world.dialer.peers.poll_host_lookup().expect("it is here");
    let (peer, remote) = (world.dialer.id(), world.listener.at);
    assert_eq!(look, HostLookup { peer, transport: 3, remote });
    assert_eq!(world.dialer.peers.poll_host_lookup(), None);
    assert!(!world.dialer.peer().is_found_by(3));
    world.dialer.peers.handle_found(look);
    assert!(world.dialer.peer().is_found_by(3) && !world.dialer.peer().is_found_by(4));
    assert!(world.listener.peers.poll_host_lookup().is_none(), "who is dialed does not look");
    let mut elsewhere = World::new();
    near(&mut elsewhere);
    elsewhere.listener.identity.boot = [8; 16];
    elsewhere.greet();
    assert_eq!(elsewhere.dialer.peers.poll_host_lookup(), None, "another host's loopback");
}
