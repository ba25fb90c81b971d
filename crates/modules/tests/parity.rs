//! What `fec-rs` is for, over a wire that loses: of what is lost most is computed, nothing comes
//! twice; and what is predicted of it, against what happens.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::alone::near_in_nine_of_ten;
use common::{Loss, Losses, MS, Place, World, dropped, end, ms, once, scenes, sums, unit};
use dacapo_lift::conformance::End;
use dacapo_lift::{ControlError, DropReason, Params, Runner};
use dacapo_modules::parity::rs::{CONTROL_REPORT, NOTE_COMPUTED, SPEC};
use dacapo_wire::parity::{Header, LEN};

#[test]
fn of_five_percent_losses_hardly_any_remain_and_order_is_kept_by_what_stands_above() {
    let places: &[Place<'_>] = &[
        ("segment", &[]),
        ("sequence", &[(0, 80 * MS)]),
        ("fec-rs", &[(0, 10), (1, 4)]),
        ("checksum", &[]),
    ];
    // A packet in 4,000 is what a binomial gives, and a unit has up to three.
    scenes::hardly_any_remain(places, 0.05, 700);
}

#[test]
fn what_is_computed_is_what_was_sent_whatever_the_lengths() {
    scenes::most_come_as_they_were(&[("fec-rs", &[(0, 7), (1, 7), (2, 20 * MS)])], 970);
}

#[test]
fn it_stands_below_sequence_and_takes_order_away_and_nothing_else() {
    sums::it_takes_order_away(&SPEC);
}

fn params(sources: u64, parities: u64, span: u64) -> Params {
    let mut params = Params::new();
    [sources, parities, span].into_iter().zip(0..).for_each(|(value, at)| params.set(at, value));
    params
}

#[test]
fn as_much_is_lost_in_runs_as_is_predicted() {
    let further = [params(5, 1, 50 * MS), params(20, 4, 100 * MS), params(60, 6, 500 * MS)];
    sums::as_much_is_lost_as_is_predicted(&SPEC, u64::MAX, &further);
}

/// Paths, flows and blocks off the points that are proposed.
#[test]
fn what_is_predicted_is_near_in_nine_of_ten() {
    near_in_nine_of_ten(|seed| {
        let alone = sums::drawn(&SPEC, seed, |random| {
            let sources = 1 + random.below(60);
            let parities = 1 + random.below(sources.min(20));
            params(sources, parities, (5 + random.below(200)) * MS)
        });
        alone.near(None)
    });
}

#[test]
fn parities_are_as_far_apart_as_sources() {
    let mut end = end(&[("fec-rs", &[(0, 4), (1, 2)])], 1_000);
    let mut left = Vec::new();
    for number in 0..8 {
        assert!(end.feed(&unit(number, 20)));
        left.extend(end.wire().into_iter().map(|it| (end.now, it)));
        let next = end.now + ms(5);
        while let Some(due) = end.runner.next_deadline().filter(|due| *due < next) {
            end.now = due;
            end.fire();
            left.extend(end.wire().into_iter().map(|it| (end.now, it)));
        }
        end.now = next;
    }
    while let Some(due) = end.runner.next_deadline() {
        end.now = due;
        end.fire();
        left.extend(end.wire().into_iter().map(|it| (end.now, it)));
    }
    let headers = |(at, bytes): &(dacapo_base::Time, Vec<u8>)| {
        let header = Header::parse(bytes).unwrap();
        (at.as_nanos() / MS - 1, header.block, header.index)
    };
    let seen: Vec<_> = left.iter().map(headers).collect();
    // Of the first block nobody knows yet how far apart its sources are.
    let first = [(0, 0, 0), (5, 0, 1), (10, 0, 2), (15, 0, 3), (15, 0, 255), (15, 0, 254)];
    let second = [(20, 1, 0), (25, 1, 1), (30, 1, 2), (35, 1, 3), (40, 1, 255), (45, 1, 254)];
    assert_eq!(seen, [first, second].concat());
    end.flush();
}

/// Blocks that end early have more parities than sources.
#[test]
fn parities_never_pile_up_behind_those_of_the_block_before() {
    let mut end = end(&[("fec-rs", &[(0, 20), (1, 12), (2, 20 * MS)])], 1_000);
    for number in 0..400 {
        assert!(end.feed(&unit(number, 20)));
        let next = end.now + ms(5);
        while let Some(due) = end.runner.next_deadline().filter(|due| *due < next) {
            end.now = due;
            end.fire();
        }
        end.wire();
        end.now = next;
    }
    let last = end.now + end.runner.patience();
    while let Some(due) = end.runner.next_deadline() {
        assert!(due <= last, "parities leave {:?} too late", due.since(last));
        end.now = due;
        end.fire();
    }
    assert_eq!(dropped(&end, DropReason::Overflow), 0);
    end.wire();
    end.flush();
}

#[test]
fn a_train_is_numbered_and_summed_as_one_and_its_parities_leave_as_a_train() {
    let mut end = end(&[("segment", &[]), ("fec-rs", &[(0, 5), (1, 3)])], 20_000);
    assert!(end.feed(&unit(7, 14_000)));
    let sources = end.wire();
    let place = |bytes: &Vec<u8>| {
        let header = Header::parse(bytes).unwrap();
        (header.block, header.index, header.sources)
    };
    let expected: Vec<_> = (0..10).map(|at| (at / 5, (at % 5) as u8, 5)).collect();
    assert_eq!(sources.iter().map(place).collect::<Vec<_>>(), expected);
    end.fire();
    let trains: Vec<usize> = end
        .runner
        .take_down()
        .drain()
        .map(|it| (it.segment_count(), end.pool.free(it)).0)
        .collect();
    assert_eq!(trains, [3, 3]);
    end.flush();
}

#[test]
fn at_the_bound_parities_are_given_up_and_never_the_packets_themselves() {
    scenes::at_most_1024_wait(&[("fec-rs", &[(0, 1), (1, 1)])]);
}

#[test]
fn drain_ends_the_block_and_sends_its_parities_at_once() {
    let (mut a, mut b, came) = sums::drained(("fec-rs", &[(0, 100), (1, 2)]), 2);
    assert_eq!(came, [1, 2, 3, 4, 0, 5]);
    assert!(sums::shows(&b, NOTE_COMPUTED, 2), "{:?}", b.runner.notes());
    assert_eq!([SPEC.note_name(NOTE_COMPUTED), SPEC.note_name(7)], ["packets_computed", "7"]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn sizes_change_from_the_next_block_on_and_the_peer_need_not_be_told() {
    // One packet of each block is lost, whichever.
    let is_lost = |at, datagram: &[u8]| {
        let header = Header::parse(datagram).unwrap();
        at == 0 && header.index == (header.block % 4) as u8
    };
    let settings = |sent: u64| match sent % 7 {
        0 => vec![(1, 4 + sent % 9), (2, 1 + sent % 3)],
        _ => Vec::new(),
    };
    sums::parameters_change_while_it_runs(("fec-rs", &[(0, 4), (1, 1)]), is_lost, settings);
}

#[test]
fn parities_that_no_peer_makes_give_nothing_and_keep_nothing() {
    let mut b = end(&[("fec-rs", &[])], 1_000);
    let source = |index, sources, block| {
        let header = Header { block, index, sources, length: 3 };
        [&header.emit()[..], b"abc"].concat()
    };
    let parity = |index, sources, block, len: usize| {
        let header = Header { block, index, sources, length: 0xFFFF };
        [&header.emit()[..], &vec![0xFF; len]].concat()
    };
    // A parity that contradicts the one before it, or a source that contradicts it.
    let bytes = [source(0, 4, 0), parity(255, 2, 0, 3), parity(254, 3, 0, 3), source(2, 4, 0)];
    bytes.iter().for_each(|it| assert!(b.handle_bytes(it)));
    // Sums whose length is beyond the packet.
    let bytes = [source(0, 2, 1), parity(255, 2, 1, 3)];
    bytes.iter().for_each(|it| assert!(b.handle_bytes(it)));
    let units = b.units();
    assert!(units.iter().all(|unit| unit == b"abc"), "{units:?}");
    assert_eq!((units.len(), dropped(&b, DropReason::Malformed)), (3, 2));
    // Far ahead: nobody is believed alone.
    for times in 1..4 {
        assert!(b.handle_bytes(&source(0, 4, 1_000_000)));
        assert_eq!(
            (b.units().len(), dropped(&b, DropReason::Overflow)),
            (0, times),
            "nor by itself"
        );
    }
    assert!(b.handle_bytes(&source(1, 4, 1_000_000)));
    assert_eq!(b.units().len(), 1);
    assert!(b.handle_bytes(&source(1, 4, 3)));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Stale)), (0, 1));
    b.now += ms(3_000);
    b.fire();
    assert_eq!((b.pool.live_views(), b.runner.next_deadline()), (0, None));
    b.flush();
}

#[test]
fn without_memory_parities_are_given_up_and_counted() {
    scenes::without_memory_none_follows(&[("fec-rs", &[(0, 1), (1, 1)])], LEN);
}

/// The operating point for half a percent in runs of three, over paths that lose as much, a tenth
/// of it, and nothing.
#[test]
fn blocks_get_as_few_parities_as_the_path_needs_and_never_more_than_agreed() {
    let mut sent = Vec::new();
    for (seed, loss) in [0.005, 0.0005, 0.0].into_iter().enumerate() {
        let places: &[Place<'_>] = &[("fec-rs", &[(0, 32), (1, 14), (2, 80 * MS), (3, 100)])];
        let losses = Loss::Runs(Box::new(Losses::new(loss, 3.0, ms(2), seed as u64)));
        let mut world = World::new(places, losses, ms(0), seed as u64);
        let count = 100_000;
        world.run((0..count).map(|number| unit(number, 20)), ms(2));
        let lost = count - once(&world).len() as u64;
        // 100 of a million, and as many again for the chances.
        assert!(lost <= count / 5_000, "{loss}: {lost} of {count} lost");
        sent.push(world.sent[0] as f64 / count as f64);
        [&mut world.a, &mut world.b].into_iter().for_each(End::flush);
    }
    let most = 1.0 + 14.0 / 32.0;
    println!("times the packets: {sent:.3?}, {most:.3} agreed");
    let is_less = sent[1] < sent[0] - 0.03 && sent[2] < sent[1] - 0.2;
    assert!(sent[0] <= most + 0.01 && is_less, "{sent:.3?}");
}

#[test]
fn reports_that_no_receiver_makes_are_refused_and_change_nothing() {
    let mut a = end(&[("fec-rs", &[(0, 4), (1, 2), (3, 100)])], 1_000);
    let message = |len| [&[CONTROL_REPORT][..], &vec![0xFF; len]].concat();
    for len in [0, 15, 17] {
        let answer = a.with(|runner, around| runner.control(around, 0, &message(len)));
        assert_eq!(answer, Err(ControlError::Malformed));
    }
    // Everything was lost that there can be; and nothing, which leaves one parity.
    let report = |lost: u32| {
        let parts = [7, 1_000_000, lost, lost];
        let parts = parts.into_iter().flat_map(u32::to_be_bytes);
        std::iter::once(CONTROL_REPORT).chain(parts).collect::<Vec<u8>>()
    };
    for (lost, packets) in [(1_000_000, 6), (0, 5)] {
        for _ in 0..1_000 {
            let answer = a.with(|runner, around| runner.control(around, 0, &report(lost)));
            assert_eq!(answer, Ok(Vec::new()));
        }
        (0..4).for_each(|number| assert!(a.feed(&unit(number, 20))));
        a.with(Runner::drain);
        assert_eq!(a.wire().len(), packets, "{lost} of a million lost");
    }
    a.flush();
}
