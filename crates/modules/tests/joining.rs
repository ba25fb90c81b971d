//! Who joins in the middle of an epoch gets what is sent from then on, wherever its numbers are.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, end, number, unit};
use dacapo_base::Random;
use dacapo_lift::Runner;
use dacapo_lift::conformance::End;
use std::time::Duration;

const GRAPHS: [&[Place<'static>]; 12] = [
    &[],
    &[("segment", &[])],
    &[("dedup", &[])],
    &[("segment", &[]), ("dedup", &[]), ("repeat", &[])],
    &[("sequence", &[])],
    &[("use-by", &[]), ("sequence", &[])],
    &[("rate-burst", &[(0, 10_000_000)]), ("segment", &[])],
    &[("segment", &[]), ("sequence", &[]), ("checksum", &[])],
    &[("segment", &[]), ("sequence", &[]), ("repeat", &[]), ("checksum", &[])],
    &[("segment", &[]), ("sequence", &[]), ("arq-nak", &[]), ("checksum", &[])],
    &[("segment", &[]), ("sequence", &[]), ("fec-rlc", &[]), ("checksum", &[])],
    &[("segment", &[]), ("sequence", &[]), ("fec-xor", &[]), ("checksum", &[])],
];

/// The datagrams of units `from..to`, by who has sent all before.
fn sent(sender: &mut End, numbers: std::ops::Range<u64>, len: usize) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    for number in numbers {
        assert!(sender.feed(&unit(number, len)), "room for unit {number}");
        datagrams.extend(sender.wire());
        sender.pass(Duration::from_millis(1));
    }
    datagrams
}

/// What an end gives its application of datagrams, to the last that waits.
fn numbers_of(end: &mut End, datagrams: &[Vec<u8>]) -> Vec<u64> {
    let mut units = Vec::new();
    for datagram in datagrams {
        assert!(end.handle_bytes(datagram), "room for a datagram");
        units.extend(end.units());
    }
    end.with(Runner::drain);
    units.extend(end.units());
    units.iter().map(|unit| number(unit)).collect()
}

#[test]
fn whole_units_come_from_the_first_on_that_is_whole() {
    for places in GRAPHS {
        for before in [0, 7, 300, 40_000] {
            let is_cut = places.first().is_some_and(|(name, _)| *name == "segment");
            let len = if is_cut { 3_000 } else { 200 };
            let (mut sender, mut joins) = (end(places, 4_000), end(places, 4_000));
            joins.with(|runner, _| runner.join());
            sent(&mut sender, 0..before, 20);
            let datagrams = sent(&mut sender, before..before + 40, len);
            let mut came = numbers_of(&mut joins, &datagrams);
            // A second copy of what was sent before.
            came.retain(|number| *number >= before);
            let expected: Vec<u64> = (before..before + 40).collect();
            assert_eq!(came, expected, "{places:?} after {before}");
            // From the middle of a unit on.
            let mut joins = end(places, 4_000);
            joins.with(|runner, _| runner.join());
            let mut came = numbers_of(&mut joins, &datagrams[1..]);
            came.retain(|number| *number > before);
            assert_eq!(came, expected[1..], "{places:?} after {before}, within a unit");
            [sender, joins].iter_mut().for_each(End::flush);
        }
    }
}

#[test]
fn a_first_datagram_with_an_altered_number_costs_a_few_units_only() {
    // Without a check below, where altered numbers are not noticed.
    for name in ["sequence", "segment", "dedup", "arq-nak", "fec-rs", "fec-rlc", "fec-xor"] {
        let entries = dacapo_modules::entries();
        let head = entries.iter().find(|it| it.spec.name == name).unwrap().spec.head.into();
        let head: usize = head;
        // A block is ten; and its number has 24 bits.
        let few = if name.starts_with("fec") { 11 } else { 1 };
        let places: &[Place<'_>] = &[(name, &[])];
        let mut sender = end(places, 4_000);
        sent(&mut sender, 0..50_000, 20);
        let mut whole = sent(&mut sender, 50_000..50_040, 200);
        // What is still to be said of those before comes first.
        let first = whole.iter().position(|it| it.len() >= 200 + head).unwrap();
        whole.drain(..first);
        sender.flush();
        for seed in 0..200 {
            let mut random = Random::from_number(seed);
            let (mut datagrams, mut joins) = (whole.clone(), end(places, 4_000));
            joins.with(|runner, _| runner.join());
            let bit = random.below(if few > 1 { 24 } else { 16 }) as usize;
            let at = datagrams[0].len() - 200 - head + bit / 8;
            datagrams[0][at] ^= 1 << (bit % 8);
            let came = numbers_of(&mut joins, &datagrams);
            let whole = came.iter().filter(|number| **number > 50_000 + few).count() as u64;
            // In a block, the altered one takes the place of another.
            let taken = u64::from(few > 1);
            assert!(
                (39 - few - taken..=39 - few).contains(&whole),
                "seed {seed}, bit {bit} of {places:?}: {came:?}"
            );
            joins.flush();
        }
    }
}
