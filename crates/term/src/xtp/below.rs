//! [`End`]: a host over the network that was asked for, and the signals that end a command.
//!
//! ```text
//!   --over udp       IP[:PORT]     Udp         what a name or an address means here
//!   --over ip        IP            Ip
//!   --over ethernet  02:11:…       Ethernet
//!   --over tcp       IP[:PORT]     Connected<Tcp>
//! ```

use super::args::{Below, Over};
use crate::exit::{Exit, Failure};
use crate::output;
use dacapo::Place;
use dacapo::xtp_net::eui64::MacAddr;
use dacapo::xtp_net::{
    BindError, CacheConfig, CallError, CaptureError, Config, Connected, Connectionless, End as How,
    Ethernet, Fault, Host, InternetConfig, Ip, Limits, Open, Recorded, Tcp, UDP_PORT, Udp,
};
use dacapo_sys::interface;
use dacapo_sys::signal::{Signal, Signals};
use dacapo_sys::udp::Delivery;
use std::fs::File;
use std::io::BufWriter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::time::Duration;

/// The token of the signals at the host.
const SIGNALS: u16 = 0;
/// Bytes that an association keeps of each direction.
const BUFFER_LEN: usize = 1 << 20;
/// How long peers are answered that do not know yet that it is over.
const LINGER_MAX: Duration = Duration::from_secs(2);
/// Associations at a time, and what all of them may keep of a direction, which bounds their number
/// too: whoever opens one can fill it.
const CONTEXTS_MAX: usize = 1_024;
const MEMORY_MAX: usize = 256 << 20;
const CONTEXTS_MIN: usize = 16;

/// This end of XTP.
pub struct End {
    /// The host.
    pub host: Host,
    signals: Signals,
    capture: Option<(String, CaptureError)>,
}

impl End {
    /// An end at the address that was asked for, else at `local`.
    pub fn open(what: &str, below: &Below, local: SocketAddr) -> Result<Self, Failure> {
        Self::with_buffers(what, below, local, BUFFER_LEN)
    }

    /// The same, with so many bytes that an association keeps of each direction.
    pub fn with_buffers(
        what: &str,
        below: &Below,
        local: SocketAddr,
        buffer_len: usize,
    ) -> Result<Self, Failure> {
        let failed = |text: &dyn std::fmt::Display| Failure::run_time(what, text);
        // Before anything is opened that must be closed in order.
        let signals = Signals::catch(&Signal::ALL).map_err(|error| failed(&error))?;
        let local = below.local.map_or(local, |local| local.addr(default_port(below.over)));
        let interface = interface(what, below)?;
        let mut network = network(below, interface, local).map_err(|error| failed(&error))?;
        let mut capture = None;
        if let Some(path) = &below.capture {
            let cannot = |error| failed(&format_args!("{}: {error}", path.display()));
            let file = File::create(path).map_err(cannot)?;
            let recorded = Recorded::new(network, BufWriter::new(file)).map_err(cannot)?;
            capture = Some((path.display().to_string(), recorded.failed()));
            network = Box::new(recorded);
        }
        let contexts_max = (MEMORY_MAX / buffer_len.max(1)).clamp(CONTEXTS_MIN, CONTEXTS_MAX);
        let config = Config { contexts_max, buffer_len, ..Config::default() };
        let mut host = Host::new(network, config).map_err(|error| failed(&error))?;
        host.watch(signals.as_fd(), SIGNALS).map_err(|error| failed(&error))?;
        Ok(Self { host, signals, capture })
    }

    /// The signal that has come.
    pub fn signal(&mut self) -> Option<Signal> {
        self.signals.poll()
    }

    /// What a call that failed means for the command.
    pub fn failure(&mut self, what: &str, error: &CallError) -> Failure {
        if let (CallError::Interrupted(_), Some(signal)) = (error, self.signals.poll()) {
            return crate::app::interrupted(signal);
        }
        let exit = match error {
            CallError::TimedOut
            | CallError::Unreachable(_)
            | CallError::Address(_)
            | CallError::Ended(How::TimedOut | How::Refused(..), _) => Exit::Unreachable,
            _ => Exit::Failure,
        };
        Failure::new(exit, what, error)
    }

    /// Lets go in order: peers whose last packets were lost are answered for a moment, unless a
    /// signal comes. What is counted afterwards is all.
    pub fn linger(&mut self) {
        let until = self.host.after(LINGER_MAX);
        // Whatever ends it, there is nothing more to do.
        let _ = self.host.linger(until);
    }

    /// Ends it, and says when its capture is not whole.
    pub fn check_capture(self) -> Result<(), Failure> {
        let Some((path, failed)) = self.capture else { return Ok(()) };
        // Writes out what is buffered of the capture.
        drop(self.host);
        match &*failed.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => {
                let text = format!("{path} is not whole: {error}; write it where there is room");
                Err(Failure::run_time("xtp: capture", text))
            }
            None => Ok(()),
        }
    }

    /// Names the two ends in `open`: ports of XTP at the addresses below.
    pub fn with_ends(&self, open: Open, port: u16) -> Open {
        let destination = SocketAddr::new(open.peer.ip(), port);
        let local = self.host.local().ip();
        let source = SocketAddr::new(local, port);
        Open { ends: Some((destination, source)), ..open }
    }
}

/// The number of the interface that was named, or 0, which leaves the choice to the routes.
pub fn interface(what: &str, below: &Below) -> Result<u32, Failure> {
    let Some(name) = &below.interface else { return Ok(0) };
    let found = interface::index(name);
    found.map_err(|error| {
        let text = format!("interface {name:?}: {error}; `ip link` lists what there is");
        Failure::run_time(what, text)
    })
}

/// The port of an address that names none.
fn default_port(over: Over) -> u16 {
    if matches!(over, Over::Udp | Over::Tcp) { UDP_PORT } else { 0 }
}

fn network(
    below: &Below,
    interface: u32,
    local: SocketAddr,
) -> Result<Box<dyn Connectionless>, BindError> {
    let config = InternetConfig { packet_len_max: below.packet_len, ..InternetConfig::new(local) };
    let delivery = Delivery { interface, ..config.delivery };
    let config = InternetConfig { delivery, ..config };
    Ok(match below.over {
        Over::Udp => Box::new(Udp::bind(&config)?),
        Over::Ip => Box::new(Ip::bind(&config)?),
        Over::Tcp => {
            let tcp = Tcp::bind(local, below.packet_len)?;
            Box::new(Connected::new(tcp, CacheConfig::default()))
        }
        Over::Ethernet => {
            let name = below.interface.as_deref().unwrap_or_default();
            Box::new(Ethernet::open(name, below.packet_len)?)
        }
    })
}

/// A rate in bytes per second, with the burst that goes in 10 ms: as even as timers of this host
/// allow.
pub fn limits_at(rate: Option<u32>) -> Limits {
    rate.map_or_else(Limits::default, |rate| Limits {
        out_rate: rate,
        out_burst: (rate / 100).max(2_000),
        ..Limits::default()
    })
}

/// Where a listener is when nothing is said: this host only.
pub const fn loopback() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), UDP_PORT)
}

/// The address of a host as it is typed.
pub fn resolve(what: &str, below: &Below, host: &str) -> Result<SocketAddr, Failure> {
    if below.over == Over::Ethernet {
        // Groups are named as those of IPv6 are.
        if let Ok(group) = host.parse().map(|place: Place| place.addr(0))
            && group.ip().is_multicast()
        {
            return Ok(group);
        }
        let mac: MacAddr =
            host.parse().map_err(|error| Failure::new(Exit::Unreachable, what, error))?;
        // The network knows the interface.
        return Ok(mac.at(0));
    }
    let found = dacapo::host::resolve_at(host, UDP_PORT);
    found.map_err(|error| Failure::core(what, &error))
}

/// This end's address on the way to a peer, as the routes say; every address where they do not.
pub fn on_the_way_to(peer: SocketAddr) -> SocketAddr {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let routed = || {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        // Nothing is sent: the kernel looks up the route only.
        let mut to = peer;
        to.set_port(UDP_PORT);
        socket.connect(to).ok()?;
        let mut local = socket.local_addr().ok()?;
        local.set_port(0);
        Some(local)
    };
    routed().unwrap_or(SocketAddr::new(any, 0))
}

/// The packets of an end, in words.
pub fn packets_words(host: &Host) -> String {
    let counters = host.counters();
    let dropped: u64 = counters.packets_dropped.iter().sum();
    let dropped = if dropped > 0 { format!(", {dropped} not sent") } else { String::new() };
    let missed = counters.packets_missed;
    let missed = if missed > 0 { format!(", {missed} missed") } else { String::new() };
    format!(
        "{} packets sent{dropped}, {} received{missed}",
        counters.packets_sent, counters.packets_received
    )
}

/// The packets of an end.
pub fn packets_json(host: &Host) -> serde_json::Value {
    let counters = host.counters();
    let by_fault = |counts: &[u64]| {
        let named = Fault::NAMES.into_iter().zip(counts);
        let named = named.filter(|(_, count)| **count > 0);
        named
            .map(|(name, count)| (name.to_owned(), (*count).into()))
            .collect::<serde_json::Map<String, serde_json::Value>>()
    };
    serde_json::json!({
        "given": counters.packets_given,
        "sent": counters.packets_sent,
        "bytes_sent": counters.bytes_sent,
        "waiting": host.packets_waiting(),
        "dropped": by_fault(&counters.packets_dropped),
        "received": counters.packets_received,
        "bytes_received": counters.bytes_received,
        "missed": counters.packets_missed,
        "faults_told": by_fault(&counters.faults_told),
    })
}

/// Prints an event, as JSON where that is asked, else as text where there is one.
pub fn tell(is_json: bool, event: &serde_json::Value, text: &str) {
    if is_json {
        output::line(event);
    } else if !text.is_empty() {
        output::line(text);
    }
}
