//! What a transfer shows: a line while it runs, a table when it is over.

use crate::output::{Cell, Ink, Table, line};
use crate::words::{bytes_words, rate_words, seconds_words};
use dacapo::transfer::{FileResult, TransferProgress, TransferSnapshot};
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
