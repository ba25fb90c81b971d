//! Measurements of a way between two UDP sockets: what it carries, and how long it takes.
//!
//! ```text
//!   sender thread ── [nothing | relay | TUN devices] ── receiver thread
//!        ^───────── how many have arrived ─────────────────┘   a window: nothing is lost
//! ```
//!
//! Invariant: sender, emulator and receiver are threads of this process, so its processor time is
//! that of all three.

use dacapo::Time;
use dacapo::emulator::LinkConfig;
use dacapo::emulator::{Relay, RelayConfig, RelayHandle, Tunnel, TunnelConfig, TunnelHandle};
use dacapo_base::Ecn;
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::udp::{Config, RecvError, Socket};
use dacapo_sys::{clock, process};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Datagrams on the way, at most.
const WINDOW: u64 = 1_024;
/// What a full window is waited for.
const PAUSE: Duration = Duration::from_micros(20);
/// Without an arrival for so long the rest of a window is given up.
const STALL: Duration = Duration::from_millis(200);
/// A probe is sent so often.
const PROBE_EVERY: Duration = Duration::from_millis(1);
/// A receiver looks so often whether it is over.
const SLICE: Duration = Duration::from_millis(50);
const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What stands between the two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Loopback alone.
    Nothing,
    /// A relay.
    Relay,
    /// TUN devices in two namespaces.
    Tunnel,
}

impl Between {
    /// The name, for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "plain",
            Self::Relay => "relay",
            Self::Tunnel => "tunnel",
        }
    }
}

/// Keeps what stands between alive.
enum Keep {
    Nothing,
    Relay(RelayHandle),
    Tunnel(TunnelHandle),
}

/// Two sockets and what stands between them.
pub struct Way {
    sender: Socket,
    receiver: Socket,
    keep: Keep,
}

impl Way {
    /// A way on which a link does this, both ways.
    pub fn open(between: Between, link: &LinkConfig) -> io::Result<Self> {
        let (sender, receiver, keep) = match between {
            Between::Nothing => {
                let receiver = socket(HERE)?;
                (connected(receiver.local_addr()?)?, receiver, Keep::Nothing)
            }
            Between::Relay => {
                let receiver = socket(HERE)?;
                let mut config = RelayConfig::new(HERE, receiver.local_addr()?);
                (config.forward, config.back) = (link.clone(), link.clone());
                let relay = Relay::spawn(config)?;
                (connected(relay.local_addr())?, receiver, Keep::Relay(relay))
            }
            Between::Tunnel => {
                let name = |end| format!("dacapo-bench-{}-{end}", std::process::id());
                let mut config = TunnelConfig::new(&name(1), &name(2));
                (config.forward, config.back) = (link.clone(), link.clone());
                let tunnel = Tunnel::spawn(config).map_err(io::Error::other)?;
                let [near, far] = tunnel.namespaces();
                let [here, there] = tunnel.addresses().map(|it| SocketAddr::new(it.ip, 0));
                let receiver = far.run(|| socket(there)).flatten()?;
                let sender = near.run(|| socket(here)).flatten()?;
                sender.connect(receiver.local_addr()?)?;
                (sender, receiver, Keep::Tunnel(tunnel))
            }
        };
        Ok(Self { sender, receiver, keep })
    }

    /// How long after their time datagrams left the emulator so far: median and 99th of 100.
    pub fn lateness(&self) -> Option<(Duration, Duration)> {
        let stats = match &self.keep {
            Keep::Nothing => return None,
            Keep::Relay(relay) => relay.stats(),
            Keep::Tunnel(tunnel) => tunnel.stats(),
        };
        Some((stats.lateness.p50()?, stats.lateness.p99()?))
    }
}

fn socket(local: SocketAddr) -> io::Result<Socket> {
    Socket::bind(local, &Config::default())
}

fn connected(to: SocketAddr) -> io::Result<Socket> {
    let sender = socket(HERE)?;
    sender.connect(to)?;
    Ok(sender)
}

/// What a way carried.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Datagrams that arrived in a second.
    pub per_s: f64,
    /// Processor time of the process for each, in microseconds.
    pub cpu_us: f64,
    /// Sent and not arrived.
    pub lost: u64,
}

/// Sends datagrams of `len` bytes, `train` in a call, as fast as they arrive.
pub fn rate(way: &mut Way, len: u16, train: u16, span: Duration) -> io::Result<Rate> {
    let (arrived, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let Way { sender, receiver, .. } = way;
    let (cpu, began) = (process::cpu_time(), clock::now());
    let sent = std::thread::scope(|scope| {
        let counted = scope.spawn(|| count(receiver, &arrived, &is_over));
        let sent = send(sender, (len, train), began + span, &arrived);
        is_over.store(true, Ordering::Release);
        counted.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        sent
    })?;
    let (seconds, cpu) = (clock::now().since(began), process::cpu_time().saturating_sub(cpu));
    let arrived = arrived.into_inner();
    Ok(Rate {
        per_s: arrived as f64 / seconds.as_secs_f64().max(1e-9),
        cpu_us: cpu.as_secs_f64() * 1e6 / (arrived.max(1) as f64),
        lost: sent.saturating_sub(arrived),
    })
}

fn send(
    socket: &mut Socket,
    (len, train): (u16, u16),
    end: Time,
    arrived: &AtomicU64,
) -> io::Result<u64> {
    let bytes = vec![0; usize::from(len) * usize::from(train)];
    let (mut sent, mut given_up) = (0_u64, 0_u64);
    let mut seen = (0, clock::now());
    loop {
        let now = clock::now();
        let here = arrived.load(Ordering::Acquire);
        if here != seen.0 {
            seen = (here, now);
        } else if now.since(seen.1) >= STALL {
            given_up = sent - here;
        }
        let is_done = now >= end;
        if is_done && here + given_up >= sent {
            return Ok(sent);
        }
        if is_done || sent - given_up >= here + WINDOW {
            std::thread::sleep(PAUSE);
            continue;
        }
        // What is not taken now is tried again.
        match socket.send(None, &bytes, Some(len), Ecn::NotEct) {
            Ok(taken) => sent += (taken.bytes / usize::from(len.max(1))) as u64,
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn count(socket: &Socket, arrived: &AtomicU64, is_over: &AtomicBool) -> io::Result<()> {
    each(socket, is_over, |_, datagrams| {
        arrived.fetch_add(datagrams, Ordering::Release);
    })
}

/// Calls `take` with what arrives and how many datagrams it is, until it is over.
fn each(socket: &Socket, is_over: &AtomicBool, mut take: impl FnMut(&[u8], u64)) -> io::Result<()> {
    let mut poller = Poller::new()?;
    poller.add(socket.as_fd(), 0, Interest::Read)?;
    let (mut events, mut buffer) = (Vec::new(), vec![0; 65_536]);
    while !is_over.load(Ordering::Acquire) {
        match socket.recv(&mut buffer) {
            Ok(recv) => {
                let len = recv.segment_size.map_or(recv.len, usize::from).max(1);
                let bytes = buffer.get(..recv.len).unwrap_or_default();
                take(bytes, recv.len.div_ceil(len) as u64);
            }
            Err(RecvError::WouldBlock) => poller.wait(Some(SLICE), &mut events)?,
            Err(RecvError::Other(error)) => return Err(error),
            Err(RecvError::Refused | RecvError::Unreachable | RecvError::TooLarge) => {}
        }
    }
    Ok(())
}

/// How long `count` probes took, one after the other, in nanoseconds, the shortest first.
pub fn delays(way: &mut Way, count: u32) -> io::Result<Vec<u64>> {
    let is_over = AtomicBool::new(false);
    let arrived = AtomicU64::new(0);
    let Way { sender, receiver, .. } = way;
    let mut delays = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut delays = Vec::new();
            each(receiver, &is_over, |bytes, _| {
                let now = clock::now().as_nanos();
                if let Some(stamp) = bytes.first_chunk::<8>() {
                    delays.push(now.saturating_sub(u64::from_be_bytes(*stamp)));
                }
                arrived.fetch_add(1, Ordering::Release);
            })?;
            Ok::<_, io::Error>(delays)
        });
        for _ in 0..count {
            // A probe that is not taken is one fewer.
            let _ = sender.send(None, &clock::now().as_nanos().to_be_bytes(), None, Ecn::NotEct);
            std::thread::sleep(PROBE_EVERY);
        }
        let end = clock::now() + STALL;
        while arrived.load(Ordering::Acquire) < u64::from(count) && clock::now() < end {
            std::thread::sleep(PROBE_EVERY);
        }
        is_over.store(true, Ordering::Release);
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    delays.sort_unstable();
    Ok(delays)
}
