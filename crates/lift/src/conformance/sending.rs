//! What a module sends on its own, besides what it was given: copies, parity, what it held back.

use super::end::{Life, Wire};
use super::{DATAGRAM_LEN, PATH_HEAD, Subject, place_of, places, unit};
use crate::Property;
use dacapo_base::Random;

const UNITS: u64 = 60;

/// Rules 2, 4 and 5: what leaves is no more than the profile says and fits the path, the peer makes
/// of it every unit, and what the spec does not take away (order, no duplicates) stays.
pub(super) fn what_is_sent_is_bounded_and_understood(subject: &Subject, seed: u64) {
    let spec = subject.entry.spec;
    let mut random = Random::from_number(seed);
    let sent: Vec<_> = (0..UNITS).map(|number| unit(number, subject, &mut random)).collect();
    let mut life = Life::new(subject, Wire::Perfect, seed);
    life.run(&sent);
    check_count(subject, &life, &sent, seed);
    check_units(subject, &sent, &life.units(), seed);
    let longest = life.trace.iter().filter(|it| it.1 == 'd').map(|it| it.2.len()).max();
    let fits = longest.is_none_or(|len| len + PATH_HEAD <= DATAGRAM_LEN);
    assert!(fits, "rule 5: {}: sends what is too long, seed {seed}", spec.name);
    life.finish(seed);
}

/// Rule 8: after `drain` every unit is on its way, without any time passing.
pub(super) fn drain_sends_what_waits(subject: &Subject, seed: u64) {
    let mut random = Random::from_number(seed);
    let sent: Vec<_> = (0..UNITS).map(|number| unit(number, subject, &mut random)).collect();
    let mut life = Life::new(subject, Wire::Perfect, seed);
    for unit in &sent {
        let wire = life.a.send(unit);
        life.put(wire);
    }
    life.a.with(crate::Runner::drain);
    let wire = life.a.wire();
    life.put(wire);
    check_count(subject, &life, &sent, seed);
    life.arrive();
    life.run(&[]);
    check_units(subject, &sent, &life.units(), seed);
    life.finish(seed);
}

fn check_count(subject: &Subject, life: &Life, sent: &[Vec<u8>], seed: u64) {
    let spec = subject.entry.spec;
    let fed: usize = sent.iter().map(|unit| life.a.layout.segments_for(unit.len())).sum();
    let most = spec.profile.copies(&subject.params).saturating_mul(fed as u64);
    let left = life.datagrams() as u64;
    assert!(
        left <= most,
        "rule 4: {}: {left} packets for {fed}, more than its profile says, seed {seed}",
        spec.name
    );
    let down = life.a.runner.modules().next().map(|(_, seen)| seen.down).unwrap_or_default();
    if down.dropped_count() == 0 {
        let forwarded = down.packets.saturating_sub(down.held);
        let counted = forwarded.saturating_add(down.emitted);
        assert_eq!(left, counted, "rule 2: {}: packets are uncounted, seed {seed}", spec.name);
    }
}

fn check_units(subject: &Subject, sent: &[Vec<u8>], got: &[Vec<u8>], seed: u64) {
    let spec = subject.entry.spec;
    let known = places(sent);
    let order: Vec<usize> = got.iter().filter_map(|unit| place_of(&known, unit)).collect();
    assert_eq!(order.len(), got.len(), "{}: units that nobody sent, seed {seed}", spec.name);
    let mut once = order.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), sent.len(), "rule 2: {}: units are missing, seed {seed}", spec.name);
    if !spec.takes.contains(&Property::NoDuplicates) {
        let is_once = once.len() == order.len();
        assert!(is_once, "{}: repeats and does not say so, seed {seed}", spec.name);
    }
    if !spec.takes.contains(&Property::Order) {
        assert!(order.is_sorted(), "{}: reorders and does not say so, seed {seed}", spec.name);
    }
}
