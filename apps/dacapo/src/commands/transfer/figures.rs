//! What a transfer shows: a line while it runs, a table when it is over.
//!
//! What it is not: the ledger of the flow (`account.rs`).

use crate::output::{Cell, Ink, Table, line};
use dacapo::transfer::{FileResult, TransferProgress, TransferSnapshot};
use dacapo_qos::format_duration;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Rates are means over this time.
const WINDOW: Duration = Duration::from_secs(5);

/// How fast a transfer is, seen from outside.
pub struct Pace {
    began: Instant,
    /// When, and how many bytes there were.
    marks: Vec<(Instant, u64)>,
}

impl Pace {
    /// It begins now.
    pub fn new() -> Self {
        let now = Instant::now();
        Self { began: now, marks: vec![(now, 0)] }
    }

    /// The line of progress.
    pub fn line(&mut self, progress: &TransferProgress) -> String {
        let now = Instant::now();
        let TransferSnapshot { current, bytes, bytes_total, files, .. } = progress.snapshot();
        self.marks.push((now, bytes));
        self.marks.retain(|(at, _)| now.duration_since(*at) <= WINDOW);
        let rate = self.marks.first().map_or(0.0, |(at, before)| {
            let seconds = now.duration_since(*at).as_secs_f64().max(1e-3);
            (bytes - before) as f64 / seconds
        });
        let name = current.unwrap_or_else(|| format!("{} files", files.len()));
        let (of, left) = match bytes_total {
            Some(total) if total > 0 => {
                let left = seconds_words(total.saturating_sub(bytes) as f64 / rate.max(1.0));
                (format!(" of {}", bytes_words(total)), format!("  {left} left"))
            }
            _ => (String::new(), String::new()),
        };
        format!("{name}  {}{of}  {}{left}", bytes_words(bytes), rate_words(rate * 8.0))
    }

    /// What came of it all, in a sentence.
    pub fn sentence(&self, bytes: u64) -> String {
        let seconds = self.began.elapsed().as_secs_f64().max(1e-6);
        let rate = rate_words(bytes as f64 * 8.0 / seconds);
        format!("{} in {}, {rate}", bytes_words(bytes), seconds_words(seconds))
    }

    /// The same for programs.
    pub fn to_json(&self, bytes: u64) -> Value {
        let seconds = self.began.elapsed().as_secs_f64();
        json!({
            "bytes": bytes,
            "seconds": seconds,
            "gbit_per_s": bytes as f64 * 8e-9 / seconds.max(1e-9),
            "cpu_seconds": dacapo_sys::process::cpu_time().as_secs_f64(),
        })
    }
}

/// Bytes with a binary prefix and three digits.
pub fn bytes_words(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 999.5 {
            return words(value, unit, unit != "B");
        }
        value /= 1024.0;
    }
    words(value, "TiB", true)
}

/// Bits per second with a prefix and three digits.
pub fn rate_words(bps: f64) -> String {
    let mut value = bps;
    for unit in ["bit/s", "kbit/s", "Mbit/s"] {
        if value < 999.5 {
            return words(value, unit, true);
        }
        value /= 1000.0;
    }
    words(value, "Gbit/s", true)
}

fn words(value: f64, unit: &str, has_parts: bool) -> String {
    let digits = match value {
        _ if !has_parts => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

pub fn seconds_words(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 100_000.0 => "days".to_owned(),
        seconds if seconds >= 120.0 => {
            format!("{} min {} s", seconds as u64 / 60, seconds as u64 % 60)
        }
        seconds if seconds >= 10.0 => format!("{seconds:.0} s"),
        seconds if seconds >= 0.01 => format_duration((seconds * 1_000.0) as u64 * 1_000_000),
        seconds => format_duration((seconds * 1_000_000.0) as u64 * 1_000),
    }
}

/// Prints what became of each file.
pub fn print(files: &[FileResult]) {
    let mut table = Table::new(&["file", "bytes", "SHA-256", ""]);
    for file in files {
        let state = match &file.fault {
            None => Cell::new("whole", Ink::Good),
            Some(fault) => Cell::new(fault.clone(), Ink::Bad),
        };
        let name = match &file.path {
            Some(path) => path.display().to_string(),
            None => file.name.clone(),
        };
        table.row(vec![name.into(), file.bytes.into(), file.sha256.clone().into(), state]);
    }
    if files.is_empty() {
        line("no file");
    } else {
        table.print();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_prefix() {
        assert_eq!(bytes_words(0), "0 B");
        assert_eq!(bytes_words(999), "999 B");
        assert_eq!(bytes_words(1_024), "1.00 KiB");
        assert_eq!(bytes_words(5 << 30), "5.00 GiB");
        assert_eq!(rate_words(1e9), "1.00 Gbit/s");
        assert_eq!(rate_words(12_345_678.0), "12.3 Mbit/s");
        assert_eq!(seconds_words(0.25), "250 ms");
        assert_eq!(seconds_words(0.000_25), "250 us");
        assert_eq!(seconds_words(61.0), "61 s");
        assert_eq!(seconds_words(150.0), "2 min 30 s");
    }
}
