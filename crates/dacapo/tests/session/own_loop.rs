//! Programs with a loop of their own: one descriptor for all that waits, commands as data, events
//! and units without waiting.

use crate::world::{TWO_WAY, active_pair, endpoint, pair, serve, unit, uri, watched};
use dacapo::Address;
use dacapo::Ledger;
use dacapo::offer::FlowOffer;
use dacapo::plan::{Assumptions, Plan};
use dacapo::port::{self, Ending, JoinRequest, Port, SessionProvider, Sink, Taken};
use dacapo::{
    Change, Code, Command, Deadline, Endpoint, Error, Event, FlowId, Join, MediaCommand, Outcome,
    PeerId, SessionId, Ticket,
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

/// An end of random commands, and what it has been told to command.
struct Commanded {
    endpoint: Endpoint,
    /// Sessions and how many flows they have, some of them gone.
    sessions: Vec<(SessionId, usize)>,
    peers: Vec<PeerId>,
    /// Where somebody listens, and where nobody does.
    places: [Address; 2],
}

/// So many peers and sessions are kept to be commanded; what is new takes the place of another.
const KNOWN_MAX: usize = 8;

impl Commanded {
    /// One of the commands that there are, to a session or peer that is there, was, or never will.
    fn draw(&self, random: &mut Random) -> Command {
        let (session, flows) = self.sessions[random.below(self.sessions.len() as u64) as usize];
        let flow = FlowId { session, flow: random.below(flows as u64 + 2) as usize };
        let to = self.places[random.below(2) as usize];
        let peer = self.peers.get(random.below(KNOWN_MAX as u64) as usize).copied();
        match (random.below(80), peer) {
            (0, _) => Command::Close(session),
            (1, _) => Command::Abort(session, Error::new(Code::Closed, "at random")),
            (2..5, _) => Command::Finish(flow),
            (5, Some(peer)) => Command::Disconnect(peer),
            (6..10, Some(peer)) => Command::List(peer),
            (10..14, Some(peer)) => {
                let name = ["two-way", "nothing", ""][random.below(3) as usize].to_owned();
                let how = Join::new();
                let how = if random.below(4) == 0 { how.decide() } else { how };
                Command::Join { peer, name, how }
            }
            (5..20, _) => Command::Connect { to, wait: None },
            (20..32, _) => Command::Activate(session),
            (32..40, _) => Command::Deactivate(session),
            (40..54, _) => {
                let graph = GRAPHS[random.below(GRAPHS.len() as u64) as usize];
                Command::Change(flow, Change::Graph(graph.to_owned()))
            }
            (54..66, _) => Command::Media(session, MEDIA[random.below(4) as usize]),
            _ => Command::GiveUp(session, Duration::from_millis(random.below(1_000_000))),
        }
    }

    /// Reads what has happened; peers and sessions of which it tells are commanded from then on.
    fn read(&mut self, random: &mut Random) {
        while let Some((session, event)) = self.endpoint.poll_event() {
            let is_new = |id: &SessionId| self.sessions.iter().all(|(known, _)| known != id);
            if let Some(id) = session.filter(is_new) {
                let at = random.below(KNOWN_MAX as u64) as usize;
                self.sessions.truncate(KNOWN_MAX - 1);
                self.sessions.insert(at.min(self.sessions.len()), (id, 2));
            }
            match (session, event) {
                (_, Event::Done { outcome: Ok(Outcome::Connected(peer)), .. }) => {
                    self.peers.truncate(KNOWN_MAX - 1);
                    self.peers.push(peer);
                }
                // Nobody answers: it would be waited for a minute.
                (Some(id), Event::Offered { .. }) => {
                    let why = Error::new(Code::Refused, "at random");
                    let _ = self.endpoint.command(Command::Abort(id, why));
                }
                _ => {}
            }
        }
    }

    /// Whatever is under way comes to an end, one way or the other.
    fn finish(&mut self, random: &mut Random) {
        self.read(random);
        for (session, _) in self.sessions.clone() {
            // It may be closed already.
            let _ = self.endpoint.command(Command::Close(session));
        }
        while self.endpoint.open_tickets() > 0 {
            self.endpoint.turn(Deadline::after(SOON)).unwrap();
            self.read(random);
        }
    }
}

const GRAPHS: [&str; 6] =
    ["segment", "segment ! checksum", "checksum ! segment", "segmant", "", "segment ! "];
const MEDIA: [MediaCommand; 4] =
    [MediaCommand::Stop, MediaCommand::Play, MediaCommand::Ff, MediaCommand::Rwd];

/// So many commands go to the sessions of one pair of endpoints: most are over by then.
const PER_PAIR: u64 = 200;

/// So many commands in a random order, to peers and sessions in every state, at both ends.
fn command_at_random(count: u64, seed: u64) {
    let mut random = Random::from_seed([seed as u8; 32]);
    let (mut given, mut refused) = (0, 0);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    while given < count {
        let host = serve(TWO_WAY);
        let at = uri(&host);
        let endpoint = endpoint();
        let [participant, gone] = [(); 2].map(|()| endpoint.connect(&at).unwrap());
        let [creator, _other] = [(); 2].map(|()| host.accept().unwrap());
        let id = gone.id();
        drop(gone);
        let places = [host.endpoint().listening()[0], nobody.into()];
        let end = |endpoint: &Endpoint, sessions| Commanded {
            endpoint: endpoint.clone(),
            sessions,
            peers: Vec::new(),
            places,
        };
        let mut ends = [
            end(creator.endpoint(), vec![(creator.id(), 2)]),
            end(&endpoint, vec![(participant.id(), 2), (id, 2)]),
        ];
        for _ in 0..PER_PAIR.min(count - given) {
            given += 1;
            let end = &mut ends[random.below(2) as usize];
            let command = end.draw(&mut random);
            if let Err(error) = end.endpoint.command(command) {
                refused += 1;
                assert!(!error.text.is_empty() && error.code != Code::Internal, "{error:?}");
            }
            if random.below(8) == 0 {
                end.read(&mut random);
            }
        }
        ends.iter_mut().for_each(|end| end.finish(&mut random));
    }
    println!("seed {seed}: {given} commands, {refused} refused.");
    assert!(refused > given / 20 && refused < given * 19 / 20, "{refused} of {given}");
}

#[test]
fn flows_that_are_let_run_and_pause_at_once_do_so_one_after_the_other() {
    watched(|| {
        let (creator, participant) = pair(TWO_WAY);
        let mut here = participant.endpoint().clone();
        let id = participant.id();
        let mut switched = || {
            let runs = [true, false, true, false, false, true, true];
            let tickets = runs.map(|runs| {
                let command = match runs {
                    true => Command::Activate(id),
                    false => Command::Deactivate(id),
                };
                here.command(command).unwrap()
            });
            for ticket in tickets {
                assert_eq!(done(&mut here, ticket), Ok(Outcome::Done));
            }
        };
        (0..20).for_each(|_| switched());
        assert!(participant.activate().is_ok() && creator.activate().is_ok(), "it runs");
    });
}

#[test]
fn commands_in_a_random_order_are_done_or_refused_with_the_reason() {
    watched(|| command_at_random(20_000, 7));
}

#[test]
#[ignore = "a million commands take a minute and more: make nightly"]
fn a_million_commands_in_a_random_order_are_done_or_refused_with_the_reason() {
    command_at_random(1_000_000, 11);
}
