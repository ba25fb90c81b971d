//! GStreamer's `identity` elements, by difference: the same buffers through none and through many.
//!
//! ```text
//!   gst-launch-1.0 -q fakesrc num-buffers=K ! [identity !] x N  fakesink       N = 0, 20
//! ```

use crate::stats::median_or_0;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

const PROGRAM: &str = "gst-launch-1.0";
/// The elements of the longer pipeline.
const ELEMENTS: u32 = 20;
const BUFFERS: u32 = 200_000;
const ROUNDS: u32 = 5;

/// What was found out.
pub enum Found {
    /// There is no such program here.
    NotInstalled,
    /// It did not run; why.
    Failed(String),
    /// Nanoseconds per buffer and element: the median of the rounds.
    PerElementNs(f64),
}

/// Looks for the program and, where it is, measures.
pub fn measure(mut tell: impl FnMut(u32)) -> Found {
    let Some(program) = find() else { return Found::NotInstalled };
    let mut differences = Vec::new();
    for round in 1..=ROUNDS {
        tell(round);
        match (time(&program, 0), time(&program, ELEMENTS)) {
            (Ok(bare), Ok(long)) => {
                let ns = (long - bare) * 1e9;
                differences.push(ns / f64::from(BUFFERS) / f64::from(ELEMENTS));
            }
            (Err(error), _) | (_, Err(error)) => {
                return Found::Failed(format!("{}: {error}", program.display()));
            }
        }
    }
    Found::PerElementNs(median_or_0(&differences))
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(PROGRAM)).find(|file| file.is_file())
}

/// The seconds that a pipeline with so many elements takes.
fn time(program: &PathBuf, elements: u32) -> io::Result<f64> {
    let buffers = format!("num-buffers={BUFFERS}");
    let mut args: Vec<&OsStr> = ["-q", "fakesrc", &buffers].map(OsStr::new).into();
    for element in std::iter::repeat_n("identity", elements as usize).chain(["fakesink"]) {
        args.extend([OsStr::new("!"), OsStr::new(element)]);
    }
    let start = Instant::now();
    let mut command = Command::new(program);
    command.args(&args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    if !status.success() {
        return Err(io::Error::other(status.to_string()));
    }
    Ok(start.elapsed().as_secs_f64())
}
