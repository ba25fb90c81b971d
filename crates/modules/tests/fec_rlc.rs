//! What `fec-rlc` is for, over a wire that loses: of what is lost most is computed, nothing comes
//! twice; and what is predicted of it, against what happens.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::alone::near_in_nine_of_ten;
use common::sums::{self, source, sum};
use common::{Loss, Losses, MS, Place, World, dropped, end, ms, number, once, scenes, unit};
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Params};
use dacapo_modules::parity::rlc::{
    CONTROL_SET_PERCENT, CONTROL_SET_WINDOW, NOTE_COMPUTED, NOTE_REPAIRS, SPEC,
};
use dacapo_wire::sliding::{Header, LEN};
use std::time::Duration;

#[test]
fn of_five_percent_losses_hardly_any_remain_and_order_is_kept_by_what_stands_above() {
    let places: &[Place<'_>] = &[
        ("segment", &[]),
        ("sequence", &[(0, 100 * MS)]),
        ("fec-rlc", &[(0, 25), (1, 60), (2, 80 * MS)]),
        ("checksum", &[]),
    ];
    scenes::hardly_any_remain(places, 0.05, 5_000);
}

#[test]
fn what_is_computed_is_what_was_sent_whatever_the_lengths() {
    let places: &[Place<'_>] = &[("fec-rlc", &[(0, 80), (1, 100), (2, 200 * MS)])];
    scenes::most_come_as_they_were(places, 999);
}

#[test]
fn it_stands_below_sequence_and_takes_order_away_and_nothing_else() {
    sums::it_takes_order_away(&SPEC);
}

fn params(percent: u64, window: u64, span: u64) -> Params {
    let mut params = Params::new();
    [percent, window, span].into_iter().zip(0..).for_each(|(value, at)| params.set(at, value));
    params
}

/// What comes later than by the last repair that it is in may come by those of others.
#[test]
fn as_much_is_lost_in_runs_as_is_predicted() {
    let further = [params(10, 200, 500 * MS), params(25, 90, 180 * MS), params(50, 200, 500 * MS)];
    sums::as_much_is_lost_as_is_predicted(&SPEC, 200 * MS, &further);
}

/// Paths, flows and windows off the points that are proposed; the delay within two packets where
/// that is more than 15 %.
#[test]
fn what_is_predicted_is_near_in_nine_of_ten() {
    near_in_nine_of_ten(|seed| {
        let mut span = 0;
        let alone = sums::drawn(&SPEC, seed, |random| {
            let window = 1 + random.below(120);
            span = (5 + random.below(200)) * MS;
            params(10 + random.below(91), window, span)
        });
        alone.near_of_use(20 * MS + span, 2, None)
    });
}

/// 380 packets a second, 180 ms to spare, runs of three, a quarter more bytes.
#[test]
fn within_a_deadline_less_stays_lost_than_of_blocks_and_half_as_much_of_few_losses() {
    let every = Duration::from_micros(2_632);
    let window: &[Place<'_>] = &[("fec-rlc", &[(0, 25), (1, 68), (2, 180 * MS)])];
    // A block and its parities take a span each.
    let block: &[Place<'_>] = &[("fec-rs", &[(0, 32), (1, 8), (2, 90 * MS)])];
    for (loss, most) in [(0.02, 0.5), (0.05, 0.5), (0.1, 0.75)] {
        let [of_windows, of_blocks] = [window, block].map(|places| {
            let losses = Loss::Runs(Box::new(Losses::new(loss, 3.0, every, 7)));
            let mut world = World::new(places, losses, ms(0), 7);
            let (start, count) = (world.a.now, 40_000);
            world.run((0..count).map(|number| unit(number, 20)), every);
            once(&world);
            assert!(world.sent[0] <= count * 5 / 4 + 20, "{} sent", world.sent[0]);
            let taken = |(at, it): &(dacapo_base::Time, Vec<u8>)| {
                at.since(start + every * number(it) as u32)
            };
            count - world.came.iter().filter(|it| taken(it) <= ms(200)).count() as u64
        });
        println!("{loss}: {of_windows} lost or late of 40,000 by windows, {of_blocks} by blocks");
        let share = of_windows as f64 / of_blocks as f64;
        assert!(share < most, "{loss}: {of_windows} and {of_blocks}");
    }
}

/// What leaves an end by its timers, and when, in milliseconds.
fn left(end: &mut End) -> Vec<(u64, Header)> {
    let mut left = Vec::new();
    loop {
        for datagram in end.wire() {
            left.push((end.now.as_nanos() / MS - 1, Header::parse(&datagram).unwrap()));
        }
        let Some(due) = end.runner.next_deadline() else { return left };
        end.now = end.now.max(due);
        end.fire();
    }
}

#[test]
fn a_repair_follows_every_fourth_source_and_is_of_those_before_it() {
    let mut end = end(&[("fec-rlc", &[(0, 25), (1, 6), (2, 100 * MS)])], 1_000);
    let mut seen = Vec::new();
    for number in 0..12 {
        assert!(end.feed(&unit(number, 20)));
        end.fire();
        seen.extend(end.wire().iter().map(|it| Header::parse(it).unwrap()));
        end.now += ms(5);
    }
    let repairs = seen.iter().enumerate().filter(|(_, it)| it.is_repair());
    let places: Vec<_> = repairs.map(|(at, it)| (at, it.number, it.sources)).collect();
    assert_eq!(places, [(4, 3, 4), (9, 7, 6), (14, 11, 6)]);
    end.flush();
}

#[test]
fn behind_the_last_sources_before_a_pause_repairs_leave_by_themselves() {
    let mut end = end(&[("fec-rlc", &[(0, 25), (1, 60), (2, 80 * MS)])], 1_000);
    for number in 0..10 {
        assert!(end.feed(&unit(number, 20)));
        end.fire();
        end.now += ms(1);
    }
    assert_eq!(end.wire().len(), 12);
    // 40 ms behind the last, which left after 9; three for ten, 20 ms for all.
    let tail: Vec<_> = left(&mut end).iter().map(|(at, it)| (*at, it.sources)).collect();
    assert_eq!(tail, [(49, 10), (55, 10), (62, 10)]);
    assert_eq!(end.pool.live_views(), 0, "of no use any more");
    // One packet alone is sent twice.
    assert!(end.feed(&unit(10, 20)));
    assert_eq!(left(&mut end).iter().map(|(_, it)| it.sources).collect::<Vec<_>>(), [0, 1]);
    end.flush();
}

#[test]
fn a_train_is_numbered_as_one_and_its_repairs_leave_as_a_train() {
    let repairs = sums::train_behind_ten(("fec-rlc", &[(0, 30), (1, 6)]));
    let header = repairs[2];
    assert_eq!((repairs.len(), header.number, header.sources, header.key), (3, 9, 6, 2));
}

#[test]
fn at_the_bound_repairs_are_given_up_and_never_the_packets_themselves() {
    scenes::at_most_1024_wait(&[("fec-rlc", &[(0, 100), (1, 1)])]);
}

#[test]
fn drain_sends_the_repairs_of_the_last_at_once() {
    let (mut a, mut b, _) = sums::drained(("fec-rlc", &[(0, 30)]), 3);
    assert!(sums::shows(&b, NOTE_COMPUTED, 2) && sums::shows(&a, NOTE_REPAIRS, 3));
    let names = [NOTE_COMPUTED, NOTE_REPAIRS].map(|code| SPEC.note_name(code));
    assert_eq!(names, ["packets_computed", "repairs"]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn windows_change_while_the_flow_runs_and_the_peer_need_not_be_told() {
    let is_lost = |_, datagram: &[u8]| {
        let header = Header::parse(datagram).unwrap();
        !header.is_repair() && header.number.is_multiple_of(5)
    };
    let settings = |sent: u64| match sent % 7 {
        0 => vec![(CONTROL_SET_WINDOW, 10 + sent % 9), (CONTROL_SET_PERCENT, 40 + sent % 30)],
        _ => Vec::new(),
    };
    let place = ("fec-rlc", &[(0, 50), (1, 20)][..]);
    sums::parameters_change_while_it_runs(place, is_lost, settings);
}

#[test]
fn repairs_that_no_peer_makes_give_nothing_and_keep_nothing() {
    let mut b = end(&[("fec-rlc", &[])], 1_000);
    // A length beyond the packet, in what is computed.
    [source(0), sum(1, 2, 0, 3)].iter().for_each(|it| assert!(b.handle_bytes(it)));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Malformed)), (1, 1));
    // Of more sources than there are numbers, of none that is missing, and of very many.
    for bytes in [sum(3, 200, 0, 3), sum(0, 1, 0, 3), sum(900, 255, 0, 3)] {
        assert!(b.handle_bytes(&bytes));
    }
    (0..255).for_each(|key| assert!(b.handle_bytes(&sum(1_000, 120, key, 9))));
    // Far ahead: nobody is believed alone. The repair up to 900 was not, and confirmed the others.
    b.units();
    assert_eq!(dropped(&b, DropReason::Overflow), 1);
    sums::what_is_far_is_not_believed(b, 1);
}

#[test]
fn whatever_comes_in_whatever_order_what_is_kept_is_bounded() {
    sums::what_is_kept_is_bounded(("fec-rlc", &[]), 1_100, |random, number| {
        if random.below(3) == 0 {
            return source(number);
        }
        let (sources, key) = (1 + random.below(255) as u8, random.below(4) as u8);
        sum(number as u32, sources, key, random.below(1_400) as usize)
    });
}

#[test]
fn without_memory_repairs_are_given_up_and_counted() {
    scenes::without_memory_none_follows(&[("fec-rlc", &[(0, 100)])], LEN);
}
