//! Further reactors of an endpoint, for peers that come when the first is full.
//!
//! Here one is full as soon as it is there, so that time decides nothing.

use crate::world::{TWO_WAY, serve, unit, uri, watched};
use dacapo::host::{Host, HostConfig};
use dacapo::{Endpoint, Session};
use dacapo_security::Identity;
use std::num::NonZeroUsize;

/// An endpoint whose reactors are always full, or never, of which it has at most two.
fn endpoint(full_permille: u16) -> Endpoint {
    let reactors_max = NonZeroUsize::new(2).unwrap();
    let config = HostConfig { reactors_max, full_permille, ..HostConfig::default() };
    let host = Host::assemble(Identity::generate().unwrap(), config).unwrap();
    Endpoint::with_host(host).unwrap()
}

const ALWAYS: u16 = 0;
const NEVER: u16 = 1_001;

/// Echoes units until the flow ends.
fn echo(creator: &dacapo::Creator) -> std::thread::JoinHandle<()> {
    let session = creator.accept().unwrap();
    std::thread::spawn(move || {
        while let Some(unit) = session.recv("back").unwrap() {
            session.send("there", &unit).unwrap();
        }
        session.finish("there").unwrap();
    })
}

/// Sends units that come back, and ends the flow.
fn use_it(session: &Session) {
    session.activate().unwrap();
    for number in 0..200 {
        session.send("back", &unit(number)).unwrap();
        assert_eq!(session.recv("there").unwrap(), Some(unit(number)));
    }
    session.finish("back").unwrap();
    assert_eq!(session.recv("there").unwrap(), None);
}

#[test]
fn a_new_peer_gets_a_further_reactor_when_all_are_full() {
    watched(|| {
        let creators = [serve(TWO_WAY), serve(TWO_WAY), serve(TWO_WAY)];
        let endpoint = endpoint(ALWAYS);
        let sessions = creators.each_ref().map(|creator| {
            let session = endpoint.connect(&uri(creator)).unwrap();
            (session, echo(creator))
        });
        assert_eq!(endpoint.counters().reactors, 2, "as many as it may have");
        assert_eq!(endpoint.peer_count(), 3);
        // Each is driven by its own thread of the application.
        let used = sessions.map(|(session, echo)| {
            let thread = std::thread::spawn(move || {
                use_it(&session);
                assert!(session.close().unwrap().is_complete());
            });
            (thread, echo)
        });
        for (thread, echo) in used {
            thread.join().unwrap();
            echo.join().unwrap();
        }
        let udp = endpoint.transport_stats().of("udp");
        assert!(udp.sent.bytes > 3 * 100_000, "those of all reactors: {udp:?}");
    });
}

#[test]
fn all_sessions_with_a_peer_are_at_one_reactor() {
    watched(|| {
        let (first, second) = (serve(TWO_WAY), serve(TWO_WAY));
        let endpoint = endpoint(ALWAYS);
        let at_first = endpoint.connect(&uri(&first)).unwrap();
        let at_second = endpoint.connect(&uri(&second)).unwrap();
        let again = [&first, &second, &second].map(|it| endpoint.connect(&uri(it)).unwrap());
        assert_eq!(endpoint.peer_count(), 2, "a connection for each peer");
        assert_eq!(endpoint.counters().reactors, 2);
        drop((at_first, at_second, again));
    });
}

#[test]
fn one_is_enough_while_it_is_not_full() {
    watched(|| {
        let creators = [serve(TWO_WAY), serve(TWO_WAY)];
        let endpoint = endpoint(NEVER);
        let sessions = creators.each_ref().map(|it| endpoint.connect(&uri(it)).unwrap());
        assert_eq!((endpoint.counters().reactors, endpoint.peer_count()), (1, 2));
        drop(sessions);
    });
}

#[test]
fn a_session_at_a_further_reactor_outlives_the_handle_of_its_endpoint() {
    watched(|| {
        let (first, second) = (serve(TWO_WAY), serve(TWO_WAY));
        let endpoint = endpoint(ALWAYS);
        let at_first = endpoint.connect(&uri(&first)).unwrap();
        let at_second = endpoint.connect(&uri(&second)).unwrap();
        let echo = echo(&second);
        drop((endpoint, at_first));
        use_it(&at_second);
        at_second.close().unwrap();
        echo.join().unwrap();
    });
}

#[test]
fn an_endpoint_does_not_connect_to_itself_by_a_further_reactor() {
    watched(|| {
        let other = serve(TWO_WAY);
        let endpoint = endpoint(ALWAYS);
        let own = endpoint.create(TWO_WAY).unwrap();
        own.listen("127.0.0.1:0").unwrap();
        let session = endpoint.connect(&uri(&other)).unwrap();
        let error = endpoint.connect(&uri(&own)).unwrap_err();
        assert!(error.text.contains("listens on"), "{error}");
        assert_eq!(endpoint.peer_count(), 1);
        drop(session);
    });
}
