//! Two hosts over real sockets with real TLS: a session from set-up to closed ledgers, over IPv4
//! and IPv6.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo::core::{
    BeginError, Code, CoreEvent, Ending, Error, Joining, Ledger, Port, Publisher, SessionSpec,
    Sink, Source, SourcePoll, Taken, UnitView, UnitWriter,
};
use dacapo::host::Host;
use dacapo_base::Time;
use dacapo_security::Identity;
use dacapo_sys::poll::Waker;
use dacapo_transport::shm;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::medium::Medium;
use dacapo_wire::session::{Direction, FlowOffer};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

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

impl Publisher for Publish {
    fn open(&mut self, _: &FlowOffer, _: &Joining) -> Result<Port, String> {
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

/// Turns both hosts until the participant's session has ended; its ledger and hash.
fn play(listen: SocketAddr) -> (Ledger, Option<bool>) {
    play_with(hosts(), listen, spec()).unwrap()
}

/// The same for any hosts and session.
///
/// # Errors
/// Why the session ended before its flow.
fn play_with(
    [mut creator, mut participant]: [Host; 2],
    listen: SocketAddr,
    spec: SessionSpec,
) -> Result<(Ledger, Option<bool>), Error> {
    let carried_by = match spec.flows[0].transport {
        1 => "udp",
        _ => "shm",
    };
    creator.listen(&[listen]).unwrap();
    creator.reactor().core().publish(spec, Box::new(Publish)).unwrap();
    let mut address = creator.listening()[0];
    if address.ip().is_unspecified() {
        address.set_ip([127, 0, 0, 1].into());
    }
    let peer = participant.connect(address).unwrap();
    let (mut tokens, mut ended) = (Vec::new(), None);
    let start = participant.reactor().now();
    while participant.reactor().now().since(start) < MOST {
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
                    .join(now, peer, "numbers", Default::default())
                    .unwrap();
            }
            CoreEvent::Offered { session, .. } => {
                let sink = Some(Port::Sink(Box::new(Check)));
                participant.reactor().core().answer(now, session, vec![sink]).unwrap();
            }
            CoreEvent::Ready { session } => {
                participant.reactor().core().activate(now, session).unwrap();
            }
            CoreEvent::FlowEnded { session, ledger, hash, .. } => {
                ended = Some((ledger, hash));
                participant.reactor().core().close(now, session).unwrap();
            }
            CoreEvent::SessionEnded { error: Some(error), .. } => return Err(error),
            CoreEvent::SessionEnded { error: None, .. } => {
                let stats = participant.reactor().transport_stats();
                assert!(stats.of(carried_by).received.datagrams > 0, "{stats:?}");
                return Ok(ended.expect("the flow ended before the session"));
            }
            CoreEvent::PeerLost { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
    panic!("the session did not end");
}

#[test]
fn a_session_over_ipv4_delivers_everything() {
    let (ledger, hash) = play("127.0.0.1:0".parse().unwrap());
    assert_eq!((ledger.delivered, ledger.lost, hash), (UNITS, 0, Some(true)));
}

#[test]
fn a_session_over_ipv6_delivers_everything() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        println!("skipped: this host has no IPv6 loopback");
        return;
    }
    let (ledger, hash) = play("[::1]:0".parse().unwrap());
    assert_eq!((ledger.delivered, ledger.lost, hash), (UNITS, 0, Some(true)));
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
        let address: SocketAddr = listen.parse().unwrap();
        let (ledger, hash) = play_with(hosts(), address, spec_in_memory()).unwrap();
        assert_eq!((ledger.delivered, ledger.lost, hash), (UNITS, 0, Some(true)), "{listen}");
    }
}

#[test]
fn who_has_not_found_the_creator_on_this_host_is_refused_what_only_one_host_has() {
    let [creator, mut participant] = hosts();
    participant.reactor().set_stream_finder(shm::SPEC.id, |_| false);
    let listen = "127.0.0.1:0".parse().unwrap();
    let error = play_with([creator, participant], listen, spec_in_memory()).unwrap_err();
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
