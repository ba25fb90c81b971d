//! The conformance suite of C-modules: every rule of the contract of [`crate::Module`], tried on a
//! module from outside.
//!
//! A set of checks over a [`Subject`], to be called from the tests of whoever writes a module. A
//! check panics with the rule it found broken and the seed.
//!
//! ```text
//!   units -> Runner(one module) -> packets -> wire (perfect | lossy | junk)
//!                                                -> Runner(one module) -> units
//!   service below -> profile -> service above     (random pairs, one better than the other)
//! ```
//!
//! In the submodules: what a profile must keep (`monotone`), a spec that can be shown (`shown`),
//! what is sent besides what was given (`sending`), parameters that change while a flow runs
//! (`parameters`), trains on their way up (`trains`), the two ends (`end`).

mod end;
mod monotone;
mod parameters;
mod sending;
mod shown;
mod trains;

pub use end::{Bounds, End};
use end::{Life, Wire};
pub use monotone::a_better_service_below_is_never_worse_above;

use crate::{Entry, Params, Property, Runner, Stratum};
use dacapo_base::Random;
use std::collections::BTreeMap;
use std::time::Duration;

/// What is tried: a module of a catalogue and the parameters it is built with.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The module.
    pub entry: Entry,
    /// Its parameters.
    pub params: Params,
}

impl Subject {
    fn gives(&self, property: Property) -> bool {
        self.entry.spec.gives(self.params.values()).contains(property)
    }
}

const DATAGRAM_LEN: usize = 300;
const PATH_HEAD: usize = 5;
const UNIT_LEN_MAX: usize = 6_000;
const SETTLE: Duration = Duration::from_secs(30);

/// Runs every check with several seeds.
///
/// # Panics
/// When the module breaks a rule; the text names the rule and the seed.
pub fn suite(subject: &Subject) {
    a_better_service_below_is_never_worse_above(subject.entry.spec);
    shown::a_spec_is_shown_in_bounded_text(subject.entry.spec);
    for seed in 0..8 {
        perfect_wire_gives_back_every_unit(subject, seed);
        batches_and_trains_change_nothing(subject, seed);
        trains::trains_change_nothing_on_the_way_up(subject, seed);
        if !subject.gives(Property::NoLoss) {
            a_lossy_wire_breaks_no_promise(subject, seed);
        }
        a_wire_that_is_lossy_both_ways_breaks_no_promise(subject, seed);
        junk_is_dropped_and_counted(subject, seed);
        the_same_seed_gives_the_same_packets(subject, seed);
        flush_gives_every_view_back_and_leaves_the_module_usable(subject, seed);
        sending::what_is_sent_is_bounded_and_understood(subject, seed);
        sending::drain_sends_what_waits(subject, seed);
        parameters::a_message_sets_a_parameter(subject, seed);
    }
}

/// Units that differ in their first eight bytes, of many lengths.
fn unit(number: u64, subject: &Subject, random: &mut Random) -> Vec<u8> {
    let longest = if subject.entry.spec.segments { UNIT_LEN_MAX - 8 } else { 180 };
    let len = match random.below(8) {
        0 => 0,
        1 => longest,
        _ => random.below(longest as u64) as usize,
    };
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.resize(8 + len, (number % 251) as u8);
    bytes
}

/// Rules 2, 3 and 5: what one end adds the other removes, exactly, in order.
fn perfect_wire_gives_back_every_unit(subject: &Subject, seed: u64) {
    let (mut a, mut b) = (End::new(subject, seed), End::new(subject, seed + 1));
    let mut random = Random::from_number(seed);
    let spec = subject.entry.spec;
    for number in 0..200 {
        let sent = unit(number, subject, &mut random);
        let segments = a.layout.segments_for(sent.len());
        let datagrams = a.send_whole(&sent);
        let wire: usize = datagrams.iter().map(Vec::len).sum();
        let most = sent.len() + segments * usize::from(spec.head + spec.tail);
        let may_be_less = spec.stratum == Stratum::Compress;
        assert!(
            wire == most || (wire < most && may_be_less),
            "rule 5: {}: {} bytes in {segments} segments: {wire} are on the wire, and with head \
             and tail of the spec it is {most}, seed {seed}",
            spec.name,
            sent.len()
        );
        let longest = datagrams.iter().map(Vec::len).max().unwrap_or(0);
        assert!(longest + PATH_HEAD <= DATAGRAM_LEN, "rule 5: {}: too long", spec.name);
        let mut got = Vec::new();
        for datagram in &datagrams {
            got.extend(b.receive(datagram));
        }
        got.extend(b.settle());
        let name = spec.name;
        assert_eq!(got, [sent], "rule 3: {name}: what came (left) of unit {number}, seed {seed}");
        a.now += Duration::from_millis(1);
        b.now = b.now.max(a.now);
    }
    a.finish("sender", seed);
    b.finish("receiver", seed);
}

/// Rules 3 and 4: the same packets leave whether units come one by one or in batches.
fn batches_and_trains_change_nothing(subject: &Subject, seed: u64) {
    let (mut one, mut many) = (End::new(subject, seed), End::new(subject, seed));
    let mut random = Random::from_number(seed);
    let units: Vec<_> = (0..64).map(|number| unit(number, subject, &mut random)).collect();
    let singly: Vec<_> = units.iter().flat_map(|unit| one.send(unit)).collect();
    // A module with a bound on its credit may not be given all at once.
    if many.runner.credit() == usize::MAX {
        units.iter().for_each(|unit| assert!(many.lay(unit), "room in the pool"));
        many.with(Runner::run);
        assert_eq!(singly, many.wire(), "rule 4: {}, seed {seed}", subject.entry.spec.name);
    }
    one.finish("one by one", seed);
    many.finish("in batches", seed);
}

/// Rules 2 and 7 and the promises of the spec, over a wire that loses, repeats and reorders.
fn a_lossy_wire_breaks_no_promise(subject: &Subject, seed: u64) {
    let (mut a, mut b) = (End::new(subject, seed), End::new(subject, seed + 1));
    let mut random = Random::from_number(seed);
    let (mut sent, mut got) = (Vec::new(), Vec::new());
    let mut late: Vec<(u64, Vec<u8>)> = Vec::new();
    for number in 0..400 {
        let unit = unit(number, subject, &mut random);
        for datagram in a.send(&unit) {
            match random.below(20) {
                0 => {}
                1 => got.extend((0..2).flat_map(|_| b.receive(&datagram)).collect::<Vec<_>>()),
                2 => late.push((number + random.below(4), datagram)),
                _ => got.extend(b.receive(&datagram)),
            }
        }
        for (_, datagram) in late.extract_if(.., |(due, _)| *due <= number) {
            got.extend(b.receive(&datagram));
        }
        sent.push(unit);
        a.now += Duration::from_millis(1);
        b.now = b.now.max(a.now);
        let due = b.runner.next_deadline().is_some_and(|at| at <= b.now);
        if due {
            b.with(Runner::handle_timeout);
            got.extend(b.units());
        }
    }
    got.extend(b.settle());
    check_promises(subject, seed, &sent, &got);
    a.finish("sender", seed);
    b.finish("receiver", seed);
}

/// The same where what the receiver says comes back, or is lost: then nothing else may be, where
/// that is promised.
fn a_wire_that_is_lossy_both_ways_breaks_no_promise(subject: &Subject, seed: u64) {
    let mut random = Random::from_number(seed);
    let sent: Vec<_> = (0..400).map(|number| unit(number, subject, &mut random)).collect();
    let mut life = Life::new(subject, Wire::Lossy, seed);
    life.run(&sent);
    let got = life.units();
    check_promises(subject, seed, &sent, &got);
    if subject.gives(Property::NoLoss) {
        let (name, missing) = (subject.entry.spec.name, sent.len() - got.len());
        assert_eq!(missing, 0, "{name}: promised no loss, and {missing} are missing, seed {seed}");
    }
    life.finish(seed);
}

type Places<'a> = BTreeMap<&'a [u8], usize>;

/// The place of every unit in what was sent.
fn places(sent: &[Vec<u8>]) -> Places<'_> {
    sent.iter().enumerate().map(|(place, unit)| (unit.as_slice(), place)).collect()
}

fn place_of(places: &Places<'_>, unit: &[u8]) -> Option<usize> {
    places.get(unit).copied()
}

fn check_promises(subject: &Subject, seed: u64, sent: &[Vec<u8>], got: &[Vec<u8>]) {
    let spec = subject.entry.spec;
    let places = places(sent);
    let order: Vec<usize> = got.iter().filter_map(|unit| place_of(&places, unit)).collect();
    let strange = got.len() - order.len();
    assert_eq!(strange, 0, "{}: units that nobody sent, seed {seed}", spec.name);
    assert!(order.len() > sent.len() / 4, "{}: hardly anything came, seed {seed}", spec.name);
    if subject.gives(Property::Order) {
        assert!(order.is_sorted(), "{}: promised order, seed {seed}", spec.name);
    }
    if subject.gives(Property::NoDuplicates) {
        let mut once = order.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), order.len(), "{}: promised once, seed {seed}", spec.name);
    }
}

/// Rule 7: bytes that no peer writes are a counted drop; those of a peer, altered, never panic.
fn junk_is_dropped_and_counted(subject: &Subject, seed: u64) {
    let (mut a, mut b) = (End::new(subject, seed), End::new(subject, seed + 1));
    let mut random = Random::from_number(seed);
    for number in 0..500 {
        let mut junk = match a.send(&unit(number, subject, &mut random)).pop() {
            Some(datagram) if random.chance(0.5) => datagram,
            _ => vec![0; random.below(DATAGRAM_LEN as u64) as usize],
        };
        let flips = 1 + random.below(8);
        for _ in 0..flips {
            let at = random.below(junk.len() as u64) as usize;
            if let Some(byte) = junk.get_mut(at) {
                *byte = random.next_u32() as u8;
            }
        }
        junk.truncate(random.below(junk.len() as u64 + 1) as usize);
        b.receive(&junk);
        b.now += Duration::from_micros(random.below(20_000));
        let message: Vec<u8> = (0..random.below(64)).map(|_| random.next_u32() as u8).collect();
        let answer = b.with(|runner, around| runner.control(around, 0, &message));
        assert!(answer.map_or(0, |bytes| bytes.len()) <= 4_096, "an answer above 4 KiB");
        b.units();
    }
    b.settle();
    a.finish("sender", seed);
    b.finish("receiver of junk", seed);
}

/// Rule 6: time and randomness come from the context only.
fn the_same_seed_gives_the_same_packets(subject: &Subject, seed: u64) {
    let run = || {
        let mut end = End::new(subject, seed);
        let mut random = Random::from_number(seed);
        let wire: Vec<_> = (0..50)
            .flat_map(|number| {
                end.now += Duration::from_millis(3);
                end.send(&unit(number, subject, &mut random))
            })
            .collect();
        end.finish("sender", seed);
        wire
    };
    assert_eq!(run(), run(), "rule 6: {}, seed {seed}", subject.entry.spec.name);
}

/// Rule 8: drain sends, flush forgets, both leave the module usable.
fn flush_gives_every_view_back_and_leaves_the_module_usable(subject: &Subject, seed: u64) {
    let (mut a, mut b) = (End::new(subject, seed), End::new(subject, seed + 1));
    let mut random = Random::from_number(seed);
    for number in 0..50 {
        let datagrams = a.send(&unit(number, subject, &mut random));
        // Every second datagram is lost, so that receivers hold what cannot be completed.
        for datagram in datagrams.iter().step_by(2) {
            b.receive(datagram);
        }
    }
    a.with(Runner::drain);
    a.wire();
    for end in [&mut a, &mut b] {
        end.with(|runner, around| runner.flush(around));
        assert_eq!(end.pool.live_views(), 0, "rule 8: views kept, seed {seed}");
    }
    assert!(!a.send_whole(b"again...").is_empty(), "rule 8: not usable after flush, seed {seed}");
    a.finish("sender", seed);
    b.finish("receiver", seed);
}
