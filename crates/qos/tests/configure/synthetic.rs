//! Catalogues made of a seed: modules and transports whose profiles are monotone by construction.

use dacapo_base::Random;
use dacapo_lift::{
    Catalogue, Cost, Entry, Figures, ModuleSpec, PPB, ParamSpec, ParamUnit, Params, Path, Profile,
    Property, Service, Setting, Stratum, TransportProfile, TransportSpec, Units,
};

const MS: u64 = 1_000_000;
const HOLD_MAX: u64 = 5_000 * MS;

/// How large a catalogue is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub functions: usize,
    pub transports: u64,
    /// About how many candidates there may be over a transport, legal or not.
    pub candidates: u64,
}

/// A catalogue and what it is used for.
#[derive(Clone, Debug)]
pub struct World {
    pub catalogue: Catalogue,
    pub setting: Setting,
}

/// What a module does at one operating point.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    /// What is left of losses, in ppm.
    loss_ppm: u64,
    delay_ns: u64,
    jitter_ns: u64,
    rate_ppm: u64,
    packets_milli: u64,
    cost: Cost,
}

/// A profile that only gets better when what is below gets better.
#[derive(Debug)]
struct Sway {
    points: Vec<Point>,
    /// Waits as long as packets may be late below.
    holds: bool,
    /// Has nothing to wait for where this is given below.
    idle: Option<Property>,
    joins: bool,
}

impl Sway {
    fn point(&self, params: &Params) -> (Point, u64) {
        let of = |number| params.values().iter().find(|(n, _)| *n == number).map_or(0, |v| v.1);
        (self.points[of(0) as usize], of(1))
    }
}

impl Profile for Sway {
    fn points(&self, _setting: &Setting, below: &Service) -> Vec<Params> {
        let params = |mode: usize| {
            let mut params = Params::new();
            params.set(0, mode as u64);
            if self.holds {
                let hold = below.figures.jitter_ns.div_ceil(MS) * MS;
                params.set(1, hold.clamp(MS, HOLD_MAX));
            }
            params
        };
        (0..self.points.len()).map(params).collect()
    }

    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let (point, hold) = self.point(params);
        let part = |value: u64, ppm: u64| {
            u64::try_from(u128::from(value) * u128::from(ppm) / 1_000_000).unwrap_or(u64::MAX)
        };
        let waits = self.idle.is_none_or(|property| !below.properties.contains(property));
        let wait = if waits { hold + point.delay_ns } else { 0 };
        let figures = &below.figures;
        let pieces = setting.units.len_mean.div_ceil(below.payload_len_max.max(1));
        let spread = if self.joins { u64::from(pieces - 1) } else { 0 };
        let loss = figures.loss_ppb + spread.saturating_mul(figures.loss_runs_ppb);
        let loss_ppb = part(loss.min(PPB), point.loss_ppm);
        Figures {
            loss_ppb,
            loss_runs_ppb: part(figures.loss_runs_ppb, point.loss_ppm).min(loss_ppb),
            delay_ns: figures.delay_ns + wait,
            jitter_ns: figures.jitter_ns + if waits { point.jitter_ns } else { 0 },
            rate_bps: part(figures.rate_bps, point.rate_ppm),
        }
    }

    fn cost(&self, params: &Params) -> Cost {
        self.point(params).0.cost
    }

    fn copies(&self, params: &Params) -> u64 {
        self.point(params).0.packets_milli.div_ceil(1_000)
    }

    fn packets_milli(&self, params: &Params, _: &Setting) -> u64 {
        self.point(params).0.packets_milli
    }
}

#[derive(Debug)]
struct Carries {
    loss_ppm: u64,
    delay_ns: u64,
    rate_ppm: u64,
    cost: Cost,
}

impl TransportProfile for Carries {
    fn figures(&self, setting: &Setting) -> Figures {
        let path = &setting.path;
        let loss_ppb = path.loss_ppb * self.loss_ppm / 1_000_000;
        Figures {
            loss_ppb,
            loss_runs_ppb: loss_ppb * 1_000 / path.burst_milli,
            delay_ns: path.delay_ns + path.jitter_ns + self.delay_ns,
            jitter_ns: path.jitter_ns + self.delay_ns,
            rate_bps: path.rate_bps / 1_000_000 * self.rate_ppm,
        }
    }

    fn cost(&self) -> Cost {
        self.cost
    }
}

const PARAMS: &[ParamSpec] =
    &[param("mode", ParamUnit::Count, 2), param("hold", ParamUnit::Nanoseconds, HOLD_MAX)];

const fn param(name: &'static str, unit: ParamUnit, max: u64) -> ParamSpec {
    ParamSpec { name, unit, default: 0, min: 0, max, summary: "", control: None }
}

/// The world of a seed.
pub fn world(random: &mut Random, size: Size) -> World {
    let functions: Vec<&'static str> =
        (0..size.functions).map(|n| &*Box::leak(format!("f{n}").into_boxed_str())).collect();
    let strata: Vec<Stratum> = functions.iter().map(|_| pick(random, &STRATA)).collect();
    let options = options(random, size);
    let free = random.chance(0.15);
    // Rules that contradict each other, and functions that are served in several strata.
    let tangled = random.chance(0.3);
    let mut entries = Vec::new();
    let mut id = 0xF000;
    for (n, function) in functions.iter().enumerate() {
        for points in &options[n] {
            id += 1;
            let astray = random.chance(if tangled { 0.5 } else { 0.01 });
            let stratum = if astray { pick(random, &STRATA) } else { strata[n] };
            let mut spec = module(random, id, function, stratum, *points, free);
            if random.chance(if tangled { 0.8 } else { 0.3 }) {
                let beneath = vec![functions[random.below(functions.len() as u64) as usize]];
                spec.beneath = Box::leak(beneath.into_boxed_slice());
            }
            if n == 0 {
                spec = joining(random, spec, *points);
            }
            entries.push(entry(spec));
        }
    }
    // The order in a catalogue must not matter.
    for at in (1..entries.len()).rev() {
        entries.swap(at, random.below(at as u64 + 1) as usize);
    }
    let transports = (0..size.transports).map(|n| transport(random, n as u16 + 1)).collect();
    let setting = setting(random);
    World { catalogue: Catalogue::new(entries).with_transports(transports), setting }
}

/// The operating points of each module of each function.
fn options(random: &mut Random, size: Size) -> Vec<Vec<usize>> {
    let mut options = vec![vec![1]; size.functions];
    let mut budget = size.candidates >> size.functions;
    while budget > 1 {
        budget /= 2;
        let at = random.below(size.functions as u64) as usize;
        let full = options[at].last().is_none_or(|points| *points == 3);
        if full || random.chance(0.4) {
            options[at].push(1);
        } else if let Some(points) = options[at].last_mut() {
            *points += 1;
        }
    }
    options
}

const STRATA: [Stratum; 6] = [
    Stratum::Shape,
    Stratum::Compress,
    Stratum::Segment,
    Stratum::Repair,
    Stratum::Protect,
    Stratum::Number,
];

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize]
}

/// Each property with a chance of `percent`.
fn properties(random: &mut Random, percent: u64) -> &'static [Property] {
    let some = Property::ALL
        .into_iter()
        .filter(|property| *property != Property::AnyUnitSize && random.below(100) < percent);
    Box::leak(some.collect::<Vec<_>>().into_boxed_slice())
}

fn cost(random: &mut Random, most: u64) -> Cost {
    // Coarse, so that many candidates cost the same.
    let mut part = |unit: u64| random.below(most) * unit;
    Cost {
        train_ps: part(100_000),
        packet_ps: part(50_000),
        byte_ps: part(50),
        wire_milli: part(500),
    }
}

fn module(
    random: &mut Random,
    id: u16,
    function: &'static str,
    stratum: Stratum,
    points: usize,
    free: bool,
) -> ModuleSpec {
    let name: &'static str = Box::leak(format!("{function}-{id:x}").into_boxed_str());
    let holds = random.chance(0.3);
    let idle = random.chance(0.3).then(|| pick(random, &Property::ALL));
    let points = (0..points).map(|_| point(random, free)).collect();
    let bare = free && random.chance(0.7);
    let takes = if random.chance(0.3) { properties(random, 10) } else { &[] };
    ModuleSpec {
        name,
        id,
        function,
        mechanism: "made up",
        summary: "",
        stratum,
        head: if bare { 0 } else { random.below(20) as u16 },
        tail: if bare { 0 } else { random.below(3) as u16 },
        trains_down: true,
        trains_up: true,
        keeps_order: true,
        segments: false,
        acknowledges: false,
        orders: None,
        requires: if random.chance(0.25) { properties(random, 12) } else { &[] },
        provides: properties(random, 14),
        takes,
        beneath: &[],
        params: PARAMS,
        notes: &[],
        profile: Box::leak(Box::new(Sway { points, holds, idle, joins: false })),
    }
}

fn point(random: &mut Random, free: bool) -> Point {
    let keeps = random.chance(0.5);
    Point {
        loss_ppm: if keeps { 1_000_000 } else { random.below(1_000_001) },
        delay_ns: if random.chance(0.5) { 0 } else { random.below(30) * MS },
        jitter_ns: if random.chance(0.6) { 0 } else { random.below(10) * MS },
        rate_ppm: if random.chance(0.6) { 1_000_000 } else { 300_000 + random.below(700_000) },
        packets_milli: if random.chance(0.85) { 1_000 } else { 1_000 + random.below(2_001) },
        cost: if free { Cost::ZERO } else { cost(random, 5) },
    }
}

/// The module with which units may be larger than a packet.
fn joining(random: &mut Random, spec: ModuleSpec, points: usize) -> ModuleSpec {
    let points =
        (0..points).map(|_| Point { packets_milli: 1_000, ..point(random, false) }).collect();
    ModuleSpec {
        stratum: Stratum::Segment,
        segments: true,
        acknowledges: false,
        orders: None,
        requires: &[],
        provides: &[Property::AnyUnitSize],
        takes: &[],
        profile: Box::leak(Box::new(Sway { points, holds: false, idle: None, joins: true })),
        ..spec
    }
}

fn entry(spec: ModuleSpec) -> Entry {
    Entry { spec: Box::leak(Box::new(spec)), build: |_, _| unreachable!("nothing runs here") }
}

fn transport(random: &mut Random, id: u16) -> &'static TransportSpec {
    let any_path = random.chance(0.4);
    let profile = Carries {
        loss_ppm: if random.chance(0.4) { 0 } else { 1_000_000 },
        delay_ns: random.below(4) * 20 * MS,
        rate_ppm: 100_000 + random.below(900_000),
        cost: cost(random, 40).plus(&Cost { train_ps: 1, packet_ps: 1, byte_ps: 1, ..Cost::ZERO }),
    };
    Box::leak(Box::new(TransportSpec {
        name: Box::leak(format!("t{id}").into_boxed_str()),
        id,
        summary: "made up",
        scheme: dacapo_base::IP,
        properties: properties(random, 20),
        datagram_len: if any_path { 1_500 + random.below(64_036) as u32 } else { 1_452 },
        any_path,
        lanes: !any_path,
        streams: any_path,
        same_host: false,
        groups: false,
        spread: None,
        over: None,
        port: None,
        profile: Box::leak(Box::new(profile)),
    }))
}

fn setting(random: &mut Random) -> Setting {
    let longest = if random.chance(0.5) { 1_200 } else { 40_000 };
    let len_mean = 1 + random.below(longest) as u32;
    let most = if random.chance(0.5) { 100 } else { 100_000 };
    let path = Path {
        datagram_len: 1_452,
        rate_bps: (1 + random.below(1_000)) * 1_000_000,
        delay_ns: random.below(50) * MS,
        jitter_ns: random.below(20_000) * 1_000,
        loss_ppb: if random.chance(0.2) { 0 } else { random.below(50_000_000) },
        burst_milli: 1_000 + random.below(5_000),
    };
    let units = Units {
        len_mean,
        len_max: len_mean + random.below(most) as u32,
        per_ks: 1 + random.below(200_000),
        divisible: random.chance(0.3),
        is_paced: random.chance(0.7),
    };
    let bound_bps = if random.chance(0.5) { 0 } else { 5_000_000 };
    Setting { bound_bps, ..Setting::new(path, units) }
}

/// A catalogue whose operating points are all worth keeping: each is better and dearer.
pub fn adversarial(functions: usize) -> World {
    let mut random = Random::from_number(1);
    let mut entries = Vec::new();
    for n in 0..functions {
        let name: &'static str = Box::leak(format!("a{n}").into_boxed_str());
        let mut spec = module(&mut random, 0xF100 + n as u16, name, Stratum::Repair, 3, false);
        let step = 1 << (2 * n);
        let point = |mode: u64| Point {
            loss_ppm: 1_000_000,
            rate_ppm: 1_000_000,
            delay_ns: (3 - mode) * step,
            packets_milli: 1_000,
            cost: Cost { train_ps: mode * step, ..Cost::ZERO },
            ..Point::default()
        };
        let points = (0..3).map(point).collect();
        let sway = Sway { points, holds: false, idle: None, joins: false };
        (spec.requires, spec.takes) = (&[], &[]);
        // Without any of them the service lacks something.
        spec.provides = Box::leak(vec![Property::ALL[n % Property::ALL.len()]].into_boxed_slice());
        spec.profile = Box::leak(Box::new(sway));
        entries.push(entry(spec));
    }
    let transports = vec![transport(&mut random, 1), transport(&mut random, 2)];
    let mut setting = setting(&mut random);
    (setting.units.len_mean, setting.units.len_max) = (100, 100);
    World { catalogue: Catalogue::new(entries).with_transports(transports), setting }
}
