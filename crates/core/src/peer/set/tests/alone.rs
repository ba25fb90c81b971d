//! The peers of a core, as far as no connection is needed: who is woken, whose a path is.

use crate::control::ConnId;
use crate::flow::FlowSeen;
use crate::flow::tests::{at, ms};
use crate::ids::{PeerId, SessionId};
use crate::peer::set::{Carries, Peers};
use crate::peer::tests::narrow;
use crate::peer::{HostLookup, PathSet, Peer};
use crate::transmit::{ListenerId, Way};
use dacapo_base::{Address, Ecn, Time};
use dacapo_lift::PathSeen;
use dacapo_path::{EARLY_MAX, Sent};
use quinn_proto::{Dir, Side, StreamId};
use std::time::Duration;

const ONE: PeerId = PeerId(2);
const OTHER: PeerId = PeerId(3);
const NOBODY: PeerId = PeerId(9_999);
const THERE: &str = "192.0.2.1:9";

fn address(text: &str) -> Address {
    text.parse().unwrap()
}

/// Two that were dialed and whose paths are open.
fn two() -> Peers {
    let mut peers = Peers::default();
    peers.all.insert(ONE, Peer::on_path(THERE, &narrow()));
    peers.all.insert(OTHER, Peer::on_path("192.0.2.2:9", &narrow()));
    peers
}

/// The same at rest.
fn resting() -> Peers {
    let mut peers = two();
    assert!(peers.next_deadline(at(1_000), |_, _| None).is_some(), "paths are watched");
    assert!(!peers.all.is_any_awake());
    peers
}

fn came_in(since: Time) -> Peer {
    Peer::came_in(address(THERE), Some(ListenerId(4)), ConnId(77), since, &narrow())
}

fn left(packets: u64) -> FlowSeen {
    let left = PathSeen { delivered_packets: packets, ..PathSeen::default() };
    FlowSeen { left, ..FlowSeen::default() }
}

fn stream() -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, 1)
}

#[test]
fn a_peer_is_found_by_its_number() {
    let peers = two();
    assert_eq!(peers.get(ONE).map(Peer::remote), Some(address(THERE)));
    assert!(peers.get(NOBODY).is_none() && !peers.is_suspended(NOBODY));
}

#[test]
fn with_a_peer_whose_contact_is_lost_everything_waits_and_it_is_looked_at_all_the_time() {
    let mut peers = resting();
    assert!(!peers.is_suspended(ONE));
    peers.all.with(ONE, |peer| peer.suspend(at(1_000)));
    assert!(peers.is_suspended(ONE) && !peers.is_suspended(OTHER));
    let give_up = |id: PeerId, since: Time| (id == ONE).then(|| since + ms(5));
    assert_eq!(peers.next_deadline(at(1_000), give_up), Some(at(1_000)), "another attempt");
    assert!(peers.all.is_awake(ONE) && !peers.all.is_awake(OTHER));
}

#[test]
fn what_is_adjusted_wakes_nobody_unless_its_path_is_due_earlier() {
    let mut peers = resting();
    assert_eq!(peers.adjust(ONE, |peer| peer.remote()), Some(address(THERE)));
    assert!(peers.adjust(NOBODY, |peer| peer.remote()).is_none());
    assert!(!peers.all.is_any_awake());
    peers.adjust(ONE, |peer| peer.await_room(PathSet::FIRST, true));
    assert!(peers.all.is_awake(ONE) && !peers.all.is_awake(OTHER));
}

#[test]
fn what_modules_have_seen_of_what_left_wakes_a_peer_and_what_came_does_not() {
    let mut peers = resting();
    let FlowSeen { left: seen, .. } = left(3);
    let came = FlowSeen { came: seen, ..FlowSeen::default() };
    assert!(!peers.handle_seen(at(1_000), ONE, &came) && !peers.all.is_any_awake());
    let estimates = peers.get(ONE).unwrap().data().path().estimates();
    assert_eq!(estimates.came.delivered_packets, 3);
    assert!(!peers.handle_seen(at(1_000), ONE, &left(3)), "nothing waits for room");
    assert!(peers.all.is_awake(ONE) && !peers.all.is_awake(OTHER));
    let sent = Sent {
        datagram_len: 1_000,
        packets: 10,
        bytes: 10_000,
        is_acknowledged: true,
        ..Sent::default()
    };
    peers.adjust(ONE, |peer| {
        peer.note_sent(at(1_000), PathSet::FIRST, &sent);
        peer.await_room(PathSet::FIRST, true);
    });
    assert!(peers.handle_seen(at(1_001), ONE, &left(1)), "what waits may leave");
    assert!(!peers.handle_seen(at(1_001), ONE, &left(1)), "it was told");
    assert!(!peers.handle_seen(at(1_001), NOBODY, &left(1)));
}

#[test]
fn sessions_with_a_peer_are_counted() {
    let mut peers = two();
    let has = |peers: &Peers, id| peers.get(id).is_some_and(Peer::has_sessions);
    assert!(!has(&peers, ONE));
    peers.note_session(ONE);
    peers.note_session(ONE);
    assert!(has(&peers, ONE) && !has(&peers, OTHER));
    assert_eq!(peers.get(ONE).unwrap().sessions, 2);
}

#[test]
fn what_is_said_to_a_peer_is_to_be_acknowledged_soon() {
    let mut peers = resting();
    let conn = peers.get(ONE).unwrap().conn();
    assert!(conn.is_some());
    assert_eq!(peers.speak(at(1_000), ONE), conn);
    assert!(peers.all.is_awake(ONE) && peers.get(ONE).unwrap().life.solicits());
    assert_eq!(peers.speak(at(1_000), NOBODY), None);
}

#[test]
fn a_stream_carries_the_session_that_it_was_given() {
    let mut peers = two();
    peers.carry(ConnId(5), stream(), SessionId(8));
    let carries = peers.streams.get(&(ConnId(5), stream()));
    assert_eq!(carries, Some(&Carries::Session(SessionId(8))));
}

#[test]
fn what_is_to_be_looked_for_on_this_host_is_asked_once_and_found_for_the_one_that_is_meant() {
    let mut peers = two();
    let look = HostLookup { peer: ONE, transport: 3, remote: address(THERE) };
    peers.looks.push_back(look);
    assert_eq!(peers.poll_host_lookup(), Some(look));
    assert_eq!(peers.poll_host_lookup(), None);
    peers.handle_found(look);
    assert!(peers.get(ONE).unwrap().is_found_by(3) && !peers.get(OTHER).unwrap().is_found_by(3));
}

#[test]
fn what_somebody_says_of_lengths_concerns_those_at_that_address() {
    let mut peers = resting();
    peers.handle_too_large(at(1_000), address("192.0.2.9:1"), Some(1_250));
    assert!(!peers.all.is_any_awake(), "nobody is there");
    peers.handle_too_large(at(1_000), address(THERE), Some(1_250));
    assert!(peers.all.is_awake(ONE) && !peers.all.is_awake(OTHER));
}

#[test]
fn a_connection_on_which_something_came_is_heard_of_by_its_peer() {
    let mut peers = resting();
    peers.conns.insert(ConnId(5), ONE);
    peers.handle_heard(ConnId(6));
    assert!(!peers.all.is_any_awake());
    peers.handle_heard(ConnId(5));
    assert!(peers.all.is_awake(ONE) && !peers.all.is_awake(OTHER));
}

#[test]
fn a_probe_goes_by_data_to_a_port_that_has_answered_and_by_control_elsewhere() {
    let mut peers = two();
    assert!(!peers.has_probes() && peers.poll_probe().is_none());
    peers.all.insert(PeerId(4), came_in(at(1_000)));
    let elsewhere = address("192.0.2.77:5");
    let from = Some(ListenerId(4));
    for (id, from, to) in
        [(ONE, None, address(THERE)), (ONE, None, elsewhere), (PeerId(4), from, address(THERE))]
    {
        peers.probes.push_back(((id, 0), (from, to), vec![7], Ecn::Ect1));
    }
    assert!(peers.has_probes());
    assert_eq!(peers.poll_probe(), Some((Way::Data, None, address(THERE), vec![7], Ecn::Ect1)));
    assert_eq!(peers.poll_probe(), Some((Way::Control, None, elsewhere, vec![7], Ecn::Ect1)));
    assert_eq!(peers.poll_probe(), Some((Way::Control, from, address(THERE), vec![7], Ecn::Ect1)));
    assert!(!peers.has_probes());
}

#[test]
fn those_that_are_due_soon_are_woken_with_the_first_and_no_others() {
    let mut peers = Peers::default();
    // Who has not greeted by then is due ten seconds after it came.
    let ten = Duration::from_secs(10);
    let since = |when: Time| Time::ZERO + when.since(Time::ZERO + ten);
    let first = at(20_000);
    for (id, when) in [(11, first), (12, first + EARLY_MAX), (13, first + EARLY_MAX + ms(1))] {
        peers.all.insert(PeerId(id), came_in(since(when)));
    }
    assert_eq!(peers.next_deadline(at(10_000), |_, _| None), Some(first));
    peers.wake_due(first - ms(1));
    assert!(!peers.all.is_any_awake(), "nobody is due");
    peers.wake_due(first);
    assert!(peers.all.awake().eq([PeerId(11), PeerId(12)]));
}

#[test]
fn who_rests_is_not_woken_by_time_once_that_is_forgotten() {
    let mut peers = two();
    peers.forget_due();
    assert_eq!(peers.next_deadline(at(1_000), |_, _| None), None);
    peers.wake_due(at(99_000));
    assert!(!peers.all.is_any_awake());
    peers.wake_all();
    assert!(peers.all.is_awake(ONE) && peers.all.is_awake(OTHER));
}

#[test]
fn time_in_which_this_end_did_not_run_does_not_count() {
    let mut peers = Peers::default();
    peers.all.insert(ONE, came_in(at(1_000)));
    let due = peers.next_deadline(at(1_000), |_, _| None);
    assert_eq!(due, Some(at(11_000)), "its greeting, and a sign of life");
    peers.shift(at(6_000), ms(5_000));
    assert_eq!(peers.next_deadline(at(6_000), |_, _| None), Some(at(16_000)));
}
