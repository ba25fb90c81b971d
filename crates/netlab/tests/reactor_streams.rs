//! Flows over TCP between two reactors on this host; and a stream that takes nothing, beside flows
//! that go on.
//!
//! Nothing here asks how long something took: a run ends when what it waits for has come.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Opens, config, offer, offer_tcp, pattern, pattern_ports};
use dacapo_base::{Address, Random, Time, Tolerance};
use dacapo_core::{
    Command, Core, CoreEvent, Done, Ending, Ledger, Port, SessionId, SessionSpec, Sink, Taken,
    UnitView,
};
use dacapo_netlab::plain_tls;
use dacapo_netlab::traffic::{Pattern, PatternSink, PatternSource, Seen};
use dacapo_packet::Pool;
use dacapo_reactor::Reactor;
use dacapo_transport::entry::{Dial, Dialed, StreamCarrier, StreamListener};
use dacapo_transport::stream::Token;
use dacapo_transport::tcp::{self, Tcp};
use dacapo_transport::udp::{self, Udp};
use dacapo_transport::{
    Incoming, Outgoing, RecvOutcome, SendError, Sent, StreamEvent, StreamTransport, Transport,
    TransportSpec, TransportStats,
};
use dacapo_wire::session::{Direction, FlowOffer};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Stops a hang; nothing else depends on it.
const WATCHDOG: Duration = Duration::from_secs(120);

fn reactor(seed: u64) -> Reactor {
    let mut random = Random::from_number(seed);
    let crypto = plain_tls::control_crypto(&mut random, None);
    let core = Core::new(config(), crypto, random, Instant::now());
    Reactor::new(core).unwrap()
}

/// Two reactors on this host, and what they reported.
struct Pair {
    creator: Reactor,
    participant: Reactor,
    address: SocketAddr,
    pattern: Pattern,
    seen: Vec<Option<Seen>>,
    session: Option<SessionId>,
    /// By end (0 the creator) and flow.
    ledgers: BTreeMap<(usize, usize), Ledger>,
    failed: Vec<String>,
    ended: [bool; 2],
    /// Whether the participant's sinks have room, once somebody has a say in that.
    gate: Option<Arc<AtomicBool>>,
}

/// A sink that has room when its gate is open.
struct Gated(Box<dyn Sink>, Arc<AtomicBool>);

impl Sink for Gated {
    fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken {
        self.0.handle_unit(now, unit)
    }

    fn has_capacity(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }

    fn handle_lost(&mut self, now: Time, first: u64, count: u64) {
        self.0.handle_lost(now, first, count);
    }

    fn finish(&mut self, now: Time, ending: &Ending, ledger: &Ledger) {
        self.0.finish(now, ending, ledger);
    }
}

/// Puts the sinks among these ports behind a gate.
fn gated(ports: Vec<Option<Port>>, gate: &Arc<AtomicBool>) -> Vec<Option<Port>> {
    let behind = |port| match port {
        Some(Port::Sink(sink)) => Some(Port::Sink(Box::new(Gated(sink, Arc::clone(gate))))),
        port => port,
    };
    ports.into_iter().map(behind).collect()
}

/// Dials so, and listens nowhere.
struct Dials(Box<dyn FnMut(Dial) -> Dialed + Send>);

impl StreamCarrier for Dials {
    fn listen(&mut self, _: &[Address]) -> std::io::Result<StreamListener> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn dial(&mut self, dial: Dial) -> Dialed {
        (self.0)(dial)
    }
}

impl Pair {
    fn new(flows: Vec<FlowOffer>, pattern: Pattern) -> Self {
        let mut creator = reactor(1);
        let (udp, tcp) = listeners();
        let address = udp.local_addrs()[0];
        creator.listen(Box::new(udp)).unwrap();
        creator.listen_streams(tcp::SPEC.id, Box::new(tcp)).unwrap();
        let open = move |flow: &FlowOffer| {
            Ok(match flow.direction {
                Direction::ToParticipant => Port::Source(Box::new(PatternSource::new(pattern))),
                Direction::ToCreator => Port::Sink(Box::new(PatternSink::new(pattern).0)),
            })
        };
        let (name, title) = ("test".into(), String::new());
        let spec = SessionSpec {
            name,
            title,
            flows,
            participants_max: 1,
            give_up_after: dacapo_core::GIVE_UP_AFTER,
        };
        creator.core().publish(spec, Box::new(Opens(open))).unwrap();
        let mut participant = reactor(2);
        let dials = Dials(Box::new(|Dial { remote, token, .. }| {
            Ok(Box::new(Tcp::dial(remote.ip().unwrap(), token, &tcp::Config::default())?))
        }));
        participant.set_stream_carrier(tcp::SPEC.id, Box::new(dials));
        let (seen, ledgers, failed) = (Vec::new(), BTreeMap::new(), Vec::new());
        let (session, ended, gate) = (None, [false; 2], None);
        Self {
            creator,
            participant,
            address: address.ip().unwrap(),
            pattern,
            seen,
            session,
            ledgers,
            failed,
            ended,
            gate,
        }
    }

    fn connect(&mut self) {
        let udp = Udp::dial(self.address, &udp::Config::default()).unwrap();
        self.participant.connect(Box::new(udp), self.address.into()).unwrap();
    }

    /// Turns both until `done`.
    fn run(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let mut patience = Tolerance::new(Instant::now(), WATCHDOG);
        while !done(self) {
            let lasts = patience.lasts(Instant::now());
            assert!(lasts, "a hang: {:?} {:?}", self.ledgers, self.failed);
            self.creator.turn(Duration::ZERO).unwrap();
            self.participant.turn(Duration::from_millis(1)).unwrap();
            while let Some(event) = self.creator.poll_event() {
                self.note(0, event);
            }
            while let Some(event) = self.participant.poll_event() {
                self.act(&event);
                self.note(1, event);
            }
        }
    }

    fn note(&mut self, end: usize, event: CoreEvent) {
        match event {
            CoreEvent::FlowEnded { flow, ledger, .. } => {
                self.ledgers.insert((end, flow), *ledger);
            }
            CoreEvent::FlowFailed { flow, error, .. } => {
                self.failed.push(format!("{end}, flow {flow}: {error}"));
            }
            CoreEvent::SessionEnded { error, .. } => {
                self.ended[end] = true;
                self.failed.extend(error.map(|error| format!("{end}: {error}")));
            }
            CoreEvent::PeerLost { error, .. } => self.failed.push(error.to_string()),
            _ => {}
        }
    }

    /// Does what a participant does.
    fn act(&mut self, event: &CoreEvent) {
        let now = self.participant.now();
        let core = self.participant.core();
        match event {
            CoreEvent::PeerOpen { peer } => {
                self.session = core
                    .handle_command(
                        now,
                        Command::Join {
                            peer: *peer,
                            name: "test".into(),
                            params: Default::default(),
                        },
                    )
                    .and_then(Done::session)
                    .ok();
            }
            CoreEvent::Offered { session, flows, .. } => {
                let (mut ports, seen) = pattern_ports(self.pattern, flows);
                self.seen = seen;
                if let Some(gate) = &self.gate {
                    ports = gated(ports, gate);
                }
                core.answer(now, *session, ports).unwrap();
            }
            CoreEvent::Ready { session } => {
                _ = core.handle_command(now, Command::Activate(*session)).unwrap();
            }
            _ => {}
        }
    }

    fn views(&mut self) -> usize {
        [&mut self.creator, &mut self.participant]
            .map(|reactor| reactor.core().pool().live_views())
            .iter()
            .sum()
    }
}

/// UDP and TCP on one port of the loopback.
fn listeners() -> (Udp, Tcp) {
    loop {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let udp = Udp::serve(&[any], &udp::Config::default()).unwrap();
        // Somebody else may have the same port for TCP; then another one is tried.
        if let Ok(tcp) = Tcp::serve(&[udp.local_addrs()[0].ip().unwrap()], &tcp::Config::default())
        {
            return (udp, tcp);
        }
    }
}

fn many(count: u64, len_max: usize) -> Pattern {
    Pattern { count, every: Duration::ZERO, len_min: 16, len_max, ..pattern(count) }
}

#[test]
fn flows_over_tcp_between_two_reactors_deliver_every_byte_both_ways() {
    let large = |flow| FlowOffer { unit_len_max: 200_016, ..flow };
    let down = large(offer_tcp("down", &["segment"]));
    let up = FlowOffer { direction: Direction::ToCreator, ..large(offer_tcp("up", &["segment"])) };
    let mut pair = Pair::new(vec![down, up], many(300, 200_000));
    pair.connect();
    pair.run(|pair| pair.ledgers.len() == 4);
    for (place, ledger) in &pair.ledgers {
        assert!(ledger.closes(), "{place:?}: {ledger:?}");
        assert_eq!((ledger.delivered, ledger.lost), (300, 0), "{place:?}: {ledger:?}");
    }
    let record = pair.seen[0].as_ref().unwrap().record().clone();
    assert_eq!(record.numbers, (0..300).collect::<Vec<_>>());
    assert_eq!((record.altered, record.misnumbered), (0, 0));
    let now = pair.participant.now();
    pair.participant.core().handle_command(now, Command::Close(pair.session.unwrap())).unwrap();
    pair.run(|pair| pair.ended == [true; 2]);
    assert_eq!(pair.failed, Vec::<String>::new());
    pair.run(|pair| pair.views() == 0);
}

fn has_got_a_unit(pair: &Pair) -> bool {
    pair.seen.iter().flatten().any(|seen| !seen.record().numbers.is_empty())
}

#[test]
fn a_flow_that_was_held_up_goes_on_without_a_sleep_before() {
    let mut pair = Pair::new(vec![offer_tcp("flow", &["segment"])], many(200, 400));
    let gate = Arc::new(AtomicBool::new(false));
    pair.gate = Some(Arc::clone(&gate));
    pair.connect();
    // The first unit shows that there is no room.
    pair.run(|pair| has_got_a_unit(pair));
    let due = |pair: &mut Pair| {
        let now = pair.participant.now();
        pair.participant.core().next_deadline(now).is_some_and(|due| due <= now)
    };
    pair.run(|pair| !due(pair));
    gate.store(true, Ordering::Relaxed);
    let (now, session) = (pair.participant.now(), pair.session.unwrap());
    pair.participant.core().wake(now, session, 0);
    assert!(due(&mut pair), "who sleeps now does not read");
    pair.run(|pair| pair.ledgers.len() == 2);
    assert_eq!(pair.ledgers[&(1, 0)].delivered, 200, "{:?}", pair.failed);
}

#[test]
fn a_host_that_cannot_dial_or_listen_ends_the_flow_with_the_reason() {
    let flows = || vec![offer_tcp("down", &[])];
    let mut pair = Pair::new(flows(), many(10, 100));
    // Nobody has said how to dial.
    pair.participant = reactor(3);
    pair.connect();
    pair.run(|pair| !pair.failed.is_empty());
    assert!(pair.failed[0].starts_with("1, flow 0: control works"), "{:?}", pair.failed);
    assert!(pair.failed[0].contains("does not dial"), "{:?}", pair.failed);
    // Nobody listens for streams; UDP is there.
    let mut pair = Pair::new(flows(), many(10, 100));
    let mut deaf = reactor(4);
    std::mem::swap(&mut pair.creator, &mut deaf);
    let udp = Udp::serve(&[SocketAddr::from(([127, 0, 0, 1], 0))], &udp::Config::default());
    let udp = udp.unwrap();
    pair.address = udp.local_addrs()[0].ip().unwrap();
    pair.creator.listen(Box::new(udp)).unwrap();
    let open = |_: &FlowOffer| Ok(Port::Source(Box::new(PatternSource::new(many(10, 100))) as _));
    let (name, title) = ("test".into(), String::new());
    let spec = SessionSpec {
        name,
        title,
        flows: flows(),
        participants_max: 1,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    pair.creator.core().publish(spec, Box::new(Opens(open))).unwrap();
    pair.connect();
    pair.run(|pair| pair.failed.iter().any(|text| text.starts_with("0, flow 0")));
    let failed = pair.failed.iter().find(|text| text.starts_with("0, flow 0")).unwrap();
    assert!(failed.contains("does not listen"), "{:?}", pair.failed);
}

/// What a transport of somebody's own does that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// It opens at once and takes nothing.
    TakesNothing,
    /// It says that it took more than it was given.
    TakesMore,
    /// It says at all times that it is late.
    IsAlwaysDue,
    /// Its descriptor is readable, and it does not read.
    IsAlwaysReadable,
    /// It says that more may come, whenever it is asked.
    HasAlwaysMore,
    /// It tells without end that it is open.
    OpensAgain,
    /// It tells of a stream that nobody has asked for.
    OpensAnother,
    /// It goes on telling after its stream has ended.
    TellsAfterTheEnd,
}

/// A stream that opens at once, and is wrong.
struct Faulty {
    wrong: Wrong,
    token: Token,
    remote: Address,
    told: u64,
    asked: Arc<AtomicU64>,
    /// The first has a byte to read.
    readable: (UnixStream, UnixStream),
}

static FAULTY: TransportSpec = TransportSpec { name: "faulty", ..tcp::SPEC };

impl Transport for Faulty {
    fn spec(&self) -> &'static TransportSpec {
        &FAULTY
    }

    fn local_addrs(&self) -> &[Address] {
        std::slice::from_ref(&self.remote)
    }

    fn open_data(&mut self, _: Address) -> io::Result<Address> {
        Ok(self.remote)
    }

    fn close_data(&mut self, _: Address) {}

    fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let too_many = outgoing.bytes.len() + 1;
        Ok(Sent::Blocked { bytes_taken: if self.wrong == Wrong::TakesMore { too_many } else { 0 } })
    }

    fn recv(&mut self, _: Time, _: &mut Pool, _: &mut Vec<Incoming>) -> RecvOutcome {
        self.asked.fetch_add(1, Ordering::Relaxed);
        RecvOutcome { more: self.wrong == Wrong::HasAlwaysMore, ..RecvOutcome::default() }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        (self.wrong == Wrong::IsAlwaysReadable).then(|| self.readable.0.as_fd())
    }

    fn stats(&self) -> TransportStats {
        TransportStats::default()
    }
}

impl StreamTransport for Faulty {
    fn set_reading(&mut self, _: Address, _: bool) {}

    fn set_patience(&mut self, _: Address, _: Duration) {}

    fn expect(&mut self, _: Token, _: Time) {}

    fn forget(&mut self, _: &Token) {}

    fn poll_stream(&mut self) -> Option<StreamEvent> {
        self.told += 1;
        let (token, remote) = (self.token, self.remote);
        match (self.wrong, self.told) {
            (_, 1) | (Wrong::OpensAgain, _) => Some(StreamEvent::Open { token, remote }),
            (Wrong::OpensAnother, _) => Some(StreamEvent::Open { token: [7; 16], remote }),
            (Wrong::TellsAfterTheEnd, _) => {
                Some(StreamEvent::Closed { token, remote, reason: "it was enough".into() })
            }
            _ => None,
        }
    }

    fn close_stream(&mut self, _: Address) {}

    fn next_deadline(&self) -> Option<Time> {
        (self.wrong == Wrong::IsAlwaysDue).then_some(Time::ZERO)
    }

    fn stream_count(&self) -> usize {
        1
    }

    fn release(&mut self, _: &mut Pool) {}
}

/// A flow over a transport that is wrong, first in turn and of the highest priority, beside one of
/// datagrams, when that one has ended; and how often the wrong one was asked for what has come.
fn beside(wrong: Wrong) -> (Pair, Arc<AtomicU64>) {
    let back = |flow| FlowOffer { direction: Direction::ToCreator, ..flow };
    let mut faulty = back(offer_tcp("faulty", &[]));
    faulty.attributes.push(dacapo_wire::attribute::AttributeForm {
        key: 9,
        min: Some(7),
        ..Default::default()
    });
    let flows = vec![faulty, back(offer("datagrams", &["sequence", "checksum"]))];
    let mut pair = Pair::new(flows, many(5_000, 300));
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let dials = Dials(Box::new(move |Dial { remote, token, .. }| {
        let (asked, mut readable) = (Arc::clone(&count), UnixStream::pair()?);
        readable.1.write_all(b"!")?;
        let faulty = Faulty { wrong, token, remote, told: 0, asked, readable };
        Ok(Box::new(faulty))
    }));
    pair.participant.set_stream_carrier(tcp::SPEC.id, Box::new(dials));
    pair.connect();
    pair.run(|pair| pair.ledgers.contains_key(&(0, 1)) && pair.ledgers.contains_key(&(1, 1)));
    let ledger = &pair.ledgers[&(0, 1)];
    assert!(ledger.closes() && ledger.sent == 5_000, "{wrong:?}: {ledger:?}");
    (pair, asked)
}

#[test]
fn a_stream_that_takes_nothing_holds_no_other_flow_up() {
    let (pair, _) = beside(Wrong::TakesNothing);
    assert!(!pair.ledgers.contains_key(&(1, 0)), "the stuck one is stuck");
}

/// Its flow ends with this reason, and it is asked no more; the other flow was not disturbed.
fn ends_itself_only(wrong: Wrong, reason: &str) {
    let (mut pair, asked) = beside(wrong);
    pair.run(|pair| pair.failed.iter().any(|text| text.starts_with("1, flow 0")));
    let failed = pair.failed.iter().find(|text| text.starts_with("1, flow 0")).unwrap();
    assert!(failed.contains(reason), "{wrong:?}: {failed}");
    assert!(!pair.failed.iter().any(|text| text.contains("flow 1")), "{:?}", pair.failed);
    // Whatever it would go on saying.
    let before = asked.load(Ordering::Relaxed);
    for _ in 0..100 {
        pair.participant.turn(Duration::ZERO).unwrap();
    }
    assert_eq!(asked.load(Ordering::Relaxed), before, "{wrong:?}");
}

#[test]
fn a_stream_that_takes_more_than_it_was_given_ends_itself_only() {
    ends_itself_only(Wrong::TakesMore, "it took more than it was given");
}

#[test]
fn a_stream_that_is_readable_and_does_not_read_ends_itself_only() {
    ends_itself_only(Wrong::IsAlwaysReadable, "has nothing");
}

#[test]
fn a_stream_that_is_late_at_all_times_ends_itself_only() {
    // Each turn finds it late and waits for nothing: were it not looked at, turns would follow each
    // other in vain.
    ends_itself_only(Wrong::IsAlwaysDue, "has nothing");
}

#[test]
fn a_stream_that_promises_more_without_end_ends_itself_only() {
    ends_itself_only(Wrong::HasAlwaysMore, "has nothing");
}

#[test]
fn a_stream_that_opens_again_and_again_ends_itself_only() {
    ends_itself_only(Wrong::OpensAgain, "it opened twice");
}

#[test]
fn a_stream_that_tells_of_another_ends_itself_only() {
    ends_itself_only(Wrong::OpensAnother, "a stream that is not its own");
}

#[test]
fn a_stream_that_tells_on_after_its_end_ends_itself_only() {
    ends_itself_only(Wrong::TellsAfterTheEnd, "it was enough");
}
