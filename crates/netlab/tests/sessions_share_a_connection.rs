//! Two cores share one control connection, whatever runs in it.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, code, ms, offer, pattern, plain};
use dacapo_core::{Code, Command, CoreEvent, DialParams, Done};

const LINK: &str = "delay=20ms,jitter=2ms";

fn connections(lab: &mut Lab) -> (usize, usize) {
    let (creator, participant) = (lab.creator, lab.participant);
    (lab.world.core(creator).connection_count(), lab.world.core(participant).connection_count())
}

#[test]
fn twenty_sessions_run_over_one_connection_and_closing_one_leaves_the_others() {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(1_000);
    lab.publish("test", plain());
    let peer = lab.dial();
    let mut joined = Vec::new();
    for _ in 0..20 {
        let session = lab.set_up(peer, "test");
        lab.activate(session.here);
        joined.push(session);
    }
    lab.run(ms(500));
    assert_eq!(connections(&mut lab), (1, 1));
    let closed = joined.remove(7);
    lab.close(lab.participant, closed.here);
    assert_eq!(code(&lab.end_of(lab.participant, closed.here, ms(1_000))), None);
    assert!(closed.numbers(0).len() > 500);
    for session in &joined {
        let (here, there) = lab.ledgers(session, 0, ms(5_000));
        assert_eq!((here.delivered, there.delivered), (1_000, 1_000));
        assert_eq!(session.numbers(0), (0..1_000).collect::<Vec<_>>());
        assert_eq!(lab.ended(lab.participant, session.here), None);
        lab.close(lab.creator, session.there);
    }
    lab.run(ms(1_000));
    assert_eq!(connections(&mut lab), (1, 1));
    lab.check_empty();
}

#[test]
fn who_joins_late_gets_all_of_it_while_another_plays() {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(2_000);
    let first = lab.start(plain());
    lab.run(ms(1_000));
    let played = first.numbers(0).len();
    assert!((900..1_100).contains(&played), "{played}");
    let peer = lab.dial();
    let second = lab.set_up(peer, "test");
    lab.activate(second.here);
    for session in [&first, &second] {
        lab.ledgers(session, 0, ms(5_000));
        assert_eq!(session.numbers(0), (0..2_000).collect::<Vec<_>>());
    }
}

#[test]
fn a_second_connect_to_the_same_address_returns_the_same_peer() {
    let mut lab = Lab::new(LINK);
    let (now, address) = (lab.now(), lab.world.address(lab.creator));
    let core = lab.world.core(lab.participant);
    let first = core
        .handle_command(
            now,
            Command::Connect { remote: address.into(), params: DialParams::default() },
        )
        .and_then(Done::peer)
        .unwrap();
    assert_eq!(
        core.handle_command(
            now,
            Command::Connect { remote: address.into(), params: DialParams::default() }
        )
        .and_then(Done::peer),
        Ok(first),
        "while it is dialing"
    );
    assert_eq!(lab.dial(), first);
    assert_eq!(lab.dial(), first, "while it is open");
    lab.run(ms(2_000));
    assert_eq!(connections(&mut lab), (1, 1));
    let opened = lab.count(lab.creator, |event| matches!(event, CoreEvent::PeerOpen { .. }));
    assert_eq!(opened, 1, "the listener has one peer");
}

#[test]
fn attempts_that_were_not_first_leave_nothing() {
    // So slow that further attempts begin before the first is through.
    let mut lab = Lab::new("delay=450ms");
    lab.publish("test", plain());
    let peer = lab.dial();
    assert!(connections(&mut lab).0 > 1, "several attempts were on their way");
    lab.run(ms(15_000));
    assert_eq!(connections(&mut lab), (1, 1));
    let session = lab.set_up(peer, "test");
    lab.activate(session.here);
    lab.ledgers(&session, 0, ms(10_000));
}

#[test]
fn a_core_that_serves_and_joins_the_same_name_counts_its_own_participants_only() {
    let mut lab = Lab::new(LINK);
    lab.publish("test", plain());
    let peer = lab.dial();
    lab.set_up(peer, "test");
    // The participant serves a session of this name itself, to one at most.
    let spec = dacapo_core::SessionSpec {
        name: "test".into(),
        title: String::new(),
        flows: vec![offer("flow", &["checksum"])],
        participants_max: 1,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    let pattern = lab.pattern;
    let open = common::Opens(move |_: &_| {
        let source = dacapo_netlab::traffic::PatternSource::new(pattern);
        Ok(dacapo_core::Port::Source(Box::new(source)))
    });
    lab.world.core(lab.participant).publish(spec, Box::new(open)).unwrap();
    let back = lab.find(lab.creator, |event| match event {
        CoreEvent::PeerOpen { peer } => Some(*peer),
        _ => None,
    });
    let back = back.expect("the listener has the peer").1;
    let now = lab.now();
    lab.world.core(lab.creator).handle_command(now, Command::List(back)).unwrap();
    let (_, listed) = lab.expect(lab.creator, ms(500), |event| match event {
        CoreEvent::Listing { sessions: Ok(sessions), .. } => Some(sessions.clone()),
        _ => None,
    });
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].participants, 0, "it has joined another, nobody has joined its own");
    let now = lab.now();
    let session = lab
        .world
        .core(lab.creator)
        .handle_command(
            now,
            Command::Join { peer: back, name: "test".into(), params: Default::default() },
        )
        .and_then(Done::session)
        .unwrap();
    lab.expect(lab.creator, ms(500), |event| match event {
        CoreEvent::Offered { session: id, .. } if *id == session => Some(()),
        _ => None,
    });
}

#[test]
fn a_disconnect_ends_every_session_at_both_ends() {
    let mut lab = Lab::new(LINK);
    lab.publish("test", plain());
    let peer = lab.dial();
    let joined: Vec<_> = (0..3).map(|_| lab.set_up(peer, "test")).collect();
    lab.activate(joined[0].here);
    lab.run(ms(300));
    let now = lab.now();
    lab.world
        .core(lab.participant)
        .handle_command(now, Command::Disconnect(peer))
        .map(drop)
        .unwrap();
    lab.run(ms(500));
    for session in &joined {
        for (node, id) in [(lab.participant, session.here), (lab.creator, session.there)] {
            let ended = lab.ended(node, id).expect("it ended");
            assert_eq!(code(&ended), Some(Code::Closed), "{node:?}");
        }
    }
    lab.check_empty();
    lab.run(ms(3_000));
    assert_eq!(connections(&mut lab), (0, 0));
}
