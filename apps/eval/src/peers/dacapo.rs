//! [`Dacapo`]: the command itself, as `dacapo bench net`.

use super::{Measure, Order, Peer, WARM_UP_S, words};
use crate::experiment::Sample;
use crate::rig::{Pair, Reports, Rig};
use crate::run::machine;
use crate::store::histogram::Histogram;
use std::path::PathBuf;

/// `dacapo bench net` with these options.
pub struct Dacapo {
    /// Which command.
    pub which: Which,
    /// What is below the graph, and the graph.
    options: &'static [&'static str],
    /// The controller of its path, where that is not the usual one.
    controller: Option<&'static str>,
}

impl Dacapo {
    /// With the usual controller.
    pub const fn new(which: Which, options: &'static [&'static str]) -> Self {
        Self { which, options, controller: None }
    }

    /// With this one: a word of `env`.
    pub const fn controlled(mut self, controller: &'static str) -> Self {
        self.controller = Some(controller);
        self
    }
}

/// The command of this tree, or of an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// What is measured.
    Now,
    /// The command of b8cfde3, before the redesign of the core's parts.
    Before,
}

impl Which {
    /// Where it is.
    pub fn path(self, rig: &Rig) -> PathBuf {
        match self {
            Self::Now => rig.dacapo.clone(),
            Self::Before => rig.programs.join("peer-before"),
        }
    }

    /// Why it cannot run.
    pub fn missing(self, rig: &Rig) -> Option<String> {
        let (path, how) = (self.path(rig), if self == Self::Now { "build" } else { "eval-peers" });
        (!path.is_file()).then(|| format!("{} is not there: make {how}", path.display()))
    }

    /// What it says of itself.
    pub fn version(self, rig: &Rig) -> Option<String> {
        machine::output(&self.path(rig).to_string_lossy(), &["--version"])
    }
}

impl Peer for Dacapo {
    fn missing(&self, rig: &Rig) -> Option<String> {
        self.which.missing(rig)
    }

    fn version(&self, rig: &Rig) -> Option<String> {
        self.which.version(rig)
    }

    fn pair(&self, order: &Order, address: &str, rig: &Rig) -> Pair {
        let program = self.which.path(rig).to_string_lossy().into_owned();
        let what = if order.measure == Measure::Bulk { "bulk" } else { "latency" };
        let duration = format!("{:.3}s", rig.seconds + WARM_UP_S);
        let near = [&*program, "bench", "net", address, "--what", what, "--duration", &duration];
        let rest = ["--wait", order.wait.word(), "--json"];
        // An older one has no such option.
        let has_samples = order.measure == Measure::Latency && self.which == Which::Now;
        let samples = if has_samples { &["--samples"][..] } else { &[] };
        let unit = format!("{} B", order.size);
        let unit = ["--unit-len", &*unit];
        let unit = if order.measure == Measure::Bulk { &unit[..] } else { &[] };
        let near = near.iter().chain(&rest).chain(unit).chain(samples).chain(self.options);
        let env = self.controller.map(|controller| ["env", controller]);
        let near = env.iter().flatten().chain(near);
        Pair {
            near: words(near.copied()),
            far: words([&*program, "bench", "net", "--listen", address, "--once", "--json"]),
            is_ready: |line| line.contains("\"listening\""),
            is_near_alone: true,
        }
    }

    fn sample(&self, order: &Order, reports: &Reports, _rig: &Rig) -> Result<Sample, String> {
        let number = |path: &str| reports.number(&format!("near/median/{path}"));
        let sample = Sample::default();
        if order.measure == Measure::Bulk {
            return Ok(sample
                .with("gbit_per_s", number("bulk/up/gbit_per_s")?)
                .with("cpu_s_per_gb", number("bulk/cpu_s_per_gb/both")?)
                .with("loss_percent", number("bulk/up/loss")? * 100.0));
        }
        let round = |name: &str| reports.number(&format!("near/rounds/0/latency/{name}"));
        let sample = sample.with("messages", round("n")?);
        let mut sample = match round("over_5_ms") {
            Ok(over) => sample.with("over_5_ms", over),
            Err(_) => sample,
        };
        for (name, of) in
            [("p50_us", "p50"), ("p99_us", "p99"), ("p999_us", "p999"), ("max_us", "max")]
        {
            sample = sample.with(name, number(&format!("latency/rtt_us/{of}"))? / 2.0);
        }
        let series = reports.near.pointer("/rounds/0/latency/one_way_us");
        let series = series.and_then(Histogram::from_json);
        sample.series.extend(series.map(|series| ("one_way_us".to_owned(), series)));
        Ok(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Wait;
    use serde_json::json;

    #[test]
    fn round_trips_are_halved_and_a_missing_figure_is_an_error() {
        let rtt = json!({ "p50": 52.0, "p99": 80.0, "p999": 90.0, "max": 100.0 });
        let near = json!({ "median": { "latency": { "rtt_us": rtt } },
            "rounds": [{ "latency": { "n": 9, "over_5_ms": 0 } }] });
        let reports = Reports { near, ..Reports::default() };
        let order = |measure| Order { measure, size: 64, wait: Wait::Block, is_reliable: true };
        let sample = |measure| {
            Dacapo::new(Which::Now, &[]).sample(
                &order(measure),
                &reports,
                &crate::rig::tests::rig(),
            )
        };
        let ours = sample(Measure::Latency).unwrap().figures;
        assert_eq!((ours["p50_us"], ours["p99_us"], ours["messages"]), (26.0, 40.0, 9.0));
        assert!(sample(Measure::Bulk).unwrap_err().contains("gbit_per_s"));
    }
}
