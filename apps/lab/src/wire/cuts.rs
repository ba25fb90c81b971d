//! A path that is cut for a while, on real sockets, and when the first unit comes afterwards.
//!
//! ```text
//!   datagrams:  server -- relay of the emulator -- client           20 ms each way
//!   streams:    server -- TUN, the emulator, TUN -- client          each in a network namespace
//! ```
//!
//! Invariants: units sent = delivered + lost at both ends, none is unknown; over a stream none is
//! lost and both ends saw the same bytes.

use super::station::{Course, Role, Station};
use dacapo_emulator::{Relay, RelayConfig, RelayHandle, Tunnel, TunnelConfig, TunnelError};
use dacapo_emulator::{TunnelHandle, Way};
use dacapo_link::LinkConfig;
use dacapo_security::Identity;
use dacapo_sys::clock;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Each way.
pub const DELAY: Duration = Duration::from_millis(20);

/// Units that come before the cut and after it.
const UNITS: u64 = 50;

/// What is cut and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The flow goes over kernel TCP.
    pub stream: bool,
    /// The ways that are cut: to the server, to the client.
    pub ways: (bool, bool),
    /// For how long; at least 4 s, so that loss of contact is noticed.
    pub len: Duration,
}

/// What was seen.
#[derive(Clone, Debug)]
pub struct Healed {
    /// From the moment in which the path is whole to the first unit.
    pub first: Duration,
    /// Units sent, and those of them that were lost.
    pub sent: u64,
    /// Units that were lost.
    pub lost: u64,
}

/// What stands between the two ends.
enum Between {
    Relay(RelayHandle),
    Tunnel(TunnelHandle),
}

impl Between {
    fn cut(&self, ways: (bool, bool), is_cut: bool) {
        for (way, _) in [(Way::Forward, ways.0), (Way::Back, ways.1)].iter().filter(|it| it.1) {
            match self {
                Self::Relay(relay) => relay.partition(*way, is_cut),
                Self::Tunnel(tunnel) => tunnel.partition(*way, is_cut),
            }
        }
    }
}

/// The two ends and what stands between; the ends go first.
struct Scene {
    server: Station,
    client: Station,
    between: Between,
}

fn link() -> LinkConfig {
    LinkConfig { delay: DELAY, ..LinkConfig::default() }
}

fn relayed(course: Course, who: &Identity) -> Result<Scene, String> {
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Station::begin(Role::Serve(here), course, who, None);
    let at = server.wait("a port", |seen| seen.listening)?;
    let mut config = RelayConfig::new(here, at);
    (config.forward, config.back) = (link(), link());
    let relay = Relay::spawn(config).map_err(|error| format!("the relay: {error}"))?;
    let client = Station::begin(Role::Join(relay.local_addr()), course, who, None);
    Ok(Scene { server, client, between: Between::Relay(relay) })
}

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Two namespaces with a tunnel; `None` where there can be none, and why.
fn tunnelled(course: Course, who: &Identity) -> Result<Result<Scene, String>, String> {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let [near, far] = [1, 2].map(|end| format!("dacapo-lab-{}-{number}-{end}", std::process::id()));
    // The client's packets go forward, as through the relay.
    let mut config = TunnelConfig::new(&far, &near);
    (config.forward, config.back) = (link(), link());
    let tunnel = match Tunnel::spawn(config) {
        Ok(tunnel) => tunnel,
        Err(error @ (TunnelError::NotRoot | TunnelError::NoTun)) => {
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(error.to_string()),
    };
    let here = SocketAddr::new(tunnel.addresses()[1].ip, 0);
    let server = Station::begin(Role::Serve(here), course, who, Some(&near));
    let at = server.wait("a port", |seen| seen.listening)?;
    let client = Station::begin(Role::Join(at), course, who, Some(&far));
    Ok(Ok(Scene { server, client, between: Between::Tunnel(tunnel) }))
}

/// Cuts a path; `Ok(Err(reason))` when there can be none here.
///
/// # Errors
/// What broke.
pub fn run(cut: &Cut) -> Result<Result<Healed, String>, String> {
    let who = Identity::generate().map_err(|error| error.to_string())?;
    let course = Course { stream: cut.stream, ..Course::ticking() };
    let scene = if cut.stream { tunnelled(course, &who)? } else { Ok(relayed(course, &who)?) };
    match scene {
        Ok(scene) => scene.run(cut).map(Ok),
        Err(reason) => Ok(Err(reason)),
    }
}

impl Scene {
    fn run(self, cut: &Cut) -> Result<Healed, String> {
        let Self { server, client, between } = self;
        client.wait("units", |_| (client.arrivals().units() >= UNITS).then_some(()))?;
        between.cut(cut.ways, true);
        let begun = clock::now();
        server.wait("loss of contact at the server", |seen| seen.lost.first().copied())?;
        client.wait("loss of contact at the client", |seen| seen.lost.first().copied())?;
        std::thread::sleep(cut.len.saturating_sub(clock::now().since(begun)));
        client.arrivals().wait_from(clock::now());
        between.cut(cut.ways, false);
        let first = client.first_unit()?;
        let come = client.arrivals().units();
        client.wait("more units", |_| (client.arrivals().units() >= come + UNITS).then_some(()))?;
        client.wait("contact", |seen| seen.restored.first().copied())?;
        server.wait("contact", |seen| seen.restored.first().copied())?;
        client.finish();
        let (sent, lost) = account(&server, &client, cut)?;
        Ok(Healed { first, sent, lost })
    }
}

/// Waits for the end and checks the accounts of both ends; units sent and lost.
fn account(server: &Station, client: &Station, cut: &Cut) -> Result<(u64, u64), String> {
    let mut ledgers = Vec::new();
    for end in [server, client] {
        let (_, error) = end.wait("the end", |seen| seen.over.first().cloned())?;
        let account = end.wait("an account", |seen| seen.accounts.first().cloned())?;
        if error.is_some() || !account.0.closes() || account.0.unknown > 0 {
            return Err(format!("{cut:?}: {error:?}, {account:?}"));
        }
        ledgers.push(account);
    }
    let [(there, _), (here, hash)] = ledgers.as_slice() else { return Err("no account".into()) };
    let is_same =
        (there.sent, there.delivered, there.lost) == (here.sent, here.delivered, here.lost);
    let is_whole = !cut.stream || (here.lost == 0 && *hash == Some(true));
    let altered = client.arrivals().altered();
    if !is_same || !is_whole || altered > 0 {
        return Err(format!("{cut:?}: {altered} altered, {there:?} and {here:?}, {hash:?}"));
    }
    Ok((here.sent, here.lost))
}

/// Several at a time, one thread each: they mostly wait.
///
/// # Errors
/// The first that broke.
pub fn run_all(cuts: &[Cut]) -> Result<Result<Vec<Healed>, String>, String> {
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = cuts.iter().map(|cut| scope.spawn(|| run(cut))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|it| it.unwrap_or_else(|_| Err("a thread panicked".into()))).collect()
    });
    all.into_iter().collect()
}
