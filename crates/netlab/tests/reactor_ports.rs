//! A host that listens at several ports of one family answers each remote from the port at which
//! that has come in: from another its answer would be a stranger's.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::config;
use dacapo_base::{Random, Tolerance};
use dacapo_core::{Core, CoreEvent, PeerId};
use dacapo_netlab::plain_tls;
use dacapo_reactor::Reactor;
use dacapo_transport::Transport;
use dacapo_transport::udp::{Config, Udp};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Stops a hang; nothing else depends on it.
const WATCHDOG: Duration = Duration::from_secs(60);

const PORTS: usize = 3;

fn reactor(seed: u64) -> Reactor {
    let mut random = Random::from_number(seed);
    let crypto = plain_tls::control_crypto(&mut random, None);
    Reactor::new(Core::new(config(), crypto, random, Instant::now())).unwrap()
}

/// Listens at a further port.
fn listen(reactor: &mut Reactor) -> SocketAddr {
    let udp = Udp::serve(&[(Ipv4Addr::LOCALHOST, 0).into()], &Config::default()).unwrap();
    let address = udp.local_addrs()[0];
    reactor.listen(Box::new(udp)).unwrap();
    address.ip().unwrap()
}

/// Whether a peer answers by both ways: the connection and the data path are open.
fn is_reached(near: &mut Reactor, opened: &[PeerId], peer: PeerId) -> bool {
    opened.contains(&peer) && near.core().path(peer).is_some_and(|path| path.rtt.is_some())
}

#[test]
fn each_port_answers_for_itself_over_control_and_data() {
    let (mut near, mut far) = (reactor(1), reactor(2));
    let addresses = [(); PORTS].map(|()| listen(&mut far));
    let peers = addresses.map(|address| {
        let dialed = Udp::dial(address, &Config::default()).unwrap();
        near.connect(Box::new(dialed), address.into()).unwrap()
    });
    let (mut patience, mut opened) = (Tolerance::new(Instant::now(), WATCHDOG), Vec::new());
    while !peers.iter().all(|peer| is_reached(&mut near, &opened, *peer)) {
        assert!(patience.lasts(Instant::now()), "{} of {PORTS} ports answer", opened.len());
        for reactor in [&mut near, &mut far] {
            reactor.turn(Duration::from_millis(1)).unwrap();
        }
        while let Some(event) = near.poll_event() {
            match event {
                CoreEvent::PeerOpen { peer } => opened.push(peer),
                event => panic!("{event:?}"),
            }
        }
        while far.poll_event().is_some() {}
    }
    assert_eq!(near.core().connection_count(), PORTS);
}
