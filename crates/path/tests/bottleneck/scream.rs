//! `scream` in the bottleneck: media that leave hardly a queue, and are not starved.
//!
//! The cases are those of RFC 8867, as far as one bottleneck with virtual media has them: a source
//! always has as much as is let out, up to 1.5 Mbit/s where [`MEDIA_APART`] is said, 50 ms each
//! way, and 300 ms of queue that drops its tail. The limits were written before the code:
//!
//! ```text
//!   case                                what is used           p95 of the queue   also
//!   DualPI2, 40 Mbit/s, 20 ms           >= 0.9 of the link     <= 5 ms            nothing dropped
//!   5.1 1, 2.5, 0.6, 1 Mbit/s           >= 0.85 of what is     <= 80 ms           <= 1 % lost
//!   5.2 two: 4, 2, 3.5, 1, 2 Mbit/s     >= 0.85 of what is     <= 80 ms           Jain >= 0.85
//!   5.3 back 0 to 300 ms longer, 2 Mbit/s >= 0.85              <= 80 ms
//!   5.4 three into 3.5 Mbit/s           >= 0.85                <= 80 ms           Jain >= 0.85
//!   5.5 five, of 20 to 300 ms           >= 0.85                <= 80 ms           each >= 1/4
//!   5.6 beside one cubic, 2 Mbit/s      >= 0.9 together                           each >= 0.15
//!   5.7 two beside ten short cubics,     each >= 150 kbit/s,   <= 80 ms           Jain >= 0.85
//!       2 Mbit/s; and after them         after them >= 0.85
//!   5.8 of three one pauses for 20 s    >= 0.85                <= 80 ms           >= 1/2 of its
//!                                                                                 share 10 s on
//! ```
//!
//! Our own, over 40 Mbit/s and 20 ms where nothing else is said, and 355 packets of queue (100 ms):
//!
//! ```text
//!   frames of 20 kB, 25 a second, 10 Mbit/s   p95 until the last is there: 40 ms and the trip
//!   1.1 Mbit/s, then all there is             a window of 10 packets, >= 0.85 after 10 s
//!   nothing for 10 s, then all there is       >= 0.7 of the next 5 s, p95 <= 80 ms
//!   clocks that drift by 500 ppm; a way that  >= 0.85, p95 <= 80 ms
//!   gets 50 ms longer; who does not count
//!   alone, beside cubic alone                 >= 0.85, half of its p95
//!   ten                                       Jain >= 0.85, p95 <= 80 ms
//!   1 Gbit/s and 1 ms                         >= 0.85
//!   1 and 5 % lost by chance, 10 Mbit/s       half of what cubic has
//!   CoDel                                     >= 0.85, nothing dropped
//!   DualPI2: two; beside one cubic            Jain >= 0.9, p95 <= 5 ms; each >= 1/4
//! ```
//!
//! "What is" is the rate of the link or what the sources have, from 5 s after each change on.

use crate::world::{PACKET_LEN, World, jain};
use crate::{LINK, ms, s};
use dacapo_base::{Random, Time};
use dacapo_path::ControllerEntry;
use dacapo_path::controllers::{bbr, cubic, scream};
use std::time::Duration;

const MBIT: f64 = 1e6;

/// How far packets of a source of 1.5 Mbit/s are apart.
const MEDIA_APART: Duration = Duration::from_nanos((PACKET_LEN * 8) as u64 * 1_000 / 1_500 * 1_000);
const MEDIA_BPS: f64 = 1.5 * MBIT;

fn entry() -> ControllerEntry {
    scream::entry()
}

/// 50 ms each way, and 300 ms of queue.
fn wide(mbit: f64) -> String {
    let bytes = (mbit * MBIT * 0.3 / 8.0) as u64;
    format!("rate={}kbit/s,delay=50ms,queue-bytes={bytes}", (mbit * 1_000.0) as u64)
}

/// How long a packet takes through such a link when it is empty.
fn trip(mbit: f64, delay: Duration) -> Duration {
    delay + Duration::from_secs_f64((PACKET_LEN * 8) as f64 / (mbit * MBIT))
}

/// What each gets, in so long, and how long packets of the first wait.
struct Seen {
    rates: Vec<f64>,
    lost: f64,
    /// The longest of the flows' 95th percentiles.
    queue: Duration,
}

fn measure(world: &mut World, time: Duration, what: &str, mbit: f64, delay: Duration) -> Seen {
    let (rates, lost) = world.measure(time);
    let all = 0..world.flows.len();
    let waited = all.filter(|at| rates[*at] > 0.0);
    let queue = waited.map(|at| world.waited(at, 0.95, trip(mbit, delay))).max().unwrap();
    let sum = rates.iter().sum::<f64>() / MBIT;
    let each: Vec<String> = rates.iter().map(|it| format!("{:.2}", it / MBIT)).collect();
    println!(
        "{what}: {sum:.2} of {mbit} Mbit/s ({each:?}), Jain {:.3}, {:.2} % lost, p95 {queue:.1?}",
        jain(&rates),
        lost * 100.0
    );
    Seen { rates, lost, queue }
}

impl Seen {
    fn sum(&self) -> f64 {
        self.rates.iter().sum()
    }

    /// Holds it to what all cases have.
    fn check(&self, what: &str, most_bps: f64) {
        assert!(self.sum() >= 0.85 * most_bps, "{what}: {:.0} of {most_bps:.0}", self.sum());
        assert!(self.queue <= ms(80), "{what}: p95 {:?}", self.queue);
    }
}

/// Media through a link from the beginning on.
fn media(link: &str, count: usize, apart: Duration) -> World {
    let mut world = World::new(link);
    for flow in 0..count {
        world.add_media(&entry(), Time::ZERO, ms(50));
        world.slow_down(flow, apart);
    }
    world
}

#[test]
fn over_dualpi2_it_fills_the_link_with_hardly_a_queue() {
    let link = "rate=40Mbit/s,delay=10ms,queue=400,aqm=dualpi2";
    let measured = |controller: ControllerEntry, is_media: bool| {
        let mut world = World::new(link);
        match is_media {
            true => world.add_media(&controller, Time::ZERO, ms(10)),
            false => world.add_probed(&controller, Time::ZERO, ms(10)),
        }
        world.run(s(5));
        measure(&mut world, s(30), controller.spec.name, 40.0, ms(10))
    };
    let seen = measured(entry(), true);
    let (cubic, bbr) = (measured(cubic::entry(), false), measured(bbr::entry(), false));
    assert!(seen.sum() >= 0.9 * LINK, "{:.3}", seen.sum() / LINK);
    assert!(seen.queue <= ms(5), "{:?}", seen.queue);
    assert!(seen.lost == 0.0, "{:.5}", seen.lost);
    assert!(cubic.queue > 2 * seen.queue && bbr.sum() > 0.9 * LINK, "what it is measured beside");
}

#[test]
fn variable_capacity_is_followed() {
    let mut world = media(&wide(1.0), 1, MEDIA_APART);
    for (mbit, secs) in [(1.0, 40), (2.5, 20), (0.6, 20), (1.0, 20)] {
        world.set_link(&wide(mbit));
        world.run(s(5));
        let what = format!("5.1, {mbit} Mbit/s");
        let seen = measure(&mut world, s(secs - 5), &what, mbit, ms(50));
        seen.check(&what, (mbit * MBIT).min(MEDIA_BPS));
        assert!(seen.lost <= 0.01, "{what}: {:.4} lost", seen.lost);
    }
}

#[test]
fn two_follow_variable_capacity_and_share_it() {
    let mut world = media(&wide(4.0), 2, MEDIA_APART);
    for mbit in [4.0, 2.0, 3.5, 1.0, 2.0] {
        world.set_link(&wide(mbit));
        world.run(s(5));
        let what = format!("5.2, {mbit} Mbit/s");
        let seen = measure(&mut world, s(20), &what, mbit, ms(50));
        seen.check(&what, (mbit * MBIT).min(2.0 * MEDIA_BPS));
        assert!(jain(&seen.rates) >= 0.85, "{what}: {:?}", seen.rates);
    }
}

/// The way back waits behind others: for a while now and then, and then all the time.
#[test]
fn a_queue_on_the_way_back_is_not_yielded_to() {
    let mut world = media(&wide(2.0), 1, Duration::ZERO);
    world.run(s(20));
    let mut share = Vec::new();
    for (what, longest) in [("5.3, waves", 10), ("5.3, all the time", 1)] {
        world.measure(Duration::ZERO);
        let before = world.flows[0].delivered;
        for step in 0..300 {
            // Longer in steps of 30 ms, and then shorter, every two seconds; or at its longest.
            let waits = if longest == 1 { 10 } else { 10 - (step % 20_u64).abs_diff(10) };
            world.flows[0].back = ms(50 + 30 * waits);
            world.run(ms(100));
        }
        let bits = (world.flows[0].delivered - before) * (PACKET_LEN * 8) as u64;
        let queue = world.waited(0, 0.95, trip(2.0, ms(50)));
        share.push(bits as f64 / 30.0 / (2.0 * MBIT));
        println!("{what}: {share:.3?} of 2 Mbit/s, p95 {queue:.1?}");
        assert!(queue <= ms(80), "{what}: p95 {queue:?}");
    }
    assert!(share.iter().all(|it| *it >= 0.85), "{share:?}");
}

#[test]
fn who_comes_later_gets_as_much() {
    let mut world = World::new(&wide(3.5));
    for at in 0..3 {
        world.add_media(&entry(), Time::from_millis(at * 20_000), ms(50));
        world.slow_down(at as usize, MEDIA_APART);
    }
    world.run(s(80));
    let seen = measure(&mut world, s(40), "5.4", 3.5, ms(50));
    seen.check("5.4", 3.5 * MBIT);
    assert!(jain(&seen.rates) >= 0.85, "{:?}", seen.rates);
}

#[test]
fn who_is_far_away_is_not_starved() {
    let link = wide(4.0).replace("delay=50ms", "delay=10ms");
    let mut world = World::new(&link);
    for (at, one_way) in [10, 25, 50, 100, 150].into_iter().enumerate() {
        // The link has the way there of the nearest.
        world.add_media(&entry(), Time::from_millis(at as u64 * 10_000), ms(2 * one_way - 10));
        world.slow_down(at, MEDIA_APART);
    }
    world.run(s(100));
    let seen = measure(&mut world, s(200), "5.5", 4.0, ms(10));
    seen.check("5.5", 4.0 * MBIT);
    let least = 4.0 * MBIT / 5.0 / 4.0;
    assert!(seen.rates.iter().all(|rate| *rate >= least), "{:?}", seen.rates);
}

#[test]
fn beside_who_yields_to_losses_alone_it_is_not_starved() {
    let mut world = World::new(&wide(2.0));
    world.add_media(&entry(), Time::ZERO, ms(50));
    world.slow_down(0, MEDIA_APART);
    world.add(&cubic::entry(), Time::from_millis(5_000), ms(50));
    world.run(s(30));
    let seen = measure(&mut world, s(90), "5.6", 2.0, ms(50));
    assert!(seen.sum() >= 0.9 * 2.0 * MBIT, "{:?}", seen.rates);
    assert!(seen.rates.iter().all(|rate| *rate >= 0.15 * 2.0 * MBIT), "{:?}", seen.rates);
}

/// Ten send files of 100 kB to 1 MB, and pause for 10 s on average, in turn; for five minutes.
#[test]
fn beside_short_flows_it_goes_on_and_recovers() {
    let mut world = media(&wide(2.0), 2, MEDIA_APART);
    let mut random = Random::from_number(57);
    let shorts = 2..12;
    let mut send = |world: &mut World, flow: usize| {
        let packets = (100_000 + random.below(900_001)) / PACKET_LEN as u64;
        let even = (1 + random.below(1 << 20)) as f64 / f64::from(1 << 20);
        world.play(flow, packets, s(3_600));
        world.pause(flow, s(10).mul_f64(-even.ln()));
    };
    for flow in shorts.clone() {
        world.add(&cubic::entry(), Time::ZERO, ms(50));
        send(&mut world, flow);
    }
    let before: Vec<u64> = world.flows.iter().map(|flow| flow.delivered).collect();
    for _ in 0..3_000 {
        world.run(ms(100));
        // Who pauses already has less to wait than the hour behind a file.
        let has_sent = |flow: &usize| world.rests(*flow).is_some_and(|rest| rest > s(1_000));
        let ended: Vec<usize> = shorts.clone().filter(has_sent).collect();
        ended.into_iter().for_each(|flow| send(&mut world, flow));
    }
    let came = |at: usize| (world.flows[at].delivered - before[at]) * (PACKET_LEN * 8) as u64;
    let rates = [0, 1].map(|at| came(at) as f64 / 300.0);
    let files: f64 = shorts.clone().map(|at| came(at) as f64 / 300.0).sum();
    println!("5.7: {rates:.0?} beside {files:.0} of short flows, bit/s");
    assert!(rates.iter().all(|rate| *rate >= 150_000.0), "{rates:?}");
    assert!(files >= 500_000.0, "{files}");
    shorts.for_each(|flow| world.pause(flow, s(3_600)));
    world.run(s(40));
    let seen = measure(&mut world, s(30), "5.7, alone again", 2.0, ms(50));
    seen.check("5.7, alone again", 2.0 * MBIT);
    assert!(jain(&seen.rates[..2]) >= 0.85, "{:?}", seen.rates);
}

#[test]
fn who_pauses_gets_its_share_again() {
    let mut world = media(&wide(3.5), 3, MEDIA_APART);
    world.run(s(40));
    world.pause(0, s(20));
    world.run(s(5));
    let seen = measure(&mut world, s(15), "5.8, two of three", 3.5, ms(50));
    seen.check("5.8, two of three", 2.0 * MEDIA_BPS);
    world.run(s(10));
    let seen = measure(&mut world, s(40), "5.8, again", 3.5, ms(50));
    seen.check("5.8, again", 3.5 * MBIT);
    assert!(seen.rates[0] >= 3.5 * MBIT / 3.0 / 2.0, "{:?}", seen.rates);
}

/// 40 Mbit/s, 20 ms there and back, 100 ms of queue.
const NEAR: &str = "rate=40Mbit/s,delay=10ms,queue=355";

fn near(count: u64, apart: u64) -> World {
    let mut world = World::new(NEAR);
    (0..count).for_each(|at| world.add_media(&entry(), Time::from_millis(at * apart), ms(10)));
    world
}

#[test]
fn a_frame_is_there_before_the_next() {
    let mut world = World::new("rate=10Mbit/s,delay=15ms,queue=90");
    world.add_media(&entry(), Time::ZERO, ms(15));
    world.play(0, 14, ms(40));
    world.run(s(5));
    let seen = measure(&mut world, s(30), "frames of 20 kB", 10.0, ms(15));
    assert!(seen.queue <= ms(40) && seen.lost == 0.0, "{:?}, {:.4} lost", seen.queue, seen.lost);
    assert!(seen.rates[0] >= 0.99 * (14 * PACKET_LEN * 8 * 25) as f64, "{:?}", seen.rates);
}

#[test]
fn what_the_application_does_not_use_is_no_window() {
    let mut world = near(1, 0);
    world.slow_down(0, ms(10));
    world.run(s(20));
    let flow = &mut world.flows[0];
    let allowed = flow.path.allowance(world.now, false);
    assert!(allowed <= 10 * PACKET_LEN, "{allowed} bytes");
    world.slow_down(0, Duration::ZERO);
    world.run(s(10));
    let seen = measure(&mut world, s(10), "after a slow application", 40.0, ms(10));
    seen.check("after a slow application", LINK);
}

#[test]
fn after_a_pause_it_does_not_burst_and_is_soon_as_fast() {
    let mut world = near(1, 0);
    world.run(s(20));
    world.pause(0, s(10));
    world.run(s(10));
    let seen = measure(&mut world, s(5), "after a pause", 40.0, ms(10));
    assert!(seen.sum() >= 0.7 * LINK && seen.queue <= ms(80), "{:.0} {:?}", seen.sum(), seen.queue);
    assert!(seen.lost <= 0.01, "{:.4} lost", seen.lost);
}

#[test]
fn clocks_that_drift_are_no_queue() {
    for ppm in [-500, 500] {
        let mut world = near(1, 0);
        world.flows[0].drift_ppm = ppm;
        world.run(s(30));
        let what = format!("drift of {ppm} ppm");
        measure(&mut world, s(120), &what, 40.0, ms(10)).check(&what, LINK);
    }
}

#[test]
fn a_way_that_gets_longer_is_no_queue_for_long() {
    let mut world = near(1, 0);
    world.run(s(20));
    world.set_link("rate=40Mbit/s,delay=60ms,queue=355");
    world.run(s(30));
    let seen = measure(&mut world, s(60), "50 ms further", 40.0, ms(60));
    seen.check("50 ms further", LINK);
}

#[test]
fn with_a_peer_that_does_not_count_it_goes_by_reports() {
    let mut world = World::new(NEAR);
    world.add(&entry(), Time::ZERO, ms(10));
    world.run(s(10));
    measure(&mut world, s(30), "by reports", 40.0, ms(10)).check("by reports", LINK);
}

#[test]
fn alone_it_leaves_a_fraction_of_the_queue_that_cubic_does() {
    for link in [NEAR, "rate=4Mbit/s,delay=50ms,queue-bytes=150000"] {
        let (mbit, delay) = if link == NEAR { (40.0, ms(10)) } else { (4.0, ms(50)) };
        let measured = |controller: ControllerEntry| {
            let mut world = World::new(link);
            world.add_probed(&controller, Time::ZERO, delay);
            world.run(s(20));
            measure(&mut world, s(60), &format!("{} alone", controller.spec.name), mbit, delay)
        };
        let [scream, cubic, bbr] = [entry(), cubic::entry(), bbr::entry()].map(measured);
        scream.check(link, mbit * MBIT);
        assert!(scream.queue * 2 < cubic.queue, "{:?} {:?}", scream.queue, cubic.queue);
        assert!(bbr.sum() > 0.85 * mbit * MBIT, "what it is measured beside");
    }
}

#[test]
fn ten_share_evenly_and_none_starves() {
    for apart in [0, 400, 700, 1_000, 2_500] {
        let mut world = near(10, apart);
        world.run(s(30));
        let what = format!("ten, {apart} ms apart");
        let seen = measure(&mut world, s(60), &what, 40.0, ms(10));
        seen.check(&what, LINK);
        assert!(jain(&seen.rates) >= 0.85, "{:?}", seen.rates);
    }
}

/// It takes losses for its own doing, as RFC 9331 wants: no controller for media over a radio that
/// loses by itself.
#[test]
fn losses_by_chance_slow_it_down_as_they_do_cubic() {
    for loss in [1, 5] {
        let measured = |controller: ControllerEntry| {
            let mut world = World::new(&format!("rate=10Mbit/s,delay=15ms,queue=90,loss={loss}%"));
            world.add_probed(&controller, Time::ZERO, ms(15));
            world.run(s(10));
            let what = format!("{}, {loss} % by chance", controller.spec.name);
            measure(&mut world, s(60), &what, 10.0, ms(15)).sum()
        };
        let (scream, cubic) = (measured(entry()), measured(cubic::entry()));
        assert!(scream >= cubic / 2.0, "{loss} %: {scream:.0} of {cubic:.0}");
    }
}

#[test]
fn a_fast_link_nearby_is_used() {
    let mut world = World::new("rate=1Gbit/s,delay=500us,queue=1000");
    world.add_media(&entry(), Time::ZERO, Duration::from_micros(500));
    world.run(s(5));
    let (rates, lost) = world.measure(s(5));
    println!("1 Gbit/s, 1 ms: {:.3}, {lost:.5} lost", rates[0] / 1e9);
    assert!(rates[0] >= 0.85e9, "{:.0}", rates[0]);
}

#[test]
fn codel_marks_it_and_drops_nothing() {
    let mut world = World::new(&format!("{NEAR},aqm=codel"));
    world.add_media(&entry(), Time::ZERO, ms(10));
    world.run(s(5));
    let seen = measure(&mut world, s(30), "codel", 40.0, ms(10));
    seen.check("codel", LINK);
    assert!(seen.lost == 0.0, "{:.5}", seen.lost);
}

#[test]
fn over_dualpi2_it_shares_with_its_like_and_with_cubic() {
    let link = format!("{NEAR},aqm=dualpi2");
    let mut world = World::new(&link);
    (0..2).for_each(|at| world.add_media(&entry(), Time::from_millis(at * 3_000), ms(10)));
    world.run(s(20));
    let seen = measure(&mut world, s(30), "two over dualpi2", 40.0, ms(10));
    assert!(jain(&seen.rates) >= 0.9 && seen.queue <= ms(5), "{:?} {:?}", seen.rates, seen.queue);
    let mut world = World::new(&link);
    world.add_media(&entry(), Time::ZERO, ms(10));
    world.add_probed(&cubic::entry(), Time::from_millis(3_000), ms(10));
    world.run(s(20));
    let seen = measure(&mut world, s(60), "beside cubic over dualpi2", 40.0, ms(10));
    assert!(seen.rates.iter().all(|rate| *rate >= LINK / 4.0), "{:?}", seen.rates);
}

/// The cases of media where a module reports what came, and `bbr` holds them: a source that has a
/// little more than the link is no reason to lose any.
#[test]
fn of_what_is_reported_bbr_loses_nothing_either() {
    let mut world = World::new(&wide(1.0));
    world.add(&bbr::entry(), Time::ZERO, ms(50));
    world.slow_down(0, MEDIA_APART);
    for mbit in [1.0, 2.5, 0.6, 1.0] {
        world.set_link(&wide(mbit));
        world.run(s(5));
        let what = format!("bbr, 5.1, {mbit} Mbit/s");
        let seen = measure(&mut world, s(15), &what, mbit, ms(50));
        seen.check(&what, (mbit * MBIT).min(MEDIA_BPS));
        assert!(seen.lost <= 0.01, "{what}: {:.4} lost", seen.lost);
    }
    let mut world = World::new(&wide(3.5));
    for at in 0..3 {
        world.add(&bbr::entry(), Time::from_millis(at * 20_000), ms(50));
        world.slow_down(at as usize, MEDIA_APART);
    }
    world.run(s(80));
    let seen = measure(&mut world, s(40), "bbr, 5.4", 3.5, ms(50));
    assert!(seen.sum() >= 0.85 * 3.5 * MBIT && seen.lost <= 0.01, "{:?}", seen.rates);
    assert!(jain(&seen.rates) >= 0.85, "{:?}", seen.rates);
}
