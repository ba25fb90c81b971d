//! Flows to several participants from one source: who comes to a group that runs is a participant
//! like the first.

use crate::world::{endpoint, serve, unit, uri, watched};
use dacapo::{Account, Creator, Session};

/// Units that a participant takes part in before the next one comes.
const UNITS: usize = 40;

/// A session whose flow is sent once for all.
pub fn session_file(transport: &str) -> String {
    format!(
        "[session]\nname = \"news\"\n[[flow]]\nname = \"news\"\nfrom = \"creator\"\n\
         source = {{ raw = true }}\ndigest = true\n\
         {transport}\nbound = \"200 Mbit/s\"\n"
    )
}

/// To a group of its own, and over streams.
pub fn transports() -> [String; 2] {
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let graph = "graph = [\"segment\", \"sequence\", \"checksum\"]\ntransport =";
    let udp = format!("{graph} \"udp\"\nmulticast = \"239.255.79.3:{port}\"");
    [udp, format!("{graph} \"tcp-multicast\"")]
}

/// Somebody joins, is accepted and lets the flow run: the creator's end and the participant's.
fn join(creator: &Creator) -> (Session, Session) {
    let guest = endpoint().connect(&uri(creator)).unwrap();
    let session = creator.accept().unwrap();
    guest.activate().unwrap();
    session.activate().unwrap();
    (session, guest)
}

/// Sends units by one session; all who take part get each of them.
fn send(by: &Session, to: &[&Session], numbers: std::ops::Range<usize>) {
    for number in numbers {
        by.sender("news").unwrap().send(&unit(number)).unwrap();
        for guest in to {
            assert_eq!(
                guest.receiver("news").unwrap().recv().unwrap(),
                Some(unit(number)),
                "unit {number}"
            );
        }
    }
}

fn assert_whole(account: &Account, units: usize) {
    let flow = account.flow("news").unwrap();
    assert!(account.is_complete() && flow.ledger.closes(), "{account}");
    assert_eq!(flow.ledger.delivered, units as u64, "{account}");
    assert_eq!(flow.same_bytes, Some(true), "{account}");
}

#[test]
fn each_of_three_is_accepted_and_gets_every_unit_from_its_join_on() {
    for transport in transports() {
        watched(move || {
            let creator = serve(&session_file(&transport));
            let mut all: Vec<(Session, Session)> = Vec::new();
            for round in 0..3 {
                all.push(join(&creator));
                let guests: Vec<&Session> = all.iter().map(|(_, guest)| guest).collect();
                // Whichever session it is sent by, it is the same flow.
                send(&all[round].0, &guests, round * UNITS..(round + 1) * UNITS);
            }
            for (session, _) in &all {
                assert!(session.flows()[0].is_usable);
                session.sender("news").unwrap().finish().unwrap();
            }
            for (rounds, (session, guest)) in (1..=3).rev().zip(&all) {
                assert_eq!(guest.receiver("news").unwrap().recv().unwrap(), None);
                assert_whole(&session.close().unwrap(), rounds * UNITS);
                assert_whole(&guest.account(), rounds * UNITS);
            }
        });
    }
}

#[test]
fn who_came_first_leaves_and_the_others_are_sent_to() {
    for transport in transports() {
        watched(move || {
            let creator = serve(&session_file(&transport));
            let (first, first_guest) = join(&creator);
            let (second, second_guest) = join(&creator);
            send(&first, &[&first_guest, &second_guest], 0..UNITS);
            // All that was handed over goes out, and nothing that others hand over is waited for.
            first.sender("news").unwrap().send(&unit(UNITS)).unwrap();
            assert_whole(&first.close().unwrap(), UNITS + 1);
            assert_eq!(first_guest.receiver("news").unwrap().recv().unwrap(), Some(unit(UNITS)));
            assert_eq!(first_guest.receiver("news").unwrap().recv().unwrap(), None);
            assert_eq!(second_guest.receiver("news").unwrap().recv().unwrap(), Some(unit(UNITS)));
            send(&second, &[&second_guest], UNITS + 1..2 * UNITS);
            assert_whole(&second.close().unwrap(), 2 * UNITS);
            assert_eq!(second_guest.receiver("news").unwrap().recv().unwrap(), None);
        });
    }
}

#[test]
fn a_flow_ends_for_who_waits_to_be_accepted_too() {
    for transport in transports() {
        watched(move || {
            let creator = serve(&session_file(&transport));
            let (first, first_guest) = join(&creator);
            let (second, second_guest) = join(&creator);
            let waiting = endpoint().connect(&uri(&creator)).unwrap();
            send(&first, &[&first_guest, &second_guest], 0..UNITS);
            second.close().unwrap();
            send(&first, &[&first_guest], UNITS..2 * UNITS);
            first.sender("news").unwrap().finish().unwrap();
            assert_eq!(
                first_guest.receiver("news").unwrap().recv().unwrap(),
                None,
                "nobody else can end it"
            );
            assert_whole(&first.close().unwrap(), 2 * UNITS);
            waiting.activate().unwrap();
            while waiting.receiver("news").unwrap().recv().unwrap().is_some() {}
            // Who is accepted now finds that it has ended.
            let late = creator.accept().unwrap();
            assert!(
                late.sender("news")
                    .and_then(|mut it| it.send(b"more"))
                    .unwrap_err()
                    .text
                    .contains("is finished")
            );
            let account = late.close().unwrap();
            assert!(account.flow("news").unwrap().ledger.closes(), "{account}");
        });
    }
}

#[test]
fn who_waits_to_be_accepted_keeps_the_flow_when_the_others_leave() {
    for transport in transports() {
        watched(move || {
            let creator = serve(&session_file(&transport));
            let (first, first_guest) = join(&creator);
            let waiting = endpoint().connect(&uri(&creator)).unwrap();
            waiting.activate().unwrap();
            send(&first, &[&first_guest, &waiting], 0..UNITS);
            assert_whole(&first.close().unwrap(), UNITS);
            assert_eq!(first_guest.receiver("news").unwrap().recv().unwrap(), None);
            let late = creator.accept().unwrap();
            send(&late, &[&waiting], UNITS..2 * UNITS);
            late.sender("news").unwrap().finish().unwrap();
            assert_eq!(waiting.receiver("news").unwrap().recv().unwrap(), None);
            assert!(late.close().unwrap().is_complete());
        });
    }
}

#[test]
fn a_participant_that_goes_keeps_no_flow_of_the_others_from_ending() {
    for transport in transports() {
        watched(move || {
            let creator = serve(&session_file(&transport));
            let (first, first_guest) = join(&creator);
            let (second, second_guest) = join(&creator);
            send(&first, &[&first_guest, &second_guest], 0..UNITS);
            second.sender("news").unwrap().finish().unwrap();
            assert!(
                second
                    .sender("news")
                    .and_then(|mut it| it.send(b"more"))
                    .unwrap_err()
                    .text
                    .contains("is finished")
            );
            send(&first, &[&first_guest, &second_guest], UNITS..2 * UNITS);
            first_guest.close().unwrap();
            // The creator holds its end still; the flow has nobody left who would go on.
            assert_eq!(second_guest.receiver("news").unwrap().recv().unwrap(), None);
            assert!(first.sender("news").and_then(|mut it| it.send(b"more")).is_err());
            assert_whole(&second.close().unwrap(), 2 * UNITS);
        });
    }
}

#[test]
fn who_is_dropped_does_not_wait_until_a_long_queue_of_others_is_empty() {
    for transport in transports() {
        watched(move || {
            // What is handed over takes minutes at this rate.
            let slow = session_file(&transport).replace("200 Mbit/s", "100 kbit/s");
            let creator = serve(&slow);
            let (first, _guest) = join(&creator);
            let (second, _other) = join(&creator);
            let mut sender = first.sender("news").unwrap();
            for number in 0..200 {
                assert!(sender.try_send(&[number; 10_000]).unwrap());
            }
            drop(sender);
            drop(first);
            let account = second.account();
            let flow = account.flow("news").unwrap();
            assert!(flow.ledger.sent < 200, "it has waited for all: {account}");
        });
    }
}
