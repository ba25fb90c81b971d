//! A peer by itself: what its path lets out, how near it is, when it is due.

use super::data_path::ProbeKey;
use super::{DataPath, DialParams, PathSet, Peer};
use crate::control::ConnId;
use crate::error::Code;
use crate::flow::FlowSeen;
use crate::flow::tests::{PLAIN_TRANSPORT, at, ms};
use crate::transmit::ListenerId;
use dacapo_base::{Address, Ecn, Time};
use dacapo_lift::{PathSeen, TransportSpec};
use dacapo_path::{Controller, ControllerEntry, ControllerSpec, Life, Question, Sent};
use dacapo_wire::probe::Probe;
use quinn_proto::{Dir, Side, StreamId};
use std::time::Duration;

const THERE: &str = "192.0.2.1:9";
const HERE: &str = "127.0.0.1:9";

fn address(text: &str) -> Address {
    text.parse().unwrap()
}

static NARROW: ControllerSpec =
    ControllerSpec { name: "narrow", summary: "", source: "", datagrams: true, usual: None };

/// A controller with a window of 10,000 bytes.
struct Narrow;

impl Controller for Narrow {
    fn window(&self) -> u64 {
        10_000
    }
}

pub(crate) fn narrow() -> ControllerEntry {
    ControllerEntry::new(&NARROW, |_, _| Box::new(Narrow))
}

fn sent(packets: u64) -> Sent {
    Sent {
        datagram_len: 1_000,
        packets,
        bytes: packets * 1_000,
        is_acknowledged: true,
        ..Sent::default()
    }
}

/// What modules have seen of what has left: so many packets came.
fn came(packets: u64) -> FlowSeen {
    let left = PathSeen { delivered_packets: packets, ..PathSeen::default() };
    FlowSeen { left, ..FlowSeen::default() }
}

/// A path that is opened and not answered.
fn opened() -> DataPath {
    let mut path = DataPath::new(at(1_000), &narrow());
    path.open(at(1_000), address(THERE), ProbeKey::new([7; 16]));
    path
}

/// The answer to a question, as it comes.
fn answer(path: &DataPath, question: Question) -> Probe {
    let bytes = path.write_question(at(1_000), question);
    let asked = Probe::parse(&bytes).unwrap();
    Probe::parse(&path.write_answer(at(1_005), asked, bytes.len())).unwrap()
}

/// One whose questions are answered at once until its length is known.
fn settled() -> (DataPath, Time) {
    let (mut path, mut now) = (opened(), at(1_000));
    while path.settled_len().is_none() {
        now += ms(10);
        while let Some(question) = path.poll_question(now) {
            let answer = answer(&path, question);
            path.handle_answer(now, address(THERE), &answer).unwrap();
        }
        assert!(now < at(60_000), "it settles");
    }
    (path, now)
}

fn dialed(remote: &str) -> Peer {
    Peer::dialed(address(remote), at(1_000), DialParams::default(), &narrow())
}

fn hub() -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, 0)
}

/// One that was dialed and is open, the data path too.
fn open(remote: &str) -> Peer {
    let mut peer = dialed(remote);
    peer.link.choose(ConnId(5), hub());
    peer.link.open([9; 16]);
    peer.data.open(at(1_000), address(remote), ProbeKey::new([7; 16]));
    peer
}

impl Peer {
    /// One whose data path is open, and lets out what its controller says.
    pub(crate) fn on_path(remote: &str, controller: &ControllerEntry) -> Self {
        let mut peer = open(remote);
        peer.data = DataPath::new(at(1_000), controller);
        peer.data.open(at(1_000), address(remote), ProbeKey::new([7; 16]));
        let question = peer.data.poll_question(at(1_000)).unwrap();
        let answer = answer(&peer.data, question);
        peer.data.handle_answer(at(1_000), address(remote), &answer).unwrap();
        peer
    }

    /// Contact with it is lost.
    pub(crate) fn suspend(&mut self, now: Time) {
        self.contact.lose(now);
    }
}

/// One that came in and has greeted.
fn came_in() -> Peer {
    let local = Some(ListenerId(4));
    let mut peer = Peer::came_in(address(THERE), local, ConnId(6), at(1_000), &narrow());
    peer.link.open([9; 16]);
    peer
}

#[test]
fn what_is_in_flight_is_not_let_out_again_before_something_of_it_has_come() {
    let mut path = opened();
    assert_eq!(path.allowance(at(1_000), true), 10_000);
    path.handle_sent(at(1_000), &sent(4));
    assert_eq!(path.allowance(at(1_000), true), 6_000);
    assert_eq!(path.path().in_flight_bytes(), 4_000);
    path.handle_sent(at(1_000), &sent(6));
    assert!(!path.poll_room(at(1_000)), "nothing waits");
    assert!(!path.poll_earlier());
    path.await_room(true);
    assert!(path.poll_earlier() && !path.poll_earlier(), "once");
    assert!(!path.poll_room(at(1_000)), "nothing may leave");
    path.handle_seen(at(1_010), &came(3));
    assert!(path.poll_room(at(1_010)) && !path.poll_room(at(1_010)), "once");
    assert_eq!(path.allowance(at(1_010), true), 3_000);
}

#[test]
fn what_has_come_here_says_nothing_of_what_has_left() {
    let mut path = opened();
    path.handle_sent(at(1_000), &sent(4));
    let FlowSeen { left, .. } = came(3);
    path.handle_seen(at(1_010), &FlowSeen { came: left, ..FlowSeen::default() });
    assert_eq!(path.allowance(at(1_010), true), 6_000);
    assert_eq!(path.path().estimates().came.delivered_packets, 3);
    assert_eq!(path.path().controller(), "narrow");
}

#[test]
fn what_nothing_was_heard_of_for_long_is_in_flight_no_more_but_a_stop_is_no_silence() {
    let mut path = opened();
    assert_eq!(path.due(at(1_000)), None);
    path.handle_sent(at(1_000), &sent(10));
    let due = path.due(at(1_000)).expect("silence is noticed");
    path.await_room(true);
    path.shift(due);
    assert!(!path.poll_room(due), "this end did not run until then");
    let later = path.due(due).unwrap();
    assert_eq!(later.since(due), due.since(at(1_000)));
    assert!(path.poll_room(later));
    assert_eq!(path.allowance(later, true), 10_000);
}

#[test]
fn of_a_path_that_is_not_open_nothing_is_asked_and_nobody_says_who_lives() {
    let mut path = DataPath::new(at(1_000), &narrow());
    assert_eq!((path.remote(), path.next_deadline(at(1_000))), (None, None));
    assert!(path.poll_question(at(9_000)).is_none() && path.watch(at(9_000), false).is_none());
    assert!(path.clock().is_none() && !path.is_unanswered(at(9_000)));
    assert_eq!(path.datagram_len(at(9_000)), None);
    path.set_one_clock(true);
    assert!(path.is_one_clock());
    path.set_one_clock(false);
    assert!(!path.is_one_clock());
}

#[test]
fn a_path_that_is_asked_about_is_open_with_the_first_answer() {
    let mut path = opened();
    assert!(path.is_unanswered(at(1_000)) && path.clock().is_some());
    assert!(path.next_deadline(at(1_000)).is_some_and(|due| due >= at(1_000)));
    assert_eq!(path.times().rtt, Duration::ZERO);
    let question = path.poll_question(at(1_000)).unwrap();
    let answer = answer(&path, question);
    let answered = path.handle_answer(at(1_020), address(THERE), &answer).unwrap();
    assert!(answered.heard.has_len && answered.moved_from.is_none());
    assert!(!path.is_unanswered(at(1_020)));
    assert_eq!(path.times().rtt, ms(20));
    assert!(!path.times().is_lost);
    assert!(path.datagram_len(at(1_020)).is_some_and(|len| len >= question.len));
}

#[test]
fn a_silent_path_is_lost_unless_something_else_was_heard() {
    let (mut path, now) = settled();
    // It is watched all the time: else this end has not run.
    let watch = |path: &mut DataPath, is_heard| {
        (1..=40).map(|step| path.watch(now + ms(step * 100), is_heard)).last().unwrap()
    };
    assert_eq!(watch(&mut path, true), Some(Life::Alive));
    let (mut path, _) = settled();
    assert_eq!(watch(&mut path, false), Some(Life::Lost));
}

#[test]
fn an_answer_is_no_longer_than_its_question_and_says_when_that_came() {
    let path = opened();
    let bytes = path.write_question(at(1_000), Question { number: 3, len: 400, ecn: Ecn::NotEct });
    assert_eq!(bytes.len(), 400);
    let asked = Probe::parse(&bytes).unwrap();
    assert_eq!((asked.answer, asked.number, asked.size), (false, 3, 400));
    assert_eq!(asked.asked_ns, at(1_000).as_nanos());
    assert_eq!((asked.received_ns, asked.answered_ns), (0, 0));
    let bytes = path.write_answer(at(1_007), asked, 300);
    assert_eq!(bytes.len(), 300);
    let answer = Probe::parse(&bytes).unwrap();
    assert_eq!((answer.answer, answer.number, answer.size), (true, 3, 300));
    let then = at(1_007).as_nanos();
    assert_eq!((answer.received_ns, answer.answered_ns), (then, then));
    assert_eq!(answer.tag, path.key().tag(&answer));
}

#[test]
fn a_question_of_the_peer_brings_the_next_of_ours_forward_while_it_is_near() {
    let (mut path, now) = settled();
    let mut due = path.next_deadline(now).unwrap();
    while due.since(now) < ms(300) {
        let question = path.poll_question(due).expect("it is due");
        let answer = answer(&path, question);
        path.handle_answer(due, address(THERE), &answer);
        due = path.next_deadline(due).unwrap();
    }
    path.ask_early(due - ms(260));
    assert_eq!(path.next_deadline(due - ms(260)), Some(due), "it is too early for that");
    path.handle_question(due - ms(240), false, address(THERE), 1, 100);
    assert_eq!(path.next_deadline(due - ms(240)), Some(due - ms(240)));
}

#[test]
fn a_path_that_may_be_another_is_measured_anew() {
    for change in [DataPath::handle_path_change, |path: &mut DataPath, now| {
        path.handle_too_large(now, Some(1_250));
    }] {
        let (mut path, now) = settled();
        let mut others = settled().0;
        let lens = |path: &mut DataPath| -> Vec<usize> {
            std::iter::from_fn(|| path.poll_question(now)).map(|it| it.len).collect()
        };
        lens(&mut path);
        lens(&mut others);
        change(&mut path, now);
        assert!(lens(&mut others).is_empty(), "nothing is to be asked");
        assert!(!lens(&mut path).is_empty(), "it is tried out");
    }
}

#[test]
fn a_peer_is_of_this_host_when_both_its_address_and_its_clock_say_so() {
    for (remote, one_clock, is_here) in
        [(HERE, true, true), (HERE, false, false), (THERE, true, false), (THERE, false, false)]
    {
        let mut peer = dialed(remote);
        peer.data.set_one_clock(one_clock);
        assert_eq!(peer.is_here(), is_here, "{remote} {one_clock}");
    }
}

const fn read_by(scheme: &'static str) -> TransportSpec {
    TransportSpec { scheme, ..PLAIN_TRANSPORT }
}

#[test]
fn a_transport_reads_addresses_of_its_scheme() {
    let peer = dialed(THERE);
    assert!(peer.is_read_by(&read_by(dacapo_base::IP)) && !peer.is_read_by(&read_by("pigeon")));
    let mut found = dialed(HERE);
    found.same_host.push(3);
    assert!(found.is_found_by(3) && !found.is_found_by(4) && !peer.is_found_by(3));
}

#[test]
fn a_peer_is_as_it_was_met() {
    let (there, here) = (dialed(THERE), came_in());
    assert!(there.is_dialed() && !here.is_dialed());
    assert_eq!((there.conn(), here.conn()), (None, Some(ConnId(6))));
    assert_eq!((there.local(), here.local()), (None, Some(ListenerId(4))));
    assert_eq!(there.remote(), address(THERE));
    let mut busy = came_in();
    assert!(!busy.has_sessions());
    busy.sessions = 1;
    assert!(busy.has_sessions());
    busy.sessions = 2;
    assert!(busy.has_sessions());
}

#[test]
fn sessions_may_be_asked_for_when_a_peer_is_open_and_there_is_contact() {
    assert_eq!(dialed(THERE).open_conn().unwrap_err().code, Code::NoSuchThing);
    let mut peer = open(THERE);
    assert_eq!(peer.open_conn(), Ok(ConnId(5)));
    assert!(!peer.is_suspended() && !peer.times().is_lost);
    peer.contact.lose(at(2_000));
    let error = peer.open_conn().unwrap_err();
    assert!(error.code == Code::ContactLost && error.text.contains("192.0.2.1:9"), "{error}");
    assert!(peer.is_suspended() && peer.times().is_lost);
    assert_eq!(peer.lost_since(), Some(at(2_000)));
}

#[test]
fn flows_of_a_peer_share_its_path() {
    let mut peer = open(THERE);
    assert_eq!(peer.allowance(at(1_000), PathSet::FIRST, true), 10_000);
    peer.note_sent(at(1_000), PathSet::FIRST, &sent(10));
    assert_eq!(peer.allowance(at(1_000), PathSet::FIRST, true), 0);
    peer.await_room(PathSet::FIRST, true);
    peer.data.handle_seen(at(1_001), &came(1));
    assert!(peer.data.poll_room(at(1_001)));
}

#[test]
fn quic_is_asked_for_life_until_probes_are_answered_and_after_something_was_said() {
    let now = at(1_000);
    let mut peer = open(THERE);
    assert!(peer.waits_for_path(now) && peer.is_to_be_pinged(now));
    let question = peer.data.poll_question(now).unwrap();
    let answer = answer(&peer.data, question);
    peer.data.handle_answer(now, address(THERE), &answer).unwrap();
    assert!(!peer.waits_for_path(now) && !peer.is_to_be_pinged(now));
    peer.life.solicit_acks(now);
    assert!(!peer.waits_for_path(now) && peer.is_to_be_pinged(now));
    peer.contact.lose(now);
    assert!(!peer.is_to_be_pinged(now), "there is no contact");
    let mut dialing = dialed(THERE);
    dialing.data.open(now, address(THERE), ProbeKey::new([7; 16]));
    dialing.life.solicit_acks(now);
    assert!(!dialing.waits_for_path(now) && !dialing.is_to_be_pinged(now), "nobody is there");
    assert!(!came_in().waits_for_path(now), "nothing is asked about");
}

#[test]
fn a_peer_is_due_for_what_comes_first() {
    let now = at(1_000);
    let never = |_| None;
    let mut dialing = dialed(THERE);
    assert_eq!(dialing.due(now, never), Some(now), "an attempt");
    dialing.link.begin_attempt(now);
    assert_eq!(dialing.due(now, never), Some(at(1_500)), "the next");
    let mut peer = came_in();
    assert_eq!(peer.due(now, never), Some(at(11_000)), "a sign of life");
    peer.life.solicit_acks(now);
    assert_eq!(peer.due(now, never), Some(at(1_150)), "an acknowledgement");
    peer.note_sent(now, PathSet::FIRST, &sent(1));
    peer.contact.lose(at(1_000));
    let silent = peer.data.due(now).unwrap();
    let give_up = |since: Time| Some(since + ms(20));
    assert_eq!(peer.due(now, give_up), Some(at(1_020)), "a session is given up");
    assert_eq!(peer.due(now, never), Some(silent), "what it has sent");
    peer.contact.restore(at(1_000));
    peer.life = super::Liveness::new(at(1_000));
    peer.data.handle_seen(now, &came(1));
    assert_eq!(peer.due(now, never), Some(at(6_000)), "it calms down");
    let mut lost = open(THERE);
    lost.contact.lose(now);
    lost.link.note_retry(now);
    lost.data = DataPath::new(now, &narrow());
    assert_eq!(lost.due(now, never), Some(at(2_000)), "who was dialed is tried again");
}
