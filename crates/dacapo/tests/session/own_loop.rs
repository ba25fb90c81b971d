//! Programs with a loop of their own: one descriptor for all that waits, commands as data, events
//! and units without waiting.

use crate::world::{TWO_WAY, active_pair, endpoint, pair, serve, unit, uri, watched};
use dacapo::Ledger;
use dacapo::offer::FlowOffer;
use dacapo::plan::{Assumptions, Plan};
use dacapo::port::{self, Ending, JoinRequest, Port, SessionProvider, Sink, Taken};
use dacapo::{
    Change, Code, Command, Deadline, Endpoint, Event, FlowId, Join, MediaCommand, Outcome,
    SessionId, Ticket,
};
use dacapo_base::{Random, Time};
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

/// Turns until such an event of such a session comes, and takes every event before it.
fn event_of(
    endpoint: &mut Endpoint,
    mut is_it: impl FnMut(Option<SessionId>, &Event) -> bool,
) -> Event {
    loop {
        assert!(endpoint.turn(Deadline::after(LONG)).unwrap().is_ready, "nothing comes");
        while let Some((session, event)) = endpoint.poll_event() {
            if is_it(session, &event) {
                return event;
            }
        }
    }
}

fn event(endpoint: &mut Endpoint, is_it: impl Fn(&Event) -> bool) -> Event {
    event_of(endpoint, |_, event| is_it(event))
}

/// Turns until a command is done, and takes every event meanwhile.
fn done(endpoint: &mut Endpoint, ticket: Ticket) -> Result<Outcome, dacapo::Error> {
    let is_it = |event: &Event| matches!(event, Event::Done { ticket: its, .. } if *its == ticket);
    match event(endpoint, is_it) {
        Event::Done { outcome, .. } => outcome,
        other => panic!("{other:?}"),
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
        event(&mut here, |event| matches!(event, Event::PeerLost { peer: it, .. } if *it == peer));
        let connect = here.command(connect.clone()).unwrap();
        assert_eq!(done(&mut here, connect).unwrap_err().code, Code::NotListening);
        assert_eq!(here.open_tickets(), 0);
    });
}

/// A sink that says how many units it has seen.
struct Counts(std::sync::mpsc::Sender<u64>, u64);

impl Sink for Counts {
    fn handle_unit(&mut self, _now: Time, _unit: &port::UnitView<'_>) -> Taken {
        self.1 += 1;
        Taken::Delivered
    }

    fn finish(&mut self, _now: Time, _ending: &Ending, _ledger: &Ledger) {
        self.0.send(self.1).unwrap();
    }
}

#[test]
fn a_program_decides_what_becomes_of_an_offer() {
    watched(|| {
        let host = serve(TWO_WAY);
        let (mut here, mut other) = (endpoint(), host.endpoint().clone());
        assert_eq!(other.poll_event(), None);
        let to = host.endpoint().listening()[0];
        let ticket = here.command(Command::Connect { to, wait: None }).unwrap();
        let Ok(Outcome::Connected(peer)) = done(&mut here, ticket) else { panic!("no peer") };
        let join = |name: &str| {
            let (name, how) = (name.to_owned(), Join::new().decide());
            Command::Join { peer, name, how }
        };
        let nothing = here.command(join("nothing")).unwrap();
        assert_eq!(done(&mut here, nothing).unwrap_err().code, Code::NotServed);
        let joining = here.command(join(host.name())).unwrap();
        let mut id = None;
        let offered = event_of(&mut here, |session, event| {
            id = session;
            matches!(event, Event::Offered { .. })
        });
        let (Event::Offered { flows, .. }, Some(id)) = (offered, id) else { panic!("no session") };
        let (told, heard) = std::sync::mpsc::channel();
        let ports = flows.iter().map(|flow| {
            let sink = Counts(told.clone(), 0);
            (flow.name == "there").then(|| Port::Sink(Box::new(sink)))
        });
        here.answer(id, ports.collect()).unwrap();
        assert_eq!(done(&mut here, joining), Ok(Outcome::Done));
        assert_eq!((here.offers(id).len(), here.peer_of(id)), (flows.len(), Some(peer)));
        let session = here.session(id).expect("its handle is free");
        assert!(here.session(id).is_none(), "once");
        let declined = session.flows().into_iter().find(|flow| flow.name == "back").unwrap();
        assert!(declined.refused.is_some());
        let creator = host.accept().unwrap();
        let active = here.command(Command::Activate(id)).unwrap();
        assert_eq!(done(&mut here, active), Ok(Outcome::Done));
        let mut there = creator.sender("there").unwrap();
        (0..100).for_each(|number| there.send(&unit(number)).unwrap());
        there.finish().unwrap();
        assert_eq!(heard.recv_timeout(LONG), Ok(100));
        let why = dacapo::Error::new(Code::AccessFailed, "the disk is full");
        let aborted = here.command(Command::Abort(id, why)).unwrap();
        assert_eq!(done(&mut here, aborted), Ok(Outcome::Done));
        let ended = event(&mut other, |event| matches!(event, Event::Ended { .. }));
        let Event::Ended { error: Some(error) } = ended else { panic!("{ended:?}") };
        assert!(error.text.contains("the disk is full"), "{error}");
    });
}

/// A provider that nobody gets anything of.
struct Refuses;

impl SessionProvider for Refuses {
    fn offer(
        &mut self,
        _joining: &JoinRequest,
        _flows: &[FlowOffer],
    ) -> Result<Vec<FlowOffer>, dacapo::Error> {
        Err(dacapo::Error::new(Code::AccessFailed, "not today"))
    }

    fn open(&mut self, _flow: &FlowOffer, _joining: &JoinRequest) -> Result<Port, String> {
        Err("nothing was offered".to_owned())
    }
}

#[test]
fn who_serves_is_told_of_who_is_refused() {
    watched(|| {
        let plan = Plan::parse(TWO_WAY, "test", &Assumptions::default()).unwrap();
        let mut host = endpoint();
        let creator = host.serve_by(plan.spec(), Box::new(Refuses)).unwrap();
        host.listen(&dacapo::host::loopback(0)).unwrap();
        assert_eq!(host.poll_event(), None);
        let refused = endpoint().connect(&creator.uri().unwrap().to_string()).unwrap_err();
        assert!(refused.text.contains("not today"), "{refused}");
        let told = event(&mut host, |event| matches!(event, Event::Refused { .. }));
        let Event::Refused { error } = told else { panic!("{told:?}") };
        assert!(error.text.contains("not today"), "{error}");
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
