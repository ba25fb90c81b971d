//! Programs with a loop of their own: one descriptor for all that waits, commands as data, events
//! and units without waiting.

use crate::world::{TWO_WAY, active_pair, endpoint, pair, serve, unit, uri, watched};
use dacapo::{
    Change, Code, Command, Deadline, Endpoint, Event, FlowId, MediaCommand, Outcome, SessionId,
    Ticket,
};
use dacapo_base::Random;
use dacapo_sys::poll::{Interest, Poller};
use std::collections::BTreeSet;
use std::time::Duration;

/// Whether the descriptor is readable within so long.
fn is_readable(endpoint: &Endpoint, most: Duration) -> bool {
    let mut poller = Poller::new().unwrap();
    poller.add(endpoint.as_fd(), 0, Interest::Read).unwrap();
    let mut events = Vec::new();
    poller.wait(Some(most), &mut events).unwrap();
    !events.is_empty()
}

const SOON: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(60);

/// Turns until a command is done, and takes every event meanwhile.
fn done(endpoint: &mut Endpoint, ticket: Ticket) -> Result<Outcome, dacapo::Error> {
    loop {
        assert!(endpoint.turn(Deadline::after(LONG)).unwrap().is_ready, "nothing comes");
        while let Some((_, event)) = endpoint.poll_event() {
            match event {
                Event::Done { ticket: its, outcome } if its == ticket => return outcome,
                _ => {}
            }
        }
    }
}

#[test]
fn the_descriptor_is_readable_while_an_event_or_a_unit_waits_and_no_longer() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let mut endpoint = participant.endpoint().clone();
        let flow = participant.receiver("there").unwrap().id();
        assert_eq!(endpoint.poll_event(), None);
        assert!(!is_readable(&endpoint, SOON), "nothing waits");
        assert!(!endpoint.turn(Deadline::after(SOON)).unwrap().is_ready);
        let mut there = creator.sender("there").unwrap();
        for number in 0..100 {
            there.send(&unit(number)).unwrap();
            assert!(is_readable(&endpoint, LONG), "nobody calls: its own thread works");
            assert!(is_readable(&endpoint, SOON), "until it was taken");
            assert!(endpoint.turn(Deadline::PAST).unwrap().is_ready);
            assert_eq!(&*endpoint.poll_unit(flow).unwrap(), unit(number));
            assert!(endpoint.poll_unit(flow).is_none());
            assert!(!is_readable(&endpoint, Duration::ZERO), "it was taken");
        }
        assert!(endpoint.next_deadline() > Deadline::PAST);
        there.finish().unwrap();
        let ended = loop {
            assert!(is_readable(&endpoint, LONG));
            match endpoint.poll_event() {
                Some((session, Event::FlowEnded { account })) => break (session, account),
                Some(_) => {}
                None => drop(endpoint.turn(Deadline::PAST)),
            }
        };
        assert_eq!((ended.0, ended.1.ledger.delivered), (Some(participant.id()), 100));
    });
}

#[test]
fn room_that_was_asked_for_is_shown_too() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let mut endpoint = creator.endpoint().clone();
        let mut there = creator.sender("there").unwrap();
        while endpoint.poll_event().is_some() {}
        assert!(!is_readable(&endpoint, SOON));
        participant.deactivate().unwrap();
        while there.try_send(&unit(7)).unwrap() {}
        while endpoint.poll_event().is_some() {}
        assert!(!is_readable(&endpoint, SOON), "it is full");
        participant.activate().unwrap();
        assert!(is_readable(&endpoint, LONG));
        while !there.try_send(&unit(7)).unwrap() {
            endpoint.turn(Deadline::after(LONG)).unwrap();
        }
    });
}

#[test]
fn a_session_is_run_by_commands_alone() {
    watched(|| {
        let (creator, participant) = pair(TWO_WAY);
        let mut here = participant.endpoint().clone();
        let mut there = creator.endpoint().clone();
        let (id, back) = (participant.id(), participant.sender("back").unwrap().id());
        let runs = there.command(Command::Activate(creator.id())).unwrap();
        let ticket = here.command(Command::Activate(id)).unwrap();
        assert_eq!(done(&mut here, ticket), Ok(Outcome::Done));
        assert_eq!(done(&mut there, runs), Ok(Outcome::Done));
        let media = here.command(Command::Media(id, MediaCommand::Stop)).unwrap();
        assert!(matches!(done(&mut here, media), Ok(Outcome::Answer(_))));
        let graph = Change::Graph("segment ! checksum".to_owned());
        let changed = here.command(Command::Change(back, graph)).unwrap();
        assert_eq!(done(&mut here, changed), Ok(Outcome::Changed(1)));
        participant.sender("back").unwrap().send(b"one").unwrap();
        let finished = here.command(Command::Finish(back)).unwrap();
        assert_eq!(done(&mut here, finished), Ok(Outcome::Done));
        let closed = here.command(Command::Close(id)).unwrap();
        match done(&mut here, closed) {
            Ok(Outcome::Closed(account)) => {
                assert_eq!(account.flow("back").unwrap().ledger.delivered, 1, "{account}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!((here.open_tickets(), there.open_tickets()), (0, 0));
        let error = here.command(Command::Activate(id)).unwrap_err();
        assert!(error.text.contains("is closed; connect or accept anew"), "{error}");
        drop(participant);
        let error = here.command(Command::Activate(id)).unwrap_err();
        assert_eq!(error.text, "this endpoint has no such session");
    });
}

#[test]
fn a_host_is_connected_to_listed_and_left_by_commands_alone() {
    watched(|| {
        let host = serve(TWO_WAY);
        let mut here = endpoint();
        let to = host.endpoint().listening()[0];
        let connect = Command::Connect { to, wait: None };
        let connected = |here: &mut Endpoint| {
            let ticket = here.command(connect.clone()).unwrap();
            match done(here, ticket) {
                Ok(Outcome::Connected(peer)) => peer,
                other => panic!("{other:?}"),
            }
        };
        let peer = connected(&mut here);
        assert_eq!(connected(&mut here), peer, "two cores share one connection");
        assert_eq!(here.peer_address(peer), Some(to));
        assert_eq!(here.peer_fingerprint(peer), Some(host.endpoint().fingerprint()));
        let list = here.command(Command::List(peer)).unwrap();
        match done(&mut here, list) {
            Ok(Outcome::Listed(sessions)) => assert_eq!(sessions[0].name, host.name()),
            other => panic!("{other:?}"),
        }
        let left = here.command(Command::Disconnect(peer)).unwrap();
        assert_eq!(done(&mut here, left), Ok(Outcome::Done));
        assert_eq!(here.command(Command::List(peer)).unwrap_err().code, Code::NoSuchThing);
        let peer = connected(&mut here);
        drop(host);
        loop {
            assert!(here.turn(Deadline::after(LONG)).unwrap().is_ready, "nothing comes");
            match here.poll_event() {
                Some((None, Event::PeerLost { peer: lost, .. })) if lost == peer => break,
                _ => {}
            }
        }
        let connect = here.command(connect.clone()).unwrap();
        assert_eq!(done(&mut here, connect).unwrap_err().code, Code::NotListening);
        assert_eq!(here.open_tickets(), 0);
    });
}

#[test]
fn who_does_not_read_has_a_thousand_answers_and_no_more() {
    watched(|| {
        let (_creator, participant) = active_pair(TWO_WAY);
        let mut endpoint = participant.endpoint().clone();
        let give_up = Command::GiveUp(participant.id(), LONG);
        let mut open = BTreeSet::new();
        let error = loop {
            match endpoint.command(give_up.clone()) {
                Ok(ticket) => assert!(open.insert(ticket), "tickets differ"),
                Err(error) => break error,
            }
        };
        assert_eq!((open.len(), error.code), (dacapo::session::TICKETS_MAX, Code::TooMany));
        while let Some((_, event)) = endpoint.poll_event() {
            if let Event::Done { ticket, outcome } = event {
                assert!(open.remove(&ticket) && outcome.is_ok());
            }
        }
        assert!(open.is_empty() && endpoint.open_tickets() == 0);
        endpoint.command(give_up).unwrap();
    });
}

/// One of the commands that there are, to one of these sessions or to none that exists.
fn random_command(random: &mut Random, ids: &[(SessionId, usize)]) -> Command {
    let (session, flows) = ids[random.below(ids.len() as u64) as usize];
    let flow = FlowId { session, flow: random.below(flows as u64 + 2) as usize };
    let graphs =
        ["segment", "segment ! checksum", "checksum ! segment", "segmant", "", "segment ! "];
    let media = [MediaCommand::Stop, MediaCommand::Play, MediaCommand::Ff, MediaCommand::Rwd];
    match random.below(40) {
        0 => Command::Close(session),
        1 | 2 => Command::Finish(flow),
        3..10 => Command::Activate(session),
        10..16 => Command::Deactivate(session),
        16..24 => {
            let graph = graphs[random.below(graphs.len() as u64) as usize];
            Command::Change(flow, Change::Graph(graph.to_owned()))
        }
        24..32 => Command::Media(session, media[random.below(4) as usize]),
        _ => Command::GiveUp(session, Duration::from_millis(random.below(1_000_000))),
    }
}

/// So many commands in a random order, to sessions in every state, at both ends.
fn command_at_random(count: u64, seed: u64) {
    let mut random = Random::from_seed([seed as u8; 32]);
    let (mut given, mut refused) = (0, 0);
    while given < count {
        let host = serve(TWO_WAY);
        let at = uri(&host);
        let endpoint = endpoint();
        let [participant, gone] = [(); 2].map(|()| endpoint.connect(&at).unwrap());
        let [creator, _other] = [(); 2].map(|()| host.accept().unwrap());
        let mut ends = [creator.endpoint().clone(), endpoint];
        let id = gone.id();
        drop(gone);
        let ids = [[(creator.id(), 2); 2], [(participant.id(), 2), (id, 2)]];
        for _ in 0..10_000.min(count - given) {
            given += 1;
            let end = random.below(2) as usize;
            match ends[end].command(random_command(&mut random, &ids[end])) {
                Ok(_) => {}
                Err(error) => {
                    refused += 1;
                    assert!(!error.text.is_empty() && error.code != Code::Internal, "{error:?}");
                }
            }
            if random.below(8) == 0 {
                while ends[end].poll_event().is_some() {}
            }
        }
        // Whatever was under way comes to an end, one way or the other.
        for (session, end) in [(&creator, 0), (&participant, 1)] {
            while ends[end].poll_event().is_some() {}
            // It may be closed already.
            let _ = ends[end].command(Command::Close(session.id()));
        }
        for end in &mut ends {
            while end.open_tickets() > 0 {
                end.turn(Deadline::after(SOON)).unwrap();
                while end.poll_event().is_some() {}
            }
        }
    }
    println!("seed {seed}: {given} commands, {refused} refused.");
    assert!(refused > 0 && refused < given);
}

#[test]
fn commands_in_a_random_order_are_done_or_refused_with_the_reason() {
    watched(|| command_at_random(20_000, 7));
}

#[test]
#[ignore = "a million commands take minutes: make nightly"]
fn a_million_commands_in_a_random_order_are_done_or_refused_with_the_reason() {
    command_at_random(1_000_000, 11);
}
