//! Packets that overtake each other are no losses: a flow over `arq-sr` that `cubic` holds has the
//! link all the same.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, config, graph, ms};
use dacapo_core::CoreConfig;
use dacapo_netlab::scenario::raw_offer;
use dacapo_netlab::traffic::Pattern;
use dacapo_path::controllers::cubic;
use std::time::Duration;

const UNIT_LEN: usize = 1_300;

fn yields() -> CoreConfig {
    CoreConfig { controllers: cubic::entry().into(), ..config() }
}

/// What a flow has of 50 Mbit/s, of which 5 in 100 packets come so much before their turn, in
/// Mbit/s: from the tenth second on.
fn measure(by_ms: u64) -> f64 {
    let link = format!("rate=50Mbit/s,delay=10ms,queue=80,reorder=5%,reorder-by={by_ms}ms");
    let mut lab = Lab::with(1, &link, yields(), yields());
    let (len_min, len_max, every) = (UNIT_LEN, UNIT_LEN, Duration::from_micros(100));
    lab.pattern = Pattern { count: 10_000_000, every, len_min, len_max, seed: 7 };
    let flow = raw_offer("whole", graph(&["arq-sr", "checksum"]), 1_000_000_000, 1_400);
    let joined = lab.start(vec![flow]);
    lab.run(ms(10_000));
    let before = joined.numbers(0).len();
    lab.run(ms(5_000));
    let bits = (joined.numbers(0).len() - before) * UNIT_LEN * 8;
    let mbit = bits as f64 / 5.0 / 1e6;
    println!("{by_ms} ms before their turn: {mbit:.2} Mbit/s");
    lab.close(lab.creator, joined.there);
    let (here, there) = lab.ledgers(&joined, 0, ms(20_000));
    assert!(here.closes() && there.closes() && here.lost == 0, "{here:?} {there:?}");
    mbit
}

#[test]
fn who_is_overtaken_is_late_and_not_lost() {
    for by_ms in [1, 2, 3, 4, 5, 8] {
        let mbit = measure(by_ms);
        // With headers 49 are all there is.
        assert!(mbit >= 47.0, "{by_ms} ms: {mbit:.2} Mbit/s");
    }
}
