//! `arq-nak` where packets are to be in order: each comes once, after all before it have come or
//! are given up, and no packet waits longer for others than it would be asked for itself.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::alone::{Alone, near_in_nine_of_ten};
use common::{Loss, Losses, MS, Place, World, end, lossy, lost, ms, number, tell, unit};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{Params, Properties, Property};
use dacapo_modules::retransmission::nak::{CONTROL_SET_DEADLINE, SPEC};
use std::time::Duration;

const ORDERED: (u16, u64) = (1, 1);

/// Runs of losses both ways, which a deadline of one or two questions leaves some of.
fn world(seed: u64, every: Duration, places: &[Place<'_>]) -> World {
    let mut random = Random::from_number(seed);
    let share = 0.01 + random.below(100) as f64 / 1_000.0;
    let burst = 1.0 + random.below(60) as f64 / 10.0;
    let jitter = Duration::from_micros(random.below(8_000));
    let loss = Loss::Runs(Box::new(Losses::new(share, burst, every, seed)));
    World::new(places, loss, jitter, seed)
}

#[test]
fn packets_come_in_order_each_once_and_are_in_time_or_told_as_lost() {
    let every = ms(3);
    let mut all_lost = 0;
    for seed in 0..200 {
        let deadline = 50 + seed;
        let mut world = world(seed, every, &[("arq-nak", &[(0, deadline * MS), ORDERED])]);
        let (start, count) = (world.a.now, 2_000);
        world.run((0..count).map(|n| unit(n, 20)), every);
        let came: Vec<u64> = world.came.iter().map(|(_, unit)| number(unit)).collect();
        assert!(came.is_sorted_by(|a, b| a < b), "seed {seed}: twice, or out of order");
        // Of the last packets nobody may have heard.
        let told = came.len() as u64 + lost(&world.b);
        assert!((count - 20..=count).contains(&told), "seed {seed}: {told} of {count}");
        all_lost += lost(&world.b);
        // The way takes 20 ms and at most 8 more; when a packet should have come is known to
        // within the one before it.
        let most = ms(28 + deadline) + every * 2;
        for (at, unit) in &world.came {
            let took = at.since(start + every * number(unit) as u32);
            assert!(took <= most, "seed {seed}: {} came after {took:?}", number(unit));
        }
        for end in [&mut world.a, &mut world.b] {
            assert_eq!(end.pool.live_views(), 0, "seed {seed}: something waits for nothing");
            assert_eq!(end.runner.next_deadline(), None, "seed {seed}");
        }
    }
    assert!(all_lost > 500, "hardly anything was given up: {all_lost}");
}

/// `sequence` above waits from the first packet behind a run: what of the run was repaired waits
/// with it, longer than it is of use.
#[test]
fn the_rest_of_a_run_does_not_wait_longer_than_it_is_of_use() {
    let every = ms(3);
    let late = |places: &[Place<'_>]| {
        let mut late = 0;
        for seed in 0..40 {
            let mut world = world(seed, every, places);
            let start = world.a.now;
            world.run((0..1_500).map(|n| unit(n, 20)), every);
            let took =
                world.came.iter().map(|(at, it)| at.since(start + every * number(it) as u32));
            late += took.filter(|took| *took > ms(28 + 90) + every).count();
        }
        late
    };
    let above = late(&[("sequence", &[(0, 90 * MS)]), ("arq-nak", &[(0, 90 * MS)])]);
    let within = late(&[("arq-nak", &[(0, 90 * MS), ORDERED])]);
    println!("{above} of 60,000 late with sequence above");
    assert!(above > 20, "{above} late with sequence above");
    assert_eq!(within, 0);
}

#[test]
fn no_more_wait_than_there_is_room_for() {
    for seed in 0..4 {
        let mut world =
            World::new(&[("arq-nak", &[(0, 900 * MS), ORDERED])], Loss::Single(0.2), ms(1), seed);
        let count = 60_000;
        // 20,000 packets a second: a deadline is 18,000 of them, and 8,192 can wait.
        world.run((0..count).map(|n| unit(n, 20)), Duration::from_micros(50));
        let came: Vec<u64> = world.came.iter().map(|(_, unit)| number(unit)).collect();
        assert!(came.is_sorted_by(|a, b| a < b), "seed {seed}");
        let told = came.len() as u64 + lost(&world.b);
        assert!((count - 20..=count).contains(&told), "seed {seed}: {told} of {count}");
        assert!(world.views_max <= 8_192 + 100, "seed {seed}: {} wait", world.views_max);
        [&mut world.a, &mut world.b].into_iter().for_each(End::flush);
    }
}

#[test]
fn it_gives_order_where_it_is_to() {
    let boundaries = Properties::of(&[Property::Boundaries]);
    let mut params = Params::new();
    params.set(ORDERED.0, ORDERED.1);
    let above = SPEC.above(params.values(), boundaries);
    let all = &[Property::Boundaries, Property::NoDuplicates, Property::Order];
    assert_eq!(above, Properties::of(all));
    let (setting, below) = lossy(10_000_000, 1_000, ms(2));
    let is_ordered = |params: &Params| SPEC.gives(params.values()).contains(Property::Order);
    let ways = SPEC.points(&setting, &below).iter().map(is_ordered).collect::<Vec<_>>();
    assert_eq!(ways, [false, false, false, true, true, true]);
}

#[test]
fn what_is_predicted_is_near_in_nine_of_ten() {
    near_in_nine_of_ten(|seed| {
        let mut random = Random::from_number(seed ^ 0x0DE);
        let every = Duration::from_micros(500 + random.below(20_000));
        let loss_ppb = random.below(150) * 1_000_000;
        let burst_milli = 1_000 + random.below(4_000);
        let deadline_ms = 65 + random.below(400);
        let mut params = Params::new();
        params.set(0, deadline_ms * MS);
        params.set(ORDERED.0, ORDERED.1);
        // What is lost is known to be so by its deadline.
        let given_up_ns = lossy(loss_ppb, burst_milli, every).1.figures.delay_ns + deadline_ms * MS;
        Alone { spec: &SPEC, params, loss_ppb, burst_milli, every, seed }.near(Some(given_up_ns))
    });
}

/// Three is missed while there is time, and seven when there is hardly any left: it is given up
/// first.
#[test]
fn what_waits_for_one_that_comes_does_not_wait_for_one_that_was_given_up_before() {
    let places: &[Place<'_>] = &[("arq-nak", &[(0, 10_000 * MS), ORDERED])];
    let (mut a, mut b) = (end(places, 1_000), end(places, 1_000));
    let mut sent = Vec::new();
    for number in 0..9 {
        assert!(a.feed(&unit(number, 20)));
        sent.push(a.wire().concat());
    }
    let mut came = Vec::new();
    for (at, datagram) in sent.iter().enumerate() {
        match at {
            3 | 7 => continue,
            6 => tell(&mut b, CONTROL_SET_DEADLINE, 20 * MS),
            _ => {}
        }
        assert!(b.handle_bytes(datagram));
        b.pass(ms(1));
        came.extend(b.units().iter().map(|unit| number(unit)));
    }
    assert_eq!(came, [0, 1, 2]);
    b.pass(ms(60));
    assert!(b.handle_bytes(&sent[3]));
    came.extend(b.units().iter().map(|unit| number(unit)));
    assert_eq!(came, [0, 1, 2, 3, 4, 5, 6, 8]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}
