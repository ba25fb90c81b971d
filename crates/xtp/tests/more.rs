//! What does not fill a packet waits for more that was announced, and not for ever.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::uut::{Uut, bytes, stream};
use dacapo_xtp::wire::{Control, Options};
use dacapo_xtp::{Config, Message};
use std::time::Duration;

const HOLD: Duration = Duration::from_millis(5);
/// What a packet carries.
const FULL: usize = 1_000;

fn opened(alloc: u64) -> Uut {
    let config = Config { packet_len_max: FULL + 32, ..Config::default() };
    Uut::opening_in(config, &stream(), alloc)
}

fn write_more(uut: &mut Uut, data: &[u8]) {
    let message = Message { has_more: true, ..Message::part(data) };
    assert_eq!(uut.engine.write(uut.now, uut.id(), &message).unwrap(), data.len());
}

/// The lengths of the packets that leave now, and whether the last asks for status.
fn leaves(uut: &mut Uut) -> (Vec<usize>, bool) {
    let sent = uut.take();
    let asks = sent.last().is_some_and(|sent| sent.has(Options::SREQ));
    (sent.iter().map(|sent| sent.data().len()).collect(), asks)
}

#[test]
fn packets_are_full_while_more_comes_and_the_last_asks_for_status() {
    let (mut uut, data) = (opened(1 << 20), bytes(4_200));
    let mut all = Vec::new();
    for (piece, count) in [(0..1_600, 1), (1_600..3_200, 2)] {
        write_more(&mut uut, &data[piece]);
        let sent = uut.take();
        assert_eq!(sent.len(), count);
        assert!(sent.iter().all(|sent| !sent.has(Options::SREQ)), "more comes: {sent:?}");
        all.extend(sent);
    }
    assert_eq!(uut.write(&data[3_200..]), 1_000);
    all.extend(uut.take());
    let lens: Vec<usize> = all.iter().map(|sent| sent.data().len()).collect();
    assert_eq!(lens, [FULL, FULL, FULL, FULL, 200]);
    assert!(all[4].has(Options::SREQ), "{:?}", all[4]);
    assert!(all.iter().flat_map(|sent| sent.data()).eq(&data));
}

#[test]
fn what_was_announced_and_does_not_come_is_waited_for_5_ms() {
    let mut uut = opened(1 << 20);
    write_more(&mut uut, &bytes(1_700));
    assert_eq!(leaves(&mut uut), (vec![FULL], false));
    assert!(uut.engine.deadline() <= uut.now + HOLD);
    uut.pass(HOLD - Duration::from_micros(1));
    uut.silent();
    uut.pass(Duration::from_micros(1));
    assert_eq!(leaves(&mut uut), (vec![700], true));
}

#[test]
fn an_end_of_any_kind_lets_it_go_at_once() {
    let whole = |uut: &mut Uut| {
        let message = Message { has_more: true, ..Message::whole(&[1; 10]) };
        assert_eq!(uut.engine.write(uut.now, uut.id(), &message).unwrap(), 10);
    };
    let asked = |uut: &mut Uut| {
        let message = Message { has_more: true, asks_delivery: true, ..Message::part(&[1; 10]) };
        assert_eq!(uut.engine.write(uut.now, uut.id(), &message).unwrap(), 10);
    };
    let finished = |uut: &mut Uut| {
        write_more(uut, &[1; 10]);
        uut.engine.finish(uut.now, uut.id()).unwrap();
    };
    for end in [whole, asked, finished] {
        let mut uut = opened(1 << 20);
        write_more(&mut uut, &[7; 300]);
        uut.silent();
        end(&mut uut);
        let (lens, _) = leaves(&mut uut);
        assert_eq!(lens, [310]);
    }
}

/// The end of a message that lies before what waits is not held up by it.
#[test]
fn a_message_that_has_ended_does_not_wait_for_the_next() {
    let mut uut = opened(1 << 20);
    assert_eq!(uut.engine.write(uut.now, uut.id(), &Message::whole(&[1; 200])).unwrap(), 200);
    write_more(&mut uut, &[2; 300]);
    assert_eq!(leaves(&mut uut), (vec![200], false));
}

/// A window that cuts a packet short is filled: what waits then is room, not more.
#[test]
fn a_window_is_used_to_its_end_and_what_lacks_goes_again() {
    let mut uut = opened(1_300);
    write_more(&mut uut, &bytes(1_900));
    let sent = uut.take();
    assert_eq!(sent.iter().map(|sent| sent.data().len()).collect::<Vec<_>>(), [FULL, 300]);
    assert!(sent[1].has(Options::SREQ));
    let lacks_all = Control { rseq: 0, alloc: 1 << 20, echo: sent[1].header().sync };
    uut.pass(Duration::from_millis(1));
    uut.error_control(lacks_all, &[]);
    let (lens, _) = leaves(&mut uut);
    assert_eq!(lens, [FULL, 300], "again; the 600 bytes behind wait");
}

/// Bytes one by one, each of them with more announced before the 5 ms of the one before are over.
#[test]
fn no_byte_waits_longer_however_often_more_is_announced() {
    let mut uut = opened(1 << 20);
    let (mut written, mut left) = (Vec::new(), 0);
    // Every request is answered at once.
    let send = |uut: &mut Uut, left: &mut usize| {
        for sent in uut.take() {
            *left += sent.data().len();
            if sent.has(Options::SREQ) {
                let echo = sent.header().sync;
                uut.control(Options::NONE, Control { rseq: *left as u64, alloc: 1 << 20, echo });
            }
        }
    };
    for _ in 0..300 {
        written.push(uut.now);
        write_more(&mut uut, &[1]);
        send(&mut uut, &mut left);
        let next = uut.now + Duration::from_millis(4);
        while uut.engine.deadline() <= next {
            uut.pass_to_deadline();
            send(&mut uut, &mut left);
        }
        uut.pass(next.since(uut.now));
        let oldest = written.get(left).copied().unwrap_or(uut.now);
        assert!(uut.now.since(oldest) <= HOLD, "{:?}", uut.now.since(oldest));
    }
    assert!(left >= 298, "{left}");
}

/// What was let go, or written without an announcement, is held by none that follows.
#[test]
fn what_waits_no_longer_is_not_held_again() {
    let mut uut = opened(1 << 20);
    write_more(&mut uut, &[1; 100]);
    uut.silent();
    uut.pass(HOLD);
    write_more(&mut uut, &[2; 100]);
    assert_eq!(leaves(&mut uut), (vec![200], true));
    assert_eq!(uut.write(&[3; 100]), 100);
    write_more(&mut uut, &[4; 100]);
    assert_eq!(leaves(&mut uut), (vec![200], true));
    write_more(&mut uut, &[5; 100]);
    uut.silent();
}
