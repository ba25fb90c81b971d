//! [`Load`]: what units cost that are sent in turns over many sessions.

use super::look::Look;
use super::near::Near;
use super::show::Both;
use crate::cli::BenchScaleArgs;
use crate::exit::Failure;
use crate::output::line;
use crate::store::histogram::Histogram;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// All that was measured.
pub struct Load {
    sessions: u64,
    connections: u64,
    asked_per_s: u32,
    time: Duration,
    from: Both,
    to: Both,
    /// How long after it was due each unit came, µs.
    delays: Histogram,
}

/// Opens all sessions, whose flows send from then on, and counts for a while.
///
/// # Errors
/// A session fails, or a signal comes.
pub fn measure(args: &BenchScaleArgs, near: &mut Near<'_>) -> Result<Load, Failure> {
    // A peer without a session is left after a while: each gets its first at once.
    let first = args.connections().min(args.sessions);
    for count in 1..=first {
        near.dial(count as usize)?;
        near.hold(1)?;
    }
    near.hold(u64::from(args.sessions - first))?;
    near.rest(Duration::from_millis(300 + u64::from(args.sessions / 10)))?;
    let (from, began) = (near.look()?, Instant::now());
    near.arrivals.take();
    near.rest(args.idle)?;
    let (time, delays) = (began.elapsed(), Histogram::of(&near.arrivals.take()));
    let to = near.look()?;
    near.close_all()?;
    Ok(Load {
        sessions: u64::from(args.sessions),
        connections: u64::from(args.connections()),
        asked_per_s: args.send.unwrap_or(0),
        time,
        from,
        to,
        delays,
    })
}

impl Load {
    /// Of each unit, µs of processor time: near and far.
    fn cpu_us(&self) -> [f64; 2] {
        let of = |from: Look, to: Look| {
            let us = to.cpu_us.saturating_sub(from.cpu_us + from.look_us) as f64;
            us / self.delays.count().max(1) as f64
        };
        [of(self.from.near, self.to.near), of(self.from.far, self.to.far)]
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let [near, far] = self.cpu_us();
        let mib = |look: Look| look.memory_kib as f64 / 1_024.0;
        let delay = |share: f64| self.delays.percentile(share);
        json!({
            "sessions": self.sessions,
            "connections": self.connections,
            "asked_per_s": self.asked_per_s,
            "units_per_s": self.delays.count() as f64 / self.time.as_secs_f64().max(1e-9),
            "cpu_us_per_unit": { "near": near, "far": far, "both": near + far },
            "delay_us": { "p50": delay(0.5), "p99": delay(0.99), "max": delay(1.0) },
            "memory_mib": { "near": mib(self.to.near), "far": mib(self.to.far),
                "both": mib(self.to.near) + mib(self.to.far) },
        })
    }

    /// For people.
    pub fn print(&self) {
        let it = self.to_json();
        let number = |path: &str| it.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
        line(format_args!(
            "{} sessions over {} connections: {:.0} of {} units a second, 1000 B each",
            self.sessions,
            self.connections,
            number("/units_per_s"),
            self.asked_per_s
        ));
        line(format_args!(
            "processor time of a unit: {:.2} µs here, {:.2} µs at the far end",
            number("/cpu_us_per_unit/near"),
            number("/cpu_us_per_unit/far")
        ));
        line(format_args!(
            "delay behind when it was due: p50 {:.0} µs, p99 {:.0} µs, max {:.0} µs",
            number("/delay_us/p50"),
            number("/delay_us/p99"),
            number("/delay_us/max")
        ));
    }
}
