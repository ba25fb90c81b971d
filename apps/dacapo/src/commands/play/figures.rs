//! The figures of a player in words: one line while it runs, JSON at the end.
//!
//! ```text
//!   video 250  4.1 Mbit/s  lost 0  late 0  delay 0.3/0.9 ms (exact)  lateness -99.1/-98.7 ms
//!         |                                      p50 p99, this interval      p50 p99
//!         media frames so far
//! ```

use crate::account::Account;
use dacapo::access::{Snapshot, Summary};
use serde_json::{Value, json};
use std::time::Instant;

/// How much the line says of each flow; the most that fits its width is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    Counts,
    Delay,
    All,
}

/// What was shown last of each flow, to make rates of counts.
pub struct Figures {
    last: Vec<u64>,
    at: Instant,
}

impl Figures {
    /// Nothing has come yet.
    pub fn new() -> Self {
        Self { last: Vec::new(), at: Instant::now() }
    }

    /// Flows begin to run: rates count from here.
    pub fn begin(&mut self) {
        self.at = Instant::now();
    }

    /// The line now, in this width where that can be.
    pub fn line(&mut self, flows: &[Snapshot], width: usize) -> String {
        let now = Instant::now();
        let secs = now.duration_since(self.at).as_secs_f64().max(0.001);
        self.at = now;
        self.last.resize(flows.len(), 0);
        let rates = flows.iter().zip(&mut self.last).map(|(flow, last)| {
            let bytes = flow.bytes.saturating_sub(std::mem::replace(last, flow.bytes));
            bytes.saturating_mul(8) as f64 / secs / 1e6
        });
        compose(flows, &rates.collect::<Vec<f64>>(), width)
    }
}

fn compose(flows: &[Snapshot], mbit_per_s: &[f64], width: usize) -> String {
    let with = |detail| {
        let parts = flows.iter().zip(mbit_per_s).map(|(flow, rate)| part(flow, *rate, detail));
        parts.collect::<Vec<_>>().join(" | ")
    };
    let lines = [Detail::All, Detail::Delay].map(with);
    let fits = |line: &String| line.chars().count() <= width;
    lines.into_iter().find(fits).unwrap_or_else(|| with(Detail::Counts))
}

fn part(flow: &Snapshot, mbit_per_s: f64, detail: Detail) -> String {
    let mut text = format!(
        "{} {}  {mbit_per_s:.1} Mbit/s  lost {}  late {}",
        flow.flow, flow.media_frames, flow.lost, flow.late
    );
    let delay = flow.delay_interval.as_ref().or(flow.delay.as_ref());
    if let Some(delay) = delay.filter(|_| detail >= Detail::Delay) {
        let error = match flow.delay_error_ns {
            0 => "exact".to_owned(),
            ns => format!("±{:.1} ms", ns as f64 / 1e6),
        };
        text += &format!("  delay {} ({error})", pair(delay));
    }
    if flow.lateness.count > 0 && detail == Detail::All {
        text += &format!("  lateness {}", pair(&flow.lateness));
    }
    text
}

fn pair(summary: &Summary) -> String {
    format!("{:.1}/{:.1} ms", summary.ns_p50 as f64 / 1e6, summary.ns_p99 as f64 / 1e6)
}

/// One flow for programs: what its sink saw, how much later it was shown than the first of its
/// session, and its account once it has ended.
pub fn to_json(flow: &Snapshot, first: Option<&Snapshot>, account: Option<&Account>) -> Value {
    let delay = flow.delay.as_ref().map(summary);
    json!({
        "flow": flow.flow,
        "media_frames": flow.media_frames,
        "bytes": flow.bytes,
        "repeated": flow.repeated,
        "passes": flow.passes,
        "player_dropped": flow.player_dropped,
        "delay": delay,
        "delay_error_ns": flow.delay_error_ns,
        "lateness": (flow.lateness.count > 0).then(|| summary(&flow.lateness)),
        "playout_ns": flow.playout_ns,
        "skew_ns": first.and_then(|first| flow.skew_ns(first)),
        "generation": flow.newest.generation,
        "position_ns": flow.newest.position_ns,
        "errors": flow.errors,
        "saved": flow.saved.as_ref().map(|path| path.display().to_string()),
        "account": account.map(Account::to_json),
    })
}

fn summary(summary: &Summary) -> Value {
    json!({
        "count": summary.count,
        "ns_min": summary.ns_min,
        "ns_p50": summary.ns_p50,
        "ns_p99": summary.ns_p99,
        "ns_max": summary.ns_max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(name: &str) -> Snapshot {
        let times = |ns_p50, ns_p99| Summary { count: 9, ns_p50, ns_p99, ..Summary::default() };
        Snapshot {
            flow: name.to_owned(),
            media_frames: 250,
            lost: 1,
            late: 2,
            delay: Some(times(300_000, 940_000)),
            lateness: times(-99_100_000, -98_700_000),
            ..Snapshot::default()
        }
    }

    #[test]
    fn the_line_says_as_much_as_its_width_allows() {
        let all = "video 250  4.1 Mbit/s  lost 1  late 2  delay 0.3/0.9 ms (exact)  \
                   lateness -99.1/-98.7 ms";
        assert_eq!(compose(&[flow("video")], &[4.1], 200), all);
        let delay = "video 250  4.1 Mbit/s  lost 1  late 2  delay 0.3/0.9 ms (exact)";
        assert_eq!(compose(&[flow("video")], &[4.1], 80), delay);
        assert_eq!(
            compose(&[flow("video"), flow("audio")], &[4.1, 1.5], 80),
            "video 250  4.1 Mbit/s  lost 1  late 2 | audio 250  1.5 Mbit/s  lost 1  late 2"
        );
    }

    #[test]
    fn a_delay_between_two_clocks_shows_by_how_much_it_may_be_wrong() {
        let flow = Snapshot { delay_error_ns: 1_540_000, ..flow("video") };
        assert!(compose(&[flow], &[0.0], 200).contains("delay 0.3/0.9 ms (±1.5 ms)"));
    }
}
