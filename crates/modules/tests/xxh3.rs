//! What `xxh3` is for: whatever is altered on the way does not come up, and all else does.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, dropped, end, number, scenes, unit};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Property};
use dacapo_modules::integrity::xxh3::SPEC;

const ALONE: &[Place<'_>] = &[("xxh3", &[])];

#[test]
fn no_altered_packet_comes_up_over_a_wire_that_alters_repeats_and_reorders() {
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let (mut a, mut b) = (end(ALONE, 1_300), end(ALONE, 1_300));
        let mut altered = 0;
        let mut under_way = Vec::new();
        for at in 0..200 {
            assert!(a.feed(&unit(at, random.below(1_200) as usize)));
            for mut datagram in a.wire() {
                for _ in 0..random.below(3) {
                    under_way.push((at + random.below(9), datagram.clone()));
                }
                let from = random.below(datagram.len() as u64) as usize;
                let to = (from + 1 + random.below(40) as usize).min(datagram.len());
                let before = datagram.clone();
                random.fill(&mut datagram[from..to]);
                if datagram != before {
                    altered += 1;
                    under_way.push((at + random.below(9), datagram));
                }
            }
        }
        under_way.sort();
        let sent = under_way.len() as u64 - altered;
        let mut came = 0;
        for (_, datagram) in &under_way {
            assert!(b.handle_bytes(datagram));
            let units = b.units();
            // Looks at every byte.
            units.iter().for_each(|unit| assert!(number(unit) < 200));
            came += units.len() as u64;
        }
        assert_eq!((came, dropped(&b, DropReason::Checksum)), (sent, altered), "seed {seed}");
        [&mut a, &mut b].into_iter().for_each(End::flush);
    }
}

#[test]
fn units_of_several_packets_come_whole_over_a_wire_that_loses_and_reorders() {
    scenes::whole_units_come_through("xxh3");
}

#[test]
fn it_gives_integrity_and_is_never_proposed() {
    assert_eq!(SPEC.provides, &[Property::Integrity]);
    scenes::is_a_check_by_name_only(&SPEC);
}
