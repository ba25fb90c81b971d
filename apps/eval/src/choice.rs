//! `dacapo bench choice`: how long it takes to choose a graph and a transport, with why, or to say
//! why there is none.
//!
//! ```text
//!   number -> request, path, units -> choose, five times, of which the shortest counts -> µs
//! ```
//!
//! Invariant: the requests follow from their numbers alone, so every run answers the same ones.

use crate::cli::BenchChoiceArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Table, line};
use crate::progress::Progress;
use crate::store::histogram::Histogram;
use dacapo_base::Random;
use dacapo_lift::{Setting, Units};
use dacapo_qos::{AttributeKey, Attributes, PathPreset, Pins, Request, Requirement, Use, choose};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

/// What else runs takes time away from one of so many, but from all of them hardly.
const TRIES: usize = 5;

const MS: u64 = 1_000_000;

/// Networks that are assumed by name.
pub const PATHS: [PathPreset; 4] =
    [PathPreset::Loopback, PathPreset::Lan, PathPreset::Internet, PathPreset::Wireless];

/// What became of requests; the places in what is measured.
const ANSWERS: [&str; 2] = ["granted", "refused"];

/// Runs the command.
pub fn run(args: &BenchChoiceArgs) -> Result<Exit, Failure> {
    let mut progress = Progress::new(args.json);
    let requests = args.requests.get();
    let said = measure(requests, |number| {
        if progress.is_due() {
            progress.show(&format!("request {number} of {requests}"));
        }
    });
    progress.clear();
    if args.json {
        output::json(&said);
    } else {
        print(&said);
    }
    Ok(Exit::Success)
}

fn measure(requests: u32, mut tell: impl FnMut(u32)) -> Value {
    let catalogue = dacapo::catalogue();
    let mut us = [Vec::new(), Vec::new()];
    for number in 0..requests {
        tell(number);
        let request = request(&mut Random::from_number(u64::from(number)));
        let time = || {
            let start = Instant::now();
            let answer = black_box(choose(&catalogue, black_box(&request), &Pins::NONE));
            (start.elapsed(), answer.is_err())
        };
        if let Some((took, is_refused)) = (0..TRIES).map(|_| time()).min() {
            us[usize::from(is_refused)].push(took.as_secs_f64() * 1e6);
        }
    }
    let all = Histogram::of(&us.concat());
    let mut said = json!({ "all": figures(&all) });
    for (answer, us) in ANSWERS.into_iter().zip(&us) {
        said[answer] = figures(&Histogram::of(us));
    }
    said
}

fn figures(us: &Histogram) -> Value {
    let at = |share| us.percentile(share);
    json!({ "count": us.count(), "p50_us": at(0.5), "p99_us": at(0.99), "max_us": at(1.0) })
}

fn print(said: &Value) {
    let mut table = Table::new(&["requests", "number", "p50 µs", "p99 µs", "max µs"]);
    for name in ["granted", "refused", "all"] {
        let number = |figure: &str| said[name][figure].as_f64().unwrap_or(0.0);
        let mut row = vec![name.into(), format!("{:.0}", number("count")).into()];
        row.extend(["p50_us", "p99_us", "max_us"].map(|it| format!("{:.1}", number(it)).into()));
        table.row(row);
    }
    table.print();
    line("");
    line("A choice is of a graph and a transport, with what `dacapo explain` prints of it;");
    line("a refusal says what could be had. Of each request the shortest of five times counts.");
}

/// Up to five attributes, with bounds that paths of every kind meet or miss.
fn request(random: &mut Random) -> Request {
    let setting = setting(random);
    let mut attributes = Attributes::new();
    for _ in 0..random.below(6) {
        let key = AttributeKey::ALL[random.below(AttributeKey::ALL.len() as u64) as usize];
        let asked = requirement(random, key);
        if asked.check(key).is_ok() {
            // What is wrong with it has just been asked.
            let _ = attributes.insert(key, asked);
        }
    }
    let used = if random.chance(0.5) { Use::Handed } else { Use::Played { playout_ns: None } };
    Request::new(attributes, setting, used)
}

fn requirement(random: &mut Random, key: AttributeKey) -> Requirement {
    let (min, max) = match key {
        AttributeKey::Throughput => (Some(random.below(500_000_000)), None),
        AttributeKey::Delay | AttributeKey::Deadline => (None, Some(random.below(300 * MS))),
        AttributeKey::Jitter => (None, Some(random.below(50 * MS))),
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

/// One of the paths that have a name, and units of one length.
fn setting(random: &mut Random) -> Setting {
    let path = PATHS[random.below(PATHS.len() as u64) as usize].path();
    let len = 1 + random.below(64 * 1_024) as u32;
    let per_ks = 1 + random.below(200_000);
    let units = Units {
        len_mean: len,
        len_max: len,
        per_ks,
        divisible: random.chance(0.3),
        is_paced: true,
    };
    let bound_bps = if random.chance(0.5) { 0 } else { 5_000_000 };
    Setting { bound_bps, ..Setting::new(path, units) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_granted_and_refused_and_every_run_answers_the_same() {
        let count = |said: &Value, answer: &str| said[answer]["count"].as_u64().unwrap();
        let (first, second) = (measure(200, |_| {}), measure(200, |_| {}));
        for said in [&first, &second] {
            assert_eq!(count(said, "granted") + count(said, "refused"), 200);
            assert_eq!(count(said, "all"), 200);
        }
        assert_eq!(count(&first, "granted"), count(&second, "granted"));
        assert!(count(&first, "granted") > 20 && count(&first, "refused") > 20, "{first}");
        assert!(first["all"]["p50_us"].as_f64().unwrap() > 0.0);
    }
}
