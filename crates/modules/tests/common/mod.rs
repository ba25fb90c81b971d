//! Two runners of one graph over a wire that loses, in virtual time.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod alone;
pub mod scenes;
pub mod sums;

use dacapo_base::{Random, Time};
use dacapo_lift::conformance::{Bounds, End};
use dacapo_lift::{
    Catalogue, DropReason, Figures, Graph, Illegal, Needs, Node, Offer, Params, Path, Properties,
    Property, Runner, Service, Setting, Units, check,
};
use dacapo_packet::Packet;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub const PATH_HEAD: usize = 5;
pub const DATAGRAM_LEN: usize = 1_452;

/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A module of a graph: its name and its parameters by number.
pub type Place<'a> = (&'a str, &'a [(u16, u64)]);

pub fn graph(places: &[Place<'_>]) -> Graph {
    let catalogue = Catalogue::new(dacapo_modules::entries());
    let node = |(name, values): &Place<'_>| {
        let mut params = Params::new();
        values.iter().for_each(|&(number, value)| params.set(number, value));
        Node { module: catalogue.by_name(name).expect("a module of the crate").spec.id, params }
    };
    Graph { nodes: places.iter().map(node).collect() }
}

/// One end of a flow.
pub fn end(places: &[Place<'_>], unit_len_max: usize) -> End {
    let bounds = Bounds {
        path_head: PATH_HEAD,
        datagram_len: DATAGRAM_LEN,
        unit_len_max,
        pool_bytes: 64 << 20,
        seed: 1,
    };
    let catalogue = Catalogue::new(dacapo_modules::entries());
    End::build(&catalogue, &graph(places), &bounds).expect("the graph can be built")
}

/// Losses in runs whose lengths have no memory (Gilbert): one step per slot of time, so that runs
/// last as long whatever is sent meanwhile.
pub struct Losses {
    begins: f64,
    ends: f64,
    slot: Duration,
    at: Time,
    lossy: bool,
    random: Random,
}

impl Losses {
    /// A share of `loss`, in runs of `burst` slots on average.
    pub fn new(loss: f64, burst: f64, slot: Duration, seed: u64) -> Self {
        let ends = 1.0 / burst;
        let begins = loss * ends / (1.0 - loss);
        let random = Random::from_number(seed);
        Self { begins, ends, slot, at: Time::ZERO, lossy: false, random }
    }

    /// The same chances, on their own.
    fn twin(&self, seed: u64) -> Self {
        let (begins, ends, slot) = (self.begins, self.ends, self.slot);
        let random = Random::from_number(seed);
        Self { begins, ends, slot, at: Time::ZERO, lossy: false, random }
    }

    fn takes(&mut self, now: Time) -> bool {
        while self.at + self.slot <= now {
            self.at += self.slot;
            let turns = if self.lossy { self.ends } else { self.begins };
            self.lossy ^= self.random.chance(turns);
        }
        self.lossy
    }
}

/// What a wire does to each datagram.
pub enum Loss {
    /// It takes each with this chance.
    Single(f64),
    /// It takes them in runs.
    Runs(Box<Losses>),
}

impl Loss {
    fn twin(&self, seed: u64) -> Self {
        match self {
            Self::Single(share) => Self::Single(*share),
            Self::Runs(losses) => Self::Runs(Box::new(losses.twin(seed))),
        }
    }

    /// Whether it takes a datagram that leaves now.
    pub fn takes_one(&mut self, now: Time, random: &mut Random) -> bool {
        match self {
            Self::Single(share) => random.chance(*share),
            Self::Runs(losses) => losses.takes(now),
        }
    }
}

/// Two ends and the wire between them, which does the same both ways.
pub struct World {
    pub a: End,
    pub b: End,
    loss: Loss,
    loss_back: Loss,
    /// The longest time that a datagram takes more than another.
    jitter: Duration,
    random: Random,
    /// When, which one, whether it goes to `b`, and its bytes.
    under_way: BTreeMap<(Time, u64), (bool, Vec<u8>)>,
    put: u64,
    /// How many datagrams left each end.
    pub sent: [u64; 2],
    /// The units that came, with their times.
    pub came: Vec<(Time, Vec<u8>)>,
    /// The most views that were out at the receiver.
    pub views_max: usize,
}

impl World {
    pub fn new(places: &[Place<'_>], loss: Loss, jitter: Duration, seed: u64) -> Self {
        Self {
            a: end(places, 20_000),
            b: end(places, 20_000),
            loss_back: loss.twin(seed ^ 0xBAC),
            loss,
            jitter,
            random: Random::from_number(seed),
            under_way: BTreeMap::new(),
            put: 0,
            sent: [0; 2],
            came: Vec::new(),
            views_max: 0,
        }
    }

    /// Sends units `every` so often, then lets everything happen that is still to come.
    pub fn run(&mut self, units: impl Iterator<Item = Vec<u8>>, every: Duration) {
        for unit in units {
            let next = self.a.now + every;
            assert!(self.a.feed(&unit), "room and credit");
            self.put();
            self.pass(next);
        }
        self.pass(self.a.now + Duration::from_secs(60));
    }

    fn put(&mut self) {
        let now = self.a.now;
        let ways = [(true, self.a.wire()), (false, self.b.wire())];
        for (is_down, datagrams) in ways {
            self.sent[usize::from(!is_down)] += datagrams.len() as u64;
            for datagram in datagrams {
                let loss = if is_down { &mut self.loss } else { &mut self.loss_back };
                if loss.takes_one(now, &mut self.random) {
                    continue;
                }
                let late = self.random.below(self.jitter.as_nanos() as u64 + 1);
                let at = now + Duration::from_millis(20) + Duration::from_nanos(late);
                self.put += 1;
                self.under_way.insert((at, self.put), (is_down, datagram));
            }
        }
    }

    fn pass(&mut self, end: Time) {
        loop {
            let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let timers = [self.a.runner.next_deadline(), self.b.runner.next_deadline()];
            let next = timers.into_iter().chain([arrival]).flatten().min();
            let Some(now) = next.filter(|at| *at <= end) else { break };
            self.set(now);
            self.a.fire();
            self.b.fire();
            self.tell();
            self.put();
            self.take();
            while let Some(first) = self.under_way.first_entry().filter(|it| it.key().0 <= now) {
                let (is_down, datagram) = first.remove();
                let end = if is_down { &mut self.b } else { &mut self.a };
                assert!(end.handle_bytes(&datagram), "room");
                self.take();
            }
            self.put();
        }
        self.set(end);
    }

    /// What modules of the receiver say out of band, which arrives at once.
    fn tell(&mut self) {
        for it in self.b.runner.take_told().messages {
            let answer =
                self.a.with(|runner, around| runner.control(around, it.module, &it.message));
            let answer = answer.map_err(|error| error.to_string());
            self.b.with(|runner, around| {
                let answer = answer.as_deref().map_err(|error| &error[..]);
                runner.handle_answer(around, it.module, answer);
            });
        }
    }

    fn set(&mut self, now: Time) {
        self.a.now = self.a.now.max(now);
        self.b.now = self.a.now;
    }

    fn take(&mut self) {
        let now = self.b.now;
        self.came.extend(self.b.units().into_iter().map(|unit| (now, unit)));
        self.views_max = self.views_max.max(self.b.pool.live_views());
    }
}

/// A unit that says its number, `len` bytes and at least eight.
pub fn unit(number: u64, len: usize) -> Vec<u8> {
    let mut unit = number.to_be_bytes().to_vec();
    unit.resize(len.max(8), number as u8);
    unit
}

/// The number of a unit that came as it was sent.
pub fn number(unit: &[u8]) -> u64 {
    let number = u64::from_be_bytes(unit[..8].try_into().expect("eight bytes"));
    assert!(unit[8..].iter().all(|byte| *byte == number as u8), "unit {number} was altered");
    number
}

/// The distinct numbers of the units that came.
pub fn numbers(world: &World) -> BTreeSet<u64> {
    world.came.iter().map(|(_, unit)| number(unit)).collect()
}

/// The same; none of them twice.
pub fn once(world: &World) -> BTreeSet<u64> {
    let numbers = numbers(world);
    assert_eq!(numbers.len(), world.came.len(), "a unit came twice");
    numbers
}

/// What the check of a graph says over a transport that gives these.
pub fn checked(places: &[Place<'_>], properties: &[Property]) -> Result<(), Illegal> {
    let catalogue = Catalogue::new(dacapo_modules::entries());
    let offer = Offer { transport: "test", properties, datagram_len: 1_452, path_head: PATH_HEAD };
    check(&catalogue, &graph(places), &offer, Needs { unit_len_max: 9_000 })
}

/// A path of single packets, one `every` so often, that loses in runs, and what it gives.
pub fn lossy(loss_ppb: u64, burst_milli: u64, every: Duration) -> (Setting, Service) {
    let path = Path {
        datagram_len: 1_452,
        rate_bps: 100_000_000,
        delay_ns: 20 * MS,
        jitter_ns: 0,
        loss_ppb,
        burst_milli,
    };
    let per_ks = 1_000_000_000_000 / every.as_nanos() as u64;
    let units = Units { len_mean: 100, len_max: 100, per_ks, divisible: false, is_paced: true };
    let figures = Figures {
        loss_ppb,
        loss_runs_ppb: loss_ppb * 1_000 / burst_milli,
        delay_ns: path.delay_ns,
        jitter_ns: 0,
        rate_bps: path.rate_bps,
    };
    let properties = Properties::of(&[Property::Boundaries]);
    (Setting::new(path, units), Service { properties, payload_len_max: 1_447, figures })
}

/// How many packets the module of an end that has one has given up for a reason.
pub fn dropped(end: &End, reason: DropReason) -> u64 {
    let counters = end.runner.modules().next().expect("a module").1;
    counters.down.dropped[reason.index()] + counters.up.dropped[reason.index()]
}

/// How many packets the modules of an end have told as lost.
pub fn lost(end: &End) -> u64 {
    end.runner.modules().map(|(_, counters)| counters.lost).sum()
}

/// Sets a parameter of the first module by a message out of band.
pub fn tell(end: &mut End, code: u8, value: u64) {
    let message = [&[code][..], &value.to_be_bytes()].concat();
    end.with(|runner, around| runner.control(around, 0, &message)).expect("a value in its bounds");
}

/// Feeds a unit in as many trains as it takes, and runs.
pub fn feed_chain(end: &mut End, unit: &[u8]) {
    let most = end.layout.payload_per_train();
    let trains = unit.len().div_ceil(most).max(1);
    for at in 0..trains {
        let part = &unit[at * most..unit.len().min((at + 1) * most)];
        let mut packet = end.pool.alloc_train(&end.layout, part.len()).expect("room in the pool");
        end.pool.write_payload(&packet, 0, part);
        packet.set_unit_ends(at == 0, at + 1 == trains);
        packet.time = end.now;
        end.with(|runner, around| runner.feed(around, packet));
    }
    end.with(Runner::run);
}

/// Takes all the memory of an end.
pub fn hoard(end: &mut End) -> Vec<Packet> {
    let mut hoard = Vec::new();
    for len in [60_000, 20] {
        while let Ok(packet) = end.pool.alloc(0, len, 0) {
            hoard.push(packet);
        }
    }
    hoard
}
