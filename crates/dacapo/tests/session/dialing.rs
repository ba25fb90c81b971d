//! Endpoints that connect where nothing listens, or not yet.

use crate::world::{TWO_WAY, endpoint, watched};
use dacapo::host::Host;
use dacapo::{Code, Join};
use dacapo_core::CoreEvent;
use dacapo_security::Identity;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Far less than the ten seconds that silence takes, and far more than a refusal does.
const SOON: Duration = Duration::from_secs(5);

/// An address that was free a moment ago; its taker would have to be quick.
fn nobody() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn where_nothing_listens_on_this_host_that_is_said_at_once() {
    watched(|| {
        let at = nobody();
        let began = Instant::now();
        let error = endpoint().connect(&format!("dacapo://{at}/two-way")).unwrap_err();
        assert_eq!(error.code, Code::NotListening, "{error}");
        assert!(error.text.contains(&at.to_string()), "{error}");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    });
}

#[test]
fn who_waits_finds_a_creator_that_begins_to_listen_later() {
    watched(|| {
        let at = nobody();
        let uri = format!("dacapo://{at}/two-way");
        let how = Join::new().wait(SOON * 12);
        let (uri_of_another, same) = (uri.clone(), how.clone());
        let here = endpoint();
        let there = here.clone();
        // Both wait for one connection.
        let other = std::thread::spawn(move || there.join(&uri_of_another, &same).unwrap());
        let late = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(2));
            let creator = endpoint().create(TWO_WAY).unwrap();
            creator.listen(&at.to_string()).unwrap();
            creator.accept().unwrap().close().unwrap();
            creator.accept().unwrap().close().unwrap();
        });
        here.join(&uri, &how).unwrap();
        other.join().unwrap();
        late.join().unwrap();
    });
}

/// Connects, and why that came to nothing.
fn why_not(host: &mut Host, at: SocketAddr) -> Code {
    let peer = host.connect(at.into()).unwrap();
    loop {
        let event = host.next_event(SOON, &mut Vec::new()).unwrap();
        if let Some(CoreEvent::PeerLost { peer: lost, error }) = event {
            assert_eq!(lost, peer);
            return error.code;
        }
    }
}

#[test]
fn who_tries_again_and_again_is_answered_each_time_and_holds_no_sockets() {
    watched(|| {
        let mut host = Host::with_identity(Identity::generate().unwrap()).unwrap();
        let at = nobody();
        for _ in 0..20 {
            assert_eq!(why_not(&mut host, at), Code::NotListening);
        }
        // What was said last lingers for a second.
        let is_one = |host: &mut Host| host.reactor().transport_count() <= 1;
        for _ in 0..200 {
            if is_one(&mut host) {
                break;
            }
            host.next_event(Duration::from_millis(50), &mut Vec::new()).unwrap();
        }
        assert!(is_one(&mut host), "{} are left", host.reactor().transport_count());
    });
}
