//! Messages between hosts: lengths, modes, order, back-pressure, BURST and RATE.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::world::{PORT, World, bytes, to};
use dacapo_safenet::{Cause, Ending, Event, Mode, Outcome, SendError, Traffic};
use dacapo_xtp::End;
use dacapo_xtp::wire::{Code, Reason};
use std::time::Duration;

#[test]
fn messages_of_every_length_arrive_in_order() {
    let mut world = World::plain(2, |config| config);
    let lens = [0, 1, 11, 12, 13, 1_300, 1_400, 1_401, 0, 65_535, 65_536, 100_000, 0];
    let sent: Vec<Vec<u8>> = lens.iter().map(|len| bytes(*len, *len as u64)).collect();
    let send = |data: &Vec<u8>| world.send(0, to(1), Mode::Asynchronous, data.clone());
    let tickets: Vec<_> = sent.iter().map(send).collect();
    world.run_for(Duration::from_secs(5));
    assert!(world.nodes[1].messages() == sent);
    assert!(world.nodes[1].parts.iter().all(|part| part.is_whole()));
    for ticket in tickets {
        assert_eq!(world.outcome(0, ticket), Some(Outcome::Delivered));
    }
}

#[test]
fn a_long_message_comes_in_parts_and_is_delivered_with_the_last() {
    let mut world =
        World::plain(2, |config| dacapo_safenet::Config { part_len_max: 10_000, ..config });
    world.nodes[1].takes = false;
    let sent = bytes(1_000_005, 1);
    let ticket = world.send(0, to(1), Mode::Synchronous, sent.clone());
    for number in 0..101 {
        world.run_for(Duration::from_millis(20));
        assert_eq!(world.outcome(0, ticket), None, "part {number} is not the last");
        let part = world.nodes[1].service.get_message(world.now, PORT).unwrap();
        assert_eq!((part.len, part.offset), (1_000_005, number * 10_000));
        assert_eq!(part.ending == Ending::Last, number == 100);
        world.nodes[1].parts.push(part);
    }
    world.run_for(Duration::from_millis(20));
    assert_eq!(world.outcome(0, ticket), Some(Outcome::Delivered));
    assert!(world.nodes[1].messages() == [sent]);
}

#[test]
fn who_takes_nothing_holds_the_sender_up_until_there_is_room() {
    let mut world = World::plain(2, |config| dacapo_safenet::Config { messages_max: 8, ..config });
    world.nodes[1].takes = false;
    for number in 0..8 {
        world.send(0, to(1), Mode::Asynchronous, bytes(50_000, number));
    }
    world.run_for(Duration::from_secs(30));
    let refused = world.try_send(0, to(1), Mode::Asynchronous, vec![1]);
    assert!(matches!(refused, Err(SendError::Full { messages: 8, .. })));
    assert!(world.nodes[0].outcomes.is_empty() && world.nodes[0].events.is_empty());
    world.nodes[1].takes = true;
    world.run_for(Duration::from_secs(70));
    assert_eq!(world.nodes[1].messages().len(), 8);
    assert_eq!(world.nodes[0].outcomes.len(), 8);
    assert_eq!(world.nodes[0].events, [Event::Capacity(to(1))]);
    world.send(0, to(1), Mode::Asynchronous, vec![1]);
}

#[test]
fn room_is_told_once_and_not_before_what_was_refused_has_it() {
    let bound = |config| dacapo_safenet::Config { waiting_bytes_max: 1_000_000, ..config };
    let mut world = World::plain(2, bound);
    world.nodes[1].takes = false;
    world.send(0, to(1), Mode::Asynchronous, bytes(900_000, 1));
    for len in [300_000, 200_000] {
        let refused = world.try_send(0, to(1), Mode::Asynchronous, bytes(len, 2));
        assert!(matches!(refused, Err(SendError::Full { bytes: 1_000_000, .. })));
    }
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.nodes[0].events, [], "900,000 bytes still wait");
    world.send(0, to(1), Mode::Asynchronous, bytes(10, 3));
    world.nodes[1].takes = true;
    world.take(1);
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.nodes[0].events, [Event::Capacity(to(1))]);
    world.send(0, to(1), Mode::Asynchronous, bytes(200_000, 2));
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.nodes[0].events, [Event::Capacity(to(1))], "who was told is not told again");
    assert_eq!(world.nodes[1].messages().len(), 3);
}

#[test]
fn bytes_that_wait_are_bounded_but_not_the_length_of_a_message() {
    let bound = |config| dacapo_safenet::Config { waiting_bytes_max: 1_000, ..config };
    let mut world = World::plain(2, bound);
    world.send(0, to(1), Mode::Asynchronous, bytes(3 << 20, 1));
    let refused = world.try_send(0, to(1), Mode::Asynchronous, vec![1]);
    assert!(matches!(refused, Err(SendError::Full { bytes: 1_000, .. })));
    world.run_for(Duration::from_secs(30));
    assert!(world.nodes[1].messages() == [bytes(3 << 20, 1)]);
}

#[test]
fn a_synchronous_message_is_reported_at_once_and_asynchronous_ones_share_reports() {
    let mut world = World::plain(2, |config| config);
    let ticket = world.send(0, to(1), Mode::Synchronous, vec![1]);
    world.run_for(Duration::from_millis(2));
    assert_eq!(world.outcome(0, ticket), Some(Outcome::Delivered), "within one round trip");
    world.run_for(Duration::from_millis(100));
    let mut packets = [0, 0];
    for (count, mode) in packets.iter_mut().zip([Mode::Synchronous, Mode::Asynchronous]) {
        let before = world.nodes[1].packets;
        for number in 0..50 {
            world.send(0, to(1), mode, vec![number]);
        }
        world.run_for(Duration::from_secs(1));
        *count = world.nodes[1].packets - before;
    }
    assert_eq!(world.nodes[0].outcomes.len(), 101);
    assert!(packets[1] * 5 < packets[0], "reports and status: {packets:?} packets");
}

#[test]
fn rate_and_burst_hold_for_an_association_and_can_be_changed() {
    let mut world = World::plain(2, |config| config);
    let traffic = Traffic { rate: 1_500_000, burst: 10_000 };
    world.nodes[0].service.set_traffic(world.now, to(1), traffic).unwrap();
    for number in 0..100 {
        world.send(0, to(1), Mode::Asynchronous, bytes(10_000, number));
    }
    world.run_for(Duration::from_millis(333));
    let half = world.nodes[1].messages().len();
    // A burst is filled with whole packets, of which 8 do not always fit.
    assert!((42..=50).contains(&half), "{half} of 50 that 1.5 MB/s allow");
    world.nodes[0].service.set_traffic(world.now, to(1), Traffic::default()).unwrap();
    world.run_for(Duration::from_millis(50));
    assert_eq!(world.nodes[1].messages().len(), 100);
}

#[test]
fn nobody_listens_and_the_message_has_failed() {
    let mut world = World::plain(2, |config| config);
    world.nodes[1].service.unlisten(PORT);
    let ticket = world.send(0, to(1), Mode::Synchronous, vec![1; 9]);
    world.run_for(Duration::from_millis(10));
    let end = End::Refused(Code::CONTEXT_REFUSED, Reason::NO_LISTENER);
    let failed = Outcome::Failed(Cause::Ended(end));
    assert_eq!(world.outcome(0, ticket), Some(failed));
    assert!(failed.to_string().contains("failed"));
}

#[test]
fn an_answer_finds_its_way() {
    let mut world = World::plain(2, |config| config);
    world.send(0, to(1).with_priority(3), Mode::Synchronous, b"question".to_vec());
    world.run_for(Duration::from_millis(20));
    let answer = world.nodes[1].parts[0].answer().unwrap();
    assert_eq!(answer, to(0).with_priority(3));
    world.send(1, answer, Mode::Synchronous, b"answer".to_vec());
    world.run_for(Duration::from_millis(20));
    assert_eq!(world.nodes[0].messages(), [b"answer"]);
}

#[test]
fn an_end_that_nobody_hears_stops_the_sending() {
    let mut world = World::plain(2, |config| dacapo_safenet::Config { messages_max: 4, ..config });
    let now = world.now;
    let service = &mut world.nodes[0].service;
    for _ in 0..2 {
        service.send_message(now, to(1), Mode::Asynchronous, vec![1]).unwrap();
        service.send_message(now, to(1), Mode::Asynchronous, vec![1]).unwrap();
        service.abandon(now, to(1));
    }
    let refused = service.send_message(now, to(1), Mode::Asynchronous, vec![1]);
    assert_eq!(refused, Err(SendError::Unheard { count: 4 }));
    assert!(
        service.messages().sums().closes()
            && service.messages().sums().failed + service.messages().sums().unknown == 4
    );
    assert!(refused.unwrap_err().to_string().contains("poll"));
}

#[test]
fn a_service_that_is_closed_ends_every_message_and_tells_its_peers() {
    let mut world = World::plain(2, |config| config);
    world.nodes[1].takes = false;
    let tickets = [0; 3].map(|_| world.send(0, to(1), Mode::Asynchronous, vec![7; 100]));
    world.run_for(Duration::from_millis(50));
    let now = world.now;
    let part = world.nodes[1].service.get_message(now, PORT).unwrap();
    assert_eq!(part.data, [7; 100]);
    world.nodes[1].service.close(now);
    assert_eq!(world.nodes[1].service.get_message(now, PORT), None);
    // The second was there, and whole; the third was with XTP.
    let counters = world.nodes[1].service.messages().counters();
    assert_eq!((counters.taken, counters.untaken, counters.broken), (1, 1, 0));
    world.run_for(Duration::from_secs(5));
    let let_go = Outcome::Failed(Cause::LetGo(dacapo_safenet::LetGo::Closing));
    let outcomes = tickets.map(|ticket| world.outcome(0, ticket).unwrap());
    assert_eq!(outcomes, [Outcome::Delivered, let_go, let_go]);
    assert!(world.nodes[1].service.messages().is_quiet());
    let refused = world.try_send(1, to(0), Mode::Asynchronous, vec![1]);
    assert_eq!(refused, Err(SendError::Closed));
}

#[test]
fn bytes_are_left_unchecked_where_that_is_asked_and_there_only() {
    for without_check in [false, true] {
        let mut world =
            World::plain(2, |config| dacapo_safenet::Config { without_check, ..config });
        let now = world.now;
        let service = &mut world.nodes[0].service;
        service.send_message(now, to(1), Mode::Synchronous, bytes(10_000, 1)).unwrap();
        let mut packet = Vec::new();
        service.poll_packet(now, &mut packet).unwrap();
        // The option is the second bit of the word `cmd`.
        assert_eq!(packet[8] & 0x40 != 0, without_check);
        // Of what is not checked a flipped bit is not noticed.
        *packet.last_mut().unwrap() ^= 1;
        let sender = common::world::host(0);
        world.nodes[1].service.handle_packet(now, sender, &packet);
        let faulty: u64 = world.nodes[1].service.engine().counters().faulty.iter().sum();
        assert_eq!(faulty > 0, !without_check);
    }
}
