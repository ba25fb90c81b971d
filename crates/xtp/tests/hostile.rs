//! A peer that has been let in and lies: spans and numbers that cannot be. The unit loses nothing,
//! repeats no more than what was sent, and goes on when the peer says what is true again.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::uut::{Sent, Uut, bytes, stream};
use dacapo_base::Random;
use dacapo_xtp::wire::{Control, Format, Options};
use dacapo_xtp::{Config, End, Event};
use std::time::Duration;

/// What the unit has sent, and nobody has acknowledged.
const LEN: usize = 20_000;
const ALLOC: u64 = 60_000;

/// A unit that has sent everything that it was given.
fn sender() -> Uut {
    let mut uut = Uut::opening_in(Config::default(), &stream(), ALLOC);
    assert_eq!(uut.write(&bytes(LEN)), LEN);
    let sent = data_of(&uut.take());
    assert_eq!(sent.iter().map(|(_, data)| data.len()).sum::<usize>(), LEN);
    uut
}

/// Where each stretch of data begins, and its bytes; whatever is sent is what was written.
fn data_of(sent: &[Sent]) -> Vec<(u64, Vec<u8>)> {
    let all = bytes(2 * LEN);
    let data = sent.iter().filter(|sent| sent.format() == Format::Data && !sent.data().is_empty());
    let data = data.map(|sent| (sent.header().seq, sent.data().to_vec()));
    let data: Vec<(u64, Vec<u8>)> = data.collect();
    for (seq, data) in &data {
        let at = *seq as usize;
        assert!(all[at..at + data.len()] == *data, "other bytes at {seq}");
    }
    data
}

fn len_of(sent: &[Sent]) -> usize {
    data_of(sent).iter().map(|(_, data)| data.len()).sum()
}

/// The peer tells the truth: it has everything. The association comes to its end.
fn goes_on(uut: &mut Uut) {
    uut.engine.finish(uut.now, uut.id()).unwrap();
    for _ in 0..100 {
        let asks = uut.take().iter().map(|sent| sent.header().sync).max();
        if let Some(sync) = asks {
            uut.sync = uut.sync.wrapping_add(1);
            let control = Control { rseq: LEN as u64, alloc: ALLOC, echo: sync };
            uut.control(Options::RCLOSE | Options::WCLOSE, control);
        }
        if uut.events.contains(&Event::Ended(uut.id(), End::Complete)) {
            return;
        }
        uut.pass_to_deadline();
    }
    panic!("it does not come to its end: {:?}", uut.events);
}

#[test]
fn spans_that_cannot_be_repeat_nothing_twice_and_end_nothing() {
    let most = u64::MAX;
    let lists: [&[(u64, u64)]; 8] = [
        &[(3_000, 6_000), (5_000, 9_000)],
        &[(9_000, 12_000), (3_000, 6_000)],
        &[(6_000, 3_000)],
        &[(5_000, 5_000)],
        &[(0, most)],
        &[(most - 1, most)],
        &[(LEN as u64, LEN as u64 + 5_000)],
        &[(3_000, 4_000), (ALLOC, most)],
    ];
    for spans in lists {
        let mut uut = sender();
        let control = Control { rseq: 1_000, alloc: ALLOC, echo: 0 };
        uut.error_control(control, spans);
        let sent = uut.take();
        assert!(len_of(&sent) <= LEN - 1_000, "{spans:?}: {} bytes", len_of(&sent));
        let lacks_before = data_of(&sent).iter().all(|(seq, _)| *seq >= 1_000);
        assert!(lacks_before, "{spans:?}: what is acknowledged goes again");
        assert!(!uut.events.iter().any(|event| matches!(event, Event::Ended(..))), "{spans:?}");
        goes_on(&mut uut);
    }
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_not_believed() {
    for rseq in [LEN as u64 + 1, ALLOC, u64::MAX] {
        let mut uut = sender();
        uut.control(Options::NONE, Control { rseq, alloc: ALLOC, echo: 0 });
        uut.take();
        // What was written is still there: it goes again when it lacks.
        let control = Control { rseq: 0, alloc: ALLOC, echo: 0 };
        uut.error_control(control, &[(5_000, LEN as u64)]);
        let again = data_of(&uut.take());
        assert_eq!(again.iter().map(|(_, data)| data.len()).sum::<usize>(), 5_000, "{rseq}");
        goes_on(&mut uut);
    }
}

#[test]
fn numbers_that_go_back_change_nothing() {
    let mut uut = sender();
    uut.control(Options::NONE, Control { rseq: 10_000, alloc: 40_000, echo: 0 });
    uut.control(Options::NONE, Control { rseq: 2_000, alloc: 12_000, echo: 0 });
    let control = Control { rseq: 2_000, alloc: 12_000, echo: 0 };
    uut.error_control(control, &[(3_000, LEN as u64)]);
    let again = data_of(&uut.take());
    assert!(again.iter().all(|(seq, _)| *seq >= 10_000), "what is acknowledged goes again");
    let more = &bytes(2 * LEN)[LEN..];
    assert_eq!(uut.engine.write(uut.now, uut.id(), &dacapo_xtp::Message::part(more)).unwrap(), LEN);
    let sent: usize = data_of(&uut.take()).iter().map(|(_, data)| data.len()).sum();
    assert_eq!(sent, LEN, "the window that was given stays");
}

/// Any numbers, for some time: what is sent for each answer is no more than what is not
/// acknowledged, and no byte lies beyond the largest window.
#[test]
fn whatever_a_peer_says_what_it_gets_is_bounded() {
    for seed in 0..300 {
        let random = &mut Random::from_number(seed);
        let mut uut = sender();
        let wide = |random: &mut Random| match random.below(3) {
            0 => random.below(2 * LEN as u64),
            1 => random.next_u64() >> random.below(64),
            _ => u64::MAX - random.below(1_000),
        };
        for _ in 0..30 {
            let control = Control {
                rseq: random.below(LEN as u64 / 20),
                alloc: ALLOC - random.below(ALLOC),
                echo: random.next_u32() >> random.below(32),
            };
            let count = random.below(5) as usize;
            let spans: Vec<(u64, u64)> = (0..count).map(|_| (wide(random), wide(random))).collect();
            uut.error_control(control, &spans);
            let sent = uut.take();
            assert!(len_of(&sent) <= LEN, "seed {seed}: {} bytes", len_of(&sent));
            uut.pass(Duration::from_millis(random.below(20)));
            if uut.events.iter().any(|event| matches!(event, Event::Ended(..))) {
                break;
            }
        }
        if !uut.events.iter().any(|event| matches!(event, Event::Ended(..))) {
            goes_on(&mut uut);
        }
    }
}
