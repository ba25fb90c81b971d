//! Half-open connections by the hundred thousand, of QUIC and of TCP, and who is honest meanwhile.
//!
//! ```text
//!   10,000 strangers -- QUIC's first datagrams --> victim <-- 10,000 TCP connections, silent, slow
//!                                                    ^
//!                                     honest set-ups, one after the other
//! ```
//!
//! Invariant: when it is over nothing of it is left.

use super::initials::initials;
use super::junk::{Ammunition, Junk};
use super::knocks::Knocks;
use super::rounds::in_ms;
use super::station::{Course, Role, Station};
use crate::fault::Scale;
use dacapo_security::Identity;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How much of it is done.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// First datagrams in a second.
    pub per_second: u64,
    /// From how many addresses.
    pub sources: usize,
    /// TCP connections.
    pub knocks: u64,
    /// Honest set-ups.
    pub honest: u64,
    /// How long it takes at least.
    pub time: Duration,
}

impl Extent {
    /// That of a scale.
    #[must_use]
    pub fn of(scale: &Scale) -> Self {
        let honest = scale.seeds(5, 50);
        let honest = honest.end - honest.start;
        if scale.is_full() {
            let time = Duration::from_secs(10);
            return Self { per_second: 50_000, sources: 10_000, knocks: 10_000, honest, time };
        }
        let time = Duration::from_millis(500);
        Self { per_second: 3_000, sources: 300, knocks: 300, honest, time }
    }
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Flooded {
    /// First datagrams sent, and in a second.
    pub initials: (u64, f64),
    /// From how many addresses.
    pub sources: usize,
    /// First datagrams that the victim read.
    pub read: u64,
    /// TCP connections.
    pub knocks: u64,
    /// Bytes from and to addresses that were never proved.
    pub bytes: (u64, u64),
    /// The most that the victim had on its heap beyond what it had before, bytes.
    pub state_bytes: i64,
    /// How much of that is packet memory, at most.
    pub pool_bytes: usize,
    /// What it had beyond that when the flood was over, bytes.
    pub left_bytes: i64,
    /// How long honest set-ups took, ms, and why others failed.
    pub honest: (Vec<f64>, Vec<String>),
}

/// Floods a victim.
///
/// # Errors
/// The victim broke, or something of the flood is left.
pub fn run(extent: &Extent) -> Result<Flooded, String> {
    let who = Identity::generate().map_err(|error| error.to_string())?;
    let course = Course::ticking();
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let victim = Station::begin(Role::Serve(here), course, &who, None);
    let at = victim.wait("a port", |seen| seen.listening)?;
    // What the first session of all makes is not the flood's.
    set_up(&who, at)?;
    nothing_left(&victim)?;
    let (before, pool_before) = (victim.seen().heap.0, victim.seen().pool.1);
    victim.forget_peak();
    let ammunition = Ammunition::initials(initials(&who, at, 1_000)?);
    let junk = Junk::begin(at, extent.per_second, extent.sources, ammunition);
    let junk = junk.map_err(|error| format!("no socket for a flood: {error}"))?;
    let knocks = Knocks::begin(at, extent.knocks, extent.knocks);
    let honest = set_ups(extent, &who, at);
    let (made, sources) = (knocks.made(), junk.sources());
    let (sent, per_second) = junk.stop();
    let state_bytes = victim.seen().heap.1 - before;
    let pool_bytes = victim.seen().pool.1.saturating_sub(pool_before);
    drop(knocks);
    nothing_left(&victim)?;
    let heard = victim.heard();
    Ok(Flooded {
        initials: (sent.iter().sum(), per_second),
        sources,
        read: heard.strange_datagrams.load(Relaxed),
        knocks: made,
        bytes: (heard.strange_bytes_in.load(Relaxed), heard.strange_bytes_out.load(Relaxed)),
        state_bytes,
        pool_bytes,
        left_bytes: victim.seen().heap.0 - before,
        honest,
    })
}

/// Honest set-ups one after the other, spread over the time.
fn set_ups(extent: &Extent, who: &Identity, at: SocketAddr) -> (Vec<f64>, Vec<String>) {
    let begun = Instant::now();
    let (mut times, mut failed) = (Vec::new(), Vec::new());
    for number in 0..extent.honest {
        match set_up(who, at) {
            Ok(time) => times.push(time),
            Err(reason) => failed.push(reason),
        }
        let share = (number + 1) as f64 / extent.honest as f64;
        let until = extent.time.mul_f64(share);
        std::thread::sleep(until.saturating_sub(begun.elapsed()));
    }
    (in_ms(&times), failed)
}

/// One honest set-up; how long it took from `connect` to ready.
fn set_up(who: &Identity, at: SocketAddr) -> Result<Duration, String> {
    let client = Station::begin(Role::Join(at), Course::ticking(), who, None);
    let (from, to) = client.wait("a set-up", |seen| seen.set_up)?;
    client.finish();
    let (_, error) = client.wait("the end", |seen| seen.over.first().cloned())?;
    error.map_or(Ok(to.since(from)), |error| Err(error.to_string()))
}

/// Waits until the victim has no session and no connection.
fn nothing_left(victim: &Station) -> Result<(), String> {
    let is_empty = |sessions, connections| sessions == 0 && connections == 0;
    victim.wait("an end without anything left", |seen| {
        is_empty(seen.sessions, seen.connections).then_some(())
    })
}
