//! [`SetUp`]: `dacapo-eval setup`, and the figures of set-ups.

use super::{Measure, Order, Peer, Which, words};
use crate::cli::THEN;
use crate::experiment::Sample;
use crate::rig::{Pair, Reports, Rig};

/// Sessions of ours.
pub struct SetUp {
    /// What is new each time, as on the command line.
    pub new: &'static str,
}

impl Peer for SetUp {
    fn missing(&self, rig: &Rig) -> Option<String> {
        Which::Now.missing(rig)
    }

    fn version(&self, rig: &Rig) -> Option<String> {
        Which::Now.version(rig)
    }

    fn pair(&self, order: &Order, address: &str, rig: &Rig) -> Pair {
        let own = rig.own.to_string_lossy().into_owned();
        let near =
            |rest: &[&str]| words([&[&*own, "setup", address, "--new", self.new], rest].concat());
        let lasting = |duration: &str| near(&["--duration", duration]);
        Pair {
            near: match order.measure {
                Measure::Start => starts(rig, near(&["--once"]), lasting("1ms")),
                _ => lasting(&format!("{:.3}s", rig.seconds)),
            },
            far: words([&*own, "setup", "--listen", address]),
            is_ready: |line| line.contains("\"listening\""),
            is_near_alone: true,
        }
    }

    fn sample(&self, _order: &Order, reports: &Reports, _rig: &Rig) -> Result<Sample, String> {
        sample(reports)
    }
}

/// The near end where each set-up is a process: one again and again, then the last.
pub fn starts(rig: &Rig, again: Vec<String>, last: Vec<String>) -> Vec<String> {
    let (own, duration) = (rig.own.to_string_lossy(), format!("{:.3}s", rig.seconds));
    let starter = words([&*own, "starts", "--duration", &duration, "--"]);
    [starter, again, words([THEN]), last].concat()
}

/// What a near end of this program has said.
///
/// # Errors
/// As [`figures`].
pub fn sample(reports: &Reports) -> Result<Sample, String> {
    let us = |name: &str| reports.number(&format!("near/set_up_us/{name}"));
    let sample = figures(reports, reports.number("near/count")?, us("p50")?, us("p99")?)?;
    Ok(sample.with("per_s", reports.number("near/per_s")?))
}

/// The figures of so many, which were what there was after a warm-up of a fifth.
///
/// # Errors
/// There was none.
pub fn figures(reports: &Reports, count: f64, p50: f64, p99: f64) -> Result<Sample, String> {
    if count < 1.0 {
        return Err("nothing was set up".to_owned());
    }
    let cpu_s = reports.near_usage.cpu_s + reports.far_usage.cpu_s;
    let sample = Sample::default().with("p50_us", p50).with("p99_us", p99);
    Ok(sample.with("cpu_us", cpu_s * 1e6 / (count * 1.2)).with("count", count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Wait;
    use serde_json::json;

    #[test]
    fn a_set_up_has_the_processor_time_of_both_ends() {
        let near = json!({
            "count": 100, "per_s": 200.0, "set_up_us": { "p50": 400.0, "p99": 500.0, "max": 9e3 }
        });
        let mut reports = Reports { near, ..Reports::default() };
        (reports.near_usage.cpu_s, reports.far_usage.cpu_s) = (0.024, 0.036);
        let order =
            Order { measure: Measure::SetUp, size: 64, wait: Wait::Block, is_reliable: true };
        let sample = |reports: &Reports| {
            SetUp { new: "session" }.sample(&order, reports, &crate::rig::tests::rig())
        };
        let figures = sample(&reports).unwrap().figures;
        assert_eq!(
            (figures["p50_us"], figures["p99_us"], figures["cpu_us"]),
            (400.0, 500.0, 500.0)
        );
        reports.near["count"] = json!(0);
        assert!(sample(&reports).is_err());
    }
}
