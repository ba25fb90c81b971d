//! `setup`: how long it takes from nothing to a unit that is there and back, again and again: with
//! an endpoint and a connection of its own each time, or as a further session of one connection.
//!
//! ```text
//!   near   [connect] join -> activate -> unit ->      far: the same back      <- the clock stops
//! ```
//!
//! Invariants: one session is on its way at a time; the first fifth of the time is in no figure;
//! the far end leaves with the unit that says that it is the last.

use crate::cli::{BenchSetupArgs, Fresh};
use crate::exit::{Exit, Failure};
use crate::net::lossless_flow;
use crate::output;
use crate::store::histogram::Histogram;
use dacapo::{Creator, Endpoint, Error};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const NAME: &str = "bench-setup";

const UNIT_LEN: usize = 64;

/// What the last unit begins with.
const LAST: u8 = 1;

/// The session: nothing may be lost, as with the programs beside it.
fn session_file() -> String {
    let there = lossless_flow("there", "participant", UNIT_LEN);
    let back = lossless_flow("back", "creator", UNIT_LEN);
    format!("[session]\nname = \"{NAME}\"\n{there}{back}")
}

/// Runs the command.
pub fn run(args: &BenchSetupArgs) -> Result<Exit, Failure> {
    let failed = |error: Error| Failure::core("bench setup", &error);
    match &args.listen {
        Some(address) => answer(address).map_err(failed)?,
        None => {
            let address = args.address.as_deref().unwrap_or_default();
            output::json(&ask(address, args).map_err(failed)?);
        }
    }
    Ok(Exit::Success)
}

fn answer(address: &str) -> Result<(), Error> {
    let creator = dacapo::create(session_file())?;
    creator.listen(address)?;
    output::line(json!({ "event": "listening" }));
    while answer_one(&creator)? != Some(LAST) {}
    Ok(())
}

/// Sends back what the next participant sends; what that begins with.
fn answer_one(creator: &Creator) -> Result<Option<u8>, Error> {
    let session = creator.accept()?;
    let (mut there, mut back) = (session.receiver("there")?, session.sender("back")?);
    let unit = there.recv()?;
    if let Some(unit) = &unit {
        back.send(unit)?;
    }
    // The other end closes once it has the answer.
    session.wait_end_timeout(Duration::from_secs(10))?;
    Ok(unit.and_then(|unit| unit.first().copied()))
}

/// The steps of a session, in their order; how long each takes is said by its name.
const STEPS: [&str; 4] = ["connect", "activate", "echo", "close"];

/// How long the steps of a session took.
type Steps = [Duration; STEPS.len()];

fn ask(address: &str, args: &BenchSetupArgs) -> Result<Value, Error> {
    let uri = format!("dacapo://{address}/{NAME}");
    let (mut unit, mut all) = ([7; UNIT_LEN], Vec::new());
    let (begin, mut endpoint) = (Instant::now(), None);
    let warm_up = if args.once { Duration::ZERO } else { args.duration / 5 };
    while unit[0] != LAST {
        let elapsed = begin.elapsed();
        let is_last = elapsed > warm_up + args.duration && !args.once;
        unit[0] = if is_last { LAST } else { 7 };
        let steps = one(&uri, args.new, &mut endpoint, &unit)?;
        all.extend((elapsed >= warm_up).then_some(steps).flatten());
        if args.once {
            break;
        }
    }
    Ok(report(&all, begin.elapsed().saturating_sub(warm_up)))
}

/// Sets a session up, has a unit sent back, and closes it; none where the other end left. The
/// endpoint of the last time is taken again, unless it is to be new.
fn one(
    uri: &str,
    new: Fresh,
    endpoint: &mut Option<Endpoint>,
    unit: &[u8],
) -> Result<Option<Steps>, Error> {
    let mut last = Instant::now();
    let mut step = || {
        let now = Instant::now();
        now.duration_since(std::mem::replace(&mut last, now))
    };
    let endpoint = match endpoint {
        Some(endpoint) if new == Fresh::Session => endpoint,
        _ => endpoint.insert(Endpoint::new()?),
    };
    let session = endpoint.connect(uri)?;
    let connect = step();
    session.activate()?;
    let activate = step();
    session.sender("there")?.send(unit)?;
    let is_back = session.receiver("back")?.recv()?.is_some();
    let echo = step();
    session.close()?;
    Ok(is_back.then(|| [connect, activate, echo, step()]))
}

/// What is said of sessions that were set up, one after the other, within `elapsed`.
fn report(all: &[Steps], elapsed: Duration) -> Value {
    let mut said = said_of(all.iter().map(|steps| steps[..3].iter().sum()), elapsed);
    let steps = STEPS.iter().enumerate().map(|(place, name)| {
        let p50 = histogram(all.iter().map(|steps| steps[place])).percentile(0.5);
        ((*name).to_owned(), json!(p50))
    });
    said["steps_us_p50"] = Value::Object(steps.collect());
    said
}

/// What is said of set-ups that took so long, one after the other, within `elapsed`.
pub fn said_of(all: impl Iterator<Item = Duration>, elapsed: Duration) -> Value {
    let set_up = histogram(all);
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| set_up.percentile(share));
    json!({
        "count": set_up.count(),
        "set_up_us": { "p50": p50, "p99": p99, "max": max },
        "per_s": set_up.count() as f64 / elapsed.as_secs_f64(),
    })
}

/// In microseconds.
fn histogram(all: impl Iterator<Item = Duration>) -> Histogram {
    Histogram::of(&all.map(|it| it.as_secs_f64() * 1e6).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_set_up_again_and_again_both_ways() {
        for new in [Fresh::Connection, Fresh::Session] {
            let creator = dacapo::create(session_file()).unwrap();
            creator.listen("127.0.0.1:0").unwrap();
            let address = creator.endpoint().listening()[0].to_string();
            let far = std::thread::spawn(move || {
                let mut count = 1;
                while answer_one(&creator).unwrap() != Some(LAST) {
                    count += 1;
                }
                count
            });
            let args = BenchSetupArgs {
                address: Some(address.clone()),
                listen: None,
                new,
                duration: Duration::from_millis(50),
                once: false,
            };
            let said = ask(&address, &args).unwrap();
            let measured = said["count"].as_u64().unwrap();
            let answered = far.join().unwrap();
            assert!((1..=answered).contains(&measured), "{measured} of {answered}");
            assert!(said["set_up_us"]["p50"].as_f64().unwrap() > 0.0);
            assert!(said["per_s"].as_f64().unwrap() > 0.0);
            for step in STEPS {
                assert!(said["steps_us_p50"][step].as_f64().unwrap() > 0.0, "{said}");
            }
        }
    }
}
