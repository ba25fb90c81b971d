//! A change loses nothing that is only late: what waits for the pace when the change is told, and
//! what the network holds up when everything has been calm before.
//!
//! ```text
//!   sender     n n n n | END BEGIN e e        what is left of n waits for the pace
//!   control    SWITCHED ------------> first   and says where e begins
//!   receiver             n n n n END e e
//! ```

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, config, graph, ms, offer, pattern};
use dacapo_core::{Command, CoreEvent};
use dacapo_wire::session::FlowOffer;

const FULL: &[&str] = &["segment", "sequence", "checksum"];

/// The graph before, the graph after: each kind of order follows each.
const CHANGES: [(&[&str], &[&str]); 4] = [
    (FULL, &["segment", "sequence"]),
    (FULL, &["segment"]),
    (&["segment"], FULL),
    (&["segment"], &["segment", "checksum"]),
];

/// How long everything is calm, so that whatever was measured of the path's jitter is forgotten.
const CALM: std::time::Duration = ms(6_000);

/// Changes the flow once, now.
fn change(lab: &mut Lab, joined: &Joined, names: &[&str]) {
    let now = lab.now();
    let creator = lab.creator;
    lab.world
        .core(creator)
        .handle_command(
            now,
            Command::Change { session: joined.there, flow: 0, graph: graph(names) },
        )
        .unwrap();
}

/// Everything came, once, in order where the graphs keep it, after one change.
fn check(lab: &mut Lab, joined: &Joined, ordered: bool, hint: &str) {
    let (here, there) = lab.ledgers(joined, 0, ms(120_000));
    assert!(here.closes() && there.closes(), "{hint}: {here:?} {there:?}");
    let counts = (here.sent, here.delivered, here.lost, here.after_lost, here.duplicates);
    let count = lab.pattern.count;
    assert_eq!(counts, (count, count, 0, 0, 0), "{hint}");
    let made = lab.count(lab.participant, |event| matches!(event, CoreEvent::Changed { .. }));
    assert_eq!(made, 1, "{hint}");
    let mut numbers = joined.numbers(0);
    assert!(!ordered || numbers.is_sorted(), "{hint}: out of order");
    numbers.sort_unstable();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "{hint}");
}

fn keeps_order(graphs: [&[&str]; 2]) -> bool {
    graphs.iter().all(|names| names.contains(&"sequence"))
}

#[test]
fn what_waits_for_the_pace_when_the_change_is_told_is_waited_for() {
    for (from, to) in CHANGES {
        for bound_bps in [400_000, 2_000_000, 20_000_000] {
            let mut lab = Lab::new("delay=1ms");
            lab.pattern = pattern(bound_bps / 4_000);
            (lab.pattern.every, lab.pattern.len_min, lab.pattern.len_max) = (ms(0), 16, 9_000);
            let flow = FlowOffer { bound_bps, unit_len_max: 9_016, ..offer("slow", from) };
            let joined = lab.start(vec![flow]);
            lab.run(CALM);
            change(&mut lab, &joined, to);
            let hint = format!("{from:?} to {to:?} at {bound_bps} bit/s");
            check(&mut lab, &joined, keeps_order([from, to]), &hint);
        }
    }
}

/// What the link does after it has been calm: datagrams overtake each other, all take longer from
/// one moment to the next, or a few are held back.
const LINKS: [&str; 4] = [
    "delay=20ms,jitter=19ms,keep-order=no",
    "delay=20ms,jitter=19ms",
    "delay=90ms",
    "delay=20ms,reorder=20%,reorder-by=35ms",
];

#[test]
fn what_the_network_delays_after_a_long_calm_is_waited_for() {
    for (from, to) in CHANGES {
        for seed in 0..24 {
            let mut lab = Lab::with(seed, "delay=20ms", config(), config());
            lab.pattern = pattern(7_000);
            let joined = lab.start(vec![offer("flow", from)]);
            lab.run(CALM);
            let (now, link) = (lab.now(), LINKS[seed as usize % LINKS.len()]);
            let config = link.parse().unwrap();
            lab.world.link(lab.creator, lab.participant).set_config(now, config).unwrap();
            lab.run(ms(3 * seed));
            change(&mut lab, &joined, to);
            let hint = format!("seed {seed}: {from:?} to {to:?}, {link}");
            check(&mut lab, &joined, keeps_order([from, to]), &hint);
        }
    }
}
