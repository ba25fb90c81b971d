//! The sessions of a core: whose they are, who is awake, who waits for a data path.

use super::*;
use crate::fanout::{FanOutMember, Fed};
use crate::ids::FanOutId;
use crate::peer::Peers;
use crate::schedule::{Asked, Rank, Turn};
use crate::session::{FlowEnd, Flows, Role, Sessions};
use dacapo_wire::attribute::{AttributeForm, key};

const ONE: PeerId = PeerId(2);
const OTHER: PeerId = PeerId(3);

fn stream() -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, 1)
}

fn joining(id: u64, peer: PeerId) -> Session {
    Session::joining(at(1_000), SessionId(id), peer, stream(), "film")
}

/// Two with one peer and one with another.
fn three() -> Sessions {
    let mut all = Sessions::default();
    for (id, peer) in [(5, ONE), (6, ONE), (7, OTHER)] {
        all.insert(joining(id, peer));
    }
    all
}

/// The same at rest: each waits for its OFFER until 11 s.
fn resting() -> Sessions {
    let mut all = three();
    let due = all.next_deadline(at(1_000), false, &Peers::default());
    assert_eq!(due, Some(at(11_000)));
    all.take_changed();
    all.set_may_give(false);
    all
}

fn is_awake(all: &mut Sessions) -> Vec<u64> {
    all.take_awake(at(1_000)).into_iter().map(|id| id.0).collect()
}

#[test]
fn sessions_are_found_by_their_number_and_by_their_peer() {
    let mut all = three();
    assert_eq!(all.len(), 3);
    assert_eq!(all.get(SessionId(6)).map(Session::id), Some(SessionId(6)));
    assert!(all.get(SessionId(9)).is_none());
    assert_eq!(all.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [5, 6, 7]);
    let with = |all: &Sessions, peer| all.with_peer(peer).map(|id| id.0).collect::<Vec<_>>();
    assert_eq!((with(&all, ONE), with(&all, OTHER)), (vec![5, 6], vec![7]));
    assert_eq!(all.remove(SessionId(5)).map(|it| it.id()), Some(SessionId(5)));
    assert_eq!((with(&all, ONE), all.len()), (vec![6], 2));
    assert!(all.remove(SessionId(5)).is_none());
}

#[test]
fn who_is_new_is_awake_and_may_have_something_to_send() {
    let mut all = Sessions::default();
    assert!(!all.may_give() && !all.is_changed());
    all.insert(joining(5, ONE));
    assert!(all.may_give() && all.is_changed());
    assert!(all.take_changed() && !all.take_changed());
    assert_eq!(is_awake(&mut all), [5]);
}

#[test]
fn who_is_changed_is_awake_and_who_is_only_adjusted_is_not() {
    let mut all = resting();
    assert!(is_awake(&mut all).is_empty());
    assert_eq!(all.adjust(SessionId(5), |it| it.id().0), Some(5));
    assert_eq!(all.ask(SessionId(6), |it, _| it.id().0), Some(6));
    assert!(
        all.adjust(SessionId(9), |_| ()).is_none() && all.ask(SessionId(9), |_, _| ()).is_none()
    );
    assert!(is_awake(&mut all).is_empty() && !all.may_give());
    assert_eq!(all.with(SessionId(6), |it| it.id().0), Some(6));
    assert!(all.may_give() && all.is_changed());
    assert_eq!(is_awake(&mut all), [6]);
    assert!(all.with(SessionId(9), |_| ()).is_none());
}

#[test]
fn data_wakes_a_session_and_says_itself_whether_there_is_an_answer() {
    let mut all = resting();
    all.with_data(SessionId(5), |_| false);
    assert_eq!((is_awake(&mut all), all.may_give()), (vec![5], false));
    all.with_data(SessionId(6), |_| true);
    assert!(all.may_give());
    all.with_data(SessionId(5), |_| false);
    assert!(all.may_give(), "what one has does not go with another's");
    all.set_may_give(false);
    all.with_data(SessionId(9), |_| true);
    assert!(!all.may_give(), "there is no such");
}

#[test]
fn it_is_news_when_one_has_other_flows_than_before() {
    let mut all = three();
    all.take_changed();
    all.with(SessionId(5), |_| ());
    assert!(!all.is_changed(), "it was awake");
    let flows = |session: &mut Session| {
        session.flows = Flows::new(SessionId(5), ONE, Role::Creator, &offers());
    };
    all.with(SessionId(5), flows);
    assert!(all.take_changed());
    all.with(SessionId(5), flows);
    assert!(!all.take_changed(), "they are as many");
}

#[test]
fn those_whose_answer_waits_for_a_data_path_are_known_until_it_has_gone() {
    let mut all = three();
    let unanswered =
        |all: &Sessions, peer| all.unanswered(peer).into_iter().map(|id| id.0).collect::<Vec<_>>();
    let wait = |all: &mut Sessions, id| {
        all.with(SessionId(id), |it| (it.is_answered, it.ports) = (true, Some(Vec::new())));
    };
    wait(&mut all, 6);
    wait(&mut all, 7);
    all.with(SessionId(5), |_| ());
    assert_eq!((unanswered(&all, ONE), unanswered(&all, OTHER)), (vec![6], vec![7]));
    all.with(SessionId(6), |it| it.ports = None);
    assert_eq!((unanswered(&all, ONE), unanswered(&all, OTHER)), (vec![], vec![7]));
    all.remove(SessionId(7));
    assert!(unanswered(&all, OTHER).is_empty());
    all.with(SessionId(6), |it| (it.is_answered, it.ports) = (false, Some(Vec::new())));
    assert!(unanswered(&all, ONE).is_empty(), "the application has not answered yet");
}

#[test]
fn all_sessions_with_a_peer_are_woken_together_and_no_others() {
    let mut all = resting();
    all.wake_with(PeerId(9));
    assert!(is_awake(&mut all).is_empty() && !all.may_give(), "there are none");
    all.wake_with(ONE);
    assert_eq!((is_awake(&mut all), all.may_give()), (vec![5, 6], true));
    all.wake_with(PeerId(9));
    assert!(all.may_give());
}

#[test]
fn the_first_that_is_given_up_is_the_one_that_waits_the_shortest() {
    let mut all = three();
    all.with(SessionId(5), |it| it.set_give_up_after(ms(4_000)));
    all.with(SessionId(6), |it| it.set_give_up_after(ms(3_000)));
    all.with(SessionId(7), |it| it.set_give_up_after(ms(1_000)));
    assert_eq!(all.give_up_at(ONE, at(1_500)), Some(at(4_500)));
    assert_eq!(all.give_up_at(PeerId(9), at(1_500)), None);
}

#[test]
fn who_rests_is_woken_when_its_time_has_come() {
    let mut all = resting();
    all.wake_due(at(10_999));
    assert!(!all.may_give() && !all.is_changed());
    all.wake_due(at(11_000));
    assert!(all.may_give());
    assert_eq!(is_awake(&mut all), [5, 6, 7]);
    all.wake_due(at(11_000));
    assert!(all.may_give(), "that nobody is due takes nothing back");
    let mut all = resting();
    assert_eq!(all.take_awake(at(11_000)).len(), 3);
    let mut all = three();
    all.forget_due();
    assert_eq!(all.next_deadline(at(1_000), false, &Peers::default()), None);
    all.set_may_give(false);
    assert!(all.take_awake(at(99_000)).is_empty());
    all.wake_all();
    assert_eq!((is_awake(&mut all).len(), all.may_give()), (3, true));
}

#[test]
fn who_was_only_looked_at_was_not_touched() {
    let mut all = three();
    let id = SessionId(5);
    assert!(all.take_touched(id) && !all.take_touched(id));
    all.set_touched(id, true);
    assert!(all.take_touched(id));
    all.next_deadline(at(1_000), true, &Peers::default());
    assert_eq!(is_awake(&mut all), [6, 7], "those that something has happened to");
}

#[test]
fn the_flows_of_those_that_are_awake_have_their_turns() {
    let mut all = three();
    let priority = AttributeForm { key: key::PRIORITY, min: Some(5), max: None, weight: None };
    let mut offers = offers();
    offers[1].attributes = vec![priority];
    let member = FanOutMember::new(FanOutId(40), 1, Fed::default());
    all.with(SessionId(6), |it| {
        it.flows = Flows::new(SessionId(6), ONE, Role::Creator, &offers);
        it.flows.on(1, |flow| flow.end = FlowEnd::Member(member));
    });
    let (sends, comes) = (Rank::of(&offers[0]), Rank::of(&offers[1]).of_answers());
    let turn = |rank, index| Turn { rank, asked: Asked::Flow(SessionId(6), index) };
    assert_eq!((sends.priority, comes.priority), (0, 5));
    assert_eq!(all.turns().collect::<Vec<_>>(), [turn(sends, 0), turn(comes, 1)]);
    assert_eq!(all.sending(SessionId(6), 0), Asked::Flow(SessionId(6), 0));
    assert_eq!(all.sending(SessionId(6), 1), Asked::FanOut(FanOutId(40)));
    assert_eq!(all.sending(SessionId(9), 3), Asked::Flow(SessionId(9), 3));
    all.next_deadline(at(1_000), false, &Peers::default());
    assert_eq!(all.turns().count(), 0, "who rests has none");
}
