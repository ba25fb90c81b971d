//! `links`: the reliable ones over the link emulator, without loss and with it.
//!
//! A run counts only when the emulator itself lost nothing and 99 of 100 packets were at most
//! [`LATE_MAX_US`] late: then what came of it is the link's doing.

use crate::experiment::{Experiment, Row, Sample, Site, Spec, figures, goals};
use crate::peers::{self, Listed, Measure, Order, Peer, Wait, Which, Xtp};
use crate::rig::Rig;
use crate::run::place::Place;
use serde_json::Value;

/// The experiment.
pub struct Links;

/// What the link carries, Mbit/s of IP packets.
const RATE_MBIT_S: f64 = 500.0;

/// The link without its loss: one round trip is 1.25 MB.
const CONFIG: &str = "rate=500Mbit/s,delay=10ms,queue=5000,queue-bytes=2500kB";

/// The 99th percentile of what the emulator may be late.
const LATE_MAX_US: f64 = 1_000.0;

static TCP: Listed = Listed { program: "peer-plain", kind: "tcp" };
static QUINN: Listed = Listed { program: "peer-quinn", kind: "stream" };
static SRT: Listed = Listed { program: "peer-srt", kind: "file" };

/// The payload of XTP's full packets (1440 of 1500 bytes) at 500 Mbit/s is 480 Mbit/s; it is told
/// to send as much more as is lost before the queue, and 0.2 % less.
static XTP_0: Xtp = Xtp { which: Which::Now, window: "8MiB", options: &["--rate", "479000kbit/s"] };
static XTP_1: Xtp = Xtp { which: Which::Now, window: "8MiB", options: &["--rate", "483800kbit/s"] };
static XTP_5: Xtp = Xtp { which: Which::Now, window: "8MiB", options: &["--rate", "504200kbit/s"] };

/// Losses, how they are said to the emulator, and XTP at each.
static LOSSES: [(&str, &str, &Xtp); 3] =
    [("0", "", &XTP_0), ("1", ",loss=1%", &XTP_1), ("5", ",loss=5%", &XTP_5)];

/// A row at every loss: its name, what it is, congestion control, payload of full packets.
static ROWS: [(&str, &str, &str, f64); 5] = [
    ("tcp", "kernel TCP, CUBIC", "cubic", 1448.0),
    ("tcp-bbr", "kernel TCP, BBR", "bbr", 1448.0),
    ("quinn", "quinn, one stream (TLS), CUBIC", "cubic", 1424.0),
    ("srt-file", "SRT, file mode", "cubic", 1456.0),
    ("xtp", "XTP over udp, RATE of the link", "cubic", 1440.0),
];

fn peer(row: &str, xtp: &'static Xtp) -> (&'static dyn Peer, usize) {
    match row {
        "quinn" => (&QUINN, 60 << 10),
        "srt-file" => (&SRT, 1456),
        "xtp" => (xtp, 64 << 10),
        _ => (&TCP, 128 << 10),
    }
}

const FIGURES: [(&str, &str, bool, bool); 3] = [
    ("mbit_per_s", "Mbit/s", true, true),
    ("of_link", "× link", true, false),
    ("cpu_s_per_gb", "CPU s/GB", false, true),
];

impl Experiment for Links {
    fn id(&self) -> &'static str {
        "links"
    }

    fn what(&self) -> &'static str {
        "reliable flows over a link of 500 Mbit/s, 10 ms each way, with and without loss"
    }

    fn site(&self) -> Site {
        Site::Link
    }

    fn spec(&self) -> Spec {
        let group = |loss: &str| format!("{loss} % loss");
        let row = |loss: &str, &(name, what, ..): &(&str, &str, &str, f64)| Row {
            name: format!("{name}-{loss}"),
            what: what.to_owned(),
            group: group(loss),
            control: Some(format!("tcp-bbr-{loss}")),
            point: None,
        };
        let groups = LOSSES.map(|(loss, ..)| group(loss));
        let of_link = [("xtp-0", 0.99), ("xtp-1", 0.98), ("xtp-5", 0.98)];
        let of_link = of_link
            .map(|(row, bound)| (row, "of_link", "of what its packets can carry", true, bound));
        let mut aims = goals(&of_link);
        aims.iter_mut().for_each(|goal| goal.is_absolute = true);
        aims.extend(goals(&[("xtp-1", "cpu_s_per_gb", "processor time to TCP BBR", false, 2.0)]));
        Spec {
            what: self.what().to_owned(),
            rows: LOSSES
                .iter()
                .flat_map(|(loss, ..)| ROWS.iter().map(|it| row(loss, it)))
                .collect(),
            figures: figures(&FIGURES, &groups.each_ref().map(String::as_str)),
            controls: Vec::new(),
            goals: aims,
            rounds: 5,
            loaded_rounds: 0,
            seconds: 5.0,
        }
    }

    fn missing(&self, row: &Row, rig: &Rig) -> Option<String> {
        let (name, _) = row.name.rsplit_once('-')?;
        peer(name, &XTP_0).0.missing(rig)
    }

    fn version(&self, row: &Row, rig: &Rig) -> Option<String> {
        let (name, _) = row.name.rsplit_once('-')?;
        peer(name, &XTP_0).0.version(rig)
    }

    fn round(&self, row: &Row, rig: &mut Rig) -> Result<Sample, String> {
        let (name, loss) = row.name.rsplit_once('-').ok_or("no such row")?;
        let (_, config, xtp) = LOSSES.iter().find(|it| it.0 == loss).ok_or("no such loss")?;
        let (.., control, payload) = ROWS.iter().find(|it| it.0 == name).ok_or("no such row")?;
        let (peer, size) = peer(name, xtp);
        let order = Order { measure: Measure::Bulk, size, wait: Wait::Block, is_reliable: true };
        rig.place = Place::link(&rig.dacapo, &format!("{CONFIG}{config}"), control, &rig.stop)?;
        let sample = peers::run(peer, &order, rig);
        let totals = rig.place.end_link();
        rig.place = Place::default();
        let (mut sample, totals) = (sample?, totals?);
        if !was_exact(&totals) {
            return Err("not counted: the emulator was late, or lost packets itself".to_owned());
        }
        sample.reports["emulator"] = totals;
        let mbit = sample.figures.get("gbit_per_s").copied().unwrap_or(0.0) * 1e3;
        let sample = sample.with("mbit_per_s", mbit);
        Ok(sample.with("of_link", mbit / (RATE_MBIT_S * payload / 1500.0)))
    }
}

/// Whether what came of a run is the link's doing and nobody else's.
fn was_exact(totals: &Value) -> bool {
    let none = |name: &str| totals[name].as_u64() == Some(0);
    let late = totals["lateness_us"]["p99"].as_f64().unwrap_or(f64::INFINITY);
    late <= LATE_MAX_US && ["kernel_drops", "unsent", "refused"].into_iter().all(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_counts_when_the_emulator_was_exact() {
        let totals = |late: f64, drops: u64| {
            json!({ "lateness_us": { "p99": late }, "kernel_drops": drops, "unsent": 0,
                "refused": 0 })
        };
        assert!(was_exact(&totals(20.0, 0)));
        assert!(!was_exact(&totals(5_000.0, 0)) && !was_exact(&totals(20.0, 1)));
        assert!(!was_exact(&Value::Null), "nothing is exact without totals");
    }
}
