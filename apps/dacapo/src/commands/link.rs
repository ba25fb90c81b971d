//! `dacapo link`: a bad network between programs of this host.
//!
//! ```text
//!   --to       client ── relay ── server            UDP, no rights
//!   --between  namespace ── TUN ── TUN ── namespace  everything that is IP, root
//!   until a signal or --for: a line of counters each second; then the totals
//! ```
//!
//! Invariant: however it ends, the totals are printed and what was made for it is removed.

mod figures;
mod via;

use crate::cli::{Addresses, LinkArgs, Namespaces};
use crate::exit::{Exit, Failure};
use crate::output::{self, line};
use crate::progress::Progress;
use dacapo::emulator::LinkConfig;
use dacapo::emulator::{
    PathStats, Relay, RelayConfig, RelayHandle, Tunnel, TunnelConfig, TunnelHandle,
};
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::signal::{Signal, Signals};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
pub use via::{LinkAccount, Via};

const WHAT: &str = "link";

/// Looked at so often, so that an emulator that has stopped is noticed.
const SLICE: Duration = Duration::from_millis(500);

/// Runs the command.
pub fn run(args: &LinkArgs) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| Failure::run_time("link: signals", error);
    // Before anything is made that must be removed.
    let mut signals = Signals::catch(&Signal::ALL).map_err(failed)?;
    let emulator = Emulator::start(args)?;
    emulator.tell(args);
    let end = args.duration.map(|duration| Instant::now() + duration);
    let signal = watch(&emulator, &mut signals, end, args.json)?;
    let stats = emulator.stop();
    if args.json {
        let mut totals = figures::to_json(&stats);
        totals["event"] = json!("totals");
        line(totals);
    } else {
        figures::print(&stats);
    }
    if let Some(fault) = &stats.fault {
        return Err(Failure::run_time("link: it has stopped", fault));
    }
    if !stats.closes() {
        output::note("dacapo: link: the account does not close; see the totals");
        return Ok(Exit::Mismatch);
    }
    Ok(signal.map_or(Exit::Success, Exit::Signal))
}

/// Waits for a signal or the end; shows how it stands meanwhile.
fn watch(
    emulator: &Emulator,
    signals: &mut Signals,
    end: Option<Instant>,
    is_json: bool,
) -> Result<Option<Signal>, Failure> {
    let failed = |error: std::io::Error| Failure::run_time(WHAT, error);
    let mut poller = Poller::new().map_err(failed)?;
    poller.add(signals.as_fd(), 0, Interest::Read).map_err(failed)?;
    let mut progress = Progress::new(is_json);
    let mut events = Vec::new();
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        let wait = progress.due_in(SLICE).min(left.unwrap_or(SLICE));
        poller.wait(Some(wait), &mut events).map_err(failed)?;
        if let Some(signal) = signals.poll() {
            return Ok(Some(signal));
        }
        let stats = emulator.stats();
        if stats.fault.is_some() {
            return Ok(None);
        }
        if progress.is_due() {
            progress.show(&figures::interval(&stats));
        }
    }
}

/// What runs.
enum Emulator {
    Relay { handle: RelayHandle, to: SocketAddr },
    Tunnel(TunnelHandle),
}

impl Emulator {
    fn start(args: &LinkArgs) -> Result<Self, Failure> {
        match (&args.between, &args.to) {
            (Some(Namespaces([first, second])), _) => {
                let Addresses(addresses) = args.addresses;
                let mut config = TunnelConfig::new(first, second);
                (config.addresses, config.seed) = (addresses, args.seed);
                (config.forward, config.back) = links(args);
                let tunnel = Tunnel::spawn(config);
                Ok(Self::Tunnel(tunnel.map_err(|error| Failure::run_time(WHAT, error))?))
            }
            (None, to) => {
                let to = dacapo::host::resolve(to.as_deref().unwrap_or_default());
                let to = to.map_err(|error| Failure::core(WHAT, &error))?;
                if to == args.listen {
                    let text = format!("{to} would be relayed to itself; choose another --listen");
                    return Err(Failure::run_time(WHAT, text));
                }
                let mut config = RelayConfig::new(args.listen, to);
                config.seed = args.seed;
                (config.forward, config.back) = links(args);
                let handle = Relay::spawn(config).map_err(|error| {
                    Failure::run_time(&format!("link: listen at {}", args.listen), error)
                })?;
                Ok(Self::Relay { handle, to })
            }
        }
    }

    fn stats(&self) -> PathStats {
        match self {
            Self::Relay { handle, .. } => handle.stats(),
            Self::Tunnel(handle) => handle.stats(),
        }
    }

    fn stop(self) -> PathStats {
        match self {
            Self::Relay { handle, .. } => handle.stop(),
            Self::Tunnel(handle) => handle.stop(),
        }
    }

    /// Says where it is and what it does.
    fn tell(&self, args: &LinkArgs) {
        let (forward, back) = links(args);
        if args.json {
            let mut event = self.place_json();
            event["event"] = json!("listening");
            event["forward"] = json!(forward.to_string());
            event["back"] = json!(back.to_string());
            event["seed"] = json!(args.seed);
            return line(event);
        }
        self.place().iter().for_each(line);
        line(format_args!("forward  {forward}"));
        line(format_args!("back     {back}"));
        line(format_args!("seed     {}", args.seed));
    }

    fn place(&self) -> Vec<String> {
        match self {
            Self::Relay { handle, to } => {
                vec![format!("ready dacapo://{}/  (UDP, relayed to {to})", handle.local_addr())]
            }
            Self::Tunnel(handle) => {
                let ends = handle.namespaces().iter().zip(handle.addresses());
                let lines = ends.map(|(space, address)| {
                    let made =
                        if space.is_made() { "  (made for this, removed at the end)" } else { "" };
                    let (name, ip, len) = (space.name(), address.ip, address.prefix_len);
                    format!("ready {ip}/{len} in the network namespace {name}{made}")
                });
                lines.collect()
            }
        }
    }

    fn place_json(&self) -> Value {
        match self {
            Self::Relay { handle, to } => {
                json!({ "relay": handle.local_addr().to_string(), "to": to.to_string() })
            }
            Self::Tunnel(handle) => {
                let text =
                    |it: &dacapo_sys::interface::Address| format!("{}/{}", it.ip, it.prefix_len);
                let names: Vec<&str> = handle.namespaces().iter().map(|it| it.name()).collect();
                let addresses: Vec<String> = handle.addresses().iter().map(text).collect();
                json!({ "namespaces": names, "addresses": addresses })
            }
        }
    }
}

/// Forward and back.
fn links(args: &LinkArgs) -> (LinkConfig, LinkConfig) {
    let back = args.back.as_ref().unwrap_or(&args.config);
    (args.config.clone(), back.clone())
}
