//! How peers are met: dialing, the greeting, what comes on which stream.

use super::*;
use crate::config::PEERS_MAX;
use crate::control::OUT_MAX;
use dacapo_wire::hub::{Hello, List, Welcome};
use dacapo_wire::session::Join;

fn hello(versions: (u16, u16)) -> Message {
    let (version_min, version_max) = versions;
    let [instance, boot] = [[9; 16], [7; 16]];
    Message::Hello(Hello { version_min, version_max, instance, boot, time_namespace: 3 })
}

fn welcome(version: u16) -> Message {
    let [instance, boot, path_token] = [[9; 16], [7; 16], [5; 16]];
    Message::Welcome(Welcome { version, instance, boot, time_namespace: 3, path_token })
}

fn join() -> Message {
    Message::Join(Join { name: "film".into(), ..Join::default() })
}

/// A connection of somebody who says by hand what he says.
fn by_hand() -> (World, ConnId) {
    let mut world = World::new();
    world.dialer.kept = Some(Vec::new());
    let conn = world.dialer.control.connect(world.now, world.listener.at).unwrap();
    world.exchange();
    assert!(!world.listener.peer().is_dialed());
    (world, conn)
}

impl World {
    fn say(&mut self, conn: ConnId, stream: StreamId, message: &Message) {
        self.dialer.control.send(conn, stream, message).unwrap();
        self.exchange();
    }
}

#[test]
fn a_greeting_opens_a_peer_at_both_ends_and_both_know_of_each_other() {
    let world = World::open();
    let (there, here) = (world.dialer.peer(), world.listener.peer());
    assert_eq!((there.remote(), here.remote()), (address(LISTENER), address(DIALER)));
    assert_eq!((there.local(), here.local()), (None, Some(HERE)));
    assert!(there.is_dialed() && !here.is_dialed());
    assert!(there.open_conn().is_ok() && here.open_conn().is_ok());
    assert_eq!((there.link.instance(), here.link.instance()), ([2; 16], [1; 16]));
    assert_eq!(there.data().key(), here.data().key(), "probes are tagged alike");
    assert_ne!(there.data().key().token(), [0; 16]);
    assert_eq!((there.data().remote(), here.data().remote()), (Some(address(LISTENER)), None));
    assert!(there.data().is_one_clock() && here.data().is_one_clock());
}

#[test]
fn two_ends_read_one_clock_only_on_one_boot_that_is_known_and_in_one_namespace() {
    for (boot, time_namespace) in [([8; 16], 3), ([7; 16], 4), ([8; 16], 4)] {
        let mut world = World::new();
        world.listener.identity = Identity { boot, time_namespace, ..world.listener.identity };
        world.greet();
        let is_one = [&world.dialer, &world.listener].map(|end| end.peer().data().is_one_clock());
        assert_eq!(is_one, [false, false], "{boot:?} {time_namespace}");
    }
    let mut world = World::new();
    world.dialer.identity.boot = [0; 16];
    world.listener.identity.boot = [0; 16];
    world.greet();
    assert!(!world.dialer.peer().data().is_one_clock(), "no boot is known");
}

#[test]
fn who_is_dialed_already_is_not_dialed_again() {
    let mut world = World::new();
    let id = world.connect().unwrap();
    assert_eq!(world.connect(), Ok(id));
    assert!(world.dialer.said().is_empty(), "it is not open");
    let elsewhere = world.dialer.with(world.now, |peers, cx, out| {
        peers.connect(cx, address("192.0.2.9:1"), DialParams::default(), out)
    });
    assert_ne!(elsewhere, Ok(id));
    world.exchange();
    assert_eq!(world.dialer.said(), ["open"]);
    assert_eq!(world.connect(), Ok(id));
    assert_eq!(world.dialer.said(), ["open"], "it is told at once");
    let came_in = world.listener.id();
    let dialed = world.listener.with(world.now, |peers, cx, out| {
        peers.connect(cx, address(DIALER), DialParams::default(), out)
    });
    assert_ne!(dialed, Ok(came_in), "who came in from there may be somebody else");
}

#[test]
fn of_two_who_ask_for_a_peer_that_does_not_answer_the_longer_patience_counts() {
    let mut world = World::new();
    world.lossy = Lossy::All;
    world.connect().unwrap();
    let remote = world.listener.at;
    let longer = DialParams { wait: Some(Duration::from_secs(12)) };
    world.dialer.with(world.now, |peers, cx, out| peers.connect(cx, remote, longer, out)).unwrap();
    world.pass(ms(11_980));
    assert!(world.dialer.said().is_empty());
    world.pass(ms(20));
    assert_eq!(world.dialer.said(), [format!("close {LISTENER}").as_str(), "lost Unreachable 0"]);
    assert_eq!(world.dialer.peers.all.len(), 0);
}

#[test]
fn a_peer_that_does_not_answer_is_tried_anew_every_half_second() {
    let mut world = World::new();
    world.lossy = Lossy::All;
    world.connect().unwrap();
    assert_eq!(world.dialer.peers.conns.len(), 1);
    world.pass(ms(480));
    assert_eq!(world.dialer.peers.conns.len(), 1);
    world.pass(ms(20));
    assert_eq!(world.dialer.peers.conns.len(), 2);
    world.lossy = Lossy::Nothing;
    world.pass(ms(2_000));
    let said = world.dialer.said();
    assert_eq!(said.iter().filter(|it| *it == "open").count(), 1, "the first is used: {said:?}");
    assert_eq!(world.dialer.peers.conns.len(), 1, "the others are closed");
    let [there, here] = [&world.dialer, &world.listener].map(|end| end.peer().data().key());
    assert_eq!(there, here);
}

#[test]
fn where_nothing_listens_who_is_dialed_there_is_given_up_and_nobody_else() {
    let mut world = World::new();
    world.listener.at = address("127.0.0.1:9");
    let (here, now) = (world.connect().unwrap(), world.now);
    world.listener.at = address("127.0.0.1:10");
    let other = world.connect().unwrap();
    let refuse = |world: &mut World, at: &str| {
        world.dialer.with(now, |peers, cx, out| peers.handle_refused(cx, address(at), out));
        world.dialer.said()
    };
    assert!(refuse(&mut world, "127.0.0.1:11").is_empty());
    assert_eq!(refuse(&mut world, "127.0.0.1:9"), ["close 127.0.0.1:9", "lost NotListening 0"]);
    assert!(world.dialer.peers.get(here).is_none() && world.dialer.peers.get(other).is_some());
    let conns: Vec<ConnId> = world.dialer.peers.conns.keys().copied().collect();
    conns.into_iter().for_each(|conn| world.dialer.peers.handle_heard(conn));
    assert!(refuse(&mut world, "127.0.0.1:10").is_empty(), "something has come from there");
}

#[test]
fn with_as_many_peers_as_may_be_nobody_is_dialed_and_a_newcomer_takes_the_place_of_an_idle_one() {
    let mut world = World::open();
    let idle = world.listener.id();
    let (now, controller) = (world.now, world.listener.shared.controllers.here.clone());
    let dialed = || Peer::dialed(address(DIALER), now, DialParams::default(), &controller);
    for number in 1..PEERS_MAX as u64 {
        world.listener.peers.all.insert(PeerId(10_000 + number), dialed());
    }
    let full = world.listener.with(now, |peers, cx, out| {
        peers.connect(cx, address("192.0.2.9:1"), DialParams::default(), out)
    });
    assert_eq!(full.map_err(|error| error.code), Err(Code::TooMany));
    let come = |world: &mut World| {
        let conn = world.dialer.control.connect(now, address(LISTENER)).unwrap();
        world.exchange();
        conn
    };
    world.listener.peers.note_session(idle);
    come(&mut world);
    assert!(world.listener.said().is_empty(), "nobody goes for it");
    assert!(world.listener.peers.get(idle).is_some_and(Peer::has_sessions));
    world.listener.peers.all.adjust(idle, |peer| peer.sessions = 0);
    come(&mut world);
    assert_eq!(world.listener.said(), ["lost TooMany 0"]);
    assert!(world.listener.peers.get(idle).is_none());
    assert_eq!(world.listener.peers.all.len(), PEERS_MAX);
}

#[test]
fn the_newest_version_that_both_speak_is_chosen() {
    let (mut world, conn) = by_hand();
    world.listener.identity.versions = (1, 3);
    let hub = world.dialer.control.open_stream(conn).unwrap();
    world.say(conn, hub, &hello((2, 5)));
    assert_eq!(world.listener.said(), ["open"]);
    let (_, _, message) = world.dialer.last_message();
    let Message::Welcome(welcome) = message else { panic!("{message:?}") };
    assert_eq!((welcome.version, welcome.instance), (3, [2; 16]));
}

#[test]
fn without_a_common_version_the_dialer_is_refused_and_says_why() {
    for (ours, theirs) in [((1, 1), (2, 3)), ((2, 3), (1, 1))] {
        let mut world = World::new();
        (world.dialer.identity.versions, world.listener.identity.versions) = (ours, theirs);
        world.connect().unwrap();
        world.exchange();
        let said = world.dialer.said();
        assert_eq!(said.last().map(String::as_str), Some("lost NoCommonVersion 0"), "{said:?}");
    }
}

#[test]
fn a_version_that_was_not_offered_ends_it() {
    let mut world = World::new();
    world.listener.kept = Some(Vec::new());
    world.connect().unwrap();
    world.exchange();
    let (conn, hub, message) = world.listener.last_message();
    assert!(matches!(message, Message::Hello(it) if it.instance == [1; 16] && it.version_max == 1));
    world.listener.control.send(conn, hub, &welcome(2)).unwrap();
    world.exchange();
    let said = world.dialer.said();
    assert_eq!(said.last().map(String::as_str), Some("lost NoCommonVersion 0"), "{said:?}");
}

#[test]
fn the_first_stream_is_the_hub_and_every_further_one_a_session() {
    let (mut world, conn) = by_hand();
    let [hub, session] = [(); 2].map(|()| world.dialer.control.open_stream(conn).unwrap());
    world.say(conn, hub, &hello((1, 1)));
    assert_eq!(world.listener.said(), ["open"]);
    world.say(conn, session, &join());
    world.say(conn, session, &join());
    assert_eq!(world.listener.routed(), ["JOIN begins", "JOIN for 50"]);
    world.say(conn, hub, &Message::List(List { request: 4 }));
    assert_eq!(world.listener.said(), ["list"]);
    let id = world.listener.id();
    let conn_here = world.listener.peer().conn().unwrap();
    let stream =
        world.listener.peers.streams.keys().map(|(_, stream)| *stream).next_back().unwrap();
    world.listener.peers.note_session(id);
    world.listener.with(world.now, |peers, cx, _| peers.end_session(cx, id, stream));
    assert!(!world.listener.peer().has_sessions());
    world.say(conn, session, &join());
    assert!(world.listener.routed().is_empty(), "it is over");
    world.dialer.control.finish(conn, session);
    world.exchange();
    assert!(world.listener.routed().is_empty() && world.listener.said().is_empty());
    assert!(!world.listener.peers.streams.contains_key(&(conn_here, stream)));
}

#[test]
fn a_session_before_the_greeting_is_over_ends_the_connection() {
    let (mut world, conn) = by_hand();
    let [hub, session] = [(); 2].map(|()| world.dialer.control.open_stream(conn).unwrap());
    world.say(conn, hub, &hello((7, 7)));
    assert!(world.listener.said().is_empty(), "it was refused, and may read that");
    world.say(conn, session, &join());
    assert_eq!(world.listener.said(), ["lost Violation 0"]);
    assert!(world.listener.routed().is_empty());
}

#[test]
fn what_may_not_come_on_the_hub_ends_the_connection() {
    let (mut world, conn) = by_hand();
    let hub = world.dialer.control.open_stream(conn).unwrap();
    world.say(conn, hub, &Message::List(List { request: 4 }));
    assert_eq!(world.listener.said(), ["lost Violation 0"]);
    let said = world.dialer.kept.take().unwrap();
    let violation = |event: &ControlEvent| {
        matches!(event, ControlEvent::Lost { said: Some(Code::Violation), .. })
    };
    assert!(said.iter().any(violation), "{said:?}");
}

#[test]
fn a_peer_that_does_not_read_its_hub_is_lost() {
    let mut world = World::open();
    let id = world.listener.id();
    let list = Message::List(List { request: 1 });
    world.lossy = Lossy::All;
    for _ in 0..OUT_MAX {
        world.listener.with(world.now, |peers, cx, out| peers.send_hub(cx, id, &list, out));
        if world.listener.peers.all.len() == 0 {
            break;
        }
    }
    assert_eq!(world.listener.said(), ["lost NoAnswer 0"]);
}

#[test]
fn streams_of_sessions_that_this_end_opens_carry_them() {
    let mut world = World::open();
    let (id, conn) = (world.dialer.id(), world.dialer.peer().conn().unwrap());
    let stream = world
        .dialer
        .with(world.now, |peers, cx, _| peers.open_stream(cx, conn, SessionId(8)).unwrap());
    assert_eq!(world.dialer.peers.speak(world.now, id), Some(conn));
    assert!(world.dialer.peer().life.solicits());
    world.say(conn, stream, &join());
    assert_eq!(world.listener.routed(), ["JOIN begins"]);
    let here = world.listener.peer().conn().unwrap();
    world.listener.control.send(here, stream, &join()).unwrap();
    world.listener.control.finish(here, stream);
    world.exchange();
    assert_eq!(world.dialer.routed(), ["JOIN for 8", "8 ended"]);
}
