//! Several flows that must not lose anything, over one path that is narrower than what they have:
//! what each gets by its priority, deadline and share.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use common::{Lab, config, graph, ms};
use dacapo_core::{CoreConfig, CoreEvent, Port};
use dacapo_netlab::scenario::raw_offer;
use dacapo_netlab::traffic::{Pattern, PatternSink, PatternSource, Seen};
use dacapo_path::controllers::cubic;
use dacapo_wire::attribute::{AttributeForm, key};
use dacapo_wire::session::FlowOffer;
use std::collections::BTreeMap;
use std::time::Duration;

/// 40 ms there and back.
const LINK: &str = "rate=20Mbit/s,delay=20ms,queue=70";
const LINK_BPS: f64 = 20e6;

/// How long flows have run before they are measured, and for how long they are.
const WARM: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(10);

/// What one flow asks for and has.
struct Has {
    attributes: Vec<AttributeForm>,
    unit_len: usize,
    every: Duration,
}

/// One that has more than the link takes.
fn greedy(unit_len: usize, attributes: &[(u16, i64)]) -> Has {
    let least = |&(key, min)| AttributeForm { key, min: Some(min), max: None, weight: None };
    let attributes = attributes.iter().map(least).collect();
    // 40 Mbit/s each.
    Has { attributes, unit_len, every: Duration::from_nanos(unit_len as u64 * 200) }
}

fn yielding() -> CoreConfig {
    CoreConfig { controllers: cubic::entry().into(), ..config() }
}

/// What came of each: its bytes while they were measured, and how long its units took.
struct Got {
    bytes: Vec<f64>,
    waits: Vec<Vec<Duration>>,
}

impl Got {
    /// Of the link.
    fn part(&self, flow: usize) -> f64 {
        self.bytes[flow] * 8.0 / MEASURED.as_secs_f64() / LINK_BPS
    }

    fn all(&self) -> f64 {
        (0..self.bytes.len()).map(|flow| self.part(flow)).sum()
    }

    /// So long at most took 99 of 100 units.
    fn p99(&self, flow: usize) -> Duration {
        let mut waits = self.waits[flow].clone();
        waits.sort();
        waits[waits.len() * 99 / 100]
    }
}

fn run(flows: &[Has]) -> Got {
    let mut lab = Lab::with(1, LINK, yielding(), yielding());
    let pattern = |has: &Has| {
        let (len_min, len_max) = (has.unit_len, has.unit_len);
        Pattern { count: 10_000_000, every: has.every, len_min, len_max, seed: 7 }
    };
    let patterns: BTreeMap<String, Pattern> =
        flows.iter().zip(0..).map(|(has, i)| (format!("flow-{i}"), pattern(has))).collect();
    let offers = patterns.keys().zip(flows).map(|(name, has)| FlowOffer {
        attributes: has.attributes.clone(),
        ..raw_offer(name, graph(&["arq-sr"]), 1_000_000_000, 1_400)
    });
    let opened = patterns.clone();
    lab.publish_with("test", offers.collect(), move |flow| {
        Ok(Port::Source(Box::new(PatternSource::new(opened[&flow.name]))))
    });
    let peer = lab.dial();
    let here = lab.join(peer, "test");
    lab.offered(here);
    let (ports, seen): (Vec<Option<Port>>, Vec<Seen>) = patterns
        .values()
        .map(|pattern| PatternSink::new(*pattern))
        .map(|(sink, seen)| (Some(Port::Sink(Box::new(sink))), seen))
        .unzip();
    let now = lab.now();
    lab.world.core(lab.participant).answer(now, here, ports).unwrap();
    lab.expect(lab.participant, ms(15_000), |event| {
        matches!(event, CoreEvent::Ready { session } if *session == here).then_some(())
    });
    lab.activate(here);
    lab.run(WARM);
    let before: Vec<usize> = seen.iter().map(|it| it.record().numbers.len()).collect();
    lab.run(MEASURED);
    let came = seen.iter().zip(&before).zip(flows);
    let bytes = came.map(|((it, before), has)| {
        let numbers = it.record().numbers.clone();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "in order, none is missing");
        ((numbers.len() - before) * has.unit_len) as f64
    });
    let bytes = bytes.collect();
    let waits = seen.iter().zip(&before).map(|(it, before)| it.record().waits[*before..].to_vec());
    let got = Got { bytes, waits: waits.collect() };
    let parts: Vec<f64> = (0..flows.len()).map(|flow| got.part(flow)).collect();
    println!("of the link {parts:.3?}");
    got
}

#[test]
fn equals_get_as_many_bytes_whatever_their_units_are() {
    let got = run(&[greedy(1_300, &[]), greedy(325, &[])]);
    // Headers are more of the small ones.
    assert!(got.all() > 0.8, "{:.3}", got.all());
    let ratio = got.part(1) / got.part(0);
    assert!((0.85..1.02).contains(&ratio), "{ratio:.3}");
}

#[test]
fn shares_say_what_each_gets() {
    let got = run(&[greedy(1_300, &[(key::SHARE, 1)]), greedy(1_300, &[(key::SHARE, 4)])]);
    let ratio = got.part(1) / got.part(0);
    assert!((3.6..4.4).contains(&ratio) && got.all() > 0.9, "{ratio:.3}");
}

#[test]
fn a_higher_priority_leaves_one_of_sixteen_bytes() {
    let got = run(&[greedy(1_300, &[]), greedy(1_300, &[(key::PRIORITY, 7)])]);
    let part = got.part(0) / got.all();
    assert!((0.05..0.08).contains(&part) && got.all() > 0.9, "{part:.3}");
}

#[test]
fn who_asks_for_no_share_gets_what_others_leave() {
    let none = || greedy(1_300, &[(key::SHARE, 0), (key::PRIORITY, 7)]);
    let got = run(&[none(), greedy(1_300, &[])]);
    assert!(got.part(0) < 0.01 && got.all() > 0.9, "{:.3}", got.part(0));
    let half = Has { every: Duration::from_micros(1_040), ..greedy(1_300, &[]) };
    let got = run(&[none(), half]);
    assert!(got.part(1) > 0.49 && got.part(0) > 0.35, "{:.3}, {:.3}", got.part(1), got.part(0));
}

#[test]
fn who_has_a_deadline_goes_before_who_has_time() {
    // 8 Mbit/s, where each of three would get a third of 20.
    let live = |attributes: &[AttributeForm]| {
        let attributes = attributes.to_vec();
        Has { attributes, unit_len: 1_000, every: Duration::from_millis(1) }
    };
    let others = || greedy(1_300, &[]);
    let soon = AttributeForm { key: key::DELAY, min: None, max: Some(150_000_000), weight: None };
    let with = run(&[others(), others(), live(&[soon])]);
    let without = run(&[others(), others(), live(&[])]);
    println!("99 of 100 within {:?}, {:?} without a deadline", with.p99(2), without.p99(2));
    assert!(with.part(2) > 0.39 && with.all() > 0.9, "{:.3}", with.part(2));
    assert!(without.part(2) < 0.36, "{:.3}", without.part(2));
    assert!(with.p99(2) * 2 < without.p99(2), "{:?}, {:?}", with.p99(2), without.p99(2));
}
