//! Flows to a group between reactors on this host, over the kernel's UDP.
//!
//! Nothing here asks how long something took: a run ends when what it waits for has come.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Opens, config, offer, pattern, pattern_ports};
use dacapo_base::{Address, Random, Tolerance};
use dacapo_core::{Command, Core, CoreEvent, Done, Ledger, Port, SessionSpec};
use dacapo_netlab::plain_tls;
use dacapo_netlab::traffic::{Pattern, PatternSource, Seen};
use dacapo_reactor::Reactor;
use dacapo_transport::Transport;
use dacapo_transport::udp::{Config, Groups, Udp};
use dacapo_wire::session::FlowOffer;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Stops a hang; nothing else depends on it.
const WATCHDOG: Duration = Duration::from_secs(120);
const UNITS: u64 = 2_000;

fn units() -> Pattern {
    Pattern { every: Duration::from_micros(200), len_max: 900, ..pattern(UNITS) }
}

fn reactor(seed: u64) -> Reactor {
    let mut random = Random::from_number(seed);
    let crypto = plain_tls::control_crypto(&mut random, None);
    let core = Core::new(config(), crypto, random, Instant::now());
    Reactor::new(core).unwrap()
}

struct End {
    reactor: Reactor,
    seen: Option<Seen>,
    ledgers: Vec<Ledger>,
    failed: Vec<String>,
}

impl End {
    fn new(seed: u64) -> Self {
        Self { reactor: reactor(seed), seen: None, ledgers: Vec::new(), failed: Vec::new() }
    }

    /// Takes part in the session as far as it has come.
    fn turn(&mut self, wait: Duration) {
        self.reactor.turn(wait).unwrap();
        while let Some(event) = self.reactor.poll_event() {
            let now = self.reactor.now();
            let core = self.reactor.core();
            match event {
                CoreEvent::PeerOpen { peer } if self.seen.is_none() => {
                    let _ = core
                        .handle_command(
                            now,
                            Command::Join { peer, name: "test".into(), params: Default::default() },
                        )
                        .and_then(Done::session);
                }
                CoreEvent::Offered { session, flows, .. } => {
                    let (ports, mut seen) = pattern_ports(units(), &flows);
                    self.seen = seen.remove(0);
                    core.answer(now, session, ports).unwrap();
                }
                CoreEvent::Ready { session } => {
                    // Who serves does not activate.
                    let _ = core.handle_command(now, Command::Activate(session));
                }
                CoreEvent::FlowEnded { ledger, .. } => self.ledgers.push(*ledger),
                CoreEvent::FlowFailed { error, .. } => self.failed.push(error.to_string()),
                CoreEvent::PeerLost { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }
}

/// A creator that sends to `group` at a free port, and listens at a port for each of `serve`, and
/// `count` participants, who come in at one after the other; runs until all are accounted for.
fn run(group: &str, serve: &[Config], count: usize) -> (End, Vec<End>) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let port = UdpSocket::bind(any).unwrap().local_addr().unwrap().port();
    let mut creator = End::new(1);
    let addresses = serve.iter().map(|config| {
        let udp = Udp::serve(&[any], config).unwrap();
        let address = udp.local_addrs()[0];
        creator.reactor.listen(Box::new(udp)).unwrap();
        address
    });
    let addresses: Vec<Address> = addresses.collect();
    let multicast = Some(SocketAddr::new(group.parse().unwrap(), port));
    let unit_len_max = 1_000;
    let flow = offer("cast", &["segment", "sequence", "checksum"]);
    let spec = SessionSpec {
        name: "test".into(),
        title: String::new(),
        flows: vec![FlowOffer { transport: 6, multicast, unit_len_max, ..flow }],
        participants_max: 9,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    let open = |_: &FlowOffer| Ok(Port::Source(Box::new(PatternSource::new(units()))));
    creator.reactor.core().publish(spec, Box::new(Opens(open))).unwrap();
    let mut members: Vec<End> = (0..count).map(|at| End::new(2 + at as u64)).collect();
    for (member, address) in members.iter_mut().zip(addresses.iter().cycle()) {
        let udp = Udp::dial((*address).ip().unwrap(), &Config::default()).unwrap();
        member.reactor.connect(Box::new(udp), *address).unwrap();
    }
    let mut patience = Tolerance::new(Instant::now(), WATCHDOG);
    while creator.ledgers.len() < count || members.iter().any(|it| it.ledgers.is_empty()) {
        assert!(patience.lasts(Instant::now()), "a hang: {:?}", creator.ledgers);
        creator.turn(Duration::ZERO);
        members.iter_mut().for_each(|member| member.turn(Duration::from_micros(100)));
    }
    (creator, members)
}

/// Everybody gets the flow: what was sent before its ACCEPT is not its own, and the rest comes over
/// loopback.
fn check_all(group: &str, serve: &[Config], count: usize) {
    let (creator, members) = run(group, serve, count);
    let mut sent = 0;
    for (member, at_creator) in members.iter().zip(&creator.ledgers) {
        let ledger = &member.ledgers[0];
        assert!(ledger.closes() && at_creator.closes(), "{ledger:?}");
        assert!(ledger.delivered > 0 && ledger.lost < UNITS / 2, "{group}: {ledger:?}");
        let record = member.seen.as_ref().unwrap().record().clone();
        assert_eq!((record.altered, record.numbers.len() as u64), (0, ledger.delivered));
        assert_eq!(ledger.duplicates, 0, "{group}: what comes from another port is not its own");
        sent = sent.max(ledger.sent);
    }
    assert_eq!(sent, UNITS, "the first takes part from the beginning");
    let all = creator.reactor.transport_stats();
    println!("{group}, {} ports: {all:?}", serve.len());
}

#[test]
fn three_receivers_on_this_host_get_what_is_sent_once() {
    for group in ["239.255.78.1", "232.78.0.1"] {
        check_all(group, &[Config::default()], 3);
    }
}

#[test]
fn who_comes_in_at_another_port_gets_the_flow_from_there() {
    for group in ["239.255.78.3", "232.78.0.3"] {
        check_all(group, &[Config::default(); 3], 5);
    }
}

/// What cannot send to any group.
fn nowhere() -> Config {
    let groups = Groups { interface: Some(4_242), ..Groups::default() };
    Config { groups, ..Config::default() }
}

/// It was told that the group cannot be sent to, and got nothing.
fn check_failed(end: &End, group: &str) {
    assert!(!end.failed.is_empty(), "everybody is told");
    for text in &end.failed {
        assert!(text.contains(&format!("cannot send to group {group}")), "{text}");
    }
    assert!(end.ledgers.iter().all(|it| it.closes() && it.delivered == 0), "{:?}", end.ledgers);
}

#[test]
fn a_group_that_cannot_be_sent_to_ends_the_flow_with_the_reason() {
    let (creator, members) = run("239.255.78.2", &[nowhere()], 2);
    members.iter().chain([&creator]).for_each(|end| check_failed(end, "239.255.78.2"));
}

#[test]
fn a_port_that_cannot_send_to_the_group_ends_the_flow_for_those_who_came_in_there() {
    let (creator, members) = run("239.255.78.4", &[Config::default(), nowhere()], 4);
    for (at, member) in members.iter().enumerate() {
        if at % 2 == 1 {
            check_failed(member, "239.255.78.4");
            continue;
        }
        let ledger = &member.ledgers[0];
        assert!(member.failed.is_empty() && ledger.closes(), "{:?}", member.failed);
        assert!(ledger.delivered > 0 && ledger.lost < UNITS / 2, "{ledger:?}");
    }
    assert_eq!(creator.failed.len(), 2, "{:?}", creator.failed);
    assert!(creator.ledgers.iter().all(Ledger::closes), "{:?}", creator.ledgers);
}
