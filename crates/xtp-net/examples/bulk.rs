//! One stream from a process to another, as fast as it goes: no files, no hashes.
//!
//! ```text
//!   receive | Host <- UDP, IP 36 or Ethernet <- Host | send      a line of figures from each
//! ```
//!
//! ```text
//! cargo run --release -p dacapo-xtp-net --example bulk -- receive 127.0.0.1:4040
//! cargo run --release -p dacapo-xtp-net --example bulk -- send 127.0.0.1:4040 seconds=3
//! ```
//!
//! Settings of both ends, behind the address: `over=udp` (or `ip`, or the name of an interface for
//! Ethernet, with the peer's hardware address as address), `local=ADDRESS`, `packet=BYTES`,
//! `buffer=BYTES` (window), `piece=BYTES` (of a write or read), `ring=no` (frames of Ethernet come
//! by a call for each); of the sender `check=no` (NOCHECK), `rate=` and `burst=` in bytes.

#![allow(clippy::unwrap_used, reason = "what fails here ends the example")]

use dacapo_sys::process::cpu_time;
use dacapo_xtp::wire::{Limits, Service};
use dacapo_xtp::{Config, ContextId, Listen, Message, Mode, Open, Read};
use dacapo_xtp_net::eui64::MacAddr;
use dacapo_xtp_net::{Connectionless, Ethernet, Host, InternetConfig, Ip, Udp};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const PORT: u16 = 5_000;

struct Settings(Vec<String>);

impl Settings {
    fn text(&self, name: &str) -> Option<&str> {
        let of = |word: &'_ String| word.split_once('=').is_some_and(|(key, _)| key == name);
        let word = self.0.iter().find(|word| of(word))?;
        word.split_once('=').map(|(_, value)| value)
    }

    fn number(&self, name: &str, default: usize) -> usize {
        self.text(name).map_or(default, |text| text.parse().unwrap())
    }

    fn network(&self, local: SocketAddr) -> Box<dyn Connectionless> {
        let packet_len_max = self.text("packet").map(|text| text.parse().unwrap());
        let config = InternetConfig { packet_len_max, ..InternetConfig::new(local) };
        match self.text("over").unwrap_or("udp") {
            "udp" => Box::new(Udp::bind(&config).unwrap()),
            "ip" => Box::new(Ip::bind(&config).unwrap()),
            name if self.text("ring") == Some("no") => {
                Box::new(Ethernet::open_by_calls(name, packet_len_max).unwrap())
            }
            name => Box::new(Ethernet::open(name, packet_len_max).unwrap()),
        }
    }

    fn host(&self, local: SocketAddr) -> Host {
        let buffer_len = self.number("buffer", 1 << 20);
        let config = Config { buffer_len, first_window: 1 << 16, ..Config::default() };
        Host::new(self.network(local), config).unwrap()
    }

    /// The peer, on a network that has this end.
    fn peer(&self, host: &Host, text: &str) -> SocketAddr {
        let mac = text.parse::<MacAddr>().ok().zip(MacAddr::of(&host.local()));
        mac.map_or_else(|| text.parse().unwrap(), |(mac, _)| mac.at(scope(host.local())))
    }
}

fn scope(local: SocketAddr) -> u32 {
    if let SocketAddr::V6(local) = local { local.scope_id() } else { 0 }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, address, ..] = &words[..] else { panic!("send or receive, and an address") };
    let settings = Settings(words.clone());
    match role.as_str() {
        "receive" => receive(&settings, address),
        "send" => send(&settings, address),
        other => panic!("send or receive, not {other}"),
    }
}

fn receive(settings: &Settings, address: &str) {
    let local = address.parse().unwrap_or(SocketAddr::from(([127, 0, 0, 1], 4_040)));
    let mut host = settings.host(local);
    host.listen(Listen::on(PORT)).unwrap();
    let until = host.after(Duration::from_secs(3_600));
    let id = host.accept(until).unwrap().id;
    let (start, cpu) = (Instant::now(), cpu_time());
    let mut piece = vec![0; settings.number("piece", 64 << 10)];
    let mut total = 0;
    while let Read::Data { len, .. } = host.read(id, &mut piece, until).unwrap() {
        total += len;
    }
    report("receiver", &host, total, (start.elapsed(), cpu_time() - cpu));
    host.close(id, until).unwrap();
    let _ = host.linger(host.after(Duration::from_millis(100)));
}

fn send(settings: &Settings, address: &str) {
    let local = settings.text("local").unwrap_or("127.0.0.1:0").parse().unwrap();
    let mut host = settings.host(local);
    let id = open(settings, &mut host, address);
    let piece = vec![7; settings.number("piece", 64 << 10)];
    let long = Duration::from_secs(settings.number("seconds", 3) as u64);
    let (start, cpu) = (Instant::now(), cpu_time());
    let until = host.after(long + Duration::from_secs(60));
    let mut total = 0;
    while start.elapsed() < long {
        host.write(id, &Message::part(&piece), until).unwrap();
        total += piece.len();
    }
    host.close(id, until).unwrap();
    report("sender", &host, total, (start.elapsed(), cpu_time() - cpu));
}

fn open(settings: &Settings, host: &mut Host, address: &str) -> ContextId {
    let peer = settings.peer(host, address);
    let limits = Limits {
        out_rate: settings.number("rate", 0) as u32,
        out_burst: settings.number("burst", 0) as u32,
        ..Limits::default()
    };
    let without_check = settings.text("check") == Some("no");
    let mode = Mode { without_check, fast_report: true, limits, ..Mode::default() };
    let port = |at: SocketAddr| SocketAddr::new(at.ip(), PORT);
    let ends = Some((port(peer), port(host.local())));
    let id = host.open(&Open { peer, ends, service: Service::Stream, mode }).unwrap();
    host.wait_open(id, host.after(Duration::from_secs(10))).unwrap();
    id
}

fn report(end: &str, host: &Host, total: usize, (time, cpu): (Duration, Duration)) {
    let counters = host.counters();
    let per = |packets: u64, calls: u64| packets as f64 / calls.max(1) as f64;
    println!(
        "{end}: {:.2} Gbit/s, {:.3} CPU s/GB; out {} packets, {:.1} a call; in {} packets, \
         {:.1} a call, {} missed; {} times no room",
        total as f64 * 8e-9 / time.as_secs_f64(),
        cpu.as_secs_f64() * 1e9 / total as f64,
        counters.packets_sent,
        per(counters.packets_sent, counters.sends),
        counters.packets_received,
        per(counters.packets_received, counters.receives),
        counters.packets_missed,
        counters.blocked,
    );
}
