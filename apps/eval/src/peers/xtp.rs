//! [`Xtp`]: the engine of XTP 4.0 over UDP, as `dacapo bench xtp`.

use super::dacapo::Which;
use super::{Order, Peer, WARM_UP_S, words};
use crate::experiment::Sample;
use crate::rig::{Pair, Reports, Rig};
use serde_json::Value;

/// Packets that fill a datagram at MTU 1500, and more bytes than go in a run.
const PACKET_LEN: &str = "1472";
const BYTES_MAX: &str = "1000GB";

/// How much longer it sends than is counted: the far end's clock begins with its first byte.
const MARGIN_S: f64 = 0.1;

/// `dacapo bench xtp --mode stream`.
pub struct Xtp {
    /// Of which command.
    pub which: Which,
    /// At both ends.
    pub window: &'static str,
    /// Of the end that sends.
    pub options: &'static [&'static str],
}

impl Peer for Xtp {
    fn missing(&self, rig: &Rig) -> Option<String> {
        self.which.missing(rig)
    }

    fn version(&self, rig: &Rig) -> Option<String> {
        self.which.version(rig)
    }

    fn pair(&self, order: &Order, address: &str, rig: &Rig) -> Pair {
        let program = self.which.path(rig).to_string_lossy().into_owned();
        let size = order.size.to_string();
        let begin = [&*program, "bench", "xtp"];
        let both = ["--packet-len", PACKET_LEN, "--window", self.window, "--json"];
        // One run, that ends by the time and not by its bytes, behind the stretch that counts.
        let seconds = format!("{:.3}s", WARM_UP_S + rig.seconds + MARGIN_S);
        let time = ["--bytes", BYTES_MAX, "--run-max", &seconds, "--seconds", &seconds];
        let near = [&begin[..], &[address, "--send-len", &size, "--mode", "stream"]].concat();
        let near = [&near[..], &time, &both, self.options].concat();
        Pair {
            near: words(near),
            far: words([&begin[..], &["--listen", address], &both].concat()),
            is_ready: |line| line.contains("\"listening\""),
            is_near_alone: true,
        }
    }

    fn sample(&self, _order: &Order, reports: &Reports, rig: &Rig) -> Result<Sample, String> {
        let point = |name: &str| reports.number(&format!("near/points/0/{name}"));
        let (bytes, sent) = (point("bytes_read")?, point("bytes_sent")?);
        let rate = rate_of_course(&reports.near, rig.seconds)?;
        Ok(Sample::default()
            .with("gbit_per_s", rate * 8.0 / 1e9)
            .with("cpu_s_per_gb", point("cpu_s_per_gb/both")?)
            .with("loss_percent", (1.0 - bytes / sent) * 100.0))
    }
}

/// Bytes each second over the stretch that counts of everybody: `seconds` long, from the warm-up on
/// behind what came first.
fn rate_of_course(report: &Value, seconds: f64) -> Result<f64, String> {
    let steps = report.pointer("/points/0/read_by_100_ms").and_then(Value::as_array);
    let steps = steps.map_or(&[][..], Vec::as_slice);
    let by = |at: f64| {
        let place = ((at * 10.0).round() as usize).checked_sub(1);
        let step = place.and_then(|place| steps.get(place)).and_then(Value::as_f64);
        step.ok_or_else(|| format!("read_by_100_ms has {} steps, none for {at:.1} s", steps.len()))
    };
    let seconds = (seconds * 10.0).floor().max(1.0) / 10.0;
    Ok((by(WARM_UP_S + seconds)? - by(WARM_UP_S)?) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn goodput_is_what_its_far_end_has_read_in_the_stretch_of_all() {
        let of =
            |by: &[u64]| rate_of_course(&json!({ "points": [{ "read_by_100_ms": by }] }), 0.25);
        assert_eq!(of(&[1, 2, 1_000_000_000, 7, 1_300_000_000, 9]), Ok(1.5e9));
        let short = of(&[1, 2, 3, 4]).unwrap_err();
        assert!(short.contains("4 steps, none for 0.5 s"), "{short}");
    }
}
