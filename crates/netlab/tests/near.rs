//! A transport that exists only on one host is named in a JOIN, and offered, where both ends read
//! one clock, the address is a loopback one, and the dialer has found the listener. Two reactors
//! over UDP on this host; what is found is said by the test.

#![allow(clippy::unwrap_used)]

mod common;

use common::{config, offer};
use dacapo_base::{Address, Random, Tolerance};
use dacapo_core::{
    Code, Command, Core, CoreEvent, Done, Error, JoinRequest, Port, SessionProvider, SessionSpec,
};
use dacapo_netlab::{catalogue, plain_tls};
use dacapo_reactor::Reactor;
use dacapo_transport::Transport;
use dacapo_transport::entry::{Dial, Dialed, StreamCarrier, StreamListener};
use dacapo_transport::shm;
use dacapo_transport::udp::{self, Udp};
use dacapo_wire::session::FlowOffer;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Stops a hang; nothing else depends on it.
const WATCHDOG: Duration = Duration::from_secs(60);

/// Notes who joins, and refuses.
struct Notes(Arc<Mutex<Vec<JoinRequest>>>);

impl SessionProvider for Notes {
    fn offer(&mut self, joining: &JoinRequest, _: &[FlowOffer]) -> Result<Vec<FlowOffer>, Error> {
        self.0.lock().unwrap().push(joining.clone());
        Err(Error::new(Code::NotServed, "it was noted"))
    }

    fn open(&mut self, _: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        Err("nobody comes so far".to_owned())
    }
}

/// Keeps where it was asked to look, and finds or does not.
struct Looks {
    kept: Arc<Mutex<Vec<SocketAddr>>>,
    is_found: bool,
}

impl StreamCarrier for Looks {
    fn listen(&mut self, _: &[Address]) -> std::io::Result<StreamListener> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn dial(&mut self, _: Dial) -> Dialed {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn find(&mut self, remote: Address) -> bool {
        self.kept.lock().unwrap().push(remote.ip().unwrap());
        self.is_found
    }
}

fn reactor(seed: u64, boot: u8) -> Reactor {
    let mut random = Random::from_number(seed);
    let crypto = plain_tls::control_crypto(&mut random, None);
    let mut config = config();
    config.boot = [boot; 16];
    Reactor::new(Core::new(config, crypto, random, Instant::now())).unwrap()
}

/// The transports of who joins, as the creator's publisher sees them, and where the dialer looked.
fn joined(boots: [u8; 2], is_found: bool) -> (Vec<u16>, Vec<SocketAddr>, SocketAddr) {
    let mut creator = reactor(1, boots[0]);
    let udp = Udp::serve(&[([127, 0, 0, 1], 0).into()], &udp::Config::default()).unwrap();
    let address = udp.local_addrs()[0];
    creator.listen(Box::new(udp)).unwrap();
    let notes = Arc::new(Mutex::new(Vec::new()));
    let spec = SessionSpec {
        name: "test".into(),
        title: String::new(),
        flows: vec![offer("flow", &[])],
        participants_max: 1,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    creator.core().publish(spec, Box::new(Notes(Arc::clone(&notes)))).unwrap();
    let mut participant = reactor(2, boots[1]);
    let looks = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&looks);
    participant.set_stream_carrier(shm::SPEC.id, Box::new(Looks { kept, is_found }));
    let udp = Udp::dial(address.ip().unwrap(), &udp::Config::default()).unwrap();
    let peer = participant.connect(Box::new(udp), address).unwrap();
    let mut patience = Tolerance::new(Instant::now(), WATCHDOG);
    while notes.lock().unwrap().is_empty() {
        assert!(patience.lasts(Instant::now()), "nobody has joined");
        for reactor in [&mut creator, &mut participant] {
            reactor.turn(Duration::from_micros(200)).unwrap();
        }
        while let Some(event) = participant.poll_event() {
            if matches!(event, CoreEvent::PeerOpen { .. }) {
                let now = participant.now();
                participant
                    .core()
                    .handle_command(
                        now,
                        Command::Join { peer, name: "test".into(), params: Default::default() },
                    )
                    .and_then(Done::session)
                    .unwrap();
            }
        }
    }
    let joining = notes.lock().unwrap().remove(0);
    let looks = looks.lock().unwrap().clone();
    (joining.transports, looks, address.ip().unwrap())
}

#[test]
fn who_is_found_on_this_host_may_be_offered_what_only_one_host_has() {
    let (transports, looks, address) = joined([7, 7], true);
    let all: Vec<u16> = catalogue().transports().iter().map(|spec| spec.id).collect();
    assert_eq!(transports, all);
    assert_eq!(looks, [address], "it was looked for once, where it listens");
}

#[test]
fn who_is_not_found_or_reads_another_clock_is_not() {
    for (boots, is_found, looked) in [([7, 7], false, 1), ([7, 8], true, 0), ([0, 0], true, 0)] {
        let (transports, looks, _) = joined(boots, is_found);
        assert!(!transports.contains(&shm::SPEC.id), "{boots:?}: {transports:?}");
        assert!(transports.contains(&1), "the others are there: {transports:?}");
        assert_eq!(looks.len(), looked, "{boots:?}");
    }
}
