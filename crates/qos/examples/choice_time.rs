//! How long a choice with its explanation takes.
//!
//! `cargo run --release -p dacapo-qos --example choice_time [CHOICES]`: random requests (both what
//! is granted and what is refused) on catalogues made of seeds; prints p50, p99 and max in µs. Each
//! request is timed five times and the shortest counts, so that what else runs does not.

#[path = "../tests/configure/synthetic.rs"]
mod synthetic;

use dacapo_base::Random;
use dacapo_lift::Setting;
use dacapo_qos::{AttributeKey, Attributes, Pins, Request, Requirement, Use, choose};
use std::hint::black_box;
use std::time::Instant;
use synthetic::{Size, World};

const REQUESTS: u64 = 100;

fn main() {
    let choices = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let realistic = Size { functions: 6, transports: 2, candidates: 1_000 };
    let large = Size { functions: 12, transports: 2, candidates: 20_000 };
    for size in [realistic, large] {
        measure(size, choices);
    }
}

fn measure(size: Size, choices: u64) {
    let mut times = [Vec::new(), Vec::new()];
    for seed in 0..choices.div_ceil(REQUESTS) {
        let mut random = Random::from_number(seed);
        let World { catalogue, setting } = synthetic::world(&mut random, size);
        for _ in 0..REQUESTS {
            let request = request(&mut random, setting);
            let time = || {
                let start = Instant::now();
                let answer = black_box(choose(&catalogue, black_box(&request), &Pins::NONE));
                (start.elapsed().as_nanos() as u64, answer.is_err())
            };
            if let Some((ns, refused)) = (0..5).map(|_| time()).min() {
                times[usize::from(refused)].push(ns);
            }
        }
    }
    let Size { functions, transports, .. } = size;
    println!("{functions} functions, {transports} transports");
    for (what, times) in ["granted", "refused"].into_iter().zip(&mut times) {
        times.sort_unstable();
        let at = |share: f64| {
            let index = (times.len() as f64 * share) as usize;
            times.get(index.min(times.len().saturating_sub(1))).map_or(0.0, |ns| *ns as f64 / 1e3)
        };
        let (p50, p99, max) = (at(0.5), at(0.99), at(1.0));
        println!(
            "  {what} {:>6}: p50 {p50:>8.1} us  p99 {p99:>8.1} us  max {max:>8.1} us",
            times.len()
        );
    }
}

/// Up to five attributes with bounds that paths of every kind meet or miss.
fn request(random: &mut Random, setting: Setting) -> Request {
    let mut attributes = Attributes::new();
    for _ in 0..random.below(6) {
        let key = AttributeKey::ALL[random.below(14) as usize];
        let asked = requirement(random, key);
        if asked.check(key).is_ok() {
            attributes.insert(key, asked).expect("checked");
        }
    }
    let used = if random.chance(0.5) { Use::Handed } else { Use::Played { playout_ns: None } };
    Request::new(attributes, setting, used)
}

fn requirement(random: &mut Random, key: AttributeKey) -> Requirement {
    let (min, max) = match key {
        AttributeKey::Throughput => (Some(random.below(500_000_000)), None),
        AttributeKey::Delay | AttributeKey::Deadline => (None, Some(random.below(300_000_000))),
        AttributeKey::Jitter => (None, Some(random.below(50_000_000))),
        AttributeKey::Loss if random.chance(0.5) => (None, Some(0)),
        AttributeKey::Loss => (None, Some(random.below(50_000_000))),
        AttributeKey::Cpu => (None, Some(random.below(1_000_000_000))),
        AttributeKey::Receivers => (Some(1 + random.below(4)), None),
        AttributeKey::FrameRate => (Some(random.below(50_000_000)), None),
        _ => (Some(random.below(key.range().1 + 1)), None),
    };
    let weight = random.chance(0.2).then(|| random.below(101) as u8);
    Requirement { min, max, weight }
}
