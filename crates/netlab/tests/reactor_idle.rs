//! A reactor that is turned again and again without waiting, as an endpoint does.
//!
//! Nothing here asks how long something took: a turn that began after a deadline has met it.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::config;
use dacapo_base::{Random, Time, Tolerance};
use dacapo_core::{Core, CoreEvent};
use dacapo_netlab::plain_tls;
use dacapo_reactor::Reactor;
use dacapo_transport::Transport;
use dacapo_transport::udp::{Config, Udp};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Stops a hang; nothing else depends on it.
const WATCHDOG: Duration = Duration::from_secs(60);

fn reactor(seed: u64) -> Reactor {
    let mut random = Random::from_number(seed);
    let crypto = plain_tls::control_crypto(&mut random, None);
    Reactor::new(Core::new(config(), crypto, random, Instant::now())).unwrap()
}

/// Turns once; a deadline that was there before the turn began and is there after it was not met.
fn turn(reactor: &mut Reactor, what: &str) {
    let began = reactor.now();
    let is_due = |at: Option<Time>| at.filter(|at| *at < began);
    let before = is_due(reactor.next_deadline());
    reactor.turn(Duration::ZERO).unwrap();
    let after = is_due(reactor.next_deadline());
    assert!(before.is_none() || before != after, "{what}: {before:?} was due at {began:?}");
}

#[test]
fn a_turn_without_waiting_meets_what_is_due_whatever_came_before() {
    let (mut near, mut far) = (reactor(1), reactor(2));
    let listener = Udp::serve(&[(Ipv4Addr::LOCALHOST, 0).into()], &Config::default()).unwrap();
    let address = listener.local_addrs()[0];
    far.listen(Box::new(listener)).unwrap();
    let dialed = Udp::dial(address.ip().unwrap(), &Config::default()).unwrap();
    near.connect(Box::new(dialed), address).unwrap();
    let (mut patience, mut opened_at) = (Tolerance::new(Instant::now(), WATCHDOG), None);
    // What follows a handshake is acknowledged, probed and kept alive within a second.
    while opened_at.is_none_or(|at| near.now() < at + Duration::from_secs(1)) {
        turn(&mut near, "near");
        turn(&mut far, "far");
        while let Some(event) = near.poll_event() {
            if matches!(event, CoreEvent::PeerOpen { .. }) {
                opened_at = Some(near.now());
            }
        }
        while far.poll_event().is_some() {}
        assert!(patience.lasts(Instant::now()), "no connection");
    }
}
