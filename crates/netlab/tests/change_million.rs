//! Changes over a million units: what is lost is exactly what the link took, nothing is repeated or
//! reordered, and who is fed around a change is delayed by two round trips at most, and by three
//! where the link takes 5 %.
//!
//! One who is far and fast gets more of a new epoch than can be held while the old one is waited
//! for.
//!
//! Time is virtual: a delay is a property of the exchange, not of the machine.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, config, ms, offer, pattern};
use dacapo_core::{Command, CoreEvent};
use dacapo_link::Passage;
use dacapo_netlab::catalogue;
use dacapo_netlab::traffic::{Pattern, Record};
use dacapo_wire::data::TYPE_DATA;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::FlowOffer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Units of each run, a millisecond apart; six runs are a million and some.
const UNITS: u64 = 170_000;

/// All units are so long, and fill a datagram each; marks are shorter.
const LEN: usize = 300;

const ONE_WAY: Duration = ms(10);
const RTT: Duration = ms(20);

/// How long `sequence` waits: what it adds by itself, at a change and anywhere.
const HOLD: Duration = ms(5);

/// The units that a change may delay: those fed within a round trip before it and five after.
const BEFORE: u64 = 20;
const AFTER: u64 = 100;

/// Graphs that keep order, and some that do not.
const ORDERED: [&[&str]; 3] =
    [&["segment", "sequence", "checksum"], &["sequence", "checksum"], &["sequence"]];
const MIXED: [&[&str]; 6] =
    [ORDERED[0], &["checksum"], ORDERED[1], &["segment", "checksum"], &[], ORDERED[2]];

/// A graph whose `sequence` waits for [`HOLD`].
fn graph(names: &[&str]) -> GraphForm {
    let catalogue = catalogue();
    GraphForm::line(names.iter().map(|name| {
        let hold = (*name == "sequence").then_some((0, HOLD.as_nanos() as u64));
        (catalogue.by_name(name).unwrap().spec.id, hold.into_iter().collect())
    }))
}

/// What is run.
struct Case<'a> {
    seed: u64,
    link: &'a str,
    units: u64,
    every: Duration,
    graphs: &'a [&'a [&'a str]],
}

/// What came out of a run.
struct Run {
    changes: usize,
    /// From when units around changes were made to when they were passed on, ascending.
    waits: Vec<Duration>,
}

/// Counts the units that the link takes on the way from the creator.
fn count_taken(lab: &mut Lab) -> Arc<AtomicU64> {
    let (taken, creator) = (Arc::new(AtomicU64::new(0)), lab.creator);
    let count = taken.clone();
    lab.world.observe(move |crossing| {
        let is_unit = crossing.bytes.first() == Some(&TYPE_DATA) && crossing.bytes.len() >= LEN;
        let is_taken = match crossing.fate.item {
            Passage::Arrives { .. } => false,
            Passage::Dropped(_) => true,
            Passage::Waits { .. } => panic!("what a managed queue takes is not said here"),
        };
        if crossing.node == creator && is_unit && is_taken {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    taken
}

/// Changes a flow to one of the graphs after the other until it ends; how much had been sent at
/// each change.
fn change_on(lab: &mut Lab, joined: &Joined, graphs: &[&[&str]]) -> Vec<u64> {
    let (creator, session, mut bases) = (lab.creator, joined.there, Vec::new());
    for names in graphs.iter().cycle().skip(1) {
        lab.run(ms(200));
        if lab.ledger(creator, session, 0).is_some() {
            break;
        }
        let now = lab.now();
        let epoch = lab.world.core(creator).status(session)[0].epoch;
        // While a change goes on, and at the end of the flow, there is none.
        if lab
            .world
            .core(creator)
            .handle_command(now, Command::Change { session, flow: 0, graph: graph(names) })
            .is_ok()
        {
            lab.wait(ms(6_000), |lab| lab.world.core(creator).status(session)[0].epoch > epoch);
            bases.push(lab.world.core(creator).status(session)[0].sent);
        }
    }
    bases
}

/// How long the units around changes were on their way.
fn around(bases: &[u64], record: &Record) -> Vec<Duration> {
    let is_near = |number: u64| {
        let next = bases.partition_point(|base| base + AFTER < number);
        bases.get(next).is_some_and(|base| number + BEFORE >= *base)
    };
    let near = record.numbers.iter().zip(&record.waits).filter(|(number, _)| is_near(**number));
    let mut waits: Vec<_> = near.map(|(_, wait)| *wait).collect();
    waits.sort_unstable();
    waits
}

/// Runs a flow that changes again and again over a link, and checks what came.
fn run(case: &Case<'_>) -> Run {
    let mut lab = Lab::with(case.seed, case.link, config(), config());
    let taken = count_taken(&mut lab);
    lab.pattern = Pattern { every: case.every, len_min: LEN, len_max: LEN, ..pattern(case.units) };
    let (graphs, bound_bps) = (case.graphs, 500_000_000);
    let flow = FlowOffer { graph: graph(graphs[0]), bound_bps, ..offer("flow", &[]) };
    let joined = lab.start(vec![flow]);
    let bases = change_on(&mut lab, &joined, graphs);
    let hint = format!("seed {}, {}", case.seed, case.link);
    let (here, there) = lab.ledgers(&joined, 0, ms(30_000));
    assert!(here.closes() && there.closes(), "{hint}: {here:?} {there:?}");
    let expected = (case.units, taken.load(Ordering::Relaxed), 0, 0);
    assert_eq!((here.sent, here.lost, here.duplicates, here.after_lost), expected, "{hint}");
    let record = joined.seen[0].as_ref().unwrap().record().clone();
    assert_eq!((record.altered, record.misnumbered), (0, 0), "{hint}");
    let ordered = graphs.iter().all(|names| names.contains(&"sequence"));
    assert!(!ordered || record.numbers.is_sorted(), "{hint}: out of order");
    let changes = lab.count(lab.creator, |event| matches!(event, CoreEvent::Changed { .. }));
    Run { changes, waits: around(&bases, &record) }
}

#[test]
fn a_million_units_lose_only_what_the_link_took_and_wait_two_round_trips_at_most() {
    let goals = [("0%", 2), ("1%", 2), ("5%", 3)];
    for (seed, (loss, round_trips)) in goals.into_iter().enumerate() {
        for graphs in [&ORDERED[..], &MIXED[..]] {
            let (seed, link) = (seed as u64, format!("delay=10ms,loss={loss}"));
            let Run { changes, waits } =
                run(&Case { seed, link: &link, units: UNITS, every: ms(1), graphs });
            let added = |at: usize| waits[at].saturating_sub(ONE_WAY);
            let (p99, most) = (added(waits.len() * 99 / 100), added(waits.len() - 1));
            println!(
                "loss {loss}, {} graphs, {changes} changes: {} units around them are delayed by \
                 {p99:?} (p99), {most:?} at most",
                graphs.len(),
                waits.len()
            );
            assert!(changes >= 300, "{changes} changes");
            assert!(p99 <= RTT * round_trips + ms(5), "loss {loss}: p99 {p99:?}");
        }
    }
}

#[test]
fn what_comes_is_not_lost_for_what_may_come() {
    let graphs: [&[&str]; 2] = [&["segment"], ORDERED[0]];
    for seed in 0..4 {
        let link = "delay=50ms,loss=1%";
        let every = Duration::from_micros(20);
        // In the 100 ms of a round trip come 5,000 units; 1,024 can be held.
        let run = run(&Case { seed, link, units: 100_000, every, graphs: &graphs });
        assert!(run.changes >= 3, "seed {seed}: {} changes", run.changes);
    }
}
