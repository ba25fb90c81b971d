//! A flow that yields to nobody, over a path that does not carry it: it is held to what the path
//! carries, and let go when the path carries more; what a path loses by itself holds nothing.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, config, graph, ms};
use dacapo_core::{CoreConfig, CoreEvent};
use dacapo_netlab::scenario::raw_offer;
use dacapo_netlab::traffic::Pattern;
use dacapo_path::controllers::cubic;
use std::time::Duration;

/// 5.5 Mbit/s.
const UNIT_LEN: usize = 1_100;
const EVERY: Duration = Duration::from_micros(1_600);

/// Flows that begin now: the first yields to nobody; one beside it acknowledges, where it is to.
fn begin(link: &str, has_other: bool) -> (Lab, Joined) {
    let yielding = || CoreConfig { controllers: cubic::entry().into(), ..config() };
    let mut lab = Lab::with(1, link, yielding(), yielding());
    let (len_min, len_max) = (UNIT_LEN, UNIT_LEN);
    lab.pattern = Pattern { count: 10_000_000, every: EVERY, len_min, len_max, seed: 7 };
    let mut offers = vec![raw_offer("live", graph(&["sequence"]), 50_000_000, UNIT_LEN as u32)];
    if has_other {
        offers.push(raw_offer("other", graph(&["arq-sr"]), 50_000_000, UNIT_LEN as u32));
    }
    let joined = lab.start(offers);
    (lab, joined)
}

/// What was told of the path, with the time in seconds.
fn told(lab: &Lab) -> Vec<(f64, u32, Option<u64>)> {
    let told = |(node, at, event): &(_, dacapo_base::Time, CoreEvent)| match event {
        CoreEvent::PathHeld { loss_ppm, rate_bps, .. } if *node == lab.creator => {
            Some((at.as_nanos() as f64 / 1e9, *loss_ppm, *rate_bps))
        }
        _ => None,
    };
    lab.log.iter().filter_map(told).collect()
}

/// How many Mbit/s of units come in so many seconds of each flow.
fn rates(lab: &mut Lab, joined: &Joined, secs: u64) -> Vec<f64> {
    let count = |joined: &Joined| -> Vec<usize> {
        (0..joined.seen.len()).map(|flow| joined.numbers(flow).len()).collect()
    };
    let before = count(joined);
    lab.run(ms(1_000 * secs));
    let came = count(joined).into_iter().zip(before).map(|(now, before)| now - before);
    came.map(|units| (units * UNIT_LEN * 8) as f64 / 1e6 / secs as f64).collect()
}

#[test]
fn what_a_path_loses_by_itself_holds_nothing() {
    let (mut lab, joined) = begin("rate=20Mbit/s,delay=50ms,queue=100,loss=30%", false);
    lab.run(ms(40_000));
    assert_eq!(told(&lab), []);
    let rates = rates(&mut lab, &joined, 5);
    assert!((3.7..4.0).contains(&rates[0]), "{rates:?}");
}

#[test]
fn what_is_not_carried_is_held_and_leaves_room_for_who_yields() {
    let narrow = "rate=2Mbit/s,delay=30ms,queue=40";
    let (mut lab, joined) = begin(narrow, true);
    let filled = rates(&mut lab, &joined, 8);
    assert!(filled[1] < 0.03, "it takes all, at first: {filled:?}");
    lab.run(ms(20_000));
    let [(at, loss_ppm, Some(_))] = told(&lab)[..] else { panic!("{:?}", told(&lab)) };
    assert!(at < 15.0 && loss_ppm > 500_000, "{:?}", told(&lab));
    let held = rates(&mut lab, &joined, 100);
    println!("held: {held:.2?} Mbit/s of 2");
    assert!(held[1] > 0.3 && held[0] + held[1] > 1.6, "{held:?}");
    // The path carries all of it from now on.
    let wide = "rate=50Mbit/s,delay=30ms,queue=200".parse().unwrap();
    let now = lab.now();
    lab.world.link(lab.creator, lab.participant).set_config(now, wide).unwrap();
    lab.run(ms(90_000));
    let [_, (_, _, None)] = told(&lab)[..] else { panic!("{:?}", told(&lab)) };
    let free = rates(&mut lab, &joined, 5);
    assert!(free[0] > 5.4, "{free:?}");
}
