//! A member by itself: what waits for its stream, and its account.

use crate::error::{Code, Error};
use crate::fanout::{BACKLOG_BYTES_MAX, FanOutMember, Fed};
use crate::flow::tests::told;
use crate::flow::{FlowEvent, FlowOut};
use crate::ids::FanOutId;
use crate::ledger::UnitHash;
use dacapo_packet::{Packet, Pool};
use dacapo_wire::message::Message;
use dacapo_wire::session::Report;

/// A stretch of bytes of which 32 are the most that may wait.
const PIECE: usize = BACKLOG_BYTES_MAX / 32;

/// What was fed after units of these lengths.
fn fed(lens: &[usize]) -> Fed {
    let mut hash = UnitHash::default();
    for (number, len) in lens.iter().enumerate() {
        hash.add(number as u64, *len, [&vec![1; *len][..]].into_iter());
    }
    Fed { units: lens.len() as u64, bytes: lens.iter().sum::<usize>() as u64, hash: Some(hash) }
}

/// One that takes part after a unit of 10 bytes, as the flow 4 of its session.
fn member() -> FanOutMember {
    FanOutMember::new(FanOutId(7), 4, fed(&[10]))
}

/// One that was told its END after two more units, of 20 and 30 bytes.
fn ended() -> FanOutMember {
    let mut member = member();
    member.end(&fed(&[10, 20, 30]), None, &mut FlowOut::default());
    member
}

fn report(delivered: u64, lost: u64, hash: [u8; 32]) -> Report {
    Report { flow: 4, delivered, lost, hash, ..Report::default() }
}

/// The hash over what was fed since it took part.
fn hash() -> [u8; 32] {
    let before = fed(&[10]).hash.unwrap();
    fed(&[10, 20, 30]).hash.unwrap().minus(before).to_bytes()
}

fn piece(pool: &mut Pool, len: usize) -> Packet {
    pool.packet_from(0, &vec![0; len], 0).unwrap()
}

#[test]
fn so_much_waits_for_its_stream_and_what_is_more_comes_back() {
    let (mut pool, mut member) = (Pool::new(BACKLOG_BYTES_MAX * 4), member());
    assert!(!member.has_backlog() && member.pop().is_none());
    for _ in 0..32 {
        member.push(piece(&mut pool, PIECE)).expect("it is not full");
    }
    let refused = member.push(piece(&mut pool, 1)).expect_err("it is full");
    assert_eq!(refused.payload_len(), 1);
    pool.free(refused);
    let first = member.pop().unwrap();
    assert_eq!(first.payload_len(), PIECE);
    pool.free(first);
    member.push(piece(&mut pool, PIECE)).expect("what has left makes room");
    let refused = member.push(piece(&mut pool, 1)).expect_err("for as much, and no more");
    pool.free(refused);
    member.flush(&mut pool);
    assert!(!member.has_backlog(), "nothing waits");
    assert_eq!(pool.live_views(), 0);
    for _ in 0..32 {
        member.push(piece(&mut pool, PIECE)).expect("there is room for all again");
    }
    assert!(member.has_backlog());
}

#[test]
fn what_waits_for_its_stream_leaves_in_order() {
    let (mut pool, mut member) = (Pool::new(1 << 20), member());
    for len in [3, 5, 2] {
        member.push(piece(&mut pool, len)).unwrap();
    }
    let lens: Vec<usize> =
        std::iter::from_fn(|| member.pop()).map(|packet| packet.payload_len()).collect();
    assert_eq!((lens, member.has_backlog()), (vec![3, 5, 2], false));
}

#[test]
fn end_says_once_what_was_fed_since_it_takes_part() {
    let (mut member, mut out) = (member(), FlowOut::default());
    assert_eq!((member.fan_out(), member.base()), (FanOutId(7), 1));
    assert!(member.runs() && !member.is_reported());
    member.end(&fed(&[10, 20, 30]), None, &mut out);
    let Some(Message::End(end)) = out.messages.pop() else { panic!("{out:?}") };
    assert_eq!((end.flow, end.epoch, end.units, end.bytes), (4, 0, 2, 50));
    assert_eq!((end.code, end.text.as_str(), end.hash), (0, "", hash()));
    assert!(!member.runs() && !member.is_reported());
    member.end(&fed(&[10, 20, 30, 40]), None, &mut out);
    assert!(out.is_empty(), "it was said");
}

#[test]
fn end_says_why_a_member_gets_no_more() {
    let (mut member, mut out) = (member(), FlowOut::default());
    let error = Error::new(Code::NoDataPath, "its stream is gone");
    member.end(&Fed { hash: None, ..fed(&[10, 20]) }, Some(&error), &mut out);
    let Some(Message::End(end)) = out.messages.pop() else { panic!("{out:?}") };
    assert_eq!((end.units, end.bytes, end.hash), (1, 20, [0; 32]));
    assert_eq!((end.code, end.text), (Code::NoDataPath as u16, error.text));
}

#[test]
fn a_report_is_taken_after_end_when_it_adds_up() {
    let mut out = FlowOut::default();
    let early = member().handle_report(&report(0, 0, [0; 32]), &mut out);
    assert_eq!(early.unwrap_err(), "REPORT that no END has asked for");
    let mut member = ended();
    for (delivered, lost) in [(1, 0), (2, 1), (0, 0)] {
        let wrong = member.handle_report(&report(delivered, lost, hash()), &mut out);
        assert!(wrong.unwrap_err().contains("the 2 units"), "{delivered} and {lost}");
    }
    assert!(out.is_empty() && !member.is_reported(), "nothing of those is taken");
    assert_eq!(member.handle_report(&report(2, 0, hash()), &mut out), Ok(()));
    assert_eq!(told(&mut out), ["ended 2 of 2, hash Some(true)"]);
    assert!(member.is_reported() && !member.runs());
    assert!(member.handle_report(&report(2, 0, hash()), &mut out).is_err(), "it has come");
    assert!(out.is_empty());
}

#[test]
fn bytes_of_a_member_are_compared_only_where_all_its_units_came() {
    for (delivered, hash, expected) in [
        (2, [9; 32], "ended 2 of 2, hash Some(false)"),
        (1, [9; 32], "ended 1 of 2, hash None"),
        (1, hash(), "ended 1 of 2, hash None"),
    ] {
        let mut out = FlowOut::default();
        let report = report(delivered, 2 - delivered, hash);
        assert_eq!(ended().handle_report(&report, &mut out), Ok(()));
        assert_eq!(told(&mut out), [expected]);
    }
}

#[test]
fn of_a_member_that_is_given_up_what_nobody_can_say_is_unknown() {
    let all = fed(&[10, 20, 30, 40]);
    for (mut member, units) in [(member(), 3), (ended(), 2)] {
        let mut out = FlowOut::default();
        member.give_up(&all, &mut out);
        let ledger = match out.events.pop() {
            Some(FlowEvent::Ended { ledger, hash: None, failure: None }) => ledger,
            other => panic!("{other:?}"),
        };
        assert_eq!((ledger.sent, ledger.unknown, ledger.closes()), (units, units, true));
        assert!(member.is_reported());
        member.give_up(&all, &mut out);
        assert!(out.is_empty(), "it is told once");
    }
}
