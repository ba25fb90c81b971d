//! Further reactors of an endpoint, for peers that come when the first is full.
//!
//! Here one is full as soon as it is there, so that time decides nothing.

use crate::world::{TWO_WAY, serve, unit, uri, watched};
use dacapo::access::progress::Progress;
use dacapo::access::raw::{RawReceiver, RawSender};
use dacapo::host::{Host, HostConfig, loopback};
use dacapo::plan::{Assumptions, Plan};
use dacapo::{Creator, Endpoint, Session};
use dacapo_core::{Code, Error, JoinRequest, Port, SessionProvider};
use dacapo_security::Identity;
use dacapo_wire::session::{Direction, FlowOffer};
use std::num::{NonZeroU16, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An endpoint whose reactors are always full, or never, of which it has at most two.
pub fn endpoint(full_permille: u16) -> Endpoint {
    let reactors_max = NonZeroUsize::new(2).unwrap();
    let config = HostConfig { reactors_max, full_permille, ..HostConfig::default() };
    let host = Host::assemble(Identity::generate().unwrap(), config).unwrap();
    Endpoint::with_host(host).unwrap()
}

pub const ALWAYS: u16 = 0;
pub const NEVER: u16 = 1_001;

/// Echoes units until the flow ends.
fn echo(creator: &Creator) -> std::thread::JoinHandle<()> {
    let session = creator.accept().unwrap();
    std::thread::spawn(move || {
        while let Some(unit) = session.receiver("back").unwrap().recv().unwrap() {
            session.sender("there").unwrap().send(&unit).unwrap();
        }
        session.sender("there").unwrap().finish().unwrap();
    })
}

/// Sends units that come back, and ends the flow.
pub fn use_it(session: &Session) {
    session.activate().unwrap();
    for number in 0..200 {
        session.sender("back").unwrap().send(&unit(number)).unwrap();
        assert_eq!(session.receiver("there").unwrap().recv().unwrap(), Some(unit(number)));
    }
    session.sender("back").unwrap().finish().unwrap();
    assert_eq!(session.receiver("there").unwrap().recv().unwrap(), None);
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

/// A creator at an endpoint whose reactors are always full.
fn serve_full(session_file: &str) -> Creator {
    let creator = endpoint(ALWAYS).create(session_file).unwrap();
    creator.listen("127.0.0.1:0").unwrap();
    creator
}

/// The port that a session's other end is at.
fn port(session: &Session) -> u16 {
    session.remote().port().unwrap()
}

#[test]
fn who_joins_where_all_are_full_is_served_by_a_further_reactor() {
    watched(|| {
        let creator = serve_full(TWO_WAY);
        let known = creator.uri().unwrap().port;
        // It looks where those are served best who join next.
        assert!(creator.accept_timeout(Duration::ZERO).unwrap().is_none());
        let participant = endpoint(NEVER);
        let session = participant.connect(&uri(&creator)).unwrap();
        assert_ne!(port(&session), known);
        let echo = echo(&creator);
        use_it(&session);
        assert_eq!(participant.peer_count(), 1, "none is left where nobody is served");
        assert!(session.close().unwrap().is_complete());
        echo.join().unwrap();
    });
}

#[test]
fn who_waits_to_accept_is_told_of_all_who_join() {
    watched(|| {
        let creator = serve_full(TWO_WAY);
        let uri = uri(&creator);
        let accepting = creator.clone();
        let accepting =
            std::thread::spawn(move || (0..6).map(|_| echo(&accepting)).collect::<Vec<_>>());
        let participants: Vec<Endpoint> = (0..6).map(|_| endpoint(NEVER)).collect();
        for participant in &participants {
            let session = participant.connect(&uri).unwrap();
            use_it(&session);
            assert!(session.close().unwrap().is_complete());
        }
        for echo in accepting.join().unwrap() {
            echo.join().unwrap();
        }
        assert_eq!(creator.endpoint().counters().reactors, 2, "as many as it may have");
    });
}

#[test]
fn a_creator_that_goes_lets_those_go_who_wait_at_a_further_reactor() {
    watched(|| {
        let creator = serve_full(TWO_WAY);
        assert!(creator.accept_timeout(Duration::ZERO).unwrap().is_none());
        let uri = uri(&creator);
        let participant = endpoint(NEVER);
        let session = participant.connect(&uri).unwrap();
        assert_ne!(port(&session), creator.uri().unwrap().port);
        let stays = creator.endpoint().clone();
        drop(creator);
        // It is over at the other end, whatever is called.
        let error = session.receiver("there").and_then(|mut it| it.recv()).unwrap_err();
        assert!(matches!(error.code, Code::Closed | Code::NoSuchThing), "{error}");
        let error = participant.connect(&uri).unwrap_err();
        assert_eq!(error.code, Code::NotServed, "{error}");
        drop(stays);
    });
}

#[test]
fn a_session_for_so_many_or_with_a_group_is_served_by_one_reactor() {
    watched(|| {
        let bounded = TWO_WAY.replacen("digest = true", "attributes = { receivers = 3 }", 1);
        let groups = crate::groups::transports().map(|it| crate::groups::session_file(&it));
        for file in groups.iter().chain([&bounded]) {
            let creator = serve_full(file);
            assert!(creator.accept_timeout(Duration::ZERO).unwrap().is_none());
            let session = endpoint(NEVER).connect(&uri(&creator)).unwrap();
            assert_eq!(port(&session), creator.uri().unwrap().port);
            assert_eq!(creator.endpoint().counters().reactors, 1);
        }
    });
}

/// Serves a session, sends whoever follows to a port, and says who does.
struct Moved(u16);

impl SessionProvider for Moved {
    fn redirect(&mut self, _joining: &JoinRequest) -> Option<NonZeroU16> {
        NonZeroU16::new(self.0)
    }

    fn offer(
        &mut self,
        _joining: &JoinRequest,
        flows: &[FlowOffer],
    ) -> Result<Vec<FlowOffer>, Error> {
        Ok(flows.to_vec())
    }

    fn open(&mut self, flow: &FlowOffer, _joining: &JoinRequest) -> Result<Port, String> {
        Ok(match flow.direction {
            Direction::ToParticipant => Port::Source(Box::new(RawSender::pair().1)),
            Direction::ToCreator => Port::Sink(Box::new(RawReceiver::pair(Progress::new("")).1)),
        })
    }
}

#[test]
fn where_nobody_answers_at_the_other_port_it_is_joined_at_the_first() {
    watched(|| {
        // A port that was free just now.
        let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let plan = Plan::parse(TWO_WAY, "test", &Assumptions::default()).unwrap();
        let mut host = Host::with_identity(Identity::generate().unwrap()).unwrap();
        host.listen(&loopback(0)).unwrap();
        let at = host.listening()[0];
        host.reactor().core().publish(plan.spec(), Box::new(Moved(nobody.port()))).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let server = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                host.next_event(Duration::from_millis(20), &mut Vec::new()).unwrap();
            }
        });
        let session = endpoint(NEVER).connect(&format!("dacapo://{at}/two-way")).unwrap();
        assert_eq!(session.remote(), at);
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap();
    });
}
