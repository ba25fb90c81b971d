//! [`End`]: one end of what the suite tries; and [`Life`]: two of them over a wire in virtual time.
//!
//! ```text
//!   units every 3 ms -> a -> [ under way ] -> b -> units        timers of both fire when due
//! ```

use super::{DATAGRAM_LEN, PATH_HEAD, SETTLE, Subject, UNIT_LEN_MAX};
use crate::counters::ModuleCounters;
use crate::{Catalogue, Context, Graph, Node, Runner, Unread};
use dacapo_base::{Random, Time};
use dacapo_packet::{Layout, Packet, Pool};
use dacapo_path::ClockOffset;
use std::time::Duration;

/// What an [`End`] is made for.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes that the path writes before every segment.
    pub path_head: usize,
    /// The longest datagram, in bytes.
    pub datagram_len: usize,
    /// The longest unit, in bytes.
    pub unit_len_max: usize,
    /// The budget of its pool, in bytes.
    pub pool_bytes: usize,
    /// What its randomness follows from.
    pub seed: u64,
}

/// One end of a flow, for tests: a runner and what it lives on. Whoever has it is the path, the
/// application and the clock.
pub struct End {
    /// Runs the modules.
    pub runner: Runner,
    /// Where packets are.
    pub pool: Pool,
    /// The generator that modules draw from.
    pub random: Random,
    /// The time.
    pub now: Time,
    /// How units lie when they are fed.
    pub layout: Layout,
    /// What waits for its application, as modules that ask are told; `None`: whoever has the end
    /// tells them, with [`End::tell_unread`].
    pub unread: Option<Unread>,
    /// Until when views that came up are of use.
    use_by: Vec<Vec<u8>>,
}

impl End {
    /// An end with the modules of this graph; none when they make no graph.
    #[must_use]
    pub fn build(catalogue: &Catalogue, graph: &Graph, bounds: &Bounds) -> Option<Self> {
        let Bounds { path_head, datagram_len, unit_len_max, pool_bytes, seed } = *bounds;
        let built = catalogue.build(graph, path_head, datagram_len, unit_len_max)?;
        Some(Self {
            runner: Runner::new(built.modules),
            pool: Pool::new(pool_bytes),
            random: Random::from_number(seed),
            now: Time::from_millis(1),
            layout: built.layout,
            unread: Some(Unread::default()),
            use_by: Vec::new(),
        })
    }

    pub(super) fn new(subject: &Subject, seed: u64) -> Self {
        let catalogue = Catalogue::new(vec![subject.entry]);
        let node = Node { module: subject.entry.spec.id, params: subject.params.clone() };
        let bounds = Bounds {
            path_head: PATH_HEAD,
            datagram_len: DATAGRAM_LEN,
            unit_len_max: UNIT_LEN_MAX,
            pool_bytes: 32 << 20,
            seed,
        };
        let end = Self::build(&catalogue, &Graph { nodes: vec![node] }, &bounds);
        let mut end = end.expect("the subject can be built alone");
        end.runner.handle_clock(ClockOffset::exact());
        end
    }

    /// Calls the runner with its surroundings.
    ///
    /// # Panics
    /// When a module has: the runner would bear it, and no test is to overlook it.
    pub fn with<R>(&mut self, body: impl FnOnce(&mut Runner, &mut Context<'_>) -> R) -> R {
        let mut around = Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
        let result = body(&mut self.runner, &mut around);
        // The wire takes whatever comes.
        if self.runner.wants_room() {
            self.runner.handle_room(&mut around, usize::MAX);
        }
        if let Some(unread) = self.unread.filter(|_| self.runner.wants_unread()) {
            self.runner.handle_unread(&mut around, unread);
        }
        assert_eq!(self.runner.failure(), None, "a module of the graph is gone");
        result
    }

    /// Feeds a unit and runs; false, and nothing done, without credit or room for it, and for one
    /// that is empty or needs more segments than there may be.
    pub fn feed(&mut self, unit: &[u8]) -> bool {
        let is_too_long = unit.len() > self.layout.segment && !self.layout.segmented;
        if self.runner.credit() == 0 || unit.is_empty() || is_too_long || !self.lay(unit) {
            return false;
        }
        self.with(Runner::run);
        true
    }

    /// Feeds a unit and does not run; false when there is no room.
    pub(super) fn lay(&mut self, unit: &[u8]) -> bool {
        let Ok(mut packet) = self.pool.alloc_train(&self.layout, unit.len()) else { return false };
        self.pool.write_payload(&packet, 0, unit);
        packet.set_unit_ends(true, true);
        packet.time = self.now;
        self.with(|runner, around| runner.feed(around, packet));
        true
    }

    /// Feeds a unit and returns what goes on the wire, datagram by datagram.
    pub(super) fn send(&mut self, unit: &[u8]) -> Vec<Vec<u8>> {
        assert!(self.runner.credit() > 0, "rule 10: no credit at rest");
        assert!(self.lay(unit), "room in the pool");
        self.with(Runner::run);
        self.wire()
    }

    /// The same; what the module keeps on its way down until others come is drained.
    pub(super) fn send_whole(&mut self, unit: &[u8]) -> Vec<Vec<u8>> {
        let mut datagrams = self.send(unit);
        let keeps = |(_, seen): (_, &ModuleCounters)| seen.down.held > seen.down.emitted;
        if self.runner.modules().any(keeps) {
            self.with(Runner::drain);
            datagrams.extend(self.wire());
        }
        datagrams
    }

    /// What goes to the network, datagram by datagram.
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

    /// Takes a packet from the wire, now, and runs.
    pub fn handle(&mut self, mut packet: Packet) {
        packet.time = self.now;
        self.with(|runner, around| {
            runner.handle_up(around, packet);
            runner.run(around);
        });
    }

    /// So much waits for the application: modules that want to know are told.
    pub fn tell_unread(&mut self, unread: Unread) {
        if self.runner.wants_unread() {
            self.with(|runner, around| runner.handle_unread(around, unread));
        }
    }

    /// Takes a datagram from the wire and runs; false when there is no room.
    pub fn handle_bytes(&mut self, datagram: &[u8]) -> bool {
        let packet = self.pool.packet_from(0, datagram, 0);
        packet.map(|packet| self.handle(packet)).is_ok()
    }

    /// Takes a datagram from the wire and returns the units that come out.
    pub(super) fn receive(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        assert!(self.handle_bytes(datagram), "room in the pool");
        self.units()
    }

    /// Takes datagrams of one length, of which the last may be shorter, in one train.
    pub(super) fn receive_train(&mut self, datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let segment = datagrams.first().map_or(0, Vec::len);
        let bytes = datagrams.concat();
        let layout = Layout { head: 0, tail: 0, segment, segmented: true };
        let mut train = self.pool.alloc_train(&layout, bytes.len()).expect("room in the pool");
        self.pool.write_payload(&train, 0, &bytes);
        train.set_unit_ends(true, true);
        self.handle(train);
        self.units()
    }

    /// What goes to the application, unit by unit.
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
            if let Some(at) = packet.use_by() {
                self.use_by.push(at.as_nanos().to_be_bytes().to_vec());
            }
            self.pool.free(packet);
        }
        units
    }

    /// Lets the timers fire that are due now.
    pub fn fire(&mut self) {
        if self.runner.next_deadline().is_some_and(|at| at <= self.now) {
            self.with(Runner::handle_timeout);
        }
    }

    /// Lets time pass; every timer fires at its time.
    ///
    /// # Panics
    /// When timers fire without end.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.fire_until(end, |_| {});
        self.now = end;
    }

    /// Lets time pass until no timer is armed, and returns the units that come out.
    pub(super) fn settle(&mut self) -> Vec<Vec<u8>> {
        let mut units = Vec::new();
        self.fire_until(self.now + SETTLE, |end| units.extend(end.units()));
        units
    }

    fn fire_until(&mut self, end: Time, mut then: impl FnMut(&mut Self)) {
        let mut rounds = 0;
        while let Some(at) = self.runner.next_deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.with(Runner::handle_timeout);
            then(self);
            rounds += 1;
            assert!(rounds < ROUNDS_MAX, "rule 1: timers without progress");
        }
    }

    /// Flushes, after which no view may be left.
    ///
    /// # Panics
    /// When one is.
    pub fn flush(&mut self) {
        self.with(|runner, around| runner.flush(around));
        assert_eq!(self.pool.live_views(), 0, "rule 2: views kept after flush");
    }

    pub(super) fn finish(mut self, what: &str, seed: u64) {
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
            self.note_units(units);
        }
        self.collect();
    }

    /// Takes out what the ends have made: units of `b`, and datagrams of both.
    fn collect(&mut self) {
        let units = self.b.units();
        self.note_units(units);
        let told = self.b.runner.take_told().messages;
        self.note('m', told.into_iter().map(|it| it.message).collect());
        let (down, back) = (self.a.wire(), self.b.wire());
        self.put(down);
        self.carry(&back, false);
    }

    /// What came up, and until when it is of use.
    fn note_units(&mut self, units: Vec<Vec<u8>>) {
        self.note('u', units);
        let use_by = std::mem::take(&mut self.b.use_by);
        self.note('t', use_by);
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
            self.note_units(units);
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
