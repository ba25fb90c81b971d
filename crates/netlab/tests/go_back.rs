//! What a receiver that keeps nothing costs (`arq-gbn`), beside one that keeps what came behind a
//! loss (`arq-sr`): goodput and packets over a link that loses, and the views that are out at the
//! receiver.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, config, graph, ms};
use dacapo_netlab::scenario::raw_offer;
use dacapo_netlab::traffic::Pattern;
use dacapo_path::controllers::cubic;
use std::time::Duration;

const UNIT_LEN: usize = 1_300;

struct Measured {
    bps: f64,
    packets_per_unit: f64,
    /// The most that were out at the receiver at a millisecond's end.
    views_max: usize,
}

/// Ten seconds of a flow that always has more, over 20 Mbit/s and 20 ms each way: below what the
/// path's controller allows, or at 10 Mbit/s.
fn measure(module: &str, loss: &str, yields: bool) -> Measured {
    let with = || {
        let mut config = config();
        if yields {
            config.controllers = cubic::entry().into();
        }
        config
    };
    let link = format!("rate=20Mbit/s,delay=20ms,queue=70,loss={loss}%");
    let mut lab = Lab::with(1, &link, with(), with());
    let (len_min, len_max) = (UNIT_LEN, UNIT_LEN);
    let every = Duration::from_micros(100);
    lab.pattern = Pattern { count: 10_000_000, every, len_min, len_max, seed: 7 };
    let bound_bps = if yields { 1_000_000_000 } else { 10_000_000 };
    let flow = raw_offer("whole", graph(&[module, "checksum"]), bound_bps, 1_400);
    let joined = lab.start(vec![flow]);
    lab.run(ms(3_000));
    let (creator, participant) = (lab.creator, lab.participant);
    let sent = lab.world.link_stats(creator, participant).sent;
    let (before, mut views_max) = (joined.numbers(0).len(), 0);
    for _ in 0..10_000 {
        lab.run(ms(1));
        views_max = views_max.max(lab.world.core(participant).pool().live_views());
    }
    let numbers = joined.numbers(0);
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "in order, and none is missing");
    let came = (numbers.len() - before) as f64;
    let packets = (lab.world.link_stats(creator, participant).sent - sent) as f64;
    let it = Measured {
        bps: came * UNIT_LEN as f64 * 8.0 / 10.0,
        packets_per_unit: packets / came,
        views_max,
    };
    println!(
        "{module}, {loss} % lost, yields {yields}: {:.2} Mbit/s, {:.3} packets a unit, {} views",
        it.bps / 1e6,
        it.packets_per_unit,
        it.views_max
    );
    lab.close(creator, joined.there);
    let (here, there) = lab.ledgers(&joined, 0, ms(20_000));
    assert!(here.closes() && there.closes(), "{here:?} {there:?}");
    it
}

#[test]
fn who_keeps_nothing_makes_the_other_send_more_and_never_loses() {
    // Of what is carried where all is kept: so much at least.
    let least = [(true, [0.8, 0.4, 0.3, 0.12]), (false, [0.97, 0.9, 0.5, 0.2])];
    for (yields, least) in least {
        for (loss, least) in ["0", "0.1", "1", "5"].into_iter().zip(least) {
            let (back, kept) = (measure("arq-gbn", loss, yields), measure("arq-sr", loss, yields));
            let share = back.bps / kept.bps;
            println!("  {share:.3} of what arq-sr carries");
            assert!(share > least, "{share:.3} of arq-sr at {loss} %");
            assert!(back.views_max <= 4, "{} views at a receiver that keeps none", back.views_max);
            if loss == "5" {
                assert!(back.packets_per_unit > kept.packets_per_unit, "which is what it costs");
                assert!(kept.views_max > 4, "{} views: there is nothing to save", kept.views_max);
            }
        }
    }
}
