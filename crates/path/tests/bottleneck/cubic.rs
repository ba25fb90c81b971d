//! `cubic` in the bottleneck.

use crate::world::{PACKET_LEN, jain};
use crate::{LINK, alone, beside, link, ms, near_and_far, reno, s, share_alone, together};
use dacapo_path::ControllerEntry;
use dacapo_path::controllers::cubic;
use std::time::Duration;

fn entry() -> ControllerEntry {
    cubic::entry()
}

#[test]
fn alone_it_fills_the_link_and_loses_little() {
    for (queue, least, most) in [(142, 0.97, 0.005), (71, 0.97, 0.005), (14, 0.9, 0.01)] {
        let (share, lost) = share_alone(&link(queue), &entry(), s(5));
        assert!(share > least && lost < most, "queue {queue}: {share:.3}, {lost:.4} lost");
    }
}

/// Paced, a window leaves in half a round trip, and its queue is gone before the next: round trips
/// get longer only when the window is too large already (RFC 9406 knows no pace).
#[test]
fn it_begins_within_seconds_and_loses_a_window_at_most() {
    let (rates, lost) = alone(&link(71), &entry()).measure(s(2));
    let share = rates[0] / LINK;
    println!("{share:.3} of the link in the first 2 s, {:.3} % lost", lost * 100.0);
    assert!(share > 0.9 && lost < 0.04, "{share:.3}, {lost:.4}");
}

#[test]
fn who_comes_later_gets_as_much() {
    for (count, apart) in [(2, 1_500), (10, 1_500), (10, 0), (10, 400), (10, 2_100)] {
        let (rates, lost) = together(&entry(), count, apart);
        assert!(jain(&rates) > 0.95 && lost < 0.03, "{rates:?}, {lost:.4} lost");
    }
}

#[test]
fn who_is_four_times_as_far_away_gets_nearly_half_as_much() {
    for queue in [71, 100, 142] {
        let rates = near_and_far(&entry(), queue);
        assert!(jain(&rates) > 0.8, "{rates:?}");
    }
}

#[test]
fn beside_reno_neither_starves() {
    beside(&entry(), &reno::entry(), 71);
}

#[test]
fn what_the_application_does_not_use_is_no_window() {
    let mut world = alone(&link(71), &entry());
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
