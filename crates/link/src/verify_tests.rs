//! The emulator keeps what it promises, and the verification sees when it does not.

use super::*;
use crate::loss::Loss;

const COUNT: usize = 60_000;

fn config(text: &str) -> LinkConfig {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn failing(running: &str, promised: &str) -> Vec<&'static str> {
    let report = verify_against(&config(running), &config(promised), 7, COUNT).unwrap();
    report.figures.iter().filter(|figure| !figure.ok).map(|figure| figure.name).collect()
}

#[test]
fn the_emulator_keeps_what_every_configuration_promises() {
    for (seed, text) in [
        "perfect",
        "loss=0.1%",
        "loss=1%",
        "loss=5%,delay=20ms,jitter=5ms",
        "loss=30%",
        "loss=100%",
        "loss=1%,burst=3",
        "loss=5%,burst=10",
        "loss=5%,burst=50",
        "loss=5%,burst=26ms",
        "loss=20%,burst=2ms,delay=1ms",
        "loss=40%,burst=1",
        "gilbert=0.5%:10%:1%:80%",
        "gilbert=30%:40%:5%:60%",
        "gilbert=90%:90%:0%:100%",
        "gilbert=0%:0%:2%:50%",
        "delay=50ms",
        "delay=50ms,jitter=50ms",
        "delay=5ms,jitter=50ms",
        "delay=100ms,jitter=10ms,shape=normal",
        "delay=10ms,jitter=10ms,shape=normal",
        "jitter=30ms,shape=normal,keep-order=no",
        "delay=60s,jitter=60s,shape=normal,reorder=50%,reorder-by=60s",
        "dup=1%",
        "dup=50%,delay=10ms,jitter=10ms",
        "dup=100%",
        "reorder=2%,delay=20ms",
        "reorder=25%,reorder-by=100ms,delay=20ms,jitter=5ms",
        "reorder=100%,reorder-by=1ns",
        "corrupt=0.1%,corrupt-undetected=0.1%",
        "corrupt=30%,corrupt-undetected=70%",
        "corrupt=100%",
        "rate=10Mbit/s,queue=25",
        "rate=1bit/s,queue=0",
        "rate=7Gbit/s,queue-bytes=64kB",
        "rate=3kbit/s,queue=100,delay=10ms,dup=10%",
        "in-flight=1,dup=20%,corrupt=10%",
        "in-flight=1000,delay=1s",
        "mtu=1280,mtu-from=5s,partition=5s..7s+20s..never,loss=1%",
        "mtu=1,partition=0s..1ns",
        "rate=10Mbit/s,aqm=codel,loss=2%,delay=20ms",
        "rate=10Mbit/s,aqm=codel,aqm-target=100ms,aqm-interval=20ms,corrupt=3%",
        "rate=1bit/s,aqm=codel,aqm-target=1us,aqm-interval=60s,dup=10%",
        "rate=10Mbit/s,queue=50,aqm=dualpi2,jitter=5ms,corrupt-undetected=5%,ecn=clear",
        "trace=cellular:3,loss=1%,delay=5ms",
        "trace=cellular:4,aqm=codel,queue=20",
        "loss=5%,delay=20ms,jitter=5ms,burst=10,dup=1%,reorder=2%,corrupt=0.1%,rate=10Mbit/s,\
         queue=100,mtu=1280,corrupt-undetected=0.1%,partition=1s..2s",
    ]
    .into_iter()
    .enumerate()
    {
        let report = verify(&config(text), seed as u64, COUNT).unwrap();
        assert!(report.is_ok(), "{text}\n{report}");
        assert!(report.figures.len() >= 2, "{text}\n{report}");
    }
}

#[test]
fn many_seeds_stay_within_the_tolerance() {
    let text = "loss=3%,burst=4,delay=20ms,jitter=5ms,shape=normal,dup=2%,reorder=5%,corrupt=1%,\
                corrupt-undetected=2%,rate=50Mbit/s";
    for seed in 0..60 {
        let report = verify(&config(text), seed, 5_000).unwrap();
        assert!(report.is_ok(), "seed {seed}\n{report}");
    }
}

#[test]
fn a_doubled_loss_is_seen() {
    assert_eq!(failing("loss=2%", "loss=1%"), ["lost"]);
    assert_eq!(failing("loss=5%", "loss=10%"), ["lost", "mean burst"]);
}

#[test]
fn every_wrong_figure_is_seen_where_it_is_wrong() {
    for (running, promised, wrong) in [
        ("loss=5%,burst=10", "loss=5%,burst=5", "mean burst"),
        ("loss=5%,burst=3", "loss=5%", "mean burst"),
        ("loss=5%,burst=26ms", "loss=5%,burst=13ms", "mean burst"),
        ("dup=1%", "dup=2%", "duplicated"),
        ("dup=0.1%", "perfect", "duplicated"),
        ("reorder=2%", "reorder=4%", "reordered"),
        ("reorder=2%,reorder-by=10ms", "reorder=2%,reorder-by=12ms", "mean hold-back"),
        ("corrupt=1%", "corrupt=2%", "corrupted, detected"),
        ("corrupt-undetected=1%", "corrupt-undetected=2%", "corrupted, undetected"),
        ("delay=20ms", "delay=20001us", "mean delay"),
        ("delay=20ms,jitter=5ms", "delay=20ms,jitter=6ms", "jitter, deviation"),
        ("delay=20ms,jitter=6ms", "delay=20ms,jitter=5ms", "delays out of range"),
        (
            "delay=90ms,jitter=10ms",
            "delay=90ms,jitter=5773us,shape=normal",
            "jitter, near its centre",
        ),
        ("rate=10Mbit/s", "rate=10001kbit/s", "rate"),
        ("rate=10Mbit/s", "perfect", "rate"),
        ("perfect", "rate=10Mbit/s", "rate"),
        ("rate=10Mbit/s,queue=100", "rate=10Mbit/s,queue=101", "queue and transmitter"),
        ("in-flight=100", "in-flight=101", "in flight, most"),
        ("rate=1Mbit/s", "rate=1Mbit/s,aqm=codel", "CoDel, drops of a standing queue"),
        (
            "rate=1Mbit/s,aqm=codel,aqm-interval=120ms",
            "rate=1Mbit/s,aqm=codel",
            "CoDel, drops of a standing queue",
        ),
        (
            "rate=1Mbit/s,aqm=codel,aqm-target=20ms",
            "rate=1Mbit/s,aqm=codel",
            "CoDel, drops of a standing queue",
        ),
        ("rate=1Mbit/s,aqm=dualpi2", "rate=1Mbit/s,aqm=codel", "CoDel, drops of a standing queue"),
        ("trace=cellular:1", "trace=cellular:2", "trace, items in its time"),
        ("rate=10Mbit/s", "trace=cellular:2", "trace, items in its time"),
        ("partition=5s..7s", "partition=5s..6999999999ns", "wrong verdicts of rules"),
        ("mtu=1280", "mtu=1281", "wrong verdicts of rules"),
        ("mtu=1280,mtu-from=1s", "mtu=1280", "wrong verdicts of rules"),
    ] {
        let found = failing(running, promised);
        assert!(found.contains(&wrong), "{running} against {promised}: {found:?}");
    }
}

#[test]
fn a_record_that_says_otherwise_than_what_arrived_is_seen() {
    let due = Time::from_millis(5);
    let arrives = Passage::Arrives { due, held_back: Duration::ZERO, corrupted: false };
    let arrival = |copy| Delivery {
        item: Probe::of(1),
        sent: Time::ZERO,
        delivered: due,
        copy,
        corrupted: false,
    };
    let fate = Fate { item: arrives, copy: None };
    assert!(agrees(&fate, &[arrival(false)]));
    assert!(!agrees(&fate, &[]));
    assert!(!agrees(&fate, &[arrival(true)]));
    assert!(!agrees(&fate, &[arrival(false), arrival(true)]));
    let late = Delivery { delivered: Time::from_millis(6), ..arrival(false) };
    assert!(!agrees(&fate, &[late]));
    let altered = Delivery { item: Probe { len: 1, altered: true }, ..arrival(false) };
    assert!(!agrees(&fate, &[altered]));
    let lost = Fate { item: Passage::Dropped(DropReason::LossRandom), copy: None };
    assert!(agrees(&lost, &[]) && !agrees(&lost, &[arrival(false)]));
}

#[test]
fn the_report_is_a_table_with_verdicts() {
    let report = verify_against(&config("loss=10%"), &config("loss=1%"), 3, 10_000).unwrap();
    let table = report.to_string();
    assert!(table.starts_with("seed 3, 10000 items\n"), "{table}");
    assert!(table.lines().any(|line| line.starts_with("lost ") && line.ends_with("WRONG")));
    assert!(table.lines().any(|line| line.ends_with(" ok")), "{table}");
    assert_eq!(report.figure("lost").map(|figure| figure.configured), Some(0.01));
}

#[test]
fn an_invalid_configuration_is_refused() {
    let bad = LinkConfig { loss: Loss::Random { p: 2.0 }, ..LinkConfig::default() };
    assert!(verify(&bad, 1, 10).is_err());
    assert!(verify_against(&LinkConfig::default(), &bad, 1, 10).is_err());
}
