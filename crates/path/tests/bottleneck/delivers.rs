//! `bbr` in the bottleneck: what a path loses by itself does not slow it down.

use super::{LINK, link, ms, s};
use crate::world::{World, jain};
use dacapo_base::Time;
use dacapo_path::controllers::{bbr, cubic};

fn alone(link: &str) -> World {
    let mut world = World::new(link);
    world.add(&bbr::entry(), Time::ZERO, ms(10));
    world
}

#[test]
fn alone_it_fills_the_link_and_loses_little() {
    for (queue, least, most) in [(142, 0.9, 0.005), (71, 0.9, 0.005), (14, 0.9, 0.03)] {
        let mut world = alone(&link(queue));
        world.run(s(5));
        let (rates, lost) = world.measure(s(30));
        let share = rates[0] / LINK;
        println!("queue {queue}: {share:.3} of the link, {:.3} % lost", lost * 100.0);
        assert!(share > least && lost < most, "queue {queue}: {share:.3}, {lost:.4} lost");
    }
}

#[test]
fn what_is_lost_by_chance_does_not_slow_it_down() {
    for (loss, least) in [(1, 0.95), (5, 0.9), (10, 0.8), (20, 0.7)] {
        let mut world = alone(&format!("{},loss={loss}%", link(142)));
        world.run(s(20));
        let (rates, lost) = world.measure(s(30));
        let share = rates[0] / LINK;
        println!("{loss} %: {share:.3} of the link, {:.3} % lost", lost * 100.0);
        assert!(share > least, "{loss} %: {share:.3}");
    }
}

#[test]
fn who_comes_later_gets_as_much() {
    for count in [2, 10] {
        let mut world = World::new(&link(100));
        for at in 0..count {
            world.add(&bbr::entry(), Time::from_millis(at * 1_500), ms(10));
        }
        world.run(s(30));
        let (rates, lost) = world.measure(s(60));
        let (even, sum) = (jain(&rates), rates.iter().sum::<f64>() / LINK);
        println!("{count}: Jain {even:.3}, {sum:.3} of the link, {:.3} % lost", lost * 100.0);
        // Of ten each has seven packets under way, and 100 wait at most.
        let most = if count == 2 { 0.005 } else { 0.08 };
        assert!(even > 0.95 && sum > 0.95 && lost < most, "{rates:?}, {lost:.4} lost");
    }
}

#[test]
fn beside_cubic_neither_starves() {
    for queue in [71, 142] {
        let mut world = World::new(&link(queue));
        world.add(&bbr::entry(), Time::ZERO, ms(10));
        world.add(&cubic::entry(), Time::ZERO, ms(10));
        world.run(s(20));
        let (rates, lost) = world.measure(s(60));
        let ratio = rates[0] / rates[1];
        println!("{ratio:.2} times what cubic gets, {:.3} % lost", lost * 100.0);
        assert!((0.5..=2.0).contains(&ratio), "{ratio:.2}");
    }
}

#[test]
fn who_is_far_away_is_not_starved() {
    let mut world = World::new(&link(100));
    world.add(&bbr::entry(), Time::ZERO, ms(10));
    world.add(&bbr::entry(), Time::ZERO, ms(70));
    world.run(s(30));
    let (rates, _) = world.measure(s(60));
    println!("20 and 80 ms: Jain {:.3}, {rates:?}", jain(&rates));
    assert!(jain(&rates) > 0.8, "{rates:?}");
}

/// The anchor of the figures: where the kernel's BBR has 0.96 and 0.9 of the link at 1 and 5 %.
#[test]
fn a_fast_link_is_filled_too() {
    for (loss, least) in [(1, 0.97), (5, 0.96), (10, 0.93)] {
        let link = format!("rate=500Mbit/s,delay=10ms,queue=1700,loss={loss}%");
        let mut world = alone(&link);
        world.run(s(3));
        let (rates, lost) = world.measure(s(6));
        let share = rates[0] / 500e6;
        println!("500 Mbit/s, {loss} %: {share:.3} of the link, {:.3} % lost", lost * 100.0);
        assert!(share > least, "{loss} %: {share:.3}");
    }
}

#[test]
fn what_the_application_does_not_use_is_no_rate() {
    let mut world = alone(&link(142));
    world.run(s(5));
    // 1.12 Mbit/s for a while, then all there is: what was learned is kept.
    world.slow_down(0, ms(10));
    world.run(s(20));
    world.slow_down(0, ms(0));
    let (rates, lost) = world.measure(s(5));
    println!("{:.3} of the link after a pause, {:.3} % lost", rates[0] / LINK, lost * 100.0);
    assert!(rates[0] > 0.9 * LINK && lost < 0.01, "{rates:?}, {lost:.4} lost");
}

/// Where a path begins to lose by chance while it is used, asking for more goes on.
#[test]
fn a_path_that_gets_worse_is_learned() {
    let mut world = alone(&link(142));
    world.run(s(10));
    world.set_link(&format!("{},loss=8%", link(142)));
    world.run(s(20));
    let (rates, lost) = world.measure(s(20));
    println!("8 % from the tenth second on: {:.3} of the link", rates[0] / LINK);
    assert!(rates[0] > 0.85 * LINK, "{rates:?}, {lost:.4} lost");
}
