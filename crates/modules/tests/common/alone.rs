//! A module alone on a path that loses in runs: what its profile says, beside what happens.

use super::{Loss, Losses, World, lossy, ms, number, once, unit};
use dacapo_lift::{ModuleSpec, PPB, Params};
use std::time::Duration;

/// A module, and the path and flow on which it is tried: single packets, one `every` so often.
pub struct Alone {
    pub spec: &'static ModuleSpec,
    pub params: Params,
    pub loss_ppb: u64,
    pub burst_milli: u64,
    pub every: Duration,
    pub seed: u64,
}

/// Whether what is predicted is near what happens: loss within twice and half, or a tenth of a
/// percent; the delay of 99 in 100, and the rate, within 15 %.
pub struct Near {
    pub loss: bool,
    pub delay: bool,
    pub rate: bool,
}

/// What happened to some packets.
struct Happened {
    lost: f64,
    /// How long each that came took, in ns, the shortest first.
    delays_ns: Vec<u64>,
    /// How many were handed over for each that left.
    rate: f64,
}

impl Alone {
    /// What comes later after it was sent than it is of use is lost.
    fn run(&self, count: u64, useful_ns: u64) -> Happened {
        let (share, burst) = (self.loss_ppb as f64 / PPB as f64, self.burst_milli as f64 / 1e3);
        let loss = match self.burst_milli {
            1_000 => Loss::Single(share),
            _ => Loss::Runs(Box::new(Losses::new(share, burst, self.every, self.seed))),
        };
        let places = &[(self.spec.name, self.params.values())];
        let mut world = World::new(places, loss, ms(0), self.seed);
        let start = world.a.now;
        world.run((0..count).map(|number| unit(number, 20)), self.every);
        let taken = |(at, bytes): &(dacapo_base::Time, Vec<u8>)| {
            at.since(start + self.every * number(bytes) as u32).as_nanos() as u64
        };
        once(&world);
        let mut delays_ns: Vec<u64> = world.came.iter().map(taken).collect();
        delays_ns.retain(|it| *it <= useful_ns);
        delays_ns.sort_unstable();
        let lost = (count - delays_ns.len() as u64) as f64 / count as f64;
        Happened { lost, delays_ns, rate: count as f64 / world.sent[0] as f64 }
    }

    /// Panics where what is lost of 40,000 packets is not near what is predicted.
    pub fn loses_as_much_as_is_predicted(&self) {
        self.loses_as_much_of_use(u64::MAX);
    }

    /// The same of packets that are of use for so long.
    pub fn loses_as_much_of_use(&self, useful_ns: u64) {
        let (mut setting, below) = lossy(self.loss_ppb, self.burst_milli, self.every);
        setting.useful_ns = useful_ns;
        let says = self.spec.profile.figures(&self.params, &setting, &below).loss_ppb;
        let lost = self.run(40_000, useful_ns).lost;
        let says = says as f64 / PPB as f64;
        let (loss, burst) = (self.loss_ppb as f64 / 1e9, self.burst_milli as f64 / 1e3);
        let params = &self.params;
        assert!(
            is_loss_near(lost, says),
            "{loss} in runs of {burst}, {params:?}: {lost:.6} lost, {says:.6} predicted"
        );
    }

    /// What of 20,000 packets is near. Where it is known how long after it was sent a packet is
    /// given up, the delay is that of all that were sent.
    pub fn near(&self, given_up_ns: Option<u64>) -> Near {
        self.near_of_use(u64::MAX, 0, given_up_ns)
    }

    /// The same of packets that are of use for so long, where the delay may also be so many packets
    /// more or less.
    pub fn near_of_use(&self, useful_ns: u64, apart: u32, given_up_ns: Option<u64>) -> Near {
        let (mut setting, below) = lossy(self.loss_ppb, self.burst_milli, self.every);
        setting.useful_ns = useful_ns;
        let says = self.spec.profile.figures(&self.params, &setting, &below);
        let count = 20_000;
        let Happened { lost, mut delays_ns, rate } = self.run(count, useful_ns);
        if let Some(given_up) = given_up_ns {
            delays_ns.resize(count as usize, given_up);
            delays_ns.sort_unstable();
        }
        let delay = delays_ns[delays_ns.len() * 99 / 100] as f64;
        let is_near = |is: f64, says: f64| (is / says - 1.0).abs() <= 0.15;
        Near {
            loss: is_loss_near(lost, says.loss_ppb as f64 / PPB as f64),
            delay: is_near(delay, says.delay_ns as f64)
                || (delay - says.delay_ns as f64).abs() <= (self.every * apart).as_nanos() as f64,
            rate: is_near(rate * below.figures.rate_bps as f64, says.rate_bps as f64),
        }
    }
}

fn is_loss_near(lost: f64, says: f64) -> bool {
    (says / 2.0..=says * 2.0).contains(&lost) || (lost - says).abs() <= 0.001
}

/// Panics where of 100 paths and flows that seeds draw fewer than 90 are near, in anything.
pub fn near_in_nine_of_ten(draw: impl Fn(u64) -> Near) {
    let near: Vec<Near> = (0..100).map(draw).collect();
    let count = |of: fn(&Near) -> bool| near.iter().filter(|it| of(it)).count();
    let counts = [count(|it| it.loss), count(|it| it.delay), count(|it| it.rate)];
    println!("loss, delay, rate near: {counts:?} of 100");
    assert!(counts.iter().all(|count| *count >= 90), "loss, delay, rate: {counts:?} of 100");
}
