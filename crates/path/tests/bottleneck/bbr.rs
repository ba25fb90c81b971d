//! `bbr` in the bottleneck: what a path loses by itself does not slow it down.

use crate::world::{PACKET_LEN, World, jain};
use crate::{LINK, alone, beside, link, ms, near_and_far, s, share_alone, together};
use dacapo_base::Time;
use dacapo_path::ControllerEntry;
use dacapo_path::controllers::{bbr, cubic};

fn entry() -> ControllerEntry {
    bbr::entry()
}

#[test]
fn alone_it_fills_the_link_and_loses_little() {
    for (queue, least, most) in [(142, 0.9, 0.005), (71, 0.9, 0.005), (14, 0.9, 0.03)] {
        let (share, lost) = share_alone(&link(queue), &entry(), s(5));
        assert!(share > least && lost < most, "queue {queue}: {share:.3}, {lost:.4} lost");
    }
}

#[test]
fn what_is_lost_by_chance_does_not_slow_it_down() {
    for (loss, least) in [(1, 0.95), (5, 0.9), (10, 0.8), (20, 0.7)] {
        let lossy = format!("{},loss={loss}%", link(142));
        let (share, _) = share_alone(&lossy, &entry(), s(20));
        assert!(share > least, "{loss} %: {share:.3}");
    }
}

#[test]
fn who_comes_later_gets_as_much() {
    // Of ten each has seven packets under way, and 100 wait at most.
    for (count, most) in [(2, 0.005), (10, 0.08)] {
        let (rates, lost) = together(&entry(), count, 1_500);
        assert!(jain(&rates) > 0.95 && lost < most, "{rates:?}, {lost:.4} lost");
    }
}

#[test]
fn beside_cubic_neither_starves() {
    [71, 142].into_iter().for_each(|queue| beside(&entry(), &cubic::entry(), queue));
}

#[test]
fn who_is_far_away_gets_as_much() {
    // In a long queue the far one is ahead: as much as it keeps in flight is more of that.
    for (queue, least) in [(71, 0.8), (100, 0.8), (142, 0.65)] {
        let rates = near_and_far(&entry(), queue);
        assert!(jain(&rates) > least, "{rates:?}");
    }
}

#[test]
fn a_fast_link_is_filled_too() {
    for (loss, least) in [(1, 0.97), (5, 0.96), (10, 0.93)] {
        let link = format!("rate=500Mbit/s,delay=10ms,queue=1700,loss={loss}%");
        let mut world = alone(&link, &entry());
        world.run(s(3));
        let (rates, lost) = world.measure(s(6));
        let share = rates[0] / 500e6;
        println!("{link}: {share:.3} of the link, {:.3} % lost", lost * 100.0);
        assert!(share > least, "{loss} %: {share:.3}");
    }
}

/// 1.12 Mbit/s for a while, then all there is: what was learned is kept.
#[test]
fn an_application_that_has_a_little_more_than_the_link_loses_little() {
    // 1.2 and 1.5 Mbit/s into 1, 50 ms each way and 300 ms of queue.
    for apart in [9_300, 7_470] {
        let mut world = alone("rate=1Mbit/s,delay=50ms,queue-bytes=37500", &entry());
        world.slow_down(0, std::time::Duration::from_micros(apart));
        world.run(s(10));
        let (rates, lost) = world.measure(s(60));
        let share = rates[0] / 1e6;
        println!("{apart} µs apart: {share:.3} of the link, {:.3} % lost", lost * 100.0);
        assert!(share > 0.9 && lost < 0.02, "{apart}: {share:.3}, {lost:.4} lost");
    }
}

#[test]
fn what_the_application_does_not_use_is_no_rate() {
    let mut world = alone(&link(142), &entry());
    world.run(s(5));
    world.slow_down(0, ms(10));
    world.run(s(20));
    world.slow_down(0, ms(0));
    let (rates, lost) = world.measure(s(5));
    println!("{:.3} of the link after a pause, {:.3} % lost", rates[0] / LINK, lost * 100.0);
    assert!(rates[0] > 0.9 * LINK && lost < 0.01, "{rates:?}, {lost:.4} lost");
}

/// Who has little to send from the beginning has no window for all there is after a while.
#[test]
fn a_startup_of_few_packets_does_not_open_the_window() {
    let mut world = alone(&link(142), &entry());
    world.slow_down(0, ms(10));
    world.run(s(60));
    let flow = &mut world.flows[0];
    let allowed = flow.path.allowance(world.now, true);
    assert!(allowed <= 20 * PACKET_LEN, "{allowed} bytes");
}

/// What several get of a link whose queue holds a fifth of what is under way, and what is lost.
fn in_a_short_queue(count: u64, loss: &str) -> (Vec<f64>, f64) {
    let link = format!("rate=100Mbit/s,delay=10ms,queue=33,jitter=300us{loss}");
    let mut world = World::new(&link);
    (0..count).for_each(|at| world.add(&entry(), Time::from_millis(at * 230), ms(10)));
    world.run(s(15));
    let (rates, lost) = world.measure(s(30));
    println!("{count}{loss}: Jain {:.3}, {:.2} % lost", jain(&rates), lost * 100.0);
    assert!(rates.iter().sum::<f64>() > 90e6, "{rates:?}");
    (rates, lost)
}

/// Nobody feels such a queue; that what is lost there is their own doing is heard by asking for
/// half.
#[test]
fn what_is_lost_in_a_queue_that_nobody_feels_is_not_taken_for_the_paths() {
    for (count, most) in [(2, 0.02), (5, 0.06), (10, 0.13)] {
        let (rates, lost) = in_a_short_queue(count, "");
        assert!(jain(&rates) > 0.9 && lost < most, "{rates:?}, {lost:.4} lost");
    }
}

#[test]
fn what_is_lost_by_chance_beside_such_a_queue_is() {
    for (loss, most) in [(5, 0.07), (10, 0.12)] {
        let (rates, lost) = in_a_short_queue(2, &format!(",loss={loss}%"));
        assert!(jain(&rates) > 0.75 && lost < most, "{rates:?}, {lost:.4} lost");
    }
}

/// Where a path begins to lose by chance while it is used, asking for more goes on.
#[test]
fn a_path_that_gets_worse_is_learned() {
    let mut world = alone(&link(142), &entry());
    world.run(s(10));
    world.set_link(&format!("{},loss=8%", link(142)));
    world.run(s(20));
    let (rates, lost) = world.measure(s(20));
    println!("8 % from the tenth second on: {:.3} of the link", rates[0] / LINK);
    assert!(rates[0] > 0.85 * LINK, "{rates:?}, {lost:.4} lost");
}

/// Of ten, of which each has seven packets under way, some get several times as much as others.
#[test]
fn up_to_five_share_evenly_whenever_they_begin_and_of_ten_none_starves() {
    for (count, apart) in [(3, 1_000), (5, 700), (5, 1_500), (10, 0), (10, 900), (10, 1_200)] {
        let (rates, _) = together(&entry(), count, apart);
        assert!(count > 5 || jain(&rates) > 0.9, "{rates:?}");
        assert!(rates.iter().all(|rate| *rate > 0.02 * LINK), "{rates:?}");
    }
}
