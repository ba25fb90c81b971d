//! Paths with controllers share one bottleneck: it is filled, not flooded, and shared.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here fails the test")]

mod delivers;
mod reno;
mod world;

use dacapo_base::Time;
use dacapo_path::controllers::cubic;
use std::time::Duration;
use world::{PACKET_LEN, World, jain};

const fn s(s: u64) -> Duration {
    Duration::from_secs(s)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// 40 Mbit/s, 20 ms there and back; `queue` packets wait at most. 71 are under way when it is full.
fn link(queue: usize) -> String {
    format!("rate=40Mbit/s,delay=10ms,queue={queue}")
}

const LINK: f64 = 40e6;

fn alone(queue: usize) -> World {
    let mut world = World::new(&link(queue));
    world.add(&cubic::entry(), Time::ZERO, ms(10));
    world
}

#[test]
fn alone_it_fills_the_link_and_loses_little() {
    for (queue, least, most) in [(142, 0.97, 0.005), (71, 0.97, 0.005), (14, 0.9, 0.01)] {
        let mut world = alone(queue);
        world.run(s(5));
        let (rates, lost) = world.measure(s(30));
        let share = rates[0] / LINK;
        println!("queue {queue}: {share:.3} of the link, {:.3} % lost", lost * 100.0);
        assert!(share > least && lost < most, "queue {queue}: {share:.3}, {lost:.4} lost");
    }
}

/// Paced, a window leaves in half a round trip, and its queue is gone before the next: round trips
/// get longer only when the window is too large already (RFC 9406 knows no pace).
#[test]
fn it_begins_within_seconds_and_loses_a_window_at_most() {
    let mut world = alone(71);
    let (rates, lost) = world.measure(s(2));
    let share = rates[0] / LINK;
    println!("{share:.3} of the link in the first 2 s, {:.3} % lost", lost * 100.0);
    assert!(share > 0.9 && lost < 0.04, "{share:.3}, {lost:.4}");
}

#[test]
fn who_comes_later_gets_as_much() {
    for count in [2, 10] {
        let mut world = World::new(&link(100));
        for at in 0..count {
            world.add(&cubic::entry(), Time::from_millis(at * 1_500), ms(10));
        }
        world.run(s(30));
        let (rates, lost) = world.measure(s(60));
        let (even, sum) = (jain(&rates), rates.iter().sum::<f64>() / LINK);
        println!("{count}: Jain {even:.3}, {sum:.3} of the link, {:.3} % lost", lost * 100.0);
        assert!(even > 0.95 && sum > 0.95 && lost < 0.03, "{rates:?}, {lost:.4} lost");
    }
}

/// As with Reno, who is four times as far gets an eighth of what the other gets: where a window is
/// so small the cubic is below Reno's, which grows by round trips.
#[test]
fn who_is_far_away_is_not_starved() {
    let mut world = World::new(&link(100));
    world.add(&cubic::entry(), Time::ZERO, ms(10));
    world.add(&cubic::entry(), Time::ZERO, ms(70));
    world.run(s(30));
    let (rates, _) = world.measure(s(120));
    let even = jain(&rates);
    println!("20 and 80 ms: Jain {even:.3}, {rates:?}");
    assert!(rates[1] > 0.08 * LINK, "{rates:?}");
}

#[test]
fn beside_reno_neither_starves() {
    let mut world = World::new(&link(71));
    world.add(&cubic::entry(), Time::ZERO, ms(10));
    world.add(&reno::entry(), Time::ZERO, ms(10));
    world.run(s(20));
    let (rates, _) = world.measure(s(60));
    let ratio = rates[0] / rates[1];
    println!("{ratio:.2} times what Reno gets");
    assert!((0.5..=2.0).contains(&ratio), "{ratio:.2}");
}

#[test]
fn what_the_application_does_not_use_is_no_window() {
    let mut world = alone(71);
    // 1.12 Mbit/s for a while, then all there is: the window has not grown meanwhile.
    world.slow_down(0, ms(10));
    world.run(s(20));
    let flow = &mut world.flows[0];
    let allowed = flow.path.allowance(world.now, true);
    assert!(allowed <= 10 * PACKET_LEN, "{allowed} bytes");
    world.slow_down(0, Duration::ZERO);
    let (rates, lost) = world.measure(s(10));
    assert!(rates[0] > 0.9 * LINK && lost < 0.02, "{rates:?}, {lost:.4} lost");
}
