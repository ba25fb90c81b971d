//! Messages over flows of every kind: lengths from nothing on, priorities, ends, and sums.

use crate::any_stream::over;
use crate::groups::{session_file, transports};
use crate::world::{TWO_WAY, active_pair, endpoint, pair, serve, uri, watched};
use dacapo::access::messages::{Cause, Ending, Outcome, PART_LEN_MAX, ROUTINE};
use dacapo::{Got, MessageReceiver, SendOutcome, Session};
use std::time::Duration;

/// The bytes of a message.
fn message(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + number + (at >> 8)) as u8).collect()
}

/// Gets a whole message, whose parts come one after the other.
fn get(receiver: &MessageReceiver) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        let part = receiver.get_message().unwrap()?;
        assert_eq!(part.offset, message.len() as u64);
        assert!(part.ending != Ending::Broken, "{part:?}");
        message.extend_from_slice(&part.data);
        if part.ending == Ending::Last {
            assert_eq!(part.len, message.len() as u64);
            return Some(message);
        }
        assert_eq!(part.data.len(), PART_LEN_MAX);
    }
}

/// Messages of all lengths, each of which is sent back.
fn check_echo(file: String, lens: &'static [usize]) {
    watched(move || {
        let (creator, participant) = active_pair(&file);
        let echo = std::thread::spawn(move || {
            let there = participant.message_receiver("there").unwrap();
            let back = participant.message_sender("back").unwrap();
            while let Some(message) = get(&there) {
                back.send_message_and_wait(ROUTINE, message).unwrap();
            }
            assert!(there.sums().closes() && there.sums().open == 0, "{:?}", there.sums());
            assert_eq!(there.sums().given, lens.len() as u64);
            back.finish().unwrap();
            participant.close().unwrap()
        });
        let there = creator.message_sender("there").unwrap();
        let back = creator.message_receiver("back").unwrap();
        for (number, len) in lens.iter().enumerate() {
            let ticket = there.send_message(ROUTINE, message(number, *len)).unwrap();
            assert_eq!(there.wait(ticket).unwrap(), Outcome::Sent);
            assert_eq!(get(&back), Some(message(number, *len)), "{len} bytes");
        }
        there.finish().unwrap();
        assert_eq!(get(&back), None);
        let sums = there.sums();
        assert!(sums.closes() && sums.sent == lens.len() as u64, "{sums:?}");
        for account in [creator.close().unwrap(), echo.join().unwrap()] {
            assert!(account.is_complete(), "{account}");
        }
        assert_eq!(there.sums(), sums, "it is known after the end too");
    });
}

/// Without a module that cuts, at most what a datagram takes; a message of several units.
const UNCUT_LENS: &[usize] = &[0, 1, 28, 1_400, 0, 5_000];

const LENS: &[usize] = &[0, 1, 28, 1_400, 0, 65_536, PART_LEN_MAX, 300_001, 5_000_000];

#[test]
fn messages_of_every_length_go_both_ways_over_every_stream() {
    for transport in ["tcp", "shm", "quic", "xtp"] {
        check_echo(over(transport), LENS);
    }
}

#[test]
fn messages_go_over_datagrams_that_are_segmented_and_such_as_are_not() {
    check_echo(TWO_WAY.to_owned(), &LENS[..6]);
    check_echo(TWO_WAY.replace("\"segment\", ", ""), UNCUT_LENS);
}

/// Two messages of a flow that waits, so that both are there when it takes them.
#[test]
fn the_more_urgent_message_goes_first_and_equals_in_order() {
    watched(|| {
        let (creator, participant) = active_pair(&over("tcp"));
        let receiver = participant.message_receiver("there").unwrap();
        let sender = creator.message_sender("there").unwrap();
        sender.send_message(ROUTINE, b"first".to_vec()).unwrap();
        assert_eq!(get(&receiver), Some(b"first".to_vec()));
        participant.deactivate().unwrap();
        for (priority, text) in [(9, "c"), (9, "d"), (1, "a"), (5, "b")] {
            sender.send_message(priority, text.into()).unwrap();
        }
        participant.activate().unwrap();
        let texts: Vec<_> = (0..4).map(|_| get(&receiver).unwrap()).collect();
        assert_eq!(texts, [b"a", b"b", b"c", b"d"]);
        assert_eq!(participant.message_receiver("there").unwrap().sums().given, 5);
    });
}

#[test]
fn a_reader_who_is_slow_holds_the_messages_of_a_stream_up_and_loses_nothing() {
    // More than all queues and sockets take.
    const LEN: usize = 100 << 20;
    watched(|| {
        let (creator, participant) = active_pair(&over("tcp"));
        let receiver = participant.message_receiver("there").unwrap();
        let sender = creator.message_sender("there").unwrap();
        let soon = Duration::from_millis(300);
        let ticket = sender.send_message(ROUTINE, message(1, LEN)).unwrap();
        assert_eq!(sender.wait_timeout(ticket, soon).unwrap(), None, "somebody keeps it all");
        let another = sender.try_send_message(ROUTINE, vec![1]).unwrap();
        assert_eq!(another, SendOutcome::Full(vec![1]));
        let again = sender.send_message_timeout(ROUTINE, vec![1], Duration::from_millis(1));
        assert_eq!(again.unwrap(), SendOutcome::Full(vec![1]));
        let urgent = sender.try_send_message(0, b"urgent".to_vec()).unwrap();
        let SendOutcome::Accepted(urgent) = urgent else { panic!("it is urgent") };
        let closes = std::thread::spawn(move || {
            sender.finish().unwrap();
            assert_eq!(sender.wait(urgent).unwrap(), Outcome::Sent);
            assert_eq!(sender.wait(ticket).unwrap(), Outcome::Sent);
            creator.close().unwrap()
        });
        let (mut long, mut others) = (Vec::new(), Vec::new());
        while let Some(part) = receiver.get_message().unwrap() {
            if part.priority == 0 {
                others.push((long.len(), part.data));
                continue;
            }
            assert_eq!(part.offset, long.len() as u64);
            long.extend_from_slice(&part.data);
        }
        assert!(long == message(1, LEN), "the message is another");
        assert!(matches!(others.as_slice(), [(at, data)] if *at < LEN && data == b"urgent"));
        assert!(closes.join().unwrap().is_complete());
    });
}

#[test]
fn what_waits_when_the_session_ends_has_failed_and_both_sums_close() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let receiver = participant.message_receiver("there").unwrap();
        let sender = creator.message_sender("there").unwrap();
        let sent = sender.send_message_and_wait(ROUTINE, b"sent".to_vec()).unwrap();
        assert_eq!(sent, Outcome::Sent);
        assert_eq!(get(&receiver), Some(b"sent".to_vec()));
        participant.deactivate().unwrap();
        let tickets: Vec<_> =
            (0..20).map(|_| sender.send_message(ROUTINE, vec![7; 50_000]).unwrap()).collect();
        let waits = std::thread::spawn({
            let (sender, last) = (sender.clone(), tickets[19]);
            move || sender.wait(last)
        });
        participant.close().unwrap();
        assert_eq!(waits.join().unwrap().unwrap(), Outcome::Failed(Cause::NotBegun));
        for ticket in tickets {
            assert_eq!(sender.outcome(ticket), Some(Outcome::Failed(Cause::NotBegun)));
        }
        let sums = sender.sums();
        assert!(sums.closes() && (sums.sent, sums.failed, sums.open) == (1, 20, 0), "{sums:?}");
        assert!(sender.send_message(ROUTINE, vec![1]).is_err());
        assert!(receiver.sums().closes());
        let account = creator.account();
        assert_eq!(account.flow("there").unwrap().not_sent, 20, "{account}");
        creator.close().unwrap();
    });
}

#[test]
fn what_is_no_message_is_dropped_and_counted() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let receiver = participant.message_receiver("there").unwrap();
        assert_eq!(receiver.try_get_message().unwrap(), Got::Nothing);
        for number in 0..10_u8 {
            creator.sender("there").unwrap().send(&vec![number; 10 * usize::from(number)]).unwrap();
        }
        creator.sender("there").unwrap().finish().unwrap();
        assert_eq!(receiver.get_message().unwrap(), None);
        let long = Duration::from_secs(24 * 3_600);
        assert_eq!(receiver.get_message_timeout(long).unwrap(), Got::End);
        let counters = receiver.counters();
        assert_eq!((counters.units, counters.malformed), (10, 10), "{counters:?}");
        assert_eq!(receiver.sums().begun, 0);
    });
}

fn text<T: std::fmt::Debug>(outcome: Result<T, dacapo::Error>) -> String {
    let error = outcome.unwrap_err();
    assert_eq!(error.code as u16, 101, "{error}");
    error.text
}

#[test]
fn a_flow_carries_messages_or_units_and_calls_say_which() {
    watched(|| {
        let (creator, participant) = pair(TWO_WAY);
        let unknown = text(participant.message_sender("their"));
        assert_eq!(unknown, "the session \"two-way\" has no flow \"their\"; it has there, back");
        assert!(text(participant.message_sender("there")).contains("is received by this end"));
        assert!(text(creator.message_receiver("there")).contains("is sent by this end"));
        let early = participant.message_sender("back").unwrap();
        let inactive = text(early.send_message(0, vec![1]));
        assert_eq!(inactive, "the session \"two-way\" is not active; call activate() first");
        participant.activate().unwrap();
        creator.activate().unwrap();
        let carries = "carries messages; use its MessageSender or MessageReceiver";
        assert_eq!(
            text(participant.sender("back").and_then(|mut it| it.send(b""))),
            format!("the flow \"back\" {carries}")
        );
        let _receiver = creator.message_receiver("back").unwrap();
        assert_eq!(
            text(creator.receiver("back").and_then(|mut it| it.recv())),
            format!("the flow \"back\" {carries}")
        );
        assert_eq!(
            text(creator.receiver("back").and_then(|mut it| it.try_recv())),
            format!("the flow \"back\" {carries}")
        );
        creator.sender("there").unwrap().send(b"a unit").unwrap();
        let units = text(creator.message_sender("there"));
        assert!(units.contains("units were sent by it already"), "{units}");
        early.finish().unwrap();
        let finished = "the flow \"back\" is finished; nothing follows";
        assert_eq!(text(early.send_message(0, vec![1])), finished);
        assert_eq!(text(participant.message_sender("back")), finished);
        participant.close().unwrap();
        assert!(text(early.send_message(0, vec![1])).contains("is closed"));
    });
    let short = over("tcp")
        .replace("source = { raw = true }", "source = { raw = true }\nunit_max = \"20 B\"");
    watched(move || {
        let (creator, _participant) = active_pair(&short);
        let short = text(creator.message_sender("there"));
        assert!(short.contains("20 bytes, and messages need 29"), "{short}");
    });
}

/// Whichever session a message is sent by, everybody gets it.
#[test]
fn a_message_to_a_group_reaches_all_who_take_part() {
    for transport in transports() {
        watched(move || {
            let creator = serve(&session_file(&transport));
            let all: Vec<(Session, Session)> = (0..3)
                .map(|_| {
                    let guest = endpoint().connect(&uri(&creator)).unwrap();
                    let session = creator.accept().unwrap();
                    guest.activate().unwrap();
                    session.activate().unwrap();
                    (session, guest)
                })
                .collect();
            let ends: Vec<_> = all
                .iter()
                .map(|(session, guest)| {
                    let sender = session.message_sender("news").unwrap();
                    (sender, guest.message_receiver("news").unwrap())
                })
                .collect();
            for round in 0..60 {
                let ticket =
                    ends[round % 3].0.send_message(ROUTINE, message(round, 600 * round)).unwrap();
                assert_eq!(ends[0].0.wait(ticket).unwrap(), Outcome::Sent);
                for (_, receiver) in &ends {
                    assert_eq!(get(receiver), Some(message(round, 600 * round)), "{round}");
                }
            }
            let refused = text(all[1].0.sender("news").and_then(|mut it| it.send(b"a unit")));
            assert!(refused.contains("carries messages"), "{refused}");
            ends.iter().for_each(|(sender, _)| sender.finish().unwrap());
            for (sender, receiver) in &ends {
                assert_eq!(get(receiver), None);
                assert!(sender.sums().closes() && sender.sums().sent == 60);
                assert!(receiver.sums().given == 60 && receiver.sums().closes());
            }
        });
    }
}

#[test]
fn a_ticket_of_another_sender_is_misuse() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let there = creator.message_sender("there").unwrap();
        let back = participant.message_sender("back").unwrap();
        let ticket = there.send_message(ROUTINE, b"there".to_vec()).unwrap();
        back.send_message_and_wait(ROUTINE, b"back".to_vec()).unwrap();
        assert_eq!(back.outcome(ticket), None);
        assert_eq!(text(back.wait(ticket)), "the ticket is not of the flow \"back\"");
        assert_eq!(there.wait(ticket).unwrap(), Outcome::Sent);
    });
}

/// As fast as the application writes, over a flow that may lose.
#[test]
fn over_a_flow_that_loses_every_message_is_given_or_reported() {
    const MESSAGES: usize = 2_000;
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let receiver = participant.message_receiver("there").unwrap();
        let reader = std::thread::spawn(move || {
            let mut partial = std::collections::BTreeMap::<u64, Vec<u8>>::new();
            while let Some(part) = receiver.get_message().unwrap() {
                let so_far = partial.entry(part.number).or_default();
                so_far.extend_from_slice(&part.data);
                if part.ending == Ending::Last {
                    let number = part.number as usize;
                    assert!(*so_far == message(number, number % 50 * 1_000), "{number}");
                }
            }
            assert!(receiver.sums().closes() && receiver.sums().open == 0);
            (receiver.sums(), receiver.counters())
        });
        let sender = creator.message_sender("there").unwrap();
        for number in 0..MESSAGES {
            sender.send_message(ROUTINE, message(number, number % 50 * 1_000)).unwrap();
        }
        sender.finish().unwrap();
        let (sums, counters) = reader.join().unwrap();
        assert_eq!(counters.malformed, 0, "{counters:?}");
        let account = creator.close().unwrap();
        let ledger = &account.flow("there").unwrap().ledger;
        assert!(ledger.closes(), "{account}");
        let known = sums.begun + counters.missed;
        assert!(sums.given > 0 && known <= MESSAGES as u64, "{sums:?} {counters:?}");
        // Of messages before the first and after the last of which something came, nobody knows;
        // each of them was one of the units that did not.
        let unknown = ledger.sent - ledger.delivered;
        assert!(known + unknown >= MESSAGES as u64, "{sums:?} {counters:?} {account}");
        assert_eq!(sender.sums().sent, MESSAGES as u64);
        println!("{sums:?} {counters:?}");
    });
}
