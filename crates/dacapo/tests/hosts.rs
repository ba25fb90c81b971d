//! Two hosts over real sockets with real TLS: a session from set-up to closed ledgers, over IPv4
//! and IPv6.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo::Address;
use dacapo::host::Host;
use dacapo::{Dial, Dialed};
use dacapo_base::{Time, Tolerance};
use dacapo_core::{
    BeginError, Code, Command, CoreEvent, Done, Ending, Error, JoinRequest, Ledger, Port,
    SessionProvider, SessionSpec, Sink, Source, SourcePoll, Taken, UnitView, UnitWriter,
};
use dacapo_security::Identity;
use dacapo_sys::poll::Waker;
use dacapo_transport::entry::{StreamCarrier, StreamListener};
use dacapo_transport::shm::{self, Shm};
use dacapo_transport::tcp;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::medium::Medium;
use dacapo_wire::session::{Direction, FlowOffer};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

const UNITS: u64 = 2_000;
/// A session of these units takes well under a second; a hang ends here.
const MOST: Duration = Duration::from_secs(30);

struct Numbers(u64);

impl Source for Numbers {
    fn poll_unit(&mut self, _: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        if self.0 == UNITS {
            return SourcePoll::End;
        }
        let bytes = vec![self.0 as u8; (self.0 * 7 % 5_000) as usize];
        match unit.begin(bytes.len()) {
            Ok(()) => {
                unit.write(&bytes);
                self.0 += 1;
                SourcePoll::Unit
            }
            Err(BeginError::NoMemory) => SourcePoll::Blocked,
            Err(BeginError::TooLarge) => SourcePoll::Failed("too large".into()),
        }
    }
}

struct Publish;

impl SessionProvider for Publish {
    fn open(&mut self, _: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        Ok(Port::Source(Box::new(Numbers(0))))
    }
}

#[derive(Default)]
struct Check;

impl Sink for Check {
    fn handle_unit(&mut self, _: Time, unit: &UnitView<'_>) -> Taken {
        let mut bytes = Vec::new();
        unit.copy_to(&mut bytes);
        let len = (unit.number * 7 % 5_000) as usize;
        assert_eq!(bytes, vec![unit.number as u8; len], "unit {}", unit.number);
        Taken::Delivered
    }

    fn finish(&mut self, _: Time, ending: &Ending, ledger: &Ledger) {
        assert_eq!(*ending, Ending::Complete);
        assert!(ledger.closes());
    }
}

fn spec() -> SessionSpec {
    let catalogue = dacapo::catalogue();
    let id = |name: &str| catalogue.by_name(name).unwrap().spec.id;
    let graph = ["segment", "sequence", "checksum"].map(|name| (id(name), Vec::new()));
    let flow = FlowOffer {
        name: "numbers".into(),
        direction: Direction::ToParticipant,
        medium: Medium::Raw,
        graph: GraphForm::line(graph),
        transport: 1,
        bound_bps: 200_000_000,
        unit_len_max: 5_000,
        digest: true,
        ..FlowOffer::default()
    };
    SessionSpec {
        name: "numbers".into(),
        title: String::new(),
        flows: vec![flow],
        participants_max: 8,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    }
}

fn hosts() -> [Host; 2] {
    [0, 1].map(|_| Host::with_identity(Identity::generate().unwrap()).unwrap())
}

/// How a session went at the participant.
struct Played {
    ledger: Ledger,
    hash: Option<bool>,
    /// What stood in for the transport that was agreed, and why.
    stood_in: Vec<(u16, String)>,
}

impl Played {
    fn assert_all_arrived(&self) {
        assert_eq!((self.ledger.delivered, self.ledger.lost), (UNITS, 0));
        assert_eq!(self.hash, Some(true));
    }
}

/// Turns both hosts until the participant's session has ended.
fn play(listen: Address) -> Played {
    play_with(hosts(), listen, spec(), "udp").unwrap()
}

/// The same for any hosts and session, carried by a transport of this name.
///
/// # Errors
/// Why the session ended before its flow.
fn play_with(
    [mut creator, mut participant]: [Host; 2],
    listen: Address,
    spec: SessionSpec,
    carried_by: &str,
) -> Result<Played, Error> {
    creator.listen(&[listen]).unwrap();
    creator.reactor().core().publish(spec, Box::new(Publish)).unwrap();
    let at = creator.listening()[0].ip().unwrap();
    let address = match at.ip().is_unspecified() {
        true => Address::from(([127, 0, 0, 1], at.port())),
        false => at.into(),
    };
    let peer = participant.connect(address).unwrap();
    let (mut tokens, mut ended, mut stood_in) = (Vec::new(), None, Vec::new());
    let mut patience = Tolerance::new(Instant::now(), MOST);
    while patience.lasts(Instant::now()) {
        let short = Duration::from_micros(200);
        while creator.next_event(short, &mut tokens).unwrap().is_some() {}
        let Some(event) = participant.next_event(short, &mut tokens).unwrap() else { continue };
        let now = participant.reactor().now();
        match event {
            CoreEvent::PeerOpen { .. } => {
                assert_eq!(participant.peer_fingerprint(peer), Some(creator.fingerprint()));
                participant
                    .reactor()
                    .core()
                    .handle_command(
                        now,
                        Command::Join { peer, name: "numbers".into(), params: Default::default() },
                    )
                    .and_then(Done::session)
                    .unwrap();
            }
            CoreEvent::Offered { session, .. } => {
                let sink = Some(Port::Sink(Box::new(Check)));
                participant.reactor().core().answer(now, session, vec![sink]).unwrap();
            }
            CoreEvent::Ready { session } => {
                participant
                    .reactor()
                    .core()
                    .handle_command(now, Command::Activate(session))
                    .unwrap();
            }
            CoreEvent::Fallback { transport, reason, .. } => stood_in.push((transport, reason)),
            CoreEvent::FlowEnded { session, ledger, hash, .. } => {
                ended = Some((ledger, hash));
                participant.reactor().core().handle_command(now, Command::Close(session)).unwrap();
            }
            CoreEvent::SessionEnded { error: Some(error), .. } => return Err(error),
            CoreEvent::SessionEnded { error: None, .. } => {
                let stats = participant.reactor().transport_stats();
                assert!(stats.of(carried_by).received.datagrams > 0, "{stats:?}");
                let (ledger, hash) = ended.expect("the flow ended before the session");
                return Ok(Played { ledger: *ledger, hash, stood_in });
            }
            CoreEvent::PeerLost { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
    panic!("the session did not end");
}

#[test]
fn a_session_over_ipv4_delivers_everything() {
    play("127.0.0.1:0".parse().unwrap()).assert_all_arrived();
}

#[test]
fn a_session_over_ipv6_delivers_everything() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        dacapo_base::skip("this host has no IPv6 loopback");
        return;
    }
    play("[::1]:0".parse().unwrap()).assert_all_arrived();
}

/// The same units without modules, through shared memory.
fn spec_in_memory() -> SessionSpec {
    let mut spec = spec();
    let flow = &mut spec.flows[0];
    (flow.transport, flow.graph, flow.bound_bps) = (shm::SPEC.id, GraphForm::line([]), 0);
    spec
}

#[test]
fn a_session_through_shared_memory_delivers_everything() {
    for listen in ["127.0.0.1:0", "0.0.0.0:0"] {
        let address: Address = listen.parse().unwrap();
        let played = play_with(hosts(), address, spec_in_memory(), "shm").unwrap();
        played.assert_all_arrived();
        assert_eq!(played.stood_in, []);
    }
}

/// Finds who is there, and dials so.
struct Dials(fn(Dial) -> Dialed);

impl StreamCarrier for Dials {
    fn listen(&mut self, _: &[Address]) -> std::io::Result<StreamListener> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn dial(&mut self, dial: Dial) -> Dialed {
        (self.0)(dial)
    }

    fn find(&mut self, remote: Address) -> bool {
        Shm::look(remote.ip().unwrap(), &shm::Config::default()).is_ok()
    }
}

/// Finds nobody on its host.
struct FindsNobody;

impl StreamCarrier for FindsNobody {
    fn listen(&mut self, _: &[Address]) -> std::io::Result<StreamListener> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn dial(&mut self, _: Dial) -> Dialed {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

#[test]
fn what_shared_memory_cannot_open_after_all_goes_over_tcp_and_says_why() {
    let fails_at_once: fn(Dial) -> Dialed = |_| Err(std::io::Error::other("no memory is left"));
    let fails_later: fn(Dial) -> Dialed = |Dial { remote, token, .. }| {
        let remote = remote.at_port(remote.port().unwrap() ^ 1).ip().unwrap();
        Ok(Box::new(Shm::dial(remote, token, &shm::Config::default())?))
    };
    let ways = [(fails_at_once, "no memory is left"), (fails_later, "nobody listens")];
    for (dialer, why) in ways {
        let [creator, mut participant] = hosts();
        participant.reactor().set_stream_carrier(shm::SPEC.id, Box::new(Dials(dialer)));
        let (hosts, listen) = ([creator, participant], "127.0.0.1:0".parse().unwrap());
        let played = play_with(hosts, listen, spec_in_memory(), "tcp").unwrap();
        played.assert_all_arrived();
        let [(transport, reason)] = &played.stood_in[..] else { panic!("{:?}", played.stood_in) };
        assert_eq!(*transport, tcp::SPEC.id);
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn who_has_not_found_the_creator_on_this_host_is_refused_what_only_one_host_has() {
    let [creator, mut participant] = hosts();
    participant.reactor().set_stream_carrier(shm::SPEC.id, Box::new(FindsNobody));
    let listen = "127.0.0.1:0".parse().unwrap();
    let played = play_with([creator, participant], listen, spec_in_memory(), "shm");
    let error = played.err().unwrap();
    assert_eq!(error.code, Code::Unsupported);
    assert_eq!(error.text, "numbers: the participant has no transport \"shm\" (number 9)");
}

#[test]
fn what_is_watched_and_ready_is_told_once_in_each_turn() {
    let mut host = Host::with_identity(Identity::generate().unwrap()).unwrap();
    host.listen(&[([127, 0, 0, 1], 0).into()]).unwrap();
    let waker = Waker::new().unwrap();
    host.reactor().watch(waker.as_fd(), 7).unwrap();
    let mut tokens = Vec::new();
    waker.wake();
    for _ in 0..3 {
        assert!(host.next_event(MOST, &mut tokens).unwrap().is_none());
        assert_eq!(tokens, [7], "who is told twice reads twice, and waits the second time");
    }
    waker.clear();
    assert!(host.next_event(Duration::ZERO, &mut tokens).unwrap().is_none());
    let told = host.reactor().turn(Duration::ZERO).unwrap();
    assert_eq!(told, [0_u32; 0]);
}

#[test]
fn an_error_of_the_system_keeps_its_cause() {
    let mut host = Host::with_identity(Identity::generate().unwrap()).unwrap();
    host.listen(&[([127, 0, 0, 1], 0).into()]).unwrap();
    let taken = host.listening()[0];
    let mut other = Host::with_identity(Identity::generate().unwrap()).unwrap();
    let error = other.listen(&[taken]).unwrap_err();
    assert_eq!(error.code, Code::System);
    let cause = std::error::Error::source(&error).expect("no cause");
    assert_eq!(cause.to_string(), error.text);
    assert_eq!(error, error.clone(), "two are equal by what they say");
}

#[test]
fn who_asks_with_no_time_at_all_hears_what_comes() {
    let [mut creator, mut participant] = hosts();
    creator.listen(&["127.0.0.1:0".parse().unwrap()]).unwrap();
    let waker = Waker::new().unwrap();
    creator.reactor().watch(waker.as_fd(), 7).unwrap();
    waker.wake();
    let mut tokens = Vec::new();
    let peer = participant.connect(creator.listening()[0]).unwrap();
    let (mut is_told, mut is_open) = (false, false);
    let mut patience = Tolerance::new(Instant::now(), MOST);
    while !(is_told && is_open) && patience.lasts(Instant::now()) {
        let event = participant.next_event(Duration::from_millis(5), &mut tokens).unwrap();
        is_open |= matches!(event, Some(CoreEvent::PeerOpen { peer: open }) if open == peer);
        creator.next_event(Duration::ZERO, &mut tokens).unwrap();
        is_told |= tokens == [7];
    }
    assert!(is_told, "what is watched is ready, and is not told");
    assert!(is_open, "the peer was not answered");
}
