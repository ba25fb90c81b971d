//! [`End`]: one end of what the suite tries; and [`Life`]: two of them over a wire in virtual time.
//!
//! What it is not: a check.
//!
//! ```text
//!   units every 3 ms -> a -> [ under way ] -> b -> units        timers of both fire when due
//! ```

use super::{DATAGRAM_LEN, PATH_HEAD, SETTLE, Subject, UNIT_LEN_MAX};
use crate::{Catalogue, Graph, Node, Runner, Surroundings};
use dacapo_base::{Random, Time};
use dacapo_packet::{Layout, Packet, Pool};
use std::time::Duration;

/// One end: a runner of the one module, and what it lives on.
pub(super) struct End {
    pub runner: Runner,
    pub pool: Pool,
    pub random: Random,
    pub now: Time,
    pub layout: Layout,
}

impl End {
    pub fn new(subject: &Subject, seed: u64) -> Self {
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

    pub fn with<R>(&mut self, body: impl FnOnce(&mut Runner, &mut Surroundings<'_>) -> R) -> R {
        let mut around =
            Surroundings { now: self.now, pool: &mut self.pool, random: &mut self.random };
        body(&mut self.runner, &mut around)
    }

    /// Feeds a unit and returns what goes on the wire, datagram by datagram.
    pub fn send(&mut self, unit: &[u8]) -> Vec<Vec<u8>> {
        assert!(self.runner.credit() > 0, "rule 10: no credit at rest");
        self.feed(unit);
        self.with(Runner::run);
        self.wire()
    }

    pub fn feed(&mut self, unit: &[u8]) {
        let mut packet = self.pool.alloc_train(&self.layout, unit.len()).expect("room in the pool");
        self.pool.write_payload(&packet, 0, unit);
        packet.set_unit_ends(true, true);
        packet.time = self.now;
        self.with(|runner, around| runner.feed(around, packet));
    }

    pub fn wire(&mut self) -> Vec<Vec<u8>> {
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
    pub fn receive(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let mut packet = self.pool.packet_from(0, datagram, 0).expect("room in the pool");
        packet.time = self.now;
        self.with(|runner, around| {
            runner.handle_up(around, packet);
            runner.run(around);
        });
        self.units()
    }

    /// Takes datagrams of one length, of which the last may be shorter, in one train.
    pub fn receive_train(&mut self, datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let segment = datagrams.first().map_or(0, Vec::len);
        let bytes = datagrams.concat();
        let layout = Layout { head: 0, tail: 0, segment, segmented: true };
        let mut train = self.pool.alloc_train(&layout, bytes.len()).expect("room in the pool");
        self.pool.write_payload(&train, 0, &bytes);
        train.set_unit_ends(true, true);
        train.time = self.now;
        self.with(|runner, around| {
            runner.handle_up(around, train);
            runner.run(around);
        });
        self.units()
    }

    pub fn units(&mut self) -> Vec<Vec<u8>> {
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
    pub fn settle(&mut self) -> Vec<Vec<u8>> {
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

    pub fn finish(mut self, what: &str, seed: u64) {
        self.with(|runner, around| runner.flush(around));
        assert_eq!(
            self.pool.live_views(),
            0,
            "rule 2: {what}: views kept after flush, seed {seed}"
        );
    }
}

/// What a wire does to datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Each arrives once, after a millisecond, in order.
    Perfect,
    /// Some are lost, some repeated, and they take 1 to 6 ms.
    Lossy,
}

/// Something that came out of an end, for comparison: when, of which end, its bytes.
pub(super) type Trace = Vec<(Time, char, Vec<u8>)>;

/// When it arrives, which one it is, whether it goes from `a` to `b`, and its bytes.
type Datagram = (Time, u64, bool, Vec<u8>);

/// Two ends and what is under way between them; time goes from event to event.
pub(super) struct Life {
    pub a: End,
    pub b: End,
    wire: Wire,
    random: Random,
    under_way: Vec<Datagram>,
    put: u64,
    /// Everything that came out, datagrams of `a` and units of `b`.
    pub trace: Trace,
}

/// The time from unit to unit.
const UNIT_EVERY: Duration = Duration::from_millis(3);

/// More than any module needs; what goes on after that has no end.
const ROUNDS_MAX: usize = 100_000;

impl Life {
    pub fn new(subject: &Subject, wire: Wire, seed: u64) -> Self {
        Self {
            a: End::new(subject, seed),
            b: End::new(subject, seed + 1),
            wire,
            random: Random::from_number(seed),
            under_way: Vec::new(),
            put: 0,
            trace: Vec::new(),
        }
    }

    /// Sends these units and lets time pass until nothing is under way and no timer is armed.
    pub fn run(&mut self, units: &[Vec<u8>]) {
        units.iter().for_each(|unit| self.send(unit));
        self.pass(self.a.now + SETTLE);
    }

    /// Sends a unit, and lets the time pass until the next is due.
    pub fn send(&mut self, unit: &[u8]) {
        let next = self.a.now + UNIT_EVERY;
        let wire = self.a.send(unit);
        self.put(wire);
        self.pass(next);
    }

    /// Lets time pass until `end`, or to the last thing that happens before.
    fn pass(&mut self, end: Time) {
        for _ in 0..ROUNDS_MAX {
            let arrival = self.under_way.iter().map(|(at, ..)| *at).min();
            let timers = [self.a.runner.next_deadline(), self.b.runner.next_deadline()];
            let next = timers.into_iter().chain([arrival]).flatten().min();
            let Some(now) = next.filter(|at| *at <= end) else {
                return self.set(end);
            };
            self.set(now);
            self.step();
        }
        panic!("rule 1: timers without progress");
    }

    fn set(&mut self, now: Time) {
        self.a.now = self.a.now.max(now);
        self.b.now = self.a.now;
    }

    fn step(&mut self) {
        for end in [&mut self.a, &mut self.b] {
            if end.runner.next_deadline().is_some_and(|at| at <= end.now) {
                end.with(Runner::handle_timeout);
            }
        }
        self.collect();
        let now = self.a.now;
        let mut due: Vec<_> = self.under_way.extract_if(.., |(at, ..)| *at <= now).collect();
        due.sort_unstable();
        for (_, _, is_down, datagram) in due {
            let end = if is_down { &mut self.b } else { &mut self.a };
            let units = end.receive(&datagram);
            self.note('u', units);
        }
        self.collect();
    }

    /// Takes out what the ends have made: units of `b`, and datagrams of both.
    fn collect(&mut self) {
        let units = self.b.units();
        self.note('u', units);
        let (down, back) = (self.a.wire(), self.b.wire());
        self.put(down);
        self.carry(&back, false);
    }

    fn note(&mut self, kind: char, what: Vec<Vec<u8>>) {
        let now = self.a.now;
        self.trace.extend(what.into_iter().map(|bytes| (now, kind, bytes)));
    }

    /// Puts datagrams of `a` on the wire.
    pub fn put(&mut self, datagrams: Vec<Vec<u8>>) {
        self.carry(&datagrams, true);
        self.note('d', datagrams);
    }

    fn carry(&mut self, datagrams: &[Vec<u8>], is_down: bool) {
        for datagram in datagrams {
            let times = match self.wire {
                Wire::Perfect => 1,
                Wire::Lossy => [0, 2, 1, 1, 1, 1, 1, 1][self.random.below(8) as usize],
            };
            for _ in 0..times {
                let late = if self.wire == Wire::Lossy { self.random.below(6) } else { 0 };
                let at = self.a.now + Duration::from_millis(1 + late);
                self.put += 1;
                self.under_way.push((at, self.put, is_down, datagram.clone()));
            }
        }
    }

    /// Lets what is under way arrive, and nothing else happen.
    pub fn arrive(&mut self) {
        let mut under_way = std::mem::take(&mut self.under_way);
        under_way.sort_unstable();
        for (.., datagram) in under_way {
            let units = self.b.receive(&datagram);
            self.note('u', units);
        }
    }

    /// The units that came out of `b`, in order.
    pub fn units(&self) -> Vec<Vec<u8>> {
        let units = self.trace.iter().filter(|(_, kind, _)| *kind == 'u');
        units.map(|(.., bytes)| bytes.clone()).collect()
    }

    /// How many datagrams came out of `a`.
    pub fn datagrams(&self) -> usize {
        self.trace.iter().filter(|(_, kind, _)| *kind == 'd').count()
    }

    pub fn finish(self, seed: u64) {
        self.a.finish("sender", seed);
        self.b.finish("receiver", seed);
    }
}
