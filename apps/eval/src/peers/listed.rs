//! [`Listed`]: a program of `eval/peers`, all of which have one command line.
//!
//! ```text
//!   PROGRAM KIND sink|source|echo|ping ADDR:PORT SIZE SECONDS block|spin
//! ```

use super::{Measure, Order, Peer, words};
use crate::experiment::Sample;
use crate::rig::{Pair, Reports, Rig};
use crate::run::machine;
use crate::store::histogram::Histogram;
use serde_json::Value;

/// The versions that the programs in Rust are built with, and how the others are.
const LOCK: &str = include_str!("../../../../eval/peers/Cargo.lock");
const BUILD: &str = include_str!("../../../../scripts/eval-peers.sh");

/// The version of `package` in the lock file.
fn locked(package: &str) -> Option<String> {
    let heading = format!("name = \"{package}\"\nversion = \"");
    LOCK.split_once(&heading).and_then(|(_, rest)| Some(rest.split_once('"')?.0.to_owned()))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// One of them, as one of its kinds.
pub struct Listed {
    /// Its file.
    pub program: &'static str,
    /// What of it.
    pub kind: &'static str,
}

impl Peer for Listed {
    fn missing(&self, rig: &Rig) -> Option<String> {
        let file = rig.programs.join(self.program);
        // Who builds them leaves beside each that cannot be had why that is.
        let why = std::fs::read_to_string(file.with_extension("why")).ok();
        let built = || format!("{} was not built: make eval-peers", self.program);
        why.map(|why| why.trim().to_owned()).or_else(|| (!file.is_file()).then(built))
    }

    fn version(&self, _rig: &Rig) -> Option<String> {
        match self.program {
            "peer-quinn" => locked("quinn"),
            "peer-zenoh" => locked("zenoh"),
            "peer-iceoryx" => locked("iceoryx2"),
            "peer-srt" => machine::output("pkg-config", &["--modversion", "srt"]),
            "peer-zmq" => machine::output("pkg-config", &["--modversion", "libzmq"]),
            "peer-aeron" => BUILD.split_once("aeron_version=").map(|(_, rest)| first_line(rest)),
            // What they measure is the kernel.
            _ => machine::output("uname", &["-sr"]),
        }
    }

    fn pair(&self, order: &Order, address: &str, rig: &Rig) -> Pair {
        let file = rig.programs.join(self.program).to_string_lossy().into_owned();
        let (size, seconds) = (order.size.to_string(), rig.seconds.to_string());
        let [near, far] = match order.measure {
            Measure::Bulk => ["source", "sink"],
            Measure::Latency | Measure::SetUp | Measure::Start => ["ping", "echo"],
        };
        let of = |role, seconds: &str| {
            words([&*file, self.kind, role, address, &size, seconds, order.wait.word()])
        };
        Pair {
            near: match order.measure {
                Measure::Start => super::setup::starts(rig, of(near, "0"), of(near, "0.001")),
                _ => of(near, &seconds),
            },
            far: of(far, &seconds),
            is_ready: |line| line == "ready",
            is_near_alone: order.measure != Measure::Bulk,
        }
    }

    fn sample(&self, order: &Order, reports: &Reports, rig: &Rig) -> Result<Sample, String> {
        match order.measure {
            Measure::Bulk => {}
            Measure::Latency => return round_trips(reports),
            Measure::SetUp => return set_ups(reports, rig),
            Measure::Start => return super::setup::sample(reports),
        }
        let number = |path: &str| reports.number(path);
        let bytes = number("far/bytes")?;
        if bytes <= 0.0 {
            return Err("nothing was delivered".to_owned());
        }
        let rate = bytes / number("far/seconds")?;
        let sent = number("near/bytes")? / number("near/seconds")?;
        // CPU for each second of each window: the two need not be equally long.
        let cpu = number("far/cpu_s")? / number("far/seconds")?
            + number("near/cpu_s")? / number("near/seconds")?;
        let loss = match number("far/lost").ok() {
            _ if order.is_reliable => 0.0,
            Some(lost) => lost / (lost + number("far/messages")?),
            None => (1.0 - rate / sent).max(0.0),
        };
        let mut sample = Sample::default().with("gbit_per_s", rate * 8.0 / 1e9);
        // One that sends at a pace says how long its messages took.
        if let Ok(p99) = number("far/p99_us") {
            let per_s = number("far/messages")? / number("far/seconds")?;
            sample = sample.with("p99_us", p99).with("p50_us", number("far/p50_us")?);
            sample = sample.with("units_per_s", per_s).with("cpu_us_per_unit", cpu / per_s * 1e6);
        }
        Ok(sample.with("cpu_s_per_gb", cpu / rate * 1e9).with("loss_percent", loss * 100.0))
    }
}

/// What begins with a connection has no way that is half of it.
fn set_ups(reports: &Reports, rig: &Rig) -> Result<Sample, String> {
    let of = |name: &str| reports.number(&format!("near/{name}"));
    let (p50, p99) = (2.0 * of("p50_us")?, 2.0 * of("p99_us")?);
    let per_s = of("count")? / rig.seconds;
    Ok(super::setup::figures(reports, of("count")?, p50, p99)?.with("per_s", per_s))
}

/// One way is half of a round trip: both ways are the same program, and nothing else can be said
/// without a common clock.
fn round_trips(reports: &Reports) -> Result<Sample, String> {
    // A fifth of the time more is the warm-up, whose messages are not in the count.
    let messages = reports.number("near/count")? * 1.2;
    let mut sample = Sample::default().with("messages", messages);
    for name in ["p50_us", "p99_us", "p999_us", "max_us"] {
        sample = sample.with(name, reports.number(&format!("near/{name}"))?);
    }
    let series = reports.near.get("one_way_us").and_then(Histogram::from_json);
    sample.series.extend(series.map(|series| ("one_way_us".to_owned(), series)));
    let over = reports.near.get("over_5_ms").and_then(Value::as_f64);
    Ok(over.map_or(sample.clone(), |over| sample.with("over_5_ms", over)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Wait;
    use serde_json::json;

    fn order(measure: Measure, is_reliable: bool) -> Order {
        Order { measure, size: 1472, wait: Wait::Block, is_reliable }
    }

    fn sample(order: &Order, near: Value, far: Value) -> Result<Sample, String> {
        let reports = Reports { near, far, ..Reports::default() };
        let peer = Listed { program: "peer-plain", kind: "gso" };
        peer.sample(order, &reports, &crate::rig::tests::rig())
    }

    #[test]
    fn goodput_is_the_sinks_and_processor_time_that_of_both_ends() {
        let near = json!({ "bytes": 5_000_000_000_u64, "seconds": 4.0, "cpu_s": 4.0 });
        let mut far = json!({ "bytes": 2_000_000_000_u64, "seconds": 2.0, "cpu_s": 1.0, "lost": 25,
            "messages": 75 });
        let bulk = |is_reliable, far: &Value| {
            sample(&order(Measure::Bulk, is_reliable), near.clone(), far.clone()).unwrap().figures
        };
        let gso = bulk(false, &far);
        assert_eq!((gso["gbit_per_s"], gso["cpu_s_per_gb"], gso["loss_percent"]), (8.0, 1.5, 25.0));
        assert_eq!(bulk(true, &far)["loss_percent"], 0.0);
        far["lost"] = Value::Null;
        assert!((bulk(false, &far)["loss_percent"] - 20.0).abs() < 1e-9, "from the bytes of both");
        far["bytes"] = json!(0);
        assert!(sample(&order(Measure::Bulk, false), near, far).unwrap_err().contains("nothing"));
    }

    #[test]
    fn versions_are_those_that_programs_are_built_with() {
        assert!(locked("quinn").is_some_and(|version| version.starts_with("0.11.")));
        assert_eq!(locked("no-such-package"), None);
        let rig = crate::rig::tests::rig();
        let aeron = Listed { program: "peer-aeron", kind: "udp" }.version(&rig).unwrap();
        assert!(aeron.split('.').count() == 3, "{aeron}");
    }

    #[test]
    fn round_trips_are_kept_each() {
        let near = json!({ "count": 3, "p50_us": 2.0, "p99_us": 3.0, "p999_us": 3.0, "max_us": 3.0,
            "one_way_us": Histogram::of(&[1.0, 2.0, 3.0]).to_json() });
        let it = sample(&order(Measure::Latency, true), near, Value::Null).unwrap();
        assert_eq!((it.figures["p50_us"], it.series["one_way_us"].count()), (2.0, 3));
        assert!(sample(&order(Measure::Latency, true), json!({}), Value::Null).is_err());
    }
}
