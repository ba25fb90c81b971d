//! Units: equal, in order, with their boundaries, both ways, many at a time.

use crate::world::{TWO_WAY, WINDOW, active_pair, endpoint, serve, unit, uri, watched};
use dacapo::{Deadline, Received, Session};
use std::time::Duration;

const UNITS: usize = 10_000;

#[test]
fn ten_thousand_units_go_both_ways_equal_and_in_order() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let echo = std::thread::spawn(move || {
            while let Some(unit) = participant.receiver("there").unwrap().recv().unwrap() {
                participant.sender("back").unwrap().send(&unit).unwrap();
            }
            participant.sender("back").unwrap().finish().unwrap();
            participant.close().unwrap()
        });
        for number in 0..UNITS + WINDOW {
            if number < UNITS {
                creator.sender("there").unwrap().send(&unit(number)).unwrap();
            }
            if let Some(number) = number.checked_sub(WINDOW) {
                assert_eq!(
                    creator.receiver("back").unwrap().recv().unwrap(),
                    Some(unit(number)),
                    "unit {number}"
                );
            }
        }
        creator.sender("there").unwrap().finish().unwrap();
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap(), None);
        let (here, there) = (creator.close().unwrap(), echo.join().unwrap());
        for account in [here, there] {
            assert!(account.is_complete(), "{account}");
            for flow in &account.flows {
                assert_eq!(flow.ledger.delivered, UNITS as u64);
                assert_eq!(flow.same_bytes, Some(true), "{flow}");
            }
        }
    });
}

#[test]
fn empty_units_and_the_largest_arrive_with_their_boundaries() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let most = creator.flows()[0].unit_len_max;
        for len in [0, 1, 0, most, 0] {
            creator.sender("there").unwrap().send(&vec![7; len]).unwrap();
            let unit = participant.receiver("there").unwrap().recv().unwrap().unwrap();
            assert!(unit.len() == len && unit.iter().all(|&byte| byte == 7), "{len}");
        }
        assert_eq!(participant.receiver("there").unwrap().try_recv().unwrap(), Received::Nothing);
    });
}

#[test]
fn memory_that_is_given_back_carries_later_units_and_changes_none_of_them() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let mut places = std::collections::BTreeSet::new();
        let mut others = Vec::new();
        for number in 0..200 {
            creator.sender("there").unwrap().send(&unit(2_900 + number % 7)).unwrap();
            let received = participant.receiver("there").unwrap().recv().unwrap().unwrap();
            assert_eq!(received, unit(2_900 + number % 7), "unit {number}");
            places.insert(received.as_ptr() as usize);
            let len = received.capacity();
            participant.receiver("there").unwrap().give_back(received);
            // What is free somebody else takes.
            others.push(Vec::<u8>::with_capacity(len));
        }
        // A longer unit moves it.
        assert!(places.len() < 20, "{} places", places.len());
        assert!(participant.receiver("no such flow").is_err());
        let modules = participant.measured("there").unwrap().modules;
        let names: Vec<&str> = modules.iter().map(|it| it.name).collect();
        assert_eq!(names, ["segment", "sequence", "checksum"]);
        // The first batch is timed, and then one in some.
        for up in modules.iter().map(|it| it.counters.up) {
            let is_timed = (1..=up.packets).contains(&up.timed_packets);
            assert!(up.packets >= 200 && is_timed && up.timed_ns > 0, "{up:?}");
        }
        assert!(participant.measured("no such flow").is_none());
        let account = creator.close().unwrap();
        let modules = &account.flow("there").unwrap().modules;
        assert!(modules.iter().all(|it| it.counters.down.packets >= 200), "{modules:?}");
    });
}

#[test]
fn what_is_known_of_the_path_is_what_carries_the_flow_has_measured() {
    watched(|| {
        let below = ["tcp", "quic", "xtp"].map(|transport| (transport, "below"));
        for (transport, controller) in below.into_iter().chain([("udp", "reserved")]) {
            let text = TWO_WAY.replace("\"udp\"", &format!("{transport:?}"));
            let (creator, participant) = active_pair(&text);
            for number in 0..200 {
                creator.sender("there").unwrap().send(&unit(number)).unwrap();
                let come = participant.receiver("there").unwrap().recv().unwrap();
                assert_eq!(come, Some(unit(number)), "{transport}: unit {number}");
            }
            let path = creator.measured("there").unwrap().path;
            assert_eq!(path.controller, controller, "{transport}");
            assert!(path.rtt.is_some_and(|rtt| !rtt.is_zero()), "{transport}: {path:?}");
            let window = path.estimates.window_bytes.is_some_and(|it| it > 1_000);
            let loss = path.estimates.loss_ppm.is_some_and(|it| it < 1_000_000);
            // XTP says no more than the round trip.
            let is_known = ["tcp", "quic"].contains(&transport);
            assert_eq!([window, loss], [is_known; 2], "{transport}: {path:?}");
        }
    });
}

/// Sends a unit and waits for the same one back.
fn ask(session: &Session, text: &str) {
    session.sender("back").unwrap().send(text.as_bytes()).unwrap();
    assert_eq!(session.receiver("there").unwrap().recv().unwrap().unwrap(), text.as_bytes());
}

#[test]
fn each_of_several_participants_gets_its_own_units() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let uri = uri(&creator);
        let server = std::thread::spawn(move || {
            let serve = |session: Session| {
                while let Some(unit) = session.receiver("back").unwrap().recv().unwrap() {
                    session.sender("there").unwrap().send(&unit).unwrap();
                }
                session.close().unwrap()
            };
            let threads: Vec<_> = (0..5)
                .map(|_| {
                    let session = creator.accept().unwrap();
                    std::thread::spawn(move || serve(session))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        // Four at endpoints of their own, two of them over one connection.
        let endpoints: Vec<_> = (0..4).map(|_| endpoint()).collect();
        let at = [0, 1, 2, 3, 3].map(|index: usize| endpoints[index].connect(&uri).unwrap());
        assert_eq!(endpoints[3].peer_count(), 1);
        at.iter().for_each(|session| session.activate().unwrap());
        for round in 0..100 {
            for (index, session) in at.iter().enumerate() {
                ask(session, &format!("{round} of {index}"));
            }
        }
        for session in at {
            session.sender("back").unwrap().finish().unwrap();
            let account = session.close().unwrap();
            assert!(account.is_complete(), "{account}");
        }
        for account in server.join().unwrap() {
            assert!(account.is_complete() && account.flows[0].ledger.sent == 100, "{account}");
        }
    });
}

#[test]
fn participants_that_join_at_once_are_not_confused() {
    watched(|| {
        let creator = serve(TWO_WAY);
        let uri = uri(&creator);
        let join = |uri: String| {
            let endpoint = endpoint();
            let sessions = [(); 3].map(|()| endpoint.connect(&uri).unwrap());
            for session in &sessions {
                session.activate().unwrap();
                ask(session, &endpoint.fingerprint().to_string());
            }
        };
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let uri = uri.clone();
                std::thread::spawn(move || join(uri))
            })
            .collect();
        for _ in 0..24 {
            let session = creator.accept().unwrap();
            std::thread::spawn(move || {
                let unit = session.receiver("back").unwrap().recv().unwrap().unwrap();
                let peer = session.peer_fingerprint().unwrap().to_string();
                assert_eq!(String::from_utf8_lossy(&unit), peer);
                session.sender("there").unwrap().send(&unit).unwrap();
                assert_eq!(session.receiver("back").unwrap().recv().unwrap(), None);
            });
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_call_with_a_timeout_says_that_nothing_came_and_takes_nothing_from_a_full_queue() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let soon = Duration::from_millis(1);
        assert_eq!(
            participant.receiver("there").unwrap().recv_by(Deadline::after(soon)).unwrap(),
            Received::Nothing
        );
        participant.deactivate().unwrap();
        let mut handed = 0;
        while creator
            .sender("there")
            .unwrap()
            .send_by(&unit(handed), Deadline::after(soon))
            .unwrap()
        {
            handed += 1;
        }
        assert_eq!(handed, dacapo::access::raw::UNITS_MAX);
        participant.activate().unwrap();
        for number in 0..handed {
            assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), Some(unit(number)));
        }
        creator.sender("there").unwrap().send(b"last").unwrap();
        // Longer than the watchdog waits.
        let long = Duration::from_secs(24 * 3_600);
        let last = participant.receiver("there").unwrap().recv_by(Deadline::after(long)).unwrap();
        assert_eq!(last, Received::Unit(b"last".to_vec()));
        creator.sender("there").unwrap().finish().unwrap();
        assert_eq!(
            participant.receiver("there").unwrap().recv_by(Deadline::after(long)).unwrap(),
            Received::End
        );
    });
}

/// A flow that asks for no loss, so that it goes over a stream.
const RELIABLE: &str = r#"
[session]
name = "reliable"

[[flow]]
name = "there"
from = "creator"
source = { raw = true }
unit_max = "32 KiB"
attributes = { loss = "0", order = "ordered" }
"#;

#[test]
fn a_reader_who_is_slow_holds_a_reliable_flow_up_and_loses_nothing() {
    check_slow_reader(RELIABLE, "shm");
    let over_a_path = RELIABLE.replacen("\n[[", "\n[path]\nassume = \"loopback\"\n\n[[", 1);
    check_slow_reader(&over_a_path, "tcp");
    // What is hashed does not leave from where it lies.
    check_slow_reader(&over_a_path.replace("unit_max", "digest = true\nunit_max"), "tcp");
    // A module keeps what is sent, and sends again what finds no room.
    let pinned = over_a_path
        .replace("unit_max", "graph = [\"segment\", \"arq-sr\"]\ntransport = \"udp\"\nunit_max");
    check_slow_reader(&pinned, "udp");
    let secret = "confidentiality = \"required\", loss";
    check_slow_reader(&RELIABLE.replacen("loss", secret, 1), "quic");
}

fn check_slow_reader(file: &str, transport: &'static str) {
    // More than queues and sockets take, by far.
    const MANY: usize = 8_000;
    let file = file.to_owned();
    watched(move || {
        let (creator, participant) = active_pair(&file);
        let info = participant.flows().remove(0);
        assert!(info.is_held_up && info.transport == transport, "{info}");
        let body = |number: usize| {
            let mut unit = vec![number as u8; 32 << 10];
            unit[..8].copy_from_slice(&(number as u64).to_be_bytes());
            unit
        };
        let soon = Duration::from_millis(300);
        let mut handed = 0;
        while handed < MANY
            && creator
                .sender("there")
                .unwrap()
                .send_by(&body(handed), Deadline::after(soon))
                .unwrap()
        {
            handed += 1;
        }
        assert!(handed < MANY, "somebody keeps {MANY} units of 32 KiB that nobody reads");
        let reader = std::thread::spawn(move || {
            for number in 0..handed {
                assert_eq!(
                    participant.receiver("there").unwrap().recv().unwrap(),
                    Some(body(number)),
                    "{number}"
                );
            }
            assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), None);
        });
        creator.sender("there").unwrap().finish().unwrap();
        reader.join().unwrap();
        let account = creator.close().unwrap();
        assert!(account.is_complete(), "{account}");
        assert_eq!(account.flows[0].ledger.delivered, handed as u64, "{account}");
    });
}
