//! The rule that a choice of modules rests on: a better service below is never worse above.
//!
//! Random settings, and pairs of services of which one is at least as good as the other in
//! everything, put under a module.
//!
//! ```text
//!   above    A >= B        then also
//!            ^    ^
//!          module module
//!            ^    ^
//!   below    a >= b        when
//! ```
//!
//! Without it a search that keeps only the best partial graphs could throw away the one that leads
//! to the best whole.

use crate::{
    Cost, Figures, ModuleSpec, POINTS_MAX, PPB, Params, Path, Properties, Property, Service,
    Setting, Units,
};
use dacapo_base::Random;

const SEEDS: u64 = 3_000;

/// Tries a module's profile and spec with random settings and pairs of services.
///
/// For each point that it proposes above the worse service it must propose one above the better
/// that serves at least as well for at most the cost; with the same parameters the better service
/// below gives the better one above. It proposes 1 to [`POINTS_MAX`] points within the bounds of
/// the parameters, what it says is the same when it is asked again, and shares are shares.
///
/// # Panics
/// When it does not hold; the text names what and the seed.
pub fn a_better_service_below_is_never_worse_above(spec: &ModuleSpec) {
    for seed in 0..SEEDS {
        let mut random = Random::from_number(seed);
        let setting = setting(&mut random);
        let worse = service(spec, &mut random);
        let better = improved(&worse, &mut random);
        let trial = Trial { spec, seed, setting, better, worse };
        let points = [trial.points(&better), trial.points(&worse)];
        let mut same = vec![Params::new(), any(spec, &mut random), any(spec, &mut random)];
        same.extend(points.iter().flatten().cloned());
        same.iter().for_each(|params| trial.check_same(params));
        trial.check_points(&points[0], &points[1]);
    }
}

struct Trial<'a> {
    spec: &'a ModuleSpec,
    seed: u64,
    setting: Setting,
    better: Service,
    worse: Service,
}

/// What counts against a point: what it costs, and how many packets it makes of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Price {
    cost: Cost,
    copies: u64,
    packets_milli: u64,
}

impl Price {
    fn at_most(&self, other: &Self) -> bool {
        self.cost.at_most(&other.cost)
            && self.copies <= other.copies
            && self.packets_milli <= other.packets_milli
    }
}

impl Trial<'_> {
    fn fail(&self, what: &str) -> ! {
        let Self { spec, seed, setting, better, worse } = self;
        panic!(
            "monotone: {}: {what}, seed {seed}\n{setting:?}\nbetter {better:?}\nworse {worse:?}",
            spec.name
        );
    }

    /// The points above a service, which must be few, legal and the same again.
    fn points(&self, below: &Service) -> Vec<Params> {
        let points = self.spec.profile.points(&self.setting, below);
        if !(1..=POINTS_MAX).contains(&points.len()) {
            self.fail(&format!("{} points", points.len()));
        }
        let points = self.spec.points(&self.setting, below);
        for &(number, value) in points.iter().flat_map(Params::values) {
            let param = self.spec.params.get(usize::from(number));
            if !param.is_some_and(|param| (param.min..=param.max).contains(&value)) {
                self.fail(&format!("a point outside the bounds: parameter {number} = {value}"));
            }
        }
        if points != self.spec.points(&self.setting, below) {
            self.fail("other points when asked again");
        }
        points
    }

    fn figures(&self, params: &Params, below: &Service) -> Figures {
        let figures = self.spec.profile.figures(params, &self.setting, below);
        if figures != self.spec.profile.figures(params, &self.setting, below) {
            self.fail(&format!("other figures when asked again, with {params:?}"));
        }
        if figures.loss_ppb > PPB || figures.loss_runs_ppb > figures.loss_ppb {
            self.fail(&format!("shares that are none, with {params:?}: {figures:?}"));
        }
        figures
    }

    fn price(&self, params: &Params) -> Price {
        let profile = self.spec.profile;
        Price {
            cost: profile.cost(params),
            copies: profile.copies(params),
            packets_milli: profile.packets_milli(params, &self.setting),
        }
    }

    fn serve(&self, params: &Params, below: &Service) -> Option<Service> {
        let price = self.price(params);
        if price != self.price(params) {
            self.fail(&format!("another cost when asked again, with {params:?}"));
        }
        let bounds = 1_000..=price.copies.saturating_mul(1_000);
        if !bounds.contains(&price.packets_milli) {
            self.fail(&format!("not one packet to `copies` for one, with {params:?}: {price:?}"));
        }
        self.spec.serve(params, &self.setting, below)
    }

    /// For each point above the worse service there is one above the better that loses in nothing.
    fn check_points(&self, better: &[Params], worse: &[Params]) {
        for point in worse {
            let Some(above) = self.serve(point, &self.worse) else { continue };
            let price = self.price(point);
            let is_matched = better.iter().any(|other| {
                let served = self.serve(other, &self.better);
                served.is_some_and(|it| it.at_least(&above)) && self.price(other).at_most(&price)
            });
            if !is_matched {
                self.fail(&format!("no point is as good as {point:?}, which gives {above:?}"));
            }
        }
    }

    /// With the same parameters the order stays.
    fn check_same(&self, params: &Params) {
        let [better, worse] = [self.better, self.worse]
            .map(|below| (self.figures(params, &below), self.serve(params, &below)));
        if !better.0.at_least(&worse.0) {
            self.fail(&format!("with {params:?} the figures are {:?} and {:?}", better.0, worse.0));
        }
        let is_kept = match (better.1, worse.1) {
            (Some(better), Some(worse)) => better.at_least(&worse),
            (better, worse) => better.is_some() || worse.is_none(),
        };
        if !is_kept {
            self.fail(&format!("with {params:?} it serves {:?} and {:?}", better.1, worse.1));
        }
    }
}

/// Any value of any parameter.
fn any(spec: &ModuleSpec, random: &mut Random) -> Params {
    let mut params = Params::new();
    for (number, param) in spec.params.iter().enumerate() {
        let value = param.min.saturating_add(wide(random, param.max - param.min));
        params.set(number as u16, value);
    }
    params
}

/// A number up to `max` whose order of magnitude is as random as its digits.
fn wide(random: &mut Random, max: u64) -> u64 {
    let bits = random.below(u64::from(u64::BITS - max.leading_zeros()) + 1);
    let bound = 1_u64.checked_shl(bits as u32).unwrap_or(u64::MAX);
    random.below(bound).min(max)
}

/// Up to `usual`; now and then up to the end of the numbers, where sums overflow.
fn figure(random: &mut Random, usual: u64) -> u64 {
    let max = if random.chance(0.02) { u64::MAX } else { usual };
    wide(random, max)
}

fn setting(random: &mut Random) -> Setting {
    let len_mean = 1 + wide(random, 1 << 24) as u32;
    let path = Path {
        datagram_len: if random.chance(0.5) { 1_452 } else { 128 + random.below(65_000) as u32 },
        rate_bps: figure(random, 100_000_000_000),
        delay_ns: figure(random, 2_000_000_000),
        jitter_ns: figure(random, 2_000_000_000),
        loss_ppb: wide(random, PPB),
        burst_milli: 1_000 + wide(random, 1_000_000),
    };
    let units = Units {
        len_mean,
        len_max: len_mean.saturating_add(wide(random, 1 << 24) as u32),
        per_ks: 1 + figure(random, 100_000_000),
        divisible: random.chance(0.3),
        is_paced: random.chance(0.7),
    };
    let deadline_ns = if random.chance(0.5) { u64::MAX } else { wide(random, 4_000_000_000) };
    let useful_ns = if random.chance(0.3) { u64::MAX } else { wide(random, 4_000_000_000) };
    let bound_bps = wide(random, 10_000_000_000);
    Setting { path, units, bound_bps, useful_ns, deadline_ns, is_newest: random.chance(0.5) }
}

/// A service with what the module requires, and anything else.
fn service(spec: &ModuleSpec, random: &mut Random) -> Service {
    let required = Properties::of(spec.requires);
    let loss_ppb = wide(random, PPB);
    let delay_ns = figure(random, 4_000_000_000);
    let figures = Figures {
        loss_ppb,
        loss_runs_ppb: wide(random, loss_ppb),
        delay_ns,
        jitter_ns: wide(random, delay_ns),
        rate_bps: figure(random, 100_000_000_000),
    };
    let room = 50 + wide(random, 65_500) as u32;
    Service { properties: some(required, random), payload_len_max: room, figures }
}

/// These properties and some others.
fn some(properties: Properties, random: &mut Random) -> Properties {
    let others: Vec<Property> = Property::ALL.into_iter().filter(|_| random.chance(0.3)).collect();
    properties.with(Properties::of(&others))
}

/// A service that is at least as good in everything: some of it the same, some a little better,
/// some as good as it can be.
fn improved(worse: &Service, random: &mut Random) -> Service {
    let Figures { loss_ppb, loss_runs_ppb, delay_ns, jitter_ns, rate_bps } = worse.figures;
    let loss_ppb = less(loss_ppb, random);
    let delay_ns = less(delay_ns, random);
    let room = worse.payload_len_max - 50;
    let figures = Figures {
        loss_ppb,
        loss_runs_ppb: less(loss_runs_ppb, random).min(loss_ppb),
        delay_ns,
        jitter_ns: less(jitter_ns, random).min(delay_ns),
        rate_bps: more(rate_bps, random, u64::MAX),
    };
    let properties =
        if random.chance(0.5) { worse.properties } else { some(worse.properties, random) };
    Service {
        properties,
        payload_len_max: 50 + more(u64::from(room), random, 65_500) as u32,
        figures,
    }
}

fn less(value: u64, random: &mut Random) -> u64 {
    match random.below(4) {
        0 | 1 => value,
        2 => value - wide(random, value),
        _ => wide(random, value),
    }
}

fn more(value: u64, random: &mut Random, max: u64) -> u64 {
    match random.below(4) {
        0 | 1 => value,
        2 => value.saturating_add(wide(random, value)).min(max),
        _ => value.saturating_add(wide(random, max)).min(max),
    }
}
