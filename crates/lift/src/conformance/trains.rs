//! Trains on their way up: what the network hands over at once gives the same as one by one.
//!
//! ```text
//!   datagrams -> lost, repeated, altered -> one by one         -> units, counts of drops
//!                                        -> in trains of equals -> the same
//! ```

use super::end::End;
use super::{Subject, unit};
use crate::DropReason;
use dacapo_base::Random;
use std::time::Duration;

const BURSTS: u64 = 200;

/// The most datagrams that come at once.
const TRAIN_MAX: usize = 24;

/// Rule 4, upwards: the same units come out, and as much is dropped for the same reasons, whether
/// packets come one by one or in trains.
pub(super) fn trains_change_nothing_on_the_way_up(subject: &Subject, seed: u64) {
    let mut random = Random::from_number(seed);
    let mut sender = End::new(subject, seed);
    let (mut one, mut many) = (End::new(subject, seed), End::new(subject, seed));
    let mut said = Vec::new();
    for number in 0..BURSTS {
        said.extend(one.wire());
        if sender.runner.credit() < 2 * TRAIN_MAX {
            said.drain(..).for_each(|it| assert!(sender.handle_bytes(&it), "room in the pool"));
        }
        let wire = burst(subject, number, &mut sender, &mut random);
        let came = disturbed(wire, seed, &mut random);
        let singly: Vec<_> = came.iter().flat_map(|datagram| one.receive(datagram)).collect();
        let mut together = Vec::new();
        for train in in_trains(&came, &mut random) {
            together.extend(many.receive_train(train));
        }
        let name = subject.entry.spec.name;
        let (singly, together) = (what_came(subject, singly), what_came(subject, together));
        assert_eq!(singly, together, "rule 4: {name}: trains upwards, burst {number}, seed {seed}");
        for end in [&mut sender, &mut one, &mut many] {
            end.now += Duration::from_micros(300);
        }
    }
    let rest = [&mut one, &mut many].map(|end| what_came(subject, end.settle()));
    assert_eq!(rest[0], rest[1], "rule 4: trains upwards, in the end, seed {seed}");
    assert_eq!(drops(&one), drops(&many), "rule 4: trains upwards, drops, seed {seed}");
    sender.finish("sender", seed);
    one.finish("one by one", seed);
    many.finish("in trains", seed);
}

/// A unit as packets; where a packet is a unit, several of one length.
fn burst(subject: &Subject, number: u64, end: &mut End, random: &mut Random) -> Vec<Vec<u8>> {
    let mut unit = unit(number, subject, random);
    if subject.entry.spec.segments {
        return end.send(&unit);
    }
    let count = 1 + random.below(2 * TRAIN_MAX as u64);
    let mut wire = Vec::new();
    for place in 0..count {
        unit[..8].copy_from_slice(&(1_000 * number + place).to_be_bytes());
        wire.extend(end.send(&unit));
    }
    wire
}

/// Units; where nothing joins packets to units, the bytes: what was one train has one begin.
fn what_came(subject: &Subject, units: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if subject.entry.spec.segments { units } else { vec![units.concat()] }
}

/// Every second seed leaves the wire as it is.
fn disturbed(wire: Vec<Vec<u8>>, seed: u64, random: &mut Random) -> Vec<Vec<u8>> {
    let mut came = Vec::new();
    for mut datagram in wire {
        match random.below(if seed.is_multiple_of(2) { 1_000_000 } else { 24 }) {
            0 => {}
            1 => came.extend([datagram.clone(), datagram]),
            2 => {
                let at = random.below(datagram.len() as u64) as usize;
                if let Some(byte) = datagram.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
                came.push(datagram);
            }
            3 => came.insert(came.len().saturating_sub(1), datagram),
            _ => came.push(datagram),
        }
    }
    came
}

/// Datagrams of one length, and at the end a shorter one, as a network hands them over.
fn in_trains<'a>(datagrams: &'a [Vec<u8>], random: &mut Random) -> Vec<&'a [Vec<u8>]> {
    let (mut trains, mut rest) = (Vec::new(), datagrams);
    while let Some(first) = rest.first() {
        let most = 1 + random.below(TRAIN_MAX as u64) as usize;
        let equal = rest.iter().take(most).take_while(|it| it.len() == first.len()).count();
        let shorter = rest.get(equal).is_some_and(|it| it.len() < first.len() && equal < most);
        let (train, left) = rest.split_at(equal + usize::from(shorter));
        trains.push(train);
        rest = left;
    }
    trains
}

fn drops(end: &End) -> Vec<[u64; DropReason::COUNT]> {
    end.runner.modules().map(|(_, seen)| seen.up.dropped).collect()
}
