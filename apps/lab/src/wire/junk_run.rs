//! A flow at half load while junk arrives, and while as much junk arrives elsewhere.
//!
//! ```text
//!   full rate, no junk --> half of it is the bound
//!   A  flow + junk to the port that the flow comes to     B  flow + as much to a port nobody reads
//! ```
//!
//! Who sends the junk needs a processor too, so B is what A is compared with.
//!
//! Invariant: whatever comes, the account closes, nothing is unknown and no unit is altered.

use super::initials::initials;
use super::junk::{Ammunition, Junk};
use super::ports::Supply;
use super::station::{Course, Role, Seen, Station};
use crate::fault::Scale;
use dacapo_security::Identity;
use dacapo_wire::session::Direction;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// From how many addresses junk comes.
const SOURCES: usize = 200;

/// How much of it is done.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Junk datagrams in a second.
    pub per_second: u64,
    /// How long one measurement takes.
    pub time: Duration,
    /// Pairs of A and B.
    pub rounds: u64,
    /// The bound, bit/s; `None`: half of what goes without one.
    pub bound_bps: Option<u64>,
}

impl Extent {
    /// That of a scale.
    #[must_use]
    pub fn of(scale: &Scale) -> Self {
        let seeds = scale.seeds(1, 5);
        let rounds = seeds.end - seeds.start;
        let (per_second, time, bound_bps) = if scale.is_full() {
            (50_000, Duration::from_secs(4), None)
        } else {
            (5_000, Duration::from_millis(500), Some(50_000_000))
        };
        Self { per_second, time, rounds, bound_bps }
    }
}

/// Where junk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// To the port that the flow comes to.
    Flow,
    /// To a port that nobody reads.
    Elsewhere,
}

/// What one measurement gave.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Bytes of units in a second.
    pub goodput: f64,
    /// Junk of each kind that was sent, and all of it in a second.
    pub junk: ([u64; 4], f64),
    /// Junk that the receiving core read.
    pub read: u64,
    /// The same in a second, while it was measured.
    pub read_per_s: f64,
    /// Arrivals that the receiving core's kernel dropped for want of room.
    pub kernel_drops: u64,
    /// Processor time of the receiving thread in a second.
    pub cpu: f64,
    /// What the receiving core counted.
    pub seen: Seen,
}

impl Measured {
    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let counters = self.seen.counters;
        json!({
            "goodput_bytes_per_s": self.goodput,
            "junk_per_s": self.junk.1,
            "sent": { "random": self.junk.0[0], "label": self.junk.0[1],
                      "truncated": self.junk.0[2], "initial": self.junk.0[3] },
            "receiver_cpu": self.cpu, "read": self.read, "kernel_drops": self.kernel_drops,
            "reserved": counters.reserved, "malformed": counters.malformed,
            "unknown_label": counters.unknown_label, "modules": self.seen.module_drops,
        })
    }
}

/// How fast the flow is without a bound and without junk, bit/s.
///
/// # Errors
/// The session did not run, or its account does not close.
pub fn full_rate(who: &Identity, time: Duration) -> Result<u64, String> {
    let extent = Extent { per_second: 0, time, rounds: 1, bound_bps: Some(40_000_000_000) };
    let measured = measure(who, &extent, None, 0)?;
    Ok((measured.goodput * 8.0) as u64)
}

/// One measurement: set-up, junk, goodput, end, account.
///
/// # Errors
/// What broke.
pub fn measure(
    who: &Identity,
    extent: &Extent,
    aim: Option<Aim>,
    seed: u64,
) -> Result<Measured, String> {
    let course = Course {
        direction: Direction::ToCreator,
        supply: Supply { len: 8_000, every: Duration::ZERO, count: u64::MAX },
        bound_bps: extent.bound_bps.unwrap_or(50_000_000),
        ..Course::ticking()
    };
    let server = Station::begin(Role::Serve((Ipv4Addr::LOCALHOST, 0).into()), course, who, None);
    let at = server.wait("a port", |seen| seen.listening)?;
    let client = Station::begin(Role::Join(at), course, who, None);
    client.wait("a session that runs", |seen| seen.active)?;
    let heard = client.heard();
    let samples = client.wait("a datagram", |_| {
        let samples = heard.samples();
        (!samples.is_empty()).then_some(samples)
    })?;
    let unread = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    let elsewhere = unread.local_addr().map_err(|error| error.to_string())?;
    let to = if aim == Some(Aim::Elsewhere) { elsewhere } else { at };
    let junk = match aim {
        None => None,
        Some(_) => {
            let ammunition = Ammunition::all(seed, &samples, initials(who, at, 256)?);
            Some(throw(to, extent, ammunition)?)
        }
    };
    let mut measured = watch(&server, extent.time);
    if let Some(junk) = junk {
        measured.junk = junk.stop();
    }
    end(&server, &client)?;
    measured.read = server.heard().strange_datagrams.load(Relaxed);
    measured.kernel_drops = server.heard().stats().drops.kernel_overflow;
    measured.seen = server.seen();
    Ok(measured)
}

fn throw(to: SocketAddr, extent: &Extent, ammunition: Ammunition) -> Result<Junk, String> {
    let junk = Junk::begin(to, extent.per_second, SOURCES, ammunition);
    let junk = junk.map_err(|error| format!("no socket for junk: {error}"))?;
    // What is measured is the time in which all of it flies.
    let begun = Instant::now();
    while junk.sent().contains(&0) && begun.elapsed() < super::station::LONG {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(junk)
}

/// What the receiver does for a while.
fn watch(server: &Station, time: Duration) -> Measured {
    let now = || {
        let read = server.heard().strange_datagrams.load(Relaxed);
        (Instant::now(), server.arrivals().bytes(), read, server.seen().cpu)
    };
    let (begun, bytes, read, cpu) = now();
    std::thread::sleep(time);
    let (end, bytes_then, read_then, cpu_then) = now();
    let seconds = end.duration_since(begun).as_secs_f64();
    Measured {
        goodput: (bytes_then - bytes) as f64 / seconds,
        cpu: cpu_then.saturating_sub(cpu).as_secs_f64() / seconds,
        read_per_s: (read_then - read) as f64 / seconds,
        ..Measured::default()
    }
}

/// Ends the session and checks the account of the receiving end.
fn end(server: &Station, client: &Station) -> Result<(), String> {
    client.finish();
    let over = client.wait("the end at the sender", |seen| seen.over.first().cloned())?;
    server.wait("the end at the receiver", |seen| seen.over.first().cloned())?;
    let seen = server.seen();
    let (ledger, _) = seen.accounts.first().ok_or("no account")?;
    let altered = server.arrivals().altered();
    if over.1.is_some() || !ledger.closes() || ledger.unknown > 0 || altered > 0 {
        return Err(format!("{altered} units altered, {ledger:?}, {over:?}"));
    }
    if !seen.lost.is_empty() || !client.seen().lost.is_empty() {
        return Err("contact was lost".into());
    }
    Ok(())
}
