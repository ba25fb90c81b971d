//! How peers are left: what is closed with them, lists that wait, contact that is lost.

use super::*;
use dacapo_wire::hub::Listing;

#[test]
fn who_is_left_says_goodbye_and_nothing_of_it_stays_at_either_end() {
    let mut world = World::open();
    let id = world.dialer.id();
    world.dialer.with(world.now, |peers, cx, out| peers.disconnect(cx, id, out));
    assert_eq!(world.dialer.said(), [format!("close {LISTENER}").as_str(), "lost Closed 0"]);
    world.exchange();
    assert_eq!(world.listener.said(), ["lost Closed 0"]);
    for end in [&world.dialer, &world.listener] {
        let peers = &end.peers;
        assert_eq!((peers.all.len(), peers.probed.len(), peers.conns.len()), (0, 0, 0));
        assert!(peers.streams.is_empty());
    }
}

#[test]
fn with_one_peer_nothing_of_another_goes() {
    let mut world = World::open();
    let id = world.dialer.id();
    let other = world.dialer.with(world.now, |peers, cx, out| {
        peers.connect(cx, address("192.0.2.9:1"), DialParams::default(), out)
    });
    let (streams, other) = (world.dialer.peers.streams.len(), other.unwrap());
    let error = Error::new(Code::Closed, "enough");
    world.dialer.with(world.now, |peers, cx, out| peers.lose(cx, other, &error, out));
    assert_eq!(world.dialer.said(), ["close 192.0.2.9:1", "lost Closed 0"]);
    assert_eq!((world.dialer.id(), world.dialer.peers.streams.len()), (id, streams));
    assert_eq!(world.dialer.peers.conns.len(), 1);
}

#[test]
fn a_connection_that_is_closed_takes_its_peer_for_the_reason_that_was_said() {
    let mut world = World::open();
    let conn = world.dialer.peer().conn().unwrap();
    world.dialer.control.close(world.now, conn, Code::System, "no disk");
    world.exchange();
    assert_eq!(world.listener.said(), ["lost System 0"]);
}

#[test]
fn a_hub_that_has_ended_takes_its_peer() {
    let mut world = World::open();
    let (conn, hub) = world.dialer.peer().link.hub().unwrap();
    world.dialer.control.finish(conn, hub);
    world.exchange();
    assert_eq!(world.listener.said(), ["lost Closed 0"]);
}

#[test]
fn a_list_is_asked_for_and_told_once() {
    let mut world = World::open();
    let (there, here) = (world.dialer.id(), world.listener.id());
    world.dialer.with(world.now, |peers, cx, out| peers.list(cx, there, out)).unwrap();
    world.exchange();
    let Some(Effect::List(asks, request)) = world.listener.out.pop() else { panic!("it asks") };
    assert_eq!(asks, here);
    let answer = |request| Message::Listing(Listing { request, sessions: Vec::new() });
    for request in [request + 1, request, request] {
        let message = answer(request);
        world.listener.with(world.now, |it, cx, out| it.send_hub(cx, here, &message, out));
        world.exchange();
    }
    assert_eq!(world.dialer.said(), ["listing Ok(0)"], "only what was asked for, and once");
}

#[test]
fn a_list_that_does_not_come_in_ten_seconds_is_told_too() {
    let mut world = World::open();
    let here = world.listener.id();
    world.lossy = Lossy::All;
    world.listener.with(world.now, |peers, cx, out| peers.list(cx, here, out)).unwrap();
    world.pass(ms(9_980));
    assert!(world.listener.said().is_empty());
    world.pass(ms(20));
    assert_eq!(world.listener.said(), ["listing Err(NoAnswer)"]);
    world.listener.with(world.now, |peers, cx, out| peers.list(cx, here, out)).unwrap();
    let error = Error::new(Code::Closed, "enough");
    world.listener.with(world.now, |peers, cx, out| peers.lose(cx, here, &error, out));
    assert_eq!(world.listener.said(), ["lost Closed 1"], "one was waited for");
    let gone = world.listener.with(world.now, |peers, cx, out| peers.list(cx, here, out));
    assert_eq!(gone.map_err(|error| error.code), Err(Code::NoSuchThing));
}

#[test]
fn a_peer_that_never_opens_the_data_path_is_lost_after_thirty_seconds_of_silence() {
    let mut world = World::open();
    world.lossy = Lossy::Probes;
    world.pass(ms(40_000));
    assert!(world.listener.said().is_empty(), "it answers when it is asked for life");
    assert!(world.dialer.said().is_empty());
    world.lossy = Lossy::All;
    world.pass(ms(19_000));
    assert!(world.listener.said().is_empty());
    world.pass(ms(12_000));
    assert_eq!(world.listener.said(), ["lost ContactLost 0"]);
}

#[test]
fn contact_is_lost_after_three_seconds_without_an_answer_and_comes_back_with_one() {
    let mut world = World::probed();
    world.lossy = Lossy::All;
    world.pass(ms(6_000));
    for end in [&mut world.dialer, &mut world.listener] {
        assert!(end.peers.is_suspended(end.id()) && end.peer().open_conn().is_err());
        let said = end.said();
        assert_eq!(said.iter().filter(|it| *it == "contact lost ContactLost").count(), 1);
        assert!(said.iter().any(|it| it == "waits 500ms"), "{said:?}");
    }
    assert!(world.dialer.peers.conns.len() > 1, "the dialer tries further connections");
    assert_eq!(world.listener.peers.conns.len(), 1);
    assert!(world.connect().is_ok(), "the application asks for it");
    assert!(world.dialer.said().is_empty());
    world.lossy = Lossy::Nothing;
    world.pass(ms(2_000));
    assert!(!world.dialer.peer().is_suspended() && !world.listener.peer().is_suspended());
    let said = world.dialer.said();
    assert!(said.iter().any(|it| it.starts_with("contact back ")), "{said:?}");
    assert!(said.contains(&"open".to_owned()), "who has asked is told: {said:?}");
    assert_eq!(world.dialer.peers.conns.len(), 1, "what was tried is not needed");
    world.pass(ms(2_000));
    assert!(!world.dialer.said().contains(&"calm".to_owned()));
    world.pass(ms(3_000));
    assert!(world.dialer.said().contains(&"calm".to_owned()));
    world.pass(ms(3_000));
    assert!(!world.dialer.said().contains(&"calm".to_owned()), "once");
}

#[test]
fn a_further_connection_shows_whether_the_peer_was_started_anew() {
    for (instance, is_another) in [([2; 16], false), ([99; 16], true)] {
        let mut world = World::probed();
        world.lossy = Lossy::All;
        world.pass(ms(4_000));
        let (conn, id) = (world.dialer.peer().conn(), world.dialer.id());
        world.dialer.said();
        world.listener.identity.instance = instance;
        world.lossy = Lossy::Probes;
        world.pass(ms(4_000));
        let said = world.dialer.said();
        let is_lost = said.contains(&"lost PeerRestarted 0".to_owned());
        assert_eq!((is_lost, world.dialer.peers.get(id).is_none()), (is_another, is_another));
        if !is_another {
            assert_eq!(world.dialer.peer().conn(), conn, "the one before is still in use");
        }
    }
}
