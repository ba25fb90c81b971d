//! A process that is stopped for a while and goes on, and one that is killed and started anew.
//!
//! ```text
//!   stop:     STOP one of two processes -- 5 s -- CONT         the session goes on
//!   restart:  KILL the server -- start it at the same port     the client is told so
//! ```
//!
//! Invariant: every process started here is gone when a run returns.

use super::process::Process;
use super::station::{Course, Role, Station};
use dacapo_core::Code;
use dacapo_security::Identity;
use dacapo_sys::clock;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Which process is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The one that sends.
    Server,
    /// The one that receives.
    Client,
}

/// What was seen of a stop.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// Who was.
    pub who: Who,
    /// From CONT to the next unit that the receiver was seen to have.
    pub first: Duration,
    /// The other end had lost contact, and had it again.
    pub was_lost: bool,
    /// Units sent and lost.
    pub units: (u64, u64),
}

fn here(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Begins a server process; where it listens.
fn serve(port: u16) -> Result<(Process, SocketAddr), String> {
    let mut server = Process::begin("serve", here(port))?;
    let (_, at) = server.line("listening", 0)?;
    let at = at.parse().map_err(|_| format!("it listens at {at}"))?;
    Ok((server, at))
}

/// Stops a process for a while.
///
/// # Errors
/// What broke.
pub fn stop(who: Who, time: Duration) -> Result<Stopped, String> {
    let (mut server, at) = serve(0)?;
    let mut client = Process::begin("join", at)?;
    client.line("units 5", 0)?;
    let hit = |server: &Process, client: &Process, name: &str| match who {
        Who::Server => server.signal(name),
        Who::Client => client.signal(name),
    };
    hit(&server, &client, "STOP")?;
    std::thread::sleep(time);
    let (said, continued) = (client.said(), Instant::now());
    hit(&server, &client, "CONT")?;
    let (seen, _) = client.line("units", said)?;
    let first = seen.saturating_duration_since(continued);
    let other = if who == Who::Server { &mut client } else { &mut server };
    // Three seconds without an answer are noticed; a short stop is not.
    let was_lost = time >= Duration::from_secs(4);
    if was_lost {
        other.line("lost", 0)?;
        other.line("restored", 0)?;
    }
    let after = client.said();
    client.line("units", after)?;
    client.finish();
    let mut units = (0, 0);
    for end in [&mut client, &mut server] {
        let (_, account) = end.line("account", 0)?;
        let (_, over) = end.line("over", 0)?;
        units = closed(&account).filter(|_| over == "usual").ok_or_else(|| {
            format!("{who:?} was stopped: over {over}, sent delivered lost unknown: {account}")
        })?;
    }
    Ok(Stopped { who, first, was_lost, units })
}

/// Units sent and lost of an account that closes without any that is unknown.
fn closed(account: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = account.split(' ').collect();
    let [sent, _, lost, "0", "true", _] = words.as_slice() else { return None };
    Some((sent.parse().ok()?, lost.parse().ok()?))
}

/// What was seen of a restart.
#[derive(Clone, Copy, Debug)]
pub struct Restarted {
    /// From the kill to when the client was told.
    pub from_kill: Duration,
    /// From when the new server listens to the same.
    pub from_start: Duration,
}

/// Kills a server and starts it anew after `pause`.
///
/// # Errors
/// What broke, such as another reason than that it was started anew.
pub fn restart(pause: Duration) -> Result<Restarted, String> {
    let who = Identity::generate().map_err(|error| error.to_string())?;
    let (server, at) = serve(0)?;
    let client = Station::begin(Role::Join(at), Course::ticking(), &who, None);
    client.wait("units", |_| (client.arrivals().units() >= 20).then_some(()))?;
    let killed = clock::now();
    server.signal("KILL")?;
    drop(server);
    std::thread::sleep(pause);
    let (_again, _) = serve(at.port())?;
    let started = clock::now();
    let (told, error) = client.wait("the end", |seen| seen.over.first().cloned())?;
    match error {
        Some(error) if error.code == Code::PeerRestarted => {
            Ok(Restarted { from_kill: told.since(killed), from_start: told.since(started) })
        }
        other => Err(format!("the client was told {other:?}")),
    }
}
