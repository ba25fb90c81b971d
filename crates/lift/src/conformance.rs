//! The conformance suite of C-modules: every rule of the contract of [`crate::Module`], tried on a
//! module from outside.
//!
//! What it is: a set of checks over a [`Subject`], to be called from the tests of whoever writes a
//! module. A check panics with the rule it found broken and the seed.
//!
//! What it is not: a test of what the module is for; that belongs beside the module.
//!
//! ```text
//!   units -> Runner(one module) -> packets -> wire (perfect | lossy | junk)
//!                                                -> Runner(one module) -> units
//! ```

use crate::{Catalogue, Entry, Graph, Node, Params, Property, Runner, Surroundings};
use dacapo_base::{Random, Time};
use dacapo_packet::{Layout, Packet, Pool};
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

const DATAGRAM_LEN: usize = 300;
const PATH_HEAD: usize = 5;
const UNIT_LEN_MAX: usize = 6_000;
const SETTLE: Duration = Duration::from_secs(30);

/// Runs every check with several seeds.
///
/// # Panics
/// When the module breaks a rule; the text names the rule and the seed.
pub fn suite(subject: &Subject) {
    for seed in 0..8 {
        perfect_wire_gives_back_every_unit(subject, seed);
        batches_and_trains_change_nothing(subject, seed);
        a_lossy_wire_breaks_no_promise(subject, seed);
        junk_is_dropped_and_counted(subject, seed);
        the_same_seed_gives_the_same_packets(subject, seed);
        flush_gives_every_view_back_and_leaves_the_module_usable(subject, seed);
    }
}

/// One end: a runner of the one module, and what it lives on.
struct End {
    runner: Runner,
    pool: Pool,
    random: Random,
    now: Time,
    layout: Layout,
}

impl End {
    fn new(subject: &Subject, seed: u64) -> Self {
        let catalogue = Catalogue::new(vec![subject.entry]);
        let node = Node { module: subject.entry.spec.id, params: subject.params.clone() };
        let graph = Graph { nodes: vec![node] };
        let built = catalogue
            .build(&graph, PATH_HEAD, DATAGRAM_LEN, UNIT_LEN_MAX)
            .expect("the subject can be built alone");
        Self {
            runner: Runner::new(built.modules),
            pool: Pool::new(32 << 20),
            random: Random::from_number(seed),
            now: Time::from_millis(1),
            layout: built.layout,
        }
    }

    fn with<R>(&mut self, body: impl FnOnce(&mut Runner, &mut Surroundings<'_>) -> R) -> R {
        let mut around =
            Surroundings { now: self.now, pool: &mut self.pool, random: &mut self.random };
        body(&mut self.runner, &mut around)
    }

    /// Feeds a unit and returns what goes on the wire, datagram by datagram.
    fn send(&mut self, unit: &[u8]) -> Vec<Vec<u8>> {
        assert!(self.runner.credit() > 0, "rule 10: no credit at rest");
        self.feed(unit);
        self.with(Runner::run);
        self.wire()
    }

    fn feed(&mut self, unit: &[u8]) {
        let mut packet = self.pool.alloc_train(&self.layout, unit.len()).expect("room in the pool");
        self.pool.write_payload(&packet, 0, unit);
        packet.set_unit_ends(true, true);
        self.with(|runner, around| runner.feed(around, packet));
    }

    fn wire(&mut self) -> Vec<Vec<u8>> {
        let packets: Vec<Packet> = self.runner.take_down().drain().collect();
        let mut datagrams = Vec::new();
        for packet in packets {
            for index in 0..packet.segment_count() {
                datagrams.push(self.pool.segment(&packet, index).to_vec());
            }
            self.pool.free(packet);
        }
        datagrams
    }

    /// Takes a datagram from the wire and returns the units that come out.
    fn receive(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let packet = self.pool.packet_from(0, datagram, 0).expect("room in the pool");
        self.with(|runner, around| {
            runner.handle_up(around, packet);
            runner.run(around);
        });
        self.units()
    }

    fn units(&mut self) -> Vec<Vec<u8>> {
        let packets: Vec<Packet> = self.runner.take_up().drain().collect();
        let mut units: Vec<Vec<u8>> = Vec::new();
        for packet in packets {
            if packet.is_unit_first() || units.is_empty() {
                units.push(Vec::new());
            }
            if let Some(unit) = units.last_mut() {
                self.pool.read_payload(&packet, unit);
            }
            self.pool.free(packet);
        }
        units
    }

    /// Lets time pass until no timer is armed, and returns the units that come out.
    fn settle(&mut self) -> Vec<Vec<u8>> {
        let end = self.now + SETTLE;
        let mut units = Vec::new();
        let mut rounds = 0;
        while let Some(at) = self.runner.next_deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.with(Runner::handle_timeout);
            units.extend(self.units());
            rounds += 1;
            assert!(rounds < 100_000, "rule 1: timers without progress");
        }
        units
    }

    fn finish(mut self, what: &str, seed: u64) {
        self.with(|runner, around| runner.flush(around));
        assert_eq!(
            self.pool.live_views(),
            0,
            "rule 2: {what}: views kept after flush, seed {seed}"
        );
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
        let datagrams = a.send(&sent);
        let wire: usize = datagrams.iter().map(Vec::len).sum();
        let overhead = segments * usize::from(spec.head + spec.tail);
        assert_eq!(wire, sent.len() + overhead, "rule 5: {}: bytes added, seed {seed}", spec.name);
        let longest = datagrams.iter().map(Vec::len).max().unwrap_or(0);
        assert!(longest + PATH_HEAD <= DATAGRAM_LEN, "rule 5: {}: too long", spec.name);
        let mut got = Vec::new();
        for datagram in &datagrams {
            got.extend(b.receive(datagram));
        }
        got.extend(b.settle());
        assert_eq!(got, [sent], "rule 3: {}: unit {number}, seed {seed}", spec.name);
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
        units.iter().for_each(|unit| many.feed(unit));
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

fn check_promises(subject: &Subject, seed: u64, sent: &[Vec<u8>], got: &[Vec<u8>]) {
    let spec = subject.entry.spec;
    let places: BTreeMap<&[u8], usize> =
        sent.iter().enumerate().map(|(place, unit)| (unit.as_slice(), place)).collect();
    let place = |unit: &Vec<u8>| places.get(unit.as_slice()).copied();
    let order: Vec<usize> = got.iter().filter_map(place).collect();
    let strange = got.len() - order.len();
    assert_eq!(strange, 0, "{}: units that nobody sent, seed {seed}", spec.name);
    assert!(order.len() > sent.len() / 4, "{}: hardly anything came, seed {seed}", spec.name);
    if spec.provides.contains(&Property::Order) {
        assert!(order.is_sorted(), "{}: promised order, seed {seed}", spec.name);
    }
    if spec.provides.contains(&Property::NoDuplicates) {
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
    assert!(!a.send(b"again...").is_empty(), "rule 8: not usable after flush, seed {seed}");
    a.finish("sender", seed);
    b.finish("receiver", seed);
}
