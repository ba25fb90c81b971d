//! A reactor of which a transport is full sleeps until that is tried again, whatever else waits to
//! be sent.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::config;
use dacapo_base::{Address, Random, Time};
use dacapo_core::Core;
use dacapo_netlab::plain_tls;
use dacapo_packet::Pool;
use dacapo_reactor::Reactor;
use dacapo_transport::udp::{Config, Udp};
use dacapo_transport::{
    Incoming, Outgoing, RecvOutcome, SendError, Sent, Transport, TransportSpec, TransportStats,
};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// What is full is tried again after a millisecond.
const RETRY: Duration = Duration::from_millis(1);

/// One whose device takes nothing.
struct Full(Udp);

impl Transport for Full {
    fn spec(&self) -> &'static TransportSpec {
        self.0.spec()
    }

    fn local_addrs(&self) -> &[Address] {
        self.0.local_addrs()
    }

    fn open_data(&mut self, remote: Address) -> io::Result<Address> {
        self.0.open_data(remote)
    }

    fn close_data(&mut self, remote: Address) {
        self.0.close_data(remote);
    }

    fn send(&mut self, _: &Outgoing<'_>) -> Result<Sent, SendError> {
        Ok(Sent::Blocked { bytes_taken: 0 })
    }

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        self.0.recv(now, pool, into)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.fd()
    }

    fn stats(&self) -> TransportStats {
        self.0.stats()
    }
}

#[test]
fn while_a_transport_is_full_nobody_turns_for_what_waits_behind_it() {
    let mut random = Random::from_number(1);
    let crypto = plain_tls::control_crypto(&mut random, None);
    let mut near = Reactor::new(Core::new(config(), crypto, random, Instant::now())).unwrap();
    for port in [9, 10] {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let dialed = Udp::dial(address, &Config::default()).unwrap();
        near.connect(Box::new(Full(dialed)), address.into()).unwrap();
    }
    // The first connection's transport is full, and the second has not been asked.
    near.turn(Duration::ZERO).unwrap();
    let (turned, due) = (near.turned_at(), near.next_deadline().unwrap());
    assert!(
        due >= turned + RETRY,
        "due {:?} before it is tried again",
        (turned + RETRY).since(due)
    );
    assert!(due <= turned + 2 * RETRY, "it is tried again after a millisecond");
}
