//! What `sum16` finds of what is altered on the way, and what it does not.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, dropped, end, scenes};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Properties, Property};
use dacapo_modules::integrity::sum16::SPEC;

const ALONE: &[Place<'_>] = &[("sum16", &[])];

/// The datagram of a unit of random bytes, at least two.
fn datagram(sender: &mut End, random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; 2 + random.below(1_200) as usize];
    random.fill(&mut bytes);
    assert!(sender.feed(&bytes));
    sender.wire().remove(0)
}

fn is_taken(receiver: &mut End, datagram: &[u8]) -> bool {
    assert!(receiver.handle_bytes(datagram));
    !receiver.units().is_empty()
}

#[test]
fn every_altered_bit_and_short_burst_is_found() {
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let (mut a, mut b) = (end(ALONE, 1_300), end(ALONE, 1_300));
        for _ in 0..50 {
            let whole = datagram(&mut a, &mut random);
            assert!(is_taken(&mut b, &whole), "seed {seed}");
            let mut altered = whole.clone();
            // A burst of up to 15 bits, the first and the last of which differ.
            let len = 1 + random.below(15);
            let bits = 1 | 1 << (len - 1) | random.below(1 << len);
            let from = random.below(whole.len() as u64 * 8 - len + 1);
            for bit in (0..len).filter(|bit| bits >> bit & 1 == 1) {
                let at = from + bit;
                altered[(at / 8) as usize] ^= 0x80 >> (at % 8);
            }
            assert!(!is_taken(&mut b, &altered), "seed {seed}: {len} bits from {from}");
        }
        assert_eq!(dropped(&b, DropReason::Checksum), 50);
    }
}

#[test]
fn of_other_alterations_one_in_65536_passes_and_so_do_words_that_change_places() {
    let mut random = Random::from_number(1);
    let (mut a, mut b) = (end(ALONE, 1_300), end(ALONE, 1_300));
    let whole = datagram(&mut a, &mut random);
    let (count, mut passed) = (400_000, 0);
    for _ in 0..count {
        let mut altered = whole.clone();
        random.fill(&mut altered[..8]);
        passed += u32::from(is_taken(&mut b, &altered));
    }
    assert!((1..20).contains(&passed), "{passed} of {count}; 6 of them are one in 65,536");
    let mut altered = whole.clone();
    altered.swap(0, 2);
    altered.swap(1, 3);
    assert!(altered != whole && is_taken(&mut b, &altered));
}

#[test]
fn what_is_not_altered_comes_over_a_wire_that_loses_and_reorders() {
    scenes::whole_units_come_through("sum16");
}

#[test]
fn it_gives_no_property_and_is_never_proposed() {
    let below = Properties::of(&[Property::Boundaries]);
    assert_eq!(SPEC.above(&[], below), below);
    scenes::is_a_check_by_name_only(&SPEC);
}

/// A data byte and the first of the sum are both the high byte of a word where the number of bytes
/// is odd.
#[test]
fn the_same_bit_of_the_last_odd_byte_and_of_the_sum_passes_as_it_says() {
    let (mut a, mut b) = (end(ALONE, 1_000), end(ALONE, 1_000));
    assert!(a.feed(&[0; 9]));
    let mut datagram = a.wire().concat();
    let at = datagram.len() - 3;
    datagram[at] ^= 0x80;
    datagram[at + 1] ^= 0x80;
    assert!(b.handle_bytes(&datagram));
    assert_eq!(b.units().len(), 1, "a burst of nine bits: not found");
}
