//! One run of one row: both ends started, waited for, and their reports made one sample.
//!
//! Invariant: a figure comes from a report of an end, or there is none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use peers::Failure;
use serde_json::{Value, json};

use crate::place::{End, Place};
use crate::process::{DIES_WITH_PARENT, Process};
use crate::rows::{Measure, Program, Row};

/// How long an end may take beyond what it is told to measure.
const PATIENCE: Duration = Duration::from_secs(20);
/// What a run of `dacapo bench net` lasts longer than the window, as the others warm up.
const WARM_UP_S: f64 = 0.3;

/// Packets of XTP that fill a datagram at this MTU, and more bytes than go in a run.
const XTP_PACKET_LEN: &str = "1472";
const XTP_BYTES_MAX: &str = "1000GB";
/// How much longer XTP sends than is counted: the far end's clock begins with its first byte.
const XTP_MARGIN_S: f64 = 0.1;

/// The figures of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Goodput, counted by the receiver.
    pub gbit_per_s: Option<f64>,
    /// CPU time of both ends for each 10^9 bytes delivered.
    pub cpu_s_per_gb: Option<f64>,
    /// The share not delivered.
    pub loss: Option<f64>,
    /// One way.
    pub p50_us: Option<f64>,
    /// One way.
    pub p99_us: Option<f64>,
}

/// What is needed to run any row.
#[derive(Debug)]
pub struct Bench {
    pub place: Place,
    pub programs: PathBuf,
    pub dacapo: PathBuf,
    /// The processors of the near and the far end.
    pub pins: Option<[usize; 2]>,
    /// Where programs leave things for each other.
    pub folder: PathBuf,
    pub seconds: f64,
    pub port: u16,
}

/// One run as it was: commands, reports, and the figures made of them.
#[derive(Debug)]
pub struct Run {
    pub commands: [String; 2],
    pub reports: Value,
    pub outcome: Result<Sample, Failure>,
}

impl Bench {
    /// Why `row` cannot run here at all, if it cannot.
    pub fn missing(&self, row: &Row) -> Option<String> {
        let Program::Peer(file, _) = row.program else {
            let text = || format!("{} is not there: build it first", self.dacapo.display());
            return (!self.dacapo.is_file()).then(text);
        };
        if let Ok(why) = std::fs::read_to_string(self.programs.join(format!("{file}.why"))) {
            return Some(why.trim().to_owned());
        }
        let text = || format!("{file} was not built");
        (!self.programs.join(file).is_file()).then(text)
    }

    /// Runs `row` once.
    pub fn run(&mut self, row: &Row) -> Run {
        // A port of its own for each run: what the last one left in the kernel does not matter.
        self.port = if self.port >= 29_999 { 21_000 } else { self.port + 1 };
        let [near, far] = [End::Near, End::Far].map(|end| self.words(row, end));
        let commands = [near.join(" "), far.join(" ")];
        let mut reports = Value::Null;
        let outcome = self.reports(row, &near, &far).and_then(|both| {
            reports = both;
            sample(row, &reports, self.seconds)
        });
        Run { commands, reports, outcome }
    }

    fn reports(&self, row: &Row, near: &[String], far: &[String]) -> Result<Value, Failure> {
        let patience = Duration::from_secs_f64(self.seconds * 1.5) + PATIENCE;
        let mut far = Process::start(far, &self.folder)?;
        let is_ready = |line: &str| line == "ready" || line.contains("\"listening\"");
        far.line(PATIENCE, is_ready)?;
        let mut near = Process::start(near, &self.folder)?;
        if row.program.is_ours() {
            return read(&near.all(patience)?);
        }
        let is_report = |line: &str| line.starts_with('{');
        let near = near.line(patience, is_report);
        if row.measure == Measure::Latency {
            return read(&near?);
        }
        // When both fail, the far end knows better why nothing came; but it waits for long.
        let near = near?;
        let far = far.line(PATIENCE, is_report)?;
        Ok(json!({ "source": read(&near)?, "sink": read(&far)? }))
    }

    fn words(&self, row: &Row, end: End) -> Vec<String> {
        let mut words = self.place.words(end);
        words.extend(DIES_WITH_PARENT.map(str::to_owned));
        if let Some([near, far]) = self.pins {
            let processor = if end == End::Near { near } else { far };
            words.extend(["taskset", "-c", &processor.to_string()].map(str::to_owned));
        }
        let address = format!("{}:{}", self.place.address(), self.port);
        match row.program {
            Program::Peer(file, kind) => {
                let role = match (row.measure, end) {
                    (Measure::Bulk, End::Near) => "source",
                    (Measure::Bulk, End::Far) => "sink",
                    (Measure::Latency, End::Near) => "ping",
                    (Measure::Latency, End::Far) => "echo",
                };
                words.push(text_of(&self.programs.join(file)));
                let (size, seconds) = (row.size.to_string(), self.seconds.to_string());
                let rest = [kind, role, &address, &size, &seconds, row.wait.word()];
                words.extend(rest.map(str::to_owned));
            }
            Program::Xtp(window, options) => {
                words.push(text_of(&self.dacapo));
                words.extend(["bench", "xtp"].map(str::to_owned));
                words.extend(self.xtp_words(row, end, &address, (window, options)));
            }
            Program::Dacapo(options) => {
                words.push(text_of(&self.dacapo));
                words.extend(["bench", "net"].map(str::to_owned));
                words.extend(self.dacapo_words(row, end, &address, options));
            }
        }
        words
    }

    fn xtp_words(
        &self,
        row: &Row,
        end: End,
        address: &str,
        (window, options): (&str, &[&str]),
    ) -> Vec<String> {
        let size = row.size.to_string();
        let both = ["--packet-len", XTP_PACKET_LEN, "--window", window, "--json"];
        if end == End::Far {
            let words = [&["--listen", address][..], &both[..]].concat();
            return words.into_iter().map(str::to_owned).collect();
        }
        // One run, that ends by the time and not by its bytes, behind the stretch that counts.
        let seconds = format!("{:.3}s", WARM_UP_S + self.seconds + XTP_MARGIN_S);
        let time = ["--bytes", XTP_BYTES_MAX, "--run-max", &seconds, "--seconds", &seconds];
        let near = [&[address, "--send-len", &size][..], &time[..]].concat();
        let words = [&near[..], &both[..], options].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    fn dacapo_words(&self, row: &Row, end: End, address: &str, options: &[&str]) -> Vec<String> {
        if end == End::Far {
            return ["--listen", address, "--once", "--json"].map(str::to_owned).to_vec();
        }
        let what = if row.measure == Measure::Bulk { "bulk" } else { "latency" };
        let duration = format!("{:.3}s", self.seconds + WARM_UP_S);
        let mut words: Vec<&str> = vec![address, "--what", what, "--duration", &duration];
        words.extend(["--wait", row.wait.word(), "--json"]);
        words.extend(options);
        words.into_iter().map(str::to_owned).collect()
    }
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn read(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure(format!("no JSON ({error}): {text}")))
}

/// Bytes per second over the stretch that counts of everybody: `seconds` long, from the warm-up on
/// behind what came first. `path` has how many bytes had come by each tenth of a second.
fn rate_of_course(reports: &Value, path: &str, seconds: f64) -> Result<f64, Failure> {
    let steps = reports.pointer(path).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let by = |at: f64| {
        let place = ((at * 10.0).round() as usize).checked_sub(1);
        place
            .and_then(|place| steps.get(place))
            .and_then(Value::as_f64)
            .ok_or_else(|| Failure(format!("{path} has {} steps, none for {at:.1} s", steps.len())))
    };
    let seconds = (seconds * 10.0).floor().max(1.0) / 10.0;
    Ok((by(WARM_UP_S + seconds)? - by(WARM_UP_S)?) / seconds)
}

/// The figures in the reports of `row`, of which `seconds` were to count.
///
/// # Errors
/// A figure is missing: the program has changed what it prints.
pub fn sample(row: &Row, reports: &Value, seconds: f64) -> Result<Sample, Failure> {
    let number = |path: &str| {
        let number = reports.pointer(path).and_then(Value::as_f64).filter(|n| n.is_finite());
        number.ok_or_else(|| Failure(format!("there is no {path} in the report")))
    };
    if let Program::Xtp(..) = row.program {
        let (bytes, sent) = (number("/points/0/bytes_read")?, number("/points/0/bytes_sent")?);
        let rate = rate_of_course(reports, "/points/0/read_by_100_ms", seconds)?;
        return Ok(Sample {
            gbit_per_s: Some(rate * 8.0 / 1e9),
            cpu_s_per_gb: Some(number("/points/0/cpu_s_per_gb/both")?),
            loss: Some(1.0 - bytes / sent),
            ..Sample::default()
        });
    }
    let is_dacapo = row.program.is_ours();
    match (row.measure, is_dacapo) {
        (Measure::Bulk, true) => Ok(Sample {
            gbit_per_s: Some(number("/median/bulk/up/gbit_per_s")?),
            cpu_s_per_gb: Some(number("/median/bulk/cpu_s_per_gb/both")?),
            loss: Some(number("/median/bulk/up/loss")?),
            ..Sample::default()
        }),
        (Measure::Latency, true) => Ok(Sample {
            p50_us: Some(number("/median/latency/rtt_us/p50")? / 2.0),
            p99_us: Some(number("/median/latency/rtt_us/p99")? / 2.0),
            ..Sample::default()
        }),
        (Measure::Bulk, false) => {
            let bytes = number("/sink/bytes")?;
            if bytes <= 0.0 {
                return Err(Failure("nothing was delivered".to_owned()));
            }
            let rate = bytes / number("/sink/seconds")?;
            let sent = number("/source/bytes")? / number("/source/seconds")?;
            // CPU per second of each window: the two need not be equally long.
            let cpu = number("/sink/cpu_s")? / number("/sink/seconds")?
                + number("/source/cpu_s")? / number("/source/seconds")?;
            let lost = number("/sink/lost").ok();
            let loss = match lost {
                _ if row.is_reliable => 0.0,
                Some(lost) => lost / (lost + number("/sink/messages")?),
                None => (1.0 - rate / sent).max(0.0),
            };
            Ok(Sample {
                gbit_per_s: Some(rate * 8.0 / 1e9),
                cpu_s_per_gb: Some(cpu / rate * 1e9),
                loss: Some(loss),
                ..Sample::default()
            })
        }
        (Measure::Latency, false) => Ok(Sample {
            p50_us: Some(number("/p50_us")?),
            p99_us: Some(number("/p99_us")?),
            ..Sample::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::row;

    #[test]
    fn goodput_is_the_sinks_and_cpu_time_that_of_both_ends() {
        let reports = json!({
            "sink": { "bytes": 2_000_000_000u64, "seconds": 2.0, "cpu_s": 1.0, "lost": 25,
                "messages": 75 },
            "source": { "bytes": 5_000_000_000u64, "seconds": 4.0, "cpu_s": 4.0 },
        });
        let gso = sample(row("gso").unwrap(), &reports, 2.0).unwrap();
        assert_eq!(gso.gbit_per_s, Some(8.0));
        assert_eq!(gso.cpu_s_per_gb, Some(1.5));
        assert_eq!(gso.loss, Some(0.25));
        assert_eq!(sample(row("tcp").unwrap(), &reports, 2.0).unwrap().loss, Some(0.0));
        let mut reports = reports;
        reports["sink"]["lost"] = Value::Null;
        let loss = sample(row("zenoh-udp").unwrap(), &reports, 2.0).unwrap().loss;
        assert!((loss.unwrap() - 0.2).abs() < 1e-12);
    }

    #[test]
    fn round_trips_of_dacapo_are_halved_and_a_missing_figure_is_an_error() {
        let reports =
            json!({ "median": { "latency": { "rtt_us": { "p50": 52.0, "p99": 80.0 } } } });
        let ours = sample(row("ours-udp-64").unwrap(), &reports, 2.0).unwrap();
        assert_eq!((ours.p50_us, ours.p99_us), (Some(26.0), Some(40.0)));
        assert!(sample(row("ours-udp").unwrap(), &reports, 2.0).is_err());
        assert!(sample(row("gso").unwrap(), &json!({}), 2.0).is_err());
    }

    #[test]
    fn goodput_of_xtp_is_what_its_far_end_has_read_in_the_stretch_of_all() {
        let of = |by: &[u64]| {
            let point = json!({ "bytes_read": 9e9, "bytes_sent": 9e9, "read_by_100_ms": by,
                "cpu_s_per_gb": { "both": 0.5 } });
            sample(row("xtp").unwrap(), &json!({ "points": [point] }), 0.25)
        };
        let xtp = of(&[1, 2, 1_000_000_000, 7, 1_300_000_000, 9]).unwrap();
        assert_eq!((xtp.gbit_per_s, xtp.cpu_s_per_gb), (Some(12.0), Some(0.5)));
        assert_eq!(xtp.loss, Some(0.0));
        let short = of(&[1, 2, 3, 4]).unwrap_err().0;
        assert!(short.contains("4 steps, none for 0.5 s"), "{short}");
    }
}
